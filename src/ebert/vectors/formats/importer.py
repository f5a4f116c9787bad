"""Importing vectors of other formats into a store."""

import re
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from ebert._io.compressed import open_measured
from ebert._io.progress import Advance, silent
from ebert.errors import EbertError
from ebert.text import letters, titles
from ebert.vectors.catalogue import Kind
from ebert.vectors.formats import binary, text
from ebert.vectors.formats.binary import ENTITY, Batch
from ebert.vectors.formats.wikipedia2vec import Wikipedia2VecModel
from ebert.vectors.store import Vectors
from ebert.vectors.writer import StoreWriter, refuse, writing

FORMATS = ("auto", "text", "wikipedia2vec", "word2vec-binary", "numpy")
KINDS = ("prefix", "words", "entities")  # what a name is: by its ENTITY/ prefix, or all of one kind
# The first bytes of files written by zlib, joblib, gzip, bzip2, zip, xz and zstd.
PACKED = (b"x\x01", b"x^", b"x\x9c", b"x\xda", b"ZF", b"\x1f\x8b", b"BZh", b"PK", b"\xfd7zXZ", b"\x28\xb5\x2f\xfd")

_CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1f]")  # characters that text does not contain


@dataclass(frozen=True, slots=True)
class _Source:
    """A file that can be read: its batches, and its redirects, which come after them."""

    path: Path
    batches: Callable[[Advance], Generator[Batch, None, None]]
    redirects: Callable[[], Iterable[tuple[str, str]]] = tuple
    lowercase: bool | None = None  # whether its words are in lower case, where it says so


def import_vectors(
    paths: Sequence[str | Path],
    out: str | Path,
    *,
    format: str = "auto",  # noqa: A002
    kind: str = "prefix",
    names: str | Path | None = None,
    dtype: str = "float32",
    licence: str = "unknown",
    overwrite: bool = False,
    advance: Advance = silent,
) -> Vectors:
    """Import one or more files of vectors into a new store. The memory needed does not grow with their size.

    The progress is in bytes, and ends with the sum of the files' sizes.
    """
    if kind not in KINDS:
        raise EbertError(f"unknown kind {kind!r}; choose one of {', '.join(KINDS)}")
    refuse(Path(out), overwrite=overwrite)
    opened = [_open(Path(path), format, Path(names) if names else None) for path in paths]
    with writing(Path(out), dimension=_dimension(opened), dtype=dtype, overwrite=overwrite) as writer:
        # Output vectors of two trainings do not fit together, and every word needs one.
        outputs = len(opened) == 1 and kind == "prefix"
        mended = sum(_read(source, writer, kind, advance, outputs=outputs) for source in opened)
        for source in opened:
            writer.redirects(source.redirects())
        made: dict[str, Any] = {"imported": [source.path.name for source in opened], "format": format}
        if any(source.lowercase for source in opened):
            made["lowercase"] = True
        if mended:
            made["names with bytes that are not UTF-8"] = mended
        writer.finish(licence=licence, made=made)
    return Vectors.open(out)


def detect(path: Path) -> str:
    """Return the format of a file by its ending and its first bytes."""
    with open_measured(path) as opened:
        start = opened.stream.read(4096)
    if path.suffix == ".npy":
        return "numpy"
    if start[:1] == b"\x80":
        return "wikipedia2vec"
    header, _, rest = start.partition(b"\n")
    if binary.HEADER.match(header) and _CONTROL.search(rest):
        return "word2vec-binary"
    if start.startswith(PACKED) and _CONTROL.search(start):
        raise EbertError(f"{path} is compressed in a way that cannot be read here: decompress it first")
    return "text"


def _open(path: Path, chosen: str, names: Path | None) -> _Source:
    """Return how to read a file."""
    if chosen not in FORMATS:
        raise EbertError(f"unknown format {chosen!r}; choose one of {', '.join(FORMATS)}")
    if not path.is_file():
        raise EbertError(f"there is no file {path}")
    kind = detect(path) if chosen == "auto" else chosen
    if names is not None and kind != "numpy":
        raise EbertError(f"{path} contains its own names; a file of names is only for the format numpy")
    if kind == "wikipedia2vec":
        if path.suffix in (".bz2", ".gz"):
            raise EbertError(f"{path} is compressed; a model file is mapped, not read: decompress it first")
        model = Wikipedia2VecModel(path)
        return _Source(path, model.batches, model.redirects, model.lowercase)
    if kind == "numpy":
        return _Source(path, partial(binary.read_numpy, path, names))
    return _Source(path, partial(binary.read_word2vec_binary if kind == "word2vec-binary" else text.read_text, path))


def _dimension(opened: Sequence[_Source]) -> int:
    """Return the dimension of the first vectors."""
    for source in opened:
        with closing(source.batches(silent)) as batches:
            for batch in batches:
                return int(batch.vectors.shape[1])
    raise EbertError(f"{', '.join(str(source.path) for source in opened)}: there are no vectors in it")


def _read(source: _Source, writer: StoreWriter, kind: str, advance: Advance, *, outputs: bool) -> int:
    """Put the vectors of a file into a store; return the number of names that had to be mended."""
    done = mended = 0

    def report(amount: int, /) -> None:
        nonlocal done
        done += amount
        advance(amount)

    with closing(source.batches(report)) as batches:
        for batch in batches:
            if batch.vectors.shape[1] != writer.dimension:
                raise EbertError(
                    f"{source.path} has vectors of dimension {batch.vectors.shape[1]}, the file before it of "
                    f"{writer.dimension}: a store has one dimension"
                )
            _add(writer, batch, kind, outputs=outputs)
            mended += batch.mended
    advance(max(0, source.path.stat().st_size - done))  # not a vector, or not needed
    return mended


def _add(writer: StoreWriter, batch: Batch, kind: str, *, outputs: bool) -> None:
    """Put a batch into a store; entities with invisible characters in their titles are counted as dropped."""
    chosen: dict[Kind, list[int]] = {"words": [], "entities": []}
    for index, name in enumerate(batch.names):
        is_entity = kind == "entities" or (kind == "prefix" and name.startswith(ENTITY))
        title = titles.clean(name.removeprefix(ENTITY)) if is_entity else ""
        if letters.unseen(title):
            writer.dropped.unseen += 1
            writer.dropped.note(repr(title))
        else:
            chosen["entities" if is_entity else "words"].append(index)
    for part, indexes in chosen.items():
        if indexes:
            names = [batch.names[index].removeprefix(ENTITY if part == "entities" else "") for index in indexes]
            vectors = batch.vectors if len(indexes) == len(batch.names) else batch.vectors[indexes]
            counts = [batch.counts[index] for index in indexes] if batch.counts is not None else None
            learned = batch.outputs[indexes] if outputs and part == "words" and batch.outputs is not None else None
            writer.add(part, names, vectors, counts=counts, outputs=learned)
