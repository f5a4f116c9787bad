"""What bulk work reads: files and folders of Parquet, JSON lines or text, compressed or not, cut into shards."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from ebert._io import compressed, files
from ebert._io.records import JSON_LINES, PLAIN_TEXT
from ebert.bulk.options import ReadOptions
from ebert.errors import EbertError

PARQUET = (".parquet", ".pq")
MANIFEST = "manifest.json"
SHOWN = 5  # names in a message
SHARD_BYTES = 64 << 20  # of lines or texts; one row may have more

Kind = Literal["parquet", "jsonl", "lines", "text"]  # text: the whole file is a row


@dataclass(frozen=True, slots=True)
class Source:
    """A file to read."""

    path: Path
    name: str  # what ids and messages call it
    kind: Kind
    size: int


@dataclass(frozen=True, slots=True)
class Slice:
    """Some rows of a file that stand together."""

    source: Source
    start: int  # where they begin: a byte, unpacked, of lines; a row of Parquet
    stop: int
    first: int  # number in the file of the first one
    row: int  # its number among the rows of all inputs
    rows: int


@dataclass(frozen=True, slots=True)
class Shard:
    """The rows that one worker does at a time."""

    number: int
    slices: tuple[Slice, ...]

    @property
    def rows(self) -> int:
        """How many, blank lines included."""
        return sum(part.rows for part in self.slices)

    @property
    def file(self) -> str:
        """The name of what comes of it."""
        return f"{self.number:06d}.parquet"


@dataclass
class ShardPlan:
    """All shards, and what was read."""

    shards: list[Shard] = field(default_factory=list)
    inputs: dict[str, dict[str, Any]] = field(default_factory=dict)
    """By name: size and SHA-256 of the file, and how many rows it has."""
    others: list[str] = field(default_factory=list)
    """Files that are not read, as they are of no known kind."""

    @property
    def rows(self) -> int:
        """How many rows there are, blank lines included."""
        return sum(shard.rows for shard in self.shards)


Check = Callable[[Source, Sequence[str] | None], None]  # raises an error about a source; with the columns of a table


def make_plan(inputs: Sequence[str | Path], read: ReadOptions, check: Check) -> ShardPlan:
    """Find all inputs and cut them into shards; raise an error about one that cannot be read."""
    sources, others = find_sources(inputs, lines=read.lines)
    plan = ShardPlan(others=others)
    slices: list[Slice] = []
    total = rows = size = 0  # rows of all files before; rows and bytes of the shard

    def close() -> None:
        plan.shards.append(Shard(len(plan.shards), tuple(slices)))
        slices.clear()

    for source in sources:
        start = first = end = count = 0
        for count, (end, length) in enumerate(_rows_of(source, check), 1):
            rows, size = rows + 1, size + length
            if rows >= read.shard_rows or size >= SHARD_BYTES:
                slices.append(Slice(source, start, end, first, total + first, count - first))
                close()
                start, first, rows, size = end, count, 0, 0
        if count > first:
            slices.append(Slice(source, start, end, first, total + first, count - first))
        total += count
        plan.inputs[source.name] = {"size": source.size, "sha256": files.sha256(source.path), "rows": count}
    if slices:
        close()
    if not plan.shards:
        raise EbertError(f"there are no rows in {', '.join(map(str, inputs))}")
    return plan


def find_sources(inputs: Sequence[str | Path], *, lines: bool = False) -> tuple[list[Source], list[str]]:
    """Find all files of inputs, in an order that depends on their names only, and the names of those of other kinds.

    Of one input, a file is called by its name and a file in a folder by its way from there; of several, both have what
    was given before them.
    """
    if not inputs:
        raise EbertError("there is nothing to read; give files or folders")
    sources: dict[Path, Source] = {}
    others = []
    for given in map(Path, inputs):
        place = given.expanduser()
        if not place.exists():
            raise EbertError(f"there is no file or folder {given}")
        if (place / MANIFEST).is_file() and (place / "rows").is_dir():  # its list of errors is not to be read as rows
            raise EbertError(f"{place} is the folder of a job; its rows are in {place / 'rows'}: give that folder")
        for file in files.visible(place) if place.is_dir() else [place]:
            inside = file.relative_to(place)
            name = ((inside if place.is_dir() else Path(file.name)) if len(inputs) == 1 else given / inside).as_posix()
            kind = _kind(file, lines=lines)
            if kind is None:
                others.append(name)
            elif file.resolve() in sources:
                raise EbertError(f"{file} is given twice; give every file once")
            else:
                sources[file.resolve()] = Source(file.absolute(), name, kind, file.stat().st_size)
    if not sources:
        some = f", but {', '.join(others[:SHOWN])}" if others else ""
        wanted = ", ".join((*PARQUET, *JSON_LINES, *filter(None, PLAIN_TEXT)))
        raise EbertError(f"there is nothing to read in {', '.join(map(str, inputs))}: {wanted} are known{some}")
    return list(sources.values()), others


def _kind(path: Path, *, lines: bool) -> Kind | None:
    ending = Path(path.stem).suffix if path.suffix in compressed.UNPACK else path.suffix
    if path.suffix in PARQUET:
        return "parquet"
    if ending in JSON_LINES:
        return "jsonl"
    return ("lines" if lines else "text") if ending in PLAIN_TEXT else None


def _rows_of(source: Source, check: Check) -> Iterator[tuple[int, int]]:
    """Check a file, and yield where each of its rows ends and how many bytes it has (0 in Parquet)."""
    if source.kind == "parquet":
        from ebert.bulk.rows import open_parquet

        with open_parquet(source.path) as table:
            check(source, table.schema_arrow.names)
            yield from ((row, 0) for row in range(1, table.metadata.num_rows + 1))
        return
    check(source, None)
    with naming_damage(source.path):
        if source.kind == "text":
            with compressed.bounded(source.path) as stream:
                size = sum(len(block) for block in iter(lambda: stream.read(files.BLOCK), b""))
            yield size, size
            return
        end = 0
        with compressed.opened(source.path) as stream:
            for line in compressed.lines(stream, source.path):
                if end == 0 and line.startswith((b"\xff\xfe", b"\xfe\xff")):
                    raise EbertError(f"{source.path} is UTF-16; save it as UTF-8")
                end += len(line)
                yield end, len(line)


@contextmanager
def naming_damage(path: Path) -> Iterator[None]:
    """Turn the errors of a damaged compressed file into one of ours."""
    try:
        yield
    except compressed.DAMAGED as error:
        if isinstance(error, OSError) and error.errno is not None:  # the disk's fault, not the compression's
            raise
        raise EbertError(f"{path} is truncated or damaged ({error}); get it again") from None
