"""Read LAMA as it was published: T-REx and Google-RE, from a folder or an archive.

The files to read are ``TREx/P*.jsonl`` and ``Google_RE/*_test.jsonl`` at any depth, ``relations.jsonl`` with the
templates of T-REx, and ``common_vocab_cased.txt``. LAMA-UHN in the same layout is read in the same way.
"""

import hashlib
import tarfile
import zipfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import Any

from ebert._io import compressed
from ebert._io.records import objects
from ebert.errors import EbertError
from ebert.probing.questions import Question, Questions, SkippedQuestion, check_template, from_template

GOOGLE_RE = {
    "date_of_birth": "[X] (born [Y]).",
    "place_of_birth": "[X] was born in [Y] .",
    "place_of_death": "[X] died in [Y] .",
}
TEMPLATES = "relations.jsonl"
VOCABULARY = "common_vocab_cased.txt"
FOLDERS = ("TREx", "Google_RE")
_MARKS = {b"\x1f\x8b": ".gz", b"BZh": ".bz2", b"\xfd7zXZ\0": ".xz", b"\x5d\0\0": ".xz"}  # how packed files begin


def read_lama(path: str | Path, *, relations: Iterable[str] | None = None) -> Questions:
    """Read all questions, or those of some relations, in the order of the relations' numbers, Google-RE last."""
    raw = _read(Path(path))
    if not raw.rows:
        raise EbertError(f"{path} is not LAMA: it has no TREx/P*.jsonl and no Google_RE/*_test.jsonl with questions")
    wanted = list(raw.rows) if relations is None else list(dict.fromkeys(relations))
    if unknown := [name for name in wanted if name not in raw.rows]:
        have = ", ".join(sorted(raw.rows, key=_place))
        raise EbertError(f"{path} has no relation {', '.join(unknown)}; it has {have}")
    if not wanted:
        raise EbertError("no relation is named; leave --relations out for all of them")
    read = Questions("lama", vocabulary=raw.vocabulary or None)
    seen: set[str] = set()
    for name in sorted(wanted, key=_place):
        file, rows = raw.files[name], raw.rows[name]
        if not rows:
            read.skipped.append(SkippedQuestion(file, "the file is empty"))
        template = GOOGLE_RE.get(name) or raw.templates.get(name)
        try:
            if template is None:
                raise EbertError(f"there is no template for it in {TEMPLATES}")
            check_template(template)
        except EbertError as error:
            why = f"the relation {name} cannot be asked: {error}"
            read.skipped += [SkippedQuestion(row.where, why) for row in rows]
            continue
        read.hashes[file] = raw.hashes[file]
        for row in rows:
            if isinstance(row, SkippedQuestion):
                read.skipped.append(row)
            elif row.id in seen:
                read.skipped.append(SkippedQuestion(row.where, "its id was there before", row.id))
            else:
                seen.add(row.id)
                text, start = from_template(template, row.subject)
                read.questions.append(replace(row, text=text, start=start))
    read.hashes |= {file: raw.hashes[file] for file in (TEMPLATES, VOCABULARY) if file in raw.hashes}
    read.refuse_none(path)
    return read


@dataclass
class _Raw:
    """The files as they are. Questions have no text yet, as the templates may come last."""

    templates: dict[str, str] = field(default_factory=dict)
    vocabulary: list[str] = field(default_factory=list)
    rows: dict[str, list[Question | SkippedQuestion]] = field(default_factory=dict)  # by relation
    files: dict[str, str] = field(default_factory=dict)  # by relation
    hashes: dict[str, str] = field(default_factory=dict)


def _read(path: Path) -> _Raw:
    raw = _Raw()
    try:
        for name, lines in lama_files(path):
            digest = hashlib.sha256()
            _read_file(raw, path, name, _hashed(lines, digest))
            raw.hashes[f"{name.parent.name}/{name.name}" if is_relation(name) else name.name] = digest.hexdigest()
    except FileNotFoundError:
        raise EbertError(f"{path} does not exist; give LAMA's folder or archive") from None
    except (tarfile.TarError, zipfile.BadZipFile, *compressed.DAMAGED) as error:
        raise EbertError(f"{path} cannot be read ({error}); give LAMA's folder or archive") from None
    return raw


def _read_file(raw: _Raw, path: Path, name: PurePosixPath | Path, lines: Iterable[bytes]) -> None:
    if name.name == TEMPLATES:
        for number, row in objects(lines):
            if isinstance(row, EbertError) or not isinstance(row.get("relation"), str):
                raise EbertError(f"{path}, {name.name}, line {number}: not a relation with a template")
            raw.templates[row["relation"]] = str(row.get("template", ""))
    elif name.name == VOCABULARY:
        for number, line in enumerate(lines, 1):
            try:
                raw.vocabulary.append(line.decode("utf-8").strip())
            except UnicodeDecodeError:
                raise EbertError(f"{path}, {VOCABULARY}, line {number}: not UTF-8; restore the file") from None
        raw.vocabulary = list(filter(None, raw.vocabulary))
    else:
        relation, file = name.stem.removesuffix("_test"), f"{name.parent.name}/{name.name}"
        if relation in raw.rows:
            raise EbertError(f"{path} has the relation {relation} twice ({file}); give one copy of LAMA")
        raw.files[relation] = file
        raw.rows[relation] = [_question(relation, row, f"{file}:{number}") for number, row in objects(lines)]


def is_relation(name: PurePosixPath | Path) -> bool:
    """Return whether a file of LAMA holds the questions of a relation."""
    return name.suffix == ".jsonl" and name.parent.name in FOLDERS


def _is_wanted(name: PurePosixPath | Path) -> bool:
    return is_relation(name) or name.name in (TEMPLATES, VOCABULARY)


def lama_files(path: Path) -> Iterator[tuple[PurePosixPath | Path, Iterable[bytes]]]:
    """Yield the files of a folder or an archive (tar in any packing, or zip), each with its lines.

    An archive is read as a stream. The unpacked bytes are counted, whatever its headers say.
    """
    if path.is_dir():
        for file in sorted(path.rglob("*")):
            if file.is_file() and _is_wanted(file):
                with file.open("rb") as lines:
                    yield file, lines
        return
    room = compressed.Room(path, compressed.limit(path.stat().st_size))
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            for member in archive.infolist():
                if not member.is_dir() and _is_wanted(PurePosixPath(member.filename)):
                    with archive.open(member) as content:
                        yield PurePosixPath(member.filename), room.lines(content)
    else:
        with compressed.bounded(path, _packing(path)) as stream, tarfile.open(fileobj=stream, mode="r|") as archive:
            for entry in archive:
                if entry.isfile() and _is_wanted(PurePosixPath(entry.name)):
                    unpacked = archive.extractfile(entry)
                    assert unpacked is not None  # only what is no file has none
                    yield PurePosixPath(entry.name), room.lines(unpacked)


def _packing(path: Path) -> str:
    """Return the ending that tells how an archive is packed, by its first bytes; an empty one if it is not."""
    with path.open("rb") as file:
        begin = file.read(6)
    return next((ending for mark, ending in _MARKS.items() if begin.startswith(mark)), "")


def _hashed(lines: Iterable[bytes], digest: Any) -> Iterator[bytes]:
    for line in lines:
        digest.update(line)
        yield line


def _question(relation: str, row: dict[str, Any] | EbertError, where: str) -> Question | SkippedQuestion:
    """Return the needed part of a row (the evidences are most of the file), or why it cannot be asked."""
    if isinstance(row, EbertError):  # without the place in the line, so that rows can be counted by their reason
        return SkippedQuestion(where, str(row).partition(" (")[0])
    subject, answer = row.get("sub_label"), row.get("obj_label")
    if not isinstance(subject, str) or not subject.strip():
        return SkippedQuestion(where, "it has no subject (sub_label)")
    if not isinstance(answer, str) or not answer.strip():
        return SkippedQuestion(where, "it has no answer (obj_label)")
    oracle = row.get("sub_uri") or row.get("sub_w")
    name = f"{relation}/{row.get('uuid') or where.rpartition(':')[2]}"
    return Question(name, relation, "", (answer,), subject, oracle=str(oracle) if oracle else None, where=where)


def _place(relation: str) -> tuple[bool, int, str]:
    number = relation[1:]
    return relation in GOOGLE_RE, int(number) if relation[:1] == "P" and number.isdigit() else 0, relation
