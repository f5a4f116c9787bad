"""Training a classifier: batches of similar length, the dev set's macro F1 after every epoch, the best epoch kept.

A run is a folder with `run.json`, the best epoch's classifier, the learning curve, and checkpoints meanwhile; a search
is a folder of runs over the paper's grid of learning rates and epochs.
"""

import hashlib
import json
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from torch.utils.data import Sampler
from transformers import EvalPrediction, TrainingArguments

from ebert import __version__
from ebert._io import files
from ebert._runs import machine
from ebert.bert.load import quiet
from ebert.errors import EbertError
from ebert.finetuning import run as runs
from ebert.finetuning.folder import MODEL
from ebert.finetuning.options import Say
from ebert.finetuning.trainer import Keeper, arguments, best_of, run
from ebert.model.ebert import EBert
from ebert.relations.classifier import RelationClassifier
from ebert.relations.data import check_labels, fixed_subset, labels_of, read, split_path
from ebert.relations.evaluate import confusion, scores
from ebert.relations.inputs import Prepared, padding
from ebert.relations.options import RelationTrainingOptions, ResolvingOptions

NAMES = "pid2name.json"
FORMAT = 1
SAME = ("mode", "options", "resolving", "data", "model")  # what a run must have in common with one that it continues
POOL = 50  # batches whose samples are sorted together: little padding, and still another mixture every epoch


def train(
    data: Path,
    model: EBert,
    out: Path,
    *,
    mode: str,
    options: RelationTrainingOptions,
    resolving: ResolvingOptions,
    ids: Mapping[int, str] | None = None,
    device: str | None = None,
    command: str = "",
    say: Say,
) -> dict[str, Any]:
    """Train a classifier into the folder `out`, or continue it, and return its metrics."""
    runs.need_accelerate("relations")
    paths = {name: split_path(data, name) for name in ("train", "dev")}
    samples = {name: read(path) for name, path in paths.items()}
    for name, most in (("train", options.samples), ("dev", options.dev_samples)):
        if most is not None:
            samples[name] = fixed_subset(samples[name], most)
    labels = labels_of(samples["train"], paths["train"].name)
    check_labels(samples["dev"], labels)
    sources = {
        name: {"file": path.name, "sha256": files.sha256(path), "samples": len(samples[name])}
        for name, path in paths.items()
    }
    info: dict[str, Any] = {
        "kind": "relations", "format": FORMAT, "ebert": __version__, "command": command, "mode": mode,
        "options": asdict(options), "resolving": {**asdict(resolving), "ids": _table(ids)},
        "model": runs.describe(model), "data": sources, "names": _names(data, labels),
    }  # fmt: skip
    with runs.alone(out):
        if (done := runs.begin(out, info, SAME)) is not None:
            say(f"{out} is complete already")
            return done
        classifier = RelationClassifier.fresh(
            model, mode=mode, labels=labels, resolving=resolving, ids=ids, names=info["names"], seed=options.seed
        )
        inputs = classifier.inputs
        prepared = {name: inputs.prepare(part) for name, part in samples.items()}
        info |= {
            "coverage": {name: inputs.resolver.coverage(part) for name, part in samples.items()},
            "shortened": {name: _shortened(part, say) for name, part in prepared.items()},
            "machine": machine(),
        }
        runs.announce(out, info)
        start = time.monotonic()
        with quiet():
            curve, info["padding"] = fine_tune(
                classifier, prepared["train"], prepared["dev"], options,
                checkpoints=out / runs.CHECKPOINTS, best=out / MODEL, say=say, device=device,
            )  # fmt: skip
        best = best_of(curve)
        metrics = {
            "best epoch": best["epoch"], "dev": best["dev"], "dev samples": len(prepared["dev"]), "epochs": curve,
        }  # fmt: skip
        info |= {"labels": labels, "seconds of the last start": round(time.monotonic() - start, 1)}
        runs.finish(out, info, metrics)
        return metrics


def search(
    data: Path,
    load: Callable[[], EBert],
    out: Path,
    *,
    mode: str,
    options: RelationTrainingOptions,
    rates: Sequence[float],
    epochs: Sequence[int],
    keep_all: bool = False,
    command: str = "",
    say: Say,
    **how: Any,
) -> dict[str, Any]:
    """Train a classifier with every learning rate and number of epochs; see `ebert.finetuning.run.search`.

    `load` returns the model afresh each time, because training changes its encoder; `how` is what `train` takes too.
    """

    def train_one(chosen: RelationTrainingOptions, folder: Path) -> dict[str, Any]:
        return train(data, load(), folder, mode=mode, options=chosen, command=command, say=say, **how)

    return runs.search(
        options, {"learning_rate": rates, "epochs": epochs}, train_one, out, model=MODEL, keep_all=keep_all, say=say,
        info={"kind": "relations search", "command": command, "mode": mode},
    )  # fmt: skip


def fine_tune(
    classifier: RelationClassifier,
    train: Sequence[Prepared],
    dev: Sequence[Prepared],
    options: RelationTrainingOptions,
    *,
    checkpoints: Path,
    best: Path,
    say: Say,
    device: str | None = None,
) -> tuple[list[dict[str, Any]], float]:
    """Train from the last checkpoint if there is one; return the learning curve and the share of padding.

    The classifier of the best epoch is in the folder `best` afterwards.
    """
    number = {label: index for index, label in enumerate(classifier.labels)}
    sets = [[{"pieces": one.pieces, "label": number[str(one.sample.label)]} for one in part] for part in (train, dev)]
    steps = math.ceil(len(train) / options.batch)
    sampler = LengthSampler([len(one) for one in train], batch=options.batch, seed=options.seed)
    wasted = padding([[len(train[index]) for index in batch] for batch in sampler.batches(0)])
    unsorted = padding([part.tolist() for part in np.array_split([len(one) for one in train], steps)])
    say(
        f"padding is {wasted:.1%} of the tokens, with similar lengths in a batch (in the order of the file it "
        f"would be {unsorted:.1%})"
    )

    def begin(epoch: int) -> None:
        sampler.epoch = epoch

    def score(prediction: EvalPrediction) -> dict[str, float]:
        given = np.asarray(prediction.predictions).argmax(axis=-1)
        return scores(confusion(np.asarray(prediction.label_ids), given, len(number))).macro()

    keeper = Keeper(begin, lambda: classifier.save_pretrained(best), say)
    trainer = _Trainer(
        model=classifier.module,
        args=_arguments(options, checkpoints, steps=steps, device=device),
        train_dataset=sets[0],
        eval_dataset=sets[1],
        data_collator=classifier.inputs,
        compute_metrics=score,
        callbacks=[keeper],
    )
    trainer.train_sampler = sampler
    trainer.eval_order = sorted(range(len(dev)), key=lambda index: (len(dev[index]), index))
    return run(trainer, keeper, checkpoints), wasted


class LengthSampler(Sampler[int]):
    """Yields indices so that consecutive batches of `batch` hold sequences of similar length.

    The order depends on the seed and the epoch only, so that a run that continues later sees the same batches. The
    Trainer's own sampler by length draws from the state of the process, which differs after a resume.
    """

    def __init__(self, lengths: Sequence[int], *, batch: int, seed: int) -> None:
        self._lengths, self._batch, self._seed = lengths, batch, seed
        self.epoch = 0

    def __len__(self) -> int:
        return len(self._lengths)

    def __iter__(self) -> Iterator[int]:
        for batch in self.batches(self.epoch):
            yield from batch

    def batches(self, epoch: int) -> list[list[int]]:
        """Return the batches of an epoch."""
        generator = torch.Generator().manual_seed(self._seed * 1_000_003 + epoch)
        order = torch.randperm(len(self._lengths), generator=generator).tolist()
        pool = POOL * self._batch
        groups: list[list[int]] = []
        for start in range(0, len(order), pool):
            alike = sorted(order[start : start + pool], key=lambda index: self._lengths[index])
            groups += [alike[at : at + self._batch] for at in range(0, len(alike), self._batch)]
        # A short batch must be the last one: a data loader cuts the indices every `batch`.
        last = [group for group in groups if len(group) < self._batch]
        full = [group for group in groups if len(group) == self._batch]
        shuffled = torch.randperm(len(full), generator=generator).tolist()
        return [full[index] for index in shuffled] + last


class _Trainer(transformers.Trainer):
    """The Trainer, with our order of the samples."""

    train_sampler: LengthSampler
    eval_order: list[int]

    def _get_train_sampler(self, *_: Any, **__: Any) -> LengthSampler:
        return self.train_sampler

    def _get_eval_sampler(self, *_: Any, **__: Any) -> Any:
        return self.eval_order


def _arguments(options: RelationTrainingOptions, folder: Path, *, steps: int, device: str | None) -> TrainingArguments:
    """Share the batch among the devices, and evaluate after every epoch."""

    def make(batch: int) -> TrainingArguments:
        return arguments(
            options, folder, batch=batch, steps=steps, evaluate=steps, device=device,
            per_device_eval_batch_size=batch, dataloader_pin_memory=device != "cpu" and torch.cuda.is_available(),
            ddp_find_unused_parameters=False,
        )  # fmt: skip

    whole = make(options.batch)
    devices = max(1, whole.n_gpu) * whole.world_size
    if devices == 1:
        return whole
    if options.batch % devices:
        raise EbertError(f"a batch of {options.batch} cannot be shared by {devices} devices evenly")
    return make(options.batch // devices)


def _table(ids: Mapping[int, str] | None) -> dict[str, Any] | None:
    """Return which table of ids and titles was used."""
    if not ids:
        return None
    text = json.dumps(sorted(ids.items()), ensure_ascii=False)
    return {"entries": len(ids), "sha256": hashlib.sha256(text.encode()).hexdigest()}


def _names(data: Path, labels: list[str]) -> dict[str, str]:
    """Return the names of relations, if the data folder has FewRel's list of names."""
    if not (data / NAMES).is_file():
        return {}
    names = files.read_json(data / NAMES, "a data folder")
    return {label: names[label][0] for label in labels if isinstance(names.get(label), list) and names[label]}


def _shortened(prepared: list[Prepared], say: Say) -> int:
    cut = [one.sample.where for one in prepared if one.shortened]
    if cut:
        say(f"{len(cut):,} samples are longer than the encoder and were cut around their mentions: {cut[0]}, ...")
    return len(cut)
