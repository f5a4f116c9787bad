"""Reading samples: the FewRel release of the ERNIE paper, and a plain JSONL for one's own.

FewRel is one JSON array of ``{"label", "text", "ents": [[id, start, end, score], [...]]}``, subject first. One's own
file has a JSON object a line:
``{"text": ..., "subject": [start, end], "object": [start, end, "Title"], "label": ...}``;
here a span may also be written ``{"start": ..., "end": ..., "entity": ...}``.
"""

import dataclasses
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from ebert.errors import EbertError
from ebert.relations.data import Sample, Span


def read(path: str | Path) -> list[Sample]:
    """Read all samples of a file, or say which line is wrong."""
    return parse(text_of(path), Path(path).name)


def text_of(path: str | Path) -> str:
    """Read a file."""
    try:
        return Path(path).read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise EbertError(f"there is no file {path}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise EbertError(f"{path} cannot be read ({error})") from None


def read_line(line: str, where: str) -> Sample:
    """Read one sample from a line of JSON."""
    return _sample(_object(line, where), where)


def parse(text: str, name: str) -> list[Sample]:
    """Read samples from text; `name` is what messages call it."""
    rows = list(_array(text, name) if text.lstrip().startswith("[") else _lines(text, name))
    if not rows:
        raise EbertError(f"{name} is empty: it has no samples")
    samples = [_sample(row, where) for where, row in rows]
    if all("ents" in row for _, row in rows):
        return correct_starts(samples)
    return samples


def correct_starts(samples: Sequence[Sample]) -> list[Sample]:
    """Put right the mentions that begin a text: the release gives them the start 1 instead of 0.

    No mention of the release has start 0, and as its words stand apart by blanks, none can begin at 1. A file with a
    mention at 0 is another one and stays as it is.
    """
    if any(span.start == 0 for sample in samples for span in (sample.subject, sample.object)):
        return list(samples)
    return [
        dataclasses.replace(s, subject=_from_zero(s.text, s.subject), object=_from_zero(s.text, s.object))
        for s in samples
    ]


def _from_zero(text: str, span: Span) -> Span:
    if span.start != 1 or text[0].isspace() or (text[1].isalnum() and not text[0].isalnum()):  # '(Rome', not 'Rome'
        return span
    return dataclasses.replace(span, start=0)


def _array(text: str, name: str) -> Iterator[tuple[str, dict[str, Any]]]:
    try:
        rows = json.loads(text)
    except json.JSONDecodeError as error:
        raise EbertError(f"{name}, line {error.lineno}: this is not JSON ({error.msg})") from None
    except RecursionError:
        raise EbertError(f"{name} is nested too deeply; it should be an array of samples") from None
    for number, row in enumerate(rows, 1):
        where = f"{name}, sample {number}"
        if not isinstance(row, dict):
            raise EbertError(f"{where}: a JSON object is expected, not {str(row)[:40]!r}")
        yield where, row


def _lines(text: str, name: str) -> Iterator[tuple[str, dict[str, Any]]]:
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        where = f"{name}, line {number}"
        yield where, _object(line, where)


def _object(line: str, where: str) -> dict[str, Any]:
    try:
        row = json.loads(line)
    except json.JSONDecodeError as error:
        raise EbertError(f"{where}: this is not JSON ({error.msg} at character {error.colno})") from None
    except RecursionError:
        raise EbertError(f"{where}: this is nested too deeply; a JSON object with a text is expected") from None
    if not isinstance(row, dict):
        raise EbertError(f"{where}: a JSON object is expected, not {line[:40]!r}")
    return row


def _sample(row: dict[str, Any], where: str) -> Sample:
    text = row.get("text")
    if not isinstance(text, str):
        raise EbertError(f"{where}: it has no 'text'")
    label = row.get("label")
    if label is not None and (not isinstance(label, str) or not label.strip()):
        raise EbertError(f"{where}: the label must be a name, not {label!r}")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise EbertError(f"{where}: the text has a broken character at {error.start}") from None
    if "ents" in row:
        subject, object_ = _ents(row["ents"], where)
    else:
        subject, object_ = (_span(row.get(role), f"{where}: the {role}") for role in ("subject", "object"))
    return Sample(text, subject, object_, label, where)


def _ents(value: Any, where: str) -> list[Span]:
    if not isinstance(value, list) or len(value) != 2 or not all(isinstance(e, list) and len(e) >= 3 for e in value):
        raise EbertError(f"{where}: 'ents' must be subject and object, each [id, start, end, ...]")
    return [
        _span([e[1], e[2], e[0]], f"{where}: the {role}") for role, e in zip(("subject", "object"), value, strict=True)
    ]


def _span(value: Any, what: str) -> Span:
    """Read ``[start, end]``, ``[start, end, entity]`` or ``{"start", "end", "entity"}``."""
    if isinstance(value, dict):
        value = [value.get("start"), value.get("end"), value.get("entity")]
    if not isinstance(value, list) or len(value) not in (2, 3) or not all(type(v) is int for v in value[:2]):
        raise EbertError(f'{what} must be [start, end] or [start, end, "entity"], counted in characters: not {value!r}')
    entity = value[2] if len(value) == 3 else None
    if entity is not None and not isinstance(entity, str):
        raise EbertError(f"{what} must name its entity by a title or a Wikidata id, not {entity!r}")
    return Span(value[0], value[1], entity.strip() or None if entity else None)
