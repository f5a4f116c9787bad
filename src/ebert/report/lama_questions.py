"""Sections of a LAMA report that look at questions: by how often the entity was seen, filtered ones, examples."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ebert._bootstrap import Interval
from ebert.probing.filters import FILTERS, Filter, ask_names
from ebert.probing.filters import TOP as BEST
from ebert.report import published
from ebert.report.comparison import Comparison, ReportData, common, compare
from ebert.report.document import Cell, Plot, Section, Table
from ebert.report.plots import COLOURS, INK, PAPER, drawing, mark, mark_handle
from ebert.report.runs import NO_COUNT, NOT_COVERED, Column, ProbeRun

BARS: tuple[dict[str, Any], ...] = (  # how what each rule deleted is drawn
    {"color": COLOURS[1]},
    {"color": COLOURS[4], "hatch": "////", "edgecolor": PAPER},
    {"color": COLOURS[2], "hatch": "....", "edgecolor": PAPER},
)


def deleted(data: ReportData) -> Section | None:
    """Write the section; none if no run was filtered."""
    groups = _groups([run for run in data.runs if _rules(run)])
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
        parts += [_deleted_plot(data, run, key)] if (run.outcomes.dropped > 0).any() else []
        parts.append(_deleted_table(data, run, key))
        parts += _deleted_examples(data, group, key, text)
    return Section("filters", "What the filters deleted", text, parts)


def by_relation(run: ProbeRun) -> dict[str, tuple[int, ...]]:
    """Count the questions of every relation, then those that each rule took out."""
    outcomes = run.outcomes
    inside = [np.ones(len(run.ids), dtype=bool), *(outcomes.dropped == n for n in range(1, len(FILTERS)))]
    columns = [np.bincount(outcomes.relation[one], minlength=len(outcomes.relations)).tolist() for one in inside]
    return dict(zip(outcomes.relations, zip(*columns, strict=True), strict=True))


def _rules(run: ProbeRun) -> list[tuple[int, Filter]]:
    """Return the filters up to the strictest one of a run that take questions out, with the places of their rules."""
    last = max((list(FILTERS).index(name) for name in run.filters), default=0)
    return list(enumerate(FILTERS.values()))[1 : last + 1]


def parts_text(parts: Sequence[int | None]) -> str:
    """Write the ranks by part of a name, as the paper does: (1,-) is rank 1 for the first of two parts."""
    return f"({','.join('-' if rank is None else str(rank) for rank in parts)})"


def _groups(runs: Sequence[ProbeRun]) -> list[list[ProbeRun]]:
    """Put runs together whose filters deleted the same."""
    groups: dict[Any, list[ProbeRun]] = defaultdict(list)
    for run in runs:
        groups[tuple(by_relation(run).items())].append(run)
    return list(groups.values())


def _deleted_table(data: ReportData, run: ProbeRun, key: str) -> Table:
    rules = _rules(run)
    header = [_heading(run), "questions"]
    for place, one in rules:
        share = ("%", "both, %")[place - 1] if place < 3 else f"{place} filters, %"
        header += [str(one.rule), share, *([f"{share}, published"] if data.is_lama else [])]
    rows: list[tuple[Cell, ...]] = []
    for relation, (asked, *taken) in by_relation(run).items():
        row: list[Cell] = [data.label(relation), asked]
        for place, one in rules:
            row += [taken[place - 1], 100 * sum(taken[:place]) / asked]
            row += [_published(relation, one.name)] if data.is_lama else []
        rows.append(tuple(row))
    rows.sort(key=lambda row: -float(row[3]) if isinstance(row[3], float) else 0.0)
    return Table(
        f"deleted{key}", f"Questions deleted by relation: {run.label}", tuple(header), rows,
        note="The published shares follow from the paper's numbers of questions before and after each filter.",
    )  # fmt: skip


def _heading(run: ProbeRun) -> str:
    """Head the column of relations; a run that needs a warning has it there, so that the CSV has it too."""
    return f"relation ({run.label})" if run.warning else "relation"


def _published(relation: str, name: str) -> float | None:
    before, after = published.questions(relation, "all"), published.questions(relation, name)
    return None if before is None or after is None else 100 * (before - after) / before


def _deleted_examples(data: ReportData, group: Sequence[ProbeRun], key: str, text: list[str]) -> list[Table]:
    """Write what the name filter found, and a deleted question of every relation, as far as the files are there."""
    run = next((one for one in group if one.has("names.jsonl")), group[0])
    found: list[Table] = []
    names: dict[str, Mapping[str, Any]] = {}
    if ask_names(run.filters):
        names = {row["id"]: row for row in run.names()}
        if names:
            found.append(_names_table(data, run, names, key))
        else:
            text.append(f"{run.label} has no names.jsonl, so the parts of the names and their ranks are not known.")
    questions = data.questions
    if run in data.without_questions:
        text.append(f"{run.label} came without its questions (questions.jsonl), so no deleted question is quoted.")
        return found
    rows = []
    counts = by_relation(run)
    for rule, one_filter in list(enumerate(FILTERS.values()))[1:]:
        first, which = _first(run, rule), str(one_filter.rule)
        for relation in sorted(first, key=lambda name: -counts[name][rule] / counts[name][0]):
            one = first[relation]
            question = questions.get(one)
            if question is None:
                continue
            share = 100 * counts[relation][rule] / counts[relation][0]
            filled = str(question["text"]).replace("[MASK]", f"[MASK: {', '.join(question['answers'])}]")
            parts = parts_text(names[one]["parts"]) if one_filter.asks_names and one in names else None
            rows.append((which, data.label(relation), share, filled, str(question["subject"]), parts))
    header = ("filter", _heading(run), "deleted (%)", "for example", "subject", "rank by part")
    title = f"A deleted question of each relation: {run.label}"
    note = "(-,1): the answer is BERT's first guess for the last name and not among its three best for the first name."
    return [*found, Table(f"deleted-examples{key}", title, header, rows, note=note)]


def _first(run: ProbeRun, rule: int) -> dict[str, str]:
    """Return the first question of every relation that a rule deleted."""
    found: dict[str, str] = {}
    for place in np.flatnonzero(run.outcomes.dropped == rule).tolist():
        found.setdefault(run.outcomes.relations[run.outcomes.relation[place]], run.ids[place])
    return found


def _names_table(data: ReportData, run: ProbeRun, names: Mapping[str, Mapping[str, Any]], key: str) -> Table:
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
    rows: list[tuple[Cell, ...]] = []
    for relation in run.outcomes.relations:
        if found := counts.get(relation):
            share = 100 * found["deleted"] / found["asked"]
            rows.append((data.label(relation), found["asked"], found["deleted"], share, *(found[k] for k in kinds)))
    header = (_heading(run), "looked at", "deleted", "%", "by the first part", "by the last part", "by another part",
              "by several parts", "at rank 1", "at rank 2", "at rank 3")  # fmt: skip
    return Table(
        f"names{key}", f"What gave persons away: {run.label}", header, rows,
        note="Which part of the name alone made plain BERT guess the answer, and the best rank among the parts.",
    )  # fmt: skip


def _deleted_plot(data: ReportData, run: ProbeRun, key: str) -> Plot:
    """Draw the share of questions deleted, the two filters one after the other."""
    rules = _rules(run)
    counts = [(name, row) for name, row in by_relation(run).items() if any(row[1:])]
    counts.sort(key=lambda item: -sum(item[1][1:]) / item[1][0])
    with drawing(f"deleted{key}", width=8, height=1.2 + 0.2 * max(2, len(counts))) as drawn:
        axes = drawn.panels(1)[0]
        places, bars = range(len(counts)), []
        left = [0.0] * len(counts)
        for place, one in enumerate(FILTERS.values()):
            if not one.rule:
                continue
            share = [100 * row[place] / row[0] for _, row in counts]
            look = BARS[(place - 1) % len(BARS)]
            bars.append(axes.barh(places, share, left=left if place > 1 else None, height=0.75, label=one.rule, **look))
            left = [done + more for done, more in zip(left, share, strict=True)]
        last = rules[-1][1].name
        theirs = [(_published(name, last) if run.is_lama else None, place) for place, (name, _) in enumerate(counts)]
        known = [(share, place) for share, place in theirs if share is not None]
        mark(axes, [share for share, _ in known], [place for _, place in known])
        axes.set_yticks(places, [data.label(name) for name, _ in counts])
        axes.set_ylim(len(counts) - 0.4, -0.6)
        axes.set_xlim(0, 100)
        axes.tick_params(axis="y", length=0)
        axes.grid(visible=False, axis="y")
        axes.set_xlabel("questions deleted (%)")
        axes.set_title(run.label)
        drawn.legend([*bars[: len(rules)], *([mark_handle()] if known else [])])
    caption = "The share of each relation's questions that each filter deletes; relations that lose none are left out."
    return drawn.plot(f"deleted{key}", f"Questions deleted: {run.label}", caption)


EDGES = (0, 10, 100, 1_000, 10_000)
BUCKETS = (
    "not covered", "count unknown",
    *(f"{low:,}–{high - 1:,}" for low, high in pairwise(EDGES)), f"{EDGES[-1]:,} or more",
)  # fmt: skip


def frequency(data: ReportData) -> Section:
    """Write the section."""
    text = [
        "Questions by how often the subject's entity was linked in the text its vector was trained on. Hits@1 here is "
        "the share of questions, not the mean over relations, since some relations have few questions in a bucket. "
        "Changes have 95 % intervals of a paired bootstrap over all questions of the bucket."
    ]
    rows = list(_frequency_rows(data))
    if not rows:
        text = ["This needs a mode with vectors and plain BERT over the same questions."]
        return Section("frequency", "How often the entity was seen", text)
    table = Table(
        "frequency", "Hits@1 by how often the entity was seen",
        ("Model", "links", "questions", "Hits@1", "plain BERT", "change"),
        [(row[0].label, *row[1:]) for row in rows],
        note="Not covered: the subject has no vector, so that every mode is plain BERT.",
    )  # fmt: skip
    return Section("frequency", "How often the entity was seen", text, [_frequency_plot(data, rows), table])


def buckets(run: ProbeRun) -> list[tuple[str, NDArray[np.bool_]]]:
    """Sort the questions of a run into buckets: the name of each and its questions."""
    found = [run.count == NOT_COVERED, run.count == NO_COUNT]
    found += [(run.count >= low) & (run.count < high) for low, high in pairwise((*EDGES, np.inf))]
    return [(name, inside) for name, inside in zip(BUCKETS, found, strict=True) if inside.any()]


FrequencyRow = tuple[Column, str, int, float, float, Interval]


def _frequency_rows(data: ReportData) -> Iterator[FrequencyRow]:
    for column, plain, _ in data.changes:
        for name, inside in buckets(column.run):
            found = compare(column, plain, among=inside, resamples=data.options.resamples)
            if found is not None:
                plain_hits = found.right[1] / found.questions * 100
                yield column, name, found.questions, found.right[0] / found.questions * 100, plain_hits, found.micro


def _frequency_plot(data: ReportData, rows: list[FrequencyRow]) -> Plot:
    order = [name for name in BUCKETS if any(row[1] == name for row in rows)]
    columns = [column for column, _, _ in data.changes]
    with drawing("frequency", width=8, height=3.8) as drawn:
        axes = drawn.panels(1)[0]
        handles = []
        for number, column in enumerate(columns):
            mine = [row for row in rows if row[0] == column]
            look = data.looks[column.label]
            shift = (number - (len(columns) - 1) / 2) * min(0.14, 0.7 / len(columns))
            changes = [row[5] for row in mine]
            below = [change.value - (change.low or 0.0) for change in changes]
            above = [(change.high or 0.0) - change.value for change in changes]
            handles.append(axes.errorbar(
                [order.index(row[1]) + shift for row in mine], [change.value for change in changes], [below, above],
                color=look.colour, marker=look.marker, linestyle="none", linewidth=1.2, capsize=3, label=column.label,
            ))  # fmt: skip
        axes.axhline(0, color=INK, linewidth=1)
        axes.set_xticks(range(len(order)), [_tick(name, rows, single=len(data.runs) == 1) for name in order])
        axes.set_xlabel("how often the entity was linked")
        axes.set_ylabel("change in Hits@1 against\nplain BERT (points)")
        axes.grid(visible=False, axis="x")
        drawn.legend(handles)
    caption = "Gain over plain BERT by how often the subject's entity was linked, with 95 % intervals."
    return drawn.plot("frequency", "Gain by how often the entity was seen", caption)


def _tick(name: str, rows: list[FrequencyRow], *, single: bool) -> str:
    asked = next(row[2] for row in rows if row[1] == name)
    return f"{name}\n{asked:,} questions" if single else name


TOP = 3  # answers to show
NATIVE = "P103"
LICENCE = "The questions quoted in this report are LAMA's, licensed CC BY-NC 4.0: mind it before you publish it."


def native(data: ReportData) -> Section | None:
    """Write the native-language examples; none if the runs are of other questions."""
    if not data.is_lama:
        return None
    title = "Native language: the examples of Table 1"
    text = ["The best answers to the paper's five examples, with their probabilities. A tick marks a right answer."]
    text += _silence(data)
    theirs = published.figures()["native language"]
    people = [name for name in theirs if name != "columns"]
    asked: dict[str, Mapping[str, Any]] = {}  # by subject
    for question in data.questions.values():
        if question["relation"] == NATIVE and question["subject"] in people:
            asked.setdefault(question["subject"], question)
    if not asked:
        text.append("None of them was asked.")
        return Section("native", title, text)
    wanted = {one["id"] for one in asked.values()}
    answers = {run.name: run.answers(wanted) for run in data.runs}
    columns = [column for column in data.columns if answers[column.run.name]]
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


def changed(data: ReportData) -> Section | None:
    """Write the examples that changed; none if nothing is compared."""
    if not data.changes:
        return None
    title = "Examples that changed"
    text = [
        "Questions that a mode has right and plain BERT has wrong (gained), and the other way round (lost): at most "
        f"{data.options.examples} of each, from as many relations as there are, where the rank moved most."
    ]
    text += _silence(data)
    parts = [
        _changed_table(data, column, plain, compared, number)
        for number, (column, plain, compared) in enumerate(data.changes, 1)
        if column.run not in data.without_questions
    ]
    if parts and data.is_lama:
        text.append(LICENCE)
    return Section("examples", title, text, parts)


def _silence(data: ReportData) -> list[str]:
    """Return why examples are missing, if they are."""
    names = ", ".join(run.label for run in data.without_questions)
    return [
        f"{names}: no questions.jsonl in the run folder, so that no question can be quoted. "
        "Shipped results leave it out for the licence of LAMA's text; a run of your own has it."
    ] * bool(names)


def _changed_table(data: ReportData, column: Column, plain: Column, compared: Comparison, number: int) -> Table:
    questions = data.questions
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
        chosen += [(what, one) for _, _, _, one in sorted(queue)[: data.options.examples]]
    wanted = {one for _, one in chosen}
    ours = column.run.answers(wanted)
    theirs = ours if plain.run is column.run else plain.run.answers(wanted)
    rows: list[tuple[Cell, ...]] = []
    for what, one in chosen:
        question = questions[one]
        rows.append((
            what, data.label(ours[one]["relation"]), str(question["text"]), ", ".join(question["answers"]),
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
