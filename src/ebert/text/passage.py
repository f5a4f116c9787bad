r"""A passage is a text and the mentions in it: the input of everything in `ebert`.

Its markup is ``[[Title|surface]]`` and ``[[Title]]``. A bracket after a backslash is an ordinary bracket, so that any
text can be written: ``\[\[`` is two brackets and no mention. Of several backslashes before a bracket, each pair stands
for one. Backslashes elsewhere are ordinary. Of three brackets in a row the last two open the mention, so
``[[[Paris]]]`` is Paris in brackets. Brackets that open and close inside a mention belong to it: ``[[Paris|[MASK]]]``.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ebert.errors import EbertError

Span = tuple[int, int, str]

_TOKEN = re.compile(r"(?P<escape>\\+)(?=[\[\]])|(?P<open>\[\[(?!\[))|(?P<close>\]\])|(?P<bracket>[\[\]])")
_TROUBLE = re.compile(r"\\*[\[\]]")


@dataclass(frozen=True, slots=True)
class Mention:
    """A span of text (characters `start` to `end`) that names an entity, given by the title of its Wikipedia page."""

    start: int
    end: int
    entity: str


@dataclass(frozen=True, slots=True)
class Passage:
    """A text and its mentions, in the order of the text and not overlapping.

    >>> passage = Passage.parse("[[Jean Marais|Marais]] spoke [MASK].")
    >>> passage.text, passage.mentions[0].entity
    ('Marais spoke [MASK].', 'Jean Marais')
    """

    text: str
    mentions: tuple[Mention, ...] = ()

    def __post_init__(self) -> None:
        try:
            self.text.encode()
        except UnicodeEncodeError as error:
            raise EbertError(f"the text is not UTF-8: it has a broken character at {error.start}") from None
        mentions = tuple(sorted(self.mentions, key=lambda mention: mention.start))
        end = 0
        for mention in mentions:
            if not 0 <= mention.start < mention.end <= len(self.text):
                raise EbertError(
                    f"mention of {mention.entity!r} at {mention.start}:{mention.end} is not a span of the text, "
                    f"which has {len(self.text)} characters"
                )
            if mention.start < end:
                raise EbertError(
                    f"mention of {mention.entity!r} at {mention.start}:{mention.end} overlaps the one before it"
                )
            if not mention.entity.strip():
                raise EbertError(f"mention at {mention.start}:{mention.end} has an empty entity")
            end = mention.end
        object.__setattr__(self, "mentions", mentions)

    @classmethod
    def parse(cls, text: str) -> "Passage":
        """Read the markup ``[[Title|surface]]`` or ``[[Title]]``; a bracket after a backslash is an ordinary one."""
        plain, spans = parse_markup(text)
        return cls(plain, tuple(Mention(start, end, title) for start, end, title in spans))

    @classmethod
    def of(cls, value: "str | Passage") -> "Passage":
        """Take a passage as it is and read a string as markup."""
        return value if isinstance(value, Passage) else cls.parse(value)

    def markup(self) -> str:
        """Write the passage so that `parse` gives it back."""
        return write_markup(self.text, [(m.start, m.end, m.entity) for m in self.mentions])

    def surface(self, mention: Mention) -> str:
        """Return the words of a mention."""
        return self.text[mention.start : mention.end]

    def without(self, mentions: Iterable[Mention]) -> "Passage":
        """Return the same text without some of the mentions."""
        drop = set(mentions)
        return Passage(self.text, tuple(m for m in self.mentions if m not in drop))

    def replace_text(self, edits: Sequence[tuple[int, int, str]]) -> "Passage":
        """Return the passage with spans of its text, `(start, end, new text)` in order, replaced. Mentions stay."""
        pieces: list[str] = []
        moved: list[Mention] = []
        done, shift = 0, 0
        waiting = list(self.mentions)
        for start, end, new in [*edits, (len(self.text), len(self.text), "")]:
            if start < done or end < start:
                raise EbertError(f"edit at {start}:{end} overlaps the one before it or runs backwards")
            while waiting and waiting[0].end <= start:
                mention = waiting.pop(0)
                if mention.start < done:
                    raise EbertError(f"edit before {done} cuts the mention at {mention.start}:{mention.end}")
                moved.append(Mention(mention.start + shift, mention.end + shift, mention.entity))
            pieces += [self.text[done:start], new]
            shift += len(new) - (end - start)
            done = end
        if waiting:
            raise EbertError(f"an edit cuts the mention at {waiting[0].start}:{waiting[0].end}")
        return Passage("".join(pieces), tuple(moved))

    def mark(self, markers: Mapping[Mention, str]) -> "Passage":
        """Set a marker before and after each of the given mentions.

        This is the input of relation classification (appendix of the paper): ``#`` around the subject and ``$`` around
        the object. The entity is then inside the markers: ``# Battleground_(film) / Battle ##ground #``.
        """
        edits: list[tuple[int, int, str]] = []
        for mention in self.mentions:
            if mention in markers:
                edits.append((mention.start, mention.start, f"{markers[mention]} "))
                edits.append((mention.end, mention.end, f" {markers[mention]}"))
        if len(edits) != 2 * len(markers):
            raise EbertError("only mentions of this passage can be marked")
        return self.replace_text(edits)


def parse_markup(text: str) -> tuple[str, list[Span]]:
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


def write_markup(text: str, spans: list[Span]) -> str:
    """Write text with mentions so that `parse_markup` gives both back."""
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
