"""The layouts that have one JSON object a line: ours, ZELDA's and ELEVANT's (KILT's is in `kilt`).

Ours: ``{"id", "text", "mentions": [{"start", "end", "entity"}], "ignore": [[start, end]], "sentences": [start]}``, of
which all but the text may be missing.
"""

import json
from collections.abc import Iterable, Iterator
from typing import Any

from ebert.linking.readers.labelled import Label, Reading, problem
from ebert.text import titles

Row = tuple[str, dict[str, Any]]  # where it stands, for messages; what it is

UNREADABLE = (LookupError, TypeError, ValueError, OverflowError, AttributeError)  # what odd values in an object raise
_NOT_ENTITIES = ("DATETIME", "QUANTITY")  # dates and amounts, which ELEVANT labels too
_UNKNOWN = "Unknown"  # what ELEVANT calls an entity whose name it does not know


def rows(lines: Iterable[str], name: str, layout: str) -> Iterator[Row]:
    """Give the objects of a file, with where they stand."""
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        where = f"{name}, line {number}"
        try:
            value = decoded(line)
        except ValueError as error:
            raise problem(where, f"not JSON ({error})", layout) from None
        if not isinstance(value, dict):
            raise problem(where, "not a JSON object", layout)
        yield where, value


def decoded(line: str) -> Any:
    """Decode a line; whatever is wrong with it is a `ValueError`."""
    try:
        return json.loads(line)
    except RecursionError:
        raise ValueError("it has too many brackets inside each other") from None


def id_of(row: dict[str, Any], number: int) -> Any:
    """Give the id of an object, or its number."""
    found = row.get("id")
    return number if found is None else found


def name_of(value: Any) -> str:
    """Give the name of an entity, an empty one for none."""
    if value is not None and not isinstance(value, str):
        raise TypeError(f"{value!r} is no name")
    return value or ""


def read_own(given: Iterable[Row], reading: Reading) -> None:
    """Read our own layout, which 'ebert link run --json' and 'ebert link wikipedia' write."""
    for number, (where, row) in enumerate(given, 1):
        text = text_of(where, row, "text", reading)
        try:
            mentions = row.get("mentions", row.get("gold")) or ()
            labels = [Label(int(m["start"]), int(m["end"]), (name_of(m["entity"]),)) for m in mentions]
            ignore = [(int(start), int(end)) for start, end in row.get("ignore") or ()]
            sentences = [int(start) for start in row.get("sentences") or ()]
            title = name_of(row.get("title")) or None
        except UNREADABLE as error:
            raise problem(
                where, f"the title, a mention, a span or a sentence cannot be read ({error!r})", reading.layout
            ) from None
        reading.add(id_of(row, number), text, labels, ignore=ignore, sentences=sentences, title=title)


def read_zelda(given: Iterable[Row], reading: Reading) -> None:
    """Read ZELDA's layout: spans in `index`, titles in `wikipedia_titles`."""
    for number, (where, row) in enumerate(given, 1):
        text = text_of(where, row, "text", reading)
        try:
            spans, names = row["index"], row["wikipedia_titles"]
            pairs = list(zip(spans, names, strict=True))
            labels = [Label(int(start), int(end), (name_of(name),)) for (start, end), name in pairs]
        except KeyError as error:
            raise problem(where, f"there is no {error}", reading.layout) from None
        except UNREADABLE as error:
            raise problem(where, f"'index' and 'wikipedia_titles' do not fit ({error})", reading.layout) from None
        name = id_of(row, number)
        reading.add(name, text, labels, title=name.replace("_", " ") if isinstance(name, str) else None)


def read_elevant(given: Iterable[Row], reading: Reading) -> None:
    """Read ELEVANT's layout: labels with Wikidata ids and names.

    Those labels count that are neither optional nor coreference, have an id and lie inside the evaluation span; of
    nested ones the outermost. What was labelled but does not count is left out of the evaluation, as is all text
    outside the evaluation span; labels of what Wikidata does not have stay text with nothing to link.
    """
    for number, (where, row) in enumerate(given, 1):
        text = text_of(where, row, "text", reading)
        try:
            first, last = map(int, row.get("evaluation_span") or (0, len(text)))
            labels, ignore = _elevant_labels(row["labels"], first, last, reading)
            title = name_of(row.get("title")) or None
        except UNREADABLE as error:
            raise problem(where, f"the title or a label cannot be read ({error!r})", reading.layout) from None
        ignore += [(0, first)] * (first > 0) + [(last, len(text))] * (last < len(text))
        article = "wikipedia.org" in str(row.get("url", ""))
        reading.add(id_of(row, number), text, labels, ignore=ignore, title=title if article else None)


def _elevant_labels(
    given: list[dict[str, Any]], first: int, last: int, reading: Reading
) -> tuple[list[Label], list[tuple[int, int]]]:
    labels: list[Label] = []
    ignore: list[tuple[int, int]] = []
    end = -1
    for label in sorted(given, key=lambda label: (label["span"][0], -label["span"][1])):
        start, stop = map(int, label["span"])
        entity, name = str(label.get("entity_id") or ""), str(label.get("name") or "")
        if start < first or stop > last:
            reason = "label outside the evaluation span"
        elif label.get("optional") or label.get("coref"):
            reason = "label that is optional or coreference"
        elif entity.startswith(_NOT_ENTITIES):
            reason = "label of a date or an amount"
        elif titles.wikidata_id(entity) is None:
            reading.dropped["label without an id"] += 1
            continue
        elif start < end:
            reason = "label inside another"
        else:
            end = stop
            labels.append(Label(start, stop, (entity, name) if name != _UNKNOWN else (entity,)))
            continue
        reading.dropped[reason] += 1
        ignore.append((start, stop))
    return labels, ignore


def text_of(where: str, row: dict[str, Any], key: str, reading: Reading) -> str:
    """Give the text that an object has under a key."""
    text = row.get(key)
    if not isinstance(text, str):
        raise problem(where, f"there is no {key!r}", reading.layout)
    if not titles.is_text(text):
        raise problem(where, f"{key!r} has half a surrogate pair and is not text", reading.layout)
    return text
