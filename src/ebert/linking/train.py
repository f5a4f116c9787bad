"""A training run on disk: `run.json`, the best linker, the learning curve, checkpoints meanwhile.

Fine-tuning a linker: steps of many spans that are computed a few at a time, and the dev set's strong-match F1.


How ready a linker is to link: what is added to the null entity's score, chosen on the dev set.

A linker that is trained to be right span by span links where that is likelier than not. F1 asks for more links than
that when many are doubtful: the best threshold is about half the F1 that can be reached. The shift is found by decoding
the same scores of the dev set again and again, so that the encoder runs once.



The grid of learning rates and batch sizes (appendix of the paper).
"""

import hashlib
import json
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from importlib.util import find_spec
from math import exp
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from torch import Tensor, nn
from torch.utils.data import Sampler

from ebert import __version__
from ebert._runs import machine
from ebert.bert.load import quiet
from ebert.errors import EbertError
from ebert.finetuning import run as searching
from ebert.finetuning.options import RATES
from ebert.finetuning.run import CHECKPOINTS, alone, announce, begin, describe, finish
from ebert.finetuning.trainer import Keeper, Say, arguments, best_of, run
from ebert.linking.candidates.table import GeneratorOptions
from ebert.linking.document import Document, Generator
from ebert.linking.evaluate import Counts, Same, percent, score
from ebert.linking.examples import GOLD, Example, Item, TrainingSet, examples
from ebert.linking.folder import MODEL
from ebert.linking.linker import WINDOW, Linker
from ebert.linking.options import BATCHES, LinkerOptions, TrainingOptions
from ebert.linking.refine import Judged, State, choose
from ebert.linking.resolve import Resolver
from ebert.model.batching import budget_on, plan, windows
from ebert.model.ebert import EBert
from ebert.text.passage import Mention
from ebert.vectors.store import Vectors

FORMAT = 2
# What a run must have in common with one it goes on with.
SAME = ("linker", "options", "generator", "data", "model", "mentions")


def train(
    documents: Sequence[Document],
    dev: Sequence[Document],
    model: EBert,
    out: Path,
    *,
    linker_options: LinkerOptions,
    options: TrainingOptions,
    generator: Generator | GeneratorOptions | None = None,
    data: Mapping[str, Any] | None = None,
    device: str | None = None,
    command: str = "",
    say: Say,
) -> dict[str, Any]:
    """Train a linker into the folder `out`, or go on with it, and give its metrics.

    The model's encoder is trained. `data` says where the documents and the dev documents come from (file names and
    hashes), so that a run is only gone on with on the same ones. The best evaluation on `dev` is kept, by strong-match
    micro F1 in one round.
    """
    if find_spec("accelerate") is None:
        raise EbertError(
            "training needs accelerate, which the Trainer of transformers uses: pip install 'ebert[linking]'"
        )
    linker = Linker.fresh(model, options=linker_options, generator=generator, seed=options.seed)
    info: dict[str, Any] = {
        "kind": "linking",
        "format": FORMAT,
        "ebert": __version__,
        "command": command,
        "linker": asdict(linker_options),
        "options": asdict(options),
        "generator": _described(linker.generator),
        "model": describe(model),
        "mentions": _mentions(linker.vectors),
        "data": {**(data or {}), "documents": len(documents), "dev documents": len(dev)},
    }
    with alone(out):
        if (done := begin(out, info, SAME)) is not None:
            say(f"{out} is complete already")
            return done
        labelled, counts = _labelled(linker, documents, dev, say)
        info |= {"counts": counts, "machine": machine()}
        announce(out, info)
        start = time.monotonic()
        with quiet():
            curve = fine_tune(
                linker, TrainingSet(linker, labelled, nulls=options.nulls, seed=options.seed), dev, options,
                score=lambda trained: _score(trained, dev, shift=options.tune), checkpoints=out / CHECKPOINTS,
                best=out / MODEL, say=say, device=device,
            )  # fmt: skip
        best = best_of(curve)
        metrics = {"best epoch": best["epoch"], "dev": best["dev"], "dev documents": len(dev), "epochs": curve}
        info["seconds"] = round(time.monotonic() - start, 1)  # of this session, where it was gone on with
        finish(out, info, metrics)
        return metrics


def _described(generator: Generator) -> Any:
    """Say how spans are found, by generators that can say it."""
    found = getattr(generator, "describe", None)
    return "given" if found is None else found()


def _mentions(vectors: Vectors) -> str | None:
    """Give a hash of what a store says about its mention table, if that is not the one it was made with."""
    made = vectors.info.made.get("mentions")
    return None if made is None else hashlib.sha256(json.dumps(made, sort_keys=True).encode()).hexdigest()


def _labelled(
    linker: Linker, documents: Sequence[Document], dev: Sequence[Document], say: Say
) -> tuple[list[Example], dict[str, int]]:
    """Label the spans of the documents, say what became of all of them, and see that something can be learned."""
    labelled, counts = examples(linker, documents)
    left_out = {**counts, **linker.dropped}
    for what, count in left_out.items():
        say(f"{count:,} {what}")
    if not counts[GOLD]:
        raise EbertError(
            f"none of the {len(documents):,} documents has a gold mention that the candidate generator finds; "
            "is this the right store, and are the titles those of its Wikipedia?"
        )
    if not any(document.gold for document in dev):
        raise EbertError("the dev documents have no gold mentions, so that no epoch can be called the best")
    return labelled, left_out


def _score(linker: Linker, documents: Sequence[Document], *, shift: bool) -> dict[str, float]:
    """Link the dev set without refinement, which costs a third and ranks epochs as well."""
    tuned = tune(linker, documents, same=Resolver(linker.vectors).same, shift=shift)
    linker.null_shift = tuned.shift
    return {**percent(tuned.counts), "shift": tuned.shift}


TOKENS = {"cpu": 2048}  # computed at a time, activations and all
MORE_TOKENS = 16384

Score = Callable[[Linker], dict[str, float]]  # of the dev set, in percent, and the shift they were reached with


def fine_tune(
    linker: Linker,
    train: TrainingSet,
    dev: Sequence[Document],
    options: TrainingOptions,
    *,
    score: Score,
    checkpoints: Path,
    best: Path,
    say: Say,
    device: str | None = None,
) -> list[dict[str, Any]]:
    """Train, going on from the last checkpoint if there is one, and give the learning curve.

    The best linker by `score` is in the folder `best` afterwards.
    """
    batch = options.batch
    if linker.options.strategy == "packed":  # as many chunks as have about that many spans
        batch = max(1, round(options.batch * len(train) / train.spans))
    steps = math.ceil(len(train) / batch)
    unit = "chunks" if linker.options.strategy == "packed" else "spans"
    say(f"{train.spans:,} spans an epoch in {steps:,} steps of {batch:,} {unit}")
    sampler = EpochSampler(len(train), seed=options.seed)

    def begin(epoch: int) -> None:
        train.epoch = sampler.epoch = epoch

    keeper = Keeper(begin, lambda: linker.save_pretrained(best), say, scores=("precision", "recall", "f1", "shift"))
    evaluate = math.ceil(steps / options.evaluations)
    trainer = _Trainer(
        model=linker.module,
        args=arguments(
            options,
            checkpoints,
            batch=batch,
            steps=steps,
            evaluate=evaluate,
            device=device,
            dataloader_pin_memory=False,
        ),
        train_dataset=train,
        eval_dataset=list(dev),  # what is done with it is ours
        data_collator=_Collator(linker, options.tokens),
        callbacks=[keeper],
    )
    trainer.sampler, trainer.score, trainer.linker = sampler, score, linker
    return run(trainer, keeper, checkpoints)


class EpochSampler(Sampler[int]):
    """Gives all indices in an order that depends on the seed and the epoch only."""

    def __init__(self, size: int, *, seed: int) -> None:
        self._size, self._seed, self.epoch = size, seed, 0

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[int]:
        return iter(np.random.default_rng([self._seed, self.epoch, 1]).permutation(self._size).tolist())


class _Collator:
    """Makes one step: parts that are computed one after the other, and the weight of all their spans."""

    def __init__(self, linker: Linker, tokens: int | None) -> None:
        self._linker, self._tokens = linker, tokens

    def __call__(self, chosen: Sequence[list[Item]]) -> dict[str, Any]:
        items = [item for one in chosen for item in one]
        kind = self._linker.module.device.type
        budget = self._tokens or max(TOKENS.get(kind, MORE_TOKENS), budget_on(kind))
        parts: list[dict[str, Tensor]] = []
        for group in plan([len(laid) for laid, _, _ in items], budget):
            part = [items[index] for index in group]
            labels = [label for _, own, _ in part for label in own]
            weights = [weight for _, _, own in part for weight in own]
            parts.append(self._linker.batcher([laid for laid, _, _ in part], labels, weights))
        return {"parts": parts, "total": sum(part["weights"].sum() for part in parts)}


class _Trainer(transformers.Trainer):
    """The Trainer, with our order of the spans, our steps and our evaluation."""

    sampler: EpochSampler
    score: Score
    linker: Linker

    def _get_train_sampler(self, *_: Any, **__: Any) -> EpochSampler:
        return self.sampler

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
        metrics = {f"eval_{name}": value for name, value in self.score(self.linker).items()}
        self.log(metrics)
        self.control = self.callback_handler.on_evaluate(self.args, self.state, self.control, metrics)
        return metrics


SHIFTS = tuple(step / 4 for step in range(-16, 17))  # from -4 to 4: a factor of 55 on the odds


@dataclass(frozen=True, slots=True)
class Tuned:
    """The shift with the best micro F1, and what it gives."""

    shift: float
    counts: Counts


def tune(linker: Linker, documents: Sequence[Document], *, same: Same = str, shift: bool = True) -> Tuned:
    """Link documents in one round and find the shift that gives the best micro F1; without `shift` it stays zero."""
    totals = {number: Counts() for number in (SHIFTS if shift else (0.0,))}
    for window in windows(documents, WINDOW):
        states = [State(chunk) for chunk in linker.chunks(window)]
        verdicts = linker.judge(states, shift=0.0)
        for number in totals:
            links: list[list[Mention]] = [[] for _ in window]
            for state, judged in zip(states, verdicts, strict=True):
                links[state.chunk.document] += _links(judged, number)
            for document, own in zip(window, links, strict=True):
                totals[number] += score(document, sorted(own, key=lambda link: link.start), same=same).counts
    best = max(totals, key=lambda number: (totals[number].f1, -abs(number)))
    return Tuned(best, totals[best])


def shifted(judged: Judged, shift: float) -> Judged:
    """Give a verdict with another score of the null entity."""
    null, *others = judged.scores
    odds = exp(shift)
    total = 1 + (odds - 1) * judged.probabilities[0]
    first, *rest = judged.probabilities
    return Judged(judged.placed, (null + shift, *others), (first * odds / total, *(one / total for one in rest)))


def _links(judged: Sequence[Judged], shift: float) -> list[Mention]:
    linked = [one for one in (shifted(verdict, shift) for verdict in judged) if one.linked]
    chosen = choose(linked, len(linked))
    return [Mention(one.placed.span.start, one.placed.span.end, one.entity) for one in chosen]


def search(
    documents: Sequence[Document],
    dev: Sequence[Document],
    load: Callable[[], EBert],
    out: Path,
    *,
    linker_options: LinkerOptions,
    options: TrainingOptions,
    rates: Sequence[float] = RATES,
    batches: Sequence[int] = BATCHES,
    generator: Generator | GeneratorOptions | None = None,
    data: Mapping[str, Any] | None = None,
    device: str | None = None,
    keep_all: bool = False,
    command: str = "",
    say: Say,
) -> dict[str, Any]:
    """Train a linker with every learning rate and batch size; see `ebert.finetuning.run`.

    `load` gives the model afresh each time, because training changes its encoder.
    """

    def chosen(one: searching.Configuration) -> TrainingOptions:
        return replace(options, learning_rate=one["learning_rate"], batch=int(one["batch"]))

    def run(one: searching.Configuration, folder: Path) -> dict[str, Any]:
        return train(
            documents, dev, load(), folder, linker_options=linker_options, generator=generator, data=data,
            options=chosen(one), device=device, command=command, say=say,
        )  # fmt: skip

    grid = searching.grid(learning_rate=rates, batch=batches)
    for one in grid:
        chosen(one)  # a bad value is told before the first hour of training, not after it
    return searching.search(
        grid, run, out, model=MODEL, keep_all=keep_all, say=say,
        info={"kind": "linking search", "command": command, "linker": asdict(linker_options)},
    )  # fmt: skip
