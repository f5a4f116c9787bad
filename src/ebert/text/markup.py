r"""The markup of passages: ``[[Title|surface]]`` and ``[[Title]]``.

A bracket after a backslash is an ordinary bracket, so that any text can be written: ``\[\[`` is two brackets and no
mention. Of several backslashes before a bracket, each pair stands for one. Backslashes elsewhere are ordinary.
Of three brackets in a row the last two open the mention, so ``[[[Paris]]]`` is Paris in brackets. Brackets
that open and close inside a mention belong to it: ``[[Paris|[MASK]]]``.
"""

import re

from ebert.errors import EbertError

Span = tuple[int, int, str]

_TOKEN = re.compile(r"(?P<escape>\\+)(?=[\[\]])|(?P<open>\[\[(?!\[))|(?P<close>\]\])|(?P<bracket>[\[\]])")
_TROUBLE = re.compile(r"\\*[\[\]]")


def parse(text: str) -> tuple[str, list[Span]]:
    """Return the plain text and the spans `(start, end, title)` of its mentions."""
    plain: list[str] = []  # the text so far; inside a mention, what stands between its brackets goes to `inside`
    inside: list[str] = []
    spans: list[Span] = []
    opened, length, counted, position = -1, 0, 0, 0
    depth = 0  # of brackets inside a mention
    while match := _TOKEN.search(text, position):
        target = plain if opened < 0 else inside
        target.append(text[position : match.start()])
        position = match.end()
        if match["escape"]:
            target.append("\\" * (len(match["escape"]) // 2))
            if len(match["escape"]) % 2:
                target.append(text[position])
                position += 1
        elif match["open"] and opened < 0:
            opened = match.start()
        elif opened >= 0 and depth and text[match.start()] == "]":
            target.append("]")
            position = match.start() + 1
            depth -= 1
        elif match["close"] and opened >= 0:
            title, surface = _split("".join(inside), text, opened)
            length += sum(map(len, plain[counted:]))
            spans.append((length, length + len(surface), title))
            counted = len(plain)
            plain.append(surface)
            inside, opened, depth = [], -1, 0
        elif match["open"]:
            raise EbertError(f"markup opens '[[' at character {match.start()} inside the mention opened at {opened}")
        else:
            target.append(match[0])
            depth = depth + 1 if match[0] == "[" and opened >= 0 else depth
    if opened >= 0:
        raise EbertError(
            f"markup opens '[[' at character {opened} and never closes it; write ']]' after the entity, "
            r"or '\[[' for plain brackets"
        )
    plain.append(text[position:])
    return "".join(plain), spans


def write(text: str, spans: list[Span]) -> str:
    """Write text with mentions so that `parse` gives both back."""
    out: list[str] = []
    done = 0
    for start, end, title in spans:
        if "|" in title or title != title.strip() or not title:
            raise EbertError(f"title {title!r} cannot be written as markup")
        same = text[start:end] == title.replace("_", " ")
        inside = _escape(title, last=same, every=True)
        inside += "" if same else "|" + _escape(text[start:end], last=True, every=True)
        out += [_escape(text[done:start], last=True), "[[", inside, "]]"]
        done = end
    out.append(_escape(text[done:], last=False))
    return "".join(out)


def _split(content: str, text: str, opened: int) -> tuple[str, str]:
    title, bar, surface = content.partition("|")
    title = title.strip()
    if not title or (bar and not surface):
        raise EbertError(f"markup at character {opened} has an empty title or surface: {text[opened : opened + 40]!r}")
    return title, surface if bar else title.replace("_", " ")


def _escape(plain: str, *, last: bool, every: bool = False) -> str:
    """Escape every bracket, or those that could be read as markup; with `last`, a bracket of the markup follows."""

    def escaped(match: re.Match[str]) -> str:
        start, end = match.span()
        slashes, bracket = match[0][:-1], match[0][-1]
        alone = not slashes and bracket not in plain[max(0, start - 1) : start] + plain[end : end + 1]
        if alone and not every and not (last and end == len(plain)):
            return match[0]
        return "\\" * (2 * len(slashes)) + "\\" + bracket

    out = _TROUBLE.sub(escaped, plain)
    if last and (tail := len(plain) - len(plain.rstrip("\\"))):
        out += "\\" * tail  # backslashes right before the markup's own bracket count twice
    return out
