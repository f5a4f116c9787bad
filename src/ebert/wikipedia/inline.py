"""Small pieces of markup inside a line: quotes for italics and bold, the names that links show, language variants."""

import re

from ebert.wikipedia.site import unquote

_QUOTES = re.compile("''++")
_CODE = re.compile(r"\s*+([a-z]{2,3}(?:-[a-z]+)*+)\s*+:", re.IGNORECASE | re.ASCII)
_HIDDEN = frozenset("HTD-")  # flags of variants that define a word and show nothing


def shown(target: str) -> str:
    """Give what a link shows that has no text of its own."""
    if "://" in target:  # [[http://example.org its text]], which should have single brackets
        return target.partition(" ")[2]
    if "_" in target or "%" in target or target[:1] in (" ", ":", "#"):
        return unquote(target).replace("_", " ").lstrip(" :#")
    return target


def pipe_trick(target: str) -> str:
    """Give what ``[[target|]]`` shows: the name without its namespace and without what only tells it from others.

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
    """Give the apostrophes that `count` of them in a row show: two are italics, three bold, five both."""
    return "'" * (elided if count == 3 else count == 4 if count < 5 else count - 5)


def literal_apostrophe(line: str) -> int:
    """Find three quotes in a line that are an apostrophe and italics, as in ``l'''Odyssée''``, or give -1.

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
    """Give one of the wordings in ``-{zh-hans:X; zh-hant:Y}-``: the first, or all there is."""
    flags, bar, rules = content.partition("|")
    if not bar:
        rules = flags
    elif flags.strip().upper() in _HIDDEN:
        return ""
    first = rules.partition(";")[0]
    code = _CODE.match(first)
    return first[code.end() :].strip() if code else rules
