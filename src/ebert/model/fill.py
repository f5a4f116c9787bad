"""Fill masks: the encoder's answers for the masks of a text."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

import torch
from torch import Tensor

from ebert.errors import EbertError
from ebert.model.batching import begins, fill_rows
from ebert.model.encoder import Encoder, Vocabulary
from ebert.model.injection import Injector, Pieces
from ebert.model.options import Mode
from ebert.text.passage import Passage


@dataclass(frozen=True, slots=True)
class Answer:
    """A wordpiece for a mask, and its probability."""

    token: str
    probability: float


@dataclass(frozen=True, slots=True)
class Filled:
    """The answers for every mask of a passage, best first."""

    passage: Passage
    mode: Mode
    masks: tuple[tuple[Answer, ...], ...]
    missing: tuple[str, ...] = ()
    """Titles without a vector, which the encoder saw as wordpieces only."""

    @property
    def answers(self) -> tuple[Answer, ...]:
        """The answers for the only mask; an error if there are several."""
        if len(self.masks) != 1:
            raise EbertError(
                f"one mask is expected, but the text has {len(self.masks)}: {self.passage.text[:60]!r} "
                "(`masks` has the answers for each)"
            )
        return self.masks[0]

    @property
    def best(self) -> str:
        """The best answer for the only mask."""
        return self.answers[0].token


class Filler:
    """Answers batches of sequences with masks."""

    def __init__(self, encoder: Encoder, injector: Injector, vocabulary: Vocabulary) -> None:
        self._encoder, self._injector, self._vocabulary = encoder, injector, vocabulary
        self.sequences, self.show = injector.sequences, injector.sequencer.show

    @property
    def packs(self) -> bool:
        """Whether the encoder can take several sequences in one row."""
        return self._encoder.only_absolute_positions

    def logits(self, batch: Sequence[Pieces], *, packed: bool = False) -> Tensor:
        """Return the logits of all wordpieces for all masks of a batch, shape (masks, vocabulary).

        With `packed`, sequences share rows instead of being padded to the longest: for those of mixed lengths.
        """
        if unmasked := [pieces.passage.text for pieces in batch if not pieces.masks]:
            raise EbertError(f"the text has no mask; write [MASK] where the answer goes: {unmasked[0][:60]!r}")
        lengths = list(map(len, batch))
        filled = fill_rows(lengths) if packed and self.packs else [[number] for number in range(len(batch))]
        starts = begins(filled, lengths)
        places = [(row, start + m) for (row, start), p in zip(starts, batch, strict=True) for m in p.masks]
        rows, columns = torch.tensor(places).T  # (masks,)
        inputs = self._injector.packed([[batch[number] for number in numbers] for numbers in filled])
        logits = self._encoder.logits(inputs, (rows, columns))  # (masks, vocabulary)
        return logits[:, : self._vocabulary.size].float()  # some encoders pad their vocabulary

    def answers(self, logits: Tensor, *, top: int, candidates: Sequence[int] | None = None) -> list[tuple[Answer, ...]]:
        """Return the best wordpieces for each row of logits. With candidates, probabilities are among these."""
        if candidates is not None:
            chosen = torch.tensor(candidates, device=logits.device)
            logits = logits[:, chosen]  # (masks, candidates)
        probabilities = logits.softmax(dim=-1)
        values, indices = probabilities.topk(min(top, probabilities.shape[1]))
        if candidates is not None:
            indices = chosen[indices]
        return [
            tuple(Answer(self._vocabulary.show(piece), value) for piece, value in zip(line, scores, strict=True))
            for line, scores in zip(indices.tolist(), values.tolist(), strict=True)
        ]

    def __call__(self, batch: Sequence[Pieces], *, top: int, candidates: Sequence[int] | None) -> list[Filled]:
        """Fill all masks of a batch. With candidates (wordpieces), probabilities are among these."""
        answers = iter(self.answers(self.logits(batch), top=top, candidates=candidates))
        return [Filled(p.passage, p.mode, tuple(islice(answers, len(p.masks))), p.missing) for p in batch]
