"""A tiny random BERT that knows the words of the paper's example, a store of its entities, and its potential spans."""

import sys
from pathlib import Path

import numpy as np
import torch
import transformers

from ebert import EBert, Vectors
from ebert.linking.document import Choice, Document, Span
from ebert.linking.linker import Linker
from ebert.linking.options import LinkerOptions
from ebert.model.alignment import Alignment
from ebert.model.encoder import Encoder
from ebert.model.options import AlignmentOptions
from ebert.text.passage import Mention

sys.path.append(str(Path(__file__).parents[1] / "model"))
from architectures import shake

TEXT = "Adams and Platt are both injured and will miss England's opening World Cup qualifier"
PIECES = ["Adams", "and", "P", "##latt", "are", "both", "injured", "and", "will", "miss", "England", "'", "s",
          "opening", "World", "Cup", "qualifier"]  # fmt: skip
TITLES = (
    "Tony Adams (footballer)", "John Adams", "David Platt (footballer)", "Platt (Florida)", "England",
    "England national football team", "FIFA World Cup", "1998 FIFA World Cup", "Cup", "Injury",
)  # fmt: skip
SURFACES: dict[str, dict[str, float]] = {
    "Adams": {"John Adams": 0.75, "Tony Adams (footballer)": 0.25},
    "Platt": {"Platt (Florida)": 0.5, "David Platt (footballer)": 0.5},
    "injured": {"Injury": 1.0},
    "England": {"England": 0.9, "England national football team": 0.1},
    "World Cup": {"FIFA World Cup": 0.6, "1998 FIFA World Cup": 0.4},
    "Cup": {"Cup": 1.0},
}
GOLD = (("Adams", "Tony Adams (footballer)"), ("Platt", "David Platt (footballer)"),
        ("England", "England national football team"), ("World Cup", "1998 FIFA World Cup"))  # fmt: skip
WIDTH = 16


def tokenizer() -> transformers.PreTrainedTokenizerBase:
    letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.,!?()"
    pieces = [
        "[PAD]",
        "[UNK]",
        "[CLS]",
        "[SEP]",
        "[MASK]",
        "/",
        "*",
        *PIECES,
        *letters,
        *("##" + one for one in letters),
    ]
    vocab = {piece: number for number, piece in enumerate(dict.fromkeys(pieces))}
    return transformers.BertTokenizer(vocab=vocab, do_lower_case=False)


def encoder(*, longest: int = 64, seed: int = 0, dropout: float = 0.0) -> Encoder:
    words = tokenizer()
    torch.manual_seed(seed)
    config = transformers.BertConfig(
        vocab_size=len(words), hidden_size=WIDTH, num_hidden_layers=2, num_attention_heads=2, intermediate_size=24,
        max_position_embeddings=longest, initializer_range=0.3, hidden_dropout_prob=dropout,
        attention_probs_dropout_prob=dropout,
    )  # fmt: skip
    module = transformers.BertForMaskedLM(config).eval()
    shake(module)
    return Encoder(module, words, "tiny")


def store(path=None) -> Vectors:
    """The store at a path, made if it is not there; without a path one in memory."""
    if path is not None and Path(path).exists():
        return Vectors.open(path)
    random = np.random.default_rng(0)
    return Vectors.from_arrays(
        words=["and", "are"], word_vectors=random.normal(size=(2, WIDTH)),
        entities=TITLES, entity_vectors=random.normal(size=(len(TITLES), WIDTH)), path=path,
    )  # fmt: skip


def model(path=None, **more) -> EBert:
    """A model that feeds vectors as they are."""
    own = encoder(**more)
    vectors = store(path)
    plain = Alignment.fit(vectors, {}, np.zeros((1, WIDTH)), AlignmentOptions(method="none"))
    return EBert(own, vectors, plain)


def spans(document: Document) -> list[Span]:
    """All places where a surface stands."""
    found = []
    for surface, meant in SURFACES.items():
        choices = tuple(Choice(title, prior) for title, prior in meant.items())
        start = document.text.find(surface)
        while start >= 0:
            found.append(Span(start, start + len(surface), choices))
            start = document.text.find(surface, start + 1)
    return sorted(found, key=lambda span: (span.start, span.end))


def linker(path=None, *, generator=spans, longest: int = 64, seed: int = 0, dropout: float = 0.0, **options) -> Linker:
    own = model(path, longest=longest, seed=seed, dropout=dropout)
    return Linker.fresh(own, options=LinkerOptions(**options), generator=generator)


def gold(text: str = TEXT, name: str = "1") -> Document:
    """A document with all of the paper's mentions that stand in it."""
    mentions = [
        Mention(text.index(surface), text.index(surface) + len(surface), entity)
        for surface, entity in GOLD
        if surface in text
    ]
    return Document(name, text, tuple(mentions))
