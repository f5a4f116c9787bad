"""The grid of learning rates and epochs, and what one may expect of a search of a given size (appendix of the paper).

Dodge et al. (2019), Show Your Work: of N configurations with scores v(1) <= ... <= v(N), the best of n that are drawn
at random (with replacement) has the expected score sum of v(i) * ((i/N)^n - ((i-1)/N)^n).
"""

import dataclasses
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ebert import __version__, files
from ebert.errors import EbertError
from ebert.model import EBert
from ebert.relations.folder import MODEL
from ebert.relations.options import TrainingOptions
from ebert.relations.resolving import ResolvingOptions
from ebert.relations.run import train
from ebert.relations.training import Say

SEARCH, CURVE = "search.json", "curve.svg"


def expected_maximum(values: Sequence[float]) -> list[float]:
    """Give the expected best score of 1, 2, ... as many drawn configurations as there are."""
    ordered, count = sorted(values), len(values)
    return [
        sum(value * ((i / count) ** n - ((i - 1) / count) ** n) for i, value in enumerate(ordered, 1))
        for n in range(1, count + 1)
    ]


def search(
    data: Path,
    load: Callable[[], EBert],
    out: Path,
    *,
    mode: str,
    options: TrainingOptions,
    rates: Sequence[float],
    epochs: Sequence[int],
    resolving: ResolvingOptions,
    ids: Mapping[int, str] | None = None,
    device: str | None = None,
    keep_all: bool = False,
    command: str = "",
    say: Say,
) -> dict[str, Any]:
    """Train every configuration into a folder of its own under `out`, and say which is best on the dev set.

    Configurations that are complete are not trained again. Only the best classifier so far is kept, unless `keep_all`.
    `load` gives the model afresh each time, because training changes its encoder.
    """
    if not rates or not epochs:
        raise EbertError("a search needs at least one learning rate and one number of epochs")
    grid = [(rate, count) for rate in dict.fromkeys(rates) for count in dict.fromkeys(epochs)]
    found: list[dict[str, Any]] = []
    for number, (rate, count) in enumerate(grid, 1):
        chosen = dataclasses.replace(options, learning_rate=rate, epochs=count)
        name = f"{rate:g}-{count}"
        say(f"configuration {number} of {len(grid)}: learning rate {rate:g}, {count} epochs")
        metrics = train(
            data, load(), out / name, mode=mode, options=chosen, resolving=resolving, ids=ids, device=device,
            command=command, say=say,
        )  # fmt: skip
        found.append(
            {"run": name, "learning rate": rate, "epochs": count, "best epoch": metrics["best epoch"],
             "dev": metrics["dev"]}
        )  # fmt: skip
        best = max(found, key=lambda one: one["dev"]["f1"])  # the first of equals
        if not keep_all:
            for one in found:
                if one is not best:
                    shutil.rmtree(out / one["run"] / MODEL, ignore_errors=True)
    result = {
        "kind": "relations search",
        "format": 1,
        "ebert": __version__,
        "command": command,
        "mode": mode,
        "configurations": found,
        "best": best["run"],
        "expected maximum": expected_maximum([one["dev"]["f1"] for one in found]),
    }
    files.write_json(out / SEARCH, result)
    return result


def draw(results: Sequence[dict[str, Any]], path: Path) -> None:
    """Draw the expected maximum of one or several searches."""
    from ebert.report.plots import COLOURS, INK, drawing

    with drawing("expected-maximum", width=6.0) as made:
        axes = made.panels(1)[0]
        for number, result in enumerate(results):
            expected = result["expected maximum"]
            colour = INK if result["mode"] == "bert" else COLOURS[number % len(COLOURS)]
            axes.plot(range(1, len(expected) + 1), expected, marker=".", color=colour, label=result["mode"])
        axes.set_xlabel("configurations tried")
        axes.set_ylabel("expected best macro F1 (dev)")
        made.legend(axes.get_legend_handles_labels()[0])
    plot = made.plot("expected-maximum", "Expected maximum performance", "")
    with files.replacing(path, "w") as file:
        file.write(plot.alone)
