"""NIF in Turtle, as in GERBIL's data sets: a context holds a text, and phrases say where they stand and what they mean.

GERBIL also uses it to talk to a service. It sends a text, alone if the mentions are to be found (A2KB), or with
mentions without entities (D2KB). The answer has the meanings of the mentions.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from urllib.parse import quote, unquote

from ebert.errors import EbertError
from ebert.linking.document import LinkedMention
from ebert.linking.readers import turtle
from ebert.linking.readers.layouts import Label, Reading
from ebert.text.passage import Mention

PREFIXES = """@prefix nif: <http://persistence.uni-leipzig.org/nlp2rdf/ontologies/nif-core#> .
@prefix itsrdf: <http://www.w3.org/2005/11/its/rdf#> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
"""
UNKNOWN = "?"  # stands for the entity of a mention that is to be linked
OWN = "urn:ebert:entity:"  # begins the IRI of an entity that has no page in Wikipedia
LONGEST = 1000  # letters of a text's IRI, which stands in the answer twice for each mention

_NOWHERE = ("notInWiki", "NIL", "null")  # names in data sets for entities that Wikipedia does not have
_PARTS = {"Sentence", "Paragraph", "Title", "Word", "Section", "Structure"}  # of a text that name nothing
_SPACES = re.compile(r"nif-core#|its/rdf#|ns/its-rdf#|rdf#taIdentRef\Z")
_WORDS = re.compile(r"\S")

Properties = dict[str, list[str]]  # of a subject, by their short names
Phrases = list[tuple[tuple[int, int] | None, Properties]]  # with their characters, None if outside the text
Context = tuple[str, str, Phrases, Sequence[int]]  # IRI, text, phrases, the character at each place that is counted


def read_nif(text: str, name: str, reading: Reading) -> None:
    """Read a NIF file."""
    for iri, content, phrases, _ in _contexts(text, name, lambda phrase: "taIdentRef" in phrase):
        labels = []
        for span, phrase in phrases:
            if span is None:
                reading.dropped["label outside the text or without words"] += 1
            elif phrase.get("anchorOf", [content[slice(*span)]])[0] != content[slice(*span)]:
                reading.dropped["label whose words are not those at its place"] += 1
            elif names := [name for entity in phrase["taIdentRef"] for name in _names(entity)]:
                labels.append(Label(*span, tuple(sorted(names, key=lambda name: "wikidata.org" in name))))
            else:
                reading.dropped["name of nothing in Wikipedia"] += 1
        reading.add(iri.partition("#")[0], content, labels)


def _contexts(text: str, name: str, wanted: Callable[[Properties], bool]) -> Iterator[Context]:
    """Yield the texts in a NIF file, with those of their phrases that are wanted."""
    subjects: dict[str, Properties] = {}
    for subject, found in turtle.read(text, name).items():
        own = subjects.setdefault(subject, {})
        for predicate, values in found.items():
            short = predicate.rpartition("#")[2] if _SPACES.search(predicate) else predicate
            own.setdefault(short, []).extend(values)
    phrases: dict[str, list[Properties]] = {iri: [] for iri, found in subjects.items() if "isString" in found}
    for subject, found in subjects.items():
        if subject in phrases:
            continue
        context = found.get("referenceContext", [None])[0]
        if context is None and "taIdentRef" in found:
            raise Reading("nif").problem(name, f"the phrase <{subject}> has no nif:referenceContext")
        if context is not None and context not in phrases:
            raise Reading("nif").problem(name, f"the context <{context}> of a phrase has no nif:isString")
        if context is not None and wanted(found):
            phrases[context].append(found)
    for iri, own_phrases in phrases.items():
        content, ends = subjects[iri]["isString"][0], subjects[iri].get("endIndex", [""])
        try:
            counted = [(int(one["beginIndex"][0]), int(one["endIndex"][0])) for one in own_phrases]
        except (KeyError, ValueError) as error:
            why = f"a phrase of <{iri}> has no numbers where it begins and ends ({error})"
            raise Reading("nif").problem(name, why) from None
        places = _places(content, counted, own_phrases, ends[0])
        spans = [(places[a], places[b]) if 0 <= a <= b < len(places) else None for a, b in counted]
        yield iri, content, list(zip(spans, own_phrases, strict=True)), places


def _places(text: str, counted: list[tuple[int, int]], phrases: list[Properties], end: str) -> Sequence[int]:
    """Return the character at each place that a file counts: in characters, or in Java's UTF-16 units.

    NIF counts characters, but programs in Java wrote some files, and count most emoji as two. `end` is where the file
    says that the text ends; it is used only if there are no phrases.
    """
    characters = range(len(text) + 1)
    if max(text, default="") <= "\uffff":
        return characters
    java = [place for place, one in enumerate(text) for _ in range(1 + (one > "\uffff"))] + [len(text)]
    if not phrases:
        return java if end == str(len(java) - 1) else characters

    def fitting(places: Sequence[int]) -> int:
        """Count the phrases whose words stand at their stated places if the text is counted in this way."""
        pairs = zip(counted, (phrase.get("anchorOf", [None])[0] for phrase in phrases), strict=True)
        return sum(
            words is None
            or (0 <= a <= b < len(places) and places[b] - places[a] == len(words) and text.startswith(words, places[a]))
            for (a, b), words in pairs
        )

    return max((characters, java), key=fitting)


def _names(entity: str) -> Iterator[str]:
    _, dbpedia, title = entity.partition("://dbpedia.org/resource/")
    if _NOWHERE[0] not in entity and entity.rstrip("/").rpartition("/")[2] not in _NOWHERE:
        yield unquote(title) if dbpedia else entity


@dataclass(frozen=True, slots=True)
class NifText:
    """A received text, and the mentions to link in it, if given."""

    iri: str
    text: str
    mentions: tuple[Mention, ...]
    places: Sequence[int]  # the character at each place that the sender counts

    def layers(self) -> Iterator[tuple[Mention, ...]]:
        """Return the mentions in groups without overlaps: overlapping mentions are linked separately."""
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
    asked = []
    for iri, content, phrases, places in _contexts(text, name, _is_mention):
        if len(iri) > LONGEST:
            raise EbertError(f"{name}: the IRI of a nif:Context has more than {LONGEST:,} letters; use a shorter one")
        spans = dict.fromkeys(span for span, _ in phrases if span and _WORDS.search(content, *span))
        asked.append(NifText(iri, content, tuple(Mention(*span, UNKNOWN) for span in spans), places))
    return asked


def _is_mention(phrase: Properties) -> bool:
    kinds = {kind.rpartition("#")[2] for kind in phrase.get(turtle.TYPE, [])}
    return "beginIndex" in phrase and "endIndex" in phrase and not kinds & _PARTS


def write_answer(answered: Iterable[tuple[NifText, Iterable[LinkedMention]]]) -> str:
    """Write the answer to GERBIL: the texts as received, and a phrase for each linked mention."""
    parts = [PREFIXES]
    for asked, mentions in answered:
        back = {character: place for place, character in reversed(list(enumerate(asked.places)))}
        parts.append(
            f"\n{_iri(asked.iri)} a nif:Context, nif:String, nif:RFC5147String ;\n"
            f"  {_range(0, len(asked.places) - 1)} ;\n  nif:isString {_text(asked.text)} .\n"
        )
        for mention in mentions:
            start, end = back[mention.start], back[mention.end]
            own = f"{asked.iri.partition('#')[0]}#char={start},{end}"
            parts.append(
                f"\n{_iri(own)} a nif:Phrase, nif:String, nif:RFC5147String ;\n"
                f"  nif:referenceContext {_iri(asked.iri)} ;\n  nif:anchorOf {_text(mention.text)} ;\n"
                f"  {_range(start, end)} ;\n  itsrdf:taIdentRef {_iri(_entity(mention))} ;\n"
                f'  itsrdf:taConfidence "{mention.probability:.6f}"^^xsd:double .\n'
            )
    return "".join(parts)


def _entity(mention: LinkedMention) -> str:
    """Return the IRI of an entity. Those of Wikipedia's pages have http, as in all data of the field."""
    if mention.url is None:
        return OWN + quote(mention.entity.replace(" ", "_"), safe="")
    return "http://" + mention.url.removeprefix("https://")


def _range(start: int, end: int) -> str:
    number = "^^xsd:nonNegativeInteger"
    return f'nif:beginIndex "{start}"{number} ;\n  nif:endIndex "{end}"{number}'


def _text(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)  # Turtle escapes as JSON does


def _iri(iri: str) -> str:
    return "<" + "".join(one if one > " " and one not in '<>"{}|^`\\' else f"\\u{ord(one):04X}" for one in iri) + ">"
