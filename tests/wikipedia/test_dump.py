"""Reading dumps: kinds of files, cuts, pages, damage."""

import bz2
import gzip
import itertools

import pytest
from dump_files import KINDS, SITEINFO, Page, head, many_pages, minor, multistream, page_xml, streams, write_as, xml
from hypothesis import given, settings
from hypothesis import strategies as st

from ebert.errors import EbertError
from ebert.wikipedia import dump
from ebert.wikipedia.dump import DamagedError, look, pieces, unpacked

PAGES = many_pages(60)


def read_all(path):
    """Return all pages of a dump, put together from its pieces as a build does."""
    looked = look(path)
    text = b""
    for piece in pieces(looked):
        blocks = [piece.xml] if piece.xml is not None else [
            block for _, block in looked.blocks(piece.start, piece.end)
        ]  # fmt: skip
        text += b"".join(blocks)
    return [dump.read_page(page) for page in dump.cut_pages(text).pages]


@pytest.fixture
def small_pieces(monkeypatch):
    monkeypatch.setattr(dump, "PIECE", 3000)
    monkeypatch.setattr(dump, "RANGE", 1500)


@pytest.mark.parametrize("kind", KINDS)
def test_all_kinds_of_files_have_the_same_pages(tmp_path, small_pieces, kind):
    path = write_as(kind, tmp_path, PAGES)
    found = read_all(path)
    assert [page.title for page in found] == [page.title for page in PAGES]
    assert [page.source() for page in found] == [page.text for page in PAGES]
    assert all(page.namespace == 0 and page.redirect is None and page.model == "wikitext" for page in found)
    looked = look(path)
    assert len(list(pieces(looked))) > 3
    assert looked.kind == {"xml": "xml", "gz": "gz", "joined gz": "gz", "bz2": "bz2", "padded bz2": "bz2"}.get(
        kind, "streams"
    )
    assert "<sitename>Wikipedia</sitename>" in looked.header
    assert "<page>" not in looked.header


@pytest.mark.parametrize("kind", KINDS)
def test_pieces_cover_the_file_and_are_the_same_every_time(tmp_path, small_pieces, kind):
    looked = look(write_as(kind, tmp_path, PAGES))
    cut = list(pieces(looked))
    assert cut == list(pieces(looked))
    assert [piece.number for piece in cut] == list(range(len(cut)))
    assert cut[0].start == 0
    assert cut[-1].end == looked.size
    assert all(piece.end == following.start for piece, following in itertools.pairwise(cut))


def test_pieces_of_one_stream_hold_whole_pages(tmp_path, small_pieces):
    cut = list(pieces(look(write_as("bz2", tmp_path, PAGES))))
    assert all(piece.xml.count(b"<page>") == piece.xml.count(b"</page>") for piece in cut)
    assert all(3000 <= len(piece.xml) < 6000 for piece in cut[:-1])


@pytest.mark.parametrize("kind", ["bz2", "gz"])
def test_the_cuts_do_not_depend_on_the_blocks(tmp_path, small_pieces, monkeypatch, kind):
    looked = look(write_as(kind, tmp_path, PAGES))
    whole = [piece.xml for piece in pieces(looked)]
    monkeypatch.setattr(dump, "BLOCK", 5)  # so that the tags at which it is cut lie across blocks
    assert [piece.xml for piece in pieces(looked)] == whole


def test_pieces_of_many_streams_begin_with_streams(tmp_path, small_pieces):
    path = write_as("multistream", tmp_path, PAGES)
    data = path.read_bytes()
    cut = list(pieces(look(path)))
    assert all(data[piece.start :].startswith(b"BZh91AY&SY") for piece in cut)
    assert all(piece.end - piece.start >= 1500 for piece in cut[:-1])


def test_a_stream_is_found_wherever_the_reader_stops(tmp_path, monkeypatch):
    data = streams(b"x" * 100, 10)
    (tmp_path / "a.bz2").write_bytes(data)
    monkeypatch.setattr(dump, "RANGE", 1)
    expected = [place for place in range(1, len(data)) if data[place:].startswith(b"BZh91AY&SY")]
    assert len(expected) == 9
    for ahead in range(1, 40):
        monkeypatch.setattr(dump, "LOOK_AHEAD", ahead)
        assert list(dump._stream_starts(tmp_path / "a.bz2")) == expected


def test_streams_that_show_late_are_read_one_after_another(tmp_path, monkeypatch):
    monkeypatch.setattr(dump, "LOOK_AHEAD", 50)
    monkeypatch.setattr(dump, "PIECE", 3000)
    path = write_as("multistream", tmp_path, PAGES)
    assert look(path).kind == "bz2"
    assert [page.title for page in read_all(path)] == [page.title for page in PAGES]


@pytest.mark.parametrize("version", ["0.3", "0.5", "0.10", "0.11"])
def test_export_schemas(tmp_path, version):
    given = [
        Page("A & B", 'x < "y" & [[z]]'),
        Page("Talk:A", "t", ns=1),
        Page("R", "#REDIRECT [[A]]", redirect="A & B"),
    ]
    (tmp_path / "a.xml").write_bytes(xml(given, version))
    found = read_all(tmp_path / "a.xml")
    assert [page.title for page in found] == ["A & B", "Talk:A", "R"]
    assert [page.source() for page in found] == [page.text for page in given]
    modern = minor(version) >= 6
    assert [page.namespace for page in found] == ([0, 1, 0] if modern else [None] * 3)
    assert [page.redirect for page in found] == ([None, None, "A & B"] if modern else [None] * 3)


def test_the_newest_revision_counts():
    page = (
        b"<title>T</title><ns>0</ns><revision><model>wikitext</model><text>old</text></revision>"
        b"<revision><model>css</model><text bytes='3'>new</text></revision>"
    )
    assert dump.read_page(page) == dump.Page("T", 0, None, "css", b"new")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b"<text>a</text>", "a"),
        (b'<text xml:space="preserve">a</text>', "a"),
        (b'<text bytes="0" />', ""),
        (b"<text/>", ""),
        (b"", None),
        (b"<text>never ends", None),
        (b"<text", None),
    ],
)
def test_texts(text, expected):
    page = dump.read_page(b"<title>T</title><revision>" + text + b"</revision>")
    assert (None if page.text is None else page.source()) == expected


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (b"&lt;b&gt; &quot;x&quot; &amp;amp; &apos;", '<b> "x" &amp; \''),
        (b"&amp;lt;", "&lt;"),
        (b"&#233;&#xe9;&#xE9; &amp;#233;", "ééé &#233;"),
        (b"&#1114112; &#xD800; &#x110000;", "\ufffd \ufffd \ufffd"),
        (b"&nosuch; & &#;", "&nosuch; & &#;"),
        (b"bad \xff\xfe bytes", "bad \ufffd\ufffd bytes"),
    ],
)
def test_escapes(raw, text):
    assert dump.unescape(raw) == text


def test_a_page_without_an_end_does_not_swallow_the_next():
    cut = dump.cut_pages(b"x<page>one<page>two<page>three</page> <page>four</page><page>five<page>six")
    assert cut.pages == [b"three", b"four"]
    assert cut.broken == 3
    assert (cut.head, cut.tail) == (b"x", b"<page>six")


@given(st.lists(st.sampled_from([b"<page>", b"</page>", b"a", b"<pa", b"ge>", b" "]), max_size=20).map(b"".join))
def test_cutting_loses_nothing(text):
    cut = dump.cut_pages(text)
    if b"<page>" not in text:
        assert cut == (text, [], b"", 0)
        return
    assert cut.head == text[: text.index(b"<page>")]
    assert len(cut.pages) + cut.broken + cut.tail.count(b"<page>") == text.count(b"<page>")
    assert cut.tail == b"" or text.endswith(cut.tail)
    assert all(b"<page>" not in page for page in cut.pages)


# Files that are no dumps.


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("empty.xml", b"", "is empty"),
        ("text.xml", b"just text", "neither XML nor"),
        ("zip.xml", b"PK\x03\x04" + bytes(100), "neither XML nor"),
        ("page.html", b"<!DOCTYPE html><html><body>404</body></html>", "not a MediaWiki export"),
        ("html.xml.gz", gzip.compress(b"<html></html>", mtime=0), "not a MediaWiki export"),
        ("head.xml.bz2", b"BZh9", "nothing of it can be read"),
        ("cut.xml.gz", gzip.compress(b"<mediawiki>" * 1000, mtime=0)[:30], "nothing of it can be read"),
        ("wrong.xml.bz2", b"BZh91AY&SY" + bytes(100), "nothing of it can be read"),
    ],
)
def test_what_is_no_dump_is_named(tmp_path, name, data, message):
    (tmp_path / name).write_bytes(data)
    with pytest.raises(EbertError, match=message) as caught:
        look(tmp_path / name)
    assert name in str(caught.value)


def test_missing_files_and_folders(tmp_path):
    with pytest.raises(EbertError, match="there is no dump at"):
        look(tmp_path / "nothing.xml")
    with pytest.raises(EbertError, match="is a folder"):
        look(tmp_path)


def test_a_dump_may_begin_with_a_mark_and_a_declaration(tmp_path):
    (tmp_path / "a.xml").write_bytes(b"\xef\xbb\xbf<?xml version='1.0'?>\n" + xml(PAGES[:2]))
    assert [page.title for page in read_all(tmp_path / "a.xml")] == ["Title 0", "Title 1"]


# Damage.


def unpack_all(path, packing, **options):
    out = b""
    try:
        for _, block in unpacked(path, packing, **options):
            out += block
    except DamagedError as error:
        return out, error
    return out, None


@pytest.mark.parametrize(("packing", "pack"), [("bz2", bz2.compress), ("gz", gzip.compress)])
def test_a_file_that_ends_too_early_gives_what_it_has(tmp_path, packing, pack):
    whole = xml(many_pages(3000))
    packed = pack(whole)
    (tmp_path / "a").write_bytes(packed[: len(packed) * 9 // 10])
    out, error = unpack_all(tmp_path / "a", packing)
    assert whole.startswith(out)
    assert out
    assert error.offset == error.size == len(packed) * 9 // 10
    assert "ends too early" in str(error)
    assert f"byte {error.offset:,} of {error.size:,}" in str(error)


def test_a_damaged_block_is_found_within_a_read(tmp_path):
    whole = xml(many_pages(6000))
    packed = bytearray(bz2.compress(whole, 1))
    middle = len(packed) // 2
    assert middle > 2 * dump.READ
    packed[middle] ^= 0xFF
    (tmp_path / "a").write_bytes(packed)
    out, error = unpack_all(tmp_path / "a", "bz2")
    assert whole.startswith(out)
    assert len(out) > len(whole) // 4
    # A block is checked at its end, which is at most 100,000 bytes of text away.
    assert middle - dump.READ <= error.offset <= middle + 100_000


def test_what_follows_the_last_stream_is_damage_unless_it_is_padding(tmp_path):
    (tmp_path / "a").write_bytes(bz2.compress(b"text") + b"more")
    out, error = unpack_all(tmp_path / "a", "bz2")
    assert out == b"text"
    assert error is not None
    (tmp_path / "a").write_bytes(bz2.compress(b"text") + bytes(100_000) + bz2.compress(b" more") + bytes(10))
    assert unpack_all(tmp_path / "a", "bz2") == (b"text more", None)


@pytest.mark.parametrize(("packing", "pack"), [("bz2", bz2.compress), ("gz", gzip.compress)])
def test_blocks_stay_small_however_well_the_file_is_packed(tmp_path, packing, pack):
    (tmp_path / "a").write_bytes(pack(bytes(50 << 20)))
    sizes = [len(block) for _, block in unpacked(tmp_path / "a", packing)]
    assert sum(sizes) == 50 << 20
    assert max(sizes) <= dump.BLOCK


@settings(deadline=None, max_examples=50)
@given(st.binary(max_size=300), st.integers(1, 50), st.integers(0, 20))
def test_streams_cut_anywhere(tmp_path_factory, data, size, padding):
    path = tmp_path_factory.mktemp("cut") / "a"
    pieces = [data[start : start + size] for start in range(0, len(data), size)]
    path.write_bytes(b"".join(bz2.compress(piece) + bytes(padding) for piece in pieces))
    assert unpack_all(path, "bz2") == (data, None)
    path.write_bytes(b"".join(gzip.compress(piece) for piece in pieces))
    assert unpack_all(path, "gz") == (data, None)


@pytest.mark.parametrize("packed", [bytes, gzip.compress, bz2.compress])
def test_lines(tmp_path, packed):
    for text in (b"", b"one", b"one\n", b"one\n\ntwo", b"\n", b"a" * 300_000 + b"\nb"):
        (tmp_path / "a").write_bytes(packed(text))
        assert list(dump.lines(tmp_path / "a")) == text.removesuffix(b"\n").split(b"\n")[: None if text else 0]


def test_the_head_may_say_little(tmp_path):
    body = "".join(map(page_xml, PAGES[:2]))
    for begin in (
        "<mediawiki>",
        "<mediawiki>\n<siteinfo></siteinfo>\n",
        head(siteinfo=""),
        "",
        head(siteinfo=SITEINFO),
    ):
        (tmp_path / "a.xml").write_text(f"{begin}{body}</mediawiki>", encoding="utf-8")
        assert [page.title for page in read_all(tmp_path / "a.xml")] == ["Title 0", "Title 1"]


def test_a_stream_of_nothing_is_passed_over(tmp_path):
    data = bz2.compress(b"") + multistream(PAGES, 7) + bz2.compress(b"")
    (tmp_path / "a.xml.bz2").write_bytes(data)
    assert [page.title for page in read_all(tmp_path / "a.xml.bz2")] == [page.title for page in PAGES]
