"""The pipe links as `ebert.Linker` does, in batches, beside other pipes, and whatever a document holds."""

import dataclasses
import inspect
import pickle
import subprocess
import sys
from importlib.metadata import entry_points

import link_world
import pytest
import spacy
from spacy.tokenizer import Tokenizer
from spacy.tokens import Doc, DocBin

from ebert import EbertError, Linker
from ebert.linking.document import Document
from ebert.linking.sequences import NO_CHOICE
from ebert.spacy import EXTENSIONS, EbertLinker, PipeOptions, annotating
from ebert.spacy.component import make_ebert_linker

TEXT = link_world.TEXT
TEXTS = [
    TEXT,
    "",
    " ",
    "\n\n",
    "No name here.",
    "Cairo and London.",
    "😀 NATO met in London \u200b\n\nAdams agreed ; שלום",
    "University of London physics" * 3,
    "London " * 200,
    *(f"Adams met Platt {number} times in Cairo." for number in range(20)),
]


def plain(doc):
    """All that the pipe says of a document."""
    return [(e.start_char, e.end_char, e.label_, e.kb_id_, *(e._.get(name) for name in EXTENSIONS)) for e in doc.ents]


def expected(mentions, label="ENTITY"):
    """The same, said by a linker."""
    return [
        (
            m.start,
            m.end,
            label,
            m.entity,
            m.probability,
            m.null,
            [dataclasses.asdict(c) for c in m.candidates],
            m.url,
            m.entity,
            m.wikidata_id,
            m.id,
        )
        for m in mentions
    ]


def close(values):
    """Numbers that may differ in the last bits, as batches of other sizes are summed in another order."""
    rows = []
    for *place, probability, null, candidates, url, title, number, own in values:
        rows.append((*place, url, title, number, own, [(c["title"], c["prior"]) for c in candidates]))
        rows.append(pytest.approx([probability, null, *(c["probability"] for c in candidates)], abs=1e-5))
    return rows


def numbers(values):
    rows = []
    for *place, probability, null, candidates, url, title, number, own in values:
        rows.append((*place, url, title, number, own, [(c["title"], c["prior"]) for c in candidates]))
        rows.append([probability, null, *(c["probability"] for c in candidates)])
    return rows


def unsplit(nlp):
    """A tokenizer that splits at blanks only."""
    nlp.tokenizer = Tokenizer(nlp.vocab)
    return nlp


# Finding it


def test_spacy_finds_it_without_an_import(folder):
    code = (
        "import sys, spacy\n"
        "nlp = spacy.blank('en')\n"  # spaCy asks for every factory now
        f"nlp.add_pipe('ebert_linker', config={{'linker': {str(folder)!r}}})\n"
        "assert not {'transformers', 'ebert.vectors', 'ebert.model', 'ebert.linking.linker'} & set(sys.modules)\n"
        "print([(e.text, e.kb_id_) for e in nlp('Cairo and London').ents])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout == "[('Cairo', 'Cairo'), ('London', 'London')]\n", done.stderr


def test_ebert_without_spacy():
    code = (
        "import sys\nsys.modules['spacy'] = None\nimport ebert, ebert.cli\n"
        "try:\n    import ebert.spacy\nexcept ebert.EbertError as error:\n    print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "the pipe ebert_linker needs spaCy: pip install 'ebert[spacy]'\n"


def test_importing_ebert_does_not_load_spacy():
    code = "import sys, ebert, ebert.cli\nassert not {'spacy', 'ebert.spacy'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_factory_takes_the_fields_of_the_options():
    (entry,) = entry_points(group="spacy_factories", name="ebert_linker")
    assert entry.load() is make_ebert_linker
    given = list(inspect.signature(make_ebert_linker).parameters)[2:]
    assert given == [field.name for field in dataclasses.fields(PipeOptions)]


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({}, "needs a linker"),
        ({"linker": "x", "mentions": "ours"}, "unknown mentions 'ours'; choose one of own, doc.ents"),
        ({"linker": "x", "alignment_mode": "near"}, "unknown alignment-mode 'near'"),
        ({"linker": "x", "threshold": 1.5}, "threshold is 1.5; it must be at least 0 and at most 1"),
        ({"linker": "x", "rounds": 0}, "rounds is 0; it must be at least 1"),
        ({"linker": "x", "label": ""}, "label is empty"),
    ],
)
def test_bad_settings_are_named(config, message):
    with pytest.raises(EbertError, match=message):
        spacy.blank("en").add_pipe("ebert_linker", config=config)


# Linking


@pytest.mark.parametrize("batch", [1, 7, 1000])
def test_the_same_links_as_the_linker(pipeline, folder, batch):
    nlp = pipeline()
    linked = list(Linker.from_pretrained(folder)(TEXTS))
    docs = list(nlp.pipe(TEXTS, batch_size=batch))
    assert [doc.text for doc in docs] == TEXTS
    for doc, one in zip(docs, linked, strict=True):
        assert numbers(plain(doc)) == close(expected(one.mentions))
    assert sum(len(doc.ents) for doc in docs) > 60
    assert plain(nlp(TEXT)) == expected(nlp.get_pipe("ebert_linker").linker(TEXT))
    assert nlp.get_pipe("ebert_linker").dropped == {}


def test_a_mark_that_cannot_be_seen_stays_in_its_token(pipeline):
    """It is no part of the linker's mention, but entities of spaCy are whole tokens."""
    text = "😀 NATO met in London\u200b\n\nAdams agreed"
    nlp = pipeline()
    assert "London" in [mention.text for mention in nlp.get_pipe("ebert_linker").linker(text)]
    assert ("London\u200b", "London") in [(entity.text, entity.kb_id_) for entity in nlp(text).ents]


def test_a_batch_is_one_call_of_the_linker(pipeline, monkeypatch):
    nlp = pipeline()
    linker = nlp.get_pipe("ebert_linker").linker
    calls = []
    link = linker.link
    monkeypatch.setattr(
        linker, "link", lambda documents, **more: calls.append(len(documents)) or link(documents, **more)
    )
    assert len(list(nlp.pipe(TEXTS, batch_size=10))) == len(TEXTS)
    assert calls == [10, 10, 9]


def test_threshold_rounds_and_label(pipeline):
    nlp = pipeline(label="WIKI", rounds=1)
    pipe = nlp.get_pipe("ebert_linker")
    assert pipe.linker.options.rounds == 1
    assert pipe.labels == ("WIKI",)
    least = sorted(m.probability for m in pipe.linker(TEXT))[1]
    sure = pipeline(label="WIKI", rounds=1, threshold=least)
    assert plain(sure(TEXT)) == [row for row in plain(nlp(TEXT)) if row[4] >= least]
    assert {e.label_ for e in nlp(TEXT).ents} == {"WIKI"}


def test_extensions_are_none_where_nothing_is_linked(pipeline):
    doc = pipeline()(TEXT)
    assert [doc[3:4]._.get(name) for name in EXTENSIONS] == [None] * len(EXTENSIONS)


def test_links_survive_spacys_own_bytes(pipeline):
    nlp = pipeline()
    doc = nlp(TEXT)
    assert plain(Doc(nlp.vocab).from_bytes(doc.to_bytes())) == plain(doc)
    (again,) = DocBin(docs=[doc], store_user_data=True).get_docs(nlp.vocab)
    assert numbers(plain(again)) == numbers(plain(doc))  # its lists come back as tuples


def test_several_processes(pipeline):
    nlp = pipeline()
    alone = [plain(doc) for doc in nlp.pipe(TEXTS)]  # which loads the linker, so that it is forked with its threads
    several = [plain(doc) for doc in nlp.pipe(TEXTS, n_process=2, batch_size=8)]
    assert [numbers(rows) for rows in several] == [close(rows) for rows in alone]


def test_other_processes_get_the_same_pipe(pipeline):
    nlp = pipeline(threshold=0.5)
    pipe = nlp.get_pipe("ebert_linker")
    expect = plain(nlp(TEXT))
    again = pickle.loads(pickle.dumps(pipe))
    assert (again.name, again.options) == (pipe.name, pipe.options)
    assert plain(again(nlp.make_doc(TEXT))) == expect


# Mentions of other pipes


@pytest.fixture
def ruled(pipeline):
    """Makes a pipeline with an entity ruler before the linker."""

    def make(patterns, **config):
        nlp = pipeline(**config)
        ruler = nlp.add_pipe("entity_ruler", before="ebert_linker")
        ruler.add_patterns([{"label": label, "pattern": text, "id": f"id-{text}"} for text, label in patterns.items()])
        return nlp

    return make


def test_mentions_that_another_pipe_found(ruled, folder):
    nlp = ruled({"England": "GPE", "Platt": "PERSON", "injured": "STATE", "qualifier": "GAME"}, mentions="doc.ents")
    pipe = nlp.get_pipe("ebert_linker")
    (doc,) = nlp.pipe([TEXT])
    rows = {e.text: e for e in doc.ents}
    assert {text: (e.label_, e.ent_id_, e.kb_id_ != "") for text, e in rows.items()} == {
        "Platt": ("PERSON", "id-Platt", True),
        "injured": ("STATE", "id-injured", True),
        "England": ("GPE", "id-England", True),
        "qualifier": ("GAME", "id-qualifier", False),  # the mention table does not know it
    }
    assert rows["qualifier"]._.ebert_candidates is None
    assert pipe.dropped == {NO_CHOICE: 1}
    linker = Linker.from_pretrained(folder)
    spans = [linker.generator.at(TEXT, e.start_char, e.end_char) for e in doc.ents if e.text != "qualifier"]
    (linked,) = linker.disambiguate([Document("1", TEXT)], [spans])
    links = [e for e in doc.ents if e.kb_id_]
    assert [(e.kb_id_, e._.ebert_probability, e._.ebert_url) for e in links] == [
        (m.entity, m.probability, m.url) for m in linked.mentions
    ]
    assert pipe.labels == ()


def test_a_threshold_for_given_mentions(ruled):
    patterns = {"England": "GPE", "Platt": "PERSON", "Adams": "PERSON"}
    found = {e.text: e._.ebert_probability for e in ruled(patterns, mentions="doc.ents")(TEXT).ents}
    least = sorted(found.values())[1]
    doc = ruled(patterns, mentions="doc.ents", threshold=least)(TEXT)
    assert {e.text for e in doc.ents} == set(patterns)
    assert {e.text for e in doc.ents if e.kb_id_} == {text for text, value in found.items() if value >= least}


def test_a_link_that_is_there(ruled):
    for overwrite, title, counted in ((False, "mine", {annotating.LINKED: 1}), (True, "London", {})):
        nlp = ruled({}, mentions="doc.ents", overwrite=overwrite)
        doc = nlp.make_doc("Cairo and London")
        doc.ents = [doc.char_span(10, 16, label="GPE", kb_id="mine"), doc.char_span(0, 5, label="GPE")]
        assert [(e.label_, e.kb_id_) for e in nlp.get_pipe("ebert_linker")(doc).ents] == [
            ("GPE", "Cairo"), ("GPE", title),
        ]  # fmt: skip
        assert nlp.get_pipe("ebert_linker").dropped == counted


def test_entities_of_earlier_pipes_are_kept(ruled):
    nlp = ruled({"Platt are": "ODD", "England": "GPE"})
    pipe = nlp.get_pipe("ebert_linker")
    doc = nlp(TEXT)
    rows = {e.text: (e.label_, e.ent_id_, e.kb_id_ != "") for e in doc.ents}
    assert rows["Platt are"] == ("ODD", "id-Platt are", False)
    assert rows["England"] == ("GPE", "id-England", True)
    assert rows["Adams"] == ("ENTITY", "", True)
    assert pipe.dropped == {annotating.OVERLAPPING: 1}


def test_entities_of_earlier_pipes_are_overwritten(ruled):
    nlp = ruled({"Platt are": "ODD", "England": "GPE"}, overwrite=True)
    pipe = nlp.get_pipe("ebert_linker")
    doc = nlp(TEXT)
    rows = {e.text: (e.label_, e.ent_id_, e.kb_id_ != "") for e in doc.ents}
    assert "Platt are" not in rows
    assert rows["Platt"] == ("ENTITY", "", True)
    assert rows["England"] == ("GPE", "id-England", True)
    assert (doc[3].text, doc[3].ent_type_, doc[3].ent_id_, doc[3].ent_iob_) == ("are", "", "", "O")
    assert pipe.dropped == {annotating.OVERWRITTEN: 1}


# Characters and tokens


@pytest.mark.parametrize(
    ("mode", "texts", "counted"),
    [
        ("expand", ["England's"], {annotating.MOVED: 1}),
        ("contract", [], {annotating.BETWEEN: 1}),
        ("strict", [], {annotating.BETWEEN: 1}),
    ],
)
def test_mentions_that_are_not_whole_tokens(pipeline, mode, texts, counted):
    nlp = unsplit(pipeline(alignment_mode=mode))
    doc = nlp("Will miss England's game")
    assert [e.text for e in doc.ents] == texts
    assert nlp.get_pipe("ebert_linker").dropped == counted


def test_two_mentions_in_a_token(pipeline):
    nlp = unsplit(pipeline())
    doc = nlp("The Adams-Cairo road")
    first, second = nlp.get_pipe("ebert_linker").linker("The Adams-Cairo road")
    likelier = max(first, second, key=lambda m: m.probability)
    assert [(e.text, e.kb_id_) for e in doc.ents] == [("Adams-Cairo", likelier.entity)]
    assert nlp.get_pipe("ebert_linker").dropped == {annotating.MOVED: 1, annotating.SHARED: 1}


# What goes wrong


def poisoned(nlp):
    """A pipeline whose linker cannot take some documents."""
    linker = nlp.get_pipe("ebert_linker").linker
    generator = linker.generator

    def choosy(document):
        if "poison" in document.text:
            raise EbertError(f"there is poison in {document.text!r}")
        return generator(document)

    linker.generator = choosy
    return nlp


def test_one_bad_document_does_not_stop_the_others(pipeline):
    nlp = poisoned(pipeline())
    failed = []
    nlp.set_error_handler(lambda name, pipe, docs, error: failed.append((name, type(pipe), docs, str(error))))
    texts = ["Cairo", "poison in Cairo", "London", "NATO", "more poison"]
    for batch in (2, 100):
        failed.clear()
        docs = list(nlp.pipe(texts, batch_size=batch))
        assert [[e.kb_id_ for e in doc.ents] for doc in docs] == [["Cairo"], ["London"], ["NATO"]]
        assert [(name, kind, [doc.text for doc in bad]) for name, kind, bad, _ in failed] == [
            ("ebert_linker", EbertLinker, ["poison in Cairo"]), ("ebert_linker", EbertLinker, ["more poison"]),
        ]  # fmt: skip
        assert failed[0][3] == "there is poison in 'poison in Cairo'"


def test_without_a_handler_it_is_an_error(pipeline):
    nlp = poisoned(pipeline())
    with pytest.raises(EbertError, match="there is poison"):
        nlp("poison")
    docs = nlp.pipe(["Cairo", "poison", "London"])
    assert next(docs).text == "Cairo"
    with pytest.raises(EbertError, match="there is poison"):
        next(docs)


def test_a_batch_that_failed_is_not_counted_twice(ruled):
    nlp = poisoned(ruled({"qualifier": "GAME"}, mentions="doc.ents"))
    nlp.set_error_handler(lambda *_: None)
    docs = list(nlp.pipe(["A qualifier", "A qualifier with poison", "Another qualifier"]))
    assert [doc.text for doc in docs] == ["A qualifier", "Another qualifier"]
    assert nlp.get_pipe("ebert_linker").dropped == {NO_CHOICE: 2}


def test_a_linker_that_is_not_there(tmp_path):
    nlp = spacy.blank("en")
    nlp.add_pipe("ebert_linker", name="mine", config={"linker": str(tmp_path / "nowhere")})
    nlp.set_error_handler(lambda *_: None)
    with pytest.raises(EbertError, match=r"the pipe 'mine' cannot load its linker: there is no linker at .*nowhere"):
        list(nlp.pipe(["Cairo"]))
