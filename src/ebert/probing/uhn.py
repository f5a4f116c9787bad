"""Writing LAMA-UHN: LAMA without the questions whose subject's name gives the answer away, in LAMA's own format.

Lines are copied as they are. ``dropped.jsonl`` says which rule took which question out, and for a person's name which
part of it, at which rank.
"""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ebert._io import files
from ebert._io.progress import Advance, silent
from ebert._io.records import write_lines
from ebert.model.ebert import EBert
from ebert.probing import filters
from ebert.probing.lama import is_relation, lama_files, read_lama
from ebert.probing.questions import Question

DROPPED = "dropped.jsonl"


@dataclass(frozen=True)
class Deleted:
    """How many questions a relation had, and how many each rule took out."""

    relation: str
    questions: int
    string_match: int
    name: int


def write_uhn(
    data: str | Path, out: str | Path, model: EBert, *, overwrite: bool = False, advance: Advance = silent
) -> tuple[list[Deleted], dict[str, int]]:
    """Write LAMA-UHN to a folder, asking `model` about names.

    Give what was deleted of each relation, and how many lines were copied unjudged, by reason.
    """
    read = read_lama(data)
    files.refuse_existing(Path(out), overwrite=overwrite, marker=DROPPED)
    left = [question for question in read.questions if not question.gives_itself_away]
    guesses, lower = filters.guess(model, left, advance), model.vocabulary.lower_cases
    judged = [_judge(question, guesses, lower=lower) for question in read.questions]
    dropped = {row["where"]: row for row in judged if row is not None}
    with files.replacing_folder(Path(out), overwrite=overwrite, marker=DROPPED) as folder:
        for name, lines in lama_files(Path(data)):
            target = folder / name.parent.name / name.name if is_relation(name) else folder / name.name
            target.parent.mkdir(exist_ok=True)
            file_name = f"{name.parent.name}/{name.name}"
            with target.open("wb") as file:
                for number, line in enumerate(lines, 1):
                    if not is_relation(name) or f"{file_name}:{number}" not in dropped:
                        file.write(line)
        write_lines(folder / DROPPED, dropped.values())
    asked = Counter(question.relation for question in read.questions)
    rules = Counter((row["relation"], row["rule"]) for row in dropped.values())
    deleted = [Deleted(name, count, rules[name, "string-match"], rules[name, "name"]) for name, count in asked.items()]
    return deleted, read.reasons()


def _judge(question: Question, guesses: filters.Guesses, *, lower: bool) -> dict[str, Any] | None:
    """Say which rule drops a question, or None."""
    row = {"id": question.id, "relation": question.relation, "where": question.where}
    if question.gives_itself_away:
        return {**row, "rule": "string-match"}
    check = filters.check(question, guesses, lower=lower)
    if not check.dropped:
        return None
    parts = zip(question.subject.split(), check.parts, strict=True)
    return {**row, "rule": "name", "parts": [{"part": part, "rank": rank} for part, rank in parts]}
