"""Check an installation, a store or a model; each finding says what to do."""

import importlib.metadata
import platform
import shutil
import sqlite3
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ebert import __version__, _names
from ebert.errors import EbertError

NEEDED = ("torch", "transformers", "tokenizers", "safetensors", "huggingface-hub", "numpy")
OPTIONAL = {
    "marisa-trie": "reads Wikipedia2Vec's model files: pip install 'ebert[wikipedia2vec]'",
    "pyarrow": "reads and writes Parquet for work in bulk: pip install 'ebert[bulk]'",
    "ray": "does work in bulk on a cluster: pip install 'ebert[ray]'",
}
ROOM = 3 << 30  # bytes that fetching and converting a BERT takes for a moment


@dataclass(frozen=True, slots=True)
class Check:
    """One finding."""

    what: str
    state: Literal["good", "note", "bad"]
    detail: str


def check_installation() -> Iterator[Check]:
    """Check Python, the libraries and the machine."""
    old = sys.version_info < (3, 11)
    needs = ": 3.11 or newer is needed" if old else ""
    yield Check("python", "bad" if old else "good", platform.python_version() + needs)
    yield Check("ebert", "good", __version__)
    for name, use in {**dict.fromkeys(NEEDED, ""), **OPTIONAL}.items():
        try:
            yield Check(name, "good", importlib.metadata.version(name))
        except importlib.metadata.PackageNotFoundError:
            missing = f"not installed; {use}" if use else f"not installed: pip install {name}"
            yield Check(name, "note" if use else "bad", missing)
    try:
        with closing(sqlite3.connect(":memory:")) as connection:
            connection.execute("CREATE VIRTUAL TABLE t USING fts5 (x, detail = none)")
        yield Check("sqlite", "good", sqlite3.sqlite_version)
    except sqlite3.OperationalError as error:
        why = f"{sqlite3.sqlite_version} lacks full-text search ({error}); use another Python"
        yield Check("sqlite", "bad", why)
    mvn = shutil.which("mvn")
    use = "not found; needed only to get Google's BERTs where the hub cannot be reached (e.g. apt-get install maven)"
    yield Check("mvn", "good" if mvn else "note", mvn or use)


def check_cache(*, quick: bool = False) -> Iterator[Check]:
    """Check EBERT_HOME and the encoders in it; if `quick`, check only the sizes of their files."""
    from ebert._io.home import home
    from ebert.bert.get import cached, verify

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
        problems = "; ".join(verify(encoder, hashes=not quick))
        detail = (
            f"{problems}; remove {encoder} and run 'ebert bert get' again"
            if problems
            else f"all files {'of the right size' if quick else 'as they were written'}"
        )
        yield Check(f"encoder {encoder.name}", "bad" if problems else "good", detail)


def check_path(path: str, *, quick: bool = False) -> Iterator[Check]:
    """Check a store, a model or an encoder: a folder, a hub id or "starter".

    If `quick`, no encoder is loaded and no file is read as a whole.
    """
    try:
        folder = _names.resolve(path, "model")
        if (folder / "store.json").exists() or not folder.is_dir():
            yield from _store(folder, path, quick=quick)
        elif (folder / "ebert.json").exists():
            yield from _model(folder, path, quick=quick)
        elif (folder / "config.json").exists():
            yield _encoder(folder, path, quick=quick)
        else:
            what = "neither a store (store.json), a model (ebert.json) nor an encoder (config.json)"
            yield Check(path, "bad", what)
    except (EbertError, OSError) as error:
        yield Check(path, "bad", str(error))


def _store(folder: Path, name: str, *, quick: bool) -> Iterator[Check]:
    import numpy as np

    from ebert.vectors.catalogue import Kind
    from ebert.vectors.store import Vectors

    with Vectors.open(folder) as vectors:
        sizes = f"{vectors.info.words:,} words, {len(vectors):,} entities, dimension {vectors.dimension}"
        yield Check(name, "good", sizes)
        if quick:
            return
        if not vectors.info.sha256:
            old = "not compared: stores of version 0.1 have no hashes; save it again"
            yield Check("files of the store", "note", old)
        elif damaged := vectors.info.damaged(vectors.path):
            yield Check("files of the store", "bad", f"{', '.join(damaged)}: not as written; restore the store")
        else:
            yield Check("files of the store", "good", "as they were written")
        if added := sum(1 for _ in vectors.added()):  # which looks at their checksums
            yield Check("added entities", "good", f"{added:,}, as they were written")
        if unread := vectors.unread_additions():
            what = f"{unread:,} bytes are no whole addition: one that was interrupted, or that is damaged"
            yield Check(vectors.info.added, "note", what)
        for other in sorted({path.name for path in vectors.path.glob("added-*.log")} - {vectors.info.added}):
            yield Check(other, "note", "additions to another store than the one in this folder; they are not used")
        facts = vectors.describe()
        kinds: tuple[Kind, ...] = ("words", "entities")
        for kind in kinds:
            names = broken = zero = 0
            for chunk, block in vectors.chunks(kind):
                names += len(chunk)
                broken += int((~np.isfinite(block)).any(axis=1).sum())
                zero += int((~np.any(block, axis=1)).sum())
            wrong = names != facts[kind]
            yield Check(
                f"{kind} and their names", "bad" if wrong else "good", f"{names:,} names for {facts[kind]:,} vectors"
            )
            if broken:
                what = f"{broken:,} have values that are not numbers; restore the store"
                yield Check(f"{kind}' vectors", "bad", what)
            elif zero:
                yield Check(f"{kind}' vectors", "note", f"{zero:,} of {facts[kind]:,} are all zeros")


def _model(folder: Path, name: str, *, quick: bool) -> Iterator[Check]:
    from ebert._io.trusted import locate
    from ebert.bert.get import get_bert
    from ebert.model.folder import ModelInfo, encoder_of, load_alignment
    from ebert.vectors.store import Vectors

    info = ModelInfo.read(folder)
    alignment = load_alignment(folder, info)
    pairs = alignment.report.pairs
    yield Check(name, "good", f"W from {alignment.source} to {alignment.target}, {pairs:,} pairs")
    try:
        store = locate(folder, info.vectors.name, ours=info.ours)
        yield from _store(store, str(store), quick=quick)
        with Vectors.open(store) as vectors:
            if vectors.fingerprint == info.vectors.fingerprint:
                yield Check("model and store", "good", "belong together")
            else:
                yield Check("model and store", "bad", f"{folder} was fitted on other words; run 'ebert align' again")
    except EbertError as error:
        yield Check(info.vectors.name, "bad", str(error))
    own = encoder_of(folder, info)
    try:  # a check fetches nothing
        place = get_bert(own) if Path(own).is_absolute() else get_bert(own, source="cache", local=False)
    except EbertError as error:
        yield Check("model and encoder", "note", f"not compared: {error}")
        return
    if quick:
        yield Check("model and encoder", "good", f"{own} is there; not compared")
        return
    from ebert.model.encoder import Encoder

    if Encoder.load(place).fingerprint == info.encoder.fingerprint:
        yield Check("model and encoder", "good", f"belong together ({own})")
    else:
        yield Check("model and encoder", "bad", f"{folder} was fitted on another encoder; run 'ebert align' again")


def _encoder(folder: Path, name: str, *, quick: bool) -> Check:
    from ebert.bert.get import MANIFEST, verify

    if (folder / MANIFEST).exists() and (problems := verify(folder, hashes=not quick)):
        return Check(name, "bad", "; ".join(problems))
    if quick:
        return Check(name, "good", "an encoder; not loaded")
    from ebert.model.encoder import Encoder

    encoder = Encoder.load(str(folder))
    detail = f"{type(encoder.module).__name__}, width {encoder.width}, {len(encoder.tokenizer):,} wordpieces"
    return Check(name, "good", detail)
