"""What is read: kinds of files, their names, how they are cut, and what is wrong with others."""

import bz2
import gzip
import json
import lzma

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from bulk_jobs import damaged_ends
from hypothesis import given, settings
from hypothesis import strategies as st

from ebert.bulk import inputs
from ebert.bulk.inputs import find_sources, make_plan
from ebert.bulk.options import EngineOptions, ReadOptions
from ebert.bulk.rows import RowReader
from ebert.errors import EbertError


def anything(source, columns):
    pass


def read_all(inputs, **options):
    """The rows, bad rows and blank lines of inputs, shard after shard."""
    read = ReadOptions(**options)
    plan = make_plan(inputs, read, anything)
    reader = RowReader(read, ("more",))
    parts = [reader(shard) for shard in plan.shards]
    reader.close()
    rows, bad = [row for part in parts for row in part.rows], [one for part in parts for one in part.bad]
    return plan, rows, bad, sum(part.blank for part in parts)


def write_jsonl(path, rows):
    path.write_text("".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows), "utf-8")
    return path


def write_parquet(path, count, group=None, **columns):
    table = pa.table({"text": [f"text {n}" for n in range(count)], **columns})
    pq.write_table(table, path, row_group_size=group)
    return path


def test_a_folder_of_all_kinds(tmp_path):
    folder = tmp_path / "in"
    (folder / "deep").mkdir(parents=True)
    write_jsonl(folder / "a.jsonl", [{"id": "x", "text": "one"}, {"text": "two"}, '"three"'])
    write_parquet(folder / "b.parquet", 3, id=[10, 11, 12])
    (folder / "deep" / "c.txt").write_text("line\nline\n", "utf-8")
    (folder / "deep" / "d.txt.gz").write_bytes(gzip.compress("é".encode()))
    (folder / "picture.png").write_bytes(b"\x89PNG")
    (folder / ".hidden.txt").write_text("no")
    plan, rows, bad, blank = read_all([folder])
    assert (bad, blank) == ([], 0)
    assert [(row.number, row.id, row.text) for row in rows] == [
        (0, "x", "one"), (1, "a.jsonl:2", "two"), (2, "a.jsonl:3", "three"),
        (3, "10", "text 0"), (4, "11", "text 1"), (5, "12", "text 2"),
        (6, "deep/c.txt", "line\nline\n"), (7, "deep/d.txt.gz", "é"),
    ]  # fmt: skip
    assert rows[4].where == "b.parquet:2"
    assert plan.others == ["picture.png"]
    assert plan.inputs["a.jsonl"]["rows"] == 3
    assert len(plan.inputs["a.jsonl"]["sha256"]) == 64


def test_lines_of_text_are_rows_if_asked_for(tmp_path):
    (tmp_path / "a.txt").write_bytes("\ufefffirst\r\n\n  \nlast".encode())
    _, rows, _, blank = read_all([tmp_path / "a.txt"], lines=True)
    assert [(row.id, row.text) for row in rows] == [("a.txt:1", "first"), ("a.txt:4", "last")]
    assert [row.number for row in rows] == [0, 3]
    assert blank == 2


def test_several_inputs_are_called_as_they_were_given(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "x.txt").write_text(name)
    _, rows, _, _ = read_all(["a", "b/x.txt"])
    assert [row.id for row in rows] == ["a/x.txt", "b/x.txt"]


@settings(max_examples=60, deadline=None)
@given(
    lines=st.lists(st.one_of(st.just(""), st.text(st.characters(codec="utf-8", exclude_characters="\n"))), min_size=1),
    shard_rows=st.integers(1, 7),
    packing=st.sampled_from(["", ".gz", ".bz2", ".xz"]),
    end=st.booleans(),
)
def test_every_line_is_read_once_whatever_the_cuts(tmp_path_factory, lines, shard_rows, packing, end):
    data = ("\n".join(lines) + "\n" * end).encode()
    pack = {"": bytes, ".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}[packing]
    path = tmp_path_factory.mktemp("cut") / f"a.txt{packing}"
    path.write_bytes(pack(data))
    if data.startswith((b"\xff\xfe", b"\xfe\xff")) or not data:
        return
    plan, rows, bad, blank = read_all([path], lines=True, shard_rows=shard_rows)
    expected = data.removeprefix(b"\xef\xbb\xbf").decode().split("\n")
    assert [row.text for row in rows] == [line.removesuffix("\r") for line in expected if line.encode().strip()]
    assert bad == []
    assert len(rows) + blank == plan.rows == sum(shard.rows for shard in plan.shards)
    assert all(shard.rows <= shard_rows for shard in plan.shards)
    assert [shard.number for shard in plan.shards] == list(range(len(plan.shards)))


def test_rows_are_numbered_through_all_inputs(tmp_path):
    for name in "ab":
        (tmp_path / f"{name}.txt").write_text("x\n" * 5)
    _, rows, _, _ = read_all([tmp_path], lines=True, shard_rows=2)
    assert [row.number for row in rows] == list(range(10))


@pytest.mark.parametrize(("shard_rows", "group"), [(1, 5), (4, 1), (4, 5), (7, 100), (100, 5)])
def test_parquet_is_cut_anywhere(tmp_path, shard_rows, group):
    path = write_parquet(tmp_path / "a.parquet", 23, group)
    plan, rows, _, _ = read_all([path], shard_rows=shard_rows)
    assert [row.text for row in rows] == [f"text {n}" for n in range(23)]
    assert len(plan.shards) == -(-23 // shard_rows)


def test_small_files_share_a_shard_and_large_ones_end_it(tmp_path, monkeypatch):
    monkeypatch.setattr(inputs, "SHARD_BYTES", 100)
    for number in range(10):
        (tmp_path / f"{number}.txt").write_text("x" * (30 if number < 9 else 500))
    plan, rows, _, _ = read_all([tmp_path])
    assert [shard.rows for shard in plan.shards] == [4, 4, 2]
    assert len(rows) == 10
    write_jsonl(tmp_path / "a.jsonl", ["x" * 60] * 5)
    assert [shard.rows for shard in make_plan([tmp_path / "a.jsonl"], ReadOptions(), anything).shards] == [2, 2, 1]


def test_other_columns(tmp_path):
    table = pa.table({"body": ["one", None], "key": ["k", "l"], "more": [1, 2], "unread": [3, 4]})
    pq.write_table(table, tmp_path / "a.parquet")
    _, rows, _, _ = read_all([tmp_path / "a.parquet"], text_column="body", id_column="key")
    assert [(row.id, row.fields) for row in rows] == [
        ("k", {"text": "one", "more": 1}), ("l", {"text": None, "more": 2}),
    ]  # fmt: skip
    with pytest.raises(EbertError, match="no text"):
        _ = rows[1].text


def test_bad_rows_have_a_reason_and_the_others_go_on(tmp_path):
    path = tmp_path / "a.jsonl"
    lines = [
        b'{"text": "good"}', b"{broken", b"[1]", b'{"text": "\xff"}', b'{"id": [1], "text": "x"}', b'{"id": true}',
        b'{"id": "\\ud800", "text": "x"}', b"[" * 100_000, b"7" * 10_000, b'{"text": "last"}',
    ]  # fmt: skip
    path.write_bytes(b"\n".join(lines))
    _, rows, bad, _ = read_all([path])
    assert [row.text for row in rows] == ["good", "last"]
    reasons = [(one.row, one.where, one.reason) for one in bad]
    assert [row for row, _, _ in reasons] == list(range(1, 9))
    assert reasons[0][1] == "a.jsonl:2"
    for (_, _, reason), expected in zip(
        reasons,
        ["not JSON", "not a JSON object but list", "not UTF-8", "a name or a number", "a name or a number", "not text",
         "not JSON", "not JSON"],
        strict=True,
    ):  # fmt: skip
        assert expected in reason


def test_a_text_of_another_name_is_not_the_text(tmp_path):
    rows = [{"text": "another"}, {"body": "one", "text": "another"}, '"string"', {"id": "x", "body": None}]
    path = write_jsonl(tmp_path / "a.jsonl", rows)
    (tmp_path / "b.txt").write_text("line\n")
    _, rows, bad, _ = read_all([path, tmp_path / "b.txt"], text_column="body", lines=True)
    assert bad == []
    assert [row.fields.get("text") for row in rows] == [None, "one", "string", None, "line"]
    for row in (rows[0], rows[3]):
        with pytest.raises(EbertError, match=r"it has no text \(a string called 'body'\)"):
            _ = row.text


@pytest.mark.parametrize(
    "fields",
    [
        {"text": "half \ud800"}, {"more": "\udfff"}, {"more": ["good", {"deep": ["\ud800"]}]}, {"more": {"\ud800": 1}},
    ],
)  # fmt: skip
def test_strings_that_are_no_text_make_a_bad_row(tmp_path, fields):
    rows = [{"text": "good"}, {"id": "x", "text": "good", **fields}, {"text": "good", "unread": "\ud800"}]
    _, rows, bad, _ = read_all([write_jsonl(tmp_path / "a.jsonl", rows)])
    assert [row.number for row in rows] == [0, 2]
    assert [(one.row, one.id, one.where) for one in bad] == [(1, "x", "a.jsonl:2")]
    assert bad[0].reason == f"its {next(iter(fields))!r} has half a surrogate pair and is not text"


def test_a_row_without_the_name_that_was_asked_for_is_bad(tmp_path):
    _, rows, bad, _ = read_all(
        [write_jsonl(tmp_path / "a.jsonl", [{"text": "x"}, {"key": 1, "text": "x"}])], id_column="key"
    )
    assert [row.id for row in rows] == ["1"]
    assert bad[0].reason == "it has no 'key'"


def test_a_text_file_that_is_not_utf_8_is_a_bad_row(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"\xff")
    (tmp_path / "b.txt").write_bytes(b"b")
    _, rows, bad, _ = read_all([tmp_path])
    assert [row.id for row in rows] == ["b.txt"]
    assert bad[0].id == "a.txt"
    assert "not UTF-8" in bad[0].reason


def test_pages_of_parquet_that_are_damaged_are_bad_rows(tmp_path):
    """The end of the file is whole, so that it opens; a group in the middle is not."""
    path = tmp_path / "a.parquet"
    pq.write_table(
        pa.table({"text": [f"{n}" * 1000 for n in range(30)]}), path, row_group_size=10, use_dictionary=False
    )
    group = pq.read_metadata(path).row_group(1).column(0)
    data = bytearray(path.read_bytes())
    data[group.data_page_offset : group.data_page_offset + 40] = bytes(40)
    path.write_bytes(data)
    _, rows, bad, _ = read_all([path], shard_rows=10)
    assert [row.number for row in rows] == [*range(10), *range(20, 30)]
    assert [one.row for one in bad] == list(range(10, 20))
    assert "rows 11 to 20 of the file cannot be read" in bad[0].reason


@pytest.mark.parametrize("name", ["a.parquet", "a.jsonl.gz", "a.txt.xz", "a.txt.bz2"])
def test_a_truncated_file_is_named_before_the_work_begins(tmp_path, name):
    path = tmp_path / name
    data = "".join(f"line {number * 7919}\n" for number in range(5000)).encode()
    if name.endswith("parquet"):
        write_parquet(path, 1000)
    else:
        path.write_bytes({"gz": gzip, "xz": lzma, "bz2": bz2}[name.rpartition(".")[2]].compress(data))
    path.write_bytes(path.read_bytes()[:-50])
    with pytest.raises(EbertError, match=rf"{name} is .*truncated"):
        read_all([path], lines=True)


def test_a_damaged_end_of_parquet_is_named_before_the_work_begins(tmp_path):
    path = write_parquet(tmp_path / "a.parquet", 50)
    for spoiled in damaged_ends(path.read_bytes()):
        path.write_bytes(spoiled)
        with pytest.raises(EbertError, match=r"a\.parquet is not a Parquet file, or is truncated or damaged"):
            read_all([path])


def test_text_of_parquet_that_is_none_is_a_bad_row(tmp_path):
    """Arrow does not look into strings when it reads them."""
    texts = pa.array([b"good", b"\xff", b"too"], pa.binary())
    texts = pa.Array.from_buffers(pa.string(), 3, texts.buffers())
    pq.write_table(pa.table({"text": texts, "id": ["a", "b", "c"]}), tmp_path / "a.parquet")
    _, rows, bad, _ = read_all([tmp_path / "a.parquet"])
    assert [(row.id, row.text) for row in rows] == [("a", "good"), ("c", "too")]
    assert [(one.row, one.where) for one in bad] == [(1, "a.parquet:2")]
    assert "it cannot be read ('utf-8' codec" in bad[0].reason


def test_what_cannot_be_read_at_all(tmp_path):
    for wrong, expected in (
        ([], "nothing to read"),
        (["nowhere"], "no file or folder nowhere"),
        ([tmp_path], "nothing to read in"),
    ):
        with pytest.raises(EbertError, match=expected):
            find_sources(wrong)
    (tmp_path / "a.csv").write_text("text\nx\n")
    with pytest.raises(EbertError, match=r"\.parquet.* are known, but a\.csv"):
        find_sources([tmp_path / "a.csv"])
    (tmp_path / "b.txt").write_text("x")
    with pytest.raises(EbertError, match="given twice"):
        find_sources([tmp_path / "b.txt", tmp_path])
    (tmp_path / "c.jsonl").write_bytes("\ufeffx".encode("utf-16"))
    with pytest.raises(EbertError, match="is UTF-16; save it as UTF-8"):
        read_all([tmp_path / "c.jsonl"])
    (tmp_path / "d.jsonl").write_bytes(b"")
    with pytest.raises(EbertError, match="there are no rows in"):
        read_all([tmp_path / "d.jsonl"])


def test_a_file_that_changes_meanwhile_is_not_read(tmp_path):
    path = write_jsonl(tmp_path / "a.jsonl", [{"text": "x"}] * 10)
    read = ReadOptions(shard_rows=5)
    plan = make_plan([path], read, anything)
    write_jsonl(path, [{"text": "y"}] * 9)
    with pytest.raises(EbertError, match="has changed since the job began"):
        RowReader(read, ())(plan.shards[0])
    path.unlink()
    with pytest.raises(EbertError, match="no file"):
        RowReader(read, ())(plan.shards[0])


def test_options_that_make_no_sense():
    with pytest.raises(EbertError, match="shard-rows is 0"):
        ReadOptions(shard_rows=0)
    with pytest.raises(EbertError, match="at least 3 workers are asked for, but at most 2"):
        EngineOptions(workers=2, least_workers=3)
    with pytest.raises(EbertError, match="cpus-per-worker is 0"):
        EngineOptions(cpus_per_worker=0)
