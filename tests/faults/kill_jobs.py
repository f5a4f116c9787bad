"""Every kind of long job, small enough to be killed hundreds of times, and a way to do so.

A job runs in a child that is forked from a server which has everything imported. It is killed at its n-th `os.fsync`,
or when it has used so many seconds of the processor.
"""

import json
import os
import random
import shutil
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import forked
import numpy as np

TESTS = Path(__file__).parents[1]
for place in ("", "bulk", "linking", "probing", "bert", "wikipedia"):
    if str(TESTS / place) not in sys.path:
        sys.path.append(str(TESTS / place))

# What two runs of the same command do not have in common.
NOT_COMPARED = {"seconds", "seconds of the last start", "made", "command", "machine", "padding", "out", "store"}


class Job(NamedTuple):
    """A command, what it is given, and where its result is; everything is below the folder of one try."""

    prepare: Callable[[Path], None]  # writes what is read into a folder
    run: Callable[[Path, Path], None]  # reads there and works in the folder of one try
    result: str  # in the folder of one try
    whole: str | None = None  # the file in the result that says that it is there, of jobs that do not do things twice


def ebert(*arguments: object) -> None:
    """Run a command as the shell does."""
    from ebert import cli

    sys.argv = ["ebert", *map(str, arguments)]
    cli.main()


def _lines(path: Path, *rows: Any) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")


def _dump(given: Path) -> None:
    from dump_files import many_pages, write_as

    write_as("pbzip2", given, many_pages(60))


def _build(given: Path, folder: Path) -> None:
    from ebert.wikipedia import dump

    dump.PIECE, dump.RANGE = 3000, 1500
    ebert("corpus", "build", given / "pbzip2.xml.bz2", "--out", folder / "corpus", "--threads", 1)


def _corpus(given: Path) -> None:
    import corpora

    corpora.write_corpus(given / "corpus", corpora.pages(6), redirects=[("Gallia", "France")])


def _train(given: Path, folder: Path) -> None:
    ebert("vectors", "train", given / "corpus", "--out", folder / "store", "--dim", 8, "--epochs", 3, "--threads", 1,
          "--min-word-count", 1, "--checkpoint", 0.05, "--resume")  # fmt: skip


def _store(given: Path) -> None:
    import link_world

    link_world.write_store(given / "store").close()
    (given / "table").write_text("Adams\t10\t1,1.0,John_Adams\nLondon\t9\t2,1.0,London\n", "utf-8")


def _candidates(given: Path, folder: Path) -> None:
    ebert("link", "candidates", given / "store", "--table", given / "table", "--out", folder / "new")


def _text(given: Path) -> None:
    numbers = np.random.default_rng(0)
    rows = [f"{name}\t{' '.join(f'{x:.4f}' for x in numbers.normal(size=8))}\n" for name in
            [*(f"word{i}" for i in range(300)), *(f"ENTITY/Title {i}" for i in range(300))]]  # fmt: skip
    (given / "vectors.txt").write_text("".join(rows), "utf-8")


def _import(given: Path, folder: Path) -> None:
    ebert("vectors", "import", given / "vectors.txt", "--out", folder / "store")


def _knowledge(given: Path) -> None:
    from ebert import Vectors

    words = ["city", "Danish", "harbour", "song", "band", "the"]
    numbers = np.random.default_rng(3)
    Vectors.from_arrays(
        words=words, word_vectors=numbers.normal(size=(6, 8)), word_counts=[9, 8, 7, 6, 5, 900],
        word_outputs=numbers.normal(size=(6, 8)), entities=["Aarhus"], entity_vectors=np.ones((1, 8)),
        path=given / "store",
    ).close()  # fmt: skip
    _lines(given / "kb.jsonl", *({"title": f"T{i}", "description": words[i % 5]} for i in range(3000)))


def _add(given: Path, folder: Path) -> None:
    if not (folder / "store").exists():
        shutil.copytree(given / "store", folder / "half")
        (folder / "half").rename(folder / "store")
    ebert("vectors", "add-many", folder / "store", given / "kb.jsonl", "--replace")


def _model(given: Path) -> None:
    import bulk_models

    bulk_models.write_model(given)
    texts = ["the capital of [[France]] is Paris", "Rome is a city in [[Italy]]", "NATO and Paris", "a city"]
    _lines(given / "texts.jsonl", *({"id": str(i), "text": texts[i % 4]} for i in range(12)))
    _lines(given / "questions.jsonl", *(
        {"text": "the capital of [[France]] is [MASK].", "answers": ["Paris"], "relation": f"r{i % 2}"}
        for i in range(12)
    ))  # fmt: skip
    labelled = []
    for one, other, (label, word) in product(("Paris", "Rome"), ("France", "Italy"), (("P1", "in"), ("P2", "of"))):
        text = f"{one} {word} {other} ."
        places = [(text.index(name), text.index(name) + len(name)) for name in (one, other)]
        ents = [[f"Q{number}", *place, 0.5] for number, place in enumerate(places, 1)]
        labelled.append({"label": label, "text": text, "ents": ents})
    for name in ("train", "dev", "test"):
        (given / f"{name}.json").write_text(json.dumps(labelled), "utf-8")


def _bulk(job: Callable[[Path], Any], file: str) -> Callable[[Path, Path], None]:
    def run(given: Path, folder: Path) -> None:
        from bulk_jobs import Here

        from ebert.bulk.options import ReadOptions
        from ebert.bulk.run import run as run_job

        run_job(job(given), [given / file], folder / "out", engine=Here(), read=ReadOptions(shard_rows=4))

    return run


def _encode_job(given: Path) -> Any:
    from ebert.bulk.encode import EncodeJob

    return EncodeJob(model=str(given / "model"))


def _probe_job(given: Path) -> Any:
    from ebert.bulk.probe import ProbeJob

    return ProbeJob(model=str(given / "model"), modes=("bert", "concat"))


def _link_job(given: Path) -> Any:
    from ebert.bulk.link import LinkJob

    return LinkJob(linker=str(given / "model"))


def _linker(given: Path) -> None:
    import bulk_models
    import link_world

    bulk_models.write_linker(given)
    _lines(given / "texts.jsonl", *({"id": str(i), "text": link_world.TEXT} for i in range(8)))
    mentions = [{"start": 0, "end": 5, "entity": "Tony Adams (footballer)"},
                {"start": 47, "end": 54, "entity": "England"}]  # fmt: skip
    _lines(given / "gold.jsonl",
           *({"id": str(i), "text": link_world.TEXT, "mentions": mentions} for i in range(4)))  # fmt: skip


def _link_train(given: Path, folder: Path) -> None:
    ebert("link", "train", given / "gold.jsonl", "--dev", given / "gold.jsonl", "--model", given / "model", "--epochs",
          2, "--chunk", 64, "--checkpoint-steps", 1, "--out", folder / "run")  # fmt: skip


def _relations_train(given: Path, folder: Path) -> None:
    ebert("relations", "train", given, "--model", given / "model", "--mode", "concat", "--epochs", 2, "--batch", 4,
          "--checkpoint-steps", 1, "--out", folder / "run")  # fmt: skip


def _lama(given: Path) -> None:
    import bulk_models
    from small_lama import write_lama

    bulk_models.write_model(given)
    write_lama(given / "lama")


def _probe_lama(given: Path, folder: Path) -> None:
    ebert("probe", "lama", given / "lama", "--model", given / "model", "--filter", "all,string-match", "--out",
          folder / "run")  # fmt: skip


def _align(given: Path, folder: Path) -> None:
    ebert("align", given / "store", "--bert", given / "bert", "--include-vectors", "--out", folder / "aligned")


def _jar(given: Path) -> None:
    from bundle_writer import JAR, write_jar

    (given / "work").mkdir()
    write_jar(given / JAR, given / "work")


def _bert_get(given: Path, folder: Path) -> None:
    from bundle_writer import JAR

    from ebert._io.files import sha256
    from ebert.bert.maven import ARTIFACTS

    # This process takes the small jar for the real one, which has 400 MB.
    name = "bert-base-cased"
    ARTIFACTS[name] = replace(ARTIFACTS[name], sha256=sha256(given / JAR))
    jar = folder / "home" / "maven" / JAR  # where jars fetched by hand are looked for
    jar.parent.mkdir(parents=True, exist_ok=True)
    if not jar.exists():
        shutil.copyfile(given / JAR, jar.with_name("half"))
        jar.with_name("half").rename(jar)
    os.environ |= {"EBERT_HOME": str(folder / "home"), "PATH": ""}
    ebert("bert", "get", name, "--source", "maven")


JOBS = {
    "corpus build": Job(_dump, _build, "corpus", "corpus.json"),
    "vectors train": Job(_corpus, _train, "store", "store.json"),
    "vectors import": Job(_text, _import, "store", "store.json"),
    "vectors add-many": Job(_knowledge, _add, "store"),
    "link candidates": Job(_store, _candidates, "new", "store.json"),
    "align": Job(_model, _align, "aligned", "ebert.json"),
    "bert get": Job(_jar, _bert_get, "home/bert/bert-base-cased"),
    "encode corpus": Job(_model, _bulk(_encode_job, "texts.jsonl"), "out"),
    "link corpus": Job(_linker, _bulk(_link_job, "texts.jsonl"), "out"),
    "probe corpus": Job(_model, _bulk(_probe_job, "questions.jsonl"), "out"),
    "probe lama": Job(_lama, _probe_lama, "run"),
    "link train": Job(_linker, _link_train, "run"),
    "relations train": Job(_model, _relations_train, "run"),
}


class Ended(NamedTuple):
    """How a run of a job ended."""

    code: int  # negative: the signal that killed it
    said: str
    synced: list[float]  # seconds of the processor until each fsync
    used: float  # seconds of the processor


def run(name: str, given: Path, folder: Path, *, fsync: int | None = None, moment: float | None = None) -> Ended:
    """Run a job in a process of its own, which is killed at its n-th fsync (from 1) or at some moment."""
    folder.mkdir(exist_ok=True)
    log = folder.with_name(f"{folder.name}.log")
    log.unlink(missing_ok=True)
    process = forked.start(_child, name, given, folder, log, fsync, moment)
    process.join()
    code = process.exitcode
    process.close()
    text = log.read_text("utf-8", "replace") if log.exists() else ""
    marks = [float(line.split()[1]) for line in text.splitlines() if line.startswith("@@")]
    said = "\n".join(line for line in text.splitlines() if not line.startswith("@@"))
    return Ended(code, said, marks[:-1], marks[-1] if marks else 0.0)


def _child(name: str, given: Path, folder: Path, log: Path, fsync: int | None, moment: float | None) -> None:
    """Run a job and die on the way."""
    out = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for stream in (1, 2):
        os.dup2(out, stream)
    import torch

    torch.set_num_threads(1)
    from ebert import EbertError

    began, done, real = time.process_time(), 0, os.fsync

    def mark() -> None:
        os.write(out, f"@@ {time.process_time() - began:.3f}\n".encode())

    def counting(file: Any) -> None:
        nonlocal done
        done += 1
        if done == fsync:
            os.kill(os.getpid(), signal.SIGKILL)
        mark()
        real(file)

    os.fsync = counting
    random.seed(0)
    if moment is not None:
        signal.setitimer(signal.ITIMER_PROF, moment)  # nobody handles its signal, which kills
    code: Any = 0
    try:
        JOBS[name].run(given, folder)
    except SystemExit as stop:
        code = stop.code
    except EbertError as error:  # of a job that is not called by its command
        os.write(out, f"{error}\n".encode())
        code = 2
    signal.setitimer(signal.ITIMER_PROF, 0)
    mark()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code or 0)


def contents(folder: Path) -> dict[str, Any]:
    """Read all files that are not hidden, without what no two runs have in common."""
    found: dict[str, Any] = {}
    for file in sorted(folder.rglob("*")):
        name = file.relative_to(folder)
        if file.is_file() and not any(part.startswith(".") for part in name.parts):
            data = file.read_bytes()
            if file.suffix == ".json":
                found[str(name)] = _same(json.loads(data))
            else:  # a log of additions also has what was replaced
                found[str(name)] = _additions(file.parent) if file.match("added-*.log") else data
    return found


def _additions(store: Path) -> list[Any]:
    from ebert import Vectors

    with Vectors.open(store) as vectors:
        return [*((title, vector.tolist()) for title, vector in vectors.added()), *vectors.added_names()]


def _same(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _same(one) for key, one in value.items() if key not in NOT_COMPARED}
    return [_same(one) for one in value] if isinstance(value, list) else value
