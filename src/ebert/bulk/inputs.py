"""What bulk work reads: files and folders of Parquet, JSON lines or text, compressed or not."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Literal

from ebert._io import compressed, files
from ebert.errors import EbertError
from ebert.linking.readers.texts import JSON, PACKED, PLAIN

PARQUET = (".parquet", ".pq")
MANIFEST = "manifest.json"
SHOWN = 5  # names in a message

Kind = Literal["parquet", "jsonl", "lines", "text"]  # text: the whole file is a row


@dataclass(frozen=True, slots=True)
class Source:
    """A file to read."""

    path: Path
    name: str  # what ids and messages call it
    kind: Kind
    size: int


@dataclass(frozen=True, slots=True)
class Found:
    """The files of the inputs, and those in their folders that are of no known kind."""

    sources: list[Source]
    others: list[str]


def find_sources(inputs: Sequence[str | Path], *, lines: bool = False) -> Found:
    """Find all files of inputs, in an order that depends on their names only.

    Of one input, a file is called by its name and a file in a folder by its way from there; of several, both have what
    was given before them.
    """
    if not inputs:
        raise EbertError("there is nothing to read; give files or folders")
    found = Found([], [])
    seen: set[Path] = set()
    for given in map(Path, inputs):
        place = given.expanduser()
        if place.is_dir():
            _refuse_output(place)
            pairs = [(file, file.relative_to(place).as_posix()) for file in files.visible(place)]
        elif place.exists():
            pairs = [(place, "")]
        else:
            raise EbertError(f"there is no file or folder {given}")
        for file, inside in pairs:
            short = inside or file.name
            name = short if len(inputs) == 1 else (given / inside).as_posix()
            kind = _kind(file, lines=lines)
            if kind is None:
                found.others.append(name)
                continue
            if file.resolve() in seen:
                raise EbertError(f"{file} is given twice; give every file once")
            seen.add(file.resolve())
            found.sources.append(Source(file.absolute(), name, kind, file.stat().st_size))
    if not found.sources:
        some = f", but {', '.join(found.others[:SHOWN])}" if found.others else ""
        wanted = ", ".join((*PARQUET, *JSON, *(ending for ending in PLAIN if ending)))
        raise EbertError(f"there is nothing to read in {', '.join(map(str, inputs))}: {wanted} are known{some}")
    return found


def _kind(path: Path, *, lines: bool) -> Kind | None:
    ending = Path(path.stem).suffix if path.suffix in PACKED else path.suffix
    if path.suffix in PARQUET:
        return "parquet"
    if ending in JSON:
        return "jsonl"
    return ("lines" if lines else "text") if ending in PLAIN else None


def _refuse_output(folder: Path) -> None:
    """Complain about what another job wrote: its list of errors is not to be read as rows."""
    if (folder / MANIFEST).is_file() and (folder / "rows").is_dir():
        raise EbertError(f"{folder} is what a job wrote; its rows are in {folder / 'rows'}: give that")


@contextmanager
def reading(path: Path) -> Iterator[IO[bytes]]:
    """Open a file of lines, unpacked by its ending; the error for a damaged one names it."""
    with speaking_of(path), compressed.opened(path) as stream:
        yield stream


@contextmanager
def speaking_of(path: Path) -> Iterator[None]:
    """Put what is wrong with a packed file into words."""
    try:
        yield
    except compressed.DAMAGED as error:
        if isinstance(error, OSError) and error.errno is not None:  # the disk's fault, not the compression's
            raise
        raise EbertError(f"{path} is truncated or damaged ({error}); get it again") from None
