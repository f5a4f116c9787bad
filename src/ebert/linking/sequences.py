"""From documents to the sequences that the encoder takes (Section 5.2).

A document is cut into wordpieces once and split into chunks; its potential spans become runs of wordpieces. The
sequences of a chunk are of one of two strategies. Entities that were linked in earlier rounds of refinement stand in
the text as one vector each, in the place of their wordpieces.

`paper` is the paper's input X, one sequence for each span: ``l_1 ... [E-MASK] / s_1 ... s_T * r_1 ...``.
`packed` has the text once and a small block for each span after it. The text attends to itself only, so that it is what
it would be without the blocks. A block attends to the text and to itself, and nothing else attends to it; its pieces
have the positions of their span, as packed levitated markers do for named entities. A chunk costs its own length and a
few positions for each span, instead of a pass for each.
"""

import copy
import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor
from transformers import PreTrainedTokenizerBase

from ebert.errors import EbertError
from ebert.linking.candidates.words import controls, signs
from ebert.linking.document import Choice, Document, Span
from ebert.linking.options import Block
from ebert.model.injection import trim

MARKS = "a / b * c"  # the paper's two marks, cut as in a text
ENTITY = -1  # in the place of an id: an entity's vector stands here
MOST_BLOCKS = 1024  # positions of blocks in a pass: beyond, attention among them costs more than the text once again
_WORD = re.compile(r"\S+")
_END = re.compile(r"""(?<![.!?…。！？])[.!?…。！？]++["'”’»)\]]*+\s++(?![a-z])|\n\s*""")

BETWEEN = "spans that a split cuts or that are longer than a chunk"
EMPTY = "spans that have no wordpieces"
NO_VECTOR = "candidates without a vector"
NO_CHOICE = "spans without a candidate"
OVERLAPPING = "given mentions that share a wordpiece with one that was linked"


@dataclass(frozen=True, slots=True)
class Placed:
    """A potential span and its wordpieces: `first` to before `stop` in its chunk."""

    span: Span
    first: int
    stop: int

    def overlaps(self, other: "Placed") -> bool:
        """Return whether two spans have a wordpiece in common."""
        return self.first < other.stop and other.first < self.stop


@dataclass(frozen=True, slots=True)
class Chunk:
    """A part of a document that the encoder sees at once."""

    document: int  # which of the documents that were cut together
    ids: tuple[int, ...]  # without special tokens
    spans: tuple[Placed, ...]

    def __len__(self) -> int:
        return len(self.ids)


class Chunker:
    """Cuts documents into chunks of wordpieces."""

    def __init__(self, tokenizer: PreTrainedTokenizerBase, *, most: int) -> None:
        if not tokenizer.is_fast:
            raise EbertError(
                f"{type(tokenizer).__name__} cannot tell where its pieces come from in the text; "
                "use a tokenizer with a tokenizer.json (a 'fast' one)"
            )
        if tokenizer.mask_token_id is None:
            raise EbertError("the tokenizer has no mask token: is this a masked language model?")
        self._tokenizer = copy.deepcopy(tokenizer)
        self._tokenizer.backend_tokenizer.no_truncation()  # some tokenizer.json ask for both
        self._tokenizer.backend_tokenizer.no_padding()
        self._signs: dict[str, str] = {}  # what is put for each
        self.mask: int = tokenizer.mask_token_id
        ids, offsets = self._cut(MARKS)
        self.slash = tuple(piece for piece, (start, end) in zip(ids, offsets, strict=True) if start <= 2 < end)
        self.star = tuple(piece for piece, (start, end) in zip(ids, offsets, strict=True) if start <= 6 < end)
        full = list(self._tokenizer(MARKS, verbose=False)["input_ids"])
        begin = next(n for n in range(len(full)) if full[n : n + len(ids)] == ids)
        self.before, self.after = tuple(full[:begin]), tuple(full[begin + len(ids) :])
        self.most = most - (len(self.before) + len(self.after) + 1 + len(self.slash) + len(self.star))
        if self.most < 1:
            raise EbertError(f"chunks of {most} wordpieces have no room for text beside the marks; allow more")

    def __call__(
        self, documents: Sequence[tuple[Document, Sequence[Span]]], *, has_vector: Callable[[str], bool]
    ) -> tuple[list[Chunk], Counter[str]]:
        """Cut documents, given with their potential spans; count what had to be left out."""
        chunks: list[Chunk] = []
        dropped: Counter[str] = Counter()
        for number, (document, spans) in enumerate(documents):
            ids, offsets = self._cut(document.text)
            known = [kept for span in spans if (kept := _known(span, has_vector, dropped)) is not None]
            placed = sorted(_place(known, offsets, dropped), key=lambda p: p.first)
            short = [p for p in placed if p.stop - p.first <= self.most // 4]
            starts = document.sentences or _outside(sentence_starts(document.text), short)
            inside_names = {piece for p in short for piece in range(p.first + 1, p.stop)}
            left = 0
            for first, stop in split(offsets, starts, self.most, inside=inside_names):
                begin, end = (bisect_left(placed, place, key=lambda p: p.first) for place in (first, stop))
                moved = tuple(
                    replace(p, first=p.first - first, stop=p.stop - first) for p in placed[begin:end] if p.stop <= stop
                )
                left += len(moved)
                if moved:
                    chunks.append(Chunk(number, tuple(ids[first:stop]), moved))
            dropped[BETWEEN] += len(placed) - left
        return chunks, +dropped

    def _cut(self, text: str) -> tuple[list[int], list[tuple[int, int]]]:
        readable = self._readable(text)  # as long as the text, so that places stay
        encoded = self._tokenizer(readable, add_special_tokens=False, return_offsets_mapping=True, verbose=False)
        offsets = [trim(text, start, end) for start, end in encoded["offset_mapping"]]
        last = 0
        for n, (start, end) in enumerate(offsets):  # a piece that is a mere blank stands where the one before ends
            offsets[n] = (start, end) if start < end else (last, last)
            last = offsets[n][1]
        return list(encoded["input_ids"]), offsets

    def _readable(self, text: str) -> str:
        """Put blanks for signs that would make the whole word unknown that they touch, and for controls."""
        text = controls().sub(lambda found: " " * len(found[0]), text)
        return text if signs().search(text) is None else _WORD.sub(self._readable_word, text)

    def _readable_word(self, found: re.Match[str]) -> str:
        if not any(map(str.isalnum, found[0])):
            return found[0]  # signs by themselves are as good a word as any
        return signs().sub(lambda run: "".join(map(self._sign, run[0])), found[0])

    def _sign(self, sign: str) -> str:
        if sign not in self._signs:
            pieces = self._tokenizer(f"a{sign}", add_special_tokens=False, verbose=False)["input_ids"]
            self._signs[sign] = " " if self._tokenizer.unk_token_id in pieces else sign
        return self._signs[sign]


def _outside(starts: Sequence[int], short: Sequence[Placed]) -> list[int]:
    """Leave out what a rule takes for the begin of a sentence in the middle of a short span (``St. Louis``)."""
    inside = {
        start for p in short for start in starts[bisect_right(starts, p.span.start) : bisect_left(starts, p.span.end)]
    }
    return [start for start in starts if start not in inside]


def _known(span: Span, has_vector: Callable[[str], bool], dropped: Counter[str]) -> Span | None:
    """Leave candidates out that have no vector, and let the others share the prior."""
    kept = [choice for choice in span.choices if has_vector(choice.title)]
    dropped[NO_VECTOR] += len(span.choices) - len(kept)
    if not kept:
        dropped[NO_CHOICE] += 1
        return None
    if len(kept) == len(span.choices):
        return span
    total = sum(choice.prior for choice in kept)
    shares = tuple(Choice(c.title, c.prior / total if total > 0 else 1 / len(kept)) for c in kept)
    return replace(span, choices=shares)


def _place(spans: Sequence[Span], offsets: Sequence[tuple[int, int]], dropped: Counter[str]) -> list[Placed]:
    """Find the wordpieces of spans: all that have a character of it."""
    starts = [start for start, _ in offsets]
    ends = [end for _, end in offsets]
    placed = []
    for span in spans:
        first, stop = bisect_right(ends, span.start), bisect_left(starts, span.end)
        if first < stop:
            placed.append(Placed(span, first, stop))
        else:
            dropped[EMPTY] += 1
    return placed


# Splitting


def sentence_starts(text: str) -> list[int]:
    """Find where sentences begin, the first one left out: after an end mark and a blank, and on new lines."""
    return [match.end() for match in _END.finditer(text) if 0 < match.end() < len(text)]


def split(
    offsets: Sequence[tuple[int, int]], boundaries: Sequence[int], most: int, *, inside: Collection[int] = ()
) -> list[tuple[int, int]]:
    """Split wordpieces, given by their characters, into runs ``(first, stop)`` of at most `most` pieces.

    They are split at the sentence boundary nearest the midpoint, and again, until all are short enough (appendix of the
    paper); a sentence that is too long between words, if possible not inside a name, and a word between wordpieces.
    `boundaries` are the characters where sentences begin, sorted, and `inside` the pieces that go on with a name.
    """
    starts = [start for start, _ in offsets]
    sentences = sorted({bisect_left(starts, boundary) for boundary in boundaries})  # as numbers of pieces
    words = [number for number in range(1, len(offsets)) if offsets[number - 1][1] < offsets[number][0]]
    free = [number for number in words if number not in inside]
    runs: list[tuple[int, int]] = []
    waiting = [(0, len(offsets))]
    while waiting:
        first, stop = waiting.pop()
        if stop - first <= most:
            runs.append((first, stop))
            continue
        cuts = (_nearest(places, first, stop) for places in (sentences, free, words))
        cut = next(filter(None, cuts), (first + stop) // 2)
        waiting += [(cut, stop), (first, cut)]  # the earlier one is next
    return runs


def _nearest(places: Sequence[int], first: int, stop: int) -> int | None:
    """Return the place strictly inside a run that is nearest to its midpoint; of two the earlier one."""
    middle = (first + stop) / 2
    after = bisect_left(places, middle)
    near = [place for place in places[max(0, after - 1) : after + 1] if first < place < stop]
    return min(near, key=lambda place: abs(place - middle)) if near else None


# Sequences

Decoded = Mapping[Placed, str]  # spans of a chunk and the titles that they were linked to


@dataclass(frozen=True, slots=True)
class SpanBlock:
    """The pieces `start` to before `stop`, which see the text, except a part of it, and each other."""

    start: int
    stop: int
    hidden: tuple[int, int] = (0, 0)


@dataclass(frozen=True, slots=True)
class LinkSequence:
    """A sequence for the encoder, with the spans that are asked about in it."""

    ids: list[int]
    positions: list[int]  # from 0
    entities: dict[int, str]  # place to the title of a decoded entity
    spans: list[Placed]
    masks: list[int]  # places of the spans' [E-MASK]
    text: int  # so many pieces are text, which attends to all text; the others are blocks
    blocks: list[SpanBlock] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.ids)

    def visible(self, size: int) -> Tensor:
        """Return which pieces (rows) see which (columns), (size, size); padding sees the text and is seen by none."""
        sees = torch.zeros((size, size), dtype=torch.bool)
        sees[:, : self.text] = True
        for block in self.blocks:
            sees[block.start : block.stop, block.start : block.stop] = True
            sees[block.start : block.stop, block.hidden[0] : block.hidden[1]] = False
        return sees


def _decoded(chunker: Chunker, chunk: Chunk, decoded: Decoded) -> tuple[list[int], dict[int, str], list[int]]:
    """Put decoded entities in the place of their wordpieces, and special tokens around all.

    Return the ids, the titles of entities by place, and the place of each wordpiece of the chunk and of its end.
    """
    ids, entities, place = list(chunker.before), {}, []
    begins = {placed.first: (placed.stop, title) for placed, title in decoded.items()}
    number = 0
    while number < len(chunk):
        stop, title = begins.get(number, (number + 1, None))
        place += [len(ids)] * (stop - number)
        if title is not None:
            entities[len(ids)] = title
        ids.append(chunk.ids[number] if title is None else ENTITY)
        number = stop
    place.append(len(ids))
    return ids + list(chunker.after), entities, place


def paper_sequences(chunker: Chunker, chunk: Chunk, spans: Sequence[Placed], decoded: Decoded) -> list[LinkSequence]:
    """Return one sequence for each span: marks around it, and [E-MASK] before it."""
    text, entities, place = _decoded(chunker, chunk, decoded)
    opening, closing = [chunker.mask, *chunker.slash], list(chunker.star)
    made = []
    for span in spans:
        first, stop = place[span.first], place[span.stop]
        ids = text[:first] + opening + text[first:stop] + closing + text[stop:]
        # None is inside the span: what overlaps a decoded span is not asked about.
        moved = {at if at < first else at + len(opening) + len(closing): title for at, title in entities.items()}
        made.append(LinkSequence(ids, list(range(len(ids))), moved, [span], [first], len(ids)))
    return made


def packed_sequences(
    chunker: Chunker, chunk: Chunk, spans: Sequence[Placed], decoded: Decoded, *, block: Block
) -> list[LinkSequence]:
    """Return the text with a block for each span; very many spans are spread over several sequences."""
    text, entities, place = _decoded(chunker, chunk, decoded)
    made: list[LinkSequence] = []
    for span in spans:
        first, stop = place[span.first], place[span.stop]
        inside = range(first, stop) if block == "copy" else range(0)
        ids = [chunker.mask, *chunker.slash, *(text[at] for at in inside), *chunker.star]
        if not made or len(made[-1]) + len(ids) > len(text) + MOST_BLOCKS:
            made.append(LinkSequence(list(text), list(range(len(text))), entities, [], [], len(text)))
        now = made[-1]
        start = len(now)
        now.ids.extend(ids)
        now.positions.extend([*[first] * (1 + len(chunker.slash)), *inside, *[stop - 1] * len(chunker.star)])
        now.spans.append(span)
        now.masks.append(start)
        # Where the span itself is in the block, the one in the text is out of sight, as it is in the paper's input.
        now.blocks.append(SpanBlock(start, start + len(ids), (first, stop) if block == "copy" else (0, 0)))
    return made
