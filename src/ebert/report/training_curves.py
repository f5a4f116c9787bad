"""Plots of trainings: convergence, and the expected maximum of a search."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ebert._io import files
from ebert.report.plots import COLOURS, INK, drawing


def draw_convergence(curves: Mapping[str, Sequence[Mapping[str, Any]]], path: Path, *, score: str) -> None:
    """Draw how the dev set's F1 grows in training, a line for each run (the paper's convergence plot)."""
    lines = {
        name: ([point["epoch"] for point in curve], [point["dev"]["f1"] for point in curve])
        for name, curve in curves.items()
    }
    _draw("convergence", "Convergence", lines, path, across="epoch", up=f"{score} (dev)")


def draw_expected_maximum(results: Mapping[str, Mapping[str, Any]], path: Path, *, score: str) -> None:
    """Draw the expected best score of so many configurations, a line for each search."""
    lines = {
        name: (list(range(1, 1 + len(result["expected maximum"]))), list(result["expected maximum"]))
        for name, result in results.items()
    }
    title = "Expected maximum performance"
    _draw("expected-maximum", title, lines, path, across="configurations tried", up=f"expected best {score} (dev)")


def _draw(
    key: str,
    title: str,
    lines: Mapping[str, tuple[Sequence[float], Sequence[float]]],
    path: Path,
    *,
    across: str,
    up: str,
) -> None:
    with drawing(key, width=6.0) as made:
        axes = made.panels(1)[0]
        for number, (name, (xs, ys)) in enumerate(lines.items()):
            colour = INK if name == "bert" else COLOURS[number % len(COLOURS)]
            axes.plot(xs, ys, marker=".", color=colour, label=name)
        axes.set_xlabel(across)
        axes.set_ylabel(up)
        made.legend(axes.get_legend_handles_labels()[0])
    with files.replacing(path, "w") as file:
        file.write(made.plot(key, title, "").alone)
