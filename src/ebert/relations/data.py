"""Samples of relation classification: a sentence, its subject and object, and the relation between them.

FewRel, in the release of the ERNIE paper, is one JSON array of ``{"label", "text", "ents": [[id, start, end, score],
[...]]}``, subject first. One's own file has a JSON object a line:
``{"text": ..., "subject": [start, end], "object": [start, end, "Title"], "label": ...}``;
here a span may also be written ``{"start": ..., "end": ..., "entity": ...}``.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
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
    """Characters `start` to `end` of a text, and the entity they name, where somebody has said so."""

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
        for role, span in (("subject", self.subject), ("object", self.object)):
            if not 0 <= span.start < span.end <= len(self.text):
                raise EbertError(
                    f"{self.where}: the {role} at {span.start}:{span.end} is not a span of the text, "
                    f"which has {len(self.text)} characters"
                )
            if not self.text[span.start : span.end].strip():
                raise EbertError(f"{self.where}: the {role} at {span.start}:{span.end} is blank")
        first, second = sorted((self.subject, self.object), key=lambda span: span.start)
        if second.start < first.end:
            raise EbertError(
                f"{self.where}: the subject at {self.subject.start}:{self.subject.end} and the object at "
                f"{self.object.start}:{self.object.end} overlap; mark two spans that do not"
            )

    def surface(self, span: SampleSpan) -> str:
        """Return the words of the subject or the object."""
        return self.text[span.start : span.end]


def labels_of(samples: Sequence[Sample], of: str) -> list[str]:
    """Return the relations of a training set, sorted."""
    for sample in samples:
        if sample.label is None:
            raise EbertError(f"{sample.where}: it has no label, which {of} needs")
    found = sorted({sample.label for sample in samples if sample.label is not None})
    if len(found) < 2:
        raise EbertError(f"{of} has one relation only ({found[0]!r}); at least two are needed to tell them apart")
    return found


def check_labels(samples: Iterable[Sample], labels: Sequence[str]) -> None:
    """Raise an error about a label that the classifier has not been trained for."""
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
    """Take so many samples, evenly over the relations, always the same ones.

    Each relation gives its first ones; where they do not divide evenly, the first relations give one more.
    """
    if size >= len(samples):
        return list(samples)
    rank: Counter[str | None] = Counter()
    ranked: list[tuple[int, int]] = []
    for index, sample in enumerate(samples):
        ranked.append((rank[sample.label], index))
        rank[sample.label] += 1
    chosen = sorted(index for _, index in sorted(ranked)[:size])
    return [samples[index] for index in chosen]


def split_path(folder: Path, split: str) -> Path:
    """Return the file of a split in a data folder: train.json, train.jsonl, ..."""
    if not folder.is_dir():
        raise EbertError(f"{folder} is not a folder; give one with train.json and dev.json (or .jsonl) in it")
    for suffix in SUFFIXES:
        if (path := folder / f"{split}{suffix}").is_file():
            return path
    raise EbertError(f"{folder} has no {split}.json and no {split}.jsonl")


# Reading


def read(path: str | Path) -> list[Sample]:
    """Read all samples of a file; raise `EbertError` with the line that is wrong."""
    return parse(records.read_text(Path(path)), Path(path).name)


def parse(text: str, name: str) -> list[Sample]:
    """Read samples from text; `name` is what messages call it."""
    rows = list(_array(text, name) if text.lstrip().startswith("[") else _lines(text, name))
    if not rows:
        raise EbertError(f"{name} is empty: it has no samples")
    samples = [_sample(row, where) for where, row in rows]
    return correct_starts(samples) if all("ents" in row for _, row in rows) else samples


def read_line(line: str, where: str) -> Sample:
    """Read one sample from a line of JSON."""
    return _sample(_object(line, where), where)


def as_sample(value: "str | Passage | Sample", where: str) -> Sample:
    """Return a passage as a sample: its first mention is the subject, its second the object."""
    if isinstance(value, Sample):
        return value
    try:
        passage = Passage.of(value)
    except EbertError as error:
        raise EbertError(f"{where}: {error}") from None
    if len(passage.mentions) != 2:
        raise EbertError(
            f"{where}: it has {len(passage.mentions)} mentions; mark the subject and the object, and nothing else "
            "([[Title|surface]])"
        )
    subject, object_ = (SampleSpan(m.start, m.end, m.entity) for m in passage.mentions)
    return Sample(passage.text, subject, object_, where=where)


def correct_starts(samples: Sequence[Sample]) -> list[Sample]:
    """Correct the mentions that begin a text: the release gives them the start 1 instead of 0.

    No mention of the release has start 0, and as its words stand apart by blanks, none can begin at 1. A file with a
    mention at 0 is another one and stays as it is.
    """
    if any(span.start == 0 for sample in samples for span in (sample.subject, sample.object)):
        return list(samples)
    return [replace(s, subject=_from_zero(s.text, s.subject), object=_from_zero(s.text, s.object)) for s in samples]


def _from_zero(text: str, span: SampleSpan) -> SampleSpan:
    if span.start != 1 or text[0].isspace() or (text[1].isalnum() and not text[0].isalnum()):  # '(Rome', not 'Rome'
        return span
    return replace(span, start=0)


def _array(text: str, name: str) -> Iterator[tuple[str, dict[str, Any]]]:
    try:
        rows = json.loads(text)
    except json.JSONDecodeError as error:
        raise EbertError(f"{name}, line {error.lineno}: it is not JSON ({error.msg})") from None
    except RecursionError:
        raise EbertError(f"{name} is nested too deeply; it should be an array of samples") from None
    for number, row in enumerate(rows, 1):
        where = f"{name}, sample {number}"
        if not isinstance(row, dict):
            raise EbertError(f"{where}: a JSON object is expected, not {str(row)[:40]!r}")
        yield where, row


def _lines(text: str, name: str) -> Iterator[tuple[str, dict[str, Any]]]:
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            where = f"{name}, line {number}"
            yield where, _object(line, where)


def _object(line: str, where: str) -> dict[str, Any]:
    try:
        return records.parse_object(line)
    except EbertError as error:
        raise EbertError(f"{where}: {error}") from None


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


def _ents(value: Any, where: str) -> list[SampleSpan]:
    if not isinstance(value, list) or len(value) != 2 or not all(isinstance(e, list) and len(e) >= 3 for e in value):
        raise EbertError(f"{where}: 'ents' must be subject and object, each [id, start, end, ...]")
    return [
        _span([e[1], e[2], e[0]], f"{where}: the {role}") for role, e in zip(("subject", "object"), value, strict=True)
    ]


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


@dataclass(slots=True)
class Coverage:
    """How many mentions and samples have a vector, and by which way."""

    samples: int = 0
    covered: int = 0
    """Samples whose subject and object both have a vector."""
    mentions: int = 0
    ways: dict[str, int] = field(default_factory=lambda: dict.fromkeys(WAYS, 0))

    def as_json(self) -> dict[str, object]:
        """Return it for `run.json`."""
        return asdict(self)


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
        self._known: dict[tuple[str, str | None], tuple[Way, Entity | None]] = {}

    def __call__(self, sample: Sample, span: SampleSpan) -> tuple[Way, Entity | None]:
        """Return the entity of a sample's subject or object, and how it was found."""
        key = (sample.surface(span), span.entity)
        if key not in self._known:
            self._known[key] = self._resolve(*key) if self._vectors is not None else ("none", None)
        return self._known[key]

    def coverage(self, samples: Iterable[Sample]) -> Coverage:
        """Count by which way the entities of samples are found."""
        total, ways = Coverage(), Counter[str]()
        for sample in samples:
            both = [self(sample, span)[0] for span in (sample.subject, sample.object)]
            ways.update(both)
            total.samples += 1
            total.covered += "none" not in both
        total.mentions = 2 * total.samples
        total.ways = {way: ways[way] for way in WAYS}
        return total

    def _resolve(self, surface: str, named: str | None) -> tuple[Way, Entity | None]:
        assert self._vectors is not None
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
        way, found = self._by_words(surface)
        if found is None or (number is not None and self._number(found) not in (None, number)):
            return "none", None  # the words' entity is known to be another one
        return way, found

    def _by_words(self, surface: str) -> tuple[Way, Entity | None]:
        """Return the page of that name, unless the words mostly mean another one, as 'Sierra Nevada' does."""
        assert self._vectors is not None
        found = self._vectors.find(surface) if titles.wikidata_id(surface) is None else None
        best = next(iter(self._vectors.candidates(surface)), None)
        if best is not None and best.prior > self._options.threshold and best.entity != found:
            return "surface", best.entity
        if found is None:
            return "none", None
        return ("title" if found.title in titles.spellings(surface) else "redirect"), found

    def _number(self, entity: Entity) -> int | None:
        return entity.wikidata if entity.wikidata is not None else self._numbers.get(entity.title)
