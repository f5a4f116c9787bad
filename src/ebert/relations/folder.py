"""A classifier on disk: weights, tokenizer and W, and which store it belongs to."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from ebert import __version__
from ebert._io import files, trusted
from ebert.alignment import Alignment
from ebert.bert.loading import load_tokenizer, quiet
from ebert.errors import EbertError
from ebert.model.encoder import move
from ebert.relations.classifier import RelationClassifier, Setting
from ebert.relations.model import RelationModel
from ebert.relations.resolving import ResolvingOptions
from ebert.vectors.store import Vectors, reopen
from ebert.vectors.wikidata_ids import read_ids

FORMAT = 1
INFO, WEIGHTS, ALIGNMENT, IDS = "relations.json", "weights.safetensors", "alignment.safetensors", "ids.json"
MODEL = "model"  # the classifier's folder in a run


def save(classifier: RelationClassifier, folder: Path) -> None:
    """Write a classifier, in the place of an older one if there is one."""
    from safetensors.torch import save_file

    setting, module = classifier.setting, classifier.module
    with files.replacing_folder(folder, overwrite=True, marker=INFO) as new, quiet():
        module.encoder.config.save_pretrained(new)
        classifier.tokenizer.save_pretrained(new)
        save_file({name: tensor.contiguous() for name, tensor in module.state_dict().items()}, new / WEIGHTS)
        (new / WEIGHTS).chmod((new / "config.json").stat().st_mode)  # safetensors makes it readable to its owner only
        if classifier.alignment is not None:
            classifier.alignment.save(new / ALIGNMENT)
        if setting.ids:
            files.write_json(new / IDS, {f"Q{number}": title for number, title in setting.ids.items()})
        store = classifier.vectors
        files.write_json(
            new / INFO,
            {
                "ebert": __version__,
                "format": FORMAT,
                "mode": setting.mode,
                "encoder": setting.encoder,
                "vectors": None if store is None else {"name": str(store.path), "fingerprint": store.fingerprint},
                "saved_here": "" if store is None else trusted.mark(str(store.path)),
                "resolving": asdict(setting.resolving),
                "labels": list(setting.labels),
                "names": dict(setting.names),
            },
        )


def load(
    folder: Path, *, vectors: Vectors | str | Path | None = None, device: str | torch.device | None = None
) -> RelationClassifier:
    """Read what `save` wrote; `folder` may also be the run that it is in."""
    if not (folder / INFO).is_file() and (folder / MODEL / INFO).is_file():
        folder = folder / MODEL
    if not folder.is_dir():
        raise EbertError(f"there is no classifier at {folder}; make one with 'ebert relations train'")
    info = files.read_json(folder / INFO, "a relation classifier")
    version = info.get("format")
    if not isinstance(version, int) or version > FORMAT:
        raise EbertError(
            f"{folder} has classifier format {version}; this version of ebert reads up to {FORMAT}: upgrade ebert"
        )
    try:
        setting = Setting(
            mode=str(info["mode"]),
            labels=tuple(info["labels"]),
            encoder=info["encoder"],
            resolving=ResolvingOptions(**info["resolving"]),
            ids=read_ids(folder / IDS) if (folder / IDS).is_file() else {},
            names=info.get("names", {}),
        )
        part = info["vectors"]
        ours = part is not None and trusted.known(info.get("saved_here"), part["name"])
        store = None if part is None else reopen(folder, part["name"], part["fingerprint"], vectors, ours=ours)
    except (KeyError, TypeError) as error:
        raise EbertError(f"{folder / INFO} is damaged ({error}); train the classifier again") from None
    alignment = Alignment.load(folder / ALIGNMENT) if (folder / ALIGNMENT).is_file() else None
    module = _module(folder, len(setting.labels))
    move(module, device)
    return RelationClassifier(module, load_tokenizer(folder), setting, store, alignment)


def _module(folder: Path, relations: int) -> RelationModel:
    from safetensors import SafetensorError
    from safetensors.torch import load_file
    from transformers import AutoConfig, AutoModelForMaskedLM

    try:
        with quiet():
            config = AutoConfig.from_pretrained(str(folder), local_files_only=True, trust_remote_code=False)
            # As part of a masked LM the encoder has no pooler, whatever its kind.
            auto: Any = AutoModelForMaskedLM  # its from_config has no types
            encoder = auto.from_config(config).base_model
        module = RelationModel(encoder, relations)
        module.load_state_dict(load_file(folder / WEIGHTS))
    except (OSError, ValueError, RuntimeError, SafetensorError) as error:
        raise EbertError(f"the weights in {folder} cannot be loaded ({error}); train the classifier again") from None
    return module.eval()
