"""The words that answers are chosen from, as one encoder knows them.

LAMA's list has words that are one wordpiece of every model it was made for. Another encoder takes those of them that
are one wordpiece of its own; one that lower-cases takes the list in small letters (the paper's footnote on ERNIE and
KnowBert). Questions of one's own may have answers of several wordpieces: each piece then has a mask of its own, and the
score is the mean of their log-probabilities.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from transformers import PreTrainedTokenizerBase

from ebert.errors import EbertError
from ebert.model.encoder import Vocabulary

LONGEST = 8  # wordpieces of an answer


@dataclass(frozen=True)
class Candidates:
    """Candidate answers: their words, and their wordpieces by how many they are."""

    words: list[str]
    """All candidates, those of one wordpiece first, then those of two, ..."""
    pieces: dict[int, list[list[int]]]
    """By the number of wordpieces: the candidates' pieces, in the order of `words`."""
    lowers: bool = False
    index: dict[str, int] = field(default_factory=dict, repr=False)

    @property
    def sizes(self) -> list[int]:
        """The numbers of masks that a question is asked with."""
        return sorted(self.pieces)

    def find(self, answer: str) -> int | None:
        """Give the place of an answer among the candidates, or None."""
        return self.index.get(answer.lower() if self.lowers else answer)


def choose(
    tokenizer: PreTrainedTokenizerBase, words: Iterable[str] | None, answers: Iterable[str] = ()
) -> tuple[Candidates, int]:
    """Give the candidates of an encoder, and how many of `words` it cannot use.

    `words` are used as far as they are one wordpiece; None stands for all words that the encoder's vocabulary has. All
    of `answers` are candidates, whatever the number of their wordpieces.
    """
    vocabulary = Vocabulary(tokenizer)
    lowers = vocabulary.lower_cases

    def spelled(word: str) -> str:
        return word.lower() if lowers else word

    singles = vocabulary.words
    if words is not None:
        given = list(dict.fromkeys(map(spelled, words)))
        singles = vocabulary.single(given)
        unused = len(given) - len(singles)
    else:
        unused = 0
    chosen: dict[int, dict[tuple[int, ...], str]] = {1: {}}
    index: dict[str, tuple[int, ...]] = {}
    for word, piece in singles.items():
        chosen[1].setdefault((piece,), word)  # 'são' and 'sao' are one wordpiece where accents are dropped
        index[word] = (piece,)
    for answer, cut in vocabulary.cut(map(spelled, answers)).items():
        ids = tuple(cut)
        if answer not in index and 0 < len(ids) <= LONGEST and tokenizer.unk_token_id not in ids:
            chosen.setdefault(len(ids), {}).setdefault(ids, answer)
            index[answer] = ids
    if not any(chosen.values()):
        raise EbertError("not one candidate is a wordpiece of this encoder: is the vocabulary in another language?")
    order = {ids: place for place, ids in enumerate(ids for size in sorted(chosen) for ids in chosen[size])}
    names = [word for size in sorted(chosen) for word in chosen[size].values()]
    pieces = {size: [list(ids) for ids in chosen[size]] for size in sorted(chosen) if chosen[size]}
    return Candidates(names, pieces, lowers, {word: order[ids] for word, ids in index.items()}), unused
