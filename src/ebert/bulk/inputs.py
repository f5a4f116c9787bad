"""What bulk work reads: files and folders of Parquet, JSON lines or text, compressed or not."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Literal

from ebert._io import compressed, files
from ebert._io.records import JSON_LINES, PLAIN_TEXT
from ebert.bulk.options import ReadOptions
from ebert.errors import EbertError

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
        wanted = ", ".join((*PARQUET, *JSON_LINES, *filter(None, PLAIN_TEXT)))
        raise EbertError(f"there is nothing to read in {', '.join(map(str, inputs))}: {wanted} are known{some}")
    return found


def _kind(path: Path, *, lines: bool) -> Kind | None:
    ending = Path(path.stem).suffix if path.suffix in compressed.UNPACK else path.suffix
    if path.suffix in PARQUET:
        return "parquet"
    if ending in JSON_LINES:
        return "jsonl"
    return ("lines" if lines else "text") if ending in PLAIN_TEXT else None


def _refuse_output(folder: Path) -> None:
    """Raise an error about what another job wrote: its list of errors is not to be read as rows."""
    if (folder / MANIFEST).is_file() and (folder / "rows").is_dir():
        raise EbertError(f"{folder} is what a job wrote; its rows are in {folder / 'rows'}: give that")


@contextmanager
def reading(path: Path) -> Iterator[IO[bytes]]:
    """Open a file of lines, unpacked by its ending; the error for a damaged one names it."""
    with naming_damage(path), compressed.opened(path) as stream:
        yield stream


@contextmanager
def naming_damage(path: Path) -> Iterator[None]:
    """Turn the errors of a damaged packed file into one of ours."""
    try:
        yield
    except compressed.DAMAGED as error:
        if isinstance(error, OSError) and error.errno is not None:  # the disk's fault, not the compression's
            raise
        raise EbertError(f"{path} is truncated or damaged ({error}); get it again") from None


SHARD_BYTES = 64 << 20  # of lines or texts; one row may have more

Check = Callable[[Source, Sequence[str] | None], None]  # raises an error about a source; with the columns of a table


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

    def __str__(self) -> str:
        first, last = self.slices[0], self.slices[-1]
        return f"{first.source.name}:{first.first + 1} to {last.source.name}:{last.first + last.rows}"


@dataclass
class ShardPlan:
    """All shards, and what was read."""

    shards: list[Shard] = field(default_factory=list)
    inputs: dict[str, dict[str, Any]] = field(default_factory=dict)
    """By name: size and SHA-256 of the file, and how many rows it has."""
    others: list[str] = field(default_factory=list)
    """Files that are not read."""

    @property
    def rows(self) -> int:
        """How many rows there are, blank lines included."""
        return sum(shard.rows for shard in self.shards)


def make_plan(inputs: Sequence[str | Path], read: ReadOptions, check: Check) -> ShardPlan:
    """Find all inputs and cut them into shards; raise an error about one that cannot be read."""
    found = find_sources(inputs, lines=read.lines)
    plan = ShardPlan(others=found.others)
    cutter = _Cutter(plan.shards, read.shard_rows)
    for source in found.sources:
        before = cutter.row
        if source.kind == "parquet":
            _cut_parquet(source, cutter, check)
        else:
            check(source, None)
            (_cut_whole if source.kind == "text" else _cut_lines)(source, cutter)
        plan.inputs[source.name] = {
            "size": source.size, "sha256": files.sha256(source.path), "rows": cutter.row - before,
        }  # fmt: skip
    cutter.close()
    if not plan.shards:
        raise EbertError(f"there are no rows in {', '.join(map(str, inputs))}")
    return plan


class _Cutter:
    """Puts slices together until a shard is full."""

    def __init__(self, shards: list[Shard], most: int) -> None:
        self._shards, self._most = shards, most
        self._slices: list[Slice] = []
        self._rows = self._bytes = 0
        self.row = 0

    @property
    def room(self) -> int:
        """Rows that the shard may still take."""
        return self._most - self._rows

    def is_full(self, rows: int, size: int) -> bool:
        """Return whether so much more fills the shard."""
        return rows >= self.room or self._bytes + size >= SHARD_BYTES

    def add(self, source: Source, start: int, stop: int, *, first: int, rows: int, size: int) -> None:
        """Add rows of a file."""
        full = self.is_full(rows, size)
        self._slices.append(Slice(source, start, stop, first, self.row, rows))
        self.row += rows
        self._rows += rows
        self._bytes += size
        if full:
            self.close()

    def close(self) -> None:
        """End the shard, if it has anything."""
        if self._slices:
            self._shards.append(Shard(len(self._shards), tuple(self._slices)))
        self._slices, self._rows, self._bytes = [], 0, 0


def _cut_lines(source: Source, cutter: _Cutter) -> None:
    start = first = end = count = 0
    with reading(source.path) as stream:
        for line in compressed.lines(stream, source.path):
            if count == 0 and line.startswith((b"\xff\xfe", b"\xfe\xff")):
                raise EbertError(f"{source.path} is UTF-16; save it as UTF-8")
            end += len(line)
            count += 1
            if cutter.is_full(count - first, end - start):
                cutter.add(source, start, end, first=first, rows=count - first, size=end - start)
                start, first = end, count
    if count > first:
        cutter.add(source, start, end, first=first, rows=count - first, size=end - start)


def _cut_whole(source: Source, cutter: _Cutter) -> None:
    with naming_damage(source.path), compressed.bounded(source.path) as stream:
        size = sum(len(block) for block in iter(lambda: stream.read(files.BLOCK), b""))
    cutter.add(source, 0, size, first=0, rows=1, size=size)


def _cut_parquet(source: Source, cutter: _Cutter, check: Check) -> None:
    from ebert.bulk.rows import open_parquet

    with open_parquet(source.path) as table:
        check(source, table.schema_arrow.names)
        rows = table.metadata.num_rows
    done = 0
    while done < rows:
        taken = min(rows - done, cutter.room)
        cutter.add(source, done, done + taken, first=done, rows=taken, size=0)
        done += taken
