"""Reading a knowledge base from CSV, TSV and JSON lines."""

import bz2
import csv
import gzip
import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ebert import EbertError
from ebert._io import records
from ebert._io.records import read_table

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
COLUMNS = ("title", "description", "aliases", "id")


def read(folder, name, content):
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return list(read_table(path))


def reasons(rows):
    return {number: str(row) for number, row in rows if isinstance(row, EbertError)}


@given(st.lists(st.fixed_dictionaries(dict.fromkeys(COLUMNS, TEXT)), max_size=6), st.sampled_from(",;\t"))
def test_what_the_csv_module_writes_is_read(tmp_path_factory, rows, separator):
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, COLUMNS, delimiter=separator)
    writer.writeheader()
    writer.writerows(rows)
    found = [row for _, row in read(tmp_path_factory.mktemp("t"), "kb.csv", buffer.getvalue())]
    wanted = [{name: value for name, value in row.items() if value.strip()} for row in rows]

    def lines(row):  # the module writes line ends as they are, and reads all kinds as ends of a line
        return {name: value.replace("\r\n", "\n").replace("\r", "\n") for name, value in row.items()}

    assert list(map(lines, found)) == [lines(row) for row in wanted if row]


@given(st.lists(st.dictionaries(TEXT, st.none() | TEXT | st.integers() | st.lists(TEXT, max_size=3), max_size=4)))
def test_what_the_json_module_writes_is_read(tmp_path_factory, rows):
    for ascii_only in (True, False):
        text = "".join(json.dumps(row, ensure_ascii=ascii_only) + "\n" for row in rows)
        assert read(tmp_path_factory.mktemp("t"), "kb.jsonl", text) == list(enumerate(rows, 1))


@given(st.binary(max_size=200), st.sampled_from(["kb.csv", "kb.tsv", "kb.jsonl"]))
def test_whatever_is_in_a_file_gives_rows_or_reasons(tmp_path_factory, content, name):
    head = b"\n" if name.endswith("jsonl") else b"title\tdescription\n"
    for _, row in read(tmp_path_factory.mktemp("t"), name, head + content):
        assert isinstance(row, EbertError) or all(isinstance(field, str) for field in row)


def test_lines_are_numbered_where_rows_begin(tmp_path):
    text = 'Title , DESCRIPTION,extra\n"a","one\ntwo",\n\n,,\nb,three,x\nc,four,y,z\nd\n'
    rows = read(tmp_path, "kb.csv", text)
    assert [number for number, _ in rows] == [2, 6, 7, 8]
    assert rows[0][1] == {"title": "a", "description": "one\ntwo"}
    assert rows[1][1] == {"title": "b", "description": "three", "extra": "x"}
    assert "it has 4 fields for 3 columns" in str(rows[2][1])
    assert rows[3][1] == {"title": "d"}


def test_tsv_takes_quotation_marks_as_they_are(tmp_path):
    rows = read(tmp_path, "kb.tsv", 'title\tdescription\n"A" b\t"never closed\nc\td, e; f\n')
    assert [row for _, row in rows] == [
        {"title": '"A" b', "description": '"never closed'},
        {"title": "c", "description": "d, e; f"},
    ]


def test_a_quotation_mark_that_is_never_closed_costs_one_row(tmp_path, monkeypatch):
    monkeypatch.setattr(records, "FIELD", 100)
    limit = csv.field_size_limit()
    rows = read(tmp_path, "kb.csv", 'title,description\na,one\nb,"two\n' + "c,three\n" * 30)
    assert rows[0] == (2, {"title": "a", "description": "one"})
    assert list(reasons(rows)) == [3]
    assert "is a quotation mark not closed?" in reasons(rows)[3]
    assert rows[-1][1] == {"title": "c", "description": "three"}
    assert csv.field_size_limit() == limit


@pytest.mark.parametrize(("ending", "pack"), [("", bytes), (".gz", gzip.compress), (".bz2", bz2.compress)])
def test_files_may_be_packed_and_begin_with_a_mark(tmp_path, ending, pack):
    text = "\ufefftitle,description\né,ß\n"
    assert read(tmp_path, f"kb.csv{ending}", pack(text.encode())) == [(2, {"title": "é", "description": "ß"})]


@pytest.mark.parametrize("name", ["kb.csv", "kb.tsv", "kb.jsonl"])
def test_bytes_that_are_not_utf8_cost_their_row(tmp_path, name):
    if name == "kb.jsonl":
        content = b'{"title": "a"}\n{"title": "b", "aliases": ["\xff"]}\n{"title": "c"}\n'
    else:
        separator = b"," if name == "kb.csv" else b"\t"
        content = b"title" + separator + b"description\na\nb" + separator + b"\xff\nc\n"
    rows = read(tmp_path, name, content)
    assert [row["title"] for _, row in rows if isinstance(row, dict)] == ["a", "c"]
    assert list(reasons(rows).values()) == ["it is not UTF-8"]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("{", "it is not JSON"),
        ("[]", "it is not a JSON object but list"),
        ("null", "it is not a JSON object but NoneType"),
        ("[" * 100_000, "it is not JSON"),
        ('{"title": "\\ud800"}', "it is not UTF-8"),
        ('{"title": "a", "\\ud800": 1}', "it is not UTF-8"),
    ],
)
def test_lines_that_are_no_objects(tmp_path, line, reason):
    rows = read(tmp_path, "kb.jsonl", f'{{"title": "a"}}\n{line}\n  \n{{"title": "b"}}')
    assert [number for number, _ in rows] == [1, 2, 4]
    assert reason in reasons(rows)[2]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("kb.xlsx", b"", r"\.csv, \.tsv or \.jsonl"),
        ("kb", b"", r"\.csv, \.tsv or \.jsonl"),
        ("kb.gz", b"", r"\.csv, \.tsv or \.jsonl"),
        ("kb.csv", b"", "has no column 'title' in its first line: ''"),
        ("kb.csv", b"name,text\na,b\n", "has no column 'title' in its first line: 'name,text'"),
        ("kb.tsv", b"title,description\n", "has no column 'title'"),
        ("kb.csv", b"title,id,id\n", "two columns are called id"),
        ("kb.csv", "title\na\n".encode("utf-16"), "is UTF-16; save it as UTF-8"),
        ("kb.csv.gz", gzip.compress(b"title\n" + b"a\n" * 9000, mtime=0)[:-20], "is truncated or damaged"),
        ("kb.jsonl", b"[" + b" " * (17 << 20), "line 1: too long for a line"),
    ],
)
def test_files_that_cannot_be_read(tmp_path, name, content, message):
    with pytest.raises(EbertError, match=message):
        read(tmp_path, name, content)


def test_no_file(tmp_path):
    with pytest.raises(EbertError, match="there is no file"):
        list(read_table(tmp_path / "kb.csv"))
