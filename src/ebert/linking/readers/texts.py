"""What to link, from wherever it comes: texts, files, folders, JSONL, standard input."""

import io
import json
from collections.abc import Iterable, Iterator
from pathlib import Path

from ebert._io import compressed, files, records
from ebert.errors import EbertError
from ebert.linking.document import Document
from ebert.linking.readers import jsonl
from ebert.linking.readers.layouts import is_labelled, parse
from ebert.text import titles

LABELLED = (".tsv", ".ttl", ".nif")  # in a folder, if they are
HEAD = 4096  # bytes that tell whether a file is text


def from_paths(paths: Iterable[str | Path], *, lines: bool = False, layout: str | None = None) -> Iterator[Document]:
    """Yield the documents of files and of the files in folders. A text file is a document, or every line of it is."""
    for path in map(Path, paths):
        if path.is_dir():
            found = [file for file in files.visible(path) if _is_meant(file)]
            if not found:
                raise EbertError(f"{path} has no text files (.txt, .md, .jsonl) in it")
            for file in found:
                yield from from_text(records.read_text(file), str(file.relative_to(path)), lines=lines, layout=layout)
        elif path.exists():
            yield from from_text(records.read_text(path), path.name, lines=lines, layout=layout)
        else:
            raise EbertError(f"there is no file {path}; a text itself is given with --text")


def from_text(text: str, name: str, *, lines: bool = False, layout: str | None = None) -> Iterator[Document]:
    """Yield the documents of labelled data; else of JSONL if that is what it is, the lines of the text, or all of it.

    What is called .jsonl is JSONL, or broken; what is not may be a text that begins with a bracket.
    """
    if layout is not None or is_labelled(text):
        for found in parse(text, name, layout).documents:
            yield Document(found.id, found.text, sentences=found.sentences)
        return
    first = next((line for line in io.StringIO(text) if line.strip()), "")
    if _kind(Path(name)) in records.JSON_LINES or (first.lstrip().startswith("{") and _is_json(first)):
        given = [(place, line) for place, line in enumerate(io.StringIO(text), 1) if line.strip()]
        for number, (place, line) in enumerate(given, 1):
            yield _from_row(line, f"{name}, line {place}", number)
    elif lines:
        for number, line in enumerate(text.split("\n"), 1):
            if line.strip():
                yield Document(titles.as_text(f"{name}:{number}"), line.rstrip("\r"))
    else:
        yield Document(titles.as_text(name), text)


def _from_row(line: str, where: str, number: int) -> Document:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise EbertError(f"{where}: not JSON ({error})") from None
    text = row.get("text") if isinstance(row, dict) else row
    if not isinstance(text, str):
        raise EbertError(f"{where}: there is no 'text'")
    return Document(titles.as_text(str(jsonl.id_of(row, number) if isinstance(row, dict) else number)), text)


def _is_json(line: str) -> bool:
    try:
        records.parse_object(line)
    except EbertError:
        return False
    return True


def _is_meant(path: Path) -> bool:
    """Return whether a file of a folder is to be linked."""
    kind = _kind(path)
    return (kind in (*records.JSON_LINES, *records.PLAIN_TEXT) and not _is_binary(path)) or (
        kind in LABELLED and is_labelled(records.read_text(path))
    )


def _is_binary(path: Path) -> bool:
    """Return whether a file without an extension is no text: a program, say. Others are read, and refused."""
    if path.suffix:
        return False
    with path.open("rb") as file:
        return b"\0" in file.read(HEAD)


def _kind(path: Path) -> str:
    return Path(path.stem).suffix if path.suffix in compressed.UNPACK else path.suffix
