"""Templates that stand for a piece of running text. All others are boxes, notes and navigation, and are dropped."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple


class Keep(NamedTuple):
    """Keep some of the arguments with all their contents, including links."""

    numbers: range = range(1, 2)
    between: str = ""  # what to put between two of them
    names: frozenset[str] = frozenset()  # of arguments that are kept as well
    before: str = ""
    after: str = ""


class Make(NamedTuple):
    """Make a text of the arguments that have no name."""

    text: Callable[[list[str]], str]


Text = Keep | Make | str  # a string is the text itself


@lru_cache(maxsize=4096)
def find_template(name: str) -> Text | None:
    """Return what a template stands for, by its name as written in a page; None if it is not part of the text."""
    key = " ".join(name.replace("_", " ").split()).lower()
    found = _TEXTS.get(key)
    return Keep() if found is None and key.startswith("lang-") else found


def _measure(values: list[str]) -> str:
    """5|km|mi is '5 km', 5|to|10|km is '5 to 10 km', 5|ft|3|in is '5 ft 3 in'."""
    long = len(values) > 3 and (values[1] in _RANGES or values[2].replace(".", "").isdecimal())
    return " ".join(values[: 4 if long else 2])


def _date(values: list[str]) -> str:
    """1950|1|2 is '2 January 1950'; the day may be missing, the month too. 14|juillet|1789 is in order."""
    if values and len(values[0]) < 3:
        return " ".join(values[:3])
    year, month, day, *_ = [*values, "", "", ""]
    month = _MONTHS.get(month.lstrip("0"), month)
    return " ".join(filter(None, (day.lstrip("0"), month, year)))


def _fraction(values: list[str]) -> str:
    """2 is '1/2', 3|4 is '3/4', 1|3|4 is '1 3/4'."""
    whole, over = values[:-2], values[-2:]
    return " ".join([*whole, "/".join(over if len(over) == 2 else ["1", *over])]) if values else ""


def _named(values: list[str]) -> str:
    """Tokyo|東京|Tōkyō is 'Tokyo (東京, Tōkyō)'."""
    inside = ", ".join(filter(None, values[1:3]))
    return f"{values[0]} ({inside})".lstrip() if inside else "".join(values[:1])


_RANGES = frozenset(("to", "-", "–", "and", "or", "by", "x", "×", "+/-", "±", "to(-)", "and(-)"))
_MONTH_NAMES = "January February March April May June July August September October November December"
_MONTHS = {str(number): name for number, name in enumerate(_MONTH_NAMES.split(), start=1)}
_ALL = range(1, 1 << 30)
_QUOTE = Keep(names=frozenset(("text", "quote", "content")), before="\n", after="\n")

# Names that stand for the same, with a bar between them.
_TABLE: dict[str, Text] = {
    "nowrap|nobr|nobreak|small|smaller|big|bigger|large|larger|abbr|tooltip|center|centre|resize|smallcaps|sc"
    "|sup|sub|var|em|strong|strikethrough|underline|italics|nobold|noitalic|noitalics|angbr|angle bracket|bracket"
    "|unicode|polytonic|chem2|keypress|key press|mono|code|kbd|samp|mvar|visible anchor|vanchor|dfn"
    "|not a typo|sic|as written|typo|proper name|plainlist|flatlist|val|nombre|num|gaps|flag|flagcountry|flagu"
    "|interlanguage link|ill|interlanguage link multi|illm|link-en|仮リンク|読み仮名|нп3|нп5"
    "|lc:|uc:|lcfirst:|ucfirst:|formatnum:": Keep(),
    "lang|langue|lang2|rtl-lang|ltr-lang|script|sort|font color|fontcolor|color": Keep(range(2, 3)),
    "quote|blockquote|cquote|quotation|centered pull quote|rquote|poemquote|poem quote|zitat|cita|citazione": _QUOTE,
    "transl|transliteration|translit|tlit": Make(lambda values: "".join(values[-1:])),
    "convert|cvt|unité|unit": Make(_measure),
    "frac|sfrac|fraction": Make(_fraction),
    "circa|c.|ca.": Make(lambda values: f"c. {' – '.join(filter(None, values))}".rstrip()),
    "birth date|birth date and age|bda|death date|death date and age|start date|start date and age|end date"
    "|dts|date": Make(_date),
    "nihongo|korean": Make(_named),
    "hlist|unbulleted list|ubl|flat list|comma separated entries|cslist": Keep(_ALL, ", "),
    "sortname": Keep(range(1, 3), " "),
    "chem": Keep(_ALL),
    "as of": Keep(_ALL, " ", before="as of "),
    "us$|usd": Keep(before="US$"),
    "£|gbp": Keep(before="£"),
    "€|euro|eur": Keep(before="€"),
    "¥|jpy": Keep(before="¥"),
    "₹|inr": Keep(before="₹"),
    "'|-'": "'",
    "'s": "'s",
    '"': '"',
    "!": " ",
    "=": "=",
    "ndash|en dash|–": "–",
    "mdash|em dash|—": "—",
    "snd|spnd|spaced ndash|spaced en dash|snds": " – ",
    "spaced mdash|spaced em dash": " — ",
    "nbsp|space|spaces|thinsp|thin space|hair space|sp|break|br": " ",
    "·|middot|dot": " · ",
    "•|bull|bullet": " • ",
    "pb|paragraph break|clear": "\n",
    "times": "×",
    "minus": "−",
    "+-": "±",
    "degree|deg": "°",
    "numero": "No.",
    "et al.": "et al.",
    "aka": "a.k.a.",
}
_TEXTS: dict[str, Text] = {name: text for names, text in _TABLE.items() for name in names.split("|")}


# Marks in what is written, taken out at the end. A page that has such characters of its own loses them first.
OPEN, CLOSE = "\x01", "\x03"  # around an anchor
HEADING = "\x02"  # the first
FEW, SHORT = 16, 300  # pieces and characters that a title, a date or a measure may have; more is something else

_ASSIGNED = re.compile(r"\s*+([\w .-]{1,40}?)\s*=\s*+")


class Written:
    """The text so far in pieces, and the titles of the anchors in it. Only the end is ever changed."""

    __slots__ = ("pieces", "titles")

    def __init__(self) -> None:
        self.pieces: list[str] = []
        self.titles: list[str] = []

    def mark(self) -> tuple[int, int]:
        """Remember this place, to cut at."""
        return len(self.pieces), len(self.titles)

    def cut(self, mark: tuple[int, int]) -> None:
        """Forget what was written since."""
        del self.pieces[mark[0] :]
        del self.titles[mark[1] :]

    def anchor(self, mark: tuple[int, int], title: str, trail: str) -> None:
        """Make one anchor of what was written since, unless it is empty or crosses the end of a paragraph."""
        text = "".join(self.pieces[mark[0] :])
        if text.strip() and "\n\n" not in text:
            self.pieces[mark[0] :] = [f"{OPEN}{text.replace(chr(10), ' ')}{trail}{CLOSE}"]
            self.titles.append(title)
        else:
            self.pieces.append(trail)

    def since(self, mark: tuple[int, int]) -> str | None:
        """Return what was written since, without its anchors, if that is short."""
        if len(self.pieces) - mark[0] > FEW:
            return None
        text = "".join(self.pieces[mark[0] :])
        return text.replace(OPEN, "").replace(CLOSE, "") if len(text) <= SHORT else None


@dataclass(slots=True)
class Link:
    """A link whose target is known or, if `title` is None, still being read."""

    mark: tuple[int, int]
    title: str | None


class Template:
    """A template, or a parameter ``{{{name|value}}}``, with some arguments that are text."""

    __slots__ = ("_argument", "_count", "_kept", "_mark", "_values", "braces", "keep", "make")

    def __init__(self, mark: tuple[int, int], text: Keep | Make, braces: int) -> None:
        self.braces = braces
        self.keep = text if isinstance(text, Keep) else None
        self.make = text if isinstance(text, Make) else None
        self._mark = mark
        self._argument: tuple[int, int] | None = None  # where it begins; None: the name is still being read
        self._count = 0  # arguments without a name
        self._kept = False
        self._values: list[str] = []

    def begin(self, written: Written) -> None:
        """Begin an argument."""
        self._argument = written.mark()

    def end(self, written: Written) -> None:
        """End an argument, or the name: keep it, make something of it, or forget it."""
        if self._argument is None:
            written.cut(self._mark)
            return
        first = written.pieces[self._argument[0]]
        named = _ASSIGNED.match(first) if self.braces == 2 and "=" in first else None
        if not named:
            number = self._count = self._count + 1
        else:
            number = int(named[1]) if named[1].isdecimal() and len(named[1]) < 3 else 0
        if self.keep and (number in self.keep.numbers or (named and named[1] in self.keep.names)):
            text = first[named.end() :] if named else first
            written.pieces[self._argument[0]] = (self.keep.between if self._kept else self.keep.before) + text
            self._kept = True
            return
        if self.make and number:
            self._values.append((written.since(self._argument) or "").strip())
        written.cut(self._argument)

    def close(self, written: Written) -> None:
        """End the template."""
        self.end(written)
        if self.make:
            written.pieces.append(self.make.text(self._values))
        elif self.keep and self._kept:
            written.pieces.append(self.keep.after)
