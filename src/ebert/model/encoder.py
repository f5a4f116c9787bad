"""A pretrained masked LM, used through its public face only: embeddings in, logits or hidden states out."""

import hashlib
import inspect
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from ebert.bert.get import get_bert
from ebert.bert.load import load_masked_lm, load_tokenizer, quiet
from ebert.errors import EbertError

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
        self.first_position = _first_position(module)
        self.longest = _longest(module, tokenizer, self.first_position)
        self.fingerprint = fingerprint(module, tokenizer)

    @classmethod
    def load(
        cls,
        name: str | Path,
        *,
        device: str | torch.device | None = None,
        dtype: torch.dtype | None = None,
        local: bool = True,
    ) -> "Encoder":
        """Load a hub name (perhaps with a revision: `name@v1`), a Maven artifact's name or, if `local`, a folder."""
        name = str(name)
        folder = get_bert(name, local=local)
        try:
            module, tokenizer = load_masked_lm(folder), load_tokenizer(folder)
        except EbertError:
            raise
        except Exception as error:  # truncated or foreign files fail in as many ways as there are formats
            raise EbertError(f"{folder} cannot be loaded as a masked language model: {error}") from None
        if folder == Path(name).expanduser():  # a local folder, which must be found from anywhere
            name = str(folder.absolute())
        encoder = cls(module, tokenizer, name)  # before the dtype changes, which the fingerprint must not see
        move(module, device, dtype)
        return encoder

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
        """Whether a piece knows its place by the embedding of its position alone, so that any place can be given."""
        parts = dict(self.module.named_modules())
        absolute = any(n.endswith("position_embeddings") and isinstance(p, nn.Embedding) for n, p in parts.items())
        kind = getattr(self.module.config, "position_embedding_type", None) or "absolute"
        relative = any("relative_attention" in name or "rel_embeddings" in name for name in parts)
        return self.takes_positions and absolute and not relative and kind == "absolute"

    @property
    def device(self) -> torch.device:
        """Where the model is."""
        return self.embedding.weight.device

    @property
    def dtype(self) -> torch.dtype:
        """What the model computes in."""
        return self.embedding.weight.dtype

    def logits(self, inputs: dict[str, Tensor], places: tuple[Tensor, Tensor]) -> Tensor:
        """Give the MLM logits at some places, (row, column) of the batch, of shape (places, vocabulary).

        The MLM head is a fifth of BERT's work when it runs on every piece; here it runs on the masks only.
        """
        with evaluating(self.module), only(self.module.base_model, places):
            logits: Tensor = self.module(**inputs).logits
        return logits[0]

    def hidden(self, inputs: dict[str, Tensor], layer: int) -> Tensor:
        """Give the hidden states of a layer (-1: the last; 0: the embeddings), shape (batch, pieces, hidden)."""
        with evaluating(self.module):
            if layer == -1:
                states: Tensor = self.module.base_model(**inputs).last_hidden_state
                return states
            layers = self.module.base_model(**inputs, output_hidden_states=True).hidden_states
        if not -len(layers) <= layer < len(layers):
            raise EbertError(f"{self.name} has no layer {layer}: 0 (the embeddings) to {len(layers) - 1}")
        chosen: Tensor = layers[layer]
        return chosen


@contextmanager
def evaluating(module: nn.Module) -> Iterator[None]:
    """Compute without gradients, and without dropout even in the middle of a training."""
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
    """Let what stands on top of `body` see the given places only, as a batch of one row.

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


def move(module: nn.Module, device: str | torch.device | None, dtype: torch.dtype | None = None) -> None:
    """Put a module on a device, or say why that cannot be."""
    try:
        nn.Module.to(module, device=device, dtype=dtype)
    except (RuntimeError, AssertionError) as error:  # no such device, or no driver for it
        raise EbertError(f"the device {str(device)!r} cannot be used: {str(error).splitlines()[0]}") from None


def _first_position(module: nn.Module) -> int:
    """RoBERTa and its kin number positions from after the padding index; their position embeddings say so."""
    for name, part in module.named_modules():
        if name.endswith("position_embeddings") and isinstance(part, nn.Embedding) and part.padding_idx is not None:
            return part.padding_idx + 1
    return 0


def _longest(module: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, first_position: int) -> int:
    positions = getattr(module.config, "max_position_embeddings", None) or VERY_LONG
    return int(min(tokenizer.model_max_length, positions - first_position, VERY_LONG))


def save_encoder(module: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, folder: Path) -> None:
    """Write an encoder as transformers does, quietly and readable for whoever may read the folder."""
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
