"""What a job writes: a folder with a manifest, the rows of each shard in a Parquet file, and a list of bad rows.

`manifest.json` says what was done to what: inputs with their fingerprints, options, the model; and, when the job is
complete, what came of it. The same command goes on with a job that was stopped; one with other inputs, options or
another model is refused, as results of two kinds would be mixed.
"""

import json
import re
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ebert import __version__
from ebert._io import files, staging
from ebert._io.staging import is_temporary
from ebert._runs import alone_in, key_of, refuse_other, remove_halves
from ebert.bulk.inputs import MANIFEST
from ebert.bulk.planning import Shard
from ebert.bulk.shard import ATTEMPTS, KEY, ROWS, Report, read_report
from ebert.errors import EbertError

ERRORS, METRICS = "errors.jsonl", "metrics.json"
FORMAT = 1

_SHARD = re.compile(r"\d{6,}\.parquet")


class JobFolder:
    """The folder of a job that is this process's alone."""

    def __init__(self, path: Path, identity: dict[str, Any]) -> None:
        self.path, self.identity, self.key = path, identity, key_of(identity)

    def file(self, shard: Shard) -> Path:
        """Give the place of a shard's rows."""
        return self.path / ROWS / shard.file

    def report(self, shard: Shard) -> Report | None:
        """Give what came of a shard, if it is done."""
        found = read_report(self.file(shard), self.key)
        return found[0] if found else None

    def finish(self, shards: Sequence[Shard], facts: Mapping[str, Any]) -> dict[str, Any]:
        """Put the bad rows together, and write the manifest: what there is, and whether that is all."""
        dropped: Counter[str] = Counter()
        reports: list[dict[str, Any]] = []
        total = Counter(rows=0, errors=0, blank=0)
        with files.replacing(self.path / ERRORS, "w") as errors:
            for shard in shards:
                found = read_report(self.file(shard), self.key)
                if found is None:
                    continue
                report, bad = found
                for one in bad:
                    errors.write(json.dumps(asdict(one), ensure_ascii=False) + "\n")
                dropped.update(report.dropped)
                total.update(rows=report.rows, errors=report.errors, blank=report.blank)
                reports.append({"file": f"{ROWS}/{shard.file}", "rows": report.rows, "errors": report.errors})
        complete = len(reports) == len(shards)
        result = {"complete": complete, **total, "dropped": dict(dropped), **facts, "shards": reports}
        self._write(result)
        staging.sweep(self.path / ROWS)
        if complete:
            shutil.rmtree(self.path / ATTEMPTS, ignore_errors=True)
        return result

    def begin(self) -> None:
        """Write what the job is about, before anything else."""
        self._write({"complete": False})
        (self.path / ROWS).mkdir(exist_ok=True)
        shutil.rmtree(self.path / ATTEMPTS, ignore_errors=True)
        (self.path / ATTEMPTS).mkdir()
        _remove_halves(self.path)
        with files.replacing(self.path / KEY, "w") as file:
            file.write(self.key)

    def _write(self, result: Mapping[str, Any]) -> None:
        head = {"kind": "bulk", "format": FORMAT, "ebert": __version__}
        files.write_json(self.path / MANIFEST, {**head, **result, "identity": self.identity})


@contextmanager
def opened(folder: Path, identity: dict[str, Any], *, overwrite: bool = False) -> Iterator[JobFolder]:
    """Begin a job or go on with it, alone."""
    folder = folder.absolute()
    with alone_in(folder, marker=MANIFEST, ours=_is_ours) as known:
        if known:
            _compare(folder, identity, overwrite=overwrite)
        yield JobFolder(folder, identity)


def _compare(folder: Path, identity: Mapping[str, Any], *, overwrite: bool) -> None:
    """See that the job in a folder is this one, or make room for it."""
    before = files.read_json(folder / MANIFEST, "a job")
    if before.get("kind") != "bulk":
        raise EbertError(f"{folder} holds something else (its {MANIFEST} is not of a job); choose another --out")
    refuse_other(folder, before.get("identity", {}), identity, what="a job", overwrite=overwrite)
    if overwrite:
        shutil.rmtree(folder / ATTEMPTS, ignore_errors=True)
        _remove_halves(folder)
        for shard in _shards(folder):  # and nothing else: people may have put files of their own beside them
            shard.unlink()
        for name in (ERRORS, METRICS, KEY):
            (folder / name).unlink(missing_ok=True)


def _shards(folder: Path) -> list[Path]:
    rows = (folder / ROWS).iterdir() if (folder / ROWS).is_dir() else ()
    return [file for file in rows if _SHARD.fullmatch(file.name) and file.is_file()]


def _remove_halves(folder: Path) -> None:
    """Remove what killed workers left half written, be it by 0.1."""
    remove_halves(folder, ERRORS, METRICS, KEY, MANIFEST)
    if (folder / ROWS).is_dir():
        halves = (file.name.removeprefix(".").rpartition(".")[0] for file in (folder / ROWS).iterdir())
        remove_halves(folder / ROWS, *(name for name in halves if _SHARD.fullmatch(name)))


def _is_ours(file: Path) -> bool:
    """Whether a file or folder is one that 0.1 wrote before the manifest."""
    if file.name in (ROWS, ATTEMPTS):
        return file.is_dir() and not any(file.iterdir())
    return file.name == KEY or is_temporary(file.name, KEY)
