"""A small reader of Turtle, the notation of RDF that NIF files are written in.

Kept by hand: rdflib would bring a graph store, a dozen formats and a query language for what is a list of subjects with
their properties here, and would need the bound on names that a long @base or prefix makes of short ones all the same.
What Turtle 1.1 allows is read; blank nodes and collections are read over, as NIF says nothing in them.
"""

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from ebert._io import compressed
from ebert.errors import EbertError

DEEPEST = 100  # brackets in brackets
# Letters that names may have, written out: a long @base or prefix would make a long name of every short one. Data of
# the field need a twentieth of it.
ROOM, TIMES = 1 << 20, 16  # so many, and so many for each letter of the file
TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"

_TOKEN = re.compile(
    r"""
    (?P<gap> (?:\s|\#[^\n]*+)++ )
  | (?P<iri> <[^<>"{}|^`\x00-\x20]*+> )
  | (?P<long> \"{3} (?:[^"\\]|\\.|"(?!""))*+ \"{3} | '{3} (?:[^'\\]|\\.|'(?!''))*+ '{3} )
  | (?P<short> "(?:[^"\\\n\r]|\\.)*+" | '(?:[^'\\\n\r]|\\.)*+' )
  | (?P<kind> \^\^ )
  | (?P<directive> @prefix\b | @base\b )
  | (?P<language> @[a-zA-Z]++(?:-[a-zA-Z0-9]++)*+ )
  | (?P<blank> _:\w(?:[\w-]|\.(?=[\w.-]))*+ )
  | (?P<name> (?:\w(?:[\w-]|\.(?=[\w.-])){0,255}+)?+ : (?:[\w:%-]|\\.|\.(?=[\w:%\\.-]))*+ )
  | (?P<number> [+-]?(?:\d+(?:\.\d+)?|\.\d+)(?:[eE][+-]?\d+)? )
  | (?P<word> \w+ )
  | (?P<mark> [;,.\[\]()] )
    """,
    re.VERBOSE | re.DOTALL,
)
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(.))", re.DOTALL)
_LETTERS = {"t": "\t", "b": "\b", "n": "\n", "r": "\r", "f": "\f"}


class Triple(NamedTuple):
    """A statement. A literal is given by its text alone, whatever its language or type."""

    subject: str
    predicate: str
    object: str


class _Token(NamedTuple):
    kind: str
    text: str
    place: int


def triples(text: str, name: str = "the file") -> list[Triple]:
    """Return the statements of a Turtle file, or raise an error that says in which line it is broken."""
    found: list[Triple] = []
    read(text, name, lambda *parts: found.append(Triple(*parts)))
    return found


def read(text: str, name: str, add: Callable[[str, str, str], object]) -> None:
    """Read a Turtle file; `add` gets subject, predicate and object of each statement, so that none need be held."""
    _Parser(text, name, add).read()


class _Parser:
    """Reads a file from its beginning to its end, a token ahead."""

    def __init__(self, text: str, name: str, add: Callable[[str, str, str], object]) -> None:
        self._add = add
        self._text, self._name = text, name
        self._prefixes: dict[str, str] = {}
        self._known: dict[str, str] = {}  # names, written out: most stand in a file many times
        self._room = self._most = max(ROOM + TIMES * len(text), compressed.chosen() or 0)
        self._base, self._blanks, self._depth = "", 0, 0
        self._tokens = self._split()
        self._next = next(self._tokens)

    def read(self) -> None:
        """Read all statements."""
        while self._next.kind != "end":
            if self._next.text.lower() in ("@prefix", "@base", "prefix", "base"):
                self._directive()
                continue
            anonymous = self._at("[")
            subject = self._value()
            if not (anonymous and self._at(".")):
                self._properties(subject, ".")
            self._expect(".")

    def _directive(self) -> None:
        word = self._take().text.lower()
        prefix = ""
        if word.endswith("prefix"):
            prefix = self._take().text
            if not prefix.endswith(":"):
                raise self._problem(f"{prefix!r} is no prefix")
        iri = self._take()
        if iri.kind != "iri":
            raise self._problem(f"a prefix stands for an IRI in angle brackets, not for {iri.text[:30]!r}")
        if prefix:
            self._prefixes[prefix] = self._absolute(iri.text)
        else:
            self._base = self._absolute(iri.text)
        self._known.clear()
        if word[0] == "@":
            self._expect(".")

    def _properties(self, subject: str, end: str) -> None:
        while not self._at(end):
            if self._at(";"):
                self._take()
                continue
            predicate = TYPE if self._next.text == "a" else ""
            predicate = (self._take() and TYPE) if predicate else self._value()
            self._add(subject, predicate, self._value())
            while self._at(","):
                self._take()
                self._add(subject, predicate, self._value())
            if not (self._at(end) or self._at(";")):
                raise self._problem(f"';' or {end!r} is missing")

    def _value(self) -> str:
        token = self._take()
        match token.kind:
            case "iri" | "name":
                return self._written_out(token)
            case "long" | "short":
                self._after_literal()
                size = 3 if token.kind == "long" else 1
                return self._unescaped(token.text[size:-size])
            case "number" | "blank" | "word":
                if token.kind == "word" and token.text not in ("true", "false"):
                    raise self._problem(f"{token.text[:30]!r} stands where a name or a value should")
                return token.text
        return self._group(token)

    def _group(self, token: _Token) -> str:
        self._blanks += 1
        name = f"_:{self._blanks}"
        self._depth += 1
        if self._depth > DEEPEST:
            raise self._problem(f"more than {DEEPEST} brackets are open")
        if token.text == "[":
            self._properties(name, "]")
            self._expect("]")
        elif token.text == "(":
            while not self._at(")"):
                self._value()
            self._expect(")")
        else:
            raise self._problem(f"{token.text[:30]!r} stands where a name or a value should")
        self._depth -= 1
        return name

    def _after_literal(self) -> None:
        if self._next.kind == "language":
            self._take()
        elif self._next.kind == "kind":
            self._take()
            kind = self._take()
            if kind.kind not in ("iri", "name"):
                raise self._problem(f"{kind.text[:30]!r} stands where the type of a literal should")
            self._written_out(kind)

    def _written_out(self, token: _Token) -> str:
        """Return the whole name that a short one stands for."""
        found = self._known.get(token.text)
        if found is None:
            found = self._absolute(token.text) if token.kind == "iri" else self._prefixed(token.text)
            self._known[token.text] = found
        return found

    def _prefixed(self, name: str) -> str:
        prefix, colon, local = name.partition(":")
        if prefix + colon not in self._prefixes:
            raise self._problem(f"the prefix {prefix + colon!r} stands for nothing")
        return self._joined(self._prefixes[prefix + colon], re.sub(r"\\(.)", r"\1", local))

    def _joined(self, begin: str, end: str) -> str:
        self._room -= len(begin)  # what follows it is in the file
        if self._room < 0:
            raise EbertError(
                f"{self._line(self._next.place)}: the names have more than {self._most:,} letters, written out; use a "
                "shorter @base and shorter prefixes, or allow more (ebert --max-unpacked SIZE)"
            )
        return begin + end

    def _absolute(self, iri: str) -> str:
        name = self._unescaped(iri[1:-1])
        return name if re.match(r"[a-zA-Z][\w+.-]*+:", name) else self._joined(self._base, name)

    def _unescaped(self, text: str) -> str:
        if "\\" not in text:
            return text
        try:
            text = _ESCAPE.sub(_character, text)
            return text.encode("utf-16", "surrogatepass").decode("utf-16")  # two escapes may be one character
        except (ValueError, OverflowError):
            raise self._problem("an escape stands for no character") from None

    def _at(self, mark: str) -> bool:
        if self._next.kind == "end" and mark:
            raise self._problem(f"the file ends where {mark!r} is missing")
        return self._next.kind == "mark" and self._next.text == mark

    def _expect(self, mark: str) -> None:
        if not self._at(mark):
            raise self._problem(f"{mark!r} is missing before {self._next.text[:30]!r}")
        self._take()

    def _take(self) -> _Token:
        token = self._next
        if token.kind == "end":
            raise self._problem("the file ends in the middle of a statement")
        self._next = next(self._tokens)
        return token

    def _split(self) -> Iterator[_Token]:
        place = 0
        while place < len(self._text):
            match = _TOKEN.match(self._text, place)
            if match is None:
                raise self._problem(f"nothing in Turtle begins with {self._text[place : place + 20]!r}", place)
            if match.lastgroup != "gap":
                yield _Token(match.lastgroup or "", match[0], place)
            place = match.end()
        while True:
            yield _Token("end", "", place)

    def _problem(self, why: str, place: int | None = None) -> EbertError:
        return EbertError(f"{self._line(self._next.place if place is None else place)}: not Turtle: {why}")

    def _line(self, place: int) -> str:
        return f"{self._name}, line {self._text.count(chr(10), 0, place) + 1}"


def _character(match: re.Match[str]) -> str:
    short, long, letter = match.groups()
    return _LETTERS.get(letter, letter) if letter else chr(int(short or long, 16))
