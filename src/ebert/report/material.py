"""What all sections are written from: the runs, their scores, the options."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ebert.probing.filters import FILTERS
from ebert.report import published
from ebert.report.comparison import Difference, baseline, difference
from ebert.report.document import Options
from ebert.report.plots import Look, looks
from ebert.report.runs import Column, Run, columns


@dataclass(frozen=True)
class Material:
    """The runs of a report with their scores, recomputed from the predictions, by the run's name."""

    runs: Sequence[Run]
    scores: Mapping[str, Any]
    options: Options

    @cached_property
    def columns(self) -> list[Column]:
        """All modes of all runs."""
        return columns(self.runs)

    @cached_property
    def looks(self) -> dict[str, Look]:
        """How each column is drawn, by label."""
        return looks(self.columns)

    @property
    def is_lama(self) -> bool:
        """Whether published figures may stand beside ours."""
        return self.runs[0].is_lama

    @property
    def filters(self) -> list[str]:
        """The filters that any run has."""
        return [name for name in FILTERS if any(name in run.filters for run in self.runs)]

    @cached_property
    def relations(self) -> list[str]:
        """All relations, in the order of the runs."""
        return list(dict.fromkeys(name for run in self.runs for name in run.outcomes.relations))

    @cached_property
    def questions(self) -> dict[str, Mapping[str, Any]]:
        """The questions by id, as far as a run has their text; runs over the same questions are read once."""
        found: dict[str, Mapping[str, Any]] = {}
        for run in self.runs:
            if run.has("questions.jsonl") and not all(one in found for one in run.ids):
                found = {**run.questions(), **found}
        return found

    @cached_property
    def without_questions(self) -> list[Run]:
        """The runs whose questions no run has the text of."""
        return [run for run in self.runs if not any(one in self.questions for one in run.ids)]

    @cached_property
    def changes(self) -> list[tuple[Column, Column, Difference]]:
        """Every column beside its plain BERT, on all questions."""
        found = []
        for column in self.columns:
            plain = baseline(column, self.runs)
            if plain is not None:
                compared = difference(column, plain, resamples=self.options.resamples)
                if compared is not None:
                    found.append((column, plain, compared))
        return found

    def block(self, column: Column, name: str, *, covered_only: bool = False) -> Mapping[str, Any] | None:
        """Give the scores of a column after a filter; none if the run did not have the filter."""
        found: Mapping[str, Any] | None = self.scores[column.run.name][column.mode].get(name)
        return found["covered_only"] if found is not None and covered_only else found

    def hits(self, column: Column, name: str, *, covered_only: bool = False) -> float | None:
        """Give the mean Hits@1 of a column after a filter."""
        block = self.block(column, name, covered_only=covered_only)
        return block["macro"].get("hits@1") if block else None

    def label(self, relation: str) -> str:
        """Name a relation for people."""
        return published.label(relation, is_lama=self.is_lama)
