"""The folder of a fine-tuned model: configuration, tokenizer, weights, W, and a file with everything else.

torch is imported when a module is read or written, so that a folder can be checked before.
"""

import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from ebert import __version__, _names
from ebert._io import files, trusted
from ebert.bert.load import quiet
from ebert.errors import EbertError
from ebert.model import folder as models

if TYPE_CHECKING:
    from torch import nn
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

    from ebert.model.alignment import Alignment

FORMAT = 1
WEIGHTS, ALIGNMENT = "weights.safetensors", "alignment.safetensors"
MODEL = "model"  # the model's folder in a run

Module = TypeVar("Module", bound="nn.Module")


@contextmanager
def writing(
    folder: str | Path, marker: str, info: Mapping[str, Any], module: Any, tokenizer: "PreTrainedTokenizerBase",
    alignment: "Alignment | None",
) -> Iterator[Path]:  # fmt: skip
    """Write a model and replace an older one; yield the new folder, so that other files can be added.

    The file `marker` has `info` in it. The module's `encoder` is what the configuration is of.
    """
    from safetensors.torch import save_file

    with files.replacing_folder(Path(folder), overwrite=True, marker=marker) as new, quiet():
        module.encoder.config.save_pretrained(new)
        tokenizer.save_pretrained(new)
        save_file({name: tensor.contiguous() for name, tensor in module.state_dict().items()}, new / WEIGHTS)
        shutil.copymode(new / "config.json", new / WEIGHTS)  # safetensors makes it readable to its owner only
        if alignment is not None:
            alignment.save(new / ALIGNMENT)
        yield new
        files.write_json(new / marker, {"ebert": __version__, "format": FORMAT, **info})


def of_run(folder: Path, marker: str) -> Path:
    """Return the folder of a model, which may be that of a run."""
    inside = folder / MODEL
    return inside if not (folder / marker).is_file() and (inside / marker).is_file() else folder


def read_info(folder: Path, marker: str, kind: str) -> dict[str, Any]:
    """Read what `writing` wrote, or raise an error if this version cannot; `kind` is, for example, "linker"."""
    info = files.read_json(folder / marker, f"a {kind}")
    version = info.get("format")
    if not isinstance(version, int) or version > FORMAT:
        raise EbertError(
            f"{folder} has {kind} format {version}; this version of ebert reads up to {FORMAT}: upgrade ebert"
        )
    return info


def no_linker(folder: Path) -> EbertError:
    """Return the error about a folder that is neither a linker nor a model."""
    if not folder.is_dir():
        return EbertError(f"there is no linker at {folder}; make one with 'ebert link train'")
    return EbertError(
        f"{folder} is no linker (it has no linker.json), and no model that can link without training (no {models.INFO})"
    )


def check_trained(name: str | Path, kind: Literal["linker", "classifier"], vectors: str | None = None) -> None:
    """Raise `EbertError` if there is no such linker or classifier, or if its store is not where it should be.

    A model links too. `vectors` is the new path of the store.
    """
    marker = _names.MARKERS[kind][0]
    folder = of_run(_names.resolve(name, kind), marker)
    if kind == "linker" and (folder / models.INFO).is_file():  # a model, perhaps with an adapter
        if (folder / marker).is_file():
            read_info(folder, marker, kind)
        models.find_model(folder, vectors)
        return
    if kind == "linker" and not (folder / marker).is_file():
        raise no_linker(folder)
    if not folder.is_dir():
        raise EbertError(f"there is no {kind} at {folder}; make one with '{_names.COMMANDS[kind]}'")
    info = read_info(folder, marker, kind)
    part = info.get("vectors")
    if isinstance(part, dict) and isinstance(store := part.get("name"), str):
        _names.store_of(folder, store, vectors, ours=trusted.known(info.get("saved_here"), store))


def load_module(folder: Path, make: "Callable[[PreTrainedModel], Module]", kind: str) -> Module:
    """Make a module of a masked LM with the folder's configuration, and read its weights."""
    from safetensors import SafetensorError
    from safetensors.torch import load_file
    from transformers import AutoConfig, AutoModelForMaskedLM

    try:
        with quiet():
            config = AutoConfig.from_pretrained(str(folder), local_files_only=True, trust_remote_code=False)
            auto: Any = AutoModelForMaskedLM  # its from_config has no types
            module = make(auto.from_config(config))
        module.load_state_dict(load_file(folder / WEIGHTS))
    except (OSError, ValueError, RuntimeError, SafetensorError) as error:
        raise EbertError(f"the weights in {folder} cannot be loaded ({error}); train the {kind} again") from None
    return module.eval()
