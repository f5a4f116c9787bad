"""Read what to link: texts, files, folders, JSONL, standard input."""

import io
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
    """Yield the documents of files and folders. A text file is one document, or each of its lines is one."""
    for path in map(Path, paths):
        if not path.exists():
            raise EbertError(f"there is no file {path}; a text itself is given with --text")
        found = [file for file in files.visible(path) if _is_meant(file)] if path.is_dir() else [path]
        if not found:
            raise EbertError(f"{path} has no text files (.txt, .md, .jsonl) in it")
        for file in found:
            name = str(file.relative_to(path)) if path.is_dir() else path.name
            yield from from_text(records.read_text(file), name, lines=lines, layout=layout)


def from_text(text: str, name: str, *, lines: bool = False, layout: str | None = None) -> Iterator[Document]:
    """Yield the documents of labelled data; otherwise of JSONL, of the lines of a text, or of the whole text.

    A file named .jsonl is JSONL, or broken; any other file may be a text that begins with a bracket.
    """
    if layout is not None or is_labelled(text):
        for found in parse(text, name, layout).documents:
            yield Document(found.id, found.text, sentences=found.sentences)
    elif _kind(Path(name)) in records.JSON_LINES or _is_json(text):
        for number, (where, row) in enumerate(jsonl.rows(text, name, "jsonl"), 1):
            if not isinstance(row.get("text"), str):
                raise EbertError(f"{where}: there is no 'text'")
            yield Document(titles.as_text(str(jsonl.id_of(row, number))), row["text"])
    elif lines:
        for number, line in enumerate(text.split("\n"), 1):
            if line.strip():
                yield Document(titles.as_text(f"{name}:{number}"), line.rstrip("\r"))
    else:
        yield Document(titles.as_text(name), text)


def _is_json(text: str) -> bool:
    try:
        records.parse_object(next((line for line in io.StringIO(text) if line.strip()), ""))
    except EbertError:
        return False
    return True


def _is_meant(path: Path) -> bool:
    """Return whether to link a file of a folder; one without an ending may be a program, for example."""
    kind = _kind(path)
    if kind in LABELLED:
        return is_labelled(records.read_text(path))
    if path.suffix:
        return kind in (*records.JSON_LINES, *records.PLAIN_TEXT)
    with path.open("rb") as file:
        return b"\0" not in file.read(HEAD)


def _kind(path: Path) -> str:
    return Path(path.stem).suffix if path.suffix in compressed.UNPACK else path.suffix
