"""Train a linker: the folder of the run, steps of many spans that are computed a few at a time, and F1 on the dev set.

`tune` chooses how readily a linker links: what is added to the null entity's score. A linker that is trained span by
span links if an entity is likelier than not. For the best F1 it must link more than that when many spans are doubtful:
the best threshold is about half the F1 that can be reached. The shift is found by decoding the same scores of the dev
set again and again, so that the encoder runs once.
"""

import hashlib
import json
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple, cast

import torch
import transformers
from torch import Tensor, nn
from torch.utils.data import Sampler, SequentialSampler

from ebert import __version__
from ebert._io import files
from ebert._runs import machine
from ebert.bert.load import quiet
from ebert.errors import EbertError
from ebert.finetuning import run as runs
from ebert.finetuning.folder import MODEL
from ebert.finetuning.options import RATES, Say
from ebert.finetuning.trainer import Keeper, arguments, best_of, last_checkpoint, run
from ebert.linking.adapter import trained
from ebert.linking.candidates.generator import Given
from ebert.linking.document import Document
from ebert.linking.evaluate import Counts, Same, percent, score
from ebert.linking.examples import GOLD, Item, LabelledChunk, TrainingSet, examples
from ebert.linking.first_fit import fit_evidence
from ebert.linking.linker import WINDOW, Linker
from ebert.linking.options import BATCHES, LinkerOptions, LinkTrainingOptions
from ebert.linking.readers.layouts import read
from ebert.linking.refine import ChunkState, choose
from ebert.linking.resolve import TitleResolver
from ebert.linking.scorer import LinkingModel
from ebert.linking.wikipedia import HELD_OUT, TRAIN
from ebert.model.batching import plan, windows
from ebert.model.ebert import EBert
from ebert.text.passage import Mention
from ebert.vectors.store import Vectors
from ebert.vectors.wikidata_ids import read_ids

FORMAT = 2
# What a run must have in common with one that it continues.
SAME = ("linker", "options", "generator", "data", "model", "mentions")
TENTH = 10  # every so many documents are held out, if no dev set is given
TOKENS = {"cpu": 2048}  # computed at a time, activations and all
MORE_TOKENS = 16384
SHIFTS = tuple(step / 4 for step in range(-16, 17))  # from -4 to 4: a factor of 55 on the odds


def read_documents(path: Path, layout: str | None, resolver: TitleResolver, say: Say) -> list[Document]:
    """Read labelled data, find the titles of its gold in a store, and say what was left out."""
    reading = read(path, layout)
    resolved = resolver.documents(reading.documents)
    line = f"{path}: {len(resolved.documents):,} documents, {resolved.gold:,} gold mentions"
    say(f"{line}, {resolved.missing:,} of entities that the store does not have")
    for reason, count in reading.dropped.items():
        say(f"  left out: {count:,} {reason}")
    return resolved.documents


def read_data(
    data: str | Path, dev: str | Path | None, vectors: Vectors, *, layout: str | None = None,
    ids: str | Path | None = None, say: Say,
) -> tuple[list[Document], list[Document], dict[str, Any]]:  # fmt: skip
    """Read what to train on, a folder of `ebert link wikipedia` or a file, and the dev data, or hold a tenth out.

    Return the documents, the dev documents, and the names and hashes of their files.
    """
    path, dev_layout = Path(data), layout
    if path.is_dir() and (path / TRAIN).is_file():
        held = path / HELD_OUT
        if dev is None and held.is_file() and held.stat().st_size:
            dev = held
        path, dev_layout = path / TRAIN, None
    resolver = TitleResolver(vectors, read_ids(Path(ids)) if ids else None)
    documents = read_documents(path, layout, resolver, say)
    if dev:
        chosen = read_documents(Path(dev), dev_layout, resolver, say)
    else:
        if len(documents) < 2:
            raise EbertError(
                f"{path} has only one document, and one must be held out for choosing the best "
                f"epoch; give others with --dev"
            )
        chosen, documents = documents[::TENTH], [d for n, d in enumerate(documents) if n % TENTH]
        say(f"{len(chosen):,} of the documents are held out for choosing the best epoch (--dev gives others)")
    parts = {"train": path, "dev": dev, **({"ids": ids} if ids else {})}
    facts = {name: Path(one) if one else None for name, one in parts.items()}
    return documents, chosen, {
        name: {"file": one.name, "sha256": files.sha256(one)} if one else None for name, one in facts.items()
    }  # fmt: skip


def train(
    documents: Sequence[Document], dev: Sequence[Document], model: EBert, out: Path, *, linker_options: LinkerOptions,
    options: LinkTrainingOptions, generator: Given = None, data: Mapping[str, Any] | None = None,
    device: str | None = None, command: str = "", say: Say,
) -> dict[str, Any]:  # fmt: skip
    """Train a linker into the folder `out`, or continue it, and return its metrics.

    The model's encoder is trained. `data` says where the documents and the dev documents come from (file names and
    hashes), so that a run is only continued with the same ones. The best evaluation on `dev` is kept, by strong-match
    micro F1 in one round.
    """
    runs.need_accelerate("linking")
    dtype = torch.bfloat16 if linker_options.adapter and options.precision == "bf16" else None
    linker = Linker.fresh(model, options=linker_options, generator=generator, seed=options.seed, dtype=dtype)
    made = linker.vectors.info.made.get("mentions")  # what a store says about another mention table than its own
    info: dict[str, Any] = {
        "kind": "linking",
        "format": FORMAT,
        "ebert": __version__,
        "command": command,
        "linker": asdict(linker_options),
        "options": asdict(options),
        "generator": linker.generator.describe(),
        "model": runs.describe(model),
        "mentions": hashlib.sha256(json.dumps(made, sort_keys=True).encode()).hexdigest() if made is not None else None,
        "data": {**(data or {}), "documents": len(documents), "dev documents": len(dev)},
    }
    with runs.alone(out):
        if (done := runs.begin(out, info, SAME)) is not None:
            say(f"{out} is complete already")
            return done
        labelled, counts = examples(linker, documents)
        info |= {"counts": {**counts, **linker.dropped}, "machine": machine()}
        for what, count in info["counts"].items():
            say(f"{count:,} {what}")
        if not counts[GOLD]:
            raise EbertError(
                f"none of the {len(documents):,} documents has a gold mention that the candidate generator finds; "
                "is this the right store, and are the titles those of its Wikipedia?"
            )
        if not any(document.gold for document in dev):
            raise EbertError("the dev documents have no gold mentions, so the best epoch cannot be chosen")
        runs.announce(out, info)
        start = time.monotonic()
        with quiet():
            # What is trained of an adapter stays in fp32, while its encoder computes in bf16.
            own = options if dtype is None else replace(options, precision="fp32")
            curve = _fine_tune(linker, labelled, dev, own, out, device=device, say=say)
        best = best_of(curve)
        metrics = {"best epoch": best["epoch"], "dev": best["dev"], "dev documents": len(dev), "epochs": curve}
        info["seconds"] = round(time.monotonic() - start, 1)  # of this session, if it was continued
        runs.finish(out, info, metrics)
        return metrics


def search(
    documents: Sequence[Document], dev: Sequence[Document], load: Callable[[], EBert], out: Path, *,
    linker_options: LinkerOptions, options: LinkTrainingOptions, rates: Sequence[float] = RATES,
    batches: Sequence[int] = BATCHES, keep_all: bool = False, command: str = "", say: Say, **more: Any,
) -> dict[str, Any]:  # fmt: skip
    """Train a linker with every learning rate and batch size of a grid (appendix of the paper).

    `load` returns the model afresh each time, because training changes its encoder; `more` goes to `train`.
    """
    more |= {"linker_options": linker_options, "command": command, "say": say}
    return runs.search(
        options, {"learning_rate": rates, "batch": batches},
        lambda chosen, folder: train(documents, dev, load(), folder, options=chosen, **more),
        out, model=MODEL, keep_all=keep_all, say=say,
        info={"kind": "linking search", "command": command, "linker": asdict(linker_options)},
    )  # fmt: skip


# Choosing how readily a linker links


class TunedShift(NamedTuple):
    """The shift with the best micro F1, and what it gives."""

    shift: float
    counts: Counts


def tune(linker: Linker, documents: Sequence[Document], *, same: Same = str, shift: bool = True) -> TunedShift:
    """Link documents in one round and find the shift with the best micro F1; without `shift` it stays zero."""
    totals = {number: Counts() for number in (SHIFTS if shift else (0.0,))}
    for window in windows(documents, WINDOW):
        states = [ChunkState(chunk) for chunk in linker.chunks(window)]
        verdicts = linker.judge(states, shift=0.0)
        for number in totals:
            links: list[list[Mention]] = [[] for _ in window]
            for state, judged in zip(states, verdicts, strict=True):
                linked = [one for one in (verdict.shifted(number) for verdict in judged) if one.linked]
                spans = ((one.placed.span, one.entity) for one in choose(linked, len(linked), together=linker.together))
                links[state.chunk.document] += [Mention(span.start, span.end, entity) for span, entity in spans]
            for document, own in zip(window, links, strict=True):
                totals[number] += score(document, own, same=same).counts
    best = max(totals, key=lambda number: (totals[number].f1, -abs(number)))
    return TunedShift(best, totals[best])


# The Trainer


def _fine_tune(
    linker: Linker, labelled: Sequence[LabelledChunk], dev: Sequence[Document], options: LinkTrainingOptions, out: Path,
    *, device: str | None, say: Say,
) -> list[dict[str, Any]]:  # fmt: skip
    """Train from the last checkpoint if there is one, and return the learning curve."""
    data = TrainingSet(linker, labelled, nulls=options.nulls, seed=options.seed)
    unit, batch = "spans", options.batch
    if linker.options.strategy == "packed":  # as many chunks as have about that many spans
        unit, batch = "chunks", max(1, round(options.batch * len(data) / data.spans))
    steps = math.ceil(len(data) / batch)
    say(f"{data.spans:,} spans an epoch in {steps:,} steps of {batch:,} {unit}")
    resolver = TitleResolver(linker.vectors)

    def evaluate() -> dict[str, float]:  # in one round, which costs a third and ranks epochs as well
        linker.null_shift, counts = tune(linker, dev, same=resolver.same, shift=options.tune)
        return {**percent(counts), "shift": linker.null_shift}

    scores = ("precision", "recall", "f1", "shift")
    keeper = Keeper(data.begin, lambda: linker.save_pretrained(out / MODEL), say, scores=scores)
    trainer = _LinkTrainer(
        model=linker.module,
        args=arguments(
            options, out / runs.CHECKPOINTS, batch=batch, steps=steps, evaluate=math.ceil(steps / options.evaluations),
            device=device, dataloader_pin_memory=False,
        ),
        train_dataset=data,
        eval_dataset=list(dev),  # what is done with it is ours
        data_collator=partial(_collated, linker, options.tokens),
        callbacks=[keeper],
    )  # fmt: skip
    trainer.score = evaluate
    trainer.rates = options.adapter_rate, options.evidence_rate
    if linker.module.weights is not None and last_checkpoint(out / runs.CHECKPOINTS) is None:
        collated = (_collated(linker, options.tokens, [data[number]]) for number in range(len(data)))
        left = fit_evidence(linker.module, (part for step in collated for part in step["parts"]))
        say(f"the weights of the evidence are fitted: loss {left:.3f}")
    return run(trainer, keeper, out / runs.CHECKPOINTS)


def _collated(linker: Linker, tokens: int | None, chosen: Sequence[list[Item]]) -> dict[str, Any]:
    """Return one step: the parts to compute one after the other, and the weight of all their spans."""
    items = [item for one in chosen for item in one]
    kind = linker.module.device.type
    parts: list[dict[str, Tensor]] = []
    for group in plan([len(item[0]) for item in items], tokens or TOKENS.get(kind, MORE_TOKENS)):
        sequences, labels, weights = zip(*(items[index] for index in group), strict=True)
        parts.append(linker.batcher(sequences, list(chain(*labels)), list(chain(*weights))))
    return {"parts": parts, "total": sum(part["weights"].sum() for part in parts)}


class _LinkTrainer(transformers.Trainer):
    """The Trainer, with our order of the spans, our steps and our evaluation."""

    score: Callable[[], dict[str, float]]  # of the dev set, in percent, and the shift they were reached with
    rates: tuple[float, float]  # of an adapter, and of the weights of the evidence

    def create_optimizer(self, model: Any = None) -> torch.optim.Optimizer:
        """Give the weights of the evidence, a few numbers of another size, a learning rate of their own."""
        module = cast("LinkingModel", self.model)
        if module.weights is None:
            return super().create_optimizer() if model is None else super().create_optimizer(model)
        few = [*module.weights.parameters(), module.null_bias]
        rest = [parameter for _, parameter in trained(module) if all(parameter is not one for one in few)]
        groups = [
            {"params": rest, "lr": self.rates[0], "weight_decay": self.args.weight_decay},
            {"params": few, "lr": self.rates[1], "weight_decay": 0.0},
        ]
        self.optimizer = torch.optim.AdamW(groups, betas=(self.args.adam_beta1, self.args.adam_beta2))
        return self.optimizer

    def _save(self, output_dir: str | None = None, state_dict: Any = None) -> None:
        if cast("LinkingModel", self.model).weights is not None:  # the encoder stays as it is
            state_dict = {name: parameter.detach() for name, parameter in trained(cast("nn.Module", self.model))}
        super()._save(output_dir, state_dict)

    def _get_train_sampler(self, *_: Any, **__: Any) -> Sampler[int]:
        return SequentialSampler(cast("TrainingSet", self.train_dataset))  # which has an order of its own

    def _issue_warnings_after_load(self, load_result: Any) -> None:
        """Say nothing about the weights of the encoder, which are not in the checkpoints of an adapter."""

    def training_step(self, model: nn.Module, inputs: dict[str, Any], *_: Any, **__: Any) -> Tensor:
        """Compute the mean loss of a step, part by part."""
        model.train()
        inputs = self._prepare_inputs(inputs)
        losses = []
        for part in inputs["parts"]:
            with self.compute_loss_context_manager():
                loss = model(**part)["loss"] / inputs["total"]
            self.accelerator.backward(loss)
            losses.append(loss.detach())
        return torch.stack(losses).sum()

    def evaluate(self, *_: Any, **__: Any) -> dict[str, float]:
        """Link the dev set."""
        metrics = {f"eval_{name}": value for name, value in self.score().items()}
        self.log(metrics)
        self.control = self.callback_handler.on_evaluate(self.args, self.state, self.control, metrics)
        return metrics
