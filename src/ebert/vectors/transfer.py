"""Bringing vectors of other formats into a store, and a store's vectors into Wikipedia2Vec's text format."""

import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from ebert import files
from ebert.errors import EbertError
from ebert.progress import Advance, silent
from ebert.vectors import sources
from ebert.vectors.sources import ENTITY, Batch
from ebert.vectors.store import Vectors
from ebert.vectors.wikipedia2vec import Wikipedia2VecModel
from ebert.vectors.writer import StoreWriter, writing

FORMATS = ("auto", "text", "wikipedia2vec", "word2vec-binary", "numpy")
KINDS = ("prefix", "words", "entities")  # what a name is: by its ENTITY/ prefix, or all of one kind


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
    """Import one or more files of vectors into a new store, in memory that does not grow with their size."""
    files.refuse_existing(Path(out), overwrite=overwrite)
    opened = [_open(Path(path), format, Path(names) if names else None, advance) for path in paths]
    batches = chain.from_iterable(batch for batch, _ in opened)
    first = next(batches, None)
    if first is None:
        raise EbertError(f"{', '.join(map(str, paths))}: no vectors in there")
    with writing(Path(out), dimension=first.vectors.shape[1], dtype=dtype, overwrite=overwrite) as writer:
        for batch in chain([first], batches):
            _add(writer, batch, kind)
        for _, redirects in opened:
            writer.redirects(redirects())
        made = {"imported": [Path(path).name for path in paths], "format": format}
        writer.finish(licence=licence, made=made)
    return Vectors.open(out)


def detect(path: Path) -> str:
    """Tell the format of a file by its ending and its first bytes."""
    if not path.is_file():
        raise EbertError(f"there is no file {path}")
    if path.suffix == ".npy":
        return "numpy"
    try:
        with sources.open_file(path) as file:
            start = file.read(4096)
    except (OSError, EOFError) as error:
        raise EbertError(f"{path} cannot be read: {error}") from None
    if start[:1] == b"\x80":
        return "wikipedia2vec"
    if start[:2] in (b"\x78\x01", b"\x78\x9c", b"\x78\xda", b"ZF", b"\x1f\x8b", b"BZ"):
        raise EbertError(f"{path} is compressed in a way that cannot be read here: decompress it first")
    header, _, rest = start.partition(b"\n")
    if sources.HEADER.match(header) and any(byte < 9 or 13 < byte < 32 for byte in rest):
        return "word2vec-binary"
    return "text"


def export_text(vectors: Vectors, out: str | Path, *, decimals: int = 6, advance: Advance = silent) -> int:
    """Write a store in Wikipedia2Vec's text format (``name TAB numbers``); give the number of lines."""
    written = 0
    replaced = dict(vectors.added())
    with files.replacing(Path(out), "w") as file:
        for kind, prefix in (("words", ""), ("entities", ENTITY)):
            blocks: Iterable[tuple[list[str], Any]] = vectors.chunks("words" if kind == "words" else "entities")
            if kind == "entities":
                blocks = chain(
                    (_leave_out(block, replaced) for block in blocks), ((([t], v[None])) for t, v in vectors.added())
                )
            for names, block in blocks:
                buffer = io.StringIO()
                for name, row in zip(names, np.asarray(block, np.float32).tolist(), strict=True):
                    numbers = " ".join(f"{value:.{decimals}g}" for value in row)
                    buffer.write(f"{prefix}{name.replace(chr(9), ' ')}\t{numbers}\n")
                file.write(buffer.getvalue())
                written += len(names)
                advance(len(names))
    return written


def _leave_out(block: tuple[list[str], Any], names: dict[str, Any]) -> tuple[list[str], Any]:
    keep = [index for index, name in enumerate(block[0]) if name not in names]
    return [block[0][index] for index in keep], block[1][keep]


def _add(writer: StoreWriter, batch: Batch, kind: str) -> None:
    entity = [kind == "entities" or (kind == "prefix" and name.startswith(ENTITY)) for name in batch.names]
    for is_entity in (False, True):
        chosen = [index for index, flag in enumerate(entity) if flag == is_entity]
        if not chosen:
            continue
        names = [batch.names[index] for index in chosen]
        if is_entity:
            names = [name.removeprefix(ENTITY) for name in names]
        vectors = batch.vectors if len(chosen) == len(batch.names) else batch.vectors[chosen]
        counts = [batch.counts[index] for index in chosen] if batch.counts else None
        writer.add("entities" if is_entity else "words", names, vectors, counts)


Opened = tuple[Iterator[Batch], Callable[[], Iterable[tuple[str, str]]]]


def _open(path: Path, chosen: str, names: Path | None, advance: Advance) -> Opened:
    """Give the batches of a file and a function for its redirects."""
    if chosen not in FORMATS:
        raise EbertError(f"unknown format {chosen!r}; choose one of {', '.join(FORMATS)}")
    kind = detect(path) if chosen == "auto" else chosen
    if not path.is_file():
        raise EbertError(f"there is no file {path}")
    if kind == "wikipedia2vec":
        if path.suffix in (".bz2", ".gz"):
            raise EbertError(f"{path} is compressed; a model file is mapped, not read: decompress it first")
        model = Wikipedia2VecModel(path)
        return model.batches(advance), model.redirects
    if kind == "numpy":
        return sources.read_numpy(path, names, advance), tuple
    reader = sources.read_word2vec_binary if kind == "word2vec-binary" else sources.read_text
    return reader(path, advance), tuple
