"""Samples of relation classification: a sentence, its subject and object, and the relation between them.

FewRel, in the release of the ERNIE paper, is one JSON array of ``{"label", "text", "ents": [[id, start, end, score],
[...]]}``, subject first. One's own file has a JSON object a line:
``{"text": ..., "subject": [start, end], "object": [start, end, "Title"], "label": ...}``;
here a span may also be written ``{"start": ..., "end": ..., "entity": ...}``.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Literal, get_args

from ebert._io import records
from ebert.errors import EbertError
from ebert.relations.options import ResolvingOptions
from ebert.text import titles
from ebert.text.passage import Passage
from ebert.vectors.entity import Entity
from ebert.vectors.store import Vectors

SUFFIXES = (".json", ".jsonl")


@dataclass(frozen=True, slots=True)
class SampleSpan:
    """Characters `start` to `end` of a text, and the entity that they name, if it is known."""

    start: int
    end: int
    entity: str | None = None
    """A title, or a Wikidata id such as Q90."""


@dataclass(frozen=True, slots=True)
class Sample:
    """A sentence with the two mentions whose relation is asked for."""

    text: str
    subject: SampleSpan
    object: SampleSpan
    label: str | None = None
    where: str = "the sample"
    """File and line it comes from, for messages."""

    def __post_init__(self) -> None:
        places = {
            "subject": f"{self.subject.start}:{self.subject.end}",
            "object": f"{self.object.start}:{self.object.end}",
        }
        for span, (role, place) in zip(self.spans, places.items(), strict=True):
            if not 0 <= span.start < span.end <= len(self.text):
                raise EbertError(
                    f"{self.where}: the {role} at {place} is not a span of the text, "
                    f"which has {len(self.text)} characters"
                )
            if not self.surface(span).strip():
                raise EbertError(f"{self.where}: the {role} at {place} is blank")
        if self.subject.start < self.object.end and self.object.start < self.subject.end:
            raise EbertError(
                f"{self.where}: the subject at {places['subject']} and the object at {places['object']} overlap; mark "
                "two spans that do not"
            )

    @property
    def spans(self) -> tuple[SampleSpan, SampleSpan]:
        """Subject and object."""
        return self.subject, self.object

    def surface(self, span: SampleSpan) -> str:
        """Return the words of the subject or the object."""
        return self.text[span.start : span.end]


def labels_of(samples: Sequence[Sample], of: str) -> list[str]:
    """Return the relations of a training set, sorted."""
    for sample in samples:
        if sample.label is None:
            raise EbertError(f"{sample.where}: it has no label, which {of} needs")
    found = sorted({str(sample.label) for sample in samples})
    if len(found) < 2:
        raise EbertError(f"{of} has one relation only ({found[0]!r}); at least two are needed to tell them apart")
    return found


def check_labels(samples: Iterable[Sample], labels: Sequence[str]) -> None:
    """Raise an error for a label that the classifier was not trained on."""
    known = set(labels)
    for sample in samples:
        if sample.label is None:
            raise EbertError(f"{sample.where}: it has no label, without which it cannot be evaluated")
        if sample.label not in known:
            raise EbertError(
                f"{sample.where}: the relation {sample.label!r} has no training sample; it is none of the "
                f"{len(labels)} that the classifier knows ({', '.join(labels[:5])}, ...)"
            )


def fixed_subset(samples: Sequence[Sample], size: int) -> list[Sample]:
    """Take this many samples, evenly over the relations, always the same ones. Each relation gives its first ones; if
    the number cannot be divided evenly, the first relations give one more.
    """
    by_label: dict[str | None, list[int]] = defaultdict(list)
    for index, sample in enumerate(samples):
        by_label[sample.label].append(index)
    ranked = sorted((rank, index) for own in by_label.values() for rank, index in enumerate(own))
    return [samples[index] for index in sorted(index for _, index in ranked[:size])]


def split_path(folder: Path, split: str) -> Path:
    """Return the file of a split in a data folder: train.json, train.jsonl, ..."""
    if not folder.is_dir():
        raise EbertError(f"{folder} is not a folder; give one with train.json and dev.json (or .jsonl) in it")
    for suffix in SUFFIXES:
        if (path := folder / f"{split}{suffix}").is_file():
            return path
    raise EbertError(f"{folder} has no {split}.json and no {split}.jsonl")


# Reading


@contextmanager
def naming(where: str) -> Iterator[None]:
    """Add the place to an error."""
    try:
        yield
    except EbertError as error:
        raise EbertError(f"{where}: {error}") from None


def read(path: str | Path) -> list[Sample]:
    """Read all samples of a file; raise `EbertError` with the line that is wrong."""
    return parse(records.read_text(Path(path)), Path(path).name)


def parse(text: str, name: str) -> list[Sample]:
    """Read samples from text; messages use its `name`."""
    if text.lstrip().startswith("["):
        try:
            array = json.loads(text)
        except json.JSONDecodeError as error:
            raise EbertError(f"{name}, line {error.lineno}: it is not JSON ({error.msg})") from None
        except RecursionError:
            raise EbertError(f"{name} is nested too deeply; it should be an array of samples") from None
        rows = [(f"{name}, sample {number}", row) for number, row in enumerate(array, 1)]
    else:
        rows = [(f"{name}, line {number}", row) for number, row in records.objects(text.split("\n"))]
    if not rows:
        raise EbertError(f"{name} is empty: it has no samples")
    samples = [_sample(row, where) for where, row in rows]
    return correct_starts(samples) if all("ents" in row for _, row in rows) else samples


def read_line(line: str, where: str) -> Sample:
    """Read one sample from a line of JSON."""
    with naming(where):
        row = records.parse_object(line)
    return _sample(row, where)


def as_sample(value: "str | Passage | Sample", where: str) -> Sample:
    """Return a passage as a sample: its first mention is the subject, its second the object."""
    if isinstance(value, Sample):
        return value
    with naming(where):
        passage = Passage.of(value)
        if len(passage.mentions) != 2:
            raise EbertError(
                f"it has {len(passage.mentions)} mentions; mark the subject and the object, and nothing else "
                "([[Title|surface]])"
            )
    subject, object_ = (SampleSpan(m.start, m.end, m.entity) for m in passage.mentions)
    return Sample(passage.text, subject, object_, where=where)


def correct_starts(samples: Sequence[Sample]) -> list[Sample]:
    """Correct the mentions that begin a text: the release gives them the start 1 instead of 0.

    No mention of the release has start 0, and as its words stand apart by blanks, none can begin at 1. A file with a
    mention at 0 is another one and stays as it is.
    """
    if any(span.start == 0 for sample in samples for span in sample.spans):
        return list(samples)
    return [replace(s, subject=_from_zero(s.text, s.subject), object=_from_zero(s.text, s.object)) for s in samples]


def _from_zero(text: str, span: SampleSpan) -> SampleSpan:
    if span.start != 1 or text[0].isspace() or (text[1].isalnum() and not text[0].isalnum()):  # '(Rome', not 'Rome'
        return span
    return replace(span, start=0)


def _sample(row: Any, where: str) -> Sample:
    """Make a sample from a JSON value, or raise the error that says why there is none."""
    with naming(where):
        if isinstance(row, EbertError):
            raise row
        if not isinstance(row, dict):
            raise EbertError(f"a JSON object is expected, not {str(row)[:40]!r}")
        text, label = row.get("text"), row.get("label")
        if not isinstance(text, str):
            raise EbertError("it has no 'text'")
        if label is not None and (not isinstance(label, str) or not label.strip()):
            raise EbertError(f"the label must be a name, not {label!r}")
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise EbertError(f"the text has a broken character at {error.start}") from None
        spans = [row.get("subject"), row.get("object")]
        if "ents" in row:
            ents = row["ents"]
            if (
                not isinstance(ents, list)
                or len(ents) != 2
                or not all(isinstance(e, list) and len(e) >= 3 for e in ents)
            ):
                raise EbertError("'ents' must be subject and object, each [id, start, end, ...]")
            spans = [[start, end, entity] for entity, start, end, *_ in ents]
        subject, object_ = (_span(span, f"the {role}") for span, role in zip(spans, ("subject", "object"), strict=True))
    return Sample(text, subject, object_, label, where)


def _span(value: Any, what: str) -> SampleSpan:
    """Read ``[start, end]``, ``[start, end, entity]`` or ``{"start", "end", "entity"}``."""
    if isinstance(value, dict):
        value = [value.get("start"), value.get("end"), value.get("entity")]
    if not isinstance(value, list) or len(value) not in (2, 3) or not all(type(v) is int for v in value[:2]):
        raise EbertError(f'{what} must be [start, end] or [start, end, "entity"], counted in characters: not {value!r}')
    entity = value[2] if len(value) == 3 else None
    if entity is not None and not isinstance(entity, str):
        raise EbertError(f"{what} must name its entity by a title or a Wikidata id, not {entity!r}")
    return SampleSpan(value[0], value[1], entity.strip() or None if entity else None)


# Entities

Way = Literal["id", "named", "title", "redirect", "surface", "none"]
WAYS: tuple[Way, ...] = get_args(Way)
"""By a Wikidata id, by the title given in the data, by a page or a redirect called like the mention, by what the
mention's words mean most often; or not at all."""

Found = tuple[Way, Entity | None]


class SampleResolver:
    """Finds the entities of mentions in a store."""

    def __init__(
        self, vectors: Vectors | None, options: ResolvingOptions | None = None, ids: Mapping[int, str] | None = None
    ) -> None:
        self._vectors, self._options = vectors, options or ResolvingOptions()
        self._ids = dict(ids or {})
        self._numbers: dict[str, int] = {}  # of titles, as far as they have a vector
        if vectors is not None:
            for number, title in self._ids.items():
                if (entity := vectors.find(title)) is not None:
                    self._numbers.setdefault(entity.title, number)
        self._find = cache(self._resolve)

    def __call__(self, sample: Sample, span: SampleSpan) -> Found:
        """Return the entity of a sample's subject or object, and how it was found."""
        return self._find(sample.surface(span), span.entity)

    def coverage(self, samples: Iterable[Sample]) -> dict[str, Any]:
        """Count samples, samples whose mentions both have a vector, mentions, and the ways to their entities."""
        both = [[self(sample, span)[0] for span in sample.spans] for sample in samples]
        ways = Counter(way for pair in both for way in pair)
        return {
            "samples": len(both),
            "covered": sum("none" not in pair for pair in both),
            "mentions": 2 * len(both),
            "ways": {way: ways[way] for way in WAYS},
        }

    def _resolve(self, surface: str, named: str | None) -> Found:
        if self._vectors is None:
            return "none", None
        number = titles.wikidata_id(named) if named else None
        if named is not None:
            title = self._ids.get(number) if number is not None else None
            found = self._vectors.find(named)  # the store's own ids go before a table's
            if found is None and title is not None:
                found = self._vectors.find(title)
            if found is not None:
                return ("named" if number is None else "id"), found
            if number is None or title is not None:  # what is meant is known, and has no vector
                return "none", None
        if self._options.ids_only:
            return "none", None
        way, found = self._by_words(self._vectors, surface)
        if found is None:
            return "none", None
        own = found.wikidata if found.wikidata is not None else self._numbers.get(found.title)
        if number is not None and own not in (None, number):
            return "none", None  # the words' entity is known to be another one
        return way, found

    def _by_words(self, vectors: Vectors, surface: str) -> Found:
        """Return the page of that name, unless the words mostly mean another one, as 'Sierra Nevada' does."""
        found = vectors.find(surface) if titles.wikidata_id(surface) is None else None
        best = next(iter(vectors.candidates(surface)), None)
        if best is not None and best.prior > self._options.threshold and best.entity != found:
            return "surface", best.entity
        return ("title" if found and found.title in titles.spellings(surface) else "redirect"), found
