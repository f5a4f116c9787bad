"""Training documents from Wikipedia's links, the names of gold, and the prior alone."""

import json
from dataclasses import replace

import corpora
import link_world
import numpy as np
import pytest

from ebert.errors import EbertError
from ebert.linking.candidates.table import MentionTable
from ebert.linking.document import Document
from ebert.linking.evaluate import judge, read_scores
from ebert.linking.options import CandidateOptions, PriorOptions, WikipediaOptions
from ebert.linking.prior import PriorLinker, chosen, tune
from ebert.linking.readers.layouts import Label, Labelled, read
from ebert.linking.resolve import TitleResolver
from ebert.linking.styles import bare, headline, in_styles, lower_case
from ebert.linking.wikipedia import HELD_OUT, INFO, TRAIN, Article, documents, from_corpus, from_dumps, prepare, prose
from ebert.text.passage import Mention
from ebert.wikipedia.wikitext import Anchor

MANY = WikipediaOptions(min_links=1)


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return link_world.write_store(tmp_path_factory.mktemp("stores") / "store")


@pytest.fixture(scope="module")
def generator(store):
    return MentionTable(store, CandidateOptions(min_link_probability=0.0))


def article(title, marked):
    """Make an article of text with links written [[Title|words]]."""
    text, anchors = "", []
    for part in marked.split("[["):
        inside, closed, after = part.partition("]]")
        if closed:
            entity, _, words = inside.partition("|")
            anchors.append(Anchor(len(text), len(text) + len(words or entity), entity))
            text += words or entity
            part = after
        text += part
    return Article(title, text, tuple(anchors))


def made(generator, store, title, marked, **options):
    [document] = documents(
        [article(title, marked)], generator, TitleResolver(store), WikipediaOptions(**{"min_links": 1, **options})
    )
    words = lambda spans: [document.text[start:end] for start, end in spans]  # noqa: E731
    return document, [(document.text[m.start : m.end], m.entity) for m in document.gold], words(document.ignore)


PAD = " while some other words that mean nothing at all are standing here and there too."


def test_later_mentions_take_the_entity(generator, store):
    text = "England won and then [[England national football team|England]] lost again before England drew" + PAD
    document, gold, ignore = made(generator, store, "History", text)
    assert gold == [("England", "England national football team")] * 2
    assert ignore == ["England"]  # the one before the link: who knows what it means
    assert [m.start for m in document.gold] == [21, 47]


def test_unlinked_spans_that_usually_are_links_are_left_out(generator, store):
    """London (0.25) is left out of the loss, Adams (0.1) just so; 'injured' (0.01) is taught as nothing."""
    text = "[[Cairo]] was seen by Adams near London when somebody was injured badly" + PAD
    _, gold, ignore = made(generator, store, "History", text)
    assert gold == [("Cairo", "Cairo")]
    assert ignore == ["Adams", "London"]


def test_later_mentions_of_rare_links_are_left_out(generator, store):
    text = "[[Injury|injured]] men of [[Cairo]] were injured again by others" + PAD
    _, gold, ignore = made(generator, store, "History", text, later=0.02, names=False)
    assert gold == [("injured", "Injury"), ("Cairo", "Cairo")]
    assert ignore == ["injured"]


def test_only_names_are_labelled(generator, store):
    """What is usually linked in lower case is nothing; a name that is rarely a link is left out, but for its first."""
    text = "Nirvana and [[Injury|injured]] men of [[Cairo]] saw injured men and Nirvana again. Nirvana left" + PAD
    _, gold, ignore = made(generator, store, "History", text, usual=0.9)
    assert gold == [("Cairo", "Cairo")]
    assert ignore == ["Nirvana"]
    _, gold, ignore = made(generator, store, "History", text, usual=0.9, names=False)
    assert (gold, ignore) == ([("injured", "Injury"), ("Cairo", "Cairo")], ["injured"])


def test_names_inside_longer_ones_are_not_later_mentions(generator, store):
    text = "[[London]] has a school, the University of London, and also London itself" + PAD
    _, gold, ignore = made(generator, store, "History", text)
    assert gold == [("London", "London")] * 2
    assert ignore == ["University of London"]


def test_dates_are_left_out(generator, store):
    """Early Wikipedia linked every date, which nobody wants a linker to do."""
    _, gold, ignore = made(generator, store, "History", "[[Cairo]] on [[May 4]], [[1998]], and nothing more" + PAD)
    assert gold == [("Cairo", "Cairo")]
    assert ignore == ["May 4", "1998"]


def test_names_of_the_articles_own_subject_are_labelled(generator, store):
    text = "Platt and [[David Platt (footballer)|Platt]] and [[Cairo]] and Platt again" + PAD
    _, gold, ignore = made(generator, store, "David Platt (footballer)", text)
    assert gold[2:3] == [("Cairo", "Cairo")]
    assert [entity for words, entity in gold if words == "Platt"] == ["David Platt (footballer)"] * 3
    assert ignore == []


def test_a_noun_that_is_the_subject_is_left_out(generator, store):
    """The article on injuries does not say which of its words an editor would link."""
    _, gold, ignore = made(generator, store, "Injured", "[[Cairo]] had many injured people" + PAD, names=False)
    assert gold == [("Cairo", "Cairo")]
    assert ignore == ["injured"]


def test_a_part_of_a_name_means_what_the_name_was_linked_to(generator, store):
    """Adams (prior 0.6 for Tony Adams) is a part of the title that was linked; before the link nobody knows."""
    text = "Adams met [[Tony Adams (footballer)|Tony A. Adams]], and Adams won in London" + PAD
    document, gold, ignore = made(generator, store, "History", text, usual=0.05)
    assert gold == [("Tony A. Adams", "Tony Adams (footballer)"), ("Adams", "Tony Adams (footballer)")]
    assert document.gold[1].start > document.gold[0].start
    assert ignore == ["Adams", "London"]


def test_a_part_of_a_name_that_seldom_means_it_is_left_out(generator, store):
    text = "[[Adams County, Mississippi]] is old, and Adams won" + PAD
    _, gold, _ = made(generator, store, "History", text, part=0.2)
    assert gold == [("Adams County, Mississippi", "Adams County, Mississippi")]


def test_titles_become_those_of_the_store(generator, store):
    _, gold, _ = made(generator, store, "History", "[[tony_Alexander_Adams|Adams]] and [[Unknown Person|him]]" + PAD)
    assert gold == [("Adams", "Tony Adams (footballer)"), ("him", "Unknown Person")]


def test_articles_with_too_few_links_are_passed_over(generator, store):
    assert (
        list(documents([article("A", "[[Cairo]] alone" + PAD)], generator, TitleResolver(store), WikipediaOptions()))
        == []
    )


def test_prose_only():
    """Headings and rows of tables are no prose; links keep their places; a document ends with a paragraph."""
    text = (
        "short line\n"
        "[[Rome]] : [[Oslo]] ; [[Cairo]] : [[Rome]] ; [[Rome]] : [[Oslo]] ; [[Cairo]] and so on it goes now\n"
        "This is a paragraph about [[Cairo]] with enough words in it to be taken for real prose.\n"
        "And this is one more of them, about [[Oslo]], which does not fit into the document any more."
    )
    found, anchors = prose(article("A", text), 20)
    assert found.startswith("This is a paragraph")
    assert found.endswith("real prose.")
    assert [(found[a.start : a.end], a.title) for a in anchors] == [("Cairo", "Cairo")]


def test_long_paragraphs_are_cut_behind_a_sentence():
    text = (
        "The first sentence of it has nine words here. "
        + "The second about [[Cairo]] is very much longer than that. " * 3
    )
    found, anchors = prose(article("A", text.strip()), 12)
    assert found == "The first sentence of it has nine words here."
    assert anchors == ()
    endless, _ = prose(article("A", "word " * 50), 12)
    assert len(endless.split()) == 12


def test_articles_of_a_corpus(world):
    found = list(from_corpus(world, [0, 3]))
    assert found[0].title == "Paris 0"
    first = found[0].anchors[0]
    assert found[0].text[first.start : first.end] == first.title == "France"
    assert found[0].text.split("\n")[0] == "Paris 0 is the capital of France where cheese is eaten"
    for one in found:
        assert [one.text[a.start : a.end] for a in one.anchors] == [a.title for a in one.anchors] != []


DUMP = """<mediawiki><page><title>{}</title><ns>0</ns><revision><text>{}</text></revision></page>
<page><title>Other</title><ns>0</ns><revision><text>[[Rome]]</text></revision></page></mediawiki>"""


def test_articles_of_dumps_have_punctuation(tmp_path):
    path = tmp_path / "dump.xml"
    path.write_text(DUMP.format("Paris", "'''Paris''', in [[France|the country]]: a city."), "utf-8")
    [found] = from_dumps([path], {"Paris"})
    assert (found.title, found.text) == ("Paris", "Paris, in the country: a city.")
    assert [(a.start, a.end, a.title) for a in found.anchors] == [(10, 21, "France")]


def test_prepare(tmp_path):
    """A folder of documents; test articles are neither in the training documents nor in those held out."""
    rng = np.random.default_rng(0)
    pages = []
    for number in range(20):
        filler = [f"w{n}" for n in rng.integers(0, 9, 30)]
        links = [(["England"], "England"), "and", (["Adams"], "John Adams"), "and", (["London"], "London")]
        pages.append((f"Page {number}", [[*filler, *links, (["Cairo"], "Cairo"), *filler, (["NATO"], "NATO"), "said"]]))
    corpus = corpora.write_corpus(tmp_path / "corpus", pages)
    store = link_world.write_store(tmp_path / "store")
    out = tmp_path / "documents"
    info = prepare(
        corpus, store, out, options=WikipediaOptions(documents=8, held_out=2), leave_out=["Page 3", "page_5", "Nothing"]
    )
    assert info["left_out"] == ["Page 3", "Page 5"]
    train, held = read(out / TRAIN).documents, read(out / HELD_OUT).documents
    assert (len(train), len(held)) == (8, 2)
    assert all(d.title == d.id for d in held)
    names = {d.id for d in train} | {d.id for d in held}
    assert len(names) == 10
    assert not names & {"Page 3", "Page 5"}
    assert all(len(d.labels) >= 4 for d in train)
    assert json.loads((out / INFO).read_text())["amounts"]["documents"] == 8
    with pytest.raises(EbertError, match="exists"):
        prepare(corpus, store, out)
    other = tmp_path / "other.xml"
    other.write_text("<mediawiki></mediawiki>")
    with pytest.raises(EbertError, match=r"enough linked prose to train on; are other\.xml the dumps of the corpus"):
        prepare(corpus, store, tmp_path / "nothing", dumps=[other])
    assert not (tmp_path / "nothing").exists()


# Names of gold


def test_resolving(store):
    resolver = TitleResolver(store, {312: "https://en.wikipedia.org/wiki/Cairo"})
    assert resolver.title(("Q21", "anything")) == "England"  # an id that the store knows
    assert resolver.title(("Q312", "London")) == "Cairo"  # an id of the list goes before a name, which may mislead
    assert TitleResolver(store, {312: "Apple Inc."}).title(("Q312", "London")) is None  # known, and not in the store
    assert resolver.title(("Q999", "tony_Alexander_Adams")) == "Tony Adams (footballer)"  # by name, a redirect
    assert resolver.title(("https://en.wikipedia.org/wiki/John_Adams",)) == "John Adams"
    assert resolver.title(("Q999", "Nobody")) is None
    assert resolver.same("nobody_at all") == resolver.same("Nobody at all") == "Nobody at all"


def test_a_page_that_is_called_like_an_id(tmp_path):
    """In Wikipedia, Q60 is a bus of New York City, which has that id in Wikidata."""
    entities = [*link_world.ENTITIES, "Q84", "Q999"]
    resolver = TitleResolver(link_world.write_store(tmp_path / "store", entities=entities), {7: "Cairo"})
    assert resolver.title(("Q84", "anything")) == resolver.title(("Q84",)) == "London"
    assert resolver.title(("Q999", "England")) == "England"
    assert resolver.title(("Q999",)) == "Q999"  # there is nothing else that it could mean
    assert [resolver.same(title) for title in ("Q84", "Q999", "London")] == ["Q84", "Q999", "London"]
    assert resolver.same("Q7") == "Q7"  # a link, not a label


def test_unresolved_gold_is_missed_and_counted(store):
    labelled = Labelled("1", "Adams met Nemo", (Label(0, 5, ("John_Adams",)), Label(10, 14, ("Q999", "Nemo"))))
    resolver = TitleResolver(store)
    found = resolver.documents([labelled])
    assert (found.gold, found.missing, found.unresolved) == (2, 1, {"Nemo": 1})
    assert found.documents[0].gold == (Mention(0, 5, "John Adams"), Mention(10, 14, "Nemo"))
    labelled = Labelled("2", "Adams sings", (Label(0, 5, ("Q7", "John Adams")),))  # called so, and somebody else
    found = TitleResolver(store, {7: "John Adams (composer)"}).documents([labelled])
    assert (found.missing, found.documents[0].gold) == (1, (Mention(0, 5, "John Adams (composer)"),))


# The prior alone


def test_prior_links_the_likeliest(store, generator):
    """World Cup has link probability 0.5, England 0.3, Platt 0.2, Adams 0.1 and 'opening' 0.001."""
    document = Document("1", link_world.TEXT)
    [linked] = PriorLinker(generator, PriorOptions(threshold=0.15)).stream([document])
    assert [(m.text, m.entity) for m in linked.mentions] == [
        ("Platt", "David Platt (footballer)"), ("England", "England"), ("World Cup", "FIFA World Cup"),
    ]  # fmt: skip
    platt = linked.mentions[0]
    assert (platt.probability, platt.null) == (pytest.approx(0.2 * 0.75), pytest.approx(0.8))
    [linked] = PriorLinker(generator, PriorOptions(threshold=0.1)).stream([document])
    assert linked.mentions[-1].text == "World Cup qualifier"  # the longest of those that overlap
    [linked] = PriorLinker(generator, PriorOptions(threshold=0.1, rule="probability")).stream([document])
    assert linked.mentions[-1].text == "World Cup"


def test_overlaps(generator):
    spans = generator(Document("1", "the University of London"))
    assert [(s.start, s.end) for s in chosen(spans, 0.0, "longest")] == [(4, 24)]


def test_tuning_finds_the_best_threshold(generator):
    """Only England (0.3) and World Cup (0.5) are gold: thresholds above 0.2, where Platt is out, are right."""
    gold = (Mention(47, 54, "England"), Mention(65, 74, "FIFA World Cup"))
    found = tune(generator, [Document("1", link_world.TEXT, gold)])
    assert found.f1 == 100
    assert 0.2 < found.options.threshold <= 0.3
    assert len(found.tried) == 40


def test_judging_with_and_without_given_mentions(store, generator):
    gold = (
        Mention(0, 5, "Tony Alexander Adams"), Mention(10, 15, "Platt (Florida)"), Mention(47, 56, "England"),
        Mention(57, 64, "Nobody"),
    )  # fmt: skip
    document = Document("1", link_world.TEXT, gold)
    linker = PriorLinker(generator, PriorOptions(threshold=0.1))
    found = judge(linker, [document], TitleResolver(store))
    # Adams (a redirect to him) is right, Platt is not, England's span is another, World Cup qualifier is not gold.
    assert (found.counts.gold, found.counts.predicted, found.counts.correct) == (4, 4, 1)
    assert found.candidate_recall == 2 / 4
    given = judge(linker, [document], TitleResolver(store), given_mentions=True)
    assert (given.counts.predicted, given.counts.correct) == (4, 2)
    assert given.candidate_recall == 3 / 4
    assert given.known.gold == 3
    value = given.value(per_document=True)
    assert read_scores(value, "x").counts == given.counts
    with pytest.raises(EbertError, match="per document"):
        read_scores({}, "x")


def test_documents_without_anything(store, generator):
    found = judge(PriorLinker(generator), [Document("1", ""), Document("2", "none")], TitleResolver(store))
    assert found.counts.f1 == 1
    assert found.candidate_recall is None


# Styles

STYLED = Document(
    "1",
    "Dr. O'Neil's İzmir trip. NATO met.",
    (Mention(4, 10, "O'Neil"), Mention(13, 18, "İzmir"), Mention(25, 29, "NATO")),
    ignore=((0, 3),),
)


@pytest.mark.parametrize(
    ("style", "text", "words", "ignored"),
    [
        (lower_case, "dr. o'neil's İzmir trip. nato met.", ["o'neil", "İzmir", "nato"], "dr."),
        (bare, "dr oneils İzmir trip nato met", ["oneil", "İzmir", "nato"], "dr"),
        (headline, "DR. O'Neil's İzmir trip. NATO met.", ["O'Neil", "İzmir", "NATO"], "DR."),
    ],
)
def test_a_document_in_another_style_keeps_its_labels(style, text, words, ignored):
    styled = style(STYLED)
    assert styled.text == text
    assert [text[m.start : m.end] for m in styled.gold] == words
    assert [m.entity for m in styled.gold] == ["O'Neil", "İzmir", "NATO"]
    assert [text[start:end] for start, end in styled.ignore] == [ignored]


def test_a_share_of_the_documents_is_in_another_style():
    documents = [replace(STYLED, id=str(number)) for number in range(200)]
    styled = list(in_styles(documents, 0.25, seed=0))
    changed = [one.id for one, before in zip(styled, documents, strict=True) if one != before]
    assert 30 < len(changed) < 70
    assert len({one.text for one in styled}) == 4
    assert list(in_styles(documents[::-1], 0.25, seed=0))[::-1] == styled
    assert list(in_styles(documents, 0.0, seed=0)) == documents
