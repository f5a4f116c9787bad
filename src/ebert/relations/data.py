"""Samples of relation classification: a sentence, its subject and object, and the relation between them."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ebert.errors import EbertError

SUFFIXES = (".json", ".jsonl")


@dataclass(frozen=True, slots=True)
class Span:
    """Characters `start` to `end` of a text, and the entity they name, where somebody has said so."""

    start: int
    end: int
    entity: str | None = None
    """A title, or a Wikidata id such as Q90."""


@dataclass(frozen=True, slots=True)
class Sample:
    """A sentence with the two mentions whose relation is asked for."""

    text: str
    subject: Span
    object: Span
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

    def surface(self, span: Span) -> str:
        """Give the words of the subject or the object."""
        return self.text[span.start : span.end]


def labels_of(samples: Sequence[Sample], of: str) -> list[str]:
    """Give the relations of a training set, in the order of the alphabet."""
    for sample in samples:
        if sample.label is None:
            raise EbertError(f"{sample.where}: it has no label, which {of} needs")
    found = sorted({sample.label for sample in samples if sample.label is not None})
    if len(found) < 2:
        raise EbertError(f"{of} has one relation only ({found[0]!r}); at least two are needed to tell them apart")
    return found


def check_labels(samples: Iterable[Sample], labels: Sequence[str]) -> None:
    """Complain about a label that the classifier has not been trained for."""
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
    """Take so many samples, evenly over the relations and always the same ones.

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
    """Give the file of a split in a data folder: train.json, train.jsonl, ..."""
    if not folder.is_dir():
        raise EbertError(f"{folder} is not a folder; give one with train.json and dev.json (or .jsonl) in it")
    for suffix in SUFFIXES:
        if (path := folder / f"{split}{suffix}").is_file():
            return path
    raise EbertError(f"{folder} has no {split}.json and no {split}.jsonl")
