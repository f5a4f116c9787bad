"""What is open at a place in a page: templates whose text is kept, and links with more than letters in them."""

import re

from ebert.wikipedia.templates import Keep, Make

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
        """Make one anchor of what was written since, unless it is empty or reaches over the end of a paragraph."""
        text = "".join(self.pieces[mark[0] :])
        if text.strip() and "\n\n" not in text:
            self.pieces[mark[0] :] = [f"{OPEN}{text.replace(chr(10), ' ')}{trail}{CLOSE}"]
            self.titles.append(title)
        else:
            self.pieces.append(trail)

    def since(self, mark: tuple[int, int]) -> str | None:
        """Give what was written since, without its anchors, if that is short."""
        if len(self.pieces) - mark[0] > FEW:
            return None
        text = "".join(self.pieces[mark[0] :])
        return text.replace(OPEN, "").replace(CLOSE, "") if len(text) <= SHORT else None


class Outside:
    """A link to a page outside the wiki; its text is plain text."""

    __slots__ = ()


class Link:
    """A link of which the target is known, or, if `title` is None, still being read."""

    __slots__ = ("mark", "title")

    def __init__(self, mark: tuple[int, int], title: str | None) -> None:
        self.mark = mark
        self.title = title


class Template:
    """A template, or a parameter ``{{{name|value}}}``, of which some arguments are text."""

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


Frame = Outside | Link | Template
