"""Asking the rows of a corpus: each is a question of your own (`ebert.probing.questions` has the format)."""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

from ebert._io import files
from ebert.bulk.inputs import Source
from ebert.bulk.job import ModelJob, RowResults, each, identify, together
from ebert.bulk.options import ReadOptions
from ebert.bulk.rows import BadRow, Row
from ebert.errors import EbertError

if TYPE_CHECKING:
    import pyarrow as pa

    from ebert.model.ebert import EBert
    from ebert.probing.ask import TokenizedQuestion
    from ebert.probing.questions import Question

    # A question with the entity of its subject, the places of its right answers among the candidates, and how often
    # its subject was seen in training.
    Asked = tuple[Question, list[int], int | None]

METRICS = "metrics.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeJob(ModelJob):
    """Asks every row, in some modes, and ranks its answers."""

    kind: ClassVar[str] = "probe"
    columns: ClassVar[tuple[str, ...]] = ("relation", "template", "subject", "entity", "answers", "answer")

    modes: tuple[str, ...] = ("bert",)
    vocabulary: tuple[str, ...] | None = None
    """The words to choose from, beside the answers; all words of the encoder, if not given."""
    answers: tuple[str, ...] = ()
    """The answers of all questions, which are candidates of each: `prepared` finds them."""

    def check_source(self, source: Source, columns: Sequence[str] | None, read: ReadOptions) -> None:  # noqa: ARG002
        """Raise an error for a file that cannot contain questions."""
        if source.kind in ("lines", "text"):
            raise EbertError(f"{source.path} is text; questions are JSON lines or Parquet (docs/howto/probe.md)")
        if columns is not None and not {"answers", "answer"} & set(columns):
            raise EbertError(f"{source.path} has no column 'answers'; it has {', '.join(columns)}")

    def prepared(self, rows: Callable[[], Iterable[Row]]) -> Self:
        """Return the job with the answers of all questions."""
        found: dict[str, None] = {}
        for row in rows():
            with suppress(Exception):  # a bad row, which its worker will list
                found.update(dict.fromkeys(_question(row).answers))
        return replace(self, answers=tuple(found))

    def settings(self) -> dict[str, Any]:
        """Return what was asked for."""
        words = None if self.vocabulary is None else hashlib.sha256("\n".join(self.vocabulary).encode()).hexdigest()
        return {"modes": list(self.modes), "vocabulary": words, "dtype": self.dtype}

    def load(self, *, device: str | None = None) -> "ProbeWorker":
        """Load the model."""
        return ProbeWorker(self, self.load_model(device))

    def finish(self, folder: Path, shards: Sequence[Path]) -> dict[str, Any]:
        """Score all answers."""
        from ebert.probing.filters import own_filters
        from ebert.probing.metrics import metrics

        scores = {"modes": metrics(_outcomes(shards), self.modes, own_filters())}
        files.write_json(folder / METRICS, scores)
        return scores


class ProbeWorker:
    """An encoder at work."""

    def __init__(self, job: ProbeJob, model: "EBert") -> None:
        from ebert.model.options import check_mode
        from ebert.probing.ask import Asker, SubjectFinder, choose

        for mode in job.modes:
            check_mode(mode)
        if model.vectors is None and any(mode != "bert" for mode in job.modes):
            raise EbertError("the modes concat and replace need entity vectors: give a model made by 'ebert align'")
        self._model = model
        self._modes: Any = job.modes
        self._candidates, _ = choose(model.tokenizer, job.vocabulary, job.answers)
        self._asker = Asker(model, self._candidates)
        self._finder = None if model.vectors is None else SubjectFinder(model.vectors)
        self.identity = identify(model, model.encoder)

    def __call__(self, rows: Sequence[Row]) -> RowResults:
        """Ask the questions of rows."""
        import pyarrow as pa

        bad: list[BadRow] = []
        tokenized = together(each(rows, self._asked, bad), self._tokenize, bad)
        return RowResults(pa.Table.from_pylist(together(tokenized, self._values, bad), _schema()), bad)

    def _asked(self, row: Row) -> "Asked":
        """Find the subject of a question, and which candidates are right."""
        question = _question(row)
        places = self._candidates.find_all(question.answers)
        if not places:
            raise EbertError("its answer is not a candidate of this encoder")
        subject = self._finder(question) if self._finder else None
        found = subject.entity if subject else None
        return replace(question, entity=found.title if found else None), places, found.count if found else None

    def _tokenize(
        self, some: "Sequence[tuple[Row, Asked]]"
    ) -> "list[tuple[Row, tuple[TokenizedQuestion, int | None]]]":
        from ebert.probing.ask import tokenize

        wanted = [(question, places) for _, (question, places, _) in some]
        found = tokenize(self._model, wanted, self._modes, self._candidates.sizes)
        return [(row, (one, count)) for (row, (_, _, count)), one in zip(some, found, strict=True)]

    def _values(self, some: "Sequence[tuple[Row, tuple[TokenizedQuestion, int | None]]]") -> list[dict[str, Any]]:
        from ebert.model.batching import budget_on
        from ebert.probing.ask import make_plan
        from ebert.probing.filters import dropped, own_filters

        budget = budget_on(self._model.encoder.device.type)
        plan = make_plan([one for _, (one, _) in some], self._modes, budget=budget)
        rankings = {unit: found for batch in self._asker.run(plan) for unit, found in batch.items()}

        def answer(number: int, mode: Any) -> dict[str, Any]:
            rank, probability, best = plan.result(rankings, number, mode, self._candidates.words)
            top = [{"token": word, "probability": chance} for word, chance in best]
            return {"mode": mode, "rank": rank, "probability": probability, "top": top}

        return [
            {
                "row": row.number,
                "id": row.id,
                "relation": one.question.relation,
                "entity": one.question.entity,
                "covered": one.question.entity is not None,
                "count": count,
                "dropped": dropped(one.question, names=own_filters()),
                "modes": [answer(number, mode) for mode in self._modes],
            }
            for number, (row, (one, count)) in enumerate(some)
        ]


def _question(row: Row) -> "Question":
    from ebert.probing.questions import question_of

    fields = {name: value for name, value in row.fields.items() if value is not None}
    return question_of({**fields, "id": row.id}, row.number, row.where)


def _outcomes(shards: Sequence[Path]) -> Iterator[dict[str, Any]]:
    import pyarrow.parquet as pq

    for file in shards:
        for row in pq.read_table(file, columns=["relation", "covered", "dropped", "modes"]).to_pylist():
            yield {**row, "modes": {mode["mode"]: mode for mode in row["modes"]}}


def _schema() -> "pa.Schema":
    """Return the columns of answered questions."""
    import pyarrow as pa

    whole, text, real = pa.int64(), pa.string(), pa.float64()
    top = pa.list_(pa.struct({"token": text, "probability": real}))
    mode = pa.struct({"mode": text, "rank": whole, "probability": real, "top": top})
    return pa.schema(
        {
            "row": whole, "id": text, "relation": text, "entity": text, "covered": pa.bool_(), "count": whole,
            "dropped": text, "modes": pa.list_(mode),
        }
    )  # fmt: skip
