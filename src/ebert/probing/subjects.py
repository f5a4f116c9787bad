"""From a subject's name to its entity, offline.

The paper asks Wikidata for all entities with that English label and takes the lowest id. Where ids and labels are known
(``--labels`` and a store with Wikidata ids) that is done here; if that entity has no vector, the subject has none. A
name that is no label is looked up as a title, then as a redirect. LAMA's own ids are an oracle, which BERT does not
have either, and used on request only.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from ebert._io.records import read_table
from ebert.errors import EbertError
from ebert.probing.questions import Question
from ebert.text import titles
from ebert.vectors.entity import Entity
from ebert.vectors.store import Vectors


@dataclass(frozen=True, slots=True)
class Subject:
    """The entity of a subject, and the way it was found."""

    entity: Entity
    way: str  # 'given', 'oracle', 'label', 'title' or 'redirect'


def read_labels(path: str | Path) -> dict[str, int]:
    """Read a table of Wikidata ids and English labels (columns ``id`` and ``label``); the lowest id of a label wins."""
    labels: dict[str, int] = {}
    for number, row in read_table(Path(path), needed="label"):
        if isinstance(row, EbertError):
            raise EbertError(f"{path}, line {number}: {row}")
        key, label = row.get("id"), row.get("label")
        found = titles.wikidata_id(str(key)) if key is not None else None
        if found is None or not isinstance(label, str):
            raise EbertError(f"{path}, line {number}: an 'id' such as Q42 and a 'label' are needed")
        labels[label] = min(found, labels.get(label, found))
    if not labels:
        raise EbertError(f"{path} has no labels")
    return labels


class Finder:
    """Finds the entities of subjects in a store."""

    def __init__(self, vectors: Vectors, *, labels: Mapping[str, int] | None = None, oracle: bool = False) -> None:
        self._vectors, self._labels, self._oracle = vectors, labels or {}, oracle
        self._known: dict[tuple[str, str | None, str | None], Subject | None] = {}

    def __call__(self, question: Question) -> Subject | None:
        """Find the entity of a question's subject, or None if it has no vector."""
        if not question.subject:
            return None
        key = (question.subject, question.entity, question.oracle if self._oracle else None)
        if key not in self._known:
            self._known[key] = self._find(*key)
        return self._known[key]

    def _find(self, name: str, given: str | None, oracle: str | None) -> Subject | None:
        for way, title in self._ways(name, given, oracle):
            if (entity := self._vectors.find(title)) is not None:
                return Subject(entity, way)
            if way in ("given", "label"):  # whoever names an entity means no other; so does the paper's rule
                return None
        entity = self._vectors.find(name)
        if entity is None:
            return None
        return Subject(entity, "title" if entity.title in titles.spellings(name) else "redirect")

    def _ways(self, name: str, given: str | None, oracle: str | None) -> Iterable[tuple[str, str]]:
        if given is not None:
            yield "given", given
        if oracle is not None:
            yield "oracle", oracle
        if name in self._labels:
            yield "label", f"Q{self._labels[name]}"


def find_all(questions: Iterable[Question], finder: Finder | None) -> dict[str, Subject]:
    """Give the subjects of questions that have a vector, by the questions' ids."""
    if finder is None:
        return {}
    return {question.id: found for question in questions if (found := finder(question)) is not None}


def ways(subjects: Mapping[str, Subject]) -> dict[str, int]:
    """Count by which way subjects were found."""
    return dict(sorted(Counter(subject.way for subject in subjects.values()).items()))
