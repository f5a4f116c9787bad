"""The dictionary of names that comes with Stanford's CoreNLP: fetched from Maven once and kept in EBERT_HOME.

It is `wikidict.tab.gz` of the models for knowledge base population: what the anchor texts of links to the English
Wikipedia meant in about 2011, on the web and in Wikipedia itself. The pom names GPL v3, but the file itself names no
licence. So ebert fetches it on request and never ships it.
"""

import tempfile
import zipfile
import zlib
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ebert._io.files import read_json, recover, replacing_folder, sha256, write_json
from ebert._io.home import home, locked, remove_leftovers
from ebert._io.maven import Jar, fetch_jar, unpack
from ebert._io.progress import say
from ebert.errors import EbertError

NAME = "corenlp"
JAR = Jar(
    "edu.stanford.nlp", "stanford-corenlp", "4.5.7", 227,
    "e51c106bd5ce2094a65a5d9c898b3151b9355b78fd4dbc3a0020551eb00d7e36", "models-english-kbp",
)  # fmt: skip
MEMBER = "edu/stanford/nlp/models/kbp/english/wikidict.tab.gz"
FILE, MANIFEST = "wikidict.tab.gz", "dictionary.json"
LICENCE = (
    "The pom of the artifact says GNU General Public License v3; the file itself names no licence. ebert fetched it on "
    "your request and does not pass it on; a table made with it is yours to answer for."
)


def get_dictionary() -> Path:
    """Return the dictionary in the cache, after fetching it if necessary."""
    folder = home() / "dictionaries" / NAME
    if _problem(folder) is None:
        return folder / FILE
    with locked(folder):
        recover(folder)
        remove_leftovers(folder)
        if problem := _problem(folder):  # and no other process has fetched it in the meantime
            if folder.exists():
                say(f"the dictionary in the cache is fetched again: {problem}")
            _fetch(folder)
    return folder / FILE


def _fetch(folder: Path) -> None:
    try:
        with replacing_folder(folder, overwrite=True) as into:
            with tempfile.TemporaryDirectory(dir=into) as work:
                jar = fetch_jar(JAR, Path(work))
                try:
                    with zipfile.ZipFile(jar) as archive:
                        unpack(archive, {MEMBER: into / FILE}, "unpacking the dictionary")
                except (zipfile.BadZipFile, zlib.error, EOFError, KeyError, NotImplementedError) as error:
                    raise EbertError(f"{jar} is damaged ({error}); remove it and fetch it again") from None
            write_json(into / MANIFEST, _described(into / FILE))
    except EbertError as error:
        raise EbertError(
            f"cannot get the dictionary {NAME!r}: {error}\n  Or give a file of your own: --dictionary FILE"
        ) from None
    say(f"{NAME} is in {folder}; {LICENCE}")


def _described(path: Path) -> dict[str, Any]:
    return {
        "name": NAME, "artifact": JAR.coordinates, "member": MEMBER, "licence": LICENCE,
        "made": datetime.now(UTC).isoformat(timespec="seconds"), "size": path.stat().st_size, "sha256": sha256(path),
    }  # fmt: skip


def _problem(folder: Path) -> str | None:
    """Return what is wrong with the file in the cache; only its size is compared, which costs nothing."""
    path = folder / FILE
    if not path.is_file():
        return f"{path} is missing"
    try:
        manifest = read_json(folder / MANIFEST, "a dictionary in ebert's cache")
    except EbertError as error:
        return str(error)
    size = path.stat().st_size
    if manifest.get("artifact") != JAR.coordinates or size != manifest.get("size"):
        return f"{path} has {size} bytes instead of {manifest.get('size')}, or is of another version"
    return None
