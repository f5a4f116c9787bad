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

import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor
from transformers import PreTrainedTokenizerBase

from ebert.errors import EbertError
from ebert.linking.candidates.words import controls, signs
from ebert.linking.document import Document, Span
from ebert.linking.evidence import Evidence, gather
from ebert.linking.options import Block
from ebert.model.injection import checked_copy, trim

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
    evidence: Evidence | None = field(default=None, compare=False)

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


class Chunker:
    """Cuts documents into chunks of wordpieces, and makes sequences of these."""

    def __init__(self, tokenizer: PreTrainedTokenizerBase, *, most: int) -> None:
        self._tokenizer = checked_copy(tokenizer)
        self._signs: dict[str, str] = {}  # what is put for each
        self.mask: int = tokenizer.mask_token_id
        ids, offsets = self._cut(MARKS)
        pieces = list(zip(ids, offsets, strict=True))
        self.slash, self.star = ([piece for piece, (start, end) in pieces if start <= at < end] for at in (2, 6))
        full = self._tokenizer(MARKS, verbose=False)["input_ids"]
        begin = next(n for n in range(len(full)) if full[n : n + len(ids)] == ids)
        self.before, self.after = full[:begin], full[begin + len(ids) :]
        self.most = most - (len(full) - len(ids) + 1 + len(self.slash) + len(self.star))
        if self.most < 1:
            raise EbertError(f"chunks of {most} wordpieces have no room for text beside the marks; allow more")

    def __call__(
        self, documents: Sequence[tuple[Document, Sequence[Span]]], *, has_vector: Callable[[str], bool]
    ) -> tuple[list[Chunk], Counter[str]]:
        """Cut documents that come with their potential spans; count what had to be left out."""
        chunks: list[Chunk] = []
        dropped: Counter[str] = Counter()
        for number, (document, spans) in enumerate(documents):
            ids, offsets = self._cut(document.text)
            placed = sorted(_place(spans, offsets, has_vector, dropped), key=lambda p: p.first)
            known = gather(document.text, [p.span for p in placed])
            placed = [replace(p, evidence=one) for p, one in zip(placed, known, strict=True)]
            # Pieces that go on with a short name: no rule may take one for the begin of a sentence (``St. Louis``).
            names = (range(p.first + 1, p.stop) for p in placed if p.stop - p.first <= self.most // 4)
            inside = {piece for name in names for piece in name}
            begins = [start for start, _ in offsets]
            found = (start for start in sentence_starts(document.text) if bisect_left(begins, start) not in inside)
            runs = split(offsets, document.sentences or list(found), self.most, inside=inside)
            own: list[list[Placed]] = [[] for _ in runs]
            for p in placed:
                index = bisect_right(runs, p.first, key=lambda run: run[0]) - 1
                first, stop = runs[index]
                if p.stop <= stop:
                    own[index].append(replace(p, first=p.first - first, stop=p.stop - first))
                else:
                    dropped[BETWEEN] += 1
            chunks += [Chunk(number, tuple(ids[slice(*run)]), tuple(o)) for run, o in zip(runs, own, strict=True) if o]
        return chunks, dropped

    def paper(self, chunk: Chunk, spans: Sequence[Placed], decoded: Decoded) -> list[LinkSequence]:
        """Return one sequence for each span: marks around it, and [E-MASK] before it."""
        text, entities, place = self._decoded(chunk, decoded)
        opening, closing = [self.mask, *self.slash], self.star
        made = []
        for span in spans:
            first, stop = place[span.first], place[span.stop]
            ids = text[:first] + opening + text[first:stop] + closing + text[stop:]
            # None is inside the span: what overlaps a decoded span is not asked about.
            moved = {at if at < first else at + len(opening) + len(closing): title for at, title in entities.items()}
            made.append(LinkSequence(ids, list(range(len(ids))), moved, [span], [first], len(ids)))
        return made

    def packed(self, chunk: Chunk, spans: Sequence[Placed], decoded: Decoded, *, block: Block) -> list[LinkSequence]:
        """Return the text with a block for each span; very many spans are spread over several sequences."""
        text, entities, place = self._decoded(chunk, decoded)
        made: list[LinkSequence] = []
        for span in spans:
            first, stop = place[span.first], place[span.stop]
            inside = range(first, stop) if block == "copy" else range(0)
            slash, star = ([], []) if block == "mask" else (self.slash, self.star)
            ids = [self.mask, *slash, *(text[at] for at in inside), *star]
            if not made or len(made[-1]) + len(ids) > len(text) + MOST_BLOCKS:
                made.append(LinkSequence(list(text), list(range(len(text))), entities, [], [], len(text)))
            now, start = made[-1], len(made[-1])
            now.ids.extend(ids)
            now.positions.extend([*[first] * (1 + len(slash)), *inside, *[stop - 1] * len(star)])
            now.spans.append(span)
            now.masks.append(start)
            # Where the span itself is in the block, the one in the text is out of sight, as it is in the paper's input.
            now.blocks.append(SpanBlock(start, start + len(ids), (first, stop) if inside else (0, 0)))
        return made

    def _decoded(self, chunk: Chunk, decoded: Decoded) -> tuple[list[int], dict[int, str], list[int]]:
        """Put decoded entities in place of their wordpieces, and special tokens around everything.

        Return the ids, the titles of entities by place, and the place of each wordpiece of the chunk and of its end.
        """
        ids, entities, place = list(self.before), {}, []
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
        return ids + list(self.after), entities, place

    def _cut(self, text: str) -> tuple[list[int], list[tuple[int, int]]]:
        # Blanks for controls, and for signs that would make the whole word unknown that they touch: places stay.
        readable = controls().sub(lambda found: " " * len(found[0]), text)
        if signs().search(readable):
            readable = _WORD.sub(self._without_signs, readable)
        encoded = self._tokenizer(readable, add_special_tokens=False, return_offsets_mapping=True, verbose=False)
        offsets: list[tuple[int, int]] = []
        for place in encoded["offset_mapping"]:
            start, end = trim(text, *place)
            last = offsets[-1][1] if offsets else 0
            offsets.append((start, end) if start < end else (last, last))  # a mere blank is where the one before ends
        return encoded["input_ids"], offsets

    def _without_signs(self, word: re.Match[str]) -> str:
        if not any(map(str.isalnum, word[0])):
            return word[0]  # signs by themselves are as good a word as any
        return signs().sub(lambda run: "".join(map(self._sign, run[0])), word[0])

    def _sign(self, sign: str) -> str:
        if sign not in self._signs:
            pieces = self._tokenizer(f"a{sign}", add_special_tokens=False, verbose=False)["input_ids"]
            self._signs[sign] = " " if self._tokenizer.unk_token_id in pieces else sign
        return self._signs[sign]


def _place(
    spans: Iterable[Span], offsets: Sequence[tuple[int, int]], has_vector: Callable[[str], bool], dropped: Counter[str]
) -> Iterator[Placed]:
    """Find the wordpieces of spans: all that have a character of it. Candidates with a vector share the prior."""
    starts = [start for start, _ in offsets]
    ends = [end for _, end in offsets]
    for span in spans:
        kept = [choice for choice in span.choices if has_vector(choice.title)]
        dropped[NO_VECTOR] += len(span.choices) - len(kept)
        first, stop = bisect_right(ends, span.start), bisect_left(starts, span.end)
        if not kept or first >= stop:
            dropped[EMPTY if kept else NO_CHOICE] += 1
            continue
        if len(kept) < len(span.choices):
            total = sum(choice.prior for choice in kept)
            shares = tuple(replace(c, prior=c.prior / total if total > 0 else 1 / len(kept)) for c in kept)
            span = replace(span, choices=shares)
        yield Placed(span, first, stop)


# Splitting


def sentence_starts(text: str) -> list[int]:
    """Find where sentences begin, except the first: after an end mark and a blank, and on new lines."""
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
