"""LinkEvaluation against numbers computed by hand."""

import pytest

from ebert.errors import EbertError
from ebert.linking.document import Choice, Document, Span
from ebert.linking.evaluate import Counts, LinkEvaluation, difference, score
from ebert.text.passage import Mention

TEXT = "Adams and Platt play for England in London"
GOLD = (Mention(0, 5, "Tony Adams"), Mention(10, 15, "David Platt"), Mention(25, 32, "England"))
DOCUMENT = Document("1", TEXT, GOLD)


def test_strong_match():
    """Right are those with the same start, the same end and the same entity: one of three links, one of three gold."""
    links = [Mention(0, 5, "Tony Adams"), Mention(10, 15, "Platt (Florida)"), Mention(24, 32, "England")]
    counts = score(DOCUMENT, links).counts
    assert counts == Counts(gold=3, predicted=3, correct=1)
    links.append(Mention(36, 42, "London"))
    counts = score(DOCUMENT, links).counts
    assert (counts.precision, counts.recall) == (1 / 4, 1 / 3)
    assert counts.f1 == pytest.approx(2 * (1 / 4) * (1 / 3) / (1 / 4 + 1 / 3))


def test_redirects_are_equal():
    same = {"Tony Alexander Adams": "Tony Adams"}
    counts = score(DOCUMENT, [Mention(0, 5, "Tony Alexander Adams")], same=lambda name: same.get(name, name)).counts
    assert counts.correct == 1


def test_micro_and_macro():
    """Micro F1 is 2 * 3 / (4 + 5); macro is the mean of 2 * 1 / (1 + 1), 2 * 2 / (3 + 4), and 1 for nothing."""
    one = score(Document("1", TEXT, GOLD[:1]), [GOLD[0]])
    links = [GOLD[0], GOLD[1], Mention(25, 32, "London"), Mention(36, 42, "London")]
    two = score(DOCUMENT, links)
    empty = score(Document("3", TEXT), [])
    found = LinkEvaluation((one, two, empty))
    value = found.value()
    assert value["micro"]["f1"] == pytest.approx(100 * 6 / 9)
    assert value["micro"]["precision"] == pytest.approx(100 * 3 / 5)
    assert value["micro"]["recall"] == pytest.approx(100 * 3 / 4)
    assert value["macro"]["f1"] == pytest.approx(100 * (1 + 4 / 7 + 1) / 3)
    assert value["macro"]["precision"] == pytest.approx(100 * (1 + 2 / 4 + 1) / 3)
    assert (value["gold"], value["predicted"], value["correct"], value["documents"]) == (4, 5, 3, 3)


def test_a_link_where_nothing_is_costs_precision():
    counts = score(Document("1", TEXT), [Mention(0, 5, "Tony Adams")]).counts
    assert (counts.precision, counts.recall, counts.f1) == (0, 0, 0)


def test_spans_that_are_left_out_are_not_judged():
    document = Document("1", TEXT, GOLD[:1], ignore=((0, 20), (36, 42)))
    links = [GOLD[0], Mention(10, 15, "David Platt"), Mention(36, 42, "London"), Mention(25, 32, "England")]
    assert score(document, links).counts == Counts(gold=1, predicted=2, correct=1)
    ignored = document.ignoring()
    assert ignored(10, 15)
    assert not ignored(0, 5)  # gold is judged wherever it stands
    assert not ignored(18, 22)  # not inside


def test_candidate_recall_and_vocabulary():
    spans = [
        Span(0, 5, (Choice("John Adams", 0.6), Choice("Tony Adams", 0.4))),
        Span(10, 15, (Choice("Platt (Florida)", 1.0),)),
        Span(24, 32, (Choice("England", 1.0),)),
    ]
    links = [GOLD[0], Mention(10, 15, "Platt (Florida)")]
    found = score(DOCUMENT, links, spans=spans, known=lambda name: name != "David Platt")
    assert (found.reachable, found.spans) == (1, 3)
    # David Platt is not in the vocabulary: neither he nor the link at his place counts.
    assert found.known == Counts(gold=2, predicted=1, correct=1)
    value = LinkEvaluation((found,)).value(per_document=True)
    assert value["candidate_recall"] == pytest.approx(100 / 3)
    assert value["in_vocabulary"] == {
        "micro": {"precision": 100.0, "recall": 50.0, "f1": pytest.approx(200 / 3)}, "gold": 2,
    }  # fmt: skip
    assert value["per_document"] == [{"id": "1", "gold": 3, "predicted": 2, "correct": 1, "reachable": 1, "spans": 3}]


def test_bootstrap():
    """Where one linker is right in every document and the other in none, every resample has the whole difference."""
    documents = [Document(str(n), TEXT, GOLD) for n in range(20)]
    right = LinkEvaluation(tuple(score(d, list(GOLD)) for d in documents))
    wrong = LinkEvaluation(tuple(score(d, [Mention(0, 5, "John Adams")]) for d in documents))
    found = difference(right, wrong, resamples=50)
    assert (found.value, found.low, found.high, found.clear) == (100, 100, 100, True)
    assert difference(right, right, resamples=50).clear is False


def test_bootstrap_of_an_even_match_spans_zero():
    documents = [Document(str(n), TEXT, GOLD) for n in range(30)]
    one = LinkEvaluation(tuple(score(d, list(GOLD) if n % 2 else []) for n, d in enumerate(documents)))
    other = LinkEvaluation(tuple(score(d, [] if n % 2 else list(GOLD)) for n, d in enumerate(documents)))
    found = difference(one, other, resamples=300)
    assert found.value == pytest.approx(0)
    assert found.low < 0 < found.high
    assert difference(one, other, resamples=300) == found


def test_only_the_same_documents_are_compared():
    one, other = (LinkEvaluation((score(Document(name, TEXT, GOLD), []),)) for name in "ab")
    with pytest.raises(EbertError, match="same documents"):
        difference(one, other)


def test_two_links_at_one_place():
    with pytest.raises(EbertError, match="two links"):
        score(DOCUMENT, [Mention(0, 5, "a"), Mention(0, 5, "b")])


def test_gold_must_not_overlap():
    with pytest.raises(EbertError, match=r"document '7'.*overlaps"):
        Document("7", TEXT, (Mention(0, 5, "a"), Mention(3, 8, "b")))
