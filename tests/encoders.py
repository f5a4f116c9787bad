"""Very small BERTs with random weights, for tests of everything but what a BERT knows."""

from collections.abc import Iterable
from pathlib import Path

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")


def write_small(
    folder: Path,
    pieces: Iterable[str],
    *,
    width: int = 16,
    layers: int = 1,
    inner: int = 16,
    longest: int = 64,
    spread: float = 0.02,
    lower: bool = False,
    seed: int = 0,
) -> str:
    """Write one with its tokenizer, and give its folder. The wordpieces begin with the special ones."""
    import torch
    from transformers import BertConfig, BertForMaskedLM, BertTokenizer

    vocabulary = {piece: row for row, piece in enumerate(dict.fromkeys(pieces))}
    torch.manual_seed(seed)
    config = BertConfig(
        vocab_size=len(vocabulary), hidden_size=width, num_hidden_layers=layers, num_attention_heads=2,
        intermediate_size=inner, max_position_embeddings=longest, initializer_range=spread,
    )  # fmt: skip
    BertForMaskedLM(config).save_pretrained(folder)
    BertTokenizer(vocab=vocabulary, do_lower_case=lower, model_max_length=longest).save_pretrained(folder)
    return str(folder)
