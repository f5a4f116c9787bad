"""`ebert.Linker`: what it gives, its folder, own entities, formats, and input that is bad."""

import json
import re
import shutil
import subprocess
import sys
from html import unescape

import linking_tiny as tiny
import numpy as np
import pytest
import torch

import ebert
from ebert import EbertError, Linker, Passage
from ebert.linking.candidates.table import MentionTable
from ebert.linking.document import Choice, Document, Linked, LinkedMention, Scored, Span
from ebert.linking.options import CandidateOptions, LinkerOptions, LinkTrainingOptions
from ebert.linking.output import as_json, lines
from ebert.linking.sequences import BETWEEN, OVERLAPPING

TEXT = tiny.TEXT


@pytest.fixture(autouse=True)
def one_thread():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def everywhere(document):
    """Every word may be England or Cup."""
    choices = (Choice("England", 0.5), Choice("Cup", 0.5))
    return [Span(*match.span(), choices) for match in re.finditer(r"\S+", document.text)]


def test_mentions_have_everything():
    linker = tiny.linker()
    mentions = linker(TEXT).mentions
    assert mentions
    for mention in mentions:
        assert TEXT[mention.start : mention.end] == mention.text
        shares = [one.probability for one in mention.candidates]
        assert shares == sorted(shares, reverse=True)
        assert mention.candidates[0].title == mention.entity
        assert mention.probability == shares[0]
        assert mention.null + sum(shares) == pytest.approx(1)
        assert {one.title: one.prior for one in mention.candidates} == tiny.SURFACES[mention.text]
        scores = np.array([0.0, *(one.score for one in mention.candidates)])  # the null entity's is zero untrained
        assert shares == pytest.approx((np.exp(scores) / np.exp(scores).sum())[1:].tolist(), abs=1e-5)
    platt = next(mention for mention in mentions if mention.text == "Platt")
    assert platt.url == "https://en.wikipedia.org/wiki/" + platt.entity.replace(" ", "_")


def test_a_threshold_leaves_out_the_unsure():
    linker = tiny.linker()
    mentions = linker(TEXT).mentions
    least = sorted(mention.probability for mention in mentions)[1]
    assert [m.text for m in linker(TEXT, threshold=least)] == [m.text for m in mentions if m.probability >= least]
    linker.threshold = least
    assert len(linker(TEXT)) == len(mentions) - 1
    with pytest.raises(EbertError, match="threshold is 2; it is a probability"):
        linker(TEXT, threshold=2)


def test_documents_stream_in_order():
    linker = tiny.linker()
    asked = []

    def texts():
        for number in range(100):
            asked.append(number)
            yield f"Adams and Platt {number}"

    results = linker.stream(texts())
    first = next(results)
    assert first.document.text == "Adams and Platt 0"
    assert len(asked) < 100
    assert [linked.document.id for linked in results] == [str(number) for number in range(2, 101)]


def test_given_mentions_are_all_linked():
    linker = tiny.linker()
    (linked,) = linker.disambiguate([tiny.gold()])
    assert [(m.start, m.end) for m in linked.mentions] == [(m.start, m.end) for m in tiny.gold().gold]
    (other,) = linker.disambiguate([Document("1", TEXT)], [[span for span in tiny.spans(tiny.gold()) if span.start]])
    assert "Adams" not in {mention.text for mention in other.mentions}


@pytest.mark.parametrize("rounds", [1, 3])
def test_given_mentions_that_share_a_wordpiece_are_counted(rounds):
    """A word that the tokenizer does not know is one piece: of two mentions in it one is linked, the other counted."""
    text = "Adams met Αθήνα"
    choices = (Choice("England", 0.5), Choice("Cup", 0.5))
    spans = [Span(0, 5, choices), Span(10, 12, choices), Span(12, 15, choices)]
    linker = tiny.linker()
    (linked,) = linker.disambiguate([Document("1", text)], [spans], rounds=rounds)
    assert [mention.start for mention in linked.mentions] in ([0, 10], [0, 12])
    assert linker.dropped == {OVERLAPPING: 1}


@pytest.mark.parametrize("strategy", ["paper", "packed"])
def test_saved_and_loaded_it_says_the_same(tmp_path, strategy):
    linker = tiny.linker(tmp_path / "store", strategy=strategy)
    with torch.no_grad():
        linker.module.null.normal_()
        linker.module.null_bias.fill_(0.3)
    linker.threshold = 0.1
    linker.save_pretrained(tmp_path / "linker")
    again = Linker.from_pretrained(tmp_path / "linker", generator=tiny.spans)
    assert again.options == linker.options
    assert again.threshold == 0.1
    assert again(TEXT) == linker(TEXT)
    moved = (tmp_path / "store").rename(tmp_path / "elsewhere")
    with pytest.raises(EbertError, match=r"the store of .* is not at"):
        Linker.from_pretrained(tmp_path / "linker")
    assert Linker.from_pretrained(tmp_path / "linker", vectors=moved, generator=tiny.spans)(TEXT) == linker(TEXT)


def test_the_generators_options_are_saved(tmp_path):
    linker = tiny.linker(tmp_path / "store", generator=CandidateOptions(candidates=7))
    linker.save_pretrained(tmp_path / "linker")
    again = Linker.from_pretrained(tmp_path / "linker")
    assert isinstance(again.generator, MentionTable)
    assert again.generator.options.candidates == 7


def test_a_model_folder_is_a_zero_shot_linker(tmp_path):
    model = tiny.model(tmp_path / "store")
    model.save_pretrained(tmp_path / "model", include_vectors=False, include_encoder=True)
    linker = Linker.from_pretrained(tmp_path / "model", generator=tiny.spans)
    assert linker.options.rounds == 1
    assert not linker.module.null.any()
    assert linker.module.null_bias.item() == 0
    assert linker(TEXT)


def test_a_model_links_without_training_as_each_of_the_baselines(tmp_path):
    model = tiny.model(tmp_path / "store")
    model.save_pretrained(tmp_path / "model", include_vectors=False, include_encoder=True)
    ways = [("e-bert-mlm", None), ("e-bert-mlm", "standard"), ("wikipedia2vec-bert-mlm", None),
            ("wikipedia2vec-bert-random", None)]  # fmt: skip
    scores = []
    for variant, mask in ways:
        linker = Linker.from_pretrained(tmp_path / "model", generator=tiny.spans, variant=variant, mask=mask)
        assert (linker.options.rounds, linker.options.link_prior) == (1, False)
        scores.append(
            tuple(round(one.score, 4) for mention in linker(TEXT, threshold=0.0) for one in mention.candidates)
        )
    assert scores[1] == scores[2]  # this model has no W
    assert len(set(scores)) == 3
    linker.save_pretrained(tmp_path / "linker")
    with pytest.raises(EbertError, match="is a trained linker"):
        Linker.from_pretrained(tmp_path / "linker", mask="standard")


def test_what_is_no_linker(tmp_path):
    with pytest.raises(EbertError, match="there is no linker at"):
        Linker.from_pretrained(tmp_path / "nothing")
    (tmp_path / "other").mkdir()
    with pytest.raises(EbertError, match=r"is no linker \(it has no linker\.json\), and no model"):
        Linker.from_pretrained(tmp_path / "other")
    linker = tiny.linker(tmp_path / "store")
    linker.save_pretrained(tmp_path / "linker")
    info = json.loads((tmp_path / "linker" / "linker.json").read_text())
    (tmp_path / "linker" / "linker.json").write_text(json.dumps({**info, "format": 99}))
    with pytest.raises(EbertError, match="linker format 99"):
        Linker.from_pretrained(tmp_path / "linker")
    (tmp_path / "linker" / "linker.json").write_text(json.dumps({"format": 1}))
    with pytest.raises(EbertError, match="is damaged"):
        Linker.from_pretrained(tmp_path / "linker")
    (tmp_path / "linker" / "linker.json").write_text(json.dumps(info))
    (tmp_path / "linker" / "weights.safetensors").write_bytes(b"no weights")
    with pytest.raises(EbertError, match="cannot be loaded"):
        Linker.from_pretrained(tmp_path / "linker")


def test_own_entities_are_linked_at_once(tmp_path):
    linker = tiny.linker(tmp_path / "store", generator=None)
    assert linker("Zorblax and Platt are both injured").mentions == ()
    vector = linker.vectors["England"]
    entity = linker.add("Zorblax Inc.", vector, surfaces=["Zorblax"])
    assert entity.added
    (linked,) = linker.disambiguate([Document("1", "Zorblax and Platt", (ebert.Mention(0, 7, "Zorblax Inc."),))])
    (mention,) = linked.mentions
    assert (mention.text, mention.entity, mention.url) == ("Zorblax", "Zorblax Inc.", None)
    with pytest.raises(EbertError, match="was not added"):
        linker.add("Zorblax Inc.", -vector)
    linker.add("Blorbo Inc.", vector, surfaces="Blorbo")  # one surface, not its letters
    assert [span.choices[0].title for span in linker.generator(Document("1", "B and Blorbo"))] == ["Blorbo Inc."]


@pytest.mark.parametrize("link_prior", [True, False])
def test_own_entities_with_an_ordinary_name_are_linked_at_once(tmp_path, link_prior):
    """The word stands 300 times in the corpus, never as a link; the linker links whatever it is asked about."""
    random = np.random.default_rng(0)
    vectors = ebert.Vectors.from_arrays(
        words=["and", "Slack"], word_vectors=random.normal(size=(2, tiny.WIDTH)), word_counts=[1000, 300],
        entities=["England"], entity_vectors=random.normal(size=(1, tiny.WIDTH)), path=tmp_path / "store",
    )  # fmt: skip
    linker = tiny.linker(tmp_path / "store", generator=None, link_prior=link_prior)
    linker.null_shift = -4.0
    assert linker("Slack and Platt").mentions == ()
    linker.add("Slack Ltd", vectors["England"], surfaces=["Slack"])
    (mention,) = linker("Slack and Platt")
    assert (mention.start, mention.end, mention.entity) == (0, 5, "Slack Ltd")
    assert mention.candidates[0].prior == 1.0


@pytest.mark.parametrize("text", ["", " \n\t ", "no names here", "😀"])
def test_nothing_to_link(text):
    linker = tiny.linker()
    assert linker(text).mentions == ()
    (linked,) = linker.link([Document("1", text)])
    assert linked.mentions == ()


def test_one_text_gives_one_result_and_a_list_a_list():
    linker = tiny.linker()
    one = linker(TEXT)
    assert one.mentions == tuple(one)
    assert len(one) == len(one.mentions) > 0
    two = linker.link([TEXT, Document("own", "Adams")])
    assert [linked.document for linked in two] == [one.document, Document("own", "Adams")]
    assert [m.entity for m in two[0]] == [m.entity for m in one]
    assert linker([]) == list(linker.stream([])) == []


def test_what_ends_the_linking_is_called_before_each_batch():
    class Stop(Exception):
        pass

    calls = []

    def stop():
        calls.append(len(calls))
        if len(calls) == 3:
            raise Stop

    linker = tiny.linker()
    with pytest.raises(Stop):
        linker([TEXT] * 9, budget=1, before_batch=stop)
    assert calls == [0, 1, 2]


def test_a_folder_with_its_store_can_be_moved(tmp_path):
    linker = tiny.linker(tmp_path / "store", generator=CandidateOptions())
    linker.add("Zorblax Inc.", linker.vectors["England"], surfaces=["Zorblax"])
    linker.null_shift = -4.0
    linker.save_pretrained(tmp_path / "linker", include_vectors=True)
    shutil.rmtree(tmp_path / "store")
    moved = (tmp_path / "linker").rename(tmp_path / "moved")
    info = json.loads((moved / "linker.json").read_text())
    (moved / "linker.json").write_text(json.dumps({**info, "saved_here": ""}))  # as from another machine
    again = Linker.from_pretrained(moved)
    assert [mention.entity for mention in again("Zorblax and Platt")] == ["Zorblax Inc."]
    assert repr(again).startswith("Linker('tiny', e-bert-mlm, packed, rounds=3, vectors=")


def test_a_span_of_600_wordpieces_is_counted_and_the_rest_is_linked():
    text = "Adams " + "a" * 90 + " " + " ".join(["both"] * 510) + " will miss England"
    whole = Span(0, len(text), (Choice("Cup", 1.0),))
    linker = tiny.linker(generator=lambda document: [whole, *tiny.spans(document)], longest=128, chunk=128)
    spans = linker.generator(Document("1", text))
    (linked,) = linker.disambiguate([Document("1", text)], [spans])
    found = {mention.text for mention in linked.mentions}
    assert found == {"Adams", "England"}
    assert linker.dropped == {BETWEEN: 1}


@pytest.mark.parametrize(
    "text",
    [
        "😀😀 Adams 👩‍👩‍👧 and Platt 🇬🇧 will",
        "שלום Adams وداعا Platt",
        "e\u0301a Adams \u202bPlatt\u202c",
        "Adams\r\nPlatt\tAdams",
    ],
)
def test_offsets_stay_right(text):
    for strategy in ("paper", "packed"):
        linker = tiny.linker(generator=everywhere, strategy=strategy)
        spans = everywhere(Document("1", text))
        (chunk,) = linker.chunks([Document("1", text)])
        pieces = linker.tokenizer.convert_ids_to_tokens(chunk.ids)
        cut = [(text[p.span.start : p.span.end], pieces[p.first : p.stop]) for p in chunk.spans]
        assert cut == [(word, linker.tokenizer.tokenize(word)) for word in text.split()]
        assert ("Adams", ["Adams"]) in cut
        assert ["P", "##latt"] in [own for _, own in cut]
        assert [piece for _, own in cut for piece in own] == pieces  # every piece is of one span
        (linked,) = linker.disambiguate([Document("1", text)], [spans])
        assert [(m.start, m.end) for m in linked.mentions] == [(s.start, s.end) for s in spans]
        assert [m.text for m in linked.mentions] == text.split()
        again = Passage.parse("".join(lines([linked], "brackets")).removesuffix("\n"))
        assert again.text == text
        assert [(m.start, m.end, m.entity) for m in again.mentions] == [
            (m.start, m.end, m.entity) for m in linked.mentions
        ]


def test_a_broken_character_is_named():
    with pytest.raises(EbertError, match="the text is not UTF-8"):
        tiny.linker()("Adams \ud800")


def linked(text, *mentions):
    made = [
        LinkedMention(start, end, text[start:end], title, 0.75, 0.25, (Scored(title, 1.0, 1.0986, 0.75),), url)
        for start, end, title, url in mentions
    ]
    return Linked(Document("a<b", text), tuple(made))


def test_json_lines():
    one = linked("Café 😀 Rome", (7, 11, "Rome", "https://en.wikipedia.org/wiki/Rome"))
    (line,) = lines([one], "jsonl")
    assert line.endswith("\n")
    assert json.loads(line) == as_json(one) == {
        "id": "a<b",
        "text": "Café 😀 Rome",
        "mentions": [
            {
                "start": 7, "end": 11, "text": "Rome", "entity": "Rome", "wikidata": None, "id": None,
                "url": "https://en.wikipedia.org/wiki/Rome", "probability": 0.75, "null_probability": 0.25,
                "candidates": [{"entity": "Rome", "prior": 1.0, "score": 1.0986, "probability": 0.75}],
            }
        ],
    }  # fmt: skip


def test_html_is_escaped_and_keeps_the_text():
    text = "<b>Rome</b> & 'O\"Neill'"
    one = linked(text, (3, 7, "Rome & <i>'", "https://en.wikipedia.org/wiki/R'x"), (15, 22, "Mine", None))
    page = "".join(lines([one], "html"))
    body = re.search(r"<article[^>]*>(.*)</article>", page, re.DOTALL)[1]
    assert unescape(re.sub(r"</?(mark|a)[^>]*>", "", body)) == text
    assert page.count("<mark ") == 2
    assert page.count("<a href=") == 1
    assert "<i>" not in page
    assert "title='Rome &amp; &lt;i&gt;&#x27;\nRome &amp; &lt;i&gt;&#x27;: 75.0%\nno entity: 25.0%'" in page
    assert "data-entity='Mine'" in page  # which is what print shows
    assert page.startswith("<!doctype html>")
    assert page.endswith("</html>\n")


def test_brackets():
    one = linked("Adams and [Platt]", (0, 5, "Tony Adams", None), (11, 16, "Platt", None))
    assert "".join(lines([one], "brackets")) == "[[Tony Adams|Adams]] and \\[[[Platt]]]\n"
    own = linked("Quux", (0, 4, "A|B", None))  # a title that markup cannot have
    assert "".join(lines([own], "brackets")) == "[[A¦B|Quux]]\n"
    with pytest.raises(EbertError, match="unknown format 'xml'"):
        list(lines([one], "xml"))


@pytest.mark.parametrize(
    ("kind", "bad", "message"),
    [
        (LinkerOptions, {"strategy": "fast"}, "unknown strategy 'fast'"),
        (LinkerOptions, {"mask": "none"}, "unknown mask 'none'"),
        (LinkerOptions, {"rounds": 0}, "rounds is 0"),
        (LinkTrainingOptions, {"nulls": 0.0}, "nulls is 0.0"),
        (LinkTrainingOptions, {"learning_rate": -1.0}, "learning-rate is -1.0"),
        (LinkTrainingOptions, {"batch": 0}, "batch is 0"),
    ],
)
def test_bad_options(kind, bad, message):
    with pytest.raises(EbertError, match=message):
        kind(**bad)


def test_a_plain_encoder_cannot_link():
    with pytest.raises(EbertError, match="a linker needs entity vectors"):
        Linker.fresh(ebert.EBert(tiny.encoder()))


def test_the_public_name_loads_nothing_heavy():
    code = "import sys, ebert; assert 'Linker' in dir(ebert); assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
    assert ebert.Linker is Linker
