"""From a passage to what the encoder is fed: a sequence of wordpieces and entities, then tensors (Section 3.2).

Where an entity is to stand, a placeholder that no text contains is put into the text, and the tokenizer cuts around it
as around any special token. So quotes, ``'s`` and leading blanks come out as the tokenizer makes them, whatever its
kind, and the sequence of a passage without entities is exactly the tokenizer's own.

Wordpieces are embedded by the encoder itself and entities by their projected vectors. The encoder adds position and
segment embeddings afterwards, as for any wordpiece. Only the rows that a batch needs are read from the store.
"""

import copy
import re
from bisect import bisect_right
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from tokenizers import AddedToken
from torch import Tensor
from transformers import PreTrainedTokenizerBase

from ebert.errors import EbertError
from ebert.model.alignment import Alignment
from ebert.model.batching import additive, sight
from ebert.model.encoder import Encoder
from ebert.model.modes import Mode, check, feeds_entities, template
from ebert.text.passage import Mention, Passage
from ebert.vectors.entity import Entity
from ebert.vectors.store import Vectors

Text = str | Passage

PLACEHOLDER = "\ue000ebert-entity\ue001"  # private-use characters: no text has them
NO_ENTITIES = "this model has no entity vectors; make one with EBert.fit or 'ebert align'"

_MASK = re.compile(r"\[MASK\]")


@dataclass(frozen=True, slots=True)
class Pieces:
    """What the encoder is fed for one passage: a list of wordpieces, some places of which entities take."""

    passage: Passage
    mode: Mode
    ids: list[int]  # the placeholder's id where an entity stands
    spans: list[tuple[int, int]]  # of the passage's text; empty for pieces that are not in it
    entities: dict[int, Mention]  # place in `ids` to the mention whose entity stands there
    masks: list[int]  # places of masks
    found: Mapping[Mention, Entity]  # the mentions whose entities have a vector

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def missing(self) -> tuple[str, ...]:
        """The titles of the passage without a vector, each once."""
        return tuple(dict.fromkeys(m.entity for m in self.passage.mentions if m not in self.found))


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

    def __call__(self, passages: Sequence[tuple[Passage, Mapping[Mention, Entity]]], mode: Mode) -> list[Pieces]:
        """Cut passages, given with those of their mentions whose entities have vectors."""
        check(mode)
        prepared = [self._prepare(passage, found, mode) for passage, found in passages]
        if not prepared:
            return []
        texts = [written.text() for written, _ in prepared]
        encoded = self._tokenizer(texts, return_offsets_mapping=True, verbose=False, truncation=False)
        results = []
        for i, (passage, found) in enumerate(passages):
            written, order = prepared[i]
            ids = encoded["input_ids"][i]
            spans = [trim(passage.text, *written.origin(start, end)) for start, end in encoded["offset_mapping"][i]]
            places = [place for place, piece in enumerate(ids) if piece == self.placeholder]
            entities = dict(zip(places, order, strict=True))
            for place, mention in entities.items():
                spans[place] = (mention.start, mention.end)
            masks = [place for place, piece in enumerate(ids) if piece == self.mask]
            results.append(Pieces(passage, mode, ids, spans, entities, masks, found))
        return results

    def show(self, pieces: Pieces) -> list[str]:
        """Write a sequence as the paper does: wordpieces, and entities as titles with underscores."""
        tokens = [str(self._tokenizer.convert_ids_to_tokens(piece)) for piece in pieces.ids]
        for place, mention in pieces.entities.items():
            tokens[place] = mention.entity.replace(" ", "_")
        return tokens

    def _prepare(
        self, passage: Passage, found: Mapping[Mention, Entity], mode: Mode
    ) -> tuple["_Rewritten", list[Mention]]:
        """Return the text with placeholders, and the mentions in their order."""
        text, parts = passage.text, template(mode)
        if PLACEHOLDER in text:
            raise EbertError("the text contains the characters that stand for an entity inside ebert")
        out = _Rewritten()
        order: list[Mention] = []
        done = 0
        for mention in passage.mentions if feeds_entities(mode) else ():
            if mention not in found:
                continue
            surface = text[mention.start : mention.end]
            if "surface" not in parts and (self._mask_token in surface or _MASK.search(surface)):
                raise EbertError(
                    f"the mention of {mention.entity!r} covers a mask, which would go with it in the mode {mode}"
                )
            self._copy(out, text, done, mention.start)
            for part in parts:
                if part == "surface":
                    self._copy(out, text, mention.start, mention.end)
                else:
                    out.insert(PLACEHOLDER if part == "entity" else part)
            order.append(mention)
            done = mention.end
        self._copy(out, text, done, len(text))
        return out, order

    def _copy(self, out: "_Rewritten", text: str, start: int, stop: int) -> None:
        """Copy a part of the text; [MASK] is understood whatever the tokenizer calls its mask."""
        if self._mask_token != "[MASK]":  # noqa: S105
            for match in _MASK.finditer(text, start, stop):
                out.copy(text, start, match.start())
                out.insert(self._mask_token, stands_for=match.span())
                start = match.end()
        out.copy(text, start, stop)


class Injector:
    """Turns passages into sequences, and sequences into the tensors that an encoder takes."""

    def __init__(self, encoder: Encoder, vectors: Vectors | None, alignment: Alignment | None) -> None:
        self._vectors, self._alignment = vectors, alignment
        # Not the encoder itself: a collator's workers need none of its layers.
        self._name, self.longest, self._embedding = encoder.name, encoder.longest, encoder.embedding
        self._first_position = encoder.first_position if encoder.takes_positions else None
        self.sequencer = Sequencer(encoder.tokenizer)
        self._padding = encoder.tokenizer.pad_token_id or 0

    def on_cpu(self) -> "Injector":
        """Return the same with wordpiece vectors of its own, in float32 on the CPU."""
        other = copy.copy(self)
        other._embedding = copy.deepcopy(self._embedding).float().cpu()
        return other

    def find(self, mentions: Collection[Mention]) -> dict[Mention, Entity]:
        """Return the entities of those mentions whose entities have a vector; each title is looked up once."""
        if self._vectors is None:
            return {}
        known = {title: self._vectors.find(title) for title in {mention.entity: None for mention in mentions}}
        return {mention: entity for mention in mentions if (entity := known[mention.entity]) is not None}

    def find_all(self, passages: Iterable[Passage]) -> dict[Mention, Entity]:
        """Return the entities of the mentions of passages, as `find` does."""
        return self.find({mention: None for passage in passages for mention in passage.mentions})

    def sequences(
        self, passages: Sequence[Passage], mode: Mode, found: Mapping[Mention, Entity] | None = None
    ) -> list[Pieces]:
        """Cut passages into wordpieces and entities, and refuse those that the encoder cannot take.

        `found` is what `find_all` returned for the same passages, if that was asked before.
        """
        check(mode)
        if feeds_entities(mode) and self._vectors is None:
            raise EbertError(f"the mode {mode} needs entities, and {NO_ENTITIES}")
        if found is None:
            found = self.find_all(passages) if feeds_entities(mode) else {}
        cut = self.sequencer([(p, {m: found[m] for m in p.mentions if m in found}) for p in passages], mode)
        for pieces in cut:
            if not pieces.passage.text.strip():
                raise EbertError("the text is empty")
            if len(pieces) > self.longest:
                raise EbertError(
                    f"the text has {len(pieces):,} wordpieces; {self._name} takes {self.longest:,}: "
                    f"shorten or split it ({pieces.passage.text[:60]!r}...)"
                )
        return cut

    def project(self, entities: Sequence[Entity]) -> Tensor:
        """Return the vectors of entities in the encoder's space, shape (entities, width)."""
        if self._vectors is None or self._alignment is None:
            raise EbertError(NO_ENTITIES)
        return torch.from_numpy(self._alignment.project(self._vectors.take(entities)))

    @torch.no_grad()
    def tensors(self, batch: Sequence[Pieces]) -> dict[str, Tensor]:
        """Make the inputs of the encoder for a batch, padded to its longest sequence."""
        return self.packed([[pieces] for pieces in batch])

    @torch.no_grad()
    def packed(self, rows: Sequence[Sequence[Pieces]]) -> dict[str, Tensor]:
        """Make the inputs for rows of several sequences each; for encoders with absolute positions only."""
        device = self._embedding.weight.device
        longest = max(sum(map(len, row)) for row in rows)
        ids = torch.full((len(rows), longest), self._padding)  # (rows, pieces)
        numbers = torch.full((len(rows), longest), -1)  # the place of a piece in its own sequence; -1 is padding
        places: list[tuple[int, int]] = []
        entities: list[Entity] = []
        for number, row in enumerate(rows):
            start = 0
            for pieces in row:
                stop = start + len(pieces)
                ids[number, start:stop] = torch.tensor(pieces.ids)
                numbers[number, start:stop] = torch.arange(len(pieces))
                places += [(number, start + place) for place in pieces.entities]
                entities += [pieces.found[mention] for mention in pieces.entities.values()]
                start = stop
        ids[ids == self.sequencer.placeholder] = self._padding
        embeds = self._embedding(ids.to(device))  # (rows, pieces, width)
        if entities:
            first, second = zip(*places, strict=True)
            embeds[list(first), list(second)] = self.project(entities).to(embeds)  # (entities, width)
        if any(len(row) > 1 for row in rows):
            sees = sight([[len(pieces) for pieces in row] for row in rows], longest)
            mask = additive(sees, embeds.dtype)
        else:
            mask = (numbers >= 0).long()
        inputs = {"inputs_embeds": embeds, "attention_mask": mask.to(device)}
        if (offset := self._first_position) is not None:
            # As the encoder numbers wordpieces; padding keeps the padding's number.
            inputs["position_ids"] = torch.where(numbers >= 0, numbers + offset, max(offset - 1, 0)).to(device)
        return inputs


def marked(texts: Text | Sequence[Text], entities: Sequence[Any] | None, spans: Sequence[Any] | None) -> list[Passage]:
    """Return the passages of one text or of a list, with their entities from the markup or from the arguments."""
    one = isinstance(texts, str | Passage)
    if not one and not isinstance(texts, Sequence):
        raise EbertError("give a text or a list of texts; stream() takes other iterables")
    many: Sequence[Text] = [texts] if isinstance(texts, str | Passage) else texts
    if entities is None:
        if spans is not None:
            raise EbertError("spans go with entities: give the titles, too")
        return [Passage.of(text) for text in many]
    named = [entities] if one else entities
    placed: Sequence[Any] = [None] * len(many) if spans is None else [spans] if one else spans
    if not len(many) == len(named) == len(placed):
        raise EbertError(f"there are {len(many)} texts, {len(named)} lists of entities and {len(placed)} of spans")
    return [_mark(text, list(named[i]), placed[i]) for i, text in enumerate(many)]


def _mark(text: Text, titles: list[str], spans: Sequence[tuple[int, int]] | None) -> Passage:
    if isinstance(text, Passage):
        raise EbertError("a passage has its own mentions; give a string with entities")
    if spans is None:
        starts = [text.find(title.replace("_", " ")) for title in titles]
        if -1 in starts:
            raise EbertError(f"{titles[starts.index(-1)]!r} does not stand in the text; give the spans of the entities")
        spans = [(start, start + len(title)) for start, title in zip(starts, titles, strict=True)]
    if len(spans) != len(titles):
        raise EbertError(f"there are {len(titles)} entities and {len(spans)} spans; each entity needs one")
    return Passage(text, tuple(Mention(*span, title) for span, title in zip(spans, titles, strict=True)))


def trim(text: str, start: int, end: int) -> tuple[int, int]:
    """Take blanks off a span: some tokenizers count the one before a piece as part of it, others do not."""
    while start < end and text[start].isspace():
        start += 1
    while start < end and text[end - 1].isspace():
        end -= 1
    return (start, end) if start < end else (0, 0)


class _Rewritten:
    """A text under construction, and which of its characters come from where in another one."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._length = 0
        self._starts: list[int] = []  # of parts, in the new text
        self._origins: list[int | tuple[int, int] | None] = []  # start in the old text, a whole span, or nothing

    def copy(self, text: str, start: int, stop: int) -> None:
        """Add a part of the old text; what follows the part before is one with it, as a piece may cover both."""
        last = self._origins[-1] if self._origins else None
        if isinstance(last, int) and last + len(self._parts[-1]) == start:
            self._parts[-1] += text[start:stop]
            self._length += max(0, stop - start)
        elif start < stop:
            self._put(text[start:stop], start)

    def insert(self, text: str, stands_for: tuple[int, int] | None = None) -> None:
        """Add new text, perhaps in the place of a span of the old one."""
        self._put(text, stands_for)

    def text(self) -> str:
        """Return the new text."""
        return "".join(self._parts)

    def origin(self, start: int, end: int) -> tuple[int, int]:
        """Return the old span of a new one; an empty one if it was not in the old text."""
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

    def _put(self, part: str, origin: int | tuple[int, int] | None) -> None:
        self._parts.append(part)
        self._starts.append(self._length)
        self._origins.append(origin)
        self._length += len(part)
