"""Which wordpieces are whole words, in the three ways that vocabularies mark them.

WordPiece marks what continues a word (``##is``); byte-level and SentencePiece vocabularies mark what begins one, with
``Ġ`` or ``▁`` for the blank before it, and count here with that leading-space form.
"""

from collections.abc import Callable, Iterable
from functools import cached_property
from typing import Literal

from tokenizers.decoders import ByteLevel
from transformers import PreTrainedTokenizerBase

from ebert.errors import EbertError

Style = Literal["wordpiece", "byte-level", "sentencepiece"]
CONTINUATION, BYTE_BLANK, BLANK = "##", "Ġ", "▁"
UNREADABLE = "\ufffd"  # what bytes become that are no character alone


class Vocabulary:
    """The wordpieces of a tokenizer, seen as words."""

    def __init__(self, tokenizer: PreTrainedTokenizerBase) -> None:
        self._tokenizer = tokenizer
        # In the order of their numbers: tokenizers give another order each time, and with it other words held out.
        self.pieces: dict[str, int] = dict(sorted(tokenizer.get_vocab().items(), key=lambda item: item[1]))
        self.size = max(self.pieces.values()) + 1  # more than there are pieces, if their numbers have gaps
        self._special = set(tokenizer.all_special_ids) | set(tokenizer.added_tokens_decoder)
        self.style: Style = self._find_style()
        self._decode = ByteLevel().decode

    @cached_property
    def words(self) -> dict[str, int]:
        """All words that are one wordpiece, with its id.

        A piece counts only if the tokenizer itself makes just that piece of the word.
        """
        spelled = {word: piece for text, piece in self.pieces.items() if (word := self._word(text, piece)) is not None}
        return {word: piece for word, piece in self.single(spelled).items() if piece == spelled[word]}

    def words_in(self, find: Callable[[str], int | None]) -> dict[str, int]:
        """Give the words that are one wordpiece as a store spells them, as far as it knows them.

        A lower-casing vocabulary has ``paris`` where a cased store has only ``Paris``: that counts too.
        """
        words = self.words
        if not self.lower_cases:
            return {word: piece for word, piece in words.items() if find(word) is not None}
        spelled = {}
        for word, piece in words.items():
            for form in (word, word.capitalize(), word.upper()):
                if find(form) is not None:
                    spelled[form] = piece
                    break
        return spelled

    @property
    def lower_cases(self) -> bool:
        """Whether the tokenizer makes no difference between capitals and small letters."""
        normalizer = self._tokenizer.backend_tokenizer.normalizer  # ids would not do: unknown words are all the same
        return normalizer is not None and bool(normalizer.normalize_str("Cat") == normalizer.normalize_str("cat"))

    def ids(self, words: Iterable[str]) -> list[int]:
        """Give the wordpieces of words that are one, or an error that names those that are not."""
        wanted = list(dict.fromkeys(words))
        known = self.single(wanted)
        unknown = [word for word in wanted if word not in known]
        if unknown:
            some = ", ".join(repr(word) for word in unknown[:5])
            raise EbertError(
                f"{len(unknown):,} of {len(wanted):,} candidates are not one wordpiece of this encoder: {some}"
                f"{', ...' if len(unknown) > 5 else ''}; leave them out"
            )
        if not wanted:
            raise EbertError("the candidate vocabulary is empty")
        return list(dict.fromkeys(known[word] for word in wanted))

    def show(self, piece: int) -> str:
        """Write a wordpiece for people: without the mark of a blank, and with WordPiece's ``##``."""
        text = str(self._tokenizer.convert_ids_to_tokens(piece))
        if piece in self._special or self.style == "wordpiece":
            return text
        if self.style == "sentencepiece":
            return text.removeprefix(BLANK)
        decoded = self._decode([text]).strip()
        return text if not decoded or UNREADABLE in decoded else decoded

    def single(self, words: Iterable[str]) -> dict[str, int]:
        """Give those words of which the tokenizer makes one wordpiece, with its id."""
        cut = self.cut(words)
        return {word: ids[0] for word, ids in cut.items() if len(ids) == 1 and ids[0] not in self._special}

    def cut(self, words: Iterable[str]) -> dict[str, list[int]]:
        """Give the wordpieces of words that stand after another one, and so take their leading-space form.

        A word that cannot be told from the one before it has none.
        """
        words = list(words)
        if not words:
            return {}
        lead = self._tokenizer("a", add_special_tokens=False)["input_ids"]
        found = self._tokenizer([f"a {word}" for word in words], add_special_tokens=False)["input_ids"]
        size = len(lead)
        return {word: ids[size:] if ids[:size] == lead else [] for word, ids in zip(words, found, strict=True)}

    def _find_style(self) -> Style:
        marks = [sum(text.startswith(mark) for text in self.pieces) for mark in (BYTE_BLANK, BLANK)]
        if max(marks) * 20 < len(self.pieces):
            return "wordpiece"
        return "byte-level" if marks[0] >= marks[1] else "sentencepiece"

    def _word(self, text: str, piece: int) -> str | None:
        if piece in self._special:
            return None
        if self.style == "wordpiece":
            return None if text.startswith(CONTINUATION) else text
        if self.style == "sentencepiece":
            return text[1:] or None if text.startswith(BLANK) else None
        return self._decode([text])[1:] or None if text.startswith(BYTE_BLANK) else None
