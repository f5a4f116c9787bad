"""Feeding entities to the encoder: wordpieces by its own embedding, entities by their carried vectors.

The encoder adds position and segment embeddings afterwards, as for any wordpiece. Only the rows that a batch needs are
read from the store and carried over.
"""

import copy
import re
from bisect import bisect_right
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

import torch
from tokenizers import AddedToken
from torch import Tensor
from transformers import PreTrainedTokenizerBase

from ebert.errors import EbertError
from ebert.model.alignment import Alignment
from ebert.model.batching import additive, sight
from ebert.model.encoder import Encoder
from ebert.model.modes import Mode, check
from ebert.text.passage import Mention, Passage
from ebert.vectors.entity import Entity
from ebert.vectors.store import Vectors

PLACEHOLDER = "\ue000ebert-entity\ue001"  # private-use characters: no text has them

_MASK = re.compile(r"\[MASK\]")


@dataclass(frozen=True, slots=True)
class Pieces:
    """What the encoder sees of one passage: a list of wordpieces, some places of which entities take."""

    passage: Passage
    mode: Mode
    ids: list[int]  # the placeholder's id where an entity stands
    spans: list[tuple[int, int]]  # of the passage's text; empty for pieces that are not in it
    entities: dict[int, Mention]  # place in `ids` to the mention whose entity stands there
    masks: list[int]  # places of masks

    def __len__(self) -> int:
        return len(self.ids)


class Sequencer:
    """Cuts passages into wordpieces and entities."""

    def __init__(self, tokenizer: PreTrainedTokenizerBase) -> None:
        if not tokenizer.is_fast:
            raise EbertError(
                f"{type(tokenizer).__name__} cannot tell where its pieces come from in the text; "
                "use a tokenizer with a tokenizer.json (a 'fast' one)"
            )
        if tokenizer.mask_token_id is None:
            raise EbertError("the tokenizer has no mask token: is this a masked language model?")
        self._tokenizer = copy.deepcopy(tokenizer)
        # Some tokenizer.json ask for both. Switching them off at the first use is not safe for threads; now it is.
        self._tokenizer.backend_tokenizer.no_truncation()
        self._tokenizer.backend_tokenizer.no_padding()
        # lstrip: the blank before an entity belongs to nobody; the one after it to the next piece's leading-space form
        self._tokenizer.add_tokens([AddedToken(PLACEHOLDER, normalized=False, special=True, lstrip=True)])
        self.placeholder = self._tokenizer.get_vocab()[PLACEHOLDER]
        if self.placeholder in tokenizer.get_vocab().values():  # new tokens are numbered by count, whatever is there
            raise EbertError("the tokenizer's numbers have gaps, so that no token can be added; number its pieces anew")
        self.mask: int = tokenizer.mask_token_id
        self._mask_token: str = tokenizer.mask_token

    def __call__(self, passages: Sequence[tuple[Passage, Iterable[Mention]]], mode: Mode) -> list[Pieces]:
        """Cut passages, given with those of their mentions whose entities have vectors."""
        check(mode)
        prepared = [self._prepare(passage, set(mentions), mode) for passage, mentions in passages]
        if not prepared:
            return []
        encoded = self._tokenizer(
            [text for text, _, _ in prepared], return_offsets_mapping=True, verbose=False, truncation=False
        )
        return [
            self._pieces(passage, mode, prepared[i], encoded["input_ids"][i], encoded["offset_mapping"][i])
            for i, (passage, _) in enumerate(passages)
        ]

    def show(self, pieces: Pieces) -> list[str]:
        """Write a sequence as the paper does: wordpieces, and entities as titles with underscores."""
        tokens = [str(self._tokenizer.convert_ids_to_tokens(piece)) for piece in pieces.ids]
        for place, mention in pieces.entities.items():
            tokens[place] = mention.entity.replace(" ", "_")
        return tokens

    def _prepare(self, passage: Passage, present: set[Mention], mode: Mode) -> tuple[str, "_Map", list[Mention]]:
        """Give the text with placeholders, the way back from its characters, and the mentions in their order."""
        if PLACEHOLDER in passage.text:
            raise EbertError("the text contains the characters that stand for an entity inside ebert")
        out = _Map()
        order: list[Mention] = []
        done = 0
        if mode != "bert":
            for mention in passage.mentions:
                if mention not in present:
                    continue
                if mode == "replace" and self._has_mask(passage.surface(mention)):
                    raise EbertError(
                        f"the mention of {mention.entity!r} covers a mask, which would go with it in the mode replace"
                    )
                self._copy(out, passage.text, done, mention.start)
                order.append(mention)
                done = mention.start if mode == "concat" else mention.end
                out.insert(f"{PLACEHOLDER} / " if mode == "concat" else PLACEHOLDER)
        self._copy(out, passage.text, done, len(passage.text))
        return out.text(), out, order

    def _has_mask(self, text: str) -> bool:
        return self._mask_token in text or _MASK.search(text) is not None

    def _copy(self, out: "_Map", text: str, start: int, stop: int) -> None:
        """Copy a part of the text; [MASK] is understood whatever the tokenizer calls its mask."""
        if self._mask_token == "[MASK]":  # noqa: S105
            out.copy(text, start, stop)
            return
        for match in _MASK.finditer(text, start, stop):
            out.copy(text, start, match.start())
            out.insert(self._mask_token, stands_for=match.span())
            start = match.end()
        out.copy(text, start, stop)

    def _pieces(
        self,
        passage: Passage,
        mode: Mode,
        prepared: tuple[str, "_Map", list[Mention]],
        ids: list[int],
        offsets: list[tuple[int, int]],
    ) -> Pieces:
        _, way_back, order = prepared
        spans = [trim(passage.text, *way_back(start, end)) for start, end in offsets]
        places = [place for place, piece in enumerate(ids) if piece == self.placeholder]
        assert len(places) == len(order)
        entities = dict(zip(places, order, strict=True))
        for place, mention in entities.items():
            spans[place] = (mention.start, mention.end)
        masks = [place for place, piece in enumerate(ids) if piece == self.mask]
        return Pieces(passage, mode, ids, spans, entities, masks)


def trim(text: str, start: int, end: int) -> tuple[int, int]:
    """Take blanks off a span: some tokenizers count the one before a piece as part of it, others do not."""
    while start < end and text[start].isspace():
        start += 1
    while start < end and text[end - 1].isspace():
        end -= 1
    return (start, end) if start < end else (0, 0)


class _Map:
    """A text under construction, and which of its characters come from where in another one."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._length = 0
        self._starts: list[int] = []  # of parts, in the new text
        self._origins: list[int | tuple[int, int] | None] = []  # start in the old text, a whole span, or nothing

    def copy(self, text: str, start: int, stop: int) -> None:
        if start < stop:
            self._put(text[start:stop], start)

    def insert(self, text: str, stands_for: tuple[int, int] | None = None) -> None:
        self._put(text, stands_for)

    def text(self) -> str:
        return "".join(self._parts)

    def _put(self, part: str, origin: int | tuple[int, int] | None) -> None:
        self._parts.append(part)
        self._starts.append(self._length)
        self._origins.append(origin)
        self._length += len(part)

    def __call__(self, start: int, end: int) -> tuple[int, int]:
        """Give the old span of a new one; an empty one if it was not in the old text."""
        if start >= end:
            return (0, 0)
        # By the last character: a piece may begin with the blank before it, in the part before.
        part = bisect_right(self._starts, end - 1) - 1
        origin = self._origins[part]
        if origin is None:
            return (0, 0)
        if isinstance(origin, tuple):
            return origin
        return origin + max(0, start - self._starts[part]), origin + end - self._starts[part]


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
