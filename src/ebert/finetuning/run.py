"""The folder of a training run, and a search over a grid of configurations.

`run.json` says what is trained on what, `metrics.json` how well; the best model is kept, and checkpoints until the run
is complete. A search has the folder of a run for each configuration, and says what to expect of a search of some size
(appendix of the paper).
"""

import math
import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

from ebert import __version__
from ebert._io import files
from ebert._runs import LOCK, alone_in
from ebert.errors import EbertError
from ebert.finetuning.options import FinetuningOptions, Say
from ebert.model.encoder import fingerprint

if TYPE_CHECKING:
    from ebert.model.ebert import EBert

RUN, METRICS, CHECKPOINTS = "run.json", "metrics.json", "checkpoints"
SEARCH, GRID, CURVE = "search.json", "grid.json", "curve.svg"

Chosen = TypeVar("Chosen", bound=FinetuningOptions)


def leads() -> bool:
    """Return whether this is the process that writes and prints, of those that a launcher started for one training."""
    return os.environ.get("RANK", "0") == "0"


def need_accelerate(extra: str) -> None:
    """Raise an error if the Trainer of transformers lacks what it needs; `extra` is the one that has it."""
    if find_spec("accelerate") is None:
        raise EbertError(f"training needs accelerate: pip install 'ebert[{extra}]'")


@contextmanager
def alone(out: Path) -> Iterator[None]:
    """Make the folder of a run, or take the one that is there, for this training alone.

    One that was made for a training that did not even begin is removed again.
    """
    if not leads():  # the others of the same training
        yield
        return
    new = not out.exists()
    try:
        with alone_in(out, marker=RUN):
            yield
    except BaseException:
        if new and out.is_dir() and [file.name for file in out.iterdir()] == [LOCK]:
            shutil.rmtree(out, ignore_errors=True)
        raise


def begin(out: Path, info: Mapping[str, Any], same: Sequence[str]) -> dict[str, Any] | None:
    """Return the metrics of a complete run, or None if there is something to train.

    Raise `EbertError` if the folder holds another run; `same` are the parts of `run.json` by which they are compared.
    """
    if not (out / RUN).is_file():
        return None
    old = files.read_json(out / RUN, "a run")
    if old.get("format") != info.get("format"):
        raise EbertError(
            f"{out} contains a run of another version of ebert (format {old.get('format')}, not "
            f"{info.get('format')}), "
            "which can be used if it is complete but not continued; choose another --out, or remove the folder"
        )
    if different := [key for key in same if old.get(key) != info[key]]:
        raise EbertError(
            f"{out} contains a run with other {', '.join(different)}; choose another --out, or remove the folder"
        )
    if not old.get("complete"):
        return None
    shutil.rmtree(out / CHECKPOINTS, ignore_errors=True)  # a kill may have come before that
    return files.read_json(out / METRICS, "a complete run")


def announce(out: Path, info: Mapping[str, Any]) -> None:
    """Write into the folder what is being trained there."""
    if leads():
        files.write_json(out / RUN, {**info, "complete": False})


def finish(out: Path, info: Mapping[str, Any], metrics: Mapping[str, Any]) -> None:
    """Write the metrics, mark the run as complete, and remove its checkpoints."""
    if leads():
        files.write_json(out / METRICS, _finite(dict(metrics)))
        files.write_json(out / RUN, {**info, "complete": True})
        shutil.rmtree(out / CHECKPOINTS, ignore_errors=True)


def describe(model: "EBert") -> dict[str, Any]:
    """Return which encoder, store and alignment a model has."""
    facts: dict[str, Any] = {
        "encoder": {"name": model.name, "fingerprint": fingerprint(model.encoder, model.tokenizer)}
    }
    if model.vectors is not None and model.alignment is not None:
        store = model.vectors
        facts["vectors"] = {
            "name": store.path.name,
            "fingerprint": store.fingerprint,
            "dimension": store.dimension,
            "entities": len(store),
        }
        facts["alignment"] = asdict(model.alignment.options) | model.alignment.learning()
    return facts


def _finite(value: Any) -> Any:
    """Return a JSON value with null in the place of every number that is none."""
    if isinstance(value, dict):
        return {key: _finite(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_finite(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


# Search


def search(
    options: Chosen,
    grid: Mapping[str, Sequence[float]],
    train: Callable[[Chosen, Path], Mapping[str, Any]],
    out: Path,
    *,
    info: Mapping[str, Any],
    model: str,
    keep_all: bool = False,
    say: Say,
) -> dict[str, Any]:
    """Train every combination of a grid of options into a folder of its own under `out`; return what was found.

    `train` returns the metrics of a run; one that is complete is not trained again. Only the best model so far (the
    folder `model` of its run) is kept, unless `keep_all`. `info` goes into `search.json`.
    """
    values = [list(dict.fromkeys(some)) for some in grid.values()]
    for name, some in zip(grid, values, strict=True):
        if not some:
            raise EbertError(f"a search needs at least one value for {name.replace('_', ' ')}")
    combinations = [dict(zip(grid, some, strict=True)) for some in product(*values)]
    chosen = [
        replace(options, **cast("Any", one)) for one in combinations
    ]  # a bad value is an error before the first training
    names = ["-".join(f"{value:g}" for value in one.values()) for one in combinations]
    _refuse_smaller_grid(out, names)
    found: list[dict[str, Any]] = []
    for number, (name, one) in enumerate(zip(names, combinations, strict=True), 1):
        named = {key.replace("_", " "): value for key, value in one.items()}
        say(f"configuration {number} of {len(names)}: {', '.join(f'{k} {v:g}' for k, v in named.items())}")
        metrics = train(chosen[number - 1], out / name)
        files.write_json(out / GRID, {"grid": names})
        found.append({"run": name, **named, "best epoch": metrics["best epoch"], "dev": metrics["dev"]})
        best = max(found, key=lambda result: result["dev"]["f1"])  # the first of equals
        if not keep_all:
            for other in found:
                if other is not best:
                    shutil.rmtree(out / other["run"] / model, ignore_errors=True)
    result = {
        "format": 1,
        "ebert": __version__,
        **info,
        "configurations": found,
        "best": best["run"],
        "expected maximum": expected_maximum([one["dev"]["f1"] for one in found]),
    }
    files.write_json(out / SEARCH, result)
    return result


def expected_maximum(values: Sequence[float]) -> list[float]:
    """Return the expected best score of 1, 2, ... as many drawn configurations as there are.

    Dodge et al. (2019), Show Your Work: of N configurations with scores v(1) <= ... <= v(N), the best of n that are
    drawn at random (with replacement) has the expected score sum of v(i) * ((i/N)^n - ((i-1)/N)^n).
    """
    ordered, count = sorted(values), len(values)
    return [
        sum(value * ((i / count) ** n - ((i - 1) / count) ** n) for i, value in enumerate(ordered, 1))
        for n in range(1, count + 1)
    ]


def _refuse_smaller_grid(out: Path, names: Sequence[str]) -> None:
    """Raise an error if a grid lacks something of the one before in the same folder, whose worse models are gone."""
    before = files.read_json(out / GRID, "a search")["grid"] if (out / GRID).is_file() else []
    if missing := [name for name in before if name not in names]:
        raise EbertError(
            f"{out} contains a search of a grid with {', '.join(missing)}, which this one lacks; you can only add "
            f"values to a grid: give all of them, or choose another --out"
        )
