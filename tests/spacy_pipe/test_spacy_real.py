"""With the real BERT and the starter vectors: the pipe gives the links of `ebert.Linker`."""

import pytest
import spacy
import torch

from ebert import Linker, get_starter

pytestmark = pytest.mark.real

TEXTS = [
    "Jean Sibelius was born in Finland and studied in Berlin and Vienna.",
    "Albert Einstein played the violin in Princeton, New Jersey, where he met Kurt Gödel of Vienna.",
    "NATO met in London; Angela Merkel came from Germany, and the others from France, Italy and Japan.",
    "",
    "Nothing is named here.",
    "Paris Saint-Germain beat Real Madrid in the Champions League; Lionel Messi of Argentina scored twice.",
]


@pytest.fixture(scope="module")
def linked():
    return [one.mentions for one in Linker.from_pretrained(get_starter())(TEXTS)]


@pytest.fixture(scope="module")
def nlp():
    pipeline = spacy.blank("en")
    pipeline.add_pipe("ebert_linker", config={"linker": "starter"})
    return pipeline


def said(docs):
    return [[(e.start_char, e.end_char, e.kb_id_, e._.ebert_url) for e in doc.ents] for doc in docs]


def test_the_same_links_as_the_linker(nlp, linked):
    docs = list(nlp.pipe(TEXTS))
    assert said(docs) == [[(m.start, m.end, m.entity, m.url) for m in mentions] for mentions in linked]
    assert sum(map(len, linked)) >= 10
    for doc, mentions in zip(docs, linked, strict=True):
        for entity, mention in zip(doc.ents, mentions, strict=True):
            assert entity._.ebert_probability == pytest.approx(mention.probability, abs=1e-5)
            assert entity._.ebert_null == pytest.approx(mention.null, abs=1e-5)
            for mine, theirs in zip(entity._.ebert_candidates, mention.candidates, strict=True):
                assert mine["title"] == theirs.title
                assert mine["prior"] == theirs.prior
                assert mine["score"] == pytest.approx(theirs.score, abs=1e-3)
                assert mine["probability"] == pytest.approx(theirs.probability, abs=1e-5)


def test_forked_processes_do_not_wait_for_threads_that_stayed_behind(nlp, linked):
    threads = torch.get_num_threads()
    torch.set_num_threads(max(2, threads))
    try:
        nlp(TEXTS[0])  # starts the threads
        docs = list(nlp.pipe(TEXTS, n_process=2, batch_size=3))
    finally:
        torch.set_num_threads(threads)
    assert said(docs) == [[(m.start, m.end, m.entity, m.url) for m in mentions] for mentions in linked]


def test_mentions_of_an_entity_ruler(nlp):
    other = spacy.blank("en")
    other.add_pipe("entity_ruler").add_patterns([
        {"label": "GPE", "pattern": "Vienna"}, {"label": "PERSON", "pattern": "Albert Einstein"},
    ])  # fmt: skip
    pipe = other.add_pipe("ebert_linker", config={"linker": "starter", "mentions": "doc.ents"})
    docs = list(other.pipe(TEXTS))
    rows = [(e.text, e.label_, e.kb_id_) for doc in docs for e in doc.ents]
    assert rows == [
        ("Vienna", "GPE", "Vienna"),
        ("Albert Einstein", "PERSON", "Albert Einstein"),
        ("Vienna", "GPE", "Vienna"),
    ]
    assert not pipe.dropped
