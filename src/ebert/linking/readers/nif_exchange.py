"""NIF as a service speaks it with GERBIL: a text comes in, with or without mentions, and goes out with what they mean.

GERBIL sends the text alone if the mentions are to be found too (A2KB), and the mentions without their entities if only
these are wanted (D2KB).
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from urllib.parse import quote

from ebert.errors import EbertError
from ebert.linking.linked import LinkedMention
from ebert.linking.readers import turtle
from ebert.linking.readers.nif import Context, Properties, contexts
from ebert.text import Mention

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
class Asked:
    """A text that came in, and the mentions in it that are to be linked, if these were given."""

    iri: str
    text: str
    mentions: tuple[Mention, ...]
    places: Sequence[int]  # the character at each place that the sender counts

    def layers(self) -> Iterator[tuple[Mention, ...]]:
        """Give the mentions in groups in which none overlaps another: mentions that overlap are linked one by one."""
        left = sorted(self.mentions, key=lambda mention: (mention.start, -mention.end))
        while left:
            taken: list[Mention] = []
            later: list[Mention] = []
            for mention in left:
                (later if taken and mention.start < taken[-1].end else taken).append(mention)
            yield tuple(taken)
            left = later


def read_asked(text: str, name: str = "the request") -> list[Asked]:
    """Read what GERBIL sends."""
    found = contexts(text, name, _is_mention)
    if any(len(one.iri) > LONGEST for one in found):
        raise EbertError(f"{name}: the IRI of a nif:Context has more than {LONGEST:,} letters; use a shorter one")
    return [Asked(one.iri, one.text, tuple(dict.fromkeys(_given(one))), one.places) for one in found]


def write_answer(answered: Iterable[tuple[Asked, Iterable[LinkedMention]]]) -> str:
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


def _phrase(asked: Asked, mention: LinkedMention, back: dict[int, int]) -> str:
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
    """Give the IRI of an entity. Those of Wikipedia's pages have http, as in all data of the field."""
    if mention.url is None:
        return OWN + quote(mention.entity.replace(" ", "_"), safe="")
    return "http://" + mention.url.removeprefix("https://")


def _number(value: int) -> str:
    return f'"{value}"^^xsd:nonNegativeInteger'


def _text(text: str) -> str:
    return '"' + "".join(_ESCAPES.get(one) or (one if one >= " " else f"\\u{ord(one):04X}") for one in text) + '"'


def _iri(iri: str) -> str:
    return "<" + "".join(one if one > " " and one not in '<>"{}|^`\\' else f"\\u{ord(one):04X}" for one in iri) + ">"
