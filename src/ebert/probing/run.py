"""Probing a masked language model: questions in, a run folder with ranks and scores out."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from ebert import __version__
from ebert._io import files
from ebert._io.progress import Watch, unwatched
from ebert._io.records import write_lines
from ebert._runs import Journal, processor
from ebert.errors import EbertError
from ebert.model.batching import budget_on, windows
from ebert.model.ebert import EBert
from ebert.model.modes import Mode
from ebert.probing import filters
from ebert.probing import folder as layout
from ebert.probing.ask import Asker, Outcome, Plan, best, make_plan
from ebert.probing.candidates import Candidates, choose
from ebert.probing.identity import identity
from ebert.probing.metrics import metrics
from ebert.probing.options import ProbeOptions
from ebert.probing.questions import Question, Questions, Skipped, limited
from ebert.probing.subjects import Finder, Subject, find_all, ways


@dataclass
class Probe:
    """A run: everything that is known before the first question is asked."""

    model: EBert
    data: Questions
    options: ProbeOptions
    candidates: Candidates
    unused: int
    questions: list[Question] = field(default_factory=list)
    answers: list[list[int]] = field(default_factory=list)
    subjects: dict[str, Subject] = field(default_factory=dict)
    skipped: list[Skipped] = field(default_factory=list)
    persons: list[Question] = field(default_factory=list)
    name_model: EBert | None = None
    identity: dict[str, Any] = field(default_factory=dict)


def probe(
    model: EBert,
    data: Questions,
    out: str | Path,
    *,
    options: ProbeOptions | None = None,
    labels: Mapping[str, int] | None = None,
    name_model: Callable[[], EBert] | None = None,
    overwrite: bool = False,
    command: str = "",
    watch: Watch = unwatched,
) -> dict[str, Any]:
    """Ask a model questions, or go on asking, and give the scores (`metrics.json`).

    `labels` has the lowest Wikidata id of each English label; `name_model` gives the BERT that the person-name filter
    asks (bert-base-cased).
    """
    began, folder = time.monotonic(), Path(out)
    work = prepare(model, data, options or ProbeOptions(), labels, name_model)
    with layout.opened(folder, work.identity, overwrite=overwrite) as complete:
        if not complete:
            checks = _check_names(work, folder, watch)
            results = _ask(work, folder, watch)
            _write(work, folder, checks, results, {"command": command, "seconds": round(time.monotonic() - began, 1)})
    return files.read_json(folder / layout.METRICS, "a complete run")


def prepare(
    model: EBert,
    data: Questions,
    options: ProbeOptions,
    labels: Mapping[str, int] | None = None,
    name_model: Callable[[], EBert] | None = None,
) -> Probe:
    """Find out which questions can be asked, and about which entities."""
    if model.vectors is None and any(mode != "bert" for mode in options.modes):
        raise EbertError("the modes concat and replace need entity vectors: give a model made by 'ebert align'")
    own = data.name != "lama"
    every = [answer for question in data.questions for answer in question.answers]
    candidates, unused = choose(model.tokenizer, data.vocabulary, every if own else ())
    work = Probe(model, data, options, candidates, unused, skipped=list(data.skipped))
    usable = []
    for question in data.questions:
        places = [place for answer in question.answers if (place := candidates.find(answer)) is not None]
        if places:
            usable.append((question, places))
        else:
            work.skipped.append(Skipped(question.where, "its answer is not a candidate of this encoder", question.id))
    kept = {question.id for question in limited([q for q, _ in usable], options.limit)} if options.limit else None
    usable = [(q, places) for q, places in usable if kept is None or q.id in kept]
    subjects = _find_subjects(work, [q for q, _ in usable], labels)
    titles = {name: subject.entity.title for name, subject in subjects.items()}
    for question, places in _fitting(work, [(q.about(titles.get(q.id)), places) for q, places in usable]):
        work.questions.append(question)
        work.answers.append(places)
    if not work.questions:
        reasons = ", ".join(dict.fromkeys(row.reason for row in work.skipped))
        raise EbertError(f"no question can be asked ({reasons})")
    work.subjects = {q.id: subjects[q.id] for q in work.questions if q.id in subjects}
    work.persons = _persons(work)
    if work.persons:
        work.name_model = (name_model or _default_name_model)()
    work.identity = identity(model, data, options, work.questions, candidates, labels, work.name_model)
    return work


def _default_name_model() -> EBert:
    return EBert.plain("bert-base-cased")


def _find_subjects(work: Probe, questions: Sequence[Question], labels: Mapping[str, int] | None) -> dict[str, Subject]:
    vectors = work.model.vectors
    if vectors is None:
        return {}
    subjects = find_all(questions, Finder(vectors, labels=labels, oracle=work.options.oracle))
    if labels and any(q.subject in labels for q in questions) and "label" not in ways(subjects):
        raise EbertError("no label leads to an entity: the store has no Wikidata ids of them (ebert corpus wikidata)")
    return subjects


def _fitting(work: Probe, usable: Sequence[tuple[Question, list[int]]]) -> Iterator[tuple[Question, list[int]]]:
    """Leave out questions that are too long for the encoder or cannot be cut, in any of the modes, and say so."""
    cut, size, modes = work.model.filler().sequences, max(work.candidates.sizes), work.options.modes
    for window in windows(usable):
        try:
            for mode in modes:
                cut([question.passage(size) for question, _ in window], mode)
        except EbertError:
            for question, places in window:
                try:
                    for mode in modes:
                        cut([question.passage(size)], mode)
                except EbertError as error:
                    work.skipped.append(Skipped(question.where, str(error), question.id))
                else:
                    yield question, places
        else:
            yield from window


def _persons(work: Probe) -> list[Question]:
    """Give the questions that the person-name filter looks at, if it is asked for: those that the other one leaves."""
    if "uhn" not in work.options.filters or work.data.name != "lama":
        return []
    return [q for q in work.questions if q.relation in filters.KINDS and not q.gives_itself_away]


def _check_names(work: Probe, folder: Path, watch: Watch) -> dict[str, filters.NameCheck]:
    """Apply the person-name filter."""
    if work.name_model is None:
        return {}
    guesses: filters.Guesses = {}
    with Journal(folder / layout.GUESSED) as journal:
        for part, kind, tokens in (row for window in journal.read() for row in window):
            guesses[part, kind] = tokens
        wanted = filters.wanted(work.persons)
        with watch("names", total=len(wanted), unit="names") as advance:
            for window in filters.ask(work.name_model, wanted, advance, known=guesses.copy()):
                journal.add([[*key, tokens] for key, tokens in window.items()])
                guesses |= window
    lower = work.name_model.vocabulary.lower_cases
    return {question.id: filters.check(question, guesses, lower=lower) for question in work.persons}


def _ask(work: Probe, folder: Path, watch: Watch) -> "Results":
    budget = work.options.budget or budget_on(work.model.encoder.device.type)
    with watch("plan", total=len(work.questions), unit="questions") as advance:
        plan = make_plan(
            work.model, work.questions, work.answers, work.options.modes, work.candidates.sizes,
            budget=budget, advance=advance,
        )  # fmt: skip
    outcomes: dict[int, Outcome] = {}
    asker = Asker(work.model, work.candidates)
    with Journal(folder / layout.ASKED) as journal:
        for wanted, top, unit in (row for batch in journal.read() for row in batch):
            outcomes[unit] = Outcome([tuple(row) for row in wanted], [tuple(row) for row in top])
        with watch("ask", total=len(plan.units), unit="sequences") as advance:
            advance(len(outcomes))
            for batch in plan.batches:
                if all(n in outcomes for n in batch):
                    continue
                items = [(plan.units[n], work.questions[plan.units[n].question]) for n in batch]
                found = dict(zip(batch, asker(items), strict=True))
                journal.add([[outcome.wanted, outcome.top, unit] for unit, outcome in found.items()])
                outcomes |= found
                advance(len(batch))
    return Results(work, plan, outcomes)


@dataclass(frozen=True)
class Results:
    """What came out, as rows of `predictions.jsonl`."""

    work: Probe
    plan: Plan
    outcomes: Mapping[int, Outcome]

    def rows(self, checks: Mapping[str, filters.NameCheck]) -> Iterator[dict[str, Any]]:
        """Go through the questions in their order."""
        for number, question in enumerate(self.work.questions):
            subject = self.work.subjects.get(question.id)
            yield {
                "id": question.id,
                "relation": question.relation,
                "covered": subject is not None,
                "count": subject.entity.count if subject else None,
                "dropped": _dropped(question, checks),
                "modes": {mode: self._mode(number, mode) for mode in self.work.options.modes},
            }

    def _mode(self, number: int, mode: Mode) -> dict[str, Any]:
        outcome = self.outcomes[self.plan.unit_of[mode][number]]
        rank, probability = best(outcome, self.work.answers[number])
        words = self.work.candidates.words
        top = [[words[place], chance] for place, chance in outcome.top]
        return {"rank": rank, "probability": probability, "top": top}


def _dropped(question: Question, checks: Mapping[str, filters.NameCheck]) -> str | None:
    if question.gives_itself_away:
        return "string-match"
    return "name" if question.id in checks and checks[question.id].dropped else None


def _write(
    work: Probe, folder: Path, checks: Mapping[str, filters.NameCheck], results: Results, facts: dict[str, Any]
) -> None:
    """Write everything, `run.json` last."""
    rows = list(results.rows(checks))
    scores: dict[str, Any] = {"modes": metrics(rows, work.options.modes, work.options.filters)}
    if work.options.limit:
        scores["limit"] = work.options.limit
    write_lines(folder / layout.PREDICTIONS, rows)
    write_lines(folder / layout.QUESTIONS, map(_shown, work.questions))
    write_lines(folder / layout.SKIPPED, (asdict(row) for row in work.skipped))
    if "uhn" in work.options.filters:
        checked = ({"id": c.id, "parts": c.parts, "dropped": c.dropped} for c in checks.values())
        write_lines(folder / layout.NAMES, checked)
    files.write_json(folder / layout.METRICS, scores)
    layout.finish(folder, {**_facts(work), **facts, "machine": processor(), "identity": work.identity})


def _shown(question: Question) -> dict[str, Any]:
    return {
        "id": question.id,
        "relation": question.relation,
        "text": question.text,
        "subject": question.subject,
        "answers": list(question.answers),
        "entity": question.entity,
    }


def _facts(work: Probe) -> dict[str, Any]:
    """Give what `run.json` says about a complete run."""
    model, options = work.model, work.options
    about = None
    if model.vectors is not None and model.alignment is not None:
        vectors = model.vectors
        about = {
            "vectors": {
                "path": vectors.path.name, "fingerprint": vectors.fingerprint, "dimension": vectors.dimension,
                "entities": vectors.info.entities,
            },
            "alignment": asdict(model.alignment.report),
        }  # fmt: skip
    skipped = Questions(work.data.name, [], work.skipped).reasons()
    return {
        "ebert": __version__,
        "benchmark": work.data.name,
        "encoder": {"name": model.name, "weights": work.identity["encoder"]["weights"]},
        "name-bert": work.identity["name-bert"],
        "model": about,
        "modes": list(options.modes),
        "filters": list(options.filters),
        "relations": sorted({question.relation for question in work.questions}),
        "limit": options.limit,
        "precision": options.precision,
        "oracle": options.oracle,
        "data": dict(work.data.hashes),
        "candidates": len(work.candidates.words),
        "candidates not used": work.unused,
        "questions": len(work.questions),
        "covered": sum(question.id in work.subjects for question in work.questions),
        "covered_by": ways(work.subjects),
        "not asked": skipped,
    }
