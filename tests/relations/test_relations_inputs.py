"""What the encoder sees: the appendix's example piece by piece, entities found in every way, long sentences."""

import numpy as np
import pytest

from ebert import EBert, EbertError, Vectors
from ebert.relations.classifier import RelationClassifier
from ebert.relations.data import Sample, SampleResolver, parse
from ebert.relations.data import SampleSpan as Span
from ebert.relations.inputs import Inputs
from ebert.relations.options import ResolvingOptions
from ebert.relations.train import LengthSampler
from ebert.vectors.writer import writing

TEXT = "Taylor was later part of the ensemble cast in MGM 's classic World War II drama `` Battleground '' ( 1949 ) ."
# BERT's tokenizer splits the quotes and 's, which the paper's example leaves whole.
HEAD = "[CLS] Taylor was later part of the ensemble cast in MGM ' s classic"
TAIL = "' ' ( 1949 ) . [SEP]"


def example(subject="Battleground (film)", object_="World War II"):
    def span(words, entity):
        return Span(TEXT.index(words), TEXT.index(words) + len(words), entity)

    return Sample(TEXT, span("Battleground", subject), span("World War II", object_), "P921")


@pytest.fixture(scope="module")
def films(encoder):
    """The real BERT with two entities; two words are enough for a W."""
    vectors = Vectors.from_arrays(
        words=["war", "film"], word_vectors=np.eye(2, 768), entities=["Battleground (film)", "World War II"],
        entity_vectors=np.eye(2, 768),
    )  # fmt: skip
    return EBert.fit(encoder, vectors)


@pytest.mark.real
@pytest.mark.parametrize(
    ("mode", "middle"),
    [
        ("bert", "$ World War II $ drama ` ` # Battle ##ground #"),
        ("concat", "$ World_War_II / World War II $ drama ` ` # Battleground_(film) / Battle ##ground #"),
        ("replace", "$ World_War_II $ drama ` ` # Battleground_(film) #"),
        ("wikipedia2vec-concat", "$ World_War_II / World War II $ drama ` ` # Battleground_(film) / Battle ##ground #"),
        ("wikipedia2vec-replace", "$ World_War_II $ drama ` ` # Battleground_(film) #"),
    ],
)
def test_the_example_of_the_appendix(films, mode, middle):
    classifier = RelationClassifier.fresh(films, mode=mode, labels=["P921", "P19"])
    prepared = classifier.inputs.prepare([example()])[0]
    assert " ".join(classifier.inputs.show(prepared)) == f"{HEAD} {middle} {TAIL}"
    assert prepared.entities == ("Battleground (film)", "World War II")
    if mode != "bert":  # the vector that stands there is W's, or for the unaligned baselines the store's own
        place = classifier.inputs.show(prepared).index("World_War_II")
        fed = classifier.inputs.tensors([prepared.pieces])["inputs_embeds"][0, place].numpy()
        own = films.vectors["World War II"]
        wanted = own if mode.startswith("wikipedia2vec") else films.project(["World War II"])[0].numpy()
        np.testing.assert_allclose(fed, wanted, atol=1e-6)


@pytest.mark.real
def test_an_entity_without_a_vector_is_wordpieces_inside_its_markers(films):
    classifier = RelationClassifier.fresh(films, mode="replace", labels=["P921", "P19"])
    prepared = classifier.inputs.prepare([example(subject="Nobody knows this")])[0]
    shown = " ".join(classifier.inputs.show(prepared))
    assert shown == f"{HEAD} $ World_War_II $ drama ` ` # Battle ##ground # {TAIL}"
    assert prepared.entities == (None, "World War II")
    assert not prepared.covered


# Entities


@pytest.fixture(scope="module")
def places(tmp_path_factory):
    """Two places called Georgia, one with a Wikidata id, a redirect, and what the surfaces mean."""
    path = tmp_path_factory.mktemp("places") / "store"
    titles = ["Georgia", "Georgia (country)", "Rome", "Lima", "Old Town"]
    with writing(path, dimension=2) as writer:
        writer.add("words", ["in"], np.ones((1, 2)))
        writer.add("entities", titles, np.ones((5, 2)), counts=[5] * 5)
        writer.redirects([("Roma", "Rome")])
        writer.wikidata([("Rome", 220)])
        writer.surfaces(
            [("Georgia", 10, [(0, 2), (1, 8)]), ("Eternal City", 10, [(2, 6), (3, 4)]), ("Town", 9, [(4, 1), (3, 1)])]
        )
        writer.finish(licence="CC0", made={"from": "a test"})
    with Vectors.open(path) as vectors:
        yield vectors


IDS = {2868: "Lima", 230: "Georgia (country)", 99: "Atlantis", 220: "Lima"}


def resolve(vectors, surface, entity=None, ids=IDS, **options):
    sample = Sample(f"{surface} and X", Span(0, len(surface), entity), Span(len(surface) + 5, len(surface) + 6), "P1")
    way, found = SampleResolver(vectors, ResolvingOptions(**options), ids)(sample, sample.subject)
    return way, found.title if found else None


@pytest.mark.parametrize(
    ("surface", "entity", "options", "answer"),
    [
        ("it", "Q220", {}, ("id", "Rome")),  # the store knows the id, and better than the table
        ("it", "Q2868", {}, ("id", "Lima")),  # the table knows it
        ("it", "Q2868", {"ids_only": True}, ("id", "Lima")),
        ("Rome", "Q99", {}, ("none", None)),  # it is known to be something without a vector
        ("Lima", "Q77", {}, ("none", None)),  # Lima has another id
        ("Rome", "Q77", {}, ("none", None)),
        ("it", "Rome", {}, ("named", "Rome")),
        ("Rome", "Ravenna", {}, ("none", None)),  # another one is named, and it has no vector
        ("Rome", None, {}, ("title", "Rome")),
        ("Old Town", "Q77", {}, ("title", "Old Town")),  # whose id nobody knows
        ("old Town", None, {}, ("title", "Old Town")),
        ("Roma", None, {}, ("redirect", "Rome")),
        ("Eternal City", None, {}, ("surface", "Rome")),
        ("Eternal City", None, {"threshold": 0.7}, ("none", None)),
        ("Town", None, {}, ("none", None)),  # both meanings are equally likely
        ("Town", None, {"threshold": 0.4}, ("surface", "Lima")),
        ("Georgia", None, {}, ("surface", "Georgia (country)")),  # there is a page of that name, but it is rarely meant
        ("Georgia", None, {"threshold": 0.9}, ("title", "Georgia")),
        ("Rome", None, {"ids_only": True}, ("none", None)),
        ("Eternal City", "Q77", {"ids_only": True}, ("none", None)),
        ("Q220", None, {}, ("none", None)),  # words of a text are no ids
        ("Nowhere", None, {}, ("none", None)),
    ],
)
def test_the_ways_to_an_entity(places, surface, entity, options, answer):
    assert resolve(places, surface, entity, **options) == answer


def test_coverage_counts_the_ways(places):
    lines = [
        '{"text": "Rome and Roma", "subject": [0, 4], "object": [9, 13]}',
        '{"text": "Rome and it", "subject": [0, 4], "object": [9, 11, "Q2868"]}',
        '{"text": "Rome and it", "subject": [0, 4, "Rome"], "object": [9, 11]}',
    ]
    coverage = SampleResolver(places, ids=IDS).coverage(parse("\n".join(lines), "own"))
    assert (coverage["samples"], coverage["covered"], coverage["mentions"]) == (3, 2, 6)
    assert coverage["ways"] == {"id": 1, "named": 1, "title": 2, "redirect": 1, "surface": 0, "none": 1}
    nothing = SampleResolver(None).coverage(parse(lines[0], "own"))
    assert (nothing["covered"], nothing["ways"]["none"]) == (0, 2)


def test_options_that_make_no_sense():
    with pytest.raises(EbertError, match="threshold is 2"):
        ResolvingOptions(threshold=2)


# Long sentences


def long_sample(before, between, after, subject="Ann Lee", object_="Rome"):
    words = [*["then"] * before, subject, *["old"] * between, object_, *["there"] * after]
    text = " ".join(words)
    start, other = text.index(subject), text.rindex(object_)
    return Sample(text, Span(start, start + len(subject)), Span(other, other + len(object_)), "P1", "file, line 7")


@pytest.mark.parametrize("mode", ["bert", "concat", "replace"])
@pytest.mark.parametrize("shape", [(200, 1, 0), (0, 1, 200), (3, 200, 3), (60, 60, 60)])
def test_long_sentences_are_cut_around_their_mentions(tiny, mode, shape):
    inputs = RelationClassifier.fresh(tiny, mode=mode, labels=["a", "b"]).inputs
    prepared = inputs.prepare([long_sample(*shape)])[0]
    shown = " ".join(inputs.show(prepared))
    assert prepared.shortened
    assert len(prepared) <= 40
    assert len(prepared) >= 38  # and as much of the text as there is room for
    name = {"bert": "Ann Lee", "concat": "Ann_Lee / Ann Lee", "replace": "Ann_Lee"}[mode]
    place = {"bert": "Rome", "concat": "Rome / Rome", "replace": "Rome"}[mode]
    assert f"# {name} #" in shown
    assert f"$ {place} $" in shown
    left, right = shown.split(f"# {name} #")[0].split(), shown.split(f"$ {place} $")[1].split()
    if shape[0] == shape[2]:
        assert abs(len(left) - len(right)) <= 4  # words of four and of five letters
    assert set(shown.split()) <= {
        "[CLS]", "[SEP]", "then", "old", "there", "#", "$", "/", "Ann", "Lee", "Rome", "Ann_Lee"
    }  # fmt: skip


def test_a_sentence_that_fits_is_not_cut(tiny):
    inputs = RelationClassifier.fresh(tiny, mode="bert", labels=["a", "b"]).inputs
    prepared = inputs.prepare([long_sample(31, 0, 0)])[0]  # 31 words, 3 of names, 4 markers, [CLS] and [SEP]
    assert (len(prepared), prepared.shortened) == (40, False)


def test_text_without_blanks_is_cut_too(tiny):
    inputs = RelationClassifier.fresh(tiny, mode="bert", labels=["a", "b"]).inputs
    text = "." * 100 + "Rome" + "," * 100 + " Oslo"
    sample = Sample(text, Span(100, 104), Span(205, 209), "P1")
    prepared = inputs.prepare([sample])[0]
    shown = " ".join(inputs.show(prepared))
    assert len(prepared) <= 40
    assert "# Rome #" in shown
    assert "$ Oslo $" in shown


def test_mentions_longer_than_the_encoder_are_an_error_with_the_line(tiny):
    inputs = RelationClassifier.fresh(tiny, mode="bert", labels=["a", "b"]).inputs
    with pytest.raises(EbertError, match="file, line 7: the two mentions alone have more wordpieces"):
        inputs.prepare([long_sample(1, 1, 1, subject="the " * 50 + "old")])


def test_markers_are_never_cut(tiny):
    inputs = RelationClassifier.fresh(tiny, mode="bert", labels=["a", "b"]).inputs
    fits = "the " * 32 + "old"  # 33 words, 1 of the object, 4 markers, [CLS] and [SEP]
    shown = " ".join(inputs.show(inputs.prepare([long_sample(1, 1, 1, subject=fits)])[0]))
    assert shown == f"[CLS] # {fits} # $ Rome $ [SEP]"
    with pytest.raises(EbertError, match="the two mentions alone have more wordpieces"):
        inputs.prepare([long_sample(1, 1, 1, subject=f"the {fits}")])


def test_what_cannot_be_cut_is_told_with_the_line(tiny):
    inputs = RelationClassifier.fresh(tiny, mode="replace", labels=["a", "b"]).inputs
    text = "old Rome [MASK] was Oslo"
    good, bad = (Sample(text, Span(4, end, "Rome"), Span(20, 24, "Oslo"), "a", f"file, line {end}") for end in (8, 15))
    assert len(inputs.prepare([good])) == 1
    with pytest.raises(EbertError, match=r"^file, line 15: .* covers a mask"):
        inputs.prepare([good, bad])


# Batches


def test_batches_hold_like_lengths_and_every_sample_once():
    lengths = [5 + (index * 37) % 60 for index in range(1000)]
    sampler = LengthSampler(lengths, batch=32, seed=3)
    batches = sampler.batches(0)
    assert sorted(index for batch in batches for index in batch) == list(range(1000))
    assert [len(batch) for batch in batches] == [32] * 31 + [8]
    spread = [max(lengths[i] for i in batch) - min(lengths[i] for i in batch) for batch in batches]
    assert max(spread) <= 4
    assert sampler.batches(0) == LengthSampler(lengths, batch=32, seed=3).batches(0)
    assert sampler.batches(0) != sampler.batches(1) != LengthSampler(lengths, batch=32, seed=4).batches(1)
    sampler.epoch = 1
    assert list(sampler) == [index for batch in sampler.batches(1) for index in batch]


def test_a_vector_is_read_once(tiny, monkeypatch):
    inputs: Inputs = RelationClassifier.fresh(tiny, mode="concat", labels=["a", "b"]).inputs
    prepared = inputs.prepare([long_sample(1, 1, 1), long_sample(2, 2, 2)])
    first = inputs.tensors([prepared[0].pieces])
    monkeypatch.setattr(Vectors, "take", None)  # the store is not asked again
    monkeypatch.setattr(Vectors, "find", None)
    both = inputs.tensors([one.pieces for one in prepared])
    assert both["inputs_embeds"][0, : len(prepared[0])].equal(first["inputs_embeds"][0])
    assert both["attention_mask"].sum(dim=1).tolist() == [len(one) for one in prepared]
