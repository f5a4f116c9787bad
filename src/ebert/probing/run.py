"""Probe a masked language model: questions in, a run folder with ranks and scores out (DESIGN: files on disk).

``run.json`` says what was asked of what. While the run is on, journals have what is done, a line for every batch; the
results are written at the end, each at once. The same command continues a run that was stopped; other options are
refused, as results of two kinds would be mixed.
"""

import hashlib
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from ebert import __version__
from ebert._io import files
from ebert._io.progress import Watch, unwatched
from ebert._io.records import write_lines
from ebert._io.staging import is_temporary
from ebert._runs import Journal, alone_in, hash_weights, processor, refuse_other, remove_halves
from ebert.errors import EbertError
from ebert.model.batching import budget_on, windows
from ebert.model.ebert import EBert
from ebert.probing import filters
from ebert.probing.ask import (
    Asker,
    Candidates,
    ProbePlan,
    Ranking,
    Subject,
    SubjectFinder,
    choose,
    make_plan,
    tokenize_fitting,
)
from ebert.probing.metrics import metrics
from ebert.probing.options import ProbeOptions
from ebert.probing.questions import Question, Questions, SkippedQuestion, limited, reasons

RUN, PREDICTIONS, METRICS = "run.json", "predictions.jsonl", "metrics.json"
QUESTIONS, NAMES, SKIPPED = "questions.jsonl", "names.jsonl", "skipped.jsonl"
JOURNALS = ASKED, GUESSED = "asked.journal", "guessed.journal"
FILES = (*JOURNALS, PREDICTIONS, METRICS, QUESTIONS, NAMES, SKIPPED, RUN)  # the last one says what it is
FORMAT = 1


@dataclass
class Probe:
    """A run: everything that is known before the first question is asked."""

    model: EBert
    data: Questions
    options: ProbeOptions
    candidates: Candidates
    unused: int  # words of the given vocabulary that are no candidates
    skipped: list[SkippedQuestion]
    plan: ProbePlan = field(default_factory=ProbePlan)
    subjects: dict[str, Subject] = field(default_factory=dict)  # by question
    persons: list[Question] = field(default_factory=list)  # whose names the name filter asks about
    name_model: EBert | None = None
    identity: dict[str, Any] = field(default_factory=dict)

    @property
    def budget(self) -> int:
        """Tokens in a batch."""
        return self.options.budget or budget_on(self.model.encoder.device.type)


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
    """Ask a model questions, or continue asking, and return the scores (`metrics.json`).

    `labels` has the lowest Wikidata id of each English label; `name_model` returns the BERT that the person-name filter
    asks (bert-base-cased).
    """
    began, folder = time.monotonic(), Path(out)
    work = _prepare(model, data, options or ProbeOptions(), labels, name_model, watch)
    with _opened(folder, work.identity, overwrite=overwrite) as complete:
        if not complete:
            checks = _check_names(work, folder, watch)
            rankings = _ask(work, folder, watch)
            _write_results(work, folder, checks, rankings)
            facts = {"command": command, "seconds": round(time.monotonic() - began, 1), "machine": processor()}
            _write_info(folder, {**_facts(work), **facts, "identity": work.identity}, complete=True)
            _remove(folder, JOURNALS)
    return files.read_json(folder / METRICS, "a complete run")


def _prepare(
    model: EBert,
    data: Questions,
    options: ProbeOptions,
    labels: Mapping[str, int] | None,
    name_model: Callable[[], EBert] | None,
    watch: Watch,
) -> Probe:
    """Find out which questions can be asked, about which entities, in which batches."""
    if model.vectors is None and any(mode != "bert" for mode in options.modes):
        raise EbertError("the modes concat and replace need entity vectors: give a model made by 'ebert align'")
    every = () if data.is_lama else [answer for question in data.questions for answer in question.answers]
    work = Probe(model, data, options, *choose(model.tokenizer, data.vocabulary, every), list(data.skipped))

    def skip(question: Question, why: object) -> None:
        work.skipped.append(SkippedQuestion(question.where, str(why), question.id))

    usable: dict[str, list[int]] = {}  # by question: the places of its right answers
    for question in data.questions:
        if places := work.candidates.find_all(question.answers):
            usable[question.id] = places
        else:
            skip(question, "its answer is not a candidate of this encoder")
    questions = [question for question in data.questions if question.id in usable]
    if options.limit:
        questions = limited(questions, options.limit)
    subjects = _find_subjects(work, questions, labels)
    about = {name: subject.entity.title for name, subject in subjects.items()}
    wanted = ((replace(question, entity=about.get(question.id)), usable[question.id]) for question in questions)
    with watch("plan", total=len(questions), unit="questions") as advance:
        tokenized = tokenize_fitting(model, wanted, work.options.modes, work.candidates.sizes, skip, advance)
        work.plan = make_plan(tokenized, work.options.modes, budget=work.budget)
    if not work.plan.questions:
        raise EbertError(f"no question can be asked ({', '.join(reasons(work.skipped))})")
    work.subjects = {q.id: subjects[q.id] for q in work.plan.questions if q.id in subjects}
    if data.is_lama and filters.ask_names(options.filters):
        work.persons = filters.with_persons(work.plan.questions)
    if work.persons:
        work.name_model = name_model() if name_model else EBert.plain(filters.NAME_BERT)
    work.identity = _identity(work, labels)
    return work


def _find_subjects(work: Probe, questions: Sequence[Question], labels: Mapping[str, int] | None) -> dict[str, Subject]:
    """Return the subjects that have a vector, by the questions' ids."""
    if work.model.vectors is None:
        return {}
    find = SubjectFinder(work.model.vectors, labels=labels, oracle=work.options.oracle)
    subjects = {question.id: found for question in questions if (found := find(question)) is not None}
    if labels and any(q.subject in labels for q in questions) and all(s.way != "label" for s in subjects.values()):
        raise EbertError("no label leads to an entity: the store has no Wikidata ids of them (ebert corpus wikidata)")
    return subjects


def _check_names(work: Probe, folder: Path, watch: Watch) -> dict[str, filters.NameCheck]:
    """Ask about the names of persons, or continue asking."""
    if work.name_model is None:
        return {}
    guesses: filters.Guesses = {}
    with Journal(folder / GUESSED) as journal:
        for part, kind, tokens in (row for window in journal.read() for row in window):
            guesses[part, kind] = tokens
        parts = filters.all_name_parts(work.persons)
        with watch("names", total=len(parts), unit="names") as advance:
            for window in filters.guess_names(work.name_model, parts, known=guesses.copy(), advance=advance):
                journal.add([[*part, tokens] for part, tokens in window.items()])
                guesses |= window
    return filters.check_names(work.persons, guesses, lower=work.name_model.vocabulary.lower_cases)


def _ask(work: Probe, folder: Path, watch: Watch) -> dict[int, Ranking]:
    """Ask all units of the plan, or continue asking."""
    rankings: dict[int, Ranking] = {}
    with Journal(folder / ASKED) as journal:
        for wanted, top, unit in (row for batch in journal.read() for row in batch):
            rankings[unit] = Ranking([tuple(row) for row in wanted], [tuple(row) for row in top])
        with watch("ask", total=len(work.plan.units), unit="sequences") as advance:
            advance(len(rankings))
            for found in Asker(work.model, work.candidates).run(work.plan, known=frozenset(rankings)):
                journal.add([[ranking.wanted, ranking.top, unit] for unit, ranking in found.items()])
                rankings |= found
                advance(len(found))
    return rankings


def _write_results(
    work: Probe, folder: Path, checks: Mapping[str, filters.NameCheck], rankings: Mapping[int, Ranking]
) -> None:
    """Write everything but `run.json`."""
    rows = list(_predictions(work, checks, rankings))
    scores: dict[str, Any] = {"modes": metrics(rows, work.options.modes, work.options.filters)}
    if work.options.limit:
        scores["limit"] = work.options.limit
    shown = ("id", "relation", "text", "subject", "answers", "entity")
    write_lines(folder / PREDICTIONS, rows)
    write_lines(folder / QUESTIONS, ({name: getattr(q, name) for name in shown} for q in work.plan.questions))
    write_lines(folder / SKIPPED, map(asdict, work.skipped))
    if filters.ask_names(work.options.filters):
        write_lines(folder / NAMES, ({**asdict(check), "dropped": check.dropped} for check in checks.values()))
    files.write_json(folder / METRICS, scores)


def _predictions(
    work: Probe, checks: Mapping[str, filters.NameCheck], rankings: Mapping[int, Ranking]
) -> Iterator[dict[str, Any]]:
    """Yield the rows of `predictions.jsonl`."""
    rules = list(filters.FILTERS) if work.data.is_lama else filters.own_filters()
    for number, question in enumerate(work.plan.questions):
        subject = work.subjects.get(question.id)
        results = {mode: work.plan.result(rankings, number, mode, work.candidates.words) for mode in work.options.modes}
        yield {
            "id": question.id,
            "relation": question.relation,
            "covered": subject is not None,
            "count": subject.entity.count if subject else None,
            "dropped": filters.dropped(question, checks.get(question.id), names=rules),
            "modes": {mode: result._asdict() for mode, result in results.items()},
        }


def _facts(work: Probe) -> dict[str, Any]:
    """Return what `run.json` says about a complete run."""
    model, options, questions, identity = work.model, work.options, work.plan.questions, work.identity
    about = None
    if model.vectors is not None and model.alignment is not None:
        vectors = model.vectors
        about = {
            "vectors": {
                "path": vectors.path.name, "fingerprint": vectors.fingerprint, "dimension": vectors.dimension,
                "entities": vectors.info.entities,
            },
            "alignment": asdict(model.alignment.report) | model.alignment.learning(),
        }  # fmt: skip
    return {
        **{name: identity[name] for name in ("ebert", "benchmark", "encoder", "name-bert")},
        "model": about,
        "modes": list(options.modes),
        "filters": list(options.filters),
        "relations": sorted({question.relation for question in questions}),
        **{name: identity[name] for name in ("limit", "precision", "oracle", "data")},
        "candidates": len(work.candidates.words),
        "candidates not used": work.unused,
        "questions": len(questions),
        "covered": len(work.subjects),
        "covered_by": dict(sorted(Counter(subject.way for subject in work.subjects.values()).items())),
        "not asked": reasons(work.skipped),
    }


def _identity(work: Probe, labels: Mapping[str, int] | None) -> dict[str, Any]:
    """Return what the results depend on: two runs with the same identity have the same results.

    Models, data and options are hashed; names are those of the command line, for messages.
    """
    model, asked, options, questions = work.model, work.name_model, work.options, work.plan.questions
    encoder = {"name": model.name, "weights": hash_weights(model.encoder)}
    name_bert = None if asked is None else {"name": asked.name, "weights": hash_weights(asked.encoder)}
    return {
        "ebert": __version__,
        "benchmark": work.data.name,
        "encoder": encoder,
        "name-bert": encoder if asked is model else name_bert,
        "model": None if model.alignment is None else _hash_entities(model, questions),
        "mode": list(options.modes),
        "filter": list(options.filters),
        "limit": options.limit,
        "oracle": options.oracle,
        "labels": _hash(f"{label}\t{number}" for label, number in sorted(labels.items())) if labels else None,
        "precision": options.precision,
        "budget": work.budget,
        "questions": _hash(f"{q.id}\t{q.text}\t{q.answers}\t{q.entity}" for q in questions),
        "candidates": _hash(work.candidates.words),
        "data": dict(work.data.hashes),
    }


def _hash(lines: Iterable[str]) -> str:
    digest = hashlib.sha256()
    for line in lines:
        digest.update(line.encode("utf-8", "surrogatepass") + b"\n")
    return digest.hexdigest()


def _hash_entities(model: EBert, questions: Sequence[Question]) -> str:
    """Hash the projected vectors that are used, whatever store and alignment they come from."""
    titles = sorted({question.entity for question in questions if question.entity is not None})
    digest = hashlib.sha256()
    for window in windows(titles):
        digest.update(model.project(window).contiguous().numpy().data)
    return digest.hexdigest()


@contextmanager
def _opened(folder: Path, identity: Mapping[str, Any], *, overwrite: bool) -> Iterator[bool]:
    """Begin or continue a run, alone; yield whether it is complete already."""
    folder = folder.absolute()

    def ours(file: Path) -> bool:
        return file.name in FILES or is_temporary(file.name, *FILES)

    with alone_in(folder, marker=RUN, ours=ours) as known:
        remove_halves(folder, *FILES)
        complete = False
        if known:
            before = files.read_json(folder / RUN, "a run")
            changes = refuse_other(folder, before.get("identity", {}), identity, what="a run", overwrite=overwrite)
            if changes or overwrite:
                _remove(folder, FILES)
            else:
                complete = bool(before.get("complete"))
        if complete:
            _remove(folder, JOURNALS)
        else:
            _write_info(folder, {"identity": identity}, complete=False)
        yield complete


def _write_info(folder: Path, facts: Mapping[str, Any], *, complete: bool) -> None:
    files.write_json(folder / RUN, {"kind": "probe", "format": FORMAT, "complete": complete, **facts})


def _remove(folder: Path, names: Iterable[str]) -> None:
    for name in names:
        (folder / name).unlink(missing_ok=True)
