"""The layouts that have one JSON object per line: ours, ZELDA's and ELEVANT's (KILT's is in `kilt`).

Ours: ``{"id", "text", "mentions": [{"start", "end", "entity"}], "ignore": [[start, end]], "sentences": [start]}``,
where everything except the text is optional.
"""

import io
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from ebert._io import records
from ebert.errors import EbertError
from ebert.linking.readers.layouts import Label, Reading
from ebert.text import titles

Row = dict[str, Any]

UNREADABLE = (LookupError, TypeError, ValueError, OverflowError, AttributeError)  # what odd values in an object raise
_NOT_ENTITIES = ("DATETIME", "QUANTITY")  # dates and amounts, which ELEVANT labels too
_UNKNOWN = "Unknown"  # ELEVANT's name for an entity without a known name


def rows(text: str, name: str, layout: str) -> Iterator[tuple[str, Row]]:
    """Yield the objects of a file, with their places."""
    for number, row in records.objects(io.StringIO(text)):
        if isinstance(row, EbertError):
            raise Reading(layout).problem(f"{name}, line {number}", str(row))
        yield f"{name}, line {number}", row


def text_of(where: str, row: Row, key: str, reading: Reading) -> str:
    """Return the text of an object under a key."""
    text = row.get(key)
    if not isinstance(text, str):
        raise reading.problem(where, f"there is no {key!r}")
    if not titles.is_text(text):
        raise reading.problem(where, f"{key!r} has half a surrogate pair and is not text")
    return text


def id_of(row: Row, number: int) -> Any:
    """Return the id of an object, or its number."""
    return number if row.get("id") is None else row["id"]


def name_of(value: Any) -> str:
    """Return the name of an entity, an empty one for none."""
    if value is not None and not isinstance(value, str):
        raise TypeError(f"{value!r} is no name")
    return value or ""


def _read(
    add: Callable[[Any, str, Row, Reading], None], unreadable: str, text: str, name: str, reading: Reading
) -> None:
    """Add the objects of a file by their ids and texts; if one has odd values, say what is unreadable."""
    for number, (where, row) in enumerate(rows(text, name, reading.layout), 1):
        own = text_of(where, row, "text", reading)
        try:
            add(id_of(row, number), own, row, reading)
        except UNREADABLE as error:
            why = f"there is no {error}" if isinstance(error, KeyError) else repr(error)
            raise reading.problem(where, f"{unreadable} ({why})") from None


def _add_own(name: Any, text: str, row: Row, reading: Reading) -> None:
    """Add an object of our own layout, which 'ebert link run --json' and 'ebert link wikipedia' write."""
    mentions = row.get("mentions", row.get("gold")) or ()
    labels = [Label(int(m["start"]), int(m["end"]), (name_of(m["entity"]),)) for m in mentions]
    ignore = [(int(start), int(end)) for start, end in row.get("ignore") or ()]
    sentences = [int(start) for start in row.get("sentences") or ()]
    title = name_of(row.get("title")) or None
    reading.add(name, text, labels, ignore=ignore, sentences=sentences, title=title)


def _add_zelda(name: Any, text: str, row: Row, reading: Reading) -> None:
    """Add an object of ZELDA's layout: spans in `index`, titles in `wikipedia_titles`."""
    pairs = zip(row["index"], row["wikipedia_titles"], strict=True)
    labels = [Label(int(start), int(end), (name_of(title),)) for (start, end), title in pairs]
    reading.add(name, text, labels, title=name.replace("_", " ") if isinstance(name, str) else None)


def _add_elevant(name: Any, text: str, row: Row, reading: Reading) -> None:
    """Add an object of ELEVANT's layout: labels with Wikidata ids and names.

    A label counts if it is neither optional nor coreference, has an id and lies inside the evaluation span; of nested
    labels the outermost counts. Labelled text that does not count is left out of the evaluation, and so is all text
    outside the evaluation span. Labels of things that Wikidata does not have become text with nothing to link.
    """
    first, last = map(int, row.get("evaluation_span") or (0, len(text)))
    title, article = name_of(row.get("title")), "wikipedia.org" in str(row.get("url", ""))
    ignore = [(start, end) for start, end in ((0, first), (last, len(text))) if start < end]
    labels: list[Label] = []
    for label in sorted(row["labels"], key=lambda label: (label["span"][0], -label["span"][1])):
        start, end = map(int, label["span"])
        entity, called = str(label.get("entity_id") or ""), str(label.get("name") or "")
        if start < first or end > last:
            reason = "label outside the evaluation span"
        elif label.get("optional") or label.get("coref"):
            reason = "label that is optional or coreference"
        elif entity.startswith(_NOT_ENTITIES):
            reason = "label of a date or an amount"
        elif titles.wikidata_id(entity) is None:
            reading.dropped["label without an id"] += 1
            continue
        elif labels and start < labels[-1].end:
            reason = "label inside another"
        else:
            labels.append(Label(start, end, (entity, called) if called != _UNKNOWN else (entity,)))
            continue
        reading.dropped[reason] += 1
        ignore.append((start, end))
    reading.add(name, text, labels, ignore=ignore, title=title if title and article else None)


read_own = partial(_read, _add_own, "the title, a mention, a span or a sentence cannot be read")
read_zelda = partial(_read, _add_zelda, "'index' and 'wikipedia_titles' do not fit")
read_elevant = partial(_read, _add_elevant, "the title or a label cannot be read")
