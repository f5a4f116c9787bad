"""A fixed choice of LAMA's questions: those that stores can be asked, some of each relation."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from ebert.probing.lama import read_lama
from ebert.probing.questions import Question, Questions, limited

DATA = Path(__file__).parents[2] / "shared" / "data" / "lama.tar.xz"


def load(path: Path) -> Questions:
    """Read LAMA; a subject's entity is the one with its name."""
    lama = read_lama(path)
    lama.questions = [replace(question, entity=question.subject) for question in lama.questions]
    return lama


@dataclass
class Choice:
    """The questions that are asked, and why others are not."""

    questions: list[Question]
    skipped: dict[str, int] = field(default_factory=dict)


def choose(
    questions: Iterable[Question],
    candidates: Iterable[str],
    covered: Sequence[Callable[[str], bool]],
    per_relation: int | None,
) -> Choice:
    """Take up to this many questions of each relation: answerable ones, about subjects that all of `covered` know."""
    answers = set(candidates)
    skipped = {"answer not a candidate": 0, "subject without a vector": 0, "beyond the number per relation": 0}
    known: dict[str, bool] = {}
    able: list[Question] = []
    for question in questions:
        if question.answers[0] not in answers:
            skipped["answer not a candidate"] += 1
            continue
        if question.subject not in known:
            known[question.subject] = all(has(question.subject) for has in covered)
        if not known[question.subject]:
            skipped["subject without a vector"] += 1
            continue
        able.append(question)
    chosen = able if per_relation is None else limited(able, per_relation)
    skipped["beyond the number per relation"] = len(able) - len(chosen)
    return Choice(chosen, skipped)
