"""The two layouts of AIDA, both with one token per line: AIDA-YAGO2's and KnowBert's.

AIDA-YAGO2: ``-DOCSTART- (1 EU)``, then lines with a token, or with ``token, B or I, mention, entity, URL, ...``
separated by tabs; a blank line ends a sentence. KnowBert: ``DOCSTART_1_EU``, tokens, ``MMSTART_id TAB Title`` and
``MMEND`` around a mention, ``*NL*`` where a line ends, ``DOCEND``. Tokens are joined by blanks, lines by line ends.
"""

import io
import re
from collections.abc import Iterator

from ebert.linking.readers.layouts import Label, Reading

_NOTHING = ("--NME--", "")  # the name of everything that Wikipedia does not have
_ESCAPE = re.compile(r"\\u([0-9a-fA-F]{4})")  # YAGO's names are written in ASCII
_STARTS = {
    "-DOCSTART-": re.compile(r"-DOCSTART-\s*\(?(.*?)\)?\s*$"),
    "DOCSTART_": re.compile(r"\s*DOCSTART_(.*?)\s*$"),
}  # of documents, with their names


class _TokenDocument:
    """A document that is being read."""

    def __init__(self, name: str) -> None:
        self._name, self._length = name, 0  # characters so far
        self._parts: list[str] = []
        self._labels: list[Label] = []
        self._sentences = {0}
        self._blank = ""  # before the next word
        self.mention: tuple[int, tuple[str, ...]] | None = None  # where the open mention began, and its names

    def word(self, word: str) -> None:
        """Add a word."""
        self._parts += [self._blank, word]
        self._length += len(self._blank) + len(word)
        self._blank = " "

    def sentence(self, blank: str = " ") -> None:
        """Let the next word begin a sentence, after a blank or a line end."""
        if self._length:
            self._blank = blank
            self._sentences.add(self._length + 1)

    def begin(self, *names: str) -> None:
        """Let the next word begin a mention."""
        self.mention = self._length + len(self._blank), names

    def end(self) -> None:
        """End the mention, if one is open."""
        if self.mention is not None:
            start, names = self.mention
            self._labels.append(Label(start, self._length, names))
            self.mention = None

    def finish(self, reading: Reading) -> None:
        """Add the document to what was read."""
        self.end()
        sentences = sorted(start for start in self._sentences if start < self._length)
        reading.add(self._name, "".join(self._parts), self._labels, sentences=sentences)


def _lines(text: str, name: str, reading: Reading, mark: str) -> Iterator[tuple[_TokenDocument, str, str]]:
    """Yield the lines inside documents, each with its document and its place; add the documents that end."""
    document: _TokenDocument | None = None
    for number, line in enumerate(io.StringIO(text), 1):
        start = _STARTS[mark].match(line)
        if start or (document and mark == "DOCSTART_" and line.strip() == "DOCEND"):
            if document:
                document.finish(reading)
            document = _TokenDocument(start[1].strip()) if start else None
        elif document:
            yield document, f"{name}, line {number}", line
        elif line.strip():
            raise reading.problem(f"{name}, line {number}", f"there is no {mark} before the first token")
    if document:
        document.finish(reading)


def read_yago(text: str, name: str, reading: Reading) -> None:
    """Read the AIDA-YAGO2 layout."""
    for document, where, line in _lines(text, name, reading, "-DOCSTART-"):
        token, flag, _, entity, url = (*map(str.strip, line.split("\t")), "", "", "", "")[:5]
        if not token:
            document.end()
            document.sentence("\n")
            continue
        if flag not in ("", "B", "I"):
            raise reading.problem(where, f"{flag!r} is neither B nor I")
        if flag != "I":
            document.end()
        if flag and not document.mention:
            names = [
                _ESCAPE.sub(lambda match: chr(int(match[1], 16)), one) for one in (url, entity) if one not in _NOTHING
            ]
            if names:
                document.begin(*names)
            else:
                reading.dropped["name of nothing in Wikipedia"] += flag == "B"
        document.word(token)


def read_knowbert(text: str, name: str, reading: Reading) -> None:
    """Read KnowBert's layout."""
    for document, where, line in _lines(text, name, reading, "DOCSTART_"):
        word = line.strip()
        if word.startswith("MMSTART_"):
            if document.mention:
                raise reading.problem(where, "a mention begins inside another")
            page, _, title = word.removeprefix("MMSTART_").partition("\t")
            document.begin(title.strip() or f"page {page}")
        elif word == "MMEND":
            if not document.mention:
                raise reading.problem(where, "a mention ends that never began")
            document.end()
        elif word == "*NL*":
            if not document.mention:
                document.sentence("\n")
        elif word:
            document.word(word)
            if word in (".", "!", "?") and not document.mention:
                document.sentence()
