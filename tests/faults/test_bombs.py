"""Small input that grows when it is read: in Turtle, in archives, in every kind of compressed file.

Each bomb goes off in a process of its own, whose memory is measured.
"""

import bz2
import gzip
import io
import json
import lzma
import random
import struct
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import growing
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ebert._io.compressed import limit
from ebert.bert.maven import NOTICE, ROOM, artifact_for, unpack
from ebert.errors import EbertError
from ebert.report import relations as classified

sys.path.append(str(Path(__file__).parents[1] / "serve"))
import serve_world

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="memory is measured as Linux counts it")

SMALL = 150  # MiB that a process may grow by
PACK = {".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}
RAISE = "--max-unpacked"
MIB = 1 << 20
ROW = b'{"uuid":"1","sub_label":"a","obj_label":"b"}\n'


def packed(ending: str, unit: bytes, megabytes: int, *, begin: bytes = b"", end: bytes = b"") -> bytes:
    """Something compressed: a beginning, a part that comes again and again, an end. Streams stand one after another."""
    pack = PACK[ending]
    block = unit * (4 * MIB // len(unit))
    return pack(begin) + pack(block) * (megabytes * MIB // len(block)) + pack(end)


def written(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


def refused(function, *arguments, match=RAISE, small=SMALL):
    """See that it is refused in words, in little memory."""
    message, grown = growing.grow(function, *arguments)
    assert match in message, message or "it was read"
    assert grown < small


# Turtle


def names(size):
    """Many short names in one statement."""
    return "<s> <p> " + ",".join(f"<{n:x}>" for n in range(size // 12)) + " ."


def long_base(size):
    return f"@base <http://a/{'b' * (size // 2)}> .\n{names(size)}"


def long_prefix(size):
    return f"@prefix p: <http://a/{'b' * (size // 2)}> .\n" + names(size).replace("<", "p:").replace(">", "")


def growing_base(size):
    return "@base <http://a/> .\n" + "@base <bbbbbbbb> .\n<x> a <y> .\n" * (size // 35)


def growing_prefix(size):
    return "@base <http://a/> .\n" + "@base <bbbbbbbb> .\n@prefix p: <> .\np:x a p:y .\n" * (size // 55)


def same_name_again(size):
    return f"@base <http://a/{'b' * (size // 2)}> .\n" + "@prefix p: <x> .\np:x a p:y .\n" * (size // 60)


def wide_letters(size):
    """Python takes four bytes for each letter of a text that has a 😀."""
    return f"@base <http://a/😀{'b' * (size // 2)}> .\n{names(size)}"


@pytest.mark.parametrize(
    "make", [long_base, long_prefix, growing_base, growing_prefix, same_name_again, wide_letters]
)  # fmt: skip
def test_names_in_turtle_do_not_grow(make, attack):
    for number in attack(f"Turtle bomb: {make.__name__.replace('_', ' ')}", short=2, long=20):
        size = [60_000, 256 * 1024][number] if number < 2 else random.Random(number).randrange(50_000, 256 * 1024)
        message, grown = growing.grow("ebert.linking.readers.turtle:read", make(size))
        attack.check("written out" in message, f"{size:,} bytes: {message or 'it was read'}")
        attack.check(grown < 64, f"{size:,} bytes grow by {grown:,} MiB")


@pytest.mark.parametrize(
    "text",
    ["true." * 50_000, "<a> <b> " + '"a"^^' * 50_000 + '"a" .', "( " + "a.a." * 60_000 + ")"],
    ids=["a file of words", "types of types", "dots"],
)
def test_turtle_is_read_in_time_that_grows_with_its_length(text):
    growing.grow("ebert.linking.readers.turtle:read", text)  # has so much CPU time, and no more


def nif(context: str, phrases: str) -> str:
    space = "http://persistence.uni-leipzig.org/nlp2rdf/ontologies/nif-core#"
    return f"@prefix n: <{space}> .\n{context}{phrases}"


def test_phrases_are_not_copied_out_of_a_long_text():
    text = "word " * 25_000
    end = len(text)
    phrases = "".join(f"<{n}> n:referenceContext <c>;n:beginIndex 0;n:endIndex {end} ." for n in range(100_000 // 60))
    message, grown = growing.grow("ebert.linking.readers.nif:read_asked", nif(f'<c> n:isString "{text}" .\n', phrases))
    assert not message
    assert grown < 64


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    """A service with a tiny model."""
    folder = serve_world.write_model(tmp_path_factory.mktemp("bombs"))
    with serve_world.live(serve_world.tiny(folder)) as service:
        yield service


@pytest.mark.parametrize("make", [long_base, growing_prefix])
def test_the_service_refuses_a_turtle_bomb_and_stays_small(service, make):
    with service.client() as client:
        good = serve_world.nif(serve_world.TEXT)
        assert client.post("/nif", content=good).status_code == 200
        growing.forget_peak()
        before = growing.peak()
        answer = client.post("/nif", content=make(240 * 1024).encode())
        assert answer.status_code == 422
        assert "written out" in answer.json()["error"]
        assert growing.peak() - before < 64 * MIB
        assert client.post("/nif", content=good).status_code == 200


def test_the_service_does_not_write_a_long_name_out_for_each_mention(service):
    asked = serve_world.nif(serve_world.TEXT).replace("http://example.org/1", "http://example.org/" + "x" * 2000)
    with service.client() as client:
        answer = client.post("/nif", content=asked)
    assert answer.status_code == 422
    assert "has more than 1,000 letters" in answer.json()["error"]


# LAMA


def tar(path: Path, ending: str, unit: bytes, megabytes: int, name: str = "lama/TREx/P1.jsonl") -> Path:
    """An archive with one file in it that consists of the same again and again."""
    size = 4 * MIB // len(unit) * len(unit) * (megabytes * MIB // (4 * MIB // len(unit) * len(unit)))
    header = tarfile.TarInfo(name)
    header.size = size
    end = b"\0" * (-size % 512 + 1024)
    return written(path, packed(ending, unit, megabytes, begin=header.tobuf(), end=end))


@pytest.mark.parametrize(
    ("ending", "unit"),
    [(".gz", b"x"), (".bz2", b"x\n"), (".xz", ROW), (".gz", b'{"a":[[],[]]}')],
    ids=["line", "lines", "rows", "brackets"],
)
def test_a_lama_archive_does_not_grow(tmp_path, ending, unit):
    refused("ebert.probing.lama:read_lama", tar(tmp_path / f"lama.tar{ending}", ending, unit, 100))


def test_what_is_not_read_of_an_archive_is_not_unpacked_for_ever(tmp_path):
    refused("ebert.probing.lama:read_lama", tar(tmp_path / "lama.tar.xz", ".xz", b"x", 100, "other"))


def test_a_zip_of_lama_does_not_grow(tmp_path):
    for number, unit in enumerate((b"x", b"x\n", ROW)):
        path = tmp_path / f"{number}.zip"
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive, archive.open("TREx/P1.jsonl", "w") as file:
            for _ in range(100):
                file.write(unit * (MIB // len(unit)))
        refused("ebert.probing.lama:read_lama", path)


def test_what_the_header_of_an_archive_says_is_not_believed(tmp_path):
    """A file with holes is as large as its header says, and all of it is zeros."""
    member = tarfile.TarInfo("TREx/P1.jsonl")
    member.pax_headers = {"GNU.sparse.map": "0,0", "GNU.sparse.size": str(1 << 40)}
    with tarfile.open(tmp_path / "holes.tar", "w", format=tarfile.PAX_FORMAT) as archive:
        archive.addfile(member)
    refused("ebert.probing.lama:read_lama", tmp_path / "holes.tar")
    member = tarfile.TarInfo("TREx/P1.jsonl")
    member.size = 1 << 40
    refused("ebert.probing.lama:read_lama", written(tmp_path / "cut.tar", member.tobuf()), match="cannot be read")


def test_a_header_of_an_archive_does_not_grow(tmp_path):
    member = tarfile.TarInfo("TREx/P1.jsonl")
    member.pax_headers = {"comment": "x" * (100 * MIB)}
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w", format=tarfile.PAX_FORMAT) as archive:
        archive.addfile(member)
    path = written(tmp_path / "lama.tar.gz", gzip.compress(raw.getvalue(), 1))
    refused("ebert.probing.lama:read_lama", path)


# Files that are held in memory


@pytest.mark.parametrize(
    ("name", "begin", "unit"),
    [
        ("d.jsonl.gz", b"", b'{"text":"a"}\n'),
        ("d.tsv.bz2", b"-DOCSTART- (1)\n", b"a\n"),
        ("d.ttl.xz", b"<a> <b> ", b"<c>,"),
    ],
)
def test_labelled_data_do_not_grow(tmp_path, name, begin, unit):
    path = written(tmp_path / name, packed(Path(name).suffix, unit, 100, begin=begin))
    refused("ebert.linking.readers.layouts:read", path)


def test_json_does_not_grow(tmp_path):
    path = written(tmp_path / "metrics.json.xz", packed(".xz", b"[],", 100, begin=b'{"a":['))
    refused("ebert._io.files:read_json", path, "a run")


def test_the_files_of_runs_do_not_grow(tmp_path):
    (tmp_path / "run.json").write_text(json.dumps({"complete": True, "modes": ["bert"], "filters": ["all"]}))
    for unit in (b"x", b'{"id":"%b"}\n' % (b"a" * 200)):
        written(tmp_path / "predictions.jsonl.xz", packed(".xz", unit, 100))
        refused("ebert.report.runs:_rows", tmp_path, "predictions.jsonl")
    written(tmp_path / "test.predictions.jsonl.xz", packed(".xz", b"x", 100))
    with pytest.raises(EbertError, match=RAISE):
        classified._answers(tmp_path / "test.json", {})


@pytest.mark.parametrize("name", ["q.jsonl.gz", "q.csv.bz2"])
@pytest.mark.parametrize("unit", [b"x\n", b'"x\n",'], ids=["lines", "a record"])
def test_questions_and_labels_do_not_grow(tmp_path, name, unit):
    begin = b"answers,label\n" * ("csv" in name)
    path = written(tmp_path / name, packed(Path(name).suffix, unit, 100, begin=begin))
    refused("ebert.probing.questions:read_questions", path, match="")
    message, grown = growing.grow("ebert._io.records:read_table", path)
    assert message
    assert grown < SMALL


# Files that are read as streams


@pytest.mark.parametrize(
    ("ending", "begin", "unit", "match"),
    [
        (".bz2", b"a\t1 2\n", b"x", "line 2: longer"),
        (".gz", b"", b"a" + b" 0.5" * (MIB // 2) + b"\n", ""),
        (".gz", b"2 300000000\na ", b"\0", "dimension"),
    ],
    ids=["line", "long lines", "dimension"],
)
def test_vectors_do_not_grow(tmp_path, ending, begin, unit, match):
    path = written(tmp_path / f"v.txt{ending}", packed(ending, unit, 300, begin=begin))
    refused("ebert.vectors.formats.importer:import_vectors", [str(path)], tmp_path / "store", match=match, small=600)


def test_a_pickle_does_not_make_much_out_of_little(tmp_path):
    """One part is copied again and again; or all parts are searched again and again."""
    text = b"c_codecs\nencode\nq\x000X" + struct.pack("<I", 60_000) + b"x" * 60_000 + b"X\x06\0\0\0latin1\x86q\x010"
    copies = b"\x80\x03" + text + b"](" + b"h\x00h\x01R" * 20_000 + b"e."
    kind = b"cnumpy\ndtype\nX\x02\0\0\0f4\x85Rq\x000"
    array = b"cnumpy.core.multiarray\n_reconstruct\nq\x010(K\x01K\x00\x85h\x00\x89C\x00tq\x020"
    searches = b"\x80\x04" + kind + array + b"N\x940" * 200_000 + b"](" + b"h\x01)Rh\x02b" * 20_000 + b"e."
    for content in (copies, searches):
        path = written(tmp_path / "model.pkl", content)
        refused("ebert.vectors.formats.pickles:load", path, match="much out of little")


@pytest.mark.parametrize("ending", [".gz", ".bz2"])
def test_one_line_of_a_dump_does_not_grow(tmp_path, ending):
    path = written(tmp_path / f"page.sql{ending}", packed(ending, b"x", 100))
    refused("ebert.wikipedia.dump:lines", path)
    many = packed(ending, b"ab \n", 100, begin=b"CREATE TABLE page (\n")
    refused("growing:sql", written(path, many), "ab", match="columns")


def test_a_row_of_a_dump_is_read_in_time_that_grows_with_its_length(tmp_path):
    table = "CREATE TABLE page (\n" + "".join(f"c{n} int,\n" for n in range(12)) + ")\n"
    path = tmp_path / "page.sql"
    for line in ("INSERT INTO page VALUES (" + "1,          " * 11 + ";", "INSERT INTO page" + " " * 500_000 + "x"):
        path.write_text(table + line + "\n")
        growing.grow("growing:sql", path, "c0")


PAGE = b"<mediawiki><page><title>A</title><revision><text>"


@pytest.mark.parametrize("ending", [".gz", ".bz2"])
def test_one_page_of_a_dump_does_not_grow(tmp_path, ending):
    """The bz2 file is one of many streams, as they stand one after another."""
    path = written(tmp_path / f"d.xml{ending}", packed(ending, b"x", 100, begin=PAGE))
    refused("ebert.linking.wikipedia:from_dumps", [str(path)], ["B"])
    refused("ebert.cli:cli", ["corpus", "build", str(path), "--out", str(tmp_path / "c"), "--threads", "1"])


def test_a_page_in_one_stream_of_bz2_does_not_grow(tmp_path):
    path = written(tmp_path / "d.xml.bz2", bz2.compress(PAGE + b"x" * (100 * MIB)))
    refused("ebert.cli:cli", ["corpus", "build", str(path), "--out", str(tmp_path / "c"), "--threads", "1"])


@pytest.mark.parametrize("name", ["a.jsonl.gz", "a.txt.bz2", "a.jsonl.xz"])
def test_rows_of_bulk_work_do_not_grow(tmp_path, name):
    refused("growing:plan", written(tmp_path / name, packed(Path(name).suffix, b"x", 100)))


def test_a_table_in_parquet_does_not_grow(tmp_path):
    """All rows share one long text, which is in the file once."""
    same = pa.DictionaryArray.from_arrays(pa.array([0] * 20_000, pa.int32()), pa.array(["x" * 100_000]))
    pq.write_table(pa.table({"text": same}), tmp_path / "a.parquet", store_schema=False)
    message, grown = growing.grow("growing:read", tmp_path / "a.parquet")
    assert RAISE in message
    assert grown < SMALL


def test_a_jar_does_not_grow(tmp_path):
    artifact = artifact_for("bert-base-cased")
    for name in (NOTICE, f"{ROOM}/bert-{artifact.model}"):
        with zipfile.ZipFile(tmp_path / "a.jar", "w", zipfile.ZIP_DEFLATED) as jar:
            if name != NOTICE:
                jar.writestr(NOTICE, b"")
            jar.writestr(name, b"x" * (40 * MIB))
        with pytest.raises(EbertError, match=RAISE):
            unpack(tmp_path / "a.jar", tmp_path, artifact=artifact)
        assert not (tmp_path / "model.zip").exists()


# The limit


def test_the_limit_is_far_above_real_data_and_can_be_set(tmp_path, monkeypatch):
    assert (limit(0), limit(), limit(10**9)) == (4 * MIB, 16 * MIB, 1 << 30)
    assert limit(7_358_704) > 14 * 49 * MIB  # LAMA
    monkeypatch.setenv("EBERT_MAX_UNPACKED", "3G")
    assert limit() == limit(10**9) == 3 << 30
    monkeypatch.setenv("EBERT_MAX_UNPACKED", "much")
    with pytest.raises(EbertError, match="is 'much'; give a number"):
        limit()


def test_the_option_raises_the_limit(tmp_path):
    path = tar(tmp_path / "lama.tar.xz", ".xz", ROW, 20)
    out, command = tmp_path / "out", [sys.executable, "-m", "ebert"]
    arguments = ["probe", "lama", str(path), "--bert", "bert-base-cased", "--out", str(out)]
    done = subprocess.run([*command, *arguments], check=False, capture_output=True, text=True)
    assert done.returncode == 2
    assert RAISE in done.stderr
    done = subprocess.run([*command, RAISE, "2G", *arguments], check=False, capture_output=True, text=True)
    assert "the relation P1 cannot be asked" in done.stderr  # all was read
    done = subprocess.run([*command, RAISE, "0", *arguments], check=False, capture_output=True, text=True)
    assert done.returncode == 2
    assert "is '0'; give a number of bytes" in done.stderr
