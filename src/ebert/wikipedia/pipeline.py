"""From dumps to parts: pieces are shared out to worker processes, and pages that lie across cuts are put together."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from ebert import _workers
from ebert._io.compressed import Room, limit
from ebert._io.progress import Advance
from ebert.errors import EbertError
from ebert.wikipedia import dump as dumps_
from ebert.wikipedia import pages
from ebert.wikipedia.dump import Dump, Piece, pieces, streams_in
from ebert.wikipedia.making import Options, PartMaker
from ebert.wikipedia.pages import PAGE
from ebert.wikipedia.parts import load_ends
from ebert.wikipedia.site import Site
from ebert.wikipedia.unpacking import DamagedError, unpacked
from ebert.wikipedia.workshop import Workshop


@dataclass(frozen=True, slots=True)
class Job:
    """How dumps are to be read."""

    options: Options
    workshop: Workshop
    processes: int
    keep_going: bool  # take what can be read of a damaged file
    run: "Run | None" = None  # who reads pieces, if not processes of this machine


@dataclass(frozen=True, slots=True)
class Task:
    """A piece of a dump and where to put what is made of it."""

    dump: Dump
    piece: Piece
    site: Site
    options: Options
    path: Path
    keep_going: bool


Run = Callable[[Callable[[Task], None], Iterable[Task]], Iterator[tuple[Task, None]]]


def make_parts(dumps: list[tuple[Dump, Site]], job: Job, advance: Advance) -> list[Path]:
    """Make all parts of dumps that are not there yet; give the places of all, in the order of the text."""
    readers = [_Reader(dump, number, site, job, advance) for number, (dump, site) in enumerate(dumps)]
    try:
        tasks = (task for reader in readers for task in reader.tasks())
        run: Run = job.run or partial(_workers.run, processes=job.processes)
        for task, _ in run(make_part, tasks):
            if not task.path.exists():
                raise EbertError(f"{task.path} was made where it is not seen; --out must be on a disk that all share")
            advance(task.piece.end - task.piece.start)
        for reader in readers:
            for task in reader.seams():
                if not task.path.exists():
                    make_part(task)
    except DamagedError as error:
        read = sum(load_ends(path)[0]["read"] for path in job.workshop.parts())
        raise EbertError(
            f"{error}; {read:,} pages were read and are kept: get the file again (and begin with --overwrite), or take"
            " what can be read of it with --keep-going"
        ) from None
    return [path for reader in readers for path in reader.paths]


class _Reader:
    """What is to be done for a dump."""

    def __init__(self, dump: Dump, number: int, site: Site, job: Job, advance: Advance) -> None:
        self._dump, self._number, self._site, self._job, self._advance = dump, number, site, job, advance
        self.paths: list[Path] = []

    def tasks(self) -> Iterator[Task]:
        """Give the pieces of the dump that have no part yet."""
        bench, damaged = self._job.workshop, False
        known = [bench.part(self._number, number) for number in range(bench.pieces(self._number) or 0)]
        if known and all(path.exists() for path in known):
            self.paths += known
            self._advance(self._dump.size)
            return
        for piece in pieces(self._dump):
            damaged = damaged or piece.damage is not None
            if piece.damage and not self._job.keep_going:
                raise piece.damage
            path = bench.part(self._number, piece.number)
            self.paths.append(path)
            if path.exists():
                self._advance(piece.end - piece.start)
            else:
                yield self._task(piece, path)
        if not damaged:
            bench.note_pieces(self._number, len(self.paths))

    def seams(self) -> Iterator[Task]:
        """Give the pages that lay across cuts, as pieces of their own that come after all others."""
        if self._dump.kind in ("bz2", "gz"):  # cut behind pages only
            return
        xml, number = bytearray(), 0
        for page in self._across_cuts():
            xml += page
            if len(xml) >= dumps_.PIECE:
                yield self._seam(number, bytes(xml))
                xml, number = bytearray(), number + 1
        yield self._seam(number, bytes(xml))

    def _across_cuts(self) -> Iterator[bytes]:
        carried = b""
        for path in list(self.paths):
            info, head, tail = load_ends(path)
            if info["damage"] and not self._job.keep_going:
                raise DamagedError(self._dump.path, *info["damage"])
            carried += head
            dumps_.refuse_long(self._dump.path, len(carried))
            if info["begins"]:
                yield carried if PAGE in carried else b""
                carried = tail
        yield carried if PAGE in carried else b""

    def _seam(self, number: int, xml: bytes) -> Task:
        path = self._job.workshop.part(self._number, number, seam=True)
        self.paths.append(path)
        return self._task(Piece(number, 0, 0, xml), path)

    def _task(self, piece: Piece, path: Path) -> Task:
        return Task(self._dump, piece, self._site, self._job.options, path, self._job.keep_going)


def make_part(task: Task) -> None:
    """Read the pages of a piece and write them as a part."""
    maker = PartMaker(_remembered(task.site), task.options)
    stretches, damage = _stretches(task)
    cuts = [pages.cut(xml) for xml in stretches]
    in_range = task.piece.xml is None
    broken = 0
    for cut in cuts:
        broken += cut.broken
        for page in cut.pages:
            dumps_.refuse_long(task.dump.path, len(page))
            maker.add(pages.read(page))
        if PAGE in cut.tail and not (in_range and cut is cuts[-1]):  # nothing comes after it
            broken += 1
    if broken:
        maker.skipped.note("page that has no end", "", broken)
    if damage:
        maker.skipped.note("damaged place in a dump", f"{damage.path.name}, byte {damage.offset:,}: {damage.why}")
    part = maker.part(
        head=cuts[0].head if in_range else b"",
        tail=cuts[-1].tail if in_range else b"",
        begins=len(stretches) > 1 or PAGE in stretches[0],
        damage=damage and [damage.offset, damage.size, damage.why],
    )
    part.save(task.path)


_sites: list[Site] = []  # those that this process has met


def _remembered(site: Site) -> Site:
    """Give the site as it was met before: it remembers where links lead, which saves half the work with titles."""
    for known in _sites:
        if known == site:
            return known
    _sites.append(site)
    return site


def _stretches(task: Task) -> tuple[list[bytes], DamagedError | None]:
    """Give the XML of a piece: one stretch, or several with something lost between them if it is damaged."""
    piece, dump = task.piece, task.dump
    if piece.xml is not None:
        return [piece.xml], piece.damage
    most = limit(piece.end - piece.start)
    try:
        return [b"".join(_blocks(dump, piece.start, piece.end, Room(dump.path, most)))], None
    except DamagedError as error:
        if not task.keep_going:
            raise
        damage = DamagedError(dump.path, error.offset, dump.size, error.why)
    found, room = [bytearray()], Room(dump.path, most)
    for start, end in _streams(dump.path, piece):
        try:
            for block in _blocks(dump, start, end, room):
                found[-1] += block
        except DamagedError:
            found.append(bytearray())
    return [bytes(stretch) for stretch in found], damage


def _blocks(dump: Dump, start: int, end: int, room: Room) -> Iterator[bytes]:
    for _, block in unpacked(dump.path, dump.packing, start, end):
        room.take(len(block))
        yield block


def _streams(path: Path, piece: Piece) -> Iterator[tuple[int, int]]:
    """Give the ranges of the streams in a piece, so that those behind a damaged one can be read."""
    with path.open("rb") as file:
        file.seek(piece.start)
        starts = {0, *streams_in(file.read(piece.end - piece.start))}
    ends = sorted(piece.start + start for start in starts)
    yield from zip(ends, [*ends[1:], piece.end], strict=True)
