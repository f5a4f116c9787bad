"""Jars from Maven Central: fetched with `mvn` or put into the cache by hand, checked by their hash, and unpacked."""

import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from ebert._io.compressed import limit, too_much
from ebert._io.files import BLOCK, sha256
from ebert._io.home import home
from ebert._io.progress import progress, say
from ebert.errors import EbertError

LINES = 15  # of mvn's output that an error shows


@dataclass(frozen=True)
class Jar:
    """A jar as Maven names it."""

    group: str
    artifact: str
    version: str
    megabytes: int
    sha256: str  # whoever delivers it
    classifier: str = ""

    @property
    def coordinates(self) -> str:
        """Its name for people."""
        return ":".join(filter(None, (self.group, self.artifact, self.version, self.classifier)))

    @property
    def file(self) -> str:
        """Its name as a file."""
        return "-".join(filter(None, (self.artifact, self.version, self.classifier))) + ".jar"

    @property
    def by_hand(self) -> Path:
        """Where to put the jar by hand, without `mvn`."""
        return home() / "maven" / self.file


def fetch_jar(jar: Jar, into: Path) -> Path:
    """Return a jar, checked by its hash: one put into the cache by hand, or one that `mvn` copies `into` a folder."""
    path = jar.by_hand
    if path.is_file():
        say(f"reading {path}")
    else:
        path = _copied(jar, into)
    if (found := sha256(path)) != jar.sha256:
        raise EbertError(
            f"{path} is damaged or not {jar.coordinates}: its SHA-256 is {found} instead of {jar.sha256}; "
            "it is not used: remove it (also from Maven's own cache) and fetch it again"
        )
    return path


def _copied(jar: Jar, into: Path) -> Path:
    mvn, path = shutil.which("mvn"), into / jar.file
    if mvn is None:
        raise EbertError(
            "needs `mvn`, which is not on the PATH: install Maven (Debian and Ubuntu: apt-get install maven), "
            f"or put the jar of {jar.coordinates} at {jar.by_hand}"
        )
    say(f"fetching {jar.coordinates} with mvn ({jar.megabytes} MB unless Maven has it already)")
    asked = ":".join(filter(None, (jar.group, jar.artifact, jar.version, "jar", jar.classifier)))
    command = [
        mvn, "--batch-mode", "--quiet", "-Dstyle.color=never", "dependency:copy",
        f"-Dartifact={asked}", f"-DoutputDirectory={into}",
    ]  # fmt: skip
    # In a folder without a pom.xml, which mvn would otherwise want to understand.
    done = subprocess.run(
        command, cwd=into, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True, errors="replace", check=False,
    )  # fmt: skip
    if done.returncode or not path.is_file():
        tail = "\n".join(f"  {line}" for line in done.stdout.rstrip().splitlines()[-LINES:])
        raise EbertError(
            f"mvn could not fetch {jar.coordinates} (exit code {done.returncode}); its last lines:\n{tail}\n"
            f"  With no network, fetch the jar elsewhere and put it at {jar.by_hand}"
        )
    return path


def unpack(archive: zipfile.ZipFile, targets: dict[str, Path], what: str) -> None:
    """Unpack some members of a jar; zipfile checks their checksums on the way."""
    with progress(what, total=unpacked_size(archive, targets), unit="B") as advance:
        for member, target in targets.items():
            target.parent.mkdir(parents=True, exist_ok=True)
            with archive.open(member) as packed, target.open("wb") as file:
                while block := packed.read(BLOCK):
                    file.write(block)
                    advance(len(block))


def unpacked_size(archive: zipfile.ZipFile, members: Iterable[str]) -> int:
    """Return the size of some members, which limits what is unpacked; raise an error if it is out of proportion."""
    found = [archive.getinfo(member) for member in members]
    size, most = sum(one.file_size for one in found), limit(sum(one.compress_size for one in found), sys.maxsize)
    if size > most:
        raise too_much(f"what is in {archive.filename}", most)
    return size
