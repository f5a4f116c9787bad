"""Builds that are killed, stopped, or run out of disk, go on and end with the same corpus. Damaged dumps."""

import bz2
import contextlib
import gzip
import itertools
import json
import os
import signal
import subprocess
import sys

import pytest
from dump_files import head, many_pages, multistream, page_xml, write_as, xml

from ebert._io.staging import is_temporary
from ebert.errors import EbertError
from ebert.wikipedia import build, dump
from ebert.wikipedia.build import build_corpus
from ebert.wikipedia.corpus import Corpus

# Builds a corpus and, when a stage has reported some times, sends itself a signal.
SCRIPT = """
import contextlib, os, resource, sys
from ebert.wikipedia import dump
dump.PIECE, dump.RANGE = 3000, 1500
from ebert.wikipedia.build import build_corpus
path, out, threads, stage, times, number, limit = sys.argv[1:]
if int(limit):
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(limit), resource.RLIM_INFINITY))
left = int(times)
@contextlib.contextmanager
def watch(what, *, total=None, unit=""):
    def advance(amount):
        global left
        left -= what == stage
        if left == 0:
            os.kill(os.getpid(), int(number))
    yield advance
try:
    build_corpus([path], out, threads=int(threads), watch=watch)
except KeyboardInterrupt:
    sys.exit("interrupted")
except OSError as error:
    sys.exit(f"OSError: {error}")
"""


def run(path, out, *, threads=1, stage="", times=0, number=0, limit=0):
    command = [sys.executable, "-c", SCRIPT, path, out, threads, stage, times, int(number), limit]
    return subprocess.run([*map(str, command)], capture_output=True, text=True)


@pytest.fixture
def small_pieces(monkeypatch):
    monkeypatch.setattr(dump, "PIECE", 3000)
    monkeypatch.setattr(dump, "RANGE", 1500)


def watched(monkeypatch):
    """Return a list that the names of the parts are put into that are made in this process from now on."""
    names, make = [], build.make_part
    monkeypatch.setattr(build, "make_part", lambda task: (names.append(task.path.name), make(task))[1])
    return names


def contents(folder):
    files = {path.name: path.read_bytes() for path in folder.iterdir()}
    info = json.loads(files.pop("corpus.json"))
    return files | {key: value for key, value in info.items() if key != "seconds"}


def left_over(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize(
    ("number", "threads", "stage", "times"),
    [(signal.SIGKILL, 2, "read", 7), (signal.SIGKILL, 1, "merge", 20), (signal.SIGINT, 2, "read", 7)],
)
def test_a_build_that_was_stopped_goes_on(tmp_path, small_pieces, monkeypatch, number, threads, stage, times):
    path = write_as("pbzip2", tmp_path, many_pages(100))
    done = run(path, tmp_path / "corpus", threads=threads, stage=stage, times=times, number=number)
    assert done.returncode == (-9 if number == signal.SIGKILL else 1)
    assert done.stderr.strip() == ("" if number == signal.SIGKILL else "interrupted")
    with pytest.raises(EbertError, match="there is no corpus"):
        Corpus.open(tmp_path / "corpus")
    assert [name for name in left_over(tmp_path) if not is_temporary(name)] == ["corpus.parts", "pbzip2.xml.bz2"]
    kept = {part.name for part in (tmp_path / "corpus.parts").glob("*.npz")}
    assert len(kept) >= times if stage == "read" else kept
    made = watched(monkeypatch)
    with monkeypatch.context() as patched:
        if stage != "read":
            patched.delattr(build, "pieces")  # the dump is not even read again
        build_corpus([path], tmp_path / "corpus", threads=1)
    assert not kept & set(made)
    if stage != "read":
        assert made == []
    assert left_over(tmp_path) == ["corpus", "pbzip2.xml.bz2"]
    build_corpus([path], tmp_path / "fresh", threads=1)
    assert contents(tmp_path / "corpus") == contents(tmp_path / "fresh")


@pytest.mark.parametrize(("limit", "threads"), [(10, 1), (3000, 2), (20_000, 1)])
def test_a_full_disk_is_named_and_what_was_made_is_kept(tmp_path, small_pieces, monkeypatch, limit, threads):
    pages = many_pages(300)
    path = write_as("multistream", tmp_path, pages)
    done = run(path, tmp_path / "corpus", threads=threads, limit=limit)
    assert done.returncode == 1
    assert done.stderr.startswith("OSError: [Errno 27] File too large")
    assert "run the same command again" in done.stderr
    assert str(tmp_path / "corpus") in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "corpus").exists()
    kept = set((tmp_path / "corpus.parts").glob("*.npz"))
    assert bool(kept) == (limit > 10_000)
    made = watched(monkeypatch)
    build_corpus([path], tmp_path / "corpus", threads=1)
    assert len(made) == len(set(made))
    assert not {part.name for part in kept} & set(made)
    build_corpus([path], tmp_path / "fresh", threads=1)
    assert contents(tmp_path / "corpus") == contents(tmp_path / "fresh")
    assert left_over(tmp_path) == ["corpus", "fresh", "multistream.xml.bz2"]


def test_an_old_corpus_stays_until_the_new_one_is_there(tmp_path, small_pieces):
    path = write_as("bz2", tmp_path, many_pages(60))
    other = tmp_path / "other.xml"
    other.write_bytes(xml(many_pages(5)))
    build_corpus([other], tmp_path / "corpus", threads=1)
    before = contents(tmp_path / "corpus")
    with pytest.raises(EbertError, match="exists"):
        build_corpus([path], tmp_path / "corpus", threads=1)

    @contextlib.contextmanager
    def stop(what, *, total=None, unit=""):
        if what == "count mentions":
            raise KeyboardInterrupt
        yield lambda amount: None

    with pytest.raises(KeyboardInterrupt):
        build_corpus([path], tmp_path / "corpus", threads=1, overwrite=True, watch=stop)
    assert contents(tmp_path / "corpus") == before
    assert build_corpus([path], tmp_path / "corpus", threads=1, overwrite=True).info.pages == 60
    assert left_over(tmp_path) == ["bz2.xml.bz2", "corpus", "other.xml"]


def stopped(path, out, **options):
    """Leave a build of which the parts are made."""

    @contextlib.contextmanager
    def stop(what, *, total=None, unit=""):
        if what == "merge":
            raise KeyboardInterrupt
        yield lambda amount: None

    with pytest.raises(KeyboardInterrupt):
        build_corpus([path], out, threads=1, watch=stop, **options)


@pytest.mark.parametrize(
    ("options", "named"), [({"lowercase": True}, "lowercase"), ({"namespaces": "0,1"}, "namespaces"), ({}, "dumps")]
)
def test_parts_of_another_build_are_not_used(tmp_path, monkeypatch, options, named):
    path = write_as("xml", tmp_path, many_pages(20))
    stopped(path, tmp_path / "corpus")
    if not options:
        path = write_as("bz2", tmp_path, many_pages(20))
    with pytest.raises(EbertError, match=f"{named} was .*--overwrite"):
        build_corpus([path], tmp_path / "corpus", threads=1, **options)
    made = watched(monkeypatch)
    build_corpus([path], tmp_path / "corpus", threads=1, overwrite=True, **options)
    assert made
    assert not (tmp_path / "corpus.parts").exists()


def test_a_dump_that_changed_is_another_dump(tmp_path):
    path = write_as("xml", tmp_path, many_pages(20))
    stopped(path, tmp_path / "corpus")
    os.utime(path, ns=(1, 1))
    with pytest.raises(EbertError, match="dumps was"):
        build_corpus([path], tmp_path / "corpus", threads=1)


def test_a_folder_of_something_else_is_not_touched(tmp_path):
    path = write_as("xml", tmp_path, many_pages(5))
    (tmp_path / "corpus.parts").mkdir()
    (tmp_path / "corpus.parts" / "thesis.txt").write_text("mine")
    with pytest.raises(EbertError, match="contains something else"):
        build_corpus([path], tmp_path / "corpus", threads=1, overwrite=True)
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "thesis.txt").write_text("mine")
    with pytest.raises(EbertError, match=r"no corpus\.json"):
        build_corpus([path], tmp_path / "thesis", threads=1, overwrite=True)


def test_two_builds_at_once(tmp_path):
    path = write_as("xml", tmp_path, many_pages(5))

    @contextlib.contextmanager
    def second(what, *, total=None, unit=""):
        with pytest.raises(EbertError, match="another process works on"):
            build_corpus([path], tmp_path / "corpus", threads=1)
        yield lambda amount: None

    assert build_corpus([path], tmp_path / "corpus", threads=1, watch=second).info.pages == 5


def test_a_damaged_part_is_named(tmp_path):
    path = write_as("xml", tmp_path, many_pages(20))
    stopped(path, tmp_path / "corpus")
    part = next((tmp_path / "corpus.parts").glob("*part*.npz"))
    part.write_bytes(part.read_bytes()[:500])
    with pytest.raises(EbertError, match=f"{part.name} is damaged .*remove it"):
        build_corpus([path], tmp_path / "corpus", threads=1)
    part.unlink()
    assert build_corpus([path], tmp_path / "corpus", threads=1).info.pages == 20


# Damaged dumps.


def titles(corpus):
    return [corpus.entities[number] for number in corpus.page_entity]


@pytest.mark.parametrize(
    ("name", "pack", "threads"), [("a.xml.bz2", lambda x: bz2.compress(x, 1), 1), ("a.xml.gz", gzip.compress, 2)]
)
def test_a_truncated_file_stops_and_goes_on_with_what_was_read(tmp_path, monkeypatch, name, pack, threads):
    monkeypatch.setattr(dump, "PIECE", 100_000)
    pages = many_pages(3000)
    packed = pack(xml(pages))
    path = tmp_path / name
    path.write_bytes(packed[: len(packed) * 2 // 3])
    with pytest.raises(EbertError) as caught:
        build_corpus([path], tmp_path / "corpus", threads=threads)
    size = path.stat().st_size
    assert f"{path} is damaged at about byte {size:,} of {size:,} (it ends too early); " in str(caught.value)
    assert "pages were read and are kept" in str(caught.value)
    assert "--keep-going" in str(caught.value)
    read = int(str(caught.value).split("; ")[1].split()[0].replace(",", ""))
    assert 0 < read < 3000
    parts = len(list((tmp_path / "corpus.parts").glob("*.npz")))
    assert parts > 3
    made = watched(monkeypatch)
    corpus = build_corpus([path], tmp_path / "corpus", threads=1, keep_going=True)
    assert len(made) == 1  # the last piece only
    assert titles(corpus) == [page.title for page in pages[: len(titles(corpus))]]
    assert read <= len(titles(corpus)) < 3000
    [count, examples] = corpus.info.skipped["damaged place in a dump"]
    assert (count, examples) == (1, [f"{name}, byte {size:,}: it ends too early"])
    assert corpus.info.skipped["page that has no end"][0] == 1


def test_a_corrupt_stream_among_many(tmp_path, small_pieces, monkeypatch):
    pages = many_pages(100)
    data = bytearray(multistream(pages, 10))
    starts = dump.streams_in(bytes(data))
    data[starts[5] + 300] ^= 0xFF  # in the fifth group of ten: the first stream is the head
    path = tmp_path / "a.xml.bz2"
    path.write_bytes(data)
    with pytest.raises(EbertError, match=r"damaged at about byte .*; \d+ pages were read and are kept"):
        build_corpus([path], tmp_path / "corpus", threads=1)
    kept = {part.name for part in (tmp_path / "corpus.parts").glob("*.npz")}
    made = watched(monkeypatch)
    corpus = build_corpus([path], tmp_path / "corpus", threads=1, keep_going=True)
    assert not kept & set(made)
    lost = {page.title for page in pages} - set(titles(corpus))
    assert lost == {f"Title {number}" for number in range(40, 50)}
    assert corpus.info.skipped["damaged place in a dump"][0] == 1


def test_parts_that_were_made_by_keeping_going_do_not_hide_the_damage(tmp_path, small_pieces):
    data = bytearray(multistream(many_pages(100), 10))
    data[dump.streams_in(bytes(data))[5] + 300] ^= 0xFF
    path = tmp_path / "a.xml.bz2"
    path.write_bytes(data)
    stopped(path, tmp_path / "corpus", keep_going=True)
    with pytest.raises(EbertError, match="is damaged at about byte"):
        build_corpus([path], tmp_path / "corpus", threads=1)
    assert len(titles(build_corpus([path], tmp_path / "corpus", threads=1, keep_going=True))) == 90


def test_fragments_on_the_two_sides_of_a_lost_stream_make_no_page(tmp_path, monkeypatch):
    """Three streams, the second lost: one page begins in the first, another ends in the third."""
    monkeypatch.setattr(dump, "RANGE", 1)
    first, second, third, last = many_pages(4)
    texts = [head() + page_xml(first), page_xml(second), page_xml(third), page_xml(last) + "</mediawiki>"]
    whole = "".join(texts).encode()
    cuts = [0, len(texts[0]) + 200, len(texts[0]) + len(texts[1]) + 100, len(whole)]
    packed = [bz2.compress(whole[start:end]) for start, end in itertools.pairwise(cuts)]
    packed[1] = packed[1][:50] + bytes([packed[1][50] ^ 0xFF]) + packed[1][51:]
    for ranges in (1, 10_000):  # every stream a piece, and all streams one piece
        monkeypatch.setattr(dump, "RANGE", ranges)
        path = tmp_path / f"{ranges}.xml.bz2"
        path.write_bytes(b"".join(packed))
        corpus = build_corpus([path], tmp_path / f"corpus-{ranges}", threads=1, keep_going=True)
        assert titles(corpus) == [first.title, last.title]
        assert corpus.info.skipped["page that has no end"][0] == 1
