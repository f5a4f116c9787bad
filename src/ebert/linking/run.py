"""A training run on disk: `run.json`, the best linker, the learning curve, checkpoints meanwhile."""

import math
import platform
import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
import transformers

from ebert import __version__, files
from ebert.bert.loading import quiet
from ebert.errors import EbertError
from ebert.linking.document import Document, Generator
from ebert.linking.evaluating import percent
from ebert.linking.examples import GOLD, TrainingSet, examples
from ebert.linking.folder import MODEL
from ebert.linking.generator import GeneratorOptions, TableGenerator
from ebert.linking.linker import Linker
from ebert.linking.options import LinkerOptions, TrainingOptions
from ebert.linking.resolve import Resolver
from ebert.linking.training import Say, fine_tune
from ebert.linking.tuning import tune
from ebert.model import EBert
from ebert.model.encoder import fingerprint

RUN, METRICS, CHECKPOINTS, PLOT = "run.json", "metrics.json", "checkpoints", "convergence.svg"
FORMAT = 1
SAME = ("linker", "options", "generator", "data", "model")  # what a run must have in common with one it goes on with


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

    The model's encoder is trained. `data` says where the documents come from (file names and hashes), so that a run is
    only gone on with on the same ones. The best evaluation on `dev` is kept, by strong-match micro F1 in one round.
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
        "generator": asdict(linker.generator.options) if isinstance(linker.generator, TableGenerator) else "given",
        "model": describe(model),
        "data": {**(data or {}), "documents": len(documents), "dev documents": len(dev)},
    }
    if (done := _begin(out, info)) is not None:
        say(f"{out} is complete already")
        return done
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
    info |= {"counts": left_out, "machine": _machine()}
    files.write_json(out / RUN, {**info, "complete": False})
    start = time.monotonic()
    with quiet():
        curve = fine_tune(
            linker, TrainingSet(linker, labelled, nulls=options.nulls, seed=options.seed), dev, options,
            score=lambda trained: _score(trained, dev, shift=options.tune), checkpoints=out / CHECKPOINTS,
            best=out / MODEL, say=say, device=device,
        )  # fmt: skip
    best = max(curve, key=lambda point: (point["dev"]["f1"], -point["step"]))
    metrics = {"best epoch": best["epoch"], "dev": best["dev"], "dev documents": len(dev), "epochs": curve}
    files.write_json(out / METRICS, _finite(metrics))
    try:
        draw({linker_options.variant: curve}, out / PLOT)
    except EbertError as error:
        say(f"no plot of the convergence: {error}")
    info["seconds"] = round(time.monotonic() - start, 1)  # of this session, where it was gone on with
    files.write_json(out / RUN, {**info, "complete": True})
    shutil.rmtree(out / CHECKPOINTS, ignore_errors=True)
    return metrics


def _score(linker: Linker, documents: Sequence[Document], *, shift: bool) -> dict[str, float]:
    """Link the dev set without refinement, which costs a third and ranks epochs as well."""
    tuned = tune(linker, documents, same=Resolver(linker.vectors).same, shift=shift)
    linker.null_shift = tuned.shift
    return {**percent(tuned.counts), "shift": tuned.shift}


def describe(model: EBert) -> dict[str, Any]:
    """Say which encoder, store and alignment a model has."""
    if model.vectors is None or model.alignment is None:
        raise EbertError("a linker needs entity vectors: give a model made by 'ebert align' instead of an encoder")
    store = model.vectors
    return {
        "encoder": {"name": model.name, "fingerprint": fingerprint(model.encoder, model.tokenizer)},
        "vectors": {
            "name": store.path.name,
            "fingerprint": store.fingerprint,
            "dimension": store.dimension,
            "entities": len(store),
        },
        "alignment": asdict(model.alignment.options),
    }


def _begin(out: Path, info: dict[str, Any]) -> dict[str, Any] | None:
    """See that the folder is new or has the same run in it; give the metrics of one that is complete."""
    if not (out / RUN).is_file():
        files.refuse_existing(out, overwrite=False)
        out.mkdir(parents=True, exist_ok=True)
        return None
    old = files.read_json(out / RUN, "a run")
    if different := [key for key in SAME if old.get(key) != info[key]]:
        raise EbertError(
            f"{out} holds a run with other {', '.join(different)}; choose another --out, or remove the folder"
        )
    return files.read_json(out / METRICS, "a complete run") if old.get("complete") else None


def _finite(value: Any) -> Any:
    """Put null where a number is not one: JSON has no other word for it."""
    if isinstance(value, dict):
        return {key: _finite(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_finite(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _machine() -> dict[str, Any]:
    return {
        "processor": platform.machine(),
        "threads": torch.get_num_threads(),
        "torch": torch.__version__,
        "transformers": transformers.__version__,
    }


def draw(curves: Mapping[str, Sequence[dict[str, Any]]], path: Path) -> None:
    """Draw how the dev F1 grows in training, a line for each run: the paper's convergence plot."""
    from ebert.report.plots import COLOURS, drawing

    with drawing("convergence", width=6.0) as made:
        axes = made.panels(1)[0]
        for number, (name, curve) in enumerate(curves.items()):
            points = [(point["epoch"], point["dev"]["f1"]) for point in curve]
            axes.plot(*zip(*points, strict=True), marker=".", color=COLOURS[number % len(COLOURS)], label=name)
        axes.set_xlabel("epoch")
        axes.set_ylabel("strong-match micro F1 (dev)")
        made.legend(axes.get_legend_handles_labels()[0])
    with files.replacing(path, "w") as file:
        file.write(made.plot("convergence", "Convergence", "").alone)
