"""The folder of parts beside a corpus that is being built: what a build that was stopped goes on with."""

import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import filelock

from ebert import __version__
from ebert._io import files, staging
from ebert._io.staging import is_temporary
from ebert.errors import EbertError
from ebert.wikipedia import dump
from ebert.wikipedia.dump import Dump
from ebert.wikipedia.making import Options

MANIFEST, LOCK, MERGED = "build.json", "lock", "merged"
FORMAT = 1  # of the parts
_OURS = re.compile(rf"{LOCK}|{MERGED}|\d{{3}}-(part|seam)-\d{{6}}\.npz|\d{{3}}-pieces\.json")  # without a manifest


@dataclass(frozen=True, slots=True)
class Workshop:
    """A folder of parts."""

    path: Path

    def part(self, dump: int, number: int, *, seam: bool = False) -> Path:
        """Give the place of a part."""
        return self.path / f"{dump:03d}-{'seam' if seam else 'part'}-{number:06d}.npz"

    def pieces(self, dump: int) -> int | None:
        """Give how many pieces a dump has, if it was cut to its end before."""
        path = self._count(dump)
        return int(files.read_json(path, "a folder of parts")["pieces"]) if path.exists() else None

    def note_pieces(self, dump: int, count: int) -> None:
        """Remember how many pieces a dump has: one whose parts are all there need not be unpacked again."""
        files.write_json(self._count(dump), {"pieces": count})

    def _count(self, dump: int) -> Path:
        return self.path / f"{dump:03d}-pieces.json"

    def parts(self) -> list[Path]:
        """Give the places of the parts that are there."""
        return sorted(self.path.glob("*.npz"))

    def fresh_folder(self) -> Path:
        """Give an empty folder for what is made of the parts."""
        folder = self.path / MERGED
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        return folder

    def remove(self) -> None:
        """Throw the parts away."""
        staging.discard(self.path)


@contextmanager
def workshop(out: Path, dumps: list[Dump], options: Options, *, overwrite: bool) -> Iterator[Workshop]:
    """Open the folder of parts of a corpus, which is nobody else's until the block ends."""
    path = out.absolute().with_name(f"{out.absolute().name}.parts")
    known = not path.is_dir() or (path / MANIFEST).is_file()
    names = () if known else (file.name for file in path.iterdir())
    if not all(_OURS.fullmatch(name) or is_temporary(name, MANIFEST) for name in names):
        raise EbertError(f"{path} is needed for a while but holds something else; move it or choose another --out")
    files.make_parent(path / MANIFEST)
    lock = filelock.FileLock(path / LOCK)
    try:
        lock.acquire(timeout=0)
    except filelock.Timeout:
        raise EbertError(f"another process is building {out}; wait for it or choose another --out") from None
    try:
        staging.sweep(path)
        _claim(path, _manifest(dumps, options), overwrite=overwrite)
        yield Workshop(path)
    finally:
        lock.release()


def _manifest(dumps: list[Dump], options: Options) -> dict[str, Any]:
    """Describe a build: parts of another one are of no use to it."""
    return {
        "dumps": [{"name": file.path.name, "size": file.size, "changed": file.changed} for file in dumps],
        "lowercase": options.lowercase,
        "namespaces": sorted(options.namespaces),
        "version": f"{__version__}, parts {FORMAT}, cut to {dump.PIECE} and {dump.RANGE} bytes",
    }


def _claim(path: Path, manifest: dict[str, Any], *, overwrite: bool) -> None:
    """Make sure that the parts in a folder are of this build."""
    if (path / MANIFEST).exists():
        found = files.read_json(path / MANIFEST, "a folder of parts")
        other = [key for key in manifest if found.get(key) != manifest[key]]
        if not other:
            for left in path.glob(".*"):  # half a part of a worker that was killed, as 0.1 wrote it
                if left.is_file():
                    left.unlink(missing_ok=True)
            return
        if not overwrite:
            raise EbertError(
                f"{path} has parts of a build that was stopped, with other {' and '.join(other)}; finish that build,"
                " or begin anew with --overwrite"
            )
    shutil.rmtree(path / MERGED, ignore_errors=True)
    for left in path.iterdir():
        if left.is_file() and left.name not in (LOCK, MANIFEST):
            left.unlink()
    files.write_json(path / MANIFEST, manifest)
