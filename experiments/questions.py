"""LAMA's questions: reading them, and a fixed choice of those that stores can be asked."""

import hashlib
import json
import tarfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from ebert import EbertError, Mention, Passage

DATA = Path(__file__).parents[2] / "shared" / "data" / "lama.tar.xz"
GOOGLE_RE = {
    "date_of_birth": "[X] (born [Y]).",
    "place_of_birth": "[X] was born in [Y] .",
    "place_of_death": "[X] died in [Y] .",
}


@dataclass(frozen=True)
class Question:
    """A question, its subject and its answer."""

    relation: str
    key: str  # tells it from all others
    subject: str
    answer: str
    passage: Passage

    @property
    def gives_itself_away(self) -> bool:
        """Whether the answer is a part of the subject's name: the string-match filter takes such questions out."""
        return self.answer.lower() in self.subject.lower()

    @property
    def rank(self) -> str:
        """Its place in a fixed pseudo-random order."""
        return hashlib.sha256(self.key.encode()).hexdigest()


@dataclass(frozen=True)
class Lama:
    """The benchmark as it is on disk."""

    questions: list[Question]
    vocabulary: list[str]


def load(path: Path) -> Lama:
    """Read LAMA from its archive, or from the folder that it unpacks to."""
    templates: dict[str, str] = dict(GOOGLE_RE)
    lines: dict[str, list[dict[str, Any]]] = {}
    vocabulary: list[str] = []
    for name, file in _files(path):
        if name.name == "relations.jsonl":
            templates |= {line["relation"]: line["template"] for line in map(json.loads, file)}
        elif name.name == "common_vocab_cased.txt":
            vocabulary = [word for line in file if (word := line.decode().strip())]
        elif name.suffix == ".jsonl" and name.parent.name in ("TREx", "Google_RE"):
            lines[name.stem.removesuffix("_test")] = [_fields(line) for line in file]
    if not vocabulary or not lines:
        raise EbertError(f"{path} is not LAMA: it has no common_vocab_cased.txt or no questions (--data)")
    order = sorted(lines, key=lambda name: (name in GOOGLE_RE, int(name[1:]) if name[1:].isdigit() else 0, name))
    return Lama(
        [_question(name, templates[name], number, line) for name in order for number, line in enumerate(lines[name])],
        vocabulary,
    )


def _fields(line: bytes) -> dict[str, Any]:
    whole = json.loads(line)
    return {name: whole.get(name) for name in ("uuid", "sub_label", "obj_label")}  # the evidences are most of the file


def _question(relation: str, template: str, number: int, line: Mapping[str, Any]) -> Question:
    subject = line["sub_label"]
    before, after = template.replace("[Y]", "[MASK]").split("[X]")
    mention = Mention(len(before), len(before) + len(subject), subject)
    key = f"{relation}/{line['uuid'] or number}"
    return Question(relation, key, subject, line["obj_label"], Passage(before + subject + after, (mention,)))


def _files(path: Path) -> Iterator[tuple[Path, IO[bytes] | Iterable[bytes]]]:
    if path.is_dir():
        for name in sorted(path.rglob("*")):
            if name.is_file():
                with name.open("rb") as file:
                    yield name, file
        return
    try:
        with tarfile.open(path) as archive:
            for member in archive:
                content = archive.extractfile(member)
                if content is not None:
                    yield Path(member.name), content
    except (OSError, tarfile.TarError) as error:
        raise EbertError(f"cannot read LAMA from {path} ({error}); give its archive or folder with --data") from None


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
    """Take up to so many questions of each relation: answerable ones, about subjects that all of `covered` know."""
    answers = set(candidates)
    skipped = {"answer not a candidate": 0, "subject without a vector": 0, "beyond the number per relation": 0}
    known: dict[str, bool] = {}
    taken: dict[str, list[Question]] = {}
    for question in questions:
        if question.answer not in answers:
            skipped["answer not a candidate"] += 1
            continue
        if question.subject not in known:
            known[question.subject] = all(has(question.subject) for has in covered)
        if not known[question.subject]:
            skipped["subject without a vector"] += 1
            continue
        taken.setdefault(question.relation, []).append(question)
    chosen = []
    for own in taken.values():
        kept = own if per_relation is None else sorted(own, key=lambda question: question.rank)[:per_relation]
        skipped["beyond the number per relation"] += len(own) - len(kept)
        chosen += kept
    return Choice(chosen, skipped)
