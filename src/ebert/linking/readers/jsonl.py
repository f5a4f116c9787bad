"""The layouts that have one JSON object a line: ours, ZELDA's and ELEVANT's (KILT's is in `kilt`).

Ours: ``{"id", "text", "mentions": [{"start", "end", "entity"}], "ignore": [[start, end]], "sentences": [start]}``, of
which all but the text may be missing.
"""

import io
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from ebert._io import records
from ebert.errors import EbertError
from ebert.linking.readers.layouts import Label, Layout, Reading
from ebert.text import titles

Row = tuple[str, dict[str, Any]]  # where it stands, for messages; what it is

UNREADABLE = (LookupError, TypeError, ValueError, OverflowError, AttributeError)  # what odd values in an object raise
_NOT_ENTITIES = ("DATETIME", "QUANTITY")  # dates and amounts, which ELEVANT labels too
_UNKNOWN = "Unknown"  # what ELEVANT calls an entity whose name it does not know


def rows(lines: Iterable[str], name: str, layout: str) -> Iterator[Row]:
    """Yield the objects of a file, with where they stand."""
    for number, row in records.objects(lines):
        if isinstance(row, EbertError):
            raise Reading(layout).problem(f"{name}, line {number}", str(row))
        yield f"{name}, line {number}", row


def by_rows(read: Callable[[Iterable[Row], Reading], None]) -> Callable[[str, str, Reading], None]:
    """Make a reader of texts of a reader of rows."""
    return lambda text, name, reading: read(rows(io.StringIO(text), name, reading.layout), reading)


def id_of(row: dict[str, Any], number: int) -> Any:
    """Return the id of an object, or its number."""
    found = row.get("id")
    return number if found is None else found


def name_of(value: Any) -> str:
    """Return the name of an entity, an empty one for none."""
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
            raise reading.problem(
                where, f"the title, a mention, a span or a sentence cannot be read ({error!r})"
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
            raise reading.problem(where, f"there is no {error}") from None
        except UNREADABLE as error:
            raise reading.problem(where, f"'index' and 'wikipedia_titles' do not fit ({error})") from None
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
            raise reading.problem(where, f"the title or a label cannot be read ({error!r})") from None
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
    """Return the text that an object has under a key."""
    text = row.get(key)
    if not isinstance(text, str):
        raise reading.problem(where, f"there is no {key!r}")
    if not titles.is_text(text):
        raise reading.problem(where, f"{key!r} has half a surrogate pair and is not text")
    return text


LAYOUTS = (
    Layout("zelda", lambda head: "wikipedia_titles" in head.row, by_rows(read_zelda), lambda _: False),
    Layout("elevant", lambda head: "labels" in head.row, by_rows(read_elevant), lambda _: False),
    Layout("jsonl", lambda head: "text" in head.row and "input" not in head.row, by_rows(read_own), lambda _: False),
)
