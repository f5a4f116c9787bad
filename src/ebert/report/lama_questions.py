"""What each filter deleted, by relation, with the part of the name that gave the answer away and its rank."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ebert.report import published
from ebert.report.document import Cell, Plot, Section, Table
from ebert.report.material import Material
from ebert.report.plots import COLOURS, PAPER, drawing, mark, mark_handle
from ebert.report.runs import Run

RULES = ("string-match", "name")
BEST = 3  # ranks up to which the name filter counts an answer as given away


def section(material: Material) -> Section | None:
    """Write the section; none if no run was filtered."""
    groups = _groups([run for run in material.runs if "string-match" in run.filters])
    if not groups:
        return None
    text = [
        "Questions that the filters delete: first those whose answer is a substring of the subject's name, then those "
        "of persons whose answer plain BERT guesses from a part of the name alone (among its three best answers)."
    ]
    parts: list[Table | Plot] = []
    for number, group in enumerate(groups, 1):
        key = "" if len(groups) == 1 else f"-{number}"
        run = group[0]
        if len(groups) > 1:
            text.append(f"Tables {number}: {', '.join(one.label for one in group)}.")
        elif len(group) > 1:
            text.append("The filters deleted the same questions in all runs.")
        parts += [_plot(material, run, key)] if (run.outcomes.dropped > 0).any() else []
        parts.append(_deleted(material, run, key))
        parts += _examples(material, group, key, text)
    return Section("filters", "What the filters deleted", text, parts)


def by_relation(run: Run) -> dict[str, tuple[int, int, int]]:
    """Count the questions of every relation, those with a substring answer, those that a name gives away."""
    outcomes = run.outcomes
    size = len(outcomes.relations)

    def count(inside: NDArray[np.bool_]) -> list[int]:
        found: list[int] = np.bincount(outcomes.relation[inside], minlength=size).tolist()
        return found

    columns = [count(np.ones(len(run.ids), dtype=bool)), count(outcomes.dropped == 1), count(outcomes.dropped == 2)]
    return dict(zip(outcomes.relations, zip(*columns, strict=True), strict=True))


def parts_text(parts: Sequence[int | None]) -> str:
    """Write the ranks by part of a name, as the paper does: (1,-) is rank 1 for the first of two parts."""
    return f"({','.join('-' if rank is None else str(rank) for rank in parts)})"


def _groups(runs: Sequence[Run]) -> list[list[Run]]:
    """Put runs together whose filters deleted the same."""
    groups: dict[Any, list[Run]] = defaultdict(list)
    for run in runs:
        groups[tuple(by_relation(run).items())].append(run)
    return list(groups.values())


def _deleted(material: Material, run: Run, key: str) -> Table:
    named = "uhn" in run.filters
    header = [_heading(run), "questions", "string-match", "%"]
    header += ["%, published"] if material.is_lama else []
    header += ["name", "both, %"] if named else []
    header += ["both, %, published"] if named and material.is_lama else []
    rows: list[tuple[Cell, ...]] = []
    for relation, (asked, matched, guessed) in by_relation(run).items():
        row: list[Cell] = [material.label(relation), asked, matched, 100 * matched / asked]
        row += [_published(relation, "string-match")] if material.is_lama else []
        row += [guessed, 100 * (matched + guessed) / asked] if named else []
        row += [_published(relation, "uhn")] if named and material.is_lama else []
        rows.append(tuple(row))
    rows.sort(key=lambda row: -float(row[3]) if isinstance(row[3], float) else 0.0)
    return Table(
        f"deleted{key}", f"Questions deleted by relation: {run.label}", tuple(header), rows,
        note="The published shares follow from the paper's numbers of questions before and after each filter.",
    )  # fmt: skip


def _heading(run: Run) -> str:
    """Head the column of relations; a run that needs a warning has it there, so that the CSV has it too."""
    return f"relation ({run.label})" if run.warning else "relation"


def _published(relation: str, name: str) -> float | None:
    before, after = published.questions(relation, "all"), published.questions(relation, name)
    return None if before is None or after is None else 100 * (before - after) / before


def _examples(material: Material, group: Sequence[Run], key: str, text: list[str]) -> list[Table]:
    """Write what the name filter found, and a deleted question of every relation, as far as the files are there."""
    run = next((one for one in group if one.has("names.jsonl")), group[0])
    found: list[Table] = []
    names: dict[str, Mapping[str, Any]] = {}
    if "uhn" in run.filters:
        names = {row["id"]: row for row in run.names()}
        if names:
            found.append(_names(material, run, names, key))
        else:
            text.append(f"{run.label} has no names.jsonl, so the parts of the names and their ranks are not known.")
    questions = material.questions
    if run in material.without_questions:
        text.append(f"{run.label} came without its questions (questions.jsonl), so no deleted question is quoted.")
        return found
    rows = []
    counts = by_relation(run)
    for rule, which in enumerate(RULES, 1):
        first = _first(run, rule)
        for relation in sorted(first, key=lambda name: -counts[name][rule] / counts[name][0]):
            one = first[relation]
            question = questions.get(one)
            if question is None:
                continue
            share = 100 * counts[relation][rule] / counts[relation][0]
            filled = str(question["text"]).replace("[MASK]", f"[MASK: {', '.join(question['answers'])}]")
            parts = parts_text(names[one]["parts"]) if which == "name" and one in names else None
            rows.append((which, material.label(relation), share, filled, str(question["subject"]), parts))
    header = ("filter", _heading(run), "deleted (%)", "for example", "subject", "rank by part")
    title = f"A deleted question of each relation: {run.label}"
    note = "(-,1): the answer is BERT's first guess for the last name and not among its three best for the first name."
    return [*found, Table(f"deleted-examples{key}", title, header, rows, note=note)]


def _first(run: Run, rule: int) -> dict[str, str]:
    """Give the first question of every relation that a rule deleted."""
    found: dict[str, str] = {}
    for place in np.flatnonzero(run.outcomes.dropped == rule).tolist():
        found.setdefault(run.outcomes.relations[run.outcomes.relation[place]], run.ids[place])
    return found


def _names(material: Material, run: Run, names: Mapping[str, Mapping[str, Any]], key: str) -> Table:
    """Count, by relation, which part of a name gave the answer away, and at which rank."""
    where = {one: run.outcomes.relations[number] for one, number in zip(run.ids, run.outcomes.relation, strict=True)}
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for one, row in names.items():
        relation = where.get(one)
        if relation is None:
            continue
        count = counts[relation]
        count["asked"] += 1
        hits = [place for place, rank in enumerate(row["parts"]) if rank is not None]
        if not row["dropped"] or not hits:
            continue
        count["deleted"] += 1
        last = len(row["parts"]) - 1
        count["several" if len(hits) > 1 else "first" if hits[0] == 0 else "last" if hits[0] == last else "other"] += 1
        count[f"rank {min(rank for rank in row['parts'] if rank is not None)}"] += 1
    kinds = ["first", "last", "other", "several", *(f"rank {rank}" for rank in range(1, BEST + 1))]
    rows: list[tuple[Cell, ...]] = [
        (
            material.label(relation),
            counts[relation]["asked"],
            counts[relation]["deleted"],
            100 * counts[relation]["deleted"] / counts[relation]["asked"],
            *(counts[relation][kind] for kind in kinds),
        )
        for relation in run.outcomes.relations
        if relation in counts
    ]
    header = (_heading(run), "looked at", "deleted", "%", "by the first part", "by the last part", "by another part",
              "by several parts", "at rank 1", "at rank 2", "at rank 3")  # fmt: skip
    return Table(
        f"names{key}", f"What gave persons away: {run.label}", header, rows,
        note="Which part of the name alone made plain BERT guess the answer, and the best rank among the parts.",
    )  # fmt: skip


def _plot(material: Material, run: Run, key: str) -> Plot:
    """Draw the share of questions deleted, the two filters one after the other."""
    counts = [(name, *row) for name, row in by_relation(run).items() if row[1] + row[2]]
    counts.sort(key=lambda row: -(row[2] + row[3]) / row[1])
    with drawing(f"deleted{key}", width=8, height=1.2 + 0.2 * max(2, len(counts))) as drawn:
        axes = drawn.panels(1)[0]
        places = range(len(counts))
        matched = [100 * row[2] / row[1] for row in counts]
        guessed = [100 * row[3] / row[1] for row in counts]
        one = axes.barh(places, matched, color=COLOURS[1], height=0.75, label="string-match")
        other = axes.barh(places, guessed, left=matched, color=COLOURS[4], height=0.75, hatch="////", edgecolor=PAPER,
                          label="name")  # fmt: skip
        last = "uhn" if "uhn" in run.filters else "string-match"
        theirs = [(_published(row[0], last) if run.is_lama else None, place) for place, row in enumerate(counts)]
        known = [(share, place) for share, place in theirs if share is not None]
        mark(axes, [share for share, _ in known], [place for _, place in known])
        axes.set_yticks(places, [material.label(row[0]) for row in counts])
        axes.set_ylim(len(counts) - 0.4, -0.6)
        axes.set_xlim(0, 100)
        axes.tick_params(axis="y", length=0)
        axes.grid(visible=False, axis="y")
        axes.set_xlabel("questions deleted (%)")
        axes.set_title(run.label)
        drawn.legend([one, *([other] if "uhn" in run.filters else []), *([mark_handle()] if known else [])])
    caption = "The share of each relation's questions that each filter deletes; relations that lose none are left out."
    return drawn.plot(f"deleted{key}", f"Questions deleted: {run.label}", caption)
