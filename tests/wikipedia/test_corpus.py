"""From dumps to a corpus: what is in the folder, by hand, and whatever the file and the number of processes."""

import bz2
import json

import numpy as np
import pytest
from dump_files import KINDS, SITEINFO, Page, many_pages, multistream, write_as, xml

from ebert.errors import EbertError
from ebert.wikipedia import build_part, dump
from ebert.wikipedia.build import build_corpus
from ebert.wikipedia.corpus import ARRAYS, Corpus
from ebert.wikipedia.wikitext import Anchor, Plain

GOLDEN = [
    Page("Jean Marais", "'''Jean Marais''' was a [[France|French]] [[actor]].\n\nHe is [[Jean marais|the same]].\n"
         "== Life ==\nHe lived in [[Paris]], [[France]].\n== Films ==\n"),
    Page("France", "[[Paris]] is the capital of the [[france]] we know."),
    Page("Actor", "#REDIRECT [[Thespian]]", redirect="Thespian"),
    Page("Jean marais", "#redirect [[Jean Marais#Life]]", redirect="Jean Marais"),
    Page("Talk:France", "Talk about [[France]].", ns=1),
    Page("Empty", ""),
    Page("Only marks", "... !!! {{template}}"),
]  # fmt: skip


@pytest.fixture
def build(tmp_path):
    """Builds a corpus of pages, or of dumps."""
    made = 0

    def make(*given, out=None, **options):
        nonlocal made
        made += 1
        paths = []
        for number, pages in enumerate(given):
            if isinstance(pages, list):
                path = tmp_path / f"dump-{made}-{number}.xml"
                path.write_bytes(xml(pages))
                paths.append(path)
            else:
                paths.append(pages)
        return build_corpus(paths, out or tmp_path / f"corpus-{made}", **{"threads": 1, **options})

    return make


def contents(corpus, but=("seconds", "dumps")):
    """Return everything that is in the folder of a corpus."""
    files = {path.name: path.read_bytes() for path in corpus.path.iterdir()}
    info = json.loads(files.pop("corpus.json"))
    return files | {key: value for key, value in info.items() if key not in but}


def readable(corpus):
    """Return the pages of a corpus: title, paragraphs of words, words of the opening, links as words and title."""
    words, entities = corpus.words, corpus.entities

    def text(start, end):
        return " ".join(words[number] for number in corpus.tokens[start:end])

    pages = []
    for page in range(len(corpus.page_entity)):
        first, last = corpus.page_paragraphs[page : page + 2]
        begin = corpus.paragraphs[first]
        links = range(corpus.page_anchors[page], corpus.page_anchors[page + 1])
        starts, lengths = corpus.anchor_start, corpus.anchor_length
        pages.append((
            entities[corpus.page_entity[page]],
            [text(*corpus.paragraphs[number : number + 2]) for number in range(first, last)],
            text(begin, begin + corpus.page_opening[page]),
            [(text(starts[n], starts[n] + lengths[n]), entities[corpus.anchor_entity[n]]) for n in links],
        ))  # fmt: skip
    return pages


def test_a_corpus_by_hand(build):
    corpus = build(GOLDEN)
    assert readable(corpus) == [
        (
            "Jean Marais",
            ["Jean Marais was a French actor", "He is the same", "He lived in Paris France"],
            "Jean Marais was a French actor He is the same",
            [
                ("French", "France"), ("actor", "Thespian"), ("the same", "Jean Marais"), ("Paris", "Paris"),
                ("France", "France"),
            ],
        ),
        ("France", ["Paris is the capital of the france we know"], "Paris is the capital of the france we know",
         [("Paris", "Paris"), ("france", "France")]),
        ("Only marks", [], "", []),
    ]  # fmt: skip
    assert corpus.entities == ["France", "Paris", "Jean Marais", "Thespian", "Only marks"]
    assert corpus.entity_counts.tolist() == [3, 2, 1, 1, 0]
    assert list(corpus.redirects) == [("Actor", "Thespian"), ("Jean marais", "Jean Marais")]
    assert corpus.info.skipped == {
        "page in another namespace": [1, ["Talk:France"]],
        "page with empty text": [1, ["Empty"]],
        "page without words": [1, ["Only marks"]],
    }


def test_the_arrays_by_hand(build):
    corpus = build([Page("B", "a [[C|b a]]\n\nc\n== H ==\nb"), Page("A", "[[B]]")])
    # b 2, a 2, B 1, c 1: by count, then by word
    assert corpus.words == ["a", "b", "B", "c"]
    assert corpus.entities == ["B", "C", "A"]
    expected = {
        "word_counts": [2, 2, 1, 1],
        "entity_counts": [1, 1, 0],
        "tokens": [0, 1, 0, 3, 1, 2],
        "paragraphs": [0, 3, 4, 5, 6],
        "page_entity": [0, 2],
        "page_paragraphs": [0, 3, 4],
        "page_opening": [4, 1],
        "page_anchors": [0, 1, 2],
        "anchor_start": [1, 5],
        "anchor_length": [2, 1],
        "anchor_entity": [1, 0],
        "surface_occurrences": [1, 1],
        "surface_mentions": [0, 1, 2],
        "mention_entity": [0, 1],
        "mention_count": [1, 1],
    }
    assert corpus.surfaces == ["B", "b a"]
    assert {name: getattr(corpus, name).tolist() for name in ARRAYS} == expected
    assert {name: str(getattr(corpus, name).dtype) for name in ARRAYS} == ARRAYS
    info = corpus.info
    assert (info.pages, info.words, info.vocabulary, info.entities, info.links, info.surfaces) == (2, 6, 4, 3, 2, 2)
    assert (info.language, info.lowercase, info.namespaces, info.redirects) == ("en", False, [0], 0)
    assert info.licence.startswith("CC BY-SA")
    assert info.dumps == [
        {"name": "dump-1-0.xml", "size": len(xml([Page("B", "a [[C|b a]]\n\nc\n== H ==\nb"), Page("A", "[[B]]")]))}
    ]


# The same text, whatever it is packed in.


@pytest.fixture
def small_pieces(monkeypatch):
    monkeypatch.setattr(dump, "PIECE", 3000)
    monkeypatch.setattr(dump, "RANGE", 1500)


def text_of(corpus):
    return sorted(readable(corpus)), sorted(zip(corpus.words, corpus.word_counts.tolist(), strict=True))


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_corpus_from_all_kinds_of_files(build, tmp_path, small_pieces, kind):
    pages = many_pages(80)
    corpus = build(write_as(kind, tmp_path, pages))
    whole = build(pages)
    assert text_of(corpus) == text_of(whole)
    assert len(readable(corpus)) == 80
    if kind not in ("xml", "pbzip2"):  # in these, pages that lie across cuts come last
        assert [page[0] for page in readable(corpus)] == [page.title for page in pages]
    for name in ("entities.txt", "surfaces.txt", "words.txt", "surface_occurrences.npy", "mention_count.npy"):
        assert (corpus.path / name).read_bytes() == (whole.path / name).read_bytes()


@pytest.mark.parametrize("kind", ["bz2", "pbzip2"])  # cut behind pages by the parent, and anywhere by the workers
def test_the_same_corpus_with_one_process_and_with_two(build, tmp_path, small_pieces, kind):
    path = write_as(kind, tmp_path, many_pages(200))
    assert contents(build(path, threads=1)) == contents(build(path, threads=2))


def test_a_page_longer_than_many_pieces(build, monkeypatch):
    monkeypatch.setattr(dump, "PIECE", 500)
    pages = [Page("A", "a b"), Page("Long", "word " * 1000), Page("B", "b a")]
    assert sorted(page[0] for page in readable(build(pages))) == ["A", "B", "Long"]


# Titles, redirects, namespaces.


def test_a_title_in_two_dumps_is_one_entity_with_two_texts(build):
    corpus = build([Page("A", "one [[B]]"), Page("C", "two")], [Page("A", "three [[B]]"), Page("B", "four")])
    assert [(page[0], page[1]) for page in readable(corpus)] == [
        ("A", ["one B"]), ("C", ["two"]), ("A", ["three B"]), ("B", ["four"]),
    ]  # fmt: skip
    assert sorted(corpus.entities) == ["A", "B", "C"]
    assert dict(zip(corpus.entities, corpus.entity_counts.tolist(), strict=True)) == {"A": 0, "B": 2, "C": 0}


def test_redirects_are_followed_to_their_ends(build):
    corpus = build(
        [
            Page("Page", "[[One]] [[Two|2]] [[Three]] [[Page]] [[Loop]] [[Into loop]] [[Self]] [[Lonely]]"),
            Page("One", "#REDIRECT [[Two]]", redirect="Two"),
            Page("Two", "#REDIRECT [[Three]]", redirect="Three"),
            Page("Three", "#REDIRECT [[Page#Part]]", redirect="Page#Part"),
            Page("Unlinked", "#REDIRECT [[Page]]", redirect="Page"),
            Page("Loop", "#REDIRECT [[Loop b]]", redirect="Loop b"),
            Page("Loop b", "#REDIRECT [[Loop]]", redirect="Loop"),
            Page("Into loop", "#REDIRECT [[Loop]]", redirect="Loop"),
            Page("Self", "#REDIRECT [[Self]]", redirect="Self"),
            Page("Nowhere", "#REDIRECT [[Nothing]]", redirect="Nothing"),
            Page("Away", "#REDIRECT [[Category:X]]", redirect="Category:X"),
            Page("Void", "#REDIRECT [[ ]]", redirect=" "),
        ]
    )
    assert list(corpus.redirects) == [("One", "Page"), ("Three", "Page"), ("Two", "Page"), ("Unlinked", "Page")]
    counts = dict(zip(corpus.entities, corpus.entity_counts.tolist(), strict=True))
    assert counts == {"Page": 4, "Loop": 1, "Into loop": 1, "Self": 1, "Lonely": 1}
    skipped = {reason: count for reason, (count, _) in corpus.info.skipped.items()}
    assert skipped == {
        "redirect into a circle": 4, "redirect to a page that is not there": 1, "redirect to another namespace": 1,
        "redirect without a target": 1,
    }  # fmt: skip


def test_a_long_chain_and_a_long_circle(build):
    chain = [Page(f"T{n}", "x", redirect=f"T{n + 1}") for n in range(100)]
    circle = [Page(f"C{n}", "x", redirect=f"C{(n + 1) % 100}") for n in range(100)]
    corpus = build([*chain, *circle, Page("T100", "end")])
    assert dict(corpus.redirects) == {f"T{n}": "T100" for n in range(100)}
    assert corpus.info.skipped["redirect into a circle"][0] == 100


def test_text_wins_over_a_redirect_of_another_dump(build):
    first = [Page("A", "#REDIRECT [[B]]", redirect="B"), Page("Z", "[[A]]"), Page("R", "x", redirect="B")]
    second = [Page("A", "text"), Page("B", "more"), Page("R", "x", redirect="Z")]
    corpus = build(first, second)
    assert dict(zip(corpus.entities, corpus.entity_counts.tolist(), strict=True)) == {"A": 1, "B": 0, "Z": 0}
    assert list(corpus.redirects) == [("R", "B")]  # the first counts
    assert corpus.info.skipped["redirect of a title that has text"] == [1, ["A"]]
    assert corpus.info.skipped["second redirect of one title"] == [1, ["R"]]


def test_other_namespaces_on_request(build):
    pages = [Page("A", "one"), Page("Talk:A", "two [[A]]", ns=1), Page("Category:B", "three", ns=14)]
    assert [page[0] for page in readable(build(pages))] == ["A"]
    corpus = build(pages, namespaces="1,14")
    assert [page[0] for page in readable(corpus)] == ["Talk:A", "Category:B"]
    assert corpus.info.namespaces == [1, 14]


def test_old_schemas_say_neither_namespace_nor_redirect(build, tmp_path):
    (tmp_path / "old.xml").write_bytes(xml(GOLDEN, "0.3"))
    assert contents(build(tmp_path / "old.xml")) == contents(build(GOLDEN))


def test_another_language(build, tmp_path):
    siteinfo = SITEINFO.replace("enwiki", "dewiki").replace("en.wiki", "de.wiki")
    siteinfo = siteinfo.replace(">Talk<", ">Diskussion<").replace(">Category<", ">Kategorie<")
    pages = [
        Page("Köln", "'''Köln''' ist eine [[Stadt]] am [[rhein]]. [[Kategorie:Ort]] [[Datei:x.jpg|mini|Bild]]"),
        Page("Diskussion:Köln", "Nein"),
        Page("Rhein", "#WEITERLEITUNG [[Rhein (Fluss)]]"),
    ]
    (tmp_path / "de.xml").write_bytes(xml(pages, "0.3", "de", siteinfo))
    corpus = build(tmp_path / "de.xml")
    assert corpus.info.language == "de"
    assert [(page[0], page[1][0]) for page in readable(corpus)] == [("Köln", "Köln ist eine Stadt am rhein")]
    assert sorted(corpus.entities) == ["Köln", "Rhein (Fluss)", "Stadt"]
    assert list(corpus.redirects) == [("Rhein", "Rhein (Fluss)")]
    with pytest.raises(EbertError, match="different languages"):
        build(tmp_path / "de.xml", GOLDEN)


# Words of links.


def links_of(build, text, **options):
    return readable(build([Page("A", text)], **options))[0][3]


def test_a_link_covers_every_word_it_touches(build):
    text = "pre[[B|fix]] post[[C|fix]]ed, x[[D|. y .]] z [[E|!]] [[F|1]]2[[G|3]] [[H|北]]京"
    assert links_of(build, text) == [
        ("prefix", "B"), ("postfixed", "C"), ("y", "D"), ("", "E"), ("123", "F"), ("123", "G"), ("北", "H"),
    ]  # fmt: skip


@pytest.mark.parametrize("lowercase", [False, True])
def test_links_that_touch_are_words_of_their_own(build, lowercase):
    text = "[[laos]][[É|é]][[libya]]n\n\n[[mali]] and [[malta]][[nepal]]\n== h ==\n[[oman]][[peru]] end"
    page = readable(build([Page("A", text)], lowercase=lowercase))[0]
    accent = "e" if lowercase else "é"
    assert page[1:3] == (
        [f"laos {accent} libyan", "mali and malta nepal", "oman peru end"],
        f"laos {accent} libyan mali and malta nepal",
    )
    assert [title for _, title in page[3]] == ["Laos", "É", "Libya", "Mali", "Malta", "Nepal", "Oman", "Peru"]
    assert [words for words, _ in page[3]] == ["laos", accent, "libyan", "mali", "malta", "nepal", "oman", "peru"]


def test_links_end_with_their_paragraph_and_are_sorted(build, monkeypatch):
    """Whatever the parser says: what trains on a corpus relies on it."""
    plain = Plain("a bb\nc d", [Anchor(7, 8, "D"), Anchor(2, 6, "B"), Anchor(3, 3, "Nothing"), Anchor(0, 1, "A")], 8)
    monkeypatch.setattr(build_part, "to_plain", lambda source, site: plain)
    corpus = build([Page("P", "x"), Page("Q", "y")])
    links = [("a", "A"), ("bb", "B"), ("", "Nothing"), ("d", "D")]
    assert [page[3] for page in readable(corpus)] == [links, links]
    assert np.all(np.diff(corpus.anchor_start) >= 0)


def test_lowercase_takes_accents_off_and_keeps_links_in_place(build):
    text = "Ünï İstanbul [[B|Çédille Ñ]] ẞ [[C|Ω ﬃ]] ΣΑΣ\n\n== H ==\nÉnd [[D|Dé]]"
    corpus = build([Page("A", text)], lowercase=True)
    page = readable(corpus)[0]
    assert page[1] == ["uni istanbul cedille n ß ω ﬃ σασ", "end de"]
    assert page[2] == "uni istanbul cedille n ß ω ﬃ σασ"
    assert page[3] == [("cedille n", "B"), ("ω ﬃ", "C"), ("de", "D")]
    assert corpus.info.lowercase
    assert readable(build([Page("A", "Plain [[B|ASCII Text]]")], lowercase=True))[0][1:] == (
        ["plain ascii text"], "plain ascii text", [("ascii text", "B")],
    )  # fmt: skip


def test_control_characters_join_words(build):
    assert readable(build([Page("A", "zero\u200bwidth [[B|so\u00adft]] \u200b\u200b x")]))[0][1:] == (
        ["zerowidth soft x"], "zerowidth soft x", [("soft", "B")],
    )  # fmt: skip


# What cannot be used.


def test_pages_that_are_skipped_are_counted(build):
    pages = [
        Page("A", "text"), Page("", "no title"), Page("B", None), Page("C", "{}", model="json"), Page("D", " \n "),
        Page("E", "t", ns=4),
    ]  # fmt: skip
    corpus = build(pages)
    assert corpus.info.skipped == {
        "page in another namespace": [1, ["E"]],
        "page that is not wikitext": [1, ["C"]],
        "page with empty text": [1, ["D"]],
        "page without a title": [1, []],
        "page without text": [1, ["B"]],
    }


def test_examples_are_few(build):
    corpus = build([Page("A", "text"), *(Page(f"E{n}", "") for n in range(50))])
    assert corpus.info.skipped["page with empty text"] == [50, ["E0", "E1", "E2", "E3", "E4"]]


def test_broken_xml_is_counted_not_fatal(build, tmp_path):
    whole = xml([Page("A", "one"), Page("B", "two"), Page("C", "three"), Page("D", "four")])
    whole = whole.replace(b"</page>", b"", 1)  # A never ends
    whole = whole.replace(b"two</text>", b"two")  # the text of B does not
    (tmp_path / "broken.xml").write_bytes(whole[: whole.index(b"four")])  # and D is cut off
    corpus = build(tmp_path / "broken.xml")
    assert [page[0] for page in readable(corpus)] == ["C"]
    assert corpus.info.skipped == {"page that has no end": [2, []], "page without text": [1, ["B"]]}


@pytest.mark.parametrize("pages", [[], [Page("Talk:A", "x", ns=1)], [Page("A", "")], [Page("A", "...")]])
def test_a_dump_without_text_is_an_error_and_leaves_nothing(build, tmp_path, pages):
    with pytest.raises(EbertError, match="there is no text in"):
        build(pages)
    assert [path.name for path in tmp_path.iterdir()] == ["dump-1-0.xml"]


def test_a_corpus_without_links(build):
    corpus = build([Page("A", "one two")])
    assert len(corpus.anchor_start) == len(corpus.mention_entity) == 0
    assert corpus.surfaces == []
    assert corpus.surface_mentions.tolist() == [0]
    assert corpus.entities == ["A"]


def test_the_same_dump_twice_and_no_dump(build, tmp_path):
    (tmp_path / "a.xml").write_bytes(xml(GOLDEN))
    with pytest.raises(EbertError, match="given twice"):
        build(tmp_path / "a.xml", tmp_path / "." / "a.xml")
    with pytest.raises(EbertError, match="at least one dump"):
        build()


def test_null_bytes_and_odd_characters_in_titles_and_words(build):
    corpus = build([Page("A\u2028B", "x\u2028y [[C\u0085D|z]] \x1c")])
    assert len(corpus.entities) == corpus.info.entities
    assert len(corpus.words) == corpus.info.vocabulary == len(corpus.word_counts)


# Opening.


def test_a_folder_that_is_no_corpus(tmp_path, build):
    with pytest.raises(EbertError, match="there is no corpus at"):
        Corpus.open(tmp_path / "nothing")
    with pytest.raises(EbertError, match="is not a corpus"):
        Corpus.open(tmp_path)
    corpus = build(GOLDEN)
    value = json.loads((corpus.path / "corpus.json").read_text())
    for change, message in [({"format": 99}, "upgrade ebert"), ({"pages": None}, None)]:
        (corpus.path / "corpus.json").write_text(json.dumps({**value, **change}))
        if message:
            with pytest.raises(EbertError, match=message):
                Corpus.open(corpus.path)
    (corpus.path / "corpus.json").write_text(json.dumps({"format": 1}))
    with pytest.raises(EbertError, match="damaged"):
        Corpus.open(corpus.path)


@pytest.mark.parametrize("name", ["tokens", "mention_count", "words", "surfaces"])
def test_a_damaged_file_is_named(build, name):
    corpus = build(GOLDEN)
    path = next(corpus.path.glob(f"{name}.*"))
    whole = path.read_bytes()
    for data in (None, b"", whole[:-1]):
        path.unlink(missing_ok=True)
        if data is not None:
            path.write_bytes(data)
        with pytest.raises(EbertError, match="damaged") as caught:
            opened = Corpus.open(corpus.path)
            getattr(opened, name)
        assert path.name in str(caught.value)
    if name in ARRAYS:
        np.save(path, np.zeros(3, np.float32))
        with pytest.raises(EbertError, match="float32"):
            Corpus.open(corpus.path)


def test_arrays_are_mapped(build):
    corpus = build(GOLDEN)
    assert all(isinstance(getattr(corpus, name), np.memmap) for name in ARRAYS)


def test_truncated_multistream_of_wikipedia(build, tmp_path):
    """The last stream is cut off: all others are read."""
    data = multistream(many_pages(50), 10)
    (tmp_path / "a.xml.bz2").write_bytes(data[: -len(bz2.compress(b"</mediawiki>\n")) - 20])
    with pytest.raises(EbertError, match="damaged at about byte"):
        build(tmp_path / "a.xml.bz2", out=tmp_path / "c")
    assert len(readable(build(tmp_path / "a.xml.bz2", out=tmp_path / "c", keep_going=True))) == 40
