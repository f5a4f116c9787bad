"""Check an installation, a store or a model; each finding says what to do."""

import importlib.metadata
import os
import platform
import shutil
import sqlite3
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from ebert import __version__, _names
from ebert.errors import EbertError

if TYPE_CHECKING:
    from ebert.vectors.store import Vectors

NEEDED = ("torch", "transformers", "tokenizers", "safetensors", "huggingface-hub", "numpy")
OPTIONAL = {
    "marisa-trie": "reads Wikipedia2Vec's model files: pip install 'ebert[wikipedia2vec]'",
    "pyarrow": "reads and writes Parquet for work in bulk: pip install 'ebert[bulk]'",
    "ray": "does work in bulk on a cluster: pip install 'ebert[ray]'",
}
ROOM = 3 << 30  # bytes that fetching and converting a BERT takes for a moment


@dataclass(frozen=True, slots=True)
class Check:
    """One thing looked at."""

    what: str
    state: Literal["good", "note", "bad"]
    detail: str


def check_installation() -> Iterator[Check]:
    """Look at Python, the libraries and the machine."""
    version = platform.python_version()
    old = sys.version_info < (3, 11)
    yield Check("python", "bad" if old else "good", f"{version}{': 3.11 or newer is needed' if old else ''}")
    yield Check("ebert", "good", __version__)
    for name in NEEDED:
        try:
            yield Check(name, "good", importlib.metadata.version(name))
        except importlib.metadata.PackageNotFoundError:
            yield Check(name, "bad", f"not installed: pip install {name}")
    for name, use in OPTIONAL.items():
        try:
            yield Check(name, "good", importlib.metadata.version(name))
        except importlib.metadata.PackageNotFoundError:
            yield Check(name, "note", f"not installed; {use}")
    yield _sqlite()
    mvn = shutil.which("mvn")
    use = "not found; needed only to get Google's BERTs where the hub cannot be reached (e.g. apt-get install maven)"
    yield Check("mvn", "good" if mvn else "note", mvn or use)


def check_cache() -> Iterator[Check]:
    """Look at EBERT_HOME and the encoders in it."""
    from ebert._io.home import home
    from ebert.bert.cache import cached, verify

    folder = home()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            free = shutil.disk_usage(folder).free
    except OSError as error:
        yield Check("cache", "bad", f"{folder} cannot be written to ({error}); set EBERT_HOME to a folder of yours")
        return
    little = "" if free > ROOM else "; getting a BERT takes 3 GB for a moment"
    yield Check("cache", "note" if little else "good", f"{folder}, {free / 1e9:.0f} GB free{little}")
    for encoder in cached():
        problems = verify(encoder)
        what = f"encoder {encoder.name}"
        if problems:
            yield Check(what, "bad", f"{'; '.join(problems)}; remove {encoder} and run 'ebert bert get' again")
        else:
            yield Check(what, "good", "all files as they were written")


def check_path(path: str) -> Iterator[Check]:
    """Look at a store, a model or an encoder: a folder, a hub id or "starter"."""
    try:
        folder = _names.resolve(path, "model")
        if (folder / "store.json").exists() or not folder.is_dir():
            yield from _store(folder, path)
        elif (folder / "ebert.json").exists():
            yield from _model(folder, path)
        elif (folder / "config.json").exists():
            yield from _encoder(folder, path)
        else:
            what = "neither a store (store.json), a model (ebert.json) nor an encoder (config.json)"
            yield Check(path, "bad", what)
    except (EbertError, OSError) as error:
        yield Check(path, "bad", str(error))


def _store(folder: Path, name: str) -> Iterator[Check]:
    import numpy as np

    from ebert.vectors.catalogue import Kind
    from ebert.vectors.store import Vectors

    with Vectors.open(folder) as vectors:
        yield Check(name, "good", repr(vectors))
        yield _hashes(vectors)
        yield from _added(vectors)
        facts = vectors.describe()
        kinds: tuple[Kind, ...] = ("words", "entities")
        for kind in kinds:
            names = broken = zero = 0
            for chunk, block in vectors.chunks(kind):
                names += len(chunk)
                broken += int((~np.isfinite(block)).any(axis=1).sum())
                zero += int((~np.any(block, axis=1)).sum())
            wrong = names != facts[kind]
            detail = f"{names:,} names for {facts[kind]:,} vectors"
            yield Check(f"{kind} and their names", "bad" if wrong else "good", detail)
            if broken:
                yield Check(
                    f"{kind}' vectors", "bad", f"{broken:,} have values that are not numbers; restore the store"
                )
            elif zero:
                yield Check(f"{kind}' vectors", "note", f"{zero:,} of {facts[kind]:,} are all zeros")


def _hashes(vectors: "Vectors") -> Check:
    if not vectors.info.sha256:
        return Check("files of the store", "note", "not compared: stores of version 0.1 have no hashes; save it anew")
    if damaged := vectors.info.damaged(vectors.path):
        return Check("files of the store", "bad", f"{', '.join(damaged)}: not as written; restore the store")
    return Check("files of the store", "good", "as they were written")


def _added(vectors: "Vectors") -> Iterator[Check]:
    """Read all additions, whose checksums are looked at, and look for those that belong to another store."""
    added = sum(1 for _ in vectors.added())
    if added:
        yield Check("added entities", "good", f"{added:,}, as they were written")
    if unread := vectors.unread_additions():
        what = f"{unread:,} bytes are no whole addition: one that was interrupted, or that is damaged"
        yield Check(vectors.info.added, "note", what)
    for other in sorted(vectors.path.glob("added-*.log")):
        if other.name != vectors.info.added:
            yield Check(other.name, "note", "additions to another store than the one in this folder; they are not used")


def _model(folder: Path, name: str) -> Iterator[Check]:
    from ebert._io.trusted import locate
    from ebert.model.folder import ModelInfo, encoder_of, load_alignment

    info = ModelInfo.read(folder)
    alignment = load_alignment(folder, info)
    report = alignment.report
    yield Check(name, "good", f"W from {alignment.source} to {alignment.target}, {report.pairs:,} pairs")
    try:
        store = locate(folder, info.vectors.name, ours=info.ours)
        yield from _store(store, str(store))
        yield from _agrees(folder, store, info.vectors.fingerprint)
    except EbertError as error:
        yield Check(info.vectors.name, "bad", str(error))
    yield from _encoder_of(encoder_of(folder, info), info.encoder.fingerprint, folder)


def _agrees(folder: Path, store: Path, fingerprint: str) -> Iterator[Check]:
    from ebert.vectors.store import Vectors

    with Vectors.open(store) as vectors:
        if vectors.fingerprint == fingerprint:
            yield Check("model and store", "good", "belong together")
        else:
            yield Check("model and store", "bad", f"{folder} was fitted on other words; run 'ebert align' again")


def _encoder_of(name: str, fingerprint: str, folder: Path) -> Iterator[Check]:
    from ebert.bert.get import get_bert
    from ebert.model.encoder import Encoder

    try:
        place = (
            get_bert(name) if Path(name).is_absolute() else get_bert(name, source="cache", local=False)
        )  # a check fetches nothing
    except EbertError as error:
        yield Check("model and encoder", "note", f"not compared: {error}")
        return
    encoder = Encoder.load(place)
    if encoder.fingerprint == fingerprint:
        yield Check("model and encoder", "good", f"belong together ({name})")
    else:
        yield Check("model and encoder", "bad", f"{folder} was fitted on another encoder; run 'ebert align' again")


def _encoder(folder: Path, name: str) -> Iterator[Check]:
    from ebert.bert.cache import MANIFEST, verify
    from ebert.model.encoder import Encoder

    problems = verify(folder) if (folder / MANIFEST).exists() else []
    if problems:
        yield Check(name, "bad", "; ".join(problems))
        return
    encoder = Encoder.load(os.fspath(folder))
    detail = f"{type(encoder.module).__name__}, width {encoder.width}, {len(encoder.tokenizer):,} wordpieces"
    yield Check(name, "good", detail)


def _sqlite() -> Check:
    try:
        with sqlite3.connect(":memory:") as connection:
            connection.execute("CREATE VIRTUAL TABLE t USING fts5 (x, detail = none)")
        connection.close()
    except sqlite3.OperationalError as error:
        return Check("sqlite", "bad", f"{sqlite3.sqlite_version} lacks full-text search ({error}); use another Python")
    return Check("sqlite", "good", sqlite3.sqlite_version)
