"""The grid of learning rates and batch sizes, and what one may expect of a search of a given size (appendix).

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
from ebert.linking.document import Document, Generator
from ebert.linking.folder import MODEL
from ebert.linking.generator import GeneratorOptions
from ebert.linking.options import BATCHES, RATES, LinkerOptions, TrainingOptions
from ebert.linking.run import train
from ebert.linking.training import Say
from ebert.model import EBert

SEARCH, CURVE = "search.json", "curve.svg"


def expected_maximum(values: Sequence[float]) -> list[float]:
    """Give the expected best score of 1, 2, ... as many drawn configurations as there are."""
    ordered, count = sorted(values), len(values)
    return [
        sum(value * ((i / count) ** n - ((i - 1) / count) ** n) for i, value in enumerate(ordered, 1))
        for n in range(1, count + 1)
    ]


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
    """Train every configuration into a folder of its own under `out`, and say which is best on the dev set.

    Configurations that are complete are not trained again. Only the best linker so far is kept, unless `keep_all`.
    `load` gives the model afresh each time, because training changes its encoder.
    """
    if not rates or not batches:
        raise EbertError("a search needs at least one learning rate and one batch size")
    grid = [(rate, batch) for rate in dict.fromkeys(rates) for batch in dict.fromkeys(batches)]
    found: list[dict[str, Any]] = []
    for number, (rate, batch) in enumerate(grid, 1):
        name = f"{rate:g}-{batch}"
        say(f"configuration {number} of {len(grid)}: learning rate {rate:g}, batches of {batch} spans")
        metrics = train(
            documents, dev, load(), out / name, linker_options=linker_options,
            options=dataclasses.replace(options, learning_rate=rate, batch=batch), generator=generator, data=data,
            device=device, command=command, say=say,
        )  # fmt: skip
        found.append(
            {"run": name, "learning rate": rate, "batch": batch, "best epoch": metrics["best epoch"],
             "dev": metrics["dev"]}
        )  # fmt: skip
        best = max(found, key=lambda one: one["dev"]["f1"])  # the first of equals
        if not keep_all:
            for one in found:
                if one is not best:
                    shutil.rmtree(out / one["run"] / MODEL, ignore_errors=True)
    result = {
        "kind": "linking search",
        "format": 1,
        "ebert": __version__,
        "command": command,
        "linker": dataclasses.asdict(linker_options),
        "configurations": found,
        "best": best["run"],
        "expected maximum": expected_maximum([one["dev"]["f1"] for one in found]),
    }
    files.write_json(out / SEARCH, result)
    return result


def draw(results: Mapping[str, dict[str, Any]], path: Path) -> None:
    """Draw the expected maximum of one or several searches, each with a name."""
    from ebert.report.plots import COLOURS, drawing

    with drawing("expected-maximum", width=6.0) as made:
        axes = made.panels(1)[0]
        for number, (name, result) in enumerate(results.items()):
            expected = result["expected maximum"]
            colour = COLOURS[number % len(COLOURS)]
            axes.plot(range(1, len(expected) + 1), expected, marker=".", color=colour, label=name)
        axes.set_xlabel("configurations tried")
        axes.set_ylabel("expected best micro F1 (dev)")
        made.legend(axes.get_legend_handles_labels()[0])
    with files.replacing(path, "w") as file:
        file.write(made.plot("expected-maximum", "Expected maximum performance", "").alone)
