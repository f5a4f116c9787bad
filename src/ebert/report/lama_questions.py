"""Sections of a LAMA report that look at questions: by how often the entity was seen, filtered ones, examples."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ebert._bootstrap import Interval
from ebert.probing.filters import FILTERS, Filter, ask_names
from ebert.probing.filters import TOP as BEST
from ebert.report import published
from ebert.report.comparison import Comparison, ReportData, common
from ebert.report.document import Cell, Plot, Section, Table
from ebert.report.plots import COLOURS, INK, PAPER, drawing, mark, mark_handle, name_rows
from ebert.report.runs import NO_COUNT, NOT_COVERED, Column, ProbeRun

BARS: tuple[dict[str, Any], ...] = (  # how what each rule deleted is drawn
    {"color": COLOURS[1]},
    {"color": COLOURS[4], "hatch": "////", "edgecolor": PAPER},
    {"color": COLOURS[2], "hatch": "....", "edgecolor": PAPER},
)
EDGES = (0, 10, 100, 1_000, 10_000)  # of the buckets by how often an entity was linked
TOP = 3  # answers to show
NATIVE = "P103"
LICENCE = "The questions quoted in this report are LAMA's, licensed CC BY-NC 4.0: mind it before you publish it."


def deleted(data: ReportData) -> Section | None:
    """Write the section on what the filters took out; none if no run was filtered."""
    counted: dict[Any, list[ProbeRun]] = defaultdict(list)  # runs whose filters deleted the same stand together
    for run in data.runs:
        if _rules(run):
            counted[tuple(_by_relation(run).items())].append(run)
    if not counted:
        return None
    groups = list(counted.values())
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
        parts += [_deleted_plot(data, run, key)] if (run.outcomes.dropped > 0).any() else []
        parts.append(_deleted_table(data, run, key))
        parts += _deleted_examples(data, group, key, text)
    return Section("filters", "What the filters deleted", text, parts)


def _by_relation(run: ProbeRun) -> dict[str, tuple[int, ...]]:
    """Count the questions of every relation, then those that each rule took out."""
    outcomes, size = run.outcomes, (len(run.outcomes.relations), len(FILTERS))
    counts = np.zeros(size, dtype=int)  # (relations, rules), the first one of what was kept
    np.add.at(counts, (outcomes.relation, outcomes.dropped), 1)
    counts[:, 0] = counts.sum(axis=1)
    return dict(zip(outcomes.relations, map(tuple, counts.tolist()), strict=True))


def _rules(run: ProbeRun) -> list[tuple[int, Filter]]:
    """Return the filters up to the strictest one of a run that take questions out, with the places of their rules."""
    last = max((list(FILTERS).index(name) for name in run.filters), default=0)
    return list(enumerate(FILTERS.values()))[1 : last + 1]


def _heading(run: ProbeRun) -> str:
    """Return the head of the column of relations, with a run's warning if there is one, so that the CSV has it too."""
    return f"relation ({run.label})" if run.warning else "relation"


def _published(relation: str, name: str) -> float | None:
    before, after = published.questions(relation, "all"), published.questions(relation, name)
    return None if before is None or after is None else 100 * (before - after) / before


def _deleted_table(data: ReportData, run: ProbeRun, key: str) -> Table:
    rows = []
    # The most deleted by the first rule come first.
    for relation, (asked, *taken) in sorted(_by_relation(run).items(), key=lambda item: -item[1][1] / item[1][0]):
        row: dict[str, Cell] = {_heading(run): data.label(relation), "questions": asked}
        for place, one in _rules(run):
            share = ("%", "both, %")[place - 1] if place < 3 else f"{place} filters, %"
            row |= {str(one.rule): taken[place - 1], share: 100 * sum(taken[:place]) / asked}
            if data.is_lama:
                row[f"{share}, published"] = _published(relation, one.name)
        rows.append(row)
    return Table.of(
        f"deleted{key}", f"Questions deleted by relation: {run.label}", rows,
        note="The published shares follow from the paper's numbers of questions before and after each filter.",
    )  # fmt: skip


def _deleted_plot(data: ReportData, run: ProbeRun, key: str) -> Plot:
    """Draw the share of deleted questions, filter by filter."""
    rules = _rules(run)
    counts = {name: row for name, row in _by_relation(run).items() if any(row[1:])}
    names = sorted(counts, key=lambda name: -sum(counts[name][1:]) / counts[name][0])
    with drawing(f"deleted{key}", width=8, height=1.2 + 0.2 * max(2, len(names))) as drawn:
        axes = drawn.panels(1)[0]
        bars, left = [], np.zeros(len(names))
        for place, one in list(enumerate(FILTERS.values()))[1:]:
            share = np.array([100 * counts[name][place] / counts[name][0] for name in names])
            look = BARS[(place - 1) % len(BARS)]
            bars.append(axes.barh(range(len(names)), share, left=left, height=0.75, label=one.rule, **look))
            left = left + share
        theirs = [_published(name, rules[-1][1].name) if run.is_lama else None for name in names]
        known = [(share, place) for place, share in enumerate(theirs) if share is not None]
        mark(axes, [share for share, _ in known], [place for _, place in known])
        name_rows(axes, [data.label(name) for name in names])
        axes.set(xlim=(0, 100), xlabel="questions deleted (%)", title=run.label)
        drawn.legend([*bars[: len(rules)], *([mark_handle()] if known else [])])
    caption = "The share of each relation's questions that each filter deletes; relations that lose none are left out."
    return drawn.plot(f"Questions deleted: {run.label}", caption)


def _deleted_examples(data: ReportData, group: Sequence[ProbeRun], key: str, text: list[str]) -> list[Table]:
    """Write what the name filter found, and a deleted question of every relation, if the files exist."""
    run = next((one for one in group if one.has("names.jsonl")), group[0])
    found: list[Table] = []
    names = run.names() if ask_names(run.filters) else {}
    if names:
        found.append(_names_table(data, run, names, key))
    elif ask_names(run.filters):
        text.append(f"{run.label} has no names.jsonl, so the parts of the names and their ranks are not known.")
    if run in data.without_questions:
        text.append(f"{run.label} came without its questions (questions.jsonl), so no deleted question is quoted.")
        return found
    rows = []
    counts = _by_relation(run)
    for rule, one in list(enumerate(FILTERS.values()))[1:]:
        first: dict[str, str] = {}  # question of every relation
        for place in np.flatnonzero(run.outcomes.dropped == rule).tolist():
            first.setdefault(run.outcomes.relations[run.outcomes.relation[place]], run.ids[place])
        shares = {relation: 100 * counts[relation][rule] / counts[relation][0] for relation in first}
        for relation in sorted(first, key=lambda name: -shares[name]):
            name = first[relation]
            question = data.questions.get(name)
            if question is None:
                continue
            filled = str(question["text"]).replace("[MASK]", f"[MASK: {', '.join(question['answers'])}]")
            parts = None
            if one.asks_names and name in names:  # as the paper has it: (1,-) is rank 1 for the first of two parts
                parts = f"({','.join('-' if rank is None else str(rank) for rank in names[name]['parts'])})"
            rows.append((one.rule, data.label(relation), shares[relation], filled, str(question["subject"]), parts))
    header = ("filter", _heading(run), "deleted (%)", "for example", "subject", "rank by part")
    title = f"A deleted question of each relation: {run.label}"
    note = "(-,1): the answer is BERT's first guess for the last name and not among its three best for the first name."
    return [*found, Table(f"deleted-examples{key}", title, header, rows, note=note)]


def _names_table(data: ReportData, run: ProbeRun, names: Mapping[str, Mapping[str, Any]], key: str) -> Table:
    """Count, by relation, which part of a name gave the answer away, and at which rank."""
    counts: dict[str, Counter[str]] = {relation: Counter() for relation in run.outcomes.relations}
    for one, number in zip(run.ids, run.outcomes.relation, strict=True):
        if one not in names:
            continue
        count = counts[run.outcomes.relations[number]]
        count["looked at"] += 1
        parts = names[one]["parts"]
        hits = [place for place, rank in enumerate(parts) if rank is not None]
        if not names[one]["dropped"] or not hits:
            continue
        count["deleted"] += 1
        which = {len(parts) - 1: "the last part", 0: "the first part"}.get(hits[0], "another part")
        count[f"by {which if len(hits) == 1 else 'several parts'}"] += 1
        count[f"at rank {min(parts[place] for place in hits)}"] += 1
    kinds = (
        "by the first part", "by the last part", "by another part", "by several parts",
        *(f"at rank {rank}" for rank in range(1, BEST + 1)),
    )  # fmt: skip
    rows: list[tuple[Cell, ...]] = [
        (data.label(relation), found["looked at"], found["deleted"], 100 * found["deleted"] / found["looked at"],
         *(found[kind] for kind in kinds))
        for relation, found in counts.items()
        if found
    ]  # fmt: skip
    header = (_heading(run), "looked at", "deleted", "%", *kinds)
    return Table(
        f"names{key}", f"What gave persons away: {run.label}", header, rows,
        note="Which part of the name alone made plain BERT guess the answer, and the best rank among the parts.",
    )  # fmt: skip


FrequencyRow = tuple[Column, str, int, float, float, Interval]


def frequency(data: ReportData) -> Section:
    """Write the section on questions by how often their entities were linked."""
    title = "How often the entity was seen"
    rows: list[FrequencyRow] = []
    for column, plain, _ in data.changes:
        for name, inside in _buckets(column.run).items():
            if found := data.compare(column, plain, among=inside):
                ours, theirs = (right / found.questions * 100 for right in found.right)
                rows.append((column, name, found.questions, ours, theirs, found.micro))
    if not rows:
        return Section("frequency", title, ["This needs a mode with vectors and plain BERT over the same questions."])
    text = [
        "Questions by how often the subject's entity was linked in the text its vector was trained on. Hits@1 here is "
        "the share of questions, not the mean over relations, since some relations have few questions in a bucket. "
        "Changes have 95 % intervals of a paired bootstrap over all questions of the bucket."
    ]
    table = Table(
        "frequency", "Hits@1 by how often the entity was seen",
        ("Model", "links", "questions", "Hits@1", "plain BERT", "change"),
        [(row[0].label, *row[1:]) for row in rows],
        note="Not covered: the subject has no vector, so every mode is plain BERT.",
    )  # fmt: skip
    return Section("frequency", title, text, [_frequency_plot(data, rows), table])


def _buckets(run: ProbeRun) -> dict[str, NDArray[np.bool_]]:
    """Sort the questions of a run into buckets: the name of each and its questions."""
    found = {"not covered": run.count == NOT_COVERED, "count unknown": run.count == NO_COUNT}
    for low, high in pairwise(EDGES):
        found[f"{low:,}–{high - 1:,}"] = (run.count >= low) & (run.count < high)
    return {**found, f"{EDGES[-1]:,} or more": run.count >= EDGES[-1]}


def _frequency_plot(data: ReportData, rows: list[FrequencyRow]) -> Plot:
    asked = {row[1]: row[2] for row in reversed(rows)}  # of the first column that has the bucket
    order = [name for name in _buckets(data.runs[0]) if name in asked]
    columns = list(dict.fromkeys(row[0] for row in rows))
    with drawing("frequency", width=8, height=3.8) as drawn:
        axes = drawn.panels(1)[0]
        handles = []
        for number, column in enumerate(columns):
            mine = {order.index(name): change for one, name, *_, change in rows if one == column}
            look = data.looks[column]
            shift = (number - (len(columns) - 1) / 2) * min(0.14, 0.7 / len(columns))
            below, above = ([c.value - c.low for c in mine.values()], [c.high - c.value for c in mine.values()])
            handles.append(axes.errorbar(
                [place + shift for place in mine], [change.value for change in mine.values()], [below, above],
                color=look.colour, marker=look.marker, linestyle="none", linewidth=1.2, capsize=3, label=column.label,
            ))  # fmt: skip
        axes.axhline(0, color=INK, linewidth=1)
        single = len(data.runs) == 1
        axes.set_xticks(range(len(order)), [f"{name}\n{asked[name]:,} questions" if single else name for name in order])
        axes.set(xlabel="how often the entity was linked", ylabel="change in Hits@1 against\nplain BERT (points)")
        axes.grid(visible=False, axis="x")
        drawn.legend(handles)
    caption = "Gain over plain BERT by how often the subject's entity was linked, with 95 % intervals."
    return drawn.plot("Gain by how often the entity was seen", caption)


def native(data: ReportData) -> Section | None:
    """Write the native-language examples; none if the runs are of other questions."""
    if not data.is_lama:
        return None
    title = "Native language: the examples of Table 1"
    text = ["The best answers to the paper's five examples, with their probabilities. A tick marks a right answer."]
    text += _silence(data)
    theirs = dict(published.figures()["native language"])
    models = [f"{one} (published)" for one in theirs.pop("columns")]
    asked: dict[str, Mapping[str, Any]] = {}  # by subject
    for question in data.questions.values():
        if question["relation"] == NATIVE and question["subject"] in theirs:
            asked.setdefault(question["subject"], question)
    if not asked:
        return Section("native", title, [*text, "None of them was asked."])
    answers = {run: run.answers({one["id"] for one in asked.values()}) for run in data.runs}
    columns = [column for column in data.columns if answers[column.run]]
    rows = []
    for name, published_answers in theirs.items():
        found = asked.get(name)
        given = [answers[column.run].get(found["id"]) if found else None for column in columns]
        best = (_best(one, column.mode) if one else None for one, column in zip(given, columns, strict=True))
        rows.append((name, ", ".join(found["answers"]) if found else "not asked", *best, *published_answers))
    header = ("subject", "answer", *(column.label for column in columns), *models)
    return Section("native", title, text, [Table("native-language", "Native language", header, rows)])


def changed(data: ReportData) -> Section | None:
    """Write the examples that changed; none if nothing is compared."""
    if not data.changes:
        return None
    text = [
        "Questions that a mode has right and plain BERT has wrong (gained), and the other way round (lost): at most "
        f"{data.options.examples} of each, from as many relations as there are, where the rank moved most."
    ]
    text += _silence(data)
    parts = [
        _changed_table(data, *change, number)
        for number, change in enumerate(data.changes, 1)
        if change[0].run not in data.without_questions
    ]
    if parts and data.is_lama:
        text.append(LICENCE)
    return Section("examples", "Examples that changed", text, parts)


def _silence(data: ReportData) -> list[str]:
    """Return why examples are missing, if they are."""
    if not data.without_questions:
        return []
    return [
        f"{', '.join(run.label for run in data.without_questions)}: no questions.jsonl in the run folder, so that no "
        "question can be quoted. Shipped results leave it out for the licence of LAMA's text; a run of your own has it."
    ]


def _changed_table(data: ReportData, column: Column, plain: Column, compared: Comparison, number: int) -> Table:
    outcomes = column.run.outcomes
    here, there = common(column.run, plain.run)
    ranks, before = outcomes.rank[column.mode][here], plain.run.outcomes.rank[plain.mode][there]
    chosen: dict[str, str] = {}  # by question: what happened to it
    for what, right, other, counts in (
        ("gained", ranks, before, compared.gained), ("lost", before, ranks, compared.lost),
    ):  # fmt: skip
        places = np.flatnonzero((right == 1) & (other > 1))
        places = places[np.argsort(-other[places], kind="stable")]  # where the rank moved most comes first
        turns: Counter[str] = Counter()  # the first of each relation, then the second of each, and so on
        queue = []
        for place in here[places]:
            one, name = column.run.ids[place], outcomes.relations[outcomes.relation[place]]
            if one in data.questions:
                queue.append((turns[name], -counts[name], name, one))
                turns[name] += 1
        chosen |= {one: what for *_, one in sorted(queue)[: data.options.examples]}
    ours = column.run.answers(chosen)
    theirs = ours if plain.run is column.run else plain.run.answers(chosen)
    rows: list[tuple[Cell, ...]] = []
    for one, what in chosen.items():
        question, old, new = data.questions[one], theirs[one], ours[one]
        rows.append((
            what, data.label(new["relation"]), str(question["text"]), ", ".join(question["answers"]),
            _best(old, plain.mode), _best(new, column.mode), int(old["modes"][plain.mode]["rank"]),
            int(new["modes"][column.mode]["rank"]), new.get("count"),
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
