"""The two layouts of AIDA, both a token a line: that of AIDA-YAGO2, and that of KnowBert's files.

AIDA-YAGO2: ``-DOCSTART- (1 EU)``, then lines of a token or of ``token, B or I, mention, entity, URL, ...`` with tabs
between them; a blank line ends a sentence. KnowBert: ``DOCSTART_1_EU``, tokens, ``MMSTART_id TAB Title`` and ``MMEND``
around a mention, ``*NL*`` where a line ends, ``DOCEND``. Tokens are joined by blanks, lines by line ends.
"""

import io
import re

from ebert.linking.readers.layouts import Label, Layout, Reading

_NOTHING = ("--NME--", "")  # a name of nothing that Wikipedia has
_ESCAPE = re.compile(r"\\u([0-9a-fA-F]{4})")
_NAME = re.compile(r"^-DOCSTART-\s*\(?(.*?)\)?\s*$")
_ENDS = frozenset((".", "!", "?"))


class _TokenDocument:
    """A document under way."""

    def __init__(self, name: str) -> None:
        self.name, self.length = name, 0  # characters so far
        self._parts: list[str] = []
        self.labels: list[Label] = []
        self.sentences: list[int] = []
        self._line_end = False
        self._open: tuple[int, tuple[str, ...]] | None = None

    def word(self, word: str) -> int:
        """Add a word; return where it begins."""
        blank = ("\n" if self._line_end else " ") if self.length else ""
        start = self.length + len(blank)
        if self._line_end or not self.length:
            self.sentences.append(start)
        self._line_end = False
        self._parts += [blank, word]
        self.length = start + len(word)
        return start

    def sentence(self) -> None:
        """Let the next word begin a sentence on the same line."""
        if self.length and not self._line_end:
            self.sentences.append(self.length + 1)

    def end_line(self) -> None:
        """Let the next word begin a line, unless a mention goes on there."""
        self._line_end = self._open is None and self.length > 0

    def begin(self, start: int, names: tuple[str, ...]) -> None:
        """Begin a mention."""
        self._open = (start, names)

    @property
    def in_mention(self) -> bool:
        """Whether a mention is under way."""
        return self._open is not None

    def end(self) -> None:
        """End the mention, if one is under way."""
        if self._open is not None:
            start, names = self._open
            self.labels.append(Label(start, self.length, names))
            self._open = None

    def finish(self, reading: Reading) -> None:
        """Add the document to what was read."""
        self.end()
        sentences = sorted({start for start in self.sentences if start < self.length})
        reading.add(self.name, "".join(self._parts), self.labels, sentences=sentences)


def read_yago(text: str, name: str, reading: Reading) -> None:
    """Read the AIDA-YAGO2 layout."""
    document: _TokenDocument | None = None
    for number, line in enumerate(io.StringIO(text), 1):
        line = line.rstrip("\r\n")
        if start := _NAME.match(line):
            if document:
                document.finish(reading)
            document = _TokenDocument(start[1].strip())
            continue
        if document is None:
            if line.strip():
                raise reading.problem(f"{name}, line {number}", "there is no -DOCSTART- before the first token")
            continue
        token, *rest = line.split("\t")
        if not token.strip():
            document.end()
            document.end_line()
            continue
        flag = rest[0].strip() if rest else ""
        if flag not in ("", "B", "I"):
            raise reading.problem(f"{name}, line {number}", f"{flag!r} is neither B nor I")
        if flag != "I":
            document.end()
        place = document.word(token.strip())
        if flag and not document.in_mention:
            _begin(document, place, rest, reading, new=flag == "B")
    if document:
        document.finish(reading)


def _begin(document: _TokenDocument, place: int, rest: list[str], reading: Reading, *, new: bool) -> None:
    entity, url = [field.strip() for field in (*rest[2:4], "", "")[:2]]
    if entity in _NOTHING and url in _NOTHING:
        reading.dropped["name of nothing in Wikipedia"] += new
        return
    names = [_unescaped(name) for name in (url, entity) if name not in _NOTHING]
    document.begin(place, tuple(names))


def read_knowbert(text: str, name: str, reading: Reading) -> None:
    """Read KnowBert's layout."""
    document: _TokenDocument | None = None
    for number, line in enumerate(io.StringIO(text), 1):
        word = line.strip()
        if not word:
            continue
        if word.startswith("DOCSTART_"):
            if document:
                document.finish(reading)
            document = _TokenDocument(word.removeprefix("DOCSTART_"))
        elif document is None:
            raise reading.problem(f"{name}, line {number}", "there is no DOCSTART_ before the first token")
        elif word.startswith("MMSTART_"):
            page, _, title = line.strip().partition("\t")
            if document.in_mention:
                raise reading.problem(f"{name}, line {number}", "a mention begins inside another")
            names = tuple(filter(None, [title.strip()]))
            document.begin(document.length + bool(document.length), names or (f"page {page[8:]}",))
        elif word == "MMEND":
            if not document.in_mention:
                raise reading.problem(f"{name}, line {number}", "a mention ends that never began")
            document.end()
        elif word == "*NL*":
            document.end_line()
        elif word == "DOCEND":
            document.finish(reading)
            document = None
        else:
            document.word(word)
            if word in _ENDS and not document.in_mention:
                document.sentence()
    if document:
        document.finish(reading)


def _unescaped(name: str) -> str:
    """Read the escapes of YAGO's names, which are written in ASCII."""
    return _ESCAPE.sub(lambda match: chr(int(match[1], 16)), name)


LAYOUTS = (
    Layout("aida", lambda head: head.line.startswith("-DOCSTART-"), read_yago, lambda _: True),
    Layout("knowbert", lambda head: head.line.startswith("DOCSTART_"), read_knowbert, lambda _: True),
)
