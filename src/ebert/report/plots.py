"""How plots look: Okabe-Ito colours, marks that tell columns apart without colour, SVG that fits light and dark pages.

Text and axes are drawn in colours that stand for "the colour of the page's text"; they are put in once the SVG is made.
"""

import io
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ebert.errors import EbertError
from ebert.report.document import Plot
from ebert.report.runs import Column

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK, GRID, PAPER = "#010203", "#010204", "#010205"  # stand-ins, see `_finish`
GREY = "#999999"
# Okabe and Ito's colours for all kinds of sight, without yellow, which no white page shows.
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


def looks(columns: Sequence[Column]) -> dict[str, Look]:
    """Return every column its look, by label: plain BERT has the colour of the text, others a colour each."""
    runs = list(dict.fromkeys(column.run.name for column in columns))
    others = [column.label for column in columns if column.mode != "bert"]
    found = {}
    for column in columns:
        run = runs.index(column.run.name)
        colour = INK if column.mode == "bert" else COLOURS[others.index(column.label) % len(COLOURS)]
        found[column.label] = Look(
            colour, MARKERS.get(column.mode, "D"), LINES[run % len(LINES)], HATCHES[run % len(HATCHES)]
        )
    return found


@dataclass
class Drawing:
    """A figure being drawn; it is a plot once the block of `drawing` is over."""

    figure: "Figure"
    svg: str = ""

    def panels(self, count: int) -> list["Axes"]:
        """Make panels side by side, with one axis to the left."""
        return list(self.figure.subplots(1, count, squeeze=False, sharey=True)[0])

    def legend(self, handles: Sequence[Any], columns: int = 3) -> None:
        """Put a legend below everything."""
        self.figure.legend(handles=list(handles), loc="outside lower center", ncols=min(columns, max(1, len(handles))))

    def plot(self, key: str, title: str, caption: str) -> Plot:
        """Return the finished plot."""
        return Plot(key, title, caption, _finish(self.svg, key))


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
        made = Drawing(figure)
        yield made
        file = io.StringIO()
        figure.savefig(file, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
        made.svg = file.getvalue()


def mark(axes: "Axes", x: Any, y: Any, look_colour: str = INK) -> None:
    """Draw published figures: hollow diamonds."""
    axes.plot(x, y, "D", markerfacecolor=PAPER, markeredgecolor=look_colour, markersize=5, linestyle="none", zorder=5)


def mark_handle() -> Any:
    """Return the legend's entry for published figures."""
    from matplotlib.lines import Line2D

    return Line2D([], [], marker="D", linestyle="none", markerfacecolor=PAPER, markeredgecolor=INK, label="published")


def bar_handle(label: str, look: Look) -> Any:
    """Return the legend's entry for a column's bars."""
    from matplotlib.patches import Patch

    return Patch(facecolor=look.colour, edgecolor=PAPER, hatch=look.hatch, label=label)


def _finish(svg: str, key: str) -> str:
    """Make the SVG fit a page: its colours, its fonts, ids that no other plot has, nothing before the element."""
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"'DejaVu Sans'[^;\"]*?sans-serif", "system-ui, sans-serif", svg)
    svg = re.sub(r'\bid="', f'id="{key}-', svg)
    svg = re.sub(r'(xlink:href="#|url\(#)', rf"\g<1>{key}-", svg)
    svg = svg.replace(INK, "currentColor").replace(GRID, "var(--grid, #bbb)").replace(PAPER, "var(--paper, #fff)")
    return re.sub(r"<metadata>.*?</metadata>\s*", "", svg, flags=re.DOTALL).strip() + "\n"
