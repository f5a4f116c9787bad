"""Ask an encoder: which candidates it chooses from, which entity a subject has, which batches it sees.

The plan of batches is fixed before the first one. So a run that continues after a kill sees the same batches and gets
the same figures. A sequence shared by several questions or modes is encoded once: without a vector for the subject all
modes are the same, and many subjects have several answers.
"""

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor
from transformers import PreTrainedTokenizerBase

from ebert._io.progress import Advance, silent
from ebert._io.records import read_table
from ebert.errors import EbertError
from ebert.model.batching import plan, windows
from ebert.model.ebert import EBert
from ebert.model.encoder import Vocabulary
from ebert.model.injection import Pieces
from ebert.model.options import Mode
from ebert.probing.questions import Question
from ebert.text import titles
from ebert.vectors.entity import Entity
from ebert.vectors.store import Vectors

LONGEST = 8  # wordpieces of an answer
TOP = 10  # candidates to keep of each sequence
DIGITS = 6  # of probabilities: what differs between two machines is beyond them

Wanted = tuple[Question, list[int]]  # a question, and the places of its right answers among the candidates


@dataclass(frozen=True)
class Candidates:
    """The words that answers are chosen from, as one encoder knows them, and their wordpieces, grouped by number.

    LAMA's list has words that are one wordpiece of every model it was made for. Another encoder takes those of them
    that are one wordpiece of its own; one that lower-cases takes the list in small letters (the paper's footnote on
    ERNIE and KnowBert). Your own questions may have answers of several wordpieces: then each piece has its own mask,
    and the score is the mean of their log-probabilities.
    """

    words: list[str]
    """All candidates, those of one wordpiece first, then those of two, ..."""
    pieces: dict[int, list[list[int]]]
    """By the number of wordpieces: the candidates' pieces, in the order of `words`."""
    lowers: bool = False
    index: dict[str, int] = field(default_factory=dict, repr=False)

    @property
    def sizes(self) -> list[int]:
        """The numbers of masks that a question is asked with."""
        return sorted(self.pieces)

    def find(self, answer: str) -> int | None:
        """Return the place of an answer among the candidates, or None."""
        return self.index.get(answer.lower() if self.lowers else answer)

    def find_all(self, answers: Iterable[str]) -> list[int]:
        """Return the places of those answers that are candidates."""
        return [place for answer in answers if (place := self.find(answer)) is not None]


def choose(
    tokenizer: PreTrainedTokenizerBase, words: Iterable[str] | None, answers: Iterable[str] = ()
) -> tuple[Candidates, int]:
    """Return the candidates of an encoder, and how many of `words` it cannot use.

    `words` are used as far as they are one wordpiece; None stands for all words that the encoder's vocabulary has. All
    of `answers` are candidates, whatever the number of their wordpieces.
    """
    vocabulary = Vocabulary(tokenizer)
    lowers = vocabulary.lower_cases

    def spelled(word: str) -> str:
        return word.lower() if lowers else word

    singles, unused = vocabulary.words, 0
    if words is not None:
        given = list(dict.fromkeys(map(spelled, words)))
        singles = vocabulary.single(given)
        unused = len(given) - len(singles)
    pieces_of: dict[str, tuple[int, ...]] = {word: (piece,) for word, piece in singles.items()}
    for answer, cut in vocabulary.cut(map(spelled, answers)).items():
        if answer not in pieces_of and 0 < len(cut) <= LONGEST and tokenizer.unk_token_id not in cut:
            pieces_of[answer] = tuple(cut)
    names: dict[tuple[int, ...], str] = {}
    for word, ids in pieces_of.items():
        names.setdefault(ids, word)  # 'são' and 'sao' are one wordpiece where accents are dropped
    if not names:
        raise EbertError("no candidate is a wordpiece of this encoder: is the vocabulary in another language?")
    order = sorted(names, key=len)
    place = {ids: number for number, ids in enumerate(order)}
    by_size = {size: [list(ids) for ids in group] for size, group in groupby(order, key=len)}
    index = {word: place[ids] for word, ids in pieces_of.items()}
    return Candidates([names[ids] for ids in order], by_size, lowers, index), unused


@dataclass(frozen=True, slots=True)
class Subject:
    """The entity of a subject, and the way it was found."""

    entity: Entity
    way: str  # 'given', 'oracle', 'label', 'title' or 'redirect'


def read_labels(path: str | Path) -> dict[str, int]:
    """Read a table of Wikidata ids and English labels (columns ``id`` and ``label``); the lowest id of a label wins."""
    labels: dict[str, int] = {}
    for number, row in read_table(Path(path), needed="label"):
        if isinstance(row, EbertError):
            raise EbertError(f"{path}, line {number}: {row}")
        key, label = row.get("id"), row.get("label")
        found = titles.wikidata_id(str(key)) if key is not None else None
        if found is None or not isinstance(label, str):
            raise EbertError(f"{path}, line {number}: an 'id' such as Q42 and a 'label' are needed")
        labels[label] = min(found, labels.get(label, found))
    if not labels:
        raise EbertError(f"{path} has no labels")
    return labels


class SubjectFinder:
    """Finds the entities of subjects in a store, offline.

    The paper asks Wikidata for all entities with that English label and takes the lowest id. Where ids and labels are
    known (``--labels`` and a store with Wikidata ids) that is done here; if that entity has no vector, the subject has
    none. A name that is no label is looked up as a title, then as a redirect. LAMA's own ids are an oracle, which BERT
    does not have either, and used on request only.
    """

    def __init__(self, vectors: Vectors, *, labels: Mapping[str, int] | None = None, oracle: bool = False) -> None:
        self._vectors, self._labels, self._oracle = vectors, labels or {}, oracle
        self._known = cache(self._find)

    def __call__(self, question: Question) -> Subject | None:
        """Find the entity of a question's subject, or None if it has no vector."""
        if not question.subject:
            return None
        return self._known(question.subject, question.entity, question.oracle if self._oracle else None)

    def _find(self, name: str, given: str | None, oracle: str | None) -> Subject | None:
        label = f"Q{self._labels[name]}" if name in self._labels else None
        for way, title in (("given", given), ("oracle", oracle), ("label", label)):
            if title is None:
                continue
            if (entity := self._vectors.find(title)) is not None:
                return Subject(entity, way)
            if way != "oracle":  # if an entity is named, no other is meant; the paper's rule agrees
                return None
        entity = self._vectors.find(name)
        if entity is None:
            return None
        return Subject(entity, "title" if entity.title in titles.spellings(name) else "redirect")


@dataclass(frozen=True, slots=True)
class TokenizedQuestion:
    """A question that can be asked, and what the encoder sees of it."""

    question: Question
    answers: list[int]  # places of its right answers among the candidates
    sequences: dict[Mode, list[Pieces]]  # by mode: one for each number of masks


@dataclass(frozen=True, slots=True)
class Ranking:
    """What the encoder says to a sequence: rank and probability of every wanted answer, and the best candidates."""

    wanted: list[tuple[int, int, float]]  # candidate, rank, probability
    top: list[tuple[int, float]]  # candidate, probability


@dataclass(slots=True)
class Unit:
    """One thing to ask: its sequences, one for each number of masks, and the answers wanted of it."""

    sequences: list[Pieces]
    answers: list[int] = field(default_factory=list)  # places of right answers among the candidates

    @property
    def length(self) -> int:
        """How many tokens it takes, padded."""
        return max(map(len, self.sequences)) * len(self.sequences)


class Result(NamedTuple):
    """How a question was answered in a mode: rank and probability of its best right answer, and the best candidates."""

    rank: int
    probability: float
    top: list[tuple[str, float]]


@dataclass
class ProbePlan:
    """The questions that can be asked, and all units and batches; and which unit answers a question in a mode."""

    questions: list[Question] = field(default_factory=list)
    answers: list[list[int]] = field(default_factory=list)
    units: list[Unit] = field(default_factory=list)
    batches: list[list[int]] = field(default_factory=list)
    unit_of: dict[Mode, list[int]] = field(default_factory=dict)  # by question

    def result(self, rankings: Mapping[int, Ranking], number: int, mode: Mode, words: Sequence[str]) -> Result:
        """Return how a question was answered in a mode, from the rankings of the units."""
        ranking = rankings[self.unit_of[mode][number]]
        known = {place: (rank, chance) for place, rank, chance in ranking.wanted}
        rank, chance = min((known[answer] for answer in self.answers[number]), key=lambda found: found[0])
        return Result(rank, chance, [(words[place], value) for place, value in ranking.top])


def tokenize(
    model: EBert, wanted: Sequence[Wanted], modes: Sequence[Mode], sizes: Sequence[int]
) -> list[TokenizedQuestion]:
    """Cut questions into sequences in some modes, with some numbers of masks (`sizes`), each once.

    Raise `EbertError` if one of them is too long for the encoder or cannot be cut.
    """
    cut = model.filler().sequences
    found: list[dict[Mode, list[Pieces]]] = [{} for _ in wanted]
    for mode in modes:  # without an entity all modes have the same sequences
        own = [n for n, (question, _) in enumerate(wanted) if mode == modes[0] or question.entity is not None]
        if not own:
            continue
        # The longest first: an error tells of it.
        columns = [cut([wanted[n][0].passage(size) for n in own], mode) for size in sorted(sizes, reverse=True)]
        for n, *sequences in zip(own, *reversed(columns), strict=True):
            found[n][mode] = [replace(pieces, spans=[]) for pieces in sequences]  # spans are large, and not needed
    return [
        TokenizedQuestion(question, answers, {mode: by_mode.get(mode, by_mode[modes[0]]) for mode in modes})
        for (question, answers), by_mode in zip(wanted, found, strict=True)
    ]


def tokenize_fitting(
    model: EBert,
    wanted: Iterable[Wanted],
    modes: Sequence[Mode],
    sizes: Sequence[int],
    refuse: Callable[[Question, EbertError], None],
    advance: Advance = silent,
) -> Iterator[TokenizedQuestion]:
    """Yield the results of `tokenize` for any number of questions; pass those that do not fit to `refuse`."""
    for window in windows(wanted):
        try:
            tokenized = tokenize(model, window, modes, sizes)
        except EbertError:
            tokenized = []
            for one in window:
                try:
                    tokenized += tokenize(model, [one], modes, sizes)
                except EbertError as error:
                    refuse(one[0], error)
        yield from tokenized
        advance(len(window))


def make_plan(questions: Iterable[TokenizedQuestion], modes: Sequence[Mode], *, budget: int) -> ProbePlan:
    """Plan how to ask questions, in batches of at most `budget` tokens."""
    made = ProbePlan(unit_of={mode: [] for mode in modes})
    seen: dict[object, int] = {}
    for window in windows(questions):
        made.questions += [one.question for one in window]
        made.answers += [one.answers for one in window]
        for mode in modes:
            for one in window:
                sequences = one.sequences[mode]
                key = tuple((tuple(s.ids), tuple((p, m.entity) for p, m in s.entities.items())) for s in sequences)
                if key not in seen:
                    seen[key] = len(made.units)
                    made.units.append(Unit(sequences))
                unit = made.units[seen[key]]
                unit.answers += [answer for answer in one.answers if answer not in unit.answers]
                made.unit_of[mode].append(seen[key])
    made.batches = plan([unit.length for unit in made.units], budget)
    return made


class Asker:
    """Asks an encoder, batch by batch."""

    def __init__(self, model: EBert, candidates: Candidates) -> None:
        self._filler, self._sizes = model.filler(), candidates.sizes
        device = model.encoder.device
        self._pieces = {size: torch.tensor(ids, device=device) for size, ids in candidates.pieces.items()}

    def run(self, plan: ProbePlan, known: Container[int] = ()) -> Iterator[dict[int, Ranking]]:
        """Yield the rankings of the units of each batch, except batches that are `known`."""
        for batch in plan.batches:
            if not all(number in known for number in batch):
                yield dict(zip(batch, self([plan.units[number] for number in batch]), strict=True))

    def __call__(self, units: Sequence[Unit]) -> list[Ranking]:
        """Ask a batch."""
        sequences = [pieces for unit in units for pieces in unit.sequences]
        scores = self._scores(self._filler.logits(sequences), len(units))  # (units, candidates)
        if not scores.isfinite().all():
            raise EbertError(
                "the encoder's scores are not finite numbers, so answers cannot be ranked; check its weights, the "
                "entity vectors and the precision (try --precision float32)"
            )
        probabilities = scores.softmax(dim=-1)
        values, chosen = (part.tolist() for part in probabilities.topk(min(TOP, probabilities.shape[1])))
        rows = torch.tensor([row for row, unit in enumerate(units) for _ in unit.answers], device=scores.device)
        places = torch.tensor([place for unit in units for place in unit.answers], device=scores.device)
        right = scores[rows, places][:, None]  # (answers, 1)
        # Of candidates with the same score, as happens in 16 bits, the first of the list goes first.
        ahead = torch.arange(scores.shape[1], device=scores.device) < places[:, None]
        ranks = ((scores[rows] > right) | ((scores[rows] == right) & ahead)).sum(dim=1).add(1).tolist()
        chances = [round(chance, DIGITS) for chance in probabilities[rows, places].tolist()]
        wanted = zip(ranks, chances, strict=True)
        return [
            Ranking(
                [(place, *next(wanted)) for place in unit.answers],
                [(place, round(value, DIGITS)) for place, value in zip(chosen[row], values[row], strict=True)],
            )
            for row, unit in enumerate(units)
        ]

    def _scores(self, logits: Tensor, count: int) -> Tensor:
        """Return the scores of all candidates for each unit: the mean log-probability of their pieces."""
        if self._sizes == [1]:
            return logits[:, self._pieces[1][:, 0]]  # the same but for a constant
        log = logits.log_softmax(dim=-1).view(count, -1, logits.shape[1])  # (units, masks, vocabulary)
        columns, first = [], 0
        for size in self._sizes:
            ids = self._pieces[size]  # (candidates, size)
            picked = torch.stack([log[:, first + n].index_select(1, ids[:, n]) for n in range(size)])
            columns.append(picked.mean(dim=0))  # (units, candidates)
            first += size
        return torch.cat(columns, dim=1)
