"""A linker on disk: a folder with weights, tokenizer, W, options of the linker and its spans, and the store's name.

An adapter is stored as a model's folder with the adapter in it.
"""

import math
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from ebert import __version__
from ebert._io import files, trusted
from ebert.bert.load import load_tokenizer
from ebert.errors import EbertError
from ebert.finetuning.folder import ALIGNMENT, FORMAT, load_module, read_info, writing
from ebert.linking.adapter import ADAPTER, load_adapter, save_adapter
from ebert.linking.candidates.generator import Given
from ebert.linking.options import CandidateOptions, LinkerOptions
from ebert.linking.scorer import LinkingModel
from ebert.model import folder as models
from ebert.model.alignment import Alignment
from ebert.model.ebert import EBert
from ebert.model.encoder import Encoder, fingerprint, move
from ebert.vectors.store import Vectors, reopen

if TYPE_CHECKING:
    from ebert.linking.linker import Linker

INFO, VECTORS = "linker.json", "vectors"


def load(
    cls: "type[Linker]", folder: Path, *, vectors: Vectors | str | Path | None, generator: Given,
    device: str | torch.device | None, model: EBert | None = None,
) -> "Linker":  # fmt: skip
    """Load a trained linker; load an adapter into an already loaded `model` if one is given and fits."""
    info = read_info(folder, INFO, "linker")
    try:
        options = LinkerOptions(**info["options"])
        if generator is None and info["generator"] is not None:
            generator = CandidateOptions(**info["generator"])
        threshold, shift = float(info["threshold"]), float(info.get("null_shift", 0.0))
        if not math.isfinite(threshold + shift):
            raise ValueError(f"threshold {threshold} and null_shift {shift} are not numbers")
        more: dict[str, Any] = {
            "options": options, "generator": generator, "threshold": threshold, "null_shift": shift,
            "trained_with": info.get("trained_with"),
        }  # fmt: skip
        if options.adapter:
            model = _fitting(folder, model) or EBert.from_pretrained(folder, vectors=vectors, device=device)
            linker = cls.fresh(model, **more)
            load_adapter(linker.module, folder / ADAPTER)
            return linker
        part, ours = info["vectors"], trusted.known(info.get("saved_here"), info["vectors"]["name"])
        store = reopen(folder, part["name"], part["fingerprint"], vectors, ours=ours)
        name = str(info["encoder"])
    except EbertError:
        raise
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise EbertError(f"{folder / INFO} is damaged ({error}); train the linker again") from None
    module = load_module(folder, partial(LinkingModel, new_head=options.new_head), "linker")
    move(module, device)
    encoder = Encoder(module.encoder, load_tokenizer(folder), name)
    return cls(module, encoder, store, Alignment.load(folder / ALIGNMENT), **more)


def save(linker: "Linker", folder: Path, *, include_vectors: bool) -> None:
    """Write a linker into a folder, with the name of the store or a copy of it."""
    store, spans = linker.vectors, linker.generator
    if store.temporary and not include_vectors:
        raise EbertError("the linker's store lives in memory only; save it first (Vectors.save) and open it from there")
    name = VECTORS if include_vectors else str(store.path)
    info = {
        "encoder": linker.name,
        "vectors": {"name": name, "fingerprint": store.fingerprint},
        "saved_here": trusted.mark(name),
        "options": asdict(linker.options),
        "generator": spans.settings,
        "trained_with": spans.describe() if spans.settings is None else linker.trained_with,
        "threshold": linker.threshold,
        "null_shift": linker.null_shift,
    }
    if linker.options.adapter:
        with files.replacing_folder(folder, overwrite=True, marker=INFO) as new:
            models.save(
                new, linker.encoder, store, linker.alignment, include_vectors=include_vectors, include_encoder=None
            )
            save_adapter(linker.module, new / ADAPTER)
            files.write_json(new / INFO, {"ebert": __version__, "format": FORMAT, **info})
        return
    with writing(folder, INFO, info, linker.module, linker.tokenizer, linker.alignment) as new:
        if include_vectors:
            store.save(new / VECTORS).close()


def _fitting(folder: Path, model: EBert | None) -> EBert | None:
    """Return the model if a linker's adapter was trained on top of it; else raise `EbertError`."""
    info = models.ModelInfo.read(folder)
    if model is not None and (
        fingerprint(model.encoder, model.tokenizer) != info.encoder.fingerprint
        or (model.vectors is not None and model.vectors.fingerprint != info.vectors.fingerprint)
    ):
        raise EbertError(f"{model!r} is not the model that the linker in {folder} belongs to; leave it out")
    return model
