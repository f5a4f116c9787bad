"""The look of plots: Okabe-Ito colours, marks that tell columns apart without colour, SVG for light and dark pages.

Text and axes are drawn in colours that stand for "the colour of the page's text"; they are put in once the SVG is made.
"""

import io
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ebert._io import files
from ebert.errors import EbertError
from ebert.report.document import Plot

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK, GRID, PAPER = "#010203", "#010204", "#010205"  # stand-ins, see `Drawing.plot`
GREY = "#999999"
# Okabe and Ito's colours for all kinds of colour vision, without yellow, which is invisible on a white page.
COLOURS = ("#D55E00", "#0072B2", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
MARKERS = {"bert": "o", "concat": "s", "replace": "^"}
LINES = ("-", "--", ":", "-.")
HATCHES = ("", "////", "....", "xxxx")
STYLE: Any = {
    "text.parse_math": False,  # a name may hold dollars
    "svg.fonttype": "none",  # text stays text
    "font.size": 9,
    "hatch.linewidth": 0.6,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": GRID,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 10,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "grid.color": GRID,
    "grid.linewidth": 0.6,
    "xtick.color": INK,
    "ytick.color": INK,
    "legend.frameon": False,
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "savefig.facecolor": "none",
}


@dataclass(frozen=True)
class Look:
    """How a column is drawn, everywhere alike."""

    colour: str
    marker: str
    line: str
    hatch: str


@dataclass
class Drawing:
    """A figure being drawn; it is a plot once the block of `drawing` is over."""

    key: str
    figure: "Figure"
    svg: str = ""

    def panels(self, count: int) -> list["Axes"]:
        """Make panels side by side, with one axis to the left."""
        return list(self.figure.subplots(1, count, squeeze=False, sharey=True)[0])

    def legend(self, handles: Sequence[Any], columns: int = 3) -> None:
        """Put a legend below everything."""
        self.figure.legend(handles=list(handles), loc="outside lower center", ncols=min(columns, max(1, len(handles))))

    def plot(self, title: str, caption: str) -> Plot:
        """Return the finished plot: its SVG has the page's colours and fonts, and ids that no other plot has."""
        svg = self.svg[self.svg.index("<svg") :]
        svg = re.sub(r"'DejaVu Sans'[^;\"]*?sans-serif", "system-ui, sans-serif", svg)
        svg = re.sub(r'\bid="', f'id="{self.key}-', svg)
        svg = re.sub(r'(xlink:href="#|url\(#)', rf"\g<1>{self.key}-", svg)
        svg = svg.replace(INK, "currentColor").replace(GRID, "var(--grid, #bbb)").replace(PAPER, "var(--paper, #fff)")
        svg = re.sub(r"<metadata>.*?</metadata>\s*", "", svg, flags=re.DOTALL).strip() + "\n"
        return Plot(self.key, title, caption, svg)


@contextmanager
def drawing(key: str, *, width: float = 9.0, height: float = 3.5) -> Iterator[Drawing]:
    """Draw a figure of this size in inches."""
    try:
        from matplotlib import rc_context
        from matplotlib.backends.backend_svg import FigureCanvasSVG
        from matplotlib.figure import Figure
    except ImportError:
        raise EbertError("a report draws with matplotlib, which is missing; pip install 'ebert[report]'") from None
    with rc_context({**STYLE, "svg.hashsalt": key}):
        figure = Figure(figsize=(width, height), layout="constrained")
        FigureCanvasSVG(figure)
        made = Drawing(key, figure)
        yield made
        file = io.StringIO()
        figure.savefig(file, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
        made.svg = file.getvalue()


def name_rows(axes: "Axes", names: Sequence[str]) -> None:
    """Write a name at the left of every row of bars, the first one at the top."""
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)
    axes.grid(visible=False, axis="y")


def mark(axes: "Axes", x: Any, y: Any, colour: str = INK, **how: Any) -> None:
    """Draw published figures: hollow diamonds."""
    how = {"markersize": 5, **how}
    axes.plot(x, y, "D", markerfacecolor=PAPER, markeredgecolor=colour, linestyle="none", zorder=5, **how)


def mark_handle() -> Any:
    """Return the legend's entry for published figures."""
    from matplotlib.lines import Line2D

    return Line2D([], [], marker="D", linestyle="none", markerfacecolor=PAPER, markeredgecolor=INK, label="published")


Curve = tuple[Sequence[float], Sequence[float]]  # x and y


def draw_convergence(curves: Mapping[str, Sequence[Mapping[str, Any]]], path: Path, *, score: str) -> None:
    """Draw how the dev set's F1 grows in training, a line for each run (the paper's convergence plot)."""
    lines = {
        name: ([one["epoch"] for one in curve], [one["dev"]["f1"] for one in curve]) for name, curve in curves.items()
    }
    _draw_curves("convergence", lines, path, across="epoch", up=f"{score} (dev)")


def draw_expected_maximum(results: Mapping[str, Mapping[str, Any]], path: Path, *, score: str) -> None:
    """Draw the expected best score of so many configurations, a line for each search."""
    best = {name: list(result["expected maximum"]) for name, result in results.items()}
    lines = {name: (range(1, 1 + len(values)), values) for name, values in best.items()}
    _draw_curves("expected-maximum", lines, path, across="configurations tried", up=f"expected best {score} (dev)")


def _draw_curves(key: str, curves: Mapping[str, Curve], path: Path, *, across: str, up: str) -> None:
    with drawing(key, width=6.0) as made:
        axes = made.panels(1)[0]
        for number, (name, (xs, ys)) in enumerate(curves.items()):
            colour = INK if name == "bert" else COLOURS[number % len(COLOURS)]
            axes.plot(xs, ys, marker=".", color=colour, label=name)
        axes.set(xlabel=across, ylabel=up)
        made.legend(axes.get_legend_handles_labels()[0])
    with files.replacing(path, "w") as file:
        file.write(made.plot("", "").alone)
