"""GERBIL's layout: NIF in Turtle. A context holds a text; phrases say where in it they stand and what they mean."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from urllib.parse import unquote

from ebert.linking.readers import turtle
from ebert.linking.readers.labelled import Label, Reading, problem

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
        """Give the characters of a phrase, or None if it has none in this text."""
        start, end = _numbers(phrase)
        return (self.places[start], self.places[end]) if 0 <= start <= end < len(self.places) else None


def read_nif(lines: Iterable[str], name: str, reading: Reading) -> None:
    """Read a NIF file."""
    for context in contexts("".join(lines), name, lambda phrase: "taIdentRef" in phrase):
        reading.add(context.iri.partition("#")[0], context.text, list(_labels(context, reading)))


def contexts(text: str, name: str, wanted: Callable[[Properties], bool]) -> list[Context]:
    """Give the texts in a NIF file, with those of their phrases that are wanted."""
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
                raise problem(name, f"the phrase <{subject}> has no nif:referenceContext", LAYOUT)
            continue
        context = found["referenceContext"][0]
        if context not in texts:
            raise problem(name, f"the context <{context}> of a phrase has no nif:isString", LAYOUT)
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
            raise problem(name, why, LAYOUT) from None
    return made


def _short(predicate: str) -> str:
    for space in (_CORE, "its/rdf#", "ns/its-rdf#"):
        if space in predicate:
            return predicate.rpartition("#")[2]
    return "taIdentRef" if predicate.endswith(_ENTITY) else predicate


def _places(text: str, phrases: list[Properties], end: str | None) -> Sequence[int]:
    """Give the character at each place that a file counts: characters, or what Java takes for them.

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
    """Tell whether the words of a phrase stand where it says, if the text is counted like this."""
    (start, end), words = _numbers(phrase), phrase.get("anchorOf", [None])[0]
    if words is None or not 0 <= start <= end < len(places):
        return words is None
    return places[end] - places[start] == len(words) and text.startswith(words, places[start])


def _numbers(phrase: Properties) -> tuple[int, int]:
    """Give where a phrase begins and ends."""
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
    """Give the character at each of the places that Java counts."""
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
