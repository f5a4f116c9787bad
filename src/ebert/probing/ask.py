"""Asking: which sequences the encoder is to see, in which batches, and what comes of each.

The plan is fixed before the first batch, so that a run that goes on after a kill sees the same batches, and with them
the same figures. A sequence that several questions or modes have in common is encoded once: without a vector for the
subject all modes are the same, and many subjects have several answers.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from ebert._io.progress import Advance, silent
from ebert.errors import EbertError
from ebert.model.batching import plan, windows
from ebert.model.ebert import EBert
from ebert.model.injection import Pieces
from ebert.model.modes import Mode
from ebert.probing.candidates import Candidates
from ebert.probing.questions import Question
from ebert.text import Passage

TOP = 10
DIGITS = 6  # of probabilities: what differs between two machines is beyond them


@dataclass(slots=True)
class Unit:
    """One thing to ask: the first question that needs it, its mode, and the answers wanted of it."""

    question: int
    mode: Mode
    length: int  # tokens of its sequences
    answers: list[int] = field(default_factory=list)  # places of right answers among the candidates


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the encoder says: rank and probability of every wanted answer, and the best candidates."""

    wanted: list[tuple[int, int, float]]  # candidate, rank, probability
    top: list[tuple[int, float]]  # candidate, probability


@dataclass
class Plan:
    """All units and batches, and which unit answers a question in a mode."""

    units: list[Unit]
    batches: list[list[int]]
    unit_of: dict[Mode, list[int]]  # by question


def make_plan(
    model: EBert,
    questions: Sequence[Question],
    answers: Sequence[Sequence[int]],
    modes: Sequence[Mode],
    sizes: Sequence[int],
    *,
    budget: int,
    advance: Advance = silent,
) -> Plan:
    """Plan how to ask questions in some modes.

    `answers` are the places of the right ones among the candidates, `sizes` the numbers of masks to ask with.
    """
    filler = model.filler()
    units: list[Unit] = []
    seen: dict[object, int] = {}
    unit_of: dict[Mode, list[int]] = {mode: [] for mode in modes}
    for window in windows(range(len(questions))):
        for mode in modes:
            cut = [filler.sequences([questions[n].passage(size) for n in window], mode) for size in sizes]
            for place, number in enumerate(window):
                sequences = [column[place] for column in cut]
                key = tuple((tuple(s.ids), tuple((p, m.entity) for p, m in s.entities.items())) for s in sequences)
                if key not in seen:
                    seen[key] = len(units)
                    units.append(Unit(number, mode, max(map(len, sequences)) * len(sequences)))
                unit = units[seen[key]]
                unit.answers += [answer for answer in answers[number] if answer not in unit.answers]
                unit_of[mode].append(seen[key])
        advance(len(window))
    return Plan(units, plan([unit.length for unit in units], budget), unit_of)


class Asker:
    """Asks an encoder, batch by batch."""

    def __init__(self, model: EBert, candidates: Candidates) -> None:
        self._filler, self._candidates = model.filler(), candidates
        device = model.encoder.device
        self._pieces = {size: torch.tensor(ids, device=device) for size, ids in candidates.pieces.items()}

    def __call__(self, batch: Sequence[tuple[Unit, Question]]) -> list[Outcome]:
        """Ask a batch."""
        sizes = self._candidates.sizes
        sequences: list[Pieces] = []
        for modes in _runs(batch):
            passages: list[Passage] = [q.passage(size) for _, q in modes for size in sizes]
            sequences += self._filler.sequences(passages, modes[0][0].mode)
        scores = self._scores(self._filler.logits(sequences), len(batch))  # (units, candidates)
        probabilities = scores.softmax(dim=-1)
        top = probabilities.topk(min(TOP, probabilities.shape[1]))
        chosen, values = top.indices.tolist(), top.values.tolist()
        rows = torch.tensor([row for row, (unit, _) in enumerate(batch) for _ in unit.answers], device=scores.device)
        places = torch.tensor([place for unit, _ in batch for place in unit.answers], device=scores.device)
        right = scores[rows, places][:, None]  # (answers, 1)
        if not scores.isfinite().all():
            raise EbertError(
                "the encoder's scores are not finite numbers, so that no answer can be ranked; its weights, the entity "
                "vectors or the precision are to blame (try --precision float32)"
            )
        # Of candidates with the same score, as 16 bits have them, the first of the list goes first.
        ahead = torch.arange(scores.shape[1], device=scores.device) < places[:, None]
        ranks = ((scores[rows] > right) | ((scores[rows] == right) & ahead)).sum(dim=1).add(1).tolist()
        chances = probabilities[rows, places].tolist()
        outcomes = []
        done = 0
        for row, (unit, _) in enumerate(batch):
            own = slice(done, done + len(unit.answers))
            done = own.stop
            rounded = [round(chance, DIGITS) for chance in chances[own]]
            best = [(place, round(value, DIGITS)) for place, value in zip(chosen[row], values[row], strict=True)]
            outcomes.append(Outcome(list(zip(unit.answers, ranks[own], rounded, strict=True)), best))
        return outcomes

    def _scores(self, logits: Tensor, count: int) -> Tensor:
        """Give the scores of all candidates for each unit: the mean log-probability of their pieces."""
        if self._candidates.sizes == [1]:
            return logits[:, self._pieces[1][:, 0]]  # the same but for a constant
        log = logits.log_softmax(dim=-1).view(count, -1, logits.shape[1])  # (units, masks, vocabulary)
        columns, first = [], 0
        for size in self._candidates.sizes:
            ids = self._pieces[size]  # (candidates, size)
            picked = torch.stack([log[:, first + n].index_select(1, ids[:, n]) for n in range(size)])
            columns.append(picked.mean(dim=0))  # (units, candidates)
            first += size
        return torch.cat(columns, dim=1)


def _runs(batch: Sequence[tuple[Unit, Question]]) -> list[list[tuple[Unit, Question]]]:
    """Cut a batch where the mode changes, keeping its order."""
    runs: list[list[tuple[Unit, Question]]] = []
    for item in batch:
        if runs and runs[-1][0][0].mode == item[0].mode:
            runs[-1].append(item)
        else:
            runs.append([item])
    return runs


def best(outcome: Outcome, answers: Sequence[int]) -> tuple[int, float]:
    """Give rank and probability of the best of a question's answers."""
    known: Mapping[int, tuple[int, float]] = {place: (rank, chance) for place, rank, chance in outcome.wanted}
    return min((known[answer] for answer in answers), key=lambda found: found[0])
