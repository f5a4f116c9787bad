"""Documents as the encoder takes them: cut into wordpieces once, split into chunks, spans as runs of wordpieces."""

import copy
import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from transformers import PreTrainedTokenizerBase

from ebert.errors import EbertError
from ebert.linking.document import Choice, Document, Span
from ebert.linking.splitting import sentence_starts, split
from ebert.linking.words import controls, signs
from ebert.model.sequence import trim

MARKS = "a / b * c"  # the paper's two marks, cut as in a text
_WORD = re.compile(r"\S+")

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
        """Tell whether two spans have a wordpiece in common."""
        return self.first < other.stop and other.first < self.stop


@dataclass(frozen=True, slots=True)
class Chunk:
    """A part of a document that the encoder sees at once."""

    document: int  # which of the documents that were cut together
    ids: tuple[int, ...]  # without special tokens
    spans: tuple[Placed, ...]

    def __len__(self) -> int:
        return len(self.ids)


class Cutter:
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
        extra = len(self.before) + len(self.after) + 1 + len(self.slash) + len(self.star)
        self.most = most - extra
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
            inside_names = {number for p in short for number in range(p.first + 1, p.stop)}
            left = 0
            for first, stop in split(offsets, starts, self.most, inside=inside_names):
                begin, end = (bisect_left(placed, place, key=lambda p: p.first) for place in (first, stop))
                inside = [p for p in placed[begin:end] if p.stop <= stop]
                left += len(inside)
                moved = tuple(replace(p, first=p.first - first, stop=p.stop - first) for p in inside)
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
