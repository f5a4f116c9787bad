"""A training run on disk: `run.json`, the best epoch's classifier, the learning curve, checkpoints meanwhile."""

import hashlib
import json
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ebert import __version__
from ebert._io import files
from ebert._runs import machine
from ebert.bert.loading import quiet
from ebert.finetuning.folder import CHECKPOINTS, alone, announce, begin, describe, finish
from ebert.finetuning.trainer import Say, best_of
from ebert.model import EBert
from ebert.relations.classifier import RelationClassifier
from ebert.relations.data import Sample, check_labels, fixed_subset, labels_of, split_path
from ebert.relations.folder import MODEL
from ebert.relations.inputs import Prepared
from ebert.relations.options import TrainingOptions
from ebert.relations.reading import read
from ebert.relations.resolving import ResolvingOptions
from ebert.relations.training import fine_tune

NAMES = "pid2name.json"
FORMAT = 1
SAME = ("mode", "options", "resolving", "data", "model")  # what a run must have in common with one that it goes on with


@dataclass(frozen=True, slots=True)
class Split:
    """The samples of one file."""

    path: Path
    samples: list[Sample]

    @classmethod
    def read(cls, folder: Path, name: str, most: int | None) -> "Split":
        """Read a split of a data folder, or a part of it that is always the same."""
        path = split_path(folder, name)
        samples = read(path)
        return cls(path, samples if most is None else fixed_subset(samples, most))

    def as_json(self) -> dict[str, Any]:
        """Give what `run.json` says of it."""
        return {"file": self.path.name, "sha256": files.sha256(self.path), "samples": len(self.samples)}


def train(
    data: Path,
    model: EBert,
    out: Path,
    *,
    mode: str,
    options: TrainingOptions,
    resolving: ResolvingOptions,
    ids: Mapping[int, str] | None = None,
    device: str | None = None,
    command: str = "",
    say: Say,
) -> dict[str, Any]:
    """Train a classifier into the folder `out`, or go on with it, and give its metrics."""
    parts = {name: Split.read(data, name, getattr(options, key)) for name, key in
             (("train", "samples"), ("dev", "dev_samples"))}  # fmt: skip
    labels = labels_of(parts["train"].samples, parts["train"].path.name)
    check_labels(parts["dev"].samples, labels)
    info: dict[str, Any] = {
        "kind": "relations",
        "format": FORMAT,
        "ebert": __version__,
        "command": command,
        "mode": mode,
        "options": asdict(options),
        "resolving": {**asdict(resolving), "ids": _table(ids)},
        "model": describe(model),
        "data": {name: part.as_json() for name, part in parts.items()},
        "names": _names(data, labels),
    }
    with alone(out):
        if (done := begin(out, info, SAME)) is not None:
            say(f"{out} is complete already")
            return done
        classifier = RelationClassifier.fresh(
            model, mode=mode, labels=labels, resolving=resolving, ids=ids, names=info["names"], seed=options.seed
        )
        prepared = {name: classifier.inputs.prepare(part.samples) for name, part in parts.items()}
        info["coverage"] = {
            name: classifier.inputs.resolver.coverage(part.samples).as_json() for name, part in parts.items()
        }
        info["shortened"] = {name: _shortened(part, say) for name, part in prepared.items()}
        info["machine"] = machine()
        announce(out, info)
        start = time.monotonic()
        with quiet():
            result = fine_tune(
                classifier, prepared["train"], prepared["dev"], options,
                checkpoints=out / CHECKPOINTS, best=out / MODEL, say=say, device=device,
            )  # fmt: skip
        curve = result["epochs"]
        best = best_of(curve)
        metrics = {
            "best epoch": best["epoch"],
            "dev": best["dev"],
            "dev samples": len(prepared["dev"]),
            "epochs": curve,
        }
        info |= {"padding": result["padding"], "labels": labels}
        info["seconds of the last start"] = round(time.monotonic() - start, 1)
        finish(out, info, metrics)
        return metrics


def _table(ids: Mapping[int, str] | None) -> dict[str, Any] | None:
    """Say which table of ids and titles was used."""
    if not ids:
        return None
    text = json.dumps(sorted(ids.items()), ensure_ascii=False)
    return {"entries": len(ids), "sha256": hashlib.sha256(text.encode()).hexdigest()}


def _names(data: Path, labels: list[str]) -> dict[str, str]:
    """Give what relations are called, where the data folder has FewRel's list of names."""
    if not (data / NAMES).is_file():
        return {}
    names = files.read_json(data / NAMES, "a data folder")
    return {label: names[label][0] for label in labels if isinstance(names.get(label), list) and names[label]}


def _shortened(prepared: list[Prepared], say: Say) -> int:
    cut = [one.sample.where for one in prepared if one.shortened]
    if cut:
        say(f"{len(cut):,} samples are longer than the encoder and were cut around their mentions: {cut[0]}, ...")
    return len(cut)
