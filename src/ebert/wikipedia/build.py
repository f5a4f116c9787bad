"""Build a corpus from dumps: pieces to parts on all cores, parts to a corpus, words of links to a mention table.

While the corpus is built, its parts are in a folder beside it (`corpus.parts`). A build that was stopped continues with
the parts it finds there. Pieces are distributed to worker processes, or to a cluster. A page that lies across the cut
between two pieces is put together when all pieces are read; it becomes a separate piece, a seam.
"""

import itertools
import os
import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from ebert import __version__, _workers
from ebert._io import files, staging
from ebert._io.compressed import Room, limit
from ebert._io.progress import Advance, Watch, unwatched
from ebert._runs import LOCK, alone_in, refuse_other, saying_where
from ebert.errors import EbertError
from ebert.wikipedia import dump as dumps_
from ebert.wikipedia import mentions
from ebert.wikipedia.build_merge import merge
from ebert.wikipedia.build_part import PartMaker, Skipped, load_ends
from ebert.wikipedia.corpus import INFO, Corpus, CorpusInfo
from ebert.wikipedia.dump import PAGE, DamagedError, Dump, Piece, cut_pages, look, pieces, read_page, streams_in
from ebert.wikipedia.options import CorpusOptions
from ebert.wikipedia.site import Site

MANIFEST = "build.json"
FORMAT = 2  # of the parts
LICENCE = "CC BY-SA 4.0, text of Wikipedia"

_WIKIPEDIA = re.compile(r"<sitename>Wikipedia</sitename>|<dbname>[a-z_]+wiki</dbname>|//[a-z-]+\.wikipedia\.org/")
_OURS = re.compile(r"lock|merged|\d{3}-(part|seam)-\d{6}\.npz|\d{3}-pieces\.json")  # the first two are of 0.1


@dataclass(frozen=True, slots=True)
class PieceTask:
    """A piece of a dump and where to put what is made of it: the work of `make_part`, on any machine."""

    dump: Dump
    piece: Piece
    site: Site
    options: CorpusOptions
    path: Path


Run = Callable[[Callable[[PieceTask], None], Iterable[PieceTask]], Iterator[tuple[PieceTask, None]]]
"""Does the work for all tasks, and yields each when it is done."""


def build_corpus(
    dumps: Sequence[str | Path],
    out: str | Path,
    *,
    overwrite: bool = False,
    run: Run | None = None,
    watch: Watch = unwatched,
    **options: Any,
) -> Corpus:
    """Build a corpus of MediaWiki exports at `out`, or go on building it.

    `options` are those of `CorpusOptions`. `run` distributes the pieces of dumps elsewhere than to processes of this
    machine, for example to a cluster (`ebert.bulk.ray.RayTasks`); the corpus is the same.
    """
    began = time.monotonic()
    target, chosen = Path(out), CorpusOptions(**options)
    files.refuse_existing(target, overwrite=overwrite, marker=INFO)
    looked = look_at(dumps)
    threads = chosen.threads or os.cpu_count() or 1
    run = run or partial(_workers.run, processes=threads)
    with saying_where(target), _parts_folder(target, looked, chosen, overwrite=overwrite) as parts_folder:
        with watch("read", total=sum(dump.size for dump, _ in looked), unit="B") as advance:
            readers = [_Reader(*one, number, chosen, parts_folder, advance) for number, one in enumerate(looked)]
            parts = _make_parts(readers, run, advance)
        with files.replacing_folder(target, overwrite=overwrite, marker=INFO) as folder:
            skipped = Skipped()
            with watch("merge", total=2 * len(parts), unit="parts") as advance:
                counts = merge(parts, folder, skipped, advance)
            if not counts["words"]:
                staging.discard(parts_folder)
                raise EbertError(f"there is no text in {', '.join(map(str, dumps))}; skipped: {skipped.summary()}")
            with watch("count mentions", total=counts["words"], unit="words") as advance:
                surfaces = mentions.write(folder, threads=threads, advance=advance)
            CorpusInfo(
                language=looked[0][1].language,
                **chosen.identity(),
                **counts,
                surfaces=surfaces,
                skipped=skipped.value(),
                dumps=[{"name": dump.path.name, "size": dump.size} for dump, _ in looked],
                licence=LICENCE if all(_WIKIPEDIA.search(dump.header) for dump, _ in looked) else "unknown",
                seconds=round(time.monotonic() - began, 1),
                version=__version__,
            ).write(folder)
        staging.discard(parts_folder)
    return Corpus.open(target)


def look_at(dumps: Sequence[str | Path]) -> list[tuple[Dump, Site]]:
    """Find out what the files are; raise `EbertError` if one is not a dump, is given twice or has another language."""
    if not dumps:
        raise EbertError("a corpus needs at least one dump")
    looked: dict[Path, tuple[Dump, Site]] = {}
    for path in map(Path, dumps):
        dump = look(path)
        if path.resolve() in looked:
            raise EbertError(f"{path} is given twice; give every dump once")
        looked[path.resolve()] = dump, Site.from_siteinfo(dump.header)
    languages = {site.language: dump.path.name for dump, site in looked.values()}
    if len(languages) > 1:
        shown = ", ".join(f"{name}: {language}" for language, name in languages.items())
        raise EbertError(f"the dumps are in different languages ({shown}); build a corpus for each language")
    return list(looked.values())


@contextmanager
def _parts_folder(
    out: Path, looked: list[tuple[Dump, Site]], options: CorpusOptions, *, overwrite: bool
) -> Iterator[Path]:
    """Open the folder of parts beside a corpus; remove parts of another build, if that is allowed."""
    folder = out.absolute().with_name(f"{out.absolute().name}.parts")
    identity = {
        "dumps": [{"name": dump.path.name, "size": dump.size, "changed": dump.changed} for dump, _ in looked],
        **options.identity(),
        "version": f"{__version__}, parts {FORMAT}, cut to {dumps_.PIECE} and {dumps_.RANGE} bytes",
    }
    with alone_in(folder, marker=MANIFEST, ours=lambda file: bool(_OURS.fullmatch(file.name))) as known:
        before = files.read_json(folder / MANIFEST, "a folder of parts") if known else {}
        if not known or refuse_other(folder, before, identity, what="an unfinished build", overwrite=overwrite):
            for left in folder.iterdir():
                if left.is_file() and left.name not in (LOCK, MANIFEST):
                    left.unlink()
            files.write_json(folder / MANIFEST, identity)
        yield folder


def _make_parts(readers: "list[_Reader]", run: Run, advance: Advance) -> list[Path]:
    """Make all missing parts of dumps; return the places of all parts, in the order of the text."""
    try:
        for task, _ in run(make_part, (task for reader in readers for task in reader.tasks())):
            if not task.path.exists():
                raise EbertError(
                    f"{task.path} was written on a disk that is not visible here; --out must be on a "
                    f"disk that all machines share"
                )
            advance(task.piece.end - task.piece.start)
        for reader in readers:
            for task in reader.seams():
                if not task.path.exists():
                    make_part(task)
    except DamagedError as error:
        read = sum(load_ends(path)[0]["read"] for path in readers[0].folder.glob("*.npz"))
        raise EbertError(
            f"{error}; {read:,} pages were read and are kept: get the file again "
            "(and start with --overwrite), or read as much of it as possible with --keep-going"
        ) from None
    return [path for reader in readers for path in reader.paths]


@dataclass
class _Reader:
    """The work to do for one of the dumps."""

    dump: Dump
    site: Site
    number: int
    options: CorpusOptions
    folder: Path  # of the parts
    advance: Advance
    paths: list[Path] = field(default_factory=list)  # of all parts so far

    def tasks(self) -> Iterator[PieceTask]:
        """Yield the pieces of the dump that have no part yet."""
        # A dump whose parts are all there need not be unpacked again, if we know how many it has.
        counted, damaged = self.folder / f"{self.number:03d}-pieces.json", False
        count = int(files.read_json(counted, "a folder of parts")["pieces"]) if counted.exists() else 0
        known = [self._path("part", number) for number in range(count)]
        if known and all(path.exists() for path in known):
            self.paths.extend(known)
            self.advance(self.dump.size)
            return
        for piece in pieces(self.dump):
            damaged = damaged or piece.damage is not None
            if piece.damage and not self.options.keep_going:
                raise piece.damage
            task = self._task(piece, "part")
            if task.path.exists():
                self.advance(piece.end - piece.start)
            else:
                yield task
        if not damaged:
            files.write_json(counted, {"pieces": len(self.paths)})

    def seams(self) -> Iterator[PieceTask]:
        """Yield the pages that lay across cuts, as separate pieces that come after all others."""
        if self.dump.kind in ("bz2", "gz"):  # cut behind pages only
            return
        xml, number = bytearray(), 0
        for page in self._across_cuts():
            xml += page
            if len(xml) >= dumps_.PIECE:
                yield self._task(Piece(number, 0, 0, bytes(xml)), "seam")
                xml, number = bytearray(), number + 1
        yield self._task(Piece(number, 0, 0, bytes(xml)), "seam")

    def _across_cuts(self) -> Iterator[bytes]:
        held = b""
        for path in list(self.paths):
            info, head, tail = load_ends(path)
            if info["damage"] and not self.options.keep_going:
                raise DamagedError(self.dump.path, *info["damage"])
            held += head
            dumps_.refuse_long(self.dump.path, len(held))
            if info["begins"]:
                yield held if PAGE in held else b""
                held = tail
        yield held if PAGE in held else b""

    def _task(self, piece: Piece, kind: str) -> PieceTask:
        self.paths.append(self._path(kind, piece.number))
        return PieceTask(self.dump, piece, self.site, self.options, self.paths[-1])

    def _path(self, kind: str, number: int) -> Path:
        return self.folder / f"{self.number:03d}-{kind}-{number:06d}.npz"


def make_part(task: PieceTask) -> None:
    """Read the pages of a piece and write them as a part."""
    if task.site not in _sites:
        _sites.append(task.site)
    # The site object that this process met first: it caches where links lead, which saves half the work on titles.
    maker = PartMaker(_sites[_sites.index(task.site)], task.options)
    stretches, damage = _stretches(task)
    cuts = [cut_pages(xml) for xml in stretches]
    in_range = task.piece.xml is None
    broken = 0
    for cut in cuts:
        broken += cut.broken
        for page in cut.pages:
            dumps_.refuse_long(task.dump.path, len(page))
            maker.add(read_page(page))
        if PAGE in cut.tail and not (in_range and cut is cuts[-1]):  # nothing comes after it
            broken += 1
    if broken:
        maker.skipped.note("page that has no end", count=broken)
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


def _stretches(task: PieceTask) -> tuple[list[bytes], DamagedError | None]:
    """Return the XML of a piece: one stretch, or several with gaps between them if it is damaged."""
    piece, dump = task.piece, task.dump
    if piece.xml is not None:
        return [piece.xml], piece.damage
    starts = {piece.start}
    if dump.kind == "streams":
        with dump.path.open("rb") as file:
            file.seek(piece.start)
            starts |= {piece.start + start for start in streams_in(file.read(piece.end - piece.start))}
    found, damage = [bytearray()], None
    room = Room(dump.path, limit(piece.end - piece.start))
    for start, end in itertools.pairwise([*sorted(starts), piece.end]):  # a stream after a damaged one can be read
        try:
            for _, block in dump.blocks(start, end):
                room.take(len(block))
                found[-1] += block
        except DamagedError as error:
            if not task.options.keep_going:
                raise
            damage = damage or error
            found.append(bytearray())
    return list(map(bytes, found)), damage
