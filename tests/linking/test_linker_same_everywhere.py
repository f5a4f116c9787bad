"""The same links for the same text: by the command line, Python, the service and its page, spaCy and bulk work.

All of them link the same texts by the same linker, and nothing is asked for but that.
"""

import json
import sys
from pathlib import Path

import link_world
import pytest
import torch

from ebert import EBert, Linker
from ebert.linking.document import Document
from ebert.linking.options import CandidateOptions, LinkerOptions, LinkTrainingOptions
from ebert.linking.output import as_json
from ebert.linking.train import train
from ebert.text.passage import Mention

sys.path += [str(Path(__file__).parents[1] / name) for name in ("serve", "bulk")]
import serve_world
from bulk_jobs import Here, rows_of, write

TEXT = link_world.TEXT
TEXTS = [
    TEXT,
    "Zorb and NATO met in London, says the University of London.",
    "Nothing.",
    "Adams likes physics in Cairo.",
]
GOLD = {"Adams": "Tony Adams (footballer)", "Platt": "David Platt (footballer)", "World Cup": "1998 FIFA World Cup",
        "England": "England national football team"}  # fmt: skip
OWN = {"title": "Zorblax", "surfaces": ["Zorb"], "id": "https://example.org/zorblax"}


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="module", params=["adapter", "whole"])
def linker(request, tmp_path_factory):
    """A linker that was trained a little, on a store with an entity of one's own; and the model it belongs to."""
    folder = tmp_path_factory.mktemp(request.param)
    model = serve_world.write_model(folder)
    loaded = EBert.from_pretrained(model)
    loaded.vectors.add(OWN["title"], [0.5] * serve_world.WIDTH, aliases=OWN["surfaces"], id=OWN["id"])
    gold = tuple(Mention(TEXT.index(words), TEXT.index(words) + len(words), title) for words, title in GOLD.items())
    documents = [Document(str(number), TEXT, gold) for number in range(4)]
    options = LinkTrainingOptions(epochs=2, batch=8, learning_rate=1e-3, adapter_rate=1e-2, evidence_rate=5e-2)
    train(
        documents, documents[:1], loaded, folder / "linker", options=options, say=lambda _line: None, device="cpu",
        linker_options=LinkerOptions(adapter=request.param == "adapter", chunk=64), generator=CandidateOptions(),
    )  # fmt: skip
    return folder / "linker" / "model", model


@pytest.fixture(scope="module")
def expected(linker):
    """What Python says."""
    found = [as_json(one)["mentions"] for one in Linker.from_pretrained(linker[0])(TEXTS)]
    assert sum(map(len, found)) > 3
    return found


def same(found, expected):
    """Compare mentions; numbers may differ a little, as batches of other sizes are summed in another order."""
    assert [[plain(one) for one in own] for own in found] == [[plain(one) for one in own] for own in expected]
    for own, other in zip(found, expected, strict=True):
        for one, two in zip(own, other, strict=True):
            assert numbers(one) == pytest.approx(numbers(two), abs=0.02)  # of bf16, where there is that


def plain(mention):
    return [mention[name] for name in ("start", "end", "text", "entity", "wikidata", "id", "url")]


def numbers(mention):
    candidates = {one["entity"]: (one["prior"], one["probability"]) for one in mention["candidates"]}
    own = mention["probability"], mention["null_probability"]
    return [*own, *(number for title in sorted(candidates) for number in candidates[title])]


def test_mentions_have_all_that_programs_need(expected):
    mentions = {mention["text"]: mention for own in expected for mention in own}
    assert mentions["London"]["wikidata"] == "Q84"
    assert mentions["London"]["url"] == "https://en.wikipedia.org/wiki/London"
    assert mentions["London"]["id"] is None
    assert (mentions["Zorb"]["entity"], mentions["Zorb"]["wikidata"]) == ("Zorblax", None)
    assert mentions["Zorb"]["id"] == mentions["Zorb"]["url"] == OWN["id"]
    for mention in mentions.values():
        shares = [one["probability"] for one in mention["candidates"]]
        assert mention["null_probability"] + sum(shares) == pytest.approx(1, abs=1e-4)
        assert {"entity", "prior", "score", "probability"} == set(mention["candidates"][0])


def test_the_command_line(ebert, linker, expected, tmp_path):
    texts = [part for text in TEXTS for part in ("--text", text)]
    same([row["mentions"] for row in ebert("link", "run", linker[0], "--json", *texts).lines], expected)
    for form in ("jsonl", "html", "brackets"):
        assert ebert("link", "run", linker[0], "--format", form, "--out", tmp_path / form, *texts).code == 0
    same([json.loads(line)["mentions"] for line in (tmp_path / "jsonl").read_text("utf-8").splitlines()], expected)
    page = (tmp_path / "html").read_text("utf-8")
    brackets = (tmp_path / "brackets").read_text("utf-8")
    assert page.count("data-entity='") == brackets.count("[[") == sum(map(len, expected))


def test_the_service_and_its_page(linker, expected):
    name, model = linker
    with serve_world.live(lambda: serve_world.load(str(model), str(name))) as service, service.client() as client:
        answers = [client.post("/api/link", json={"text": text}).json() for text in TEXTS]
        same([answer["mentions"] for answer in answers], expected)
        about = client.get("/api/model").json()["linker"]
        opened = Linker.from_pretrained(name)
        assert (about["rounds"], about["precision"]) == (opened.options.rounds, opened.precision)
        asked = {"rounds": about["rounds"], "trace": True}  # as the page asks
        answers = [client.post("/api/link", json={"text": text, **asked}).json() for text in TEXTS]
        same([answer["mentions"] for answer in answers], expected)


def test_spacy(linker, expected):
    spacy = pytest.importorskip("spacy")
    nlp = spacy.blank("en")
    nlp.add_pipe("ebert_linker", config={"linker": str(linker[0])})
    for doc, own in zip(nlp.pipe(TEXTS), expected, strict=True):
        assert [(one.start_char, one.end_char, one.kb_id_) for one in doc.ents] == [
            (mention["start"], mention["end"], mention["entity"]) for mention in own
        ]
        for one, mention in zip(doc.ents, own, strict=True):
            assert (one._.ebert_title, one._.ebert_wikidata, one._.ebert_id, one._.ebert_url) == tuple(
                plain(mention)[3:]
            )
            assert one._.ebert_probability == pytest.approx(mention["probability"], abs=0.02)
            assert one._.ebert_null == pytest.approx(mention["null_probability"], abs=0.02)
    nlp = spacy.blank("en")
    pipe = nlp.add_pipe("ebert_linker", config={"linker": str(linker[0]), "kb_id": "wikidata"})
    assert [[one.kb_id_ for one in doc.ents] for doc in nlp.pipe(TEXTS)] == [
        [mention["wikidata"] or "" for mention in own] for own in expected
    ]
    without = sum(mention["wikidata"] is None for own in expected for mention in own)
    assert pipe.counts["links without a Wikidata id, whose kb_id_ is empty"] == without > 0


def test_bulk_work(linker, expected, tmp_path):
    from ebert.bulk.link import LinkJob
    from ebert.bulk.options import ReadOptions
    from ebert.bulk.run import run

    given = write(tmp_path / "in.jsonl", TEXTS)
    run(LinkJob(linker=str(linker[0])), [given], tmp_path / "out", read=ReadOptions(shard_rows=3), engine=Here())
    same([row["mentions"] for row in rows_of(tmp_path / "out")], expected)
