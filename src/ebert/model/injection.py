"""From a passage to the encoder's input: a sequence of wordpieces and entities, then tensors (Section 3.2).

For each entity, a placeholder that no text contains is put into the text, and the tokenizer cuts around it as around
any special token. So quotes, ``'s`` and leading blanks come out as the tokenizer makes them, whatever its kind, and the
sequence of a passage without entities is exactly the tokenizer's own.

Wordpieces are embedded by the encoder itself and entities by their projected vectors. The encoder adds position and
segment embeddings afterwards, as for any wordpiece. Only the rows that a batch needs are read from the store.
"""

import copy
import re
from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import torch
from tokenizers import AddedToken
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence
from transformers import PreTrainedTokenizerBase

from ebert.errors import EbertError
from ebert.model.alignment import Alignment
from ebert.model.batching import additive, sight
from ebert.model.encoder import Encoder
from ebert.model.options import MASK, TEMPLATES, Mode, check_mode, feeds_entities
from ebert.text.passage import Mention, Passage
from ebert.vectors.entity import Entity
from ebert.vectors.store import Vectors

Text = str | Passage
Span = tuple[int, int]

PLACEHOLDER = "\ue000ebert-entity\ue001"  # private-use characters: no text has them
NO_ENTITIES = "this model has no entity vectors; make one with EBert.fit or 'ebert align'"


@dataclass(frozen=True, slots=True)
class Pieces:
    """What the encoder is fed for one passage: a list of wordpieces, with entities at some places."""

    passage: Passage
    mode: Mode
    ids: list[int]  # the placeholder's id where an entity stands
    spans: list[Span]  # of the passage's text; empty for pieces that are not in it
    entities: dict[int, Mention]  # place in `ids` to the mention whose entity stands there
    masks: list[int]  # places of masks
    found: Mapping[Mention, Entity]  # the mentions whose entities have a vector

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def missing(self) -> tuple[str, ...]:
        """The titles of the passage without a vector, each once."""
        return tuple(dict.fromkeys(m.entity for m in self.passage.mentions if m not in self.found))


def checked_copy(tokenizer: PreTrainedTokenizerBase) -> PreTrainedTokenizerBase:
    """Return a copy of a tokenizer that neither truncates nor pads, or raise an error if it cannot be used."""
    if not tokenizer.is_fast:
        raise EbertError(
            f"{type(tokenizer).__name__} cannot tell where its pieces come from in the text; "
            "use a tokenizer with a tokenizer.json (a 'fast' one)"
        )
    if tokenizer.mask_token_id is None:
        raise EbertError("the tokenizer has no mask token: is this a masked language model?")
    own = copy.deepcopy(tokenizer)
    # Some tokenizer.json ask for both. Switching them off at the first use is not safe for threads; now it is.
    own.backend_tokenizer.no_truncation()
    own.backend_tokenizer.no_padding()
    return own


class Sequencer:
    """Cuts passages into wordpieces and entities."""

    def __init__(self, tokenizer: PreTrainedTokenizerBase) -> None:
        self._tokenizer = checked_copy(tokenizer)
        # lstrip: the blank before an entity belongs to nobody; the one after it to the next piece's leading-space form
        self._tokenizer.add_tokens([AddedToken(PLACEHOLDER, normalized=False, special=True, lstrip=True)])
        self.placeholder = self._tokenizer.get_vocab()[PLACEHOLDER]
        if self.placeholder in tokenizer.get_vocab().values():  # new tokens are numbered by count, whatever is there
            raise EbertError("the tokenizer's token ids have gaps, so no token can be added; renumber its pieces")
        self.mask: int = tokenizer.mask_token_id

    def __call__(self, passages: Sequence[tuple[Passage, Mapping[Mention, Entity]]], mode: Mode) -> list[Pieces]:
        """Cut passages, given with those of their mentions whose entities have vectors."""
        if not passages:
            return []
        fed = [[m for m in p.mentions if m in found] if feeds_entities(mode) else [] for p, found in passages]
        rewritten = [self._rewrite(p.text, own, mode) for (p, _), own in zip(passages, fed, strict=True)]
        texts = ["".join(part for part, _ in parts) for parts in rewritten]
        encoded = self._tokenizer(texts, return_offsets_mapping=True, verbose=False, truncation=False)
        results = []
        for i, (passage, found) in enumerate(passages):
            ids = encoded["input_ids"][i]
            spans = [trim(passage.text, *span) for span in _origins(rewritten[i], encoded["offset_mapping"][i])]
            places = [place for place, piece in enumerate(ids) if piece == self.placeholder]
            entities = dict(zip(places, fed[i], strict=True))
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

    def _rewrite(self, text: str, mentions: Sequence[Mention], mode: Mode) -> list[tuple[str, Span]]:
        """Return the parts of the text with placeholders, each with the span that it comes from or stands for."""
        if PLACEHOLDER in text:
            raise EbertError("the text contains the characters that stand for an entity inside ebert")
        mask = str(self._tokenizer.mask_token)  # [MASK] is understood whatever the tokenizer calls its mask
        edits = [] if mask == MASK else [(*match.span(), mask) for match in re.finditer(re.escape(MASK), text)]
        before, keeps_surface, after = TEMPLATES[mode].replace("{entity}", PLACEHOLDER).partition("{surface}")
        for mention in mentions:
            if keeps_surface:
                edits += [(mention.start, mention.start, before), (mention.end, mention.end, after)]
                continue
            surface = text[mention.start : mention.end]
            if mask in surface or MASK in surface:
                raise EbertError(
                    f"the mention of {mention.entity!r} covers a mask, which would disappear with it in the mode {mode}"
                )
            edits.append((mention.start, mention.end, before))
        parts, done = [], 0
        for start, end, new in sorted((edit for edit in edits if edit[2]), key=lambda edit: edit[:2]):
            parts += [(text[done:start], (done, start)), (new, (start, end))]
            done = end
        return [*parts, (text[done:], (done, len(text)))]


def _origins(parts: Sequence[tuple[str, Span]], spans: Iterable[Span]) -> Iterator[Span]:
    """Return where spans of a rewritten text come from: its parts are alternately copied and new."""
    starts = list(accumulate((len(text) for text, _ in parts), initial=0))
    for start, end in spans:
        # By the last character: a piece may begin with the blank before it, in the part before.
        number = bisect_right(starts, end - 1) - 1 if start < end else 0
        origin, begin = parts[number][1], starts[number]
        copied = number % 2 == 0
        yield (origin[0] + max(0, start - begin), origin[0] + end - begin) if copied else origin


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

    def check(self, mode: Mode) -> None:
        """Raise `EbertError` if there is no such mode, or if it needs entities and there are none."""
        check_mode(mode)
        if feeds_entities(mode) and self._vectors is None:
            raise EbertError(f"the mode {mode} needs entities, and {NO_ENTITIES}")

    def find(self, mentions: Collection[Mention]) -> dict[Mention, Entity]:
        """Return the entities of those mentions whose entities have a vector; each title is looked up once."""
        known = self._vectors.find_many(mention.entity for mention in mentions) if self._vectors is not None else {}
        return {mention: known[mention.entity] for mention in mentions if mention.entity in known}

    def find_all(self, passages: Iterable[Passage]) -> dict[Mention, Entity]:
        """Return the entities of the mentions of passages, as `find` does."""
        return self.find({mention: None for passage in passages for mention in passage.mentions})

    def sequences(
        self, passages: Sequence[Passage], mode: Mode, found: Mapping[Mention, Entity] | None = None
    ) -> list[Pieces]:
        """Cut passages into wordpieces and entities, and refuse those that the encoder cannot take.

        `found` is what `find_all` returned for the same passages, if that was asked before.
        """
        self.check(mode)
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
        ids = _padded([[piece for pieces in row for piece in pieces.ids] for row in rows], self._padding)
        # The place of a piece in its own sequence; -1 is padding.
        numbers = _padded([[number for pieces in row for number in range(len(pieces))] for row in rows], -1)
        places = ids == self.sequencer.placeholder  # (rows, pieces)
        embeds = self._embedding(ids.masked_fill(places, self._padding).to(device))  # (rows, pieces, width)
        entities = [p.found[mention] for row in rows for p in row for mention in p.entities.values()]
        if entities:
            embeds[places.to(device)] = self.project(entities).to(embeds)  # (entities, width)
        mask = (numbers >= 0).long()
        if any(len(row) > 1 for row in rows):
            mask = additive(sight([list(map(len, row)) for row in rows], ids.shape[1]), embeds.dtype)
        inputs = {"inputs_embeds": embeds, "attention_mask": mask.to(device)}
        if (offset := self._first_position) is not None:
            # As the encoder numbers wordpieces; padding keeps the padding's number.
            inputs["position_ids"] = torch.where(numbers >= 0, numbers + offset, max(offset - 1, 0)).to(device)
        return inputs


def _padded(rows: Sequence[list[int]], padding: int) -> Tensor:
    return pad_sequence([torch.tensor(row, dtype=torch.long) for row in rows], batch_first=True, padding_value=padding)


def marked(texts: Text | Sequence[Text], entities: Sequence[Any] | None, spans: Sequence[Any] | None) -> list[Passage]:
    """Return the passages of one text or of a list, with their entities from the markup or from the arguments."""
    if isinstance(texts, str | Passage):
        return marked([texts], None if entities is None else [entities], None if spans is None else [spans])
    if not isinstance(texts, Sequence):
        raise EbertError("give a text or a list of texts; stream() takes other iterables")
    if entities is None:
        if spans is not None:
            raise EbertError("spans go with entities: give the titles, too")
        return [Passage.of(text) for text in texts]
    placed = [None] * len(texts) if spans is None else spans
    if not len(texts) == len(entities) == len(placed):
        raise EbertError(f"there are {len(texts)} texts, {len(entities)} lists of entities and {len(placed)} of spans")
    return [_mark(*given) for given in zip(texts, entities, placed, strict=True)]


def _mark(text: Text, titles: Sequence[str], spans: Sequence[Span] | None) -> Passage:
    if isinstance(text, Passage):
        raise EbertError("a passage has its own mentions; give a string with entities")
    if spans is None:
        starts = [text.find(title.replace("_", " ")) for title in titles]
        if -1 in starts:
            raise EbertError(f"{titles[starts.index(-1)]!r} does not occur in the text; give the spans of the entities")
        spans = [(start, start + len(title)) for start, title in zip(starts, titles, strict=True)]
    if len(spans) != len(titles):
        raise EbertError(f"there are {len(titles)} entities and {len(spans)} spans; each entity needs one")
    return Passage(text, tuple(Mention(*span, title) for span, title in zip(spans, titles, strict=True)))


def trim(text: str, start: int, end: int) -> Span:
    """Remove blanks from a span: some tokenizers count the blank before a piece as part of it, others do not."""
    part = text[start:end]
    start += len(part) - len(part.lstrip())
    end -= len(part) - len(part.rstrip())
    return (start, end) if start < end else (0, 0)
