"""NIF in Turtle, as GERBIL's data sets have it: a context holds a text, phrases say where they stand and mean what.

A service speaks it with GERBIL, too. A text comes in, alone if the mentions are to be found (A2KB) or with mentions
that have no entities (D2KB), and goes out with what the mentions mean.
"""

import io
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from urllib.parse import quote, unquote

from ebert.errors import EbertError
from ebert.linking.document import LinkedMention
from ebert.linking.readers import turtle
from ebert.linking.readers.layouts import Head, Label, Layout, Reading
from ebert.text.passage import Mention

LAYOUT = "nif"
_CORE = "nif-core#"
_ENTITY = "rdf#taIdentRef"
_NOWHERE = ("notInWiki", "NIL", "null")  # what sets call entities that Wikipedia does not have
_DBPEDIA = "://dbpedia.org/resource/"

Properties = dict[str, list[str]]  # of a subject, by their short names


@dataclass(frozen=True, slots=True)
class Context:
    """A text in a NIF file, and the phrases of it that the file says something about."""

    iri: str
    text: str
    phrases: tuple[Properties, ...]
    places: Sequence[int]  # the character at each place that the file counts

    def span(self, phrase: Properties) -> tuple[int, int] | None:
        """Return the characters of a phrase, or None if it has none in this text."""
        start, end = _numbers(phrase)
        return (self.places[start], self.places[end]) if 0 <= start <= end < len(self.places) else None


def read_nif(text: str, name: str, reading: Reading) -> None:
    """Read a NIF file."""
    for context in contexts(text, name, lambda phrase: "taIdentRef" in phrase):
        reading.add(context.iri.partition("#")[0], context.text, list(_labels(context, reading)))


def contexts(text: str, name: str, wanted: Callable[[Properties], bool]) -> list[Context]:
    """Return the texts in a NIF file, with those of their phrases that are wanted."""
    subjects: dict[str, Properties] = {}

    def add(subject: str, predicate: str, value: str) -> None:
        subjects.setdefault(subject, {}).setdefault(_short(predicate), []).append(value)

    turtle.read(text, name, add)
    texts = {subject: found["isString"][0] for subject, found in subjects.items() if "isString" in found}
    ends = {subject: subjects[subject].get("endIndex", [""])[0] for subject in texts}
    phrases: dict[str, list[Properties]] = {context: [] for context in texts}
    for subject, found in subjects.items():
        if subject in texts:
            continue
        if "referenceContext" not in found:
            if "taIdentRef" in found:
                raise Reading(LAYOUT).problem(name, f"the phrase <{subject}> has no nif:referenceContext")
            continue
        context = found["referenceContext"][0]
        if context not in texts:
            raise Reading(LAYOUT).problem(name, f"the context <{context}> of a phrase has no nif:isString")
        if wanted(found):
            phrases[context].append(found)
    made = []
    for context, own in phrases.items():
        try:
            for phrase in own:
                _numbers(phrase)
            made.append(Context(context, texts[context], tuple(own), _places(texts[context], own, ends.get(context))))
        except (KeyError, ValueError) as error:
            why = f"a phrase of <{context}> has no numbers where it begins and ends ({error})"
            raise Reading(LAYOUT).problem(name, why) from None
    return made


def _short(predicate: str) -> str:
    for space in (_CORE, "its/rdf#", "ns/its-rdf#"):
        if space in predicate:
            return predicate.rpartition("#")[2]
    return "taIdentRef" if predicate.endswith(_ENTITY) else predicate


def _places(text: str, phrases: list[Properties], end: str | None) -> Sequence[int]:
    """Return the character at each place that a file counts: characters, or what Java takes for them.

    `end` is where the file says that the text ends, which only counts if there are no phrases.
    """
    if max(text, default="") <= "\uffff":
        return range(len(text) + 1)
    if not phrases and end != str(len(text)) and end == str(len(java := _java_places(text)) - 1):
        return java
    # NIF counts characters, but programs in Java wrote some files, and count most emoji as two.
    ways: tuple[Sequence[int], ...] = (range(len(text) + 1), _java_places(text))
    return max(ways, key=lambda places: sum(_fits(text, phrase, places) for phrase in phrases))


def _fits(text: str, phrase: Properties, places: Sequence[int]) -> bool:
    """Return whether the words of a phrase stand where it says, if the text is counted like this."""
    (start, end), words = _numbers(phrase), phrase.get("anchorOf", [None])[0]
    if words is None or not 0 <= start <= end < len(places):
        return words is None
    return places[end] - places[start] == len(words) and text.startswith(words, places[start])


def _numbers(phrase: Properties) -> tuple[int, int]:
    """Return where a phrase begins and ends."""
    return int(phrase["beginIndex"][0]), int(phrase["endIndex"][0])


def _labels(context: Context, reading: Reading) -> Iterator[Label]:
    for phrase in context.phrases:
        span, words = context.span(phrase), phrase.get("anchorOf", [None])[0]
        if span is None:
            reading.dropped["label outside the text or without words"] += 1
        elif words is not None and context.text[span[0] : span[1]] != words:
            reading.dropped["label whose words are not those at its place"] += 1
        elif names := _names(phrase["taIdentRef"]):
            yield Label(*span, names)
        else:
            reading.dropped["name of nothing in Wikipedia"] += 1


def _java_places(text: str) -> list[int]:
    """Return the character at each of the places that Java counts."""
    places = []
    for number, character in enumerate(text):
        places += [number] * (2 if ord(character) > 0xFFFF else 1)
    return [*places, len(text)]


def _names(entities: list[str]) -> tuple[str, ...]:
    names = []
    for entity in entities:
        _, dbpedia, title = entity.partition(_DBPEDIA)
        last = entity.rstrip("/").rpartition("/")[2]
        if not any(word in entity for word in _NOWHERE[:1]) and last not in _NOWHERE:
            names.append(unquote(title) if dbpedia else entity)
    return tuple(sorted(names, key=lambda name: "wikidata.org" in name))


PREFIXES = """@prefix nif: <http://persistence.uni-leipzig.org/nlp2rdf/ontologies/nif-core#> .
@prefix itsrdf: <http://www.w3.org/2005/11/its/rdf#> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
"""
UNKNOWN = "?"  # stands for the entity of a mention that is to be linked
OWN = "urn:ebert:entity:"  # begins the IRI of an entity that has no page in Wikipedia
LONGEST = 1000  # letters of a text's IRI, which stands in the answer twice for each mention
_WORDS = re.compile(r"\S")
_PARTS = ("Sentence", "Paragraph", "Title", "Word", "Section", "Structure")  # of a text that name nothing
_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"}


@dataclass(frozen=True, slots=True)
class NifText:
    """A text that came in, and the mentions in it that are to be linked, if these were given."""

    iri: str
    text: str
    mentions: tuple[Mention, ...]
    places: Sequence[int]  # the character at each place that the sender counts

    def layers(self) -> Iterator[tuple[Mention, ...]]:
        """Return the mentions in groups in which none overlaps another: mentions that overlap are linked one by one."""
        left = sorted(self.mentions, key=lambda mention: (mention.start, -mention.end))
        while left:
            taken: list[Mention] = []
            later: list[Mention] = []
            for mention in left:
                (later if taken and mention.start < taken[-1].end else taken).append(mention)
            yield tuple(taken)
            left = later


def read_asked(text: str, name: str = "the request") -> list[NifText]:
    """Read what GERBIL sends."""
    found = contexts(text, name, _is_mention)
    if any(len(one.iri) > LONGEST for one in found):
        raise EbertError(f"{name}: the IRI of a nif:Context has more than {LONGEST:,} letters; use a shorter one")
    return [NifText(one.iri, one.text, tuple(dict.fromkeys(_given(one))), one.places) for one in found]


def write_answer(answered: Iterable[tuple[NifText, Iterable[LinkedMention]]]) -> str:
    """Write what GERBIL is to read: the texts as they came, and a phrase for each mention that was linked."""
    parts = [PREFIXES]
    for asked, mentions in answered:
        back = {character: place for place, character in reversed(list(enumerate(asked.places)))}
        end = len(asked.places) - 1
        parts.append(
            f"\n{_iri(asked.iri)} a nif:Context, nif:String, nif:RFC5147String ;\n"
            f"  nif:beginIndex {_number(0)} ;\n  nif:endIndex {_number(end)} ;\n  nif:isString {_text(asked.text)} .\n"
        )
        parts += [_phrase(asked, mention, back) for mention in mentions]
    return "".join(parts)


def _is_mention(phrase: Properties) -> bool:
    kinds = {kind.rpartition("#")[2] for kind in phrase.get(turtle.TYPE, [])}
    return "beginIndex" in phrase and "endIndex" in phrase and not kinds.intersection(_PARTS)


def _given(context: Context) -> Iterator[Mention]:
    for phrase in context.phrases:
        span = context.span(phrase)
        if span is not None and _WORDS.search(context.text, *span):
            yield Mention(*span, UNKNOWN)


def _phrase(asked: NifText, mention: LinkedMention, back: dict[int, int]) -> str:
    start, end = back[mention.start], back[mention.end]
    own = f"{asked.iri.partition('#')[0]}#char={start},{end}"
    return (
        f"\n{_iri(own)} a nif:Phrase, nif:String, nif:RFC5147String ;\n"
        f"  nif:referenceContext {_iri(asked.iri)} ;\n  nif:anchorOf {_text(mention.text)} ;\n"
        f"  nif:beginIndex {_number(start)} ;\n  nif:endIndex {_number(end)} ;\n"
        f"  itsrdf:taIdentRef {_iri(_entity(mention))} ;\n"
        f'  itsrdf:taConfidence "{mention.probability:.6f}"^^xsd:double .\n'
    )


def _entity(mention: LinkedMention) -> str:
    """Return the IRI of an entity. Those of Wikipedia's pages have http, as in all data of the field."""
    if mention.url is None:
        return OWN + quote(mention.entity.replace(" ", "_"), safe="")
    return "http://" + mention.url.removeprefix("https://")


def _number(value: int) -> str:
    return f'"{value}"^^xsd:nonNegativeInteger'


def _text(text: str) -> str:
    return '"' + "".join(_ESCAPES.get(one) or (one if one >= " " else f"\\u{ord(one):04X}") for one in text) + '"'


def _iri(iri: str) -> str:
    return "<" + "".join(one if one > " " and one not in '<>"{}|^`\\' else f"\\u{ord(one):04X}" for one in iri) + ">"


def _is_turtle(head: Head) -> bool:
    """Return whether a text begins as Turtle does, but for comments, and not as one about it."""
    lines = (line.strip() for line in io.StringIO(head.text))
    first = next((line for line in lines if line and not line.startswith("#")), "")
    return first.lower().startswith(("@prefix", "@base", "prefix ", "base ", "<http"))


LAYOUTS = (Layout(LAYOUT, lambda head: not head.row and _CORE in head.text, read_nif, _is_turtle),)
