"""A passage is a text and the mentions in it: the input of everything in `ebert`."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ebert.errors import EbertError
from ebert.text import markup


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
        plain, spans = markup.parse(text)
        return cls(plain, tuple(Mention(start, end, title) for start, end, title in spans))

    @classmethod
    def of(cls, value: "str | Passage") -> "Passage":
        """Take a passage as it is and read a string as markup."""
        return value if isinstance(value, Passage) else cls.parse(value)

    def markup(self) -> str:
        """Write the passage so that `parse` gives it back."""
        return markup.write(self.text, [(m.start, m.end, m.entity) for m in self.mentions])

    def surface(self, mention: Mention) -> str:
        """Return the words of a mention."""
        return self.text[mention.start : mention.end]

    def without(self, mentions: Iterable[Mention]) -> "Passage":
        """Return the same text with some of the mentions forgotten."""
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
        the object. The entity comes to stand inside the markers: ``# Battleground_(film) / Battle ##ground #``.
        """
        edits: list[tuple[int, int, str]] = []
        for mention in self.mentions:
            if mention in markers:
                edits.append((mention.start, mention.start, f"{markers[mention]} "))
                edits.append((mention.end, mention.end, f" {markers[mention]}"))
        if len(edits) != 2 * len(markers):
            raise EbertError("only mentions of this passage can be marked")
        return self.replace_text(edits)
