"""Reading a file of entity-linking data: which layout it has, and who reads that."""

import io
from collections.abc import Callable, Iterable
from pathlib import Path

from ebert._io import compressed
from ebert.errors import EbertError
from ebert.linking.readers import aida, jsonl, kilt, nif
from ebert.linking.readers.labelled import Reading

_JSON: dict[str, Callable[[Iterable[jsonl.Row], Reading], None]] = {
    "jsonl": jsonl.read_own,
    "zelda": jsonl.read_zelda,
    "kilt": kilt.read_kilt,
    "elevant": jsonl.read_elevant,
}
_TEXT: dict[str, Callable[[Iterable[str], str, Reading], None]] = {
    "aida": aida.read_yago,
    "knowbert": aida.read_knowbert,
    "nif": nif.read_nif,
}
LAYOUTS = (*_JSON, *_TEXT)


def read(path: str | Path, layout: str | None = None) -> Reading:
    """Read a file of any of the layouts, compressed or not; the layout is recognised if it is not named."""
    file = Path(path)
    return parse(contents(file), file.name, layout)


def parse(text: str, name: str, layout: str | None = None) -> Reading:
    """Read data of any of the layouts; `name` is for messages."""
    layout = layout or recognise(text, name)
    if layout not in LAYOUTS:
        raise EbertError(f"{layout!r} is no layout of entity-linking data; choose one of {', '.join(LAYOUTS)}")
    reading = Reading(layout)
    lines = io.StringIO(text)  # at line ends only: other characters that end lines are in texts
    if layout in _JSON:
        _JSON[layout](jsonl.rows(lines, name, layout), reading)
    else:
        _TEXT[layout](lines, name, reading)
    if not reading.documents:
        raise EbertError(f"{name} has no documents (read as layout {layout!r}; --layout names another)")
    return reading


def recognise(text: str, name: str = "the data") -> str:
    """Find out the layout of data, by what it begins with."""
    first = next((line.strip() for line in io.StringIO(text) if line.strip()), "")
    if first.startswith("{"):
        return _recognise_json(first, name)
    if first.startswith("-DOCSTART-"):
        return "aida"
    if first.startswith("DOCSTART_"):
        return "knowbert"
    if "nif-core#" in text:
        return "nif"
    raise EbertError(f"{name} has no layout that is known here; name one of {', '.join(LAYOUTS)} (--layout)")


def is_labelled(text: str) -> bool:
    """Tell whether this is data of a layout that cannot be taken for a text to link, or for JSON that has one."""
    first = next((line.strip() for line in io.StringIO(text) if line.strip()), "")
    if first.startswith("{"):
        try:
            row = jsonl.decoded(first)
        except ValueError:
            return False
        return "input" in row and "text" not in row
    return first.startswith(("-DOCSTART-", "DOCSTART_")) or ("nif-core#" in text and _is_turtle(text))


def _is_turtle(text: str) -> bool:
    """Tell whether text begins as Turtle does, but for comments, and not as one about it."""
    lines = (line.strip() for line in io.StringIO(text))
    first = next((line for line in lines if line and not line.startswith("#")), "")
    return first.lower().startswith(("@prefix", "@base", "prefix ", "base ", "<http"))


def _recognise_json(line: str, name: str) -> str:
    try:
        row = jsonl.decoded(line)
    except ValueError as error:
        raise EbertError(f"{name} begins like JSON, a document a line, but line 1 is not ({error})") from None
    if "wikipedia_titles" in row:
        return "zelda"
    if "labels" in row:
        return "elevant"
    if "input" in row:
        return "kilt"
    if "text" in row:
        return "jsonl"
    raise EbertError(f"{name} has JSON, but none with 'text' or 'input'; name one of {', '.join(LAYOUTS)} (--layout)")


def contents(path: Path) -> str:
    """Return the text of a file, unpacked if its name says that it is packed."""
    if path.is_dir():
        raise EbertError(f"{path} is a folder; give a file in it")
    try:
        with compressed.bounded(path) as file:
            data = file.read()
    except FileNotFoundError:
        raise EbertError(f"there is no file {path}") from None
    except compressed.DAMAGED as error:
        if path.suffix not in compressed.UNPACK:
            raise
        raise EbertError(f"{path} cannot be unpacked ({error}); get it again") from None
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise EbertError(f"{path} is not UTF-8 ({error}); convert it") from None
