"""Loads an encoder without the reports that transformers prints about it.

transformers warns about every tensor of a checkpoint that the model has no use for. A masked language model uses
neither the pooler nor the head for the next sentence, which nearly every BERT has: the warning is true but useless.
What does matter, a tensor that is missing, is an error here instead of a warning.
"""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ebert._io.files import read_json
from ebert.errors import EbertError

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase


@contextmanager
def quiet() -> Iterator[None]:
    """Keep transformers from printing warnings and progress bars in the block; errors still come through."""
    from transformers.utils import logging as transformers_logging

    logging: Any = transformers_logging  # some of its functions have no types
    verbosity, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(verbosity)
        if bars:
            logging.enable_progress_bar()


def load_masked_lm(folder: Path, **options: Any) -> "PreTrainedModel":
    """Load the masked language model in `folder`, complete or not at all; `options` go to `from_pretrained`."""
    from transformers import AutoModelForMaskedLM

    options = {"use_safetensors": True, "trust_remote_code": False} | options
    if options["use_safetensors"] and only_pickle(folder):
        raise EbertError(
            f"{folder} has no safetensors, only pytorch_model.bin, which is a pickle; if you trust it, convert it "
            f"to safetensors: ebert bert get {folder} --allow-pickle"
        )
    with quiet():
        model, report = AutoModelForMaskedLM.from_pretrained(
            str(folder), local_files_only=True, output_loading_info=True, **options
        )
    if missing := sorted(report["missing_keys"]):
        # transformers would go on with random numbers
        raise EbertError(f"{folder} is not a complete masked language model: it lacks {', '.join(missing)}")
    loaded: PreTrainedModel = model.eval()
    return loaded


def mask_of(folder: Path) -> str | None:
    """Return what the encoder in `folder` calls its mask, without loading its tokeniser; None if no file says it."""
    for name in ("tokenizer_config.json", "special_tokens_map.json"):
        try:
            found = read_json(folder / name, "an encoder").get("mask_token")
        except (EbertError, OSError):  # loading says what is wrong with it
            continue
        found = found.get("content") if isinstance(found, dict) else found
        if isinstance(found, str) and found:
            return found
    return None


def only_pickle(folder: Path) -> bool:
    """Return whether the weights in `folder` are there as a pickle alone."""
    return any(folder.glob("pytorch_model*.bin")) and not any(folder.glob("*.safetensors"))


def convert_pickle(folder: Path) -> None:
    """Write the weights of `pytorch_model.bin` as safetensors beside it. Of the pickle only tensors are read."""
    with tempfile.TemporaryDirectory(prefix=".safetensors.", dir=folder) as work:
        try:
            model = load_masked_lm(folder, use_safetensors=False, weights_only=True)
        except EbertError:
            raise
        except Exception as error:  # what is no tensor fails in many ways
            raise EbertError(f"pytorch_model.bin in {folder} cannot be read as tensors alone: {error}") from None
        with quiet():
            model.save_pretrained(work)
        for file in sorted(Path(work).glob("model*.safetensors*")):  # the index of several files comes last
            shutil.copymode(folder / "config.json", file)  # safetensors makes them readable to their owner only
            file.replace(folder / file.name)


def load_tokenizer(folder: Path, **options: Any) -> "PreTrainedTokenizerBase":
    """Load the tokeniser in `folder`."""
    from transformers import AutoTokenizer

    with quiet():
        tokenizer: PreTrainedTokenizerBase = AutoTokenizer.from_pretrained(
            str(folder), local_files_only=True, trust_remote_code=False, **options
        )
    return tokenizer
