"""A pretrained masked LM, used only through its public interface: embeddings in, logits or hidden states out."""

import hashlib
import inspect
import shutil
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Literal

import torch
from tokenizers.decoders import ByteLevel
from torch import Tensor, nn
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from ebert.bert.get import get_bert
from ebert.bert.load import load_masked_lm, load_tokenizer, quiet
from ebert.errors import EbertError

Device = str | torch.device | None
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
        marks = {mark: sum(text.startswith(mark) for text in self.pieces) for mark in (BYTE_BLANK, BLANK)}
        self.style: Style = "byte-level" if marks[BYTE_BLANK] >= marks[BLANK] else "sentencepiece"
        if max(marks.values()) * 20 < len(self.pieces):
            self.style = "wordpiece"
        self._decode = ByteLevel().decode

    @cached_property
    def words(self) -> dict[str, int]:
        """All words that are one wordpiece, with its id.

        A piece counts only if the tokenizer itself makes just that piece of the word.
        """
        spelled = {word: piece for text, piece in self.pieces.items() if (word := self._word(text, piece))}
        return {word: piece for word, piece in self.single(spelled).items() if piece == spelled[word]}

    def words_in(self, find: Callable[[str], int | None]) -> dict[str, int]:
        """Return the words that are one wordpiece as a store spells them, as far as it knows them.

        A lower-casing vocabulary has ``paris`` where a cased store has only ``Paris``: that counts too.
        """
        spelled = {}
        for word, piece in self.words.items():
            forms = (word, word.capitalize(), word.upper()) if self.lower_cases else (word,)
            known = next((form for form in forms if find(form) is not None), None)
            if known is not None:
                spelled[known] = piece
        return spelled

    @cached_property
    def lower_cases(self) -> bool:
        """Whether the tokenizer ignores the difference between capitals and small letters."""
        normalizer = self._tokenizer.backend_tokenizer.normalizer  # ids would not do: unknown words are all the same
        return normalizer is not None and bool(normalizer.normalize_str("Cat") == normalizer.normalize_str("cat"))

    def ids(self, words: Iterable[str]) -> list[int]:
        """Return the wordpieces of words that are a single wordpiece; raise `EbertError` with those that are not."""
        wanted = list(dict.fromkeys(words))
        known = self.single(wanted)
        unknown = [word for word in wanted if word not in known]
        if unknown:
            some = ", ".join(map(repr, unknown[:5])) + (", ..." if len(unknown) > 5 else "")
            raise EbertError(
                f"{len(unknown):,} of {len(wanted):,} candidates are not one wordpiece of this encoder: {some}; "
                "leave them out"
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
        """Return the words that the tokenizer turns into one wordpiece, with its id."""
        cut = self.cut(words)
        return {word: ids[0] for word, ids in cut.items() if len(ids) == 1 and ids[0] not in self._special}

    def cut(self, words: Iterable[str]) -> dict[str, list[int]]:
        """Return the wordpieces of words that stand after another one, and so take their leading-space form.

        A word that cannot be told from the one before it has none.
        """
        words = list(words)
        lead, *found = self._tokenizer(["a", *(f"a {word}" for word in words)], add_special_tokens=False)["input_ids"]
        size = len(lead)
        return {word: ids[size:] if ids[:size] == lead else [] for word, ids in zip(words, found, strict=True)}

    def _word(self, text: str, piece: int) -> str:
        """Return the word that a piece spells; it is empty for a piece that does not begin a word."""
        if piece in self._special:
            return ""
        if self.style == "wordpiece":
            return "" if text.startswith(CONTINUATION) else text
        if self.style == "sentencepiece":
            return text[1:] if text.startswith(BLANK) else ""
        return self._decode([text])[1:] if text.startswith(BYTE_BLANK) else ""


_HOOKS = threading.Lock()  # torch numbers hooks without one: two threads at once could get the same number

VERY_LONG = 1 << 20  # tokenizers without a limit say 10^30


class Encoder:
    """A transformers masked LM and its tokenizer, with what injection needs to know about them."""

    def __init__(self, module: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, name: str) -> None:
        self.module, self.tokenizer, self.name = module, tokenizer, name
        parameters = inspect.signature(module.forward).parameters
        if "inputs_embeds" not in parameters:
            raise EbertError(f"{type(module).__name__} takes no inputs_embeds, so entity vectors cannot be fed to it")
        if module.config.is_encoder_decoder:
            raise EbertError(f"{type(module).__name__} is an encoder and a decoder; only encoders fill masks here")
        self.takes_positions = "position_ids" in parameters
        # RoBERTa and its kin number positions from after the padding index; their position embeddings say so.
        paddings = (table.padding_idx for table in self._position_tables())
        self.first_position = next((index + 1 for index in paddings if index is not None), 0)
        positions = getattr(module.config, "max_position_embeddings", None) or VERY_LONG
        self.longest = int(min(tokenizer.model_max_length, positions - self.first_position, VERY_LONG))

    @classmethod
    def load(
        cls,
        name: str | Path,
        *,
        device: Device = None,
        dtype: torch.dtype | None = None,
        local: bool = True,
        folder: Path | None = None,
    ) -> "Encoder":
        """Load a hub name (perhaps with a revision: `name@v1`), a Maven artifact's name or, if `local`, a folder.

        `folder` is where it was found, if it was looked for already.
        """
        name = str(name)
        folder = folder or get_bert(name, local=local)
        try:
            module, tokenizer = load_masked_lm(folder), load_tokenizer(folder)
        except EbertError:
            raise
        except Exception as error:  # truncated or foreign files fail in as many ways as there are formats
            raise EbertError(f"{folder} cannot be loaded as a masked language model: {error}") from None
        if folder == Path(name).expanduser():  # a local folder, which must be found from anywhere
            name = str(folder.absolute())
        encoder = cls(module, tokenizer, name)
        _ = encoder.fingerprint  # before the dtype changes, or training the weights
        move(module, device, dtype)
        return encoder

    def __repr__(self) -> str:
        return f"Encoder({self.name}: {type(self.module).__name__}, width {self.width}, on {self.device})"

    @cached_property
    def fingerprint(self) -> str:
        """The hash of the wordpieces and their vectors, computed once, because a large embedding takes a while."""
        return fingerprint(self.module, self.tokenizer)

    @property
    def width(self) -> int:
        """The width of the input embedding (for ELECTRA and ALBERT not that of the hidden states)."""
        return int(self.embedding.weight.shape[1])

    @property
    def embedding(self) -> nn.Embedding:
        """The wordpiece vectors."""
        embedding = self.module.get_input_embeddings()
        assert isinstance(embedding, nn.Embedding)
        return embedding

    @cached_property
    def only_absolute_positions(self) -> bool:
        """Whether positions come only from position embeddings, so that a piece can be given any position."""
        kind = getattr(self.module.config, "position_embedding_type", None) or "absolute"
        names = (name for name, _ in self.module.named_modules())
        relative = any("relative_attention" in name or "rel_embeddings" in name for name in names)
        return self.takes_positions and bool(self._position_tables()) and not relative and kind == "absolute"

    def _position_tables(self) -> list[nn.Embedding]:
        parts = self.module.named_modules()
        return [part for name, part in parts if name.endswith("position_embeddings") and isinstance(part, nn.Embedding)]

    @property
    def device(self) -> torch.device:
        """Where the model is."""
        return self.embedding.weight.device

    @property
    def dtype(self) -> torch.dtype:
        """The number type of the model."""
        return self.embedding.weight.dtype

    def logits(self, inputs: dict[str, Tensor], places: tuple[Tensor, Tensor]) -> Tensor:
        """Return the MLM logits at some places, (row, column) of the batch, of shape (places, vocabulary).

        The MLM head is a fifth of BERT's work when it runs on every piece; here it runs on the masks only.
        """
        with evaluating(self.module), only(self.module.base_model, places):
            logits: Tensor = self.module(**inputs).logits
        return logits[0]

    def hidden(self, inputs: dict[str, Tensor], layer: int) -> Tensor:
        """Return the hidden states of a layer (-1: the last; 0: the embeddings), shape (batch, pieces, hidden)."""
        with evaluating(self.module):
            output = self.module.base_model(**inputs, output_hidden_states=layer != -1)
        layers = (output.last_hidden_state,) if layer == -1 else output.hidden_states
        if not -len(layers) <= layer < len(layers):
            raise EbertError(f"{self.name} has no layer {layer}: 0 (the embeddings) to {len(layers) - 1}")
        chosen: Tensor = layers[layer]
        return chosen


@contextmanager
def evaluating(module: nn.Module) -> Iterator[None]:
    """Compute without gradients, and without dropout even during training."""
    training = [part for part in module.modules() if part.training]
    for part in training:
        part.training = False
    try:
        with torch.inference_mode():
            yield
    finally:
        for part in training:
            part.training = True


@contextmanager
def only(body: nn.Module, places: tuple[Tensor, Tensor]) -> Iterator[None]:
    """Let the layers on top of `body` see only the given places, as a batch of one row.

    A forward hook is public and works for every architecture alike. It heeds only the thread that asked for it.
    """
    thread = threading.get_ident()

    def select(_module: nn.Module, _arguments: Any, output: Any) -> Any:
        if threading.get_ident() != thread:
            return None
        chosen = output[0][places][None]  # (1, places, hidden)
        if isinstance(output, tuple):
            return (chosen, *output[1:])
        output["last_hidden_state"] = chosen
        return output

    with _HOOKS:
        hook = body.register_forward_hook(select)
    try:
        yield
    finally:
        with _HOOKS:
            hook.remove()


def fast_bf16(device: torch.device) -> bool:
    """Return whether products in bfloat16 are fast: on GPUs, and on processors with instructions for them."""
    if device.type != "cpu":
        return device.type == "cuda" and torch.cuda.is_bf16_supported()
    return bool(flags() & {"avx512_bf16", "amx_bf16"})


@cache
def flags() -> frozenset[str]:
    """Return the processor's features, as Linux names them; empty if they are unknown."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return frozenset()
    return frozenset(next((line.partition(":")[2] for line in lines if line.startswith("flags")), "").split())


def move(module: nn.Module, device: Device, dtype: torch.dtype | None = None) -> None:
    """Move a module to a device, or raise an error that says why this is not possible."""
    try:
        nn.Module.to(module, device=device, dtype=dtype)
    except (RuntimeError, AssertionError) as error:  # no such device, or no driver for it
        raise EbertError(f"the device {str(device)!r} cannot be used: {str(error).splitlines()[0]}") from None


def save_encoder(module: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, folder: Path) -> None:
    """Write an encoder as transformers does, without messages, readable for everybody who may read the folder."""
    with quiet():
        module.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
    for weights in folder.glob("*.safetensors"):  # safetensors makes them readable to their owner only
        shutil.copymode(folder / "config.json", weights)


def fingerprint(module: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> str:
    """Hash what an alignment depends on: the wordpieces and their vectors."""
    digest = hashlib.sha256()
    for piece, number in sorted(tokenizer.get_vocab().items(), key=lambda item: item[1]):
        digest.update(f"{number}\0{piece}\0".encode("utf-8", "surrogatepass"))
    weight = module.get_input_embeddings().weight
    assert isinstance(weight, Tensor)
    digest.update(weight.detach().float().cpu().contiguous().numpy().data)
    return digest.hexdigest()
