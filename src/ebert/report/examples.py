"""Questions to look at: those that changed, and the native-language examples of the paper's Table 1."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np

from ebert.report import published
from ebert.report.comparison import Difference, common
from ebert.report.document import Cell, Section, Table
from ebert.report.material import Material
from ebert.report.runs import Column

TOP = 3  # answers to show
NATIVE = "P103"
LICENCE = "The questions quoted in this report are LAMA's, licensed CC BY-NC 4.0: mind it before you publish it."


def native(material: Material) -> Section | None:
    """Write the native-language examples; none if the runs are of other questions."""
    if not material.is_lama:
        return None
    title = "Native language: the examples of Table 1"
    text = ["The best answers to the paper's five examples, with their probabilities. A tick marks a right answer."]
    text += _silence(material)
    theirs = published.figures()["native language"]
    people = [name for name in theirs if name != "columns"]
    asked: dict[str, Mapping[str, Any]] = {}  # by subject
    for question in material.questions.values():
        if question["relation"] == NATIVE and question["subject"] in people:
            asked.setdefault(question["subject"], question)
    if not asked:
        text.append("None of them was asked.")
        return Section("native", title, text)
    wanted = {one["id"] for one in asked.values()}
    answers = {run.name: run.answers(wanted) for run in material.runs}
    columns = [column for column in material.columns if answers[column.run.name]]
    rows: list[tuple[Cell, ...]] = []
    for name in people:
        found = asked.get(name)
        row: list[Cell] = [name, ", ".join(found["answers"]) if found else "not asked"]
        for column in columns:
            prediction = answers[column.run.name].get(found["id"]) if found else None
            row.append(_best(prediction, column.mode) if prediction else None)
        rows.append((*row, *theirs[name]))
    said = [f"{one} (published)" for one in theirs["columns"]]
    header = ("subject", "answer", *(column.label for column in columns), *said)
    return Section("native", title, text, [Table("native-language", "Native language", header, rows)])


def changed(material: Material) -> Section | None:
    """Write the examples that changed; none if nothing is compared."""
    if not material.changes:
        return None
    title = "Examples that changed"
    text = [
        "Questions that a mode has right and plain BERT has wrong (gained), and the other way round (lost): at most "
        f"{material.options.examples} of each, from as many relations as there are, where the rank moved most."
    ]
    text += _silence(material)
    parts = [
        _changed(material, column, plain, compared, number)
        for number, (column, plain, compared) in enumerate(material.changes, 1)
        if column.run not in material.without_questions
    ]
    if parts and material.is_lama:
        text.append(LICENCE)
    return Section("examples", title, text, parts)


def _silence(material: Material) -> list[str]:
    """Say why examples are missing, if they are."""
    names = ", ".join(run.label for run in material.without_questions)
    return [
        f"{names}: no questions.jsonl in the run folder, so that no question can be quoted. "
        "Shipped results leave it out for the licence of LAMA's text; a run of your own has it."
    ] * bool(names)


def _changed(material: Material, column: Column, plain: Column, compared: Difference, number: int) -> Table:
    questions = material.questions
    here, there = common(column.run, plain.run)
    ranks = column.run.outcomes.rank[column.mode][here]
    before = plain.run.outcomes.rank[plain.mode][there]
    relation = column.run.outcomes.relation[here]
    names = column.run.outcomes.relations
    chosen: list[tuple[str, str]] = []
    for what, right, other, counts in (
        ("gained", ranks, before, compared.gained), ("lost", before, ranks, compared.lost),
    ):  # fmt: skip
        places = np.flatnonzero((right == 1) & (other > 1))
        places = places[np.argsort(-other[places], kind="stable")]  # where the rank moved most comes first
        turns: Counter[str] = Counter()  # the first of each relation, then the second of each, and so on
        queue = []
        for place in places.tolist():
            one, name = column.run.ids[here[place]], names[relation[place]]
            if one in questions:
                queue.append((turns[name], -counts[name], name, one))
                turns[name] += 1
        chosen += [(what, one) for _, _, _, one in sorted(queue)[: material.options.examples]]
    wanted = {one for _, one in chosen}
    ours = column.run.answers(wanted)
    theirs = ours if plain.run is column.run else plain.run.answers(wanted)
    rows: list[tuple[Cell, ...]] = []
    for what, one in chosen:
        question = questions[one]
        rows.append((
            what, material.label(ours[one]["relation"]), str(question["text"]), ", ".join(question["answers"]),
            _best(theirs[one], plain.mode), _best(ours[one], column.mode),
            int(theirs[one]["modes"][plain.mode]["rank"]), int(ours[one]["modes"][column.mode]["rank"]),
            ours[one].get("count"),
        ))  # fmt: skip
    gained, lost = sum(compared.gained.values()), sum(compared.lost.values())
    header = ("what", "relation", "question", "answer", plain.label, column.label, "rank before", "rank now", "links")
    title = f"{column.label}: {gained:,} gained, {lost:,} lost against {plain.label}"
    return Table(f"examples-{number}", title, header, rows)


def _best(prediction: Mapping[str, Any], mode: str) -> str:
    """Write the best answers of a mode: 'French 82 %, English 3 %'."""
    answer = prediction["modes"][mode]
    text = ", ".join(f"{word} {100 * float(probability):.0f} %" for word, probability in answer.get("top", [])[:TOP])
    return f"✓ {text}" if answer["rank"] == 1 else text
