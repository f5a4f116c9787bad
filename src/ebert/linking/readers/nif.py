"""GERBIL's layout: NIF in Turtle. A context holds a text; phrases say where in it they stand and what they mean."""

from collections.abc import Iterable, Iterator
from urllib.parse import unquote

from ebert.linking.readers import turtle
from ebert.linking.readers.labelled import Label, Reading, problem

_CORE = "nif-core#"
_ENTITY = "rdf#taIdentRef"
_NOWHERE = ("notInWiki", "NIL", "null")  # what sets call entities that Wikipedia does not have
_DBPEDIA = "://dbpedia.org/resource/"

_Properties = dict[str, list[str]]


def read_nif(lines: Iterable[str], name: str, reading: Reading) -> None:
    """Read a NIF file."""
    subjects: dict[str, _Properties] = {}
    for subject, predicate, value in turtle.triples("".join(lines), name):
        subjects.setdefault(subject, {}).setdefault(_short(predicate), []).append(value)
    contexts = {subject: found for subject, found in subjects.items() if "isString" in found}
    phrases: dict[str, list[_Properties]] = {context: [] for context in contexts}
    for subject, found in subjects.items():
        if subject in contexts or "referenceContext" not in found:
            continue
        context = found["referenceContext"][0]
        if context not in contexts:
            raise problem(name, f"the context <{context}> of a phrase has no nif:isString", reading.layout)
        if "taIdentRef" in found:
            phrases[context].append(found)
    for context, found in contexts.items():
        text = found["isString"][0]
        try:
            labels = list(_labels(text, phrases[context], reading))
        except (KeyError, ValueError) as error:
            why = f"a phrase of <{context}> has no numbers where it begins and ends ({error})"
            raise problem(name, why, reading.layout) from None
        reading.add(context.partition("#")[0], text, labels)


def _short(predicate: str) -> str:
    for space in (_CORE, "its/rdf#", "ns/its-rdf#"):
        if space in predicate:
            return predicate.rpartition("#")[2]
    return "taIdentRef" if predicate.endswith(_ENTITY) else predicate


def _labels(text: str, phrases: list[_Properties], reading: Reading) -> Iterator[Label]:
    given = [(int(p["beginIndex"][0]), int(p["endIndex"][0]), p.get("anchorOf", [None])[0], p) for p in phrases]
    places = list(range(len(text) + 1))
    if any(words is not None and text[start:end] != words for start, end, words, _ in given):
        # NIF counts characters, but programs in Java wrote some files, and count most emoji as two.
        places = _java_places(text)
    for start, end, words, phrase in given:
        if not 0 <= start <= end < len(places):
            reading.dropped["label outside the text or without words"] += 1
            continue
        first, last = places[start], places[end]
        if words is not None and text[first:last] != words:
            reading.dropped["label whose words are not those at its place"] += 1
            continue
        if names := _names(phrase["taIdentRef"]):
            yield Label(first, last, names)
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
