"""Templates that stand for a piece of running text. All others are boxes, notes and navigation, and are dropped."""

from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple


class Keep(NamedTuple):
    """Keep some of the arguments with all that they hold, links too."""

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
def find(name: str) -> Text | None:
    """Give what a template stands for, by its name as written in a page; None if it is not part of the text."""
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


def _circa(values: list[str]) -> str:
    return f"c. {' – '.join(filter(None, values))}".rstrip()


def _last(values: list[str]) -> str:
    return values[-1] if values else ""


_RANGES = frozenset(("to", "-", "–", "and", "or", "by", "x", "×", "+/-", "±", "to(-)", "and(-)"))
_MONTH_NAMES = "January February March April May June July August September October November December"
_MONTHS = {str(number): name for number, name in enumerate(_MONTH_NAMES.split(), start=1)}
_ALL = range(1, 1 << 30)
_QUOTE = Keep(names=frozenset(("text", "quote", "content")), before="\n", after="\n")

# Names with a bar between them, all that stand for the same.
_TABLE: dict[str, Text] = {
    "nowrap|nobr|nobreak|small|smaller|big|bigger|large|larger|abbr|tooltip|center|centre|resize|smallcaps|sc"
    "|sup|sub|var|em|strong|strikethrough|underline|italics|nobold|noitalic|noitalics|angbr|angle bracket|bracket"
    "|unicode|polytonic|chem2|keypress|key press|mono|code|kbd|samp|mvar|visible anchor|vanchor|dfn"
    "|not a typo|sic|as written|typo|proper name|plainlist|flatlist|val|nombre|num|gaps|flag|flagcountry|flagu"
    "|interlanguage link|ill|interlanguage link multi|illm|link-en|仮リンク|読み仮名|нп3|нп5"
    "|lc:|uc:|lcfirst:|ucfirst:|formatnum:": Keep(),
    "lang|langue|lang2|rtl-lang|ltr-lang|script|sort|font color|fontcolor|color": Keep(range(2, 3)),
    "quote|blockquote|cquote|quotation|centered pull quote|rquote|poemquote|poem quote|zitat|cita|citazione": _QUOTE,
    "transl|transliteration|translit|tlit": Make(_last),
    "convert|cvt|unité|unit": Make(_measure),
    "frac|sfrac|fraction": Make(_fraction),
    "circa|c.|ca.": Make(_circa),
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
