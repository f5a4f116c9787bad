"""A small reader of Turtle, the notation of RDF that NIF files are written in.

It is written by hand: rdflib would bring a graph store, a dozen formats and a query language, but only a list of
subjects with their properties is needed. It would also still need a bound on short names that a long @base or prefix
expands. Everything that Turtle 1.1 allows is read; blank nodes and collections are skipped, as NIF says nothing in
them.
"""

import re

from ebert._io import compressed
from ebert.errors import EbertError

DEEPEST = 100  # brackets in brackets
# Letters that expanded names may have: a long @base or prefix would make every short name long. Real data needs a
# twentieth of it.
ROOM, TIMES = 1 << 20, 16  # so many, and so many for each letter of the file
TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"

_TOKEN = re.compile(
    r"""
    (?:\s|\#[^\n]*+)*+ (?:
    (?P<iri> <[^<>"{}|^`\x00-\x20]*+> )
  | (?P<long> \"{3} (?:[^"\\]|\\.|"(?!""))*+ \"{3} | '{3} (?:[^'\\]|\\.|'(?!''))*+ '{3} )
  | (?P<short> "(?:[^"\\\n\r]|\\.)*+" | '(?:[^'\\\n\r]|\\.)*+' )
  | (?P<directive> @prefix\b | @base\b )
  | (?P<language> @[a-zA-Z]++(?:-[a-zA-Z0-9]++)*+ )
  | (?P<blank> _:\w(?:[\w-]|\.(?=[\w.-]))*+ )
  | (?P<name> (?:\w(?:[\w-]|\.(?=[\w.-])){0,255}+)?+ : (?:[\w:%-]|\\.|\.(?=[\w:%\\.-]))*+ )
  | (?P<number> [+-]?(?:\d+(?:\.\d+)?|\.\d+)(?:[eE][+-]?\d+)? )
  | (?P<word> \w+ )
  | (?P<mark> \^\^ | [;,.\[\]()] )
  | (?P<end> \Z )
  | (?P<wrong> . ) )
    """,
    re.VERBOSE | re.DOTALL,
)
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(.))", re.DOTALL)
_LETTERS = {"t": "\t", "b": "\b", "n": "\n", "r": "\r", "f": "\f"}

Subjects = dict[str, dict[str, list[str]]]  # the objects of each subject by their predicates


def read(text: str, name: str = "the file") -> Subjects:
    """Return the statements of a Turtle file. Raise an error that names the line if it is broken.

    A literal is returned as its text, without its language or type.
    """
    return _Parser(text, name).read()


class _Parser:
    """Reads a file from its beginning to its end, a token ahead."""

    def __init__(self, text: str, name: str) -> None:
        self._text, self._name = text, name
        self._subjects: Subjects = {}
        self._prefixes = {"": ""}  # what they stand for; "" is the base
        self._known: dict[str, str] = {}  # names, written out: most stand in a file many times
        self._room = self._most = max(ROOM + TIMES * len(text), compressed.chosen() or 0)
        self._blanks = self._depth = 0
        self._kind = self._word = ""  # of the next token: a group of the pattern, or the mark that it is
        self._place = self._end = 0  # where it begins and ends
        self._take()

    def read(self) -> Subjects:
        while self._kind != "end":
            if self._word.lower() in ("@prefix", "@base", "prefix", "base"):
                self._directive()
                continue
            anonymous = self._kind == "["
            subject = self._value()
            if not (anonymous and self._kind == "."):
                self._properties(subject, ".")
            self._take(".")
        return self._subjects

    def _directive(self) -> None:
        word = self._take().lower()
        prefix = self._take() if word.endswith("prefix") else ""
        if prefix and not prefix.endswith(":"):
            raise self._problem(f"{prefix!r} is no prefix")
        kind, iri = self._kind, self._take()
        if kind != "iri":
            raise self._problem(f"a prefix stands for an IRI in angle brackets, not for {iri[:30]!r}")
        self._prefixes[prefix] = self._written_out(iri)
        self._known.clear()
        if word[0] == "@":
            self._take(".")

    def _properties(self, subject: str, end: str) -> None:
        while self._kind != end:
            if self._kind == ";":
                self._take()
                continue
            predicate = TYPE if self._word == "a" and self._take() else self._value()
            objects = self._subjects.setdefault(subject, {}).setdefault(predicate, [])
            objects.append(self._value())
            while self._kind == ",":
                self._take()
                objects.append(self._value())
            if self._kind not in (end, ";"):
                raise self._problem(f"';' or {end!r} is missing")

    def _value(self) -> str:
        kind, text = self._kind, self._take()
        if kind in ("iri", "name"):
            return self._written_out(text)
        if kind in ("long", "short"):
            if self._kind == "language":
                self._take()
            elif self._kind == "^^":
                self._take()
                if self._kind not in ("iri", "name"):
                    raise self._problem(f"{self._word[:30]!r} stands where the type of a literal should")
                self._value()
            quotes = 3 if kind == "long" else 1
            return self._unescaped(text[quotes:-quotes])
        if kind in ("number", "blank") or text in ("true", "false"):
            return text
        if kind not in ("[", "("):
            raise self._problem(f"{text[:30]!r} stands where a name or a value should")
        return self._group("]" if kind == "[" else ")")

    def _group(self, end: str) -> str:
        self._blanks += 1
        self._depth += 1
        name = f"_:{self._blanks}"
        if self._depth > DEEPEST:
            raise self._problem(f"more than {DEEPEST} brackets are open")
        if end == "]":
            self._properties(name, end)
        while self._kind != end:
            self._value()
        self._take(end)
        self._depth -= 1
        return name

    def _written_out(self, name: str) -> str:
        """Return the full name that an IRI or a prefixed name stands for."""
        if name in self._known:
            return self._known[name]
        if name[0] == "<":
            rest = self._unescaped(name[1:-1])
            begin = "" if re.match(r"[a-zA-Z][\w+.-]*+:", rest) else self._prefixes[""]
        else:
            prefix, colon, local = name.partition(":")
            if prefix + colon not in self._prefixes:
                raise self._problem(f"the prefix {prefix + colon!r} stands for nothing")
            begin, rest = self._prefixes[prefix + colon], re.sub(r"\\(.)", r"\1", local)
        self._room -= len(begin)  # the rest is in the file
        if self._room < 0:
            raise self._problem(
                f"the names have more than {self._most:,} letters, written out; use a shorter @base and shorter "
                "prefixes, or allow more (ebert --max-unpacked SIZE)",
                "",
            )
        self._known[name] = begin + rest
        return self._known[name]

    def _unescaped(self, text: str) -> str:
        if "\\" not in text:
            return text
        try:
            text = _ESCAPE.sub(_character, text)
            return text.encode("utf-16", "surrogatepass").decode("utf-16")  # two escapes may be one character
        except (ValueError, OverflowError):
            raise self._problem("an escape stands for no character") from None

    def _take(self, mark: str | None = None) -> str:
        """Return the next token, which must be `mark` if that is given, and go on to the one after it."""
        taken = self._word
        if self._kind == "end":
            where = f"where {mark!r} is missing" if mark else "in the middle of a statement"
            raise self._problem(f"the file ends {where}")
        if mark and self._kind != mark:
            raise self._problem(f"{mark!r} is missing before {taken[:30]!r}")
        match = _TOKEN.match(self._text, self._end)
        assert match
        kind = str(match.lastgroup)
        self._word, self._place, self._end = match[kind], match.start(kind), match.end()
        self._kind = self._word if kind == "mark" else kind
        if kind == "wrong":
            raise self._problem(f"nothing in Turtle begins with {self._text[self._place : self._place + 20]!r}")
        return taken

    def _problem(self, why: str, kind: str = "not Turtle: ") -> EbertError:
        return EbertError(f"{self._name}, line {self._text.count(chr(10), 0, self._place) + 1}: {kind}{why}")


def _character(match: re.Match[str]) -> str:
    short, long, letter = match.groups()
    return _LETTERS.get(letter, letter) if letter else chr(int(short or long, 16))
