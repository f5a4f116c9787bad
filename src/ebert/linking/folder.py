"""A linker on disk: weights, tokenizer and W, how it reads and finds spans, and which store it belongs to."""

import math
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from ebert import __version__
from ebert._io import files, trusted
from ebert.bert.load import load_tokenizer, quiet
from ebert.errors import EbertError
from ebert.linking.candidates.generator import Given
from ebert.linking.linker import Linker
from ebert.linking.options import CandidateOptions, LinkerOptions, Mask, Variant
from ebert.linking.scorer import LinkingModel
from ebert.model import folder as models
from ebert.model.alignment import Alignment
from ebert.model.ebert import EBert
from ebert.model.encoder import Encoder, move
from ebert.vectors.store import Vectors, reopen

FORMAT = 1
INFO, WEIGHTS, ALIGNMENT, VECTORS = "linker.json", "weights.safetensors", "alignment.safetensors", "vectors"
MODEL = "model"  # the linker's folder in a run


def save(linker: Linker, folder: Path, *, include_vectors: bool = False) -> None:
    """Write a linker, in the place of an older one if there is one; with its store if that is to come along."""
    from safetensors.torch import save_file

    module, store, spans = linker.module, linker.vectors, linker.generator
    if store.temporary and not include_vectors:
        raise EbertError("the linker's store lives in memory only; save it first (Vectors.save) and open it from there")
    with files.replacing_folder(folder, overwrite=True, marker=INFO) as new, quiet():
        module.encoder.config.save_pretrained(new)
        linker.tokenizer.save_pretrained(new)
        save_file({name: tensor.contiguous() for name, tensor in module.state_dict().items()}, new / WEIGHTS)
        (new / WEIGHTS).chmod((new / "config.json").stat().st_mode)  # safetensors makes it readable to its owner only
        linker.alignment.save(new / ALIGNMENT)
        name = VECTORS if include_vectors else str(store.path)
        if include_vectors:
            store.save(new / VECTORS).close()
        files.write_json(
            new / INFO,
            {
                "ebert": __version__,
                "format": FORMAT,
                "encoder": linker.name,
                "vectors": {"name": name, "fingerprint": store.fingerprint},
                "saved_here": trusted.mark(name),
                "options": asdict(linker.options),
                "generator": spans.settings,
                "trained_with": spans.describe() if spans.settings is None else linker.trained_with,
                "threshold": linker.threshold,
                "null_shift": linker.null_shift,
            },
        )


def load(
    folder: Path, *, vectors: Vectors | str | Path | None = None, generator: Given = None,
    variant: Variant | None = None, mask: Mask | None = None, device: str | torch.device | None = None,
) -> Linker:  # fmt: skip
    """Read what `save` wrote, the linker in a run, or a model that is to link without training."""
    if not (folder / INFO).is_file() and (folder / MODEL / INFO).is_file():
        folder = folder / MODEL
    if not (folder / INFO).is_file() and (folder / models.INFO).is_file():
        model = EBert.from_pretrained(folder, vectors=vectors, device=device)
        return Linker.zero_shot(model, variant=variant or "e-bert-mlm", mask=mask, generator=generator)
    if not folder.is_dir():
        raise EbertError(f"there is no linker at {folder}; make one with 'ebert link train'")
    if not (folder / INFO).is_file():
        raise EbertError(
            f"{folder} is no linker (it has no {INFO}), and no model that can link without training (no {models.INFO})"
        )
    info = files.read_json(folder / INFO, "a linker")
    if variant or mask:
        raise EbertError(
            f"{folder} is a trained linker, whose variant and mask are given; they are a choice for models"
        )
    version = info.get("format")
    if not isinstance(version, int) or version > FORMAT:
        raise EbertError(
            f"{folder} has linker format {version}; this version of ebert reads up to {FORMAT}: upgrade ebert"
        )
    try:
        options = LinkerOptions(**info["options"])
        if generator is None and info["generator"] is not None:
            generator = CandidateOptions(**info["generator"])
        part, ours = info["vectors"], trusted.known(info.get("saved_here"), info["vectors"]["name"])
        store = reopen(folder, part["name"], part["fingerprint"], vectors, ours=ours)
        name, threshold, shift = str(info["encoder"]), float(info["threshold"]), float(info.get("null_shift", 0.0))
        if not math.isfinite(threshold + shift):
            raise ValueError(f"threshold {threshold} and null_shift {shift} are not numbers")
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        if isinstance(error, EbertError):
            raise
        raise EbertError(f"{folder / INFO} is damaged ({error}); train the linker again") from None
    masked_lm, module = _module(folder, options)
    move(masked_lm, device)
    move(module, device)
    encoder, alignment = Encoder(masked_lm, load_tokenizer(folder), name), Alignment.load(folder / ALIGNMENT)
    linker = Linker(module, encoder, store, alignment, options=options, generator=generator)
    linker.threshold, linker.null_shift = threshold, shift
    linker.trained_with = info.get("trained_with")
    return linker


def _module(folder: Path, options: LinkerOptions) -> tuple[Any, LinkingModel]:
    from safetensors import SafetensorError
    from safetensors.torch import load_file
    from transformers import AutoConfig, AutoModelForMaskedLM

    try:
        with quiet():
            config = AutoConfig.from_pretrained(str(folder), local_files_only=True, trust_remote_code=False)
            auto: Any = AutoModelForMaskedLM  # its from_config has no types
            masked_lm = auto.from_config(config)
        module = LinkingModel(masked_lm, new_head=options.variant == "wikipedia2vec-bert-random")
        module.load_state_dict(load_file(folder / WEIGHTS))
    except (OSError, ValueError, RuntimeError, SafetensorError) as error:
        raise EbertError(f"the weights in {folder} cannot be loaded ({error}); train the linker again") from None
    return masked_lm, module.eval()
