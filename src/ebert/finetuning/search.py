"""A grid of configurations, and what one may expect of a search of a given size (appendix of the paper).

Dodge et al. (2019), Show Your Work: of N configurations with scores v(1) <= ... <= v(N), the best of n that are drawn
at random (with replacement) has the expected score sum of v(i) * ((i/N)^n - ((i-1)/N)^n).
"""

import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ebert import __version__
from ebert._io import files
from ebert.errors import EbertError
from ebert.finetuning.trainer import Say

SEARCH, GRID, CURVE = "search.json", "grid.json", "curve.svg"

Configuration = Mapping[str, float]


def expected_maximum(values: Sequence[float]) -> list[float]:
    """Give the expected best score of 1, 2, ... as many drawn configurations as there are."""
    ordered, count = sorted(values), len(values)
    return [
        sum(value * ((i / count) ** n - ((i - 1) / count) ** n) for i, value in enumerate(ordered, 1))
        for n in range(1, count + 1)
    ]


def grid(**values: Iterable[float]) -> list[dict[str, float]]:
    """Give all combinations of two or more lists of values, each value once."""
    found: list[dict[str, float]] = [{}]
    for name, some in values.items():
        own = list(dict.fromkeys(some))
        if not own:
            raise EbertError(f"a search needs at least one value for {name.replace('_', ' ')}")
        found = [{**before, name: value} for before in found for value in own]
    return found


def search(
    configurations: Sequence[Configuration],
    train: Callable[[Configuration, Path], Mapping[str, Any]],
    out: Path,
    *,
    info: Mapping[str, Any],
    model: str,
    keep_all: bool = False,
    say: Say,
) -> dict[str, Any]:
    """Train every configuration into a folder of its own under `out`, and say which is best on the dev set.

    `train` gives the metrics of a run; one that is complete is not trained again. Only the best model so far (the
    folder `model` of its run) is kept, unless `keep_all`. `info` goes into `search.json`.
    """
    names = ["-".join(f"{value:g}" for value in one.values()) for one in configurations]
    _see_nothing_is_lost(out, names)
    found: list[dict[str, Any]] = []
    for number, (name, one) in enumerate(zip(names, configurations, strict=True), 1):
        named = {key.replace("_", " "): value for key, value in one.items()}
        say(f"configuration {number} of {len(configurations)}: {', '.join(f'{k} {v:g}' for k, v in named.items())}")
        metrics = train(one, out / name)
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


def _see_nothing_is_lost(out: Path, names: Sequence[str]) -> None:
    """See that a grid holds all of the one before in the same folder, whose worse models are gone."""
    before = files.read_json(out / GRID, "a search")["grid"] if (out / GRID).is_file() else []
    if missing := [name for name in before if name not in names]:
        raise EbertError(
            f"{out} holds a search of a grid with {', '.join(missing)}, which this one lacks; a grid may grow: give "
            "all its values, or choose another --out"
        )
