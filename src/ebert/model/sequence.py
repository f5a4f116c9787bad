"""From a passage to the sequence of wordpieces and entities that the encoder sees (Section 3.2).

Where an entity is to stand, a placeholder that no text contains is put into the text, and the tokenizer cuts around it
as around any special token. So quotes, ``'s`` and leading blanks come out as the tokenizer makes them, whatever its
kind, and the sequence of a passage without entities is exactly the tokenizer's own.
"""

import copy
import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from tokenizers import AddedToken
from transformers import PreTrainedTokenizerBase

from ebert.errors import EbertError
from ebert.text import Mention, Passage

Mode = Literal["bert", "concat", "replace"]
MODES: tuple[Mode, ...] = get_args(Mode)
SEPARATOR = "/"
PLACEHOLDER = "\ue000ebert-entity\ue001"  # private-use characters: no text has them

_MASK = re.compile(r"\[MASK\]")


def check(mode: str) -> None:
    """Complain about a mode that there is not."""
    if mode not in MODES:
        raise EbertError(f"unknown mode {mode!r}; choose one of {', '.join(MODES)}")


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
                out.insert(f"{PLACEHOLDER} {SEPARATOR} " if mode == "concat" else PLACEHOLDER)
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
