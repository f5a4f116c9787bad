"""Parts of a page that are skipped: finding where a template, a table, a file or a tag's content ends.

A page may open thousands of things that it never closes. Looking for the end of each would take time that grows with
the square of the page, so whoever looks in vain writes down what was paired on the way, and nobody looks there again.
"""

import re
from bisect import bisect_left

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
        """Give the name of the raw tag at `start`, where its content begins and where the tag ends, -1 if nowhere.

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
        """Give the end of what the mark before `start` opens, or -1 if nothing closes it before the next heading."""
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
