"""Feeding entities to the encoder: wordpieces by its own embedding, entities by their carried vectors.

The encoder adds position and segment embeddings afterwards, as for any wordpiece. Only the rows that a batch needs are
read from the store and carried over.
"""

import copy
from collections.abc import Collection, Iterable, Sequence

import torch
from torch import Tensor

from ebert.alignment import Alignment
from ebert.errors import EbertError
from ebert.model.encoder import Encoder
from ebert.model.packing import additive, sight
from ebert.model.sequence import Mode, Pieces, Sequencer
from ebert.text import Mention, Passage
from ebert.vectors.entity import Entity
from ebert.vectors.store import Vectors


class Injector:
    """Turns passages into sequences and sequences into the tensors that an encoder takes."""

    def __init__(self, encoder: Encoder, vectors: Vectors | None, alignment: Alignment | None) -> None:
        self._vectors, self._alignment = vectors, alignment
        # Not the encoder itself: a collator's workers need none of its layers.
        self._name, self._longest, self._embedding = encoder.name, encoder.longest, encoder.embedding
        self._first_position = encoder.first_position if encoder.takes_positions else None
        self.sequencer = Sequencer(encoder.tokenizer)
        self._filler = encoder.tokenizer.pad_token_id or 0

    def on_cpu(self) -> "Injector":
        """Give the same with wordpiece vectors of its own, in float32 on the CPU."""
        other = copy.copy(self)
        other._embedding = copy.deepcopy(self._embedding).float().cpu()
        return other

    def find(self, mentions: Collection[Mention]) -> dict[Mention, Entity]:
        """Give the entities of those mentions whose entities have a vector."""
        if self._vectors is None:
            return {}
        known: dict[str, Entity | None] = {}
        for mention in mentions:
            if mention.entity not in known:
                known[mention.entity] = self._vectors.find(mention.entity)
        return {m: entity for m in mentions if (entity := known[m.entity]) is not None}

    def sequences(self, passages: Sequence[Passage], mode: Mode) -> list[Pieces]:
        """Cut passages into wordpieces and entities, and refuse those that the encoder cannot take."""
        found = self.find({mention for passage in passages for mention in passage.mentions}) if mode != "bert" else {}
        cut = self.sequencer([(p, [m for m in p.mentions if m in found]) for p in passages], mode)
        for pieces in cut:
            if not pieces.passage.text.strip():
                raise EbertError("the text is empty")
            if len(pieces) > self._longest:
                raise EbertError(
                    f"the text has {len(pieces):,} wordpieces; {self._name} takes {self._longest:,}: "
                    f"shorten or split it ({pieces.passage.text[:60]!r}...)"
                )
        return cut

    def missing(self, passages: Iterable[Passage]) -> list[str]:
        """Give the titles in passages that have no vector, each once."""
        mentions = {m: None for passage in passages for m in passage.mentions}
        found = self.find(mentions)
        return list(dict.fromkeys(m.entity for m in mentions if m not in found))

    def carried(self, entities: Sequence[Entity]) -> Tensor:
        """Give the carried vectors of entities, shape (entities, width)."""
        if self._vectors is None or self._alignment is None:
            raise EbertError("this model has no entity vectors; make one with EBert.fit or 'ebert align'")
        carried = self._alignment.carry(self._vectors.take(entities))
        return torch.from_numpy(carried)

    @torch.no_grad()
    def tensors(self, batch: Sequence[Pieces]) -> dict[str, Tensor]:
        """Make the inputs of the encoder for a batch, padded to its longest sequence."""
        device = self._embedding.weight.device
        embeds, mask = self._rows([[pieces] for pieces in batch])
        inputs = {"inputs_embeds": embeds, "attention_mask": mask.to(device)}
        if self._first_position is not None:
            inputs["position_ids"] = _positions(mask, self._first_position).to(device)
        return inputs

    @torch.no_grad()
    def packed(self, rows: Sequence[Sequence[Pieces]]) -> dict[str, Tensor]:
        """Make the inputs for rows of several sequences each; for encoders with absolute positions only."""
        device = self._embedding.weight.device
        embeds, mask = self._rows(rows)
        sees = sight([[len(pieces) for pieces in row] for row in rows], embeds.shape[1])
        inputs = {"inputs_embeds": embeds, "attention_mask": additive(sees, embeds.dtype).to(device)}
        if self._first_position is not None:
            positions = _positions(mask, self._first_position)
            for number, row in enumerate(rows):
                start = 0
                for pieces in row:
                    positions[number, start : start + len(pieces)] -= start
                    start += len(pieces)
            inputs["position_ids"] = positions.to(device)
        return inputs

    def _rows(self, rows: Sequence[Sequence[Pieces]]) -> tuple[Tensor, Tensor]:
        """Give the vectors of rows, and which places have a piece: (rows, pieces, width) and (rows, pieces)."""
        longest = max(sum(map(len, row)) for row in rows)
        ids = torch.full((len(rows), longest), self._filler)  # (rows, pieces)
        mask = torch.zeros((len(rows), longest), dtype=torch.long)
        places: list[tuple[int, int]] = []
        mentions: list[Mention] = []
        for number, row in enumerate(rows):
            start = 0
            for pieces in row:
                ids[number, start : start + len(pieces)] = torch.tensor(pieces.ids)
                places += [(number, start + place) for place in pieces.entities]
                mentions += pieces.entities.values()
                start += len(pieces)
            mask[number, :start] = 1
        ids[ids == self.sequencer.placeholder] = self._filler
        embeds = self._embedding(ids.to(self._embedding.weight.device))  # (rows, pieces, width)
        if mentions:
            found = self.find(mentions)
            vectors = self.carried([found[mention] for mention in mentions])  # (entities, width)
            first, second = zip(*places, strict=True)
            embeds[list(first), list(second)] = vectors.to(embeds)
        return embeds, mask


def _positions(mask: Tensor, first: int) -> Tensor:
    """Number the pieces as the encoder numbers wordpieces; padding keeps the padding's number."""
    numbers = torch.arange(mask.shape[1]) + first  # (pieces,)
    return torch.where(mask.bool(), numbers, max(first - 1, 0))
