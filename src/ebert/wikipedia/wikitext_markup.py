"""Parts of a page that are skipped: finding where a template, a table, a file or a tag's content ends.

A page may open thousands of things that it never closes. Looking for the end of each would take time that grows with
the square of the page. So a search without a result records the pairs that it found on the way, and no later search
looks there again.
"""

import re
from bisect import bisect_left

from ebert.wikipedia.site import unquote

# Tags whose content is not wikitext, or not text at all. What is in them opens and closes nothing outside.
RAW = (
    "nowiki|pre|ref|math|chem|ce|gallery|timeline|syntaxhighlight|source|score|imagemap|inputbox|graph|mapframe|maplink"
    "|templatedata|hiero|categorytree|dynamicpagelist|references|includeonly|style|script|templatestyles|indicator"
)
_TAG = re.compile(rf"<(?:(!--)|({RAW})\b[^<>]*+>)", re.IGNORECASE)
_INSIDE = rf"<(?i:!--|(?:{RAW})\b)"
BRACES = re.compile(rf"(\{{\{{++)|(\}}\}}++)|{_INSIDE}")
BRACKETS = re.compile(rf"(\[\[)|(\]\])|{_INSIDE}")
TABLES = re.compile(rf"\n[ \t:]*+(?:(\{{\|)|(\|\}})(?!\}}(?!\}})))|{_INSIDE}")
HTML_TABLES = re.compile(rf"<(?i:(table\b)|(/table\b[^<>]*+>)|!--|(?:{RAW})\b)")
NAME_LIMIT = 200  # characters to look for the '>' of a closing tag


class Regions:
    """Where things end in one page."""

    def __init__(self, source: str) -> None:
        self.source = source
        self._places: dict[str, list[int]] = {}
        self._paired: dict[re.Pattern[str], tuple[int, dict[int, int]]] = {}

    def raw(self, start: int) -> tuple[str, int, int]:
        """Return the name of the raw tag at `start`, where its content begins and where the tag ends, -1 if nowhere.

        The name is empty if there is no such tag.
        """
        match = _TAG.match(self.source, start)
        if not match:
            return "", start, -1
        inside = match.end()
        if match[1]:
            end = self._next("-->", inside)
            return "!--", inside, end + 3 if end >= 0 else -1
        name = match[2].lower()
        if self.source[inside - 2] == "/":
            return name, inside, inside
        end = self._next(rf"</(?i:{name})\b", inside)
        if end < 0 or (name == "ref" and self.source.find("<ref", inside, end) >= 0):
            return name, inside, -1  # a reference in a reference: the first was never closed
        close = self.source.find(">", end, end + NAME_LIMIT)
        return name, inside, close + 1 if close >= 0 else end + len(name) + 2

    def end(self, marks: re.Pattern[str], start: int, braces: int = 2) -> int:
        """Return the end of what the mark before `start` opens, or -1 if nothing closes it before the next heading."""
        until, paired = self._paired.get(marks, (0, {}))
        if start <= until:
            return paired.get(start, -1)
        until = self._next("\n==", start)
        if until < 0:
            until = len(self.source)
        paired = {}
        opened = [(start, braces)]
        position = start
        while match := marks.search(self.source, position, until):
            position = match.end()
            kind = match.lastindex
            if kind is None:
                position = max(position, self.raw(match.start())[2])
                continue
            count = position - match.start() if marks is BRACES else 2
            if kind == 1:
                opened.append((position, count))
                continue
            while count >= 2 and opened:
                where, braces = opened.pop()
                used = min(braces, count, 3)  # three are a parameter, two a template
                count -= used
                if braces - used >= 2:
                    opened.append((where, braces - used))
                else:
                    paired[where] = position - count
            if not opened:
                return position - count
        self._paired[marks] = until, paired
        return -1

    def _next(self, pattern: str, start: int) -> int:
        """Find the next closing tag or heading. The page is searched once for each kind of it."""
        places = self._places.get(pattern)
        if places is None:
            places = self._places[pattern] = [match.start() for match in re.finditer(pattern, self.source)]
        index = bisect_left(places, start)
        return places[index] if index < len(places) else -1


_QUOTES = re.compile("''++")
_CODE = re.compile(r"\s*+([a-z]{2,3}(?:-[a-z]+)*+)\s*+:", re.IGNORECASE | re.ASCII)
_HIDDEN = frozenset("HTD-")  # flags of variants that define a word and show nothing


def shown(target: str) -> str:
    """Return the text that a link without its own text shows."""
    if "://" in target:  # [[http://example.org its text]], which should have single brackets
        return target.partition(" ")[2]
    if "_" in target or "%" in target or target[:1] in (" ", ":", "#"):
        return unquote(target).replace("_", " ").lstrip(" :#")
    return target


def pipe_trick(target: str) -> str:
    """Return what ``[[target|]]`` shows: the name without its namespace and its disambiguation.

    >>> pipe_trick("Help:Mercury (planet)"), pipe_trick("Paris, Texas")
    ('Mercury', 'Paris')
    """
    name = shown(target)
    name = name[name.find(":") + 1 :].strip()
    if name[-1:] not in (")", "）"):
        name = name.replace("，", ",").partition(",")[0].rstrip()
    if name[-1:] in (")", "）"):
        bracket = max(name.rfind("("), name.rfind("（"))
        name = name[:bracket].rstrip() if bracket > 0 else name
    return name


def without_quotes(text: str) -> str:
    """Take the quotes for italics and bold out of a text."""
    apostrophe = literal_apostrophe(text)
    return _QUOTES.sub(lambda match: literal(len(match[0]), match.start() == apostrophe), text)


def literal(count: int, elided: bool = False) -> str:
    """Return the apostrophes that `count` of them in a row show: two are italics, three bold, five both."""
    return "'" * (elided if count == 3 else count == 4 if count < 5 else count - 5)


def literal_apostrophe(line: str) -> int:
    """Find three quotes in a line that are an apostrophe and italics, as in ``l'''Odyssée''``, or return -1.

    There are such if italics and bold are both left open. A word of one letter before them is the likeliest place.
    """
    runs = [(match.start(), len(match[0])) for match in _QUOTES.finditer(line)]
    bold = sum(count != 2 for _, count in runs)
    italics = sum(count == 2 or count >= 5 for _, count in runs)
    if bold % 2 == 0 or italics % 2 == 0:
        return -1
    inside = [at for at, count in runs if count == 3 and at > 0 and (line[at - 1] + line[at + 3 : at + 4]).isalpha()]
    behind_letters = [at for at in inside if at == 1 or not line[at - 2].isalpha()]
    return (behind_letters or inside or [-1])[0]


def variant(content: str) -> str:
    """Return one of the wordings in ``-{zh-hans:X; zh-hant:Y}-``: the first, or the whole text."""
    flags, bar, rules = content.partition("|")
    if not bar:
        rules = flags
    elif flags.strip().upper() in _HIDDEN:
        return ""
    first = rules.partition(";")[0]
    code = _CODE.match(first)
    return first[code.end() :].strip() if code else rules
