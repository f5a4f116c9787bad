"""Tiny random encoders of every architecture, with tokenizers of its kind: no network, made in a second.

The tokenizers are the classes of transformers, with the special tokens, the cutting of text and the marks of blanks
that the published checkpoints have; only their vocabularies are made here.
"""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch
import transformers
from packaging.version import Version
from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from ebert import Vectors
from ebert.bert.load import quiet

HIDDEN, NARROW, DIMENSION, LONGEST = 32, 16, 24, 96
PADDED = 13  # rows of wordpiece vectors that no wordpiece has, as some checkpoints have them

SENTENCES = (
    "The native language of the actor is French .",
    "The capital of France is Paris , and the king of Spain lives in Madrid .",
    "Jean was born in Paris ( France ) and spoke Italian , Spanish and German .",
    "a film about Rome 's rivers is on the list of the best films in the world",
    "the actor Jean wrote a book about London and Berlin in English",
    "She sang in Albanian , Dutch , Danish , Greek , Polish , Czech and Russian",
    "Mars / March / Maria / Mark : on or off / yes or no",
)
WORDS = tuple(dict.fromkeys(word for line in SENTENCES for word in line.split()))
PARTS = ("Mar", "ais", "ian", "un", "é", "Å", "ع", "ب", "ה", "😀")  # beginnings and continuations of rarer words
LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789'’.,;:!?()[]/-\"#$"

ENTITIES = (
    "Jean Marais", "Paris", "France", "Rome", "Beyoncé", "Ångström", "Le Monde", 'The "Best" (film)', "Foo]bar", "A]",
    "A", "القاهرة", "O'Neill & Söhne, Inc.", "C++", "Zürich",
)  # fmt: skip


@dataclass(frozen=True)
class Architecture:
    """How to make one kind of encoder."""

    name: str
    model: str  # the class of transformers, without Config and ForMaskedLM
    tokenizer: Callable[[], PreTrainedTokenizerBase]
    style: str
    options: dict[str, object] = field(default_factory=dict)
    padded: int = 0
    width: int = HIDDEN
    first_position: int = 0
    lower_cases: bool = False

    def config(self, tokenizer: PreTrainedTokenizerBase, **more: object) -> transformers.PretrainedConfig:
        """Return the configuration of a model for a tokenizer."""
        sizes: dict[str, object] = {
            "hidden_size": HIDDEN,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "intermediate_size": 40,
            "max_position_embeddings": LONGEST + self.first_position,
        }
        if self.model == "DistilBert":
            sizes = {"dim": HIDDEN, "n_layers": 2, "n_heads": 4, "hidden_dim": 40, "max_position_embeddings": LONGEST}
        return getattr(transformers, self.model + "Config")(
            vocab_size=len(tokenizer) + self.padded,
            pad_token_id=tokenizer.pad_token_id,
            bos_token_id=tokenizer.bos_token_id,
            eos_token_id=tokenizer.eos_token_id,
            cls_token_id=tokenizer.cls_token_id,
            sep_token_id=tokenizer.sep_token_id,
            initializer_range=0.3,  # large, so that a wrong input is seen in the output
            **{**sizes, **self.options, **more},
        )

    def save(self, folder: Path, *, seed: int = 0, **more: object) -> Path:
        """Write the encoder as an ordinary folder."""
        tokenizer = self.tokenizer()
        torch.manual_seed(seed)
        module = getattr(transformers, self.model + "ForMaskedLM")(self.config(tokenizer, **more))
        shake(module)
        with quiet():
            module.save_pretrained(folder)
            tokenizer.save_pretrained(folder)
        return folder


def shake(module: PreTrainedModel) -> None:
    """Change all biases and norms, which are zeros and ones at first and would hide mistakes."""
    with torch.no_grad():
        for parameter in module.parameters():
            if parameter.dim() == 1:
                parameter.add_(0.2 * torch.randn_like(parameter))


def store(path: Path | None = None, *, words: Sequence[str] = WORDS, seed: int = 0) -> Vectors:
    """Make a store of random vectors for the words above and some entities."""
    random = np.random.default_rng(seed)
    return Vectors.from_arrays(
        words=words,
        word_vectors=random.normal(size=(len(words), DIMENSION)),
        entities=ENTITIES,
        entity_vectors=random.normal(size=(len(ENTITIES), DIMENSION)),
        redirects=[("Marais", "Jean Marais")],
        path=path,
    )


# WordPiece


def _numbered(pieces: Iterable[str]) -> dict[str, int]:
    return {piece: number for number, piece in enumerate(dict.fromkeys(pieces))}


def _wordpieces(*, lower: bool = False) -> list[str]:
    pieces = [*WORDS, *PARTS, *LETTERS, *("##" + part for part in (*PARTS, *LETTERS))]
    return [piece.lower() if lower else piece for piece in pieces]


def bert(*, lower: bool = False) -> PreTrainedTokenizerBase:
    vocab = _numbered(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *_wordpieces(lower=lower)])
    return transformers.BertTokenizer(vocab=vocab, do_lower_case=lower)


def mpnet() -> PreTrainedTokenizerBase:
    vocab = _numbered(["<s>", "<pad>", "</s>", "<unk>", *_wordpieces(lower=True), "[UNK]", "<mask>"])
    return transformers.MPNetTokenizer(vocab=vocab, do_lower_case=True)


# Byte-level BPE


def _trained(special: Sequence[str]) -> tuple[dict[str, int], list[tuple[str, str]]]:
    """Train BPE on the sentences, and put special tokens before the pieces; one called <mask> comes last."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=1000, min_frequency=1, initial_alphabet=alphabet, show_progress=False)
    tokenizer.train_from_iterator(SENTENCES, trainer)
    pieces = sorted(tokenizer.get_vocab(), key=tokenizer.get_vocab().__getitem__)
    first, last = ([*special[:-1]], ["<mask>"]) if "<mask>" in special else ([*special], [])
    vocab = _numbered([*first, *pieces, *last])
    return vocab, [tuple(merge) for merge in json.loads(tokenizer.to_str())["model"]["merges"]]


def roberta() -> PreTrainedTokenizerBase:
    vocab, merges = _trained(("<s>", "<pad>", "</s>", "<unk>", "<mask>"))
    mask = AddedToken("<mask>", lstrip=True, normalized=False, special=True)
    return transformers.RobertaTokenizer(vocab=vocab, merges=merges, mask_token=mask)


def deberta() -> PreTrainedTokenizerBase:
    vocab, merges = _trained(("[PAD]", "[CLS]", "[SEP]", "[UNK]", "[MASK]"))
    return transformers.DebertaTokenizer(vocab=vocab, merges=merges)


def modernbert() -> PreTrainedTokenizerBase:
    vocab, merges = _trained(())
    tokenizer = Tokenizer(models.BPE(vocab=vocab, merges=merges))
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(["[UNK]", "[CLS]", "[SEP]", "[PAD]", AddedToken("[MASK]", lstrip=True, special=True)])
    ends = [(name, tokenizer.token_to_id(name)) for name in ("[CLS]", "[SEP]")]
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B [SEP]", special_tokens=ends
    )
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        pad_token="[PAD]",
        mask_token="[MASK]",
    )


# SentencePiece


def _unigrams(first: Sequence[str], last: Sequence[str] = (), *, lower: bool = False) -> list[tuple[str, float]]:
    scores = dict.fromkeys(first, 0.0)
    for word in WORDS:
        scores["▁" + (word.lower() if lower else word)] = -3.0
    for part in PARTS:
        scores.setdefault(part.lower() if lower else part, -5.0)
        scores.setdefault("▁" + (part.lower() if lower else part), -5.0)
    scores["▁"] = -6.0
    for letter in LETTERS:
        scores.setdefault(letter.lower() if lower else letter, -9.0)
    return [*scores.items(), *((token, 0.0) for token in last)]


def xlm_roberta() -> PreTrainedTokenizerBase:
    vocab = _unigrams(("<s>", "<pad>", "</s>", "<unk>"), ("<mask>",))
    mask = AddedToken("<mask>", lstrip=True, normalized=False, special=True)
    return transformers.XLMRobertaTokenizer(vocab=vocab, mask_token=mask)


def albert() -> PreTrainedTokenizerBase:
    vocab = _unigrams(("<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]"), lower=True)
    mask = AddedToken("[MASK]", lstrip=True, normalized=False, special=True)
    return transformers.AlbertTokenizer(vocab=vocab, mask_token=mask)


def deberta_v2() -> PreTrainedTokenizerBase:
    return transformers.DebertaV2Tokenizer(vocab=_unigrams(("[PAD]", "[CLS]", "[SEP]", "[UNK]"), ("[MASK]",)))


RELATIVE = {"relative_attention": True, "pos_att_type": ["c2p", "p2c"], "position_biased_input": False}

# transformers before 5.20 cannot save or load the new head.
DEBERTA_V3 = (
    [Architecture("deberta-v3", "DebertaV2", deberta_v2, "sentencepiece", {**RELATIVE, "legacy": False}, padded=1)]
    if Version(transformers.__version__) >= Version("5.20")
    else []
)
ARCHITECTURES = {
    architecture.name: architecture
    for architecture in (
        Architecture("bert", "Bert", bert, "wordpiece"),
        Architecture("bert-uncased", "Bert", lambda: bert(lower=True), "wordpiece", lower_cases=True),
        Architecture("roberta", "Roberta", roberta, "byte-level", {"type_vocab_size": 1}, first_position=2),
        Architecture(
            "xlm-roberta", "XLMRoberta", xlm_roberta, "sentencepiece", {"type_vocab_size": 1}, first_position=2
        ),
        Architecture("distilbert", "DistilBert", bert, "wordpiece"),
        Architecture("electra", "Electra", bert, "wordpiece", {"embedding_size": NARROW}, width=NARROW),
        Architecture(
            "albert", "Albert", albert, "sentencepiece", {"embedding_size": NARROW}, width=NARROW, lower_cases=True
        ),
        Architecture("mpnet", "MPNet", mpnet, "wordpiece", first_position=2, lower_cases=True),
        Architecture("deberta", "Deberta", deberta, "byte-level", RELATIVE),
        Architecture("deberta-v2", "DebertaV2", deberta_v2, "sentencepiece", RELATIVE, padded=PADDED),
        *DEBERTA_V3,
        Architecture("modernbert", "ModernBert", modernbert, "byte-level", padded=PADDED),
    )
}
