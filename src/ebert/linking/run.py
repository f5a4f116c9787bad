"""A training run on disk: `run.json`, the best linker, the learning curve, checkpoints meanwhile."""

import hashlib
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ebert import __version__
from ebert._runs import machine
from ebert.bert.loading import quiet
from ebert.errors import EbertError
from ebert.finetuning.folder import CHECKPOINTS, alone, announce, begin, describe, finish
from ebert.finetuning.trainer import Say, best_of
from ebert.linking.document import Document, Generator
from ebert.linking.evaluating import percent
from ebert.linking.examples import GOLD, Example, TrainingSet, examples
from ebert.linking.folder import MODEL
from ebert.linking.generator import GeneratorOptions
from ebert.linking.linker import Linker
from ebert.linking.options import LinkerOptions, TrainingOptions
from ebert.linking.resolve import Resolver
from ebert.linking.training import fine_tune
from ebert.linking.tuning import tune
from ebert.model import EBert
from ebert.vectors import Vectors

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
