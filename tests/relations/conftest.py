"""A tiny BERT, a store that fits it without W, and sentences whose relation follows from their words and entities."""

import itertools
import json

import encoders
import numpy as np
import pytest
import torch

from ebert import EBert, Vectors

WIDTH, LONGEST = 16, 40
PEOPLE = {"Ann Lee": 11, "Bob Ray": 12, "Cid Roe": 13, "Dora May": 14}
PLACES = {"Rome": 220, "Oslo": 585, "Lima": 2868, "Bern": 70}
VERBS = {"born": "P19", "died": "P20", "studied": "P69"}
WORDS = ["was", "lived", "in", "and", "then", "there", "the", "old", *VERBS, *PLACES]
PIECES = [
    *encoders.SPECIAL, *WORDS, ".", ",", "/", "#", "$", "(", ")", "`", "'", "##s",
    *dict.fromkeys(part for name in PEOPLE for part in name.split()),
]  # fmt: skip


def sentences():
    """All samples, as FewRel has them but with right offsets: subject, verb, object."""
    for (person, qid), (place, number), (verb, label) in itertools.product(
        PEOPLE.items(), PLACES.items(), VERBS.items()
    ):
        text = f"then {person} was {verb} in {place} ."
        subject, object_ = text.index(person), text.index(place)
        yield {
            "label": label,
            "text": text,
            "ents": [
                [f"Q{qid}", subject, subject + len(person), 0.5],
                [f"Q{number}", object_, object_ + len(place), 0.5],
            ],
        }


@pytest.fixture(autouse=True)
def one_thread():
    """Tiny models are slower on several threads than on one, above all beside other work."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="session")
def data(tmp_path_factory):
    """A folder with train, dev and test; dev and test are sentences of train too."""
    folder = tmp_path_factory.mktemp("data")
    rows = list(sentences())
    (folder / "train.json").write_text(json.dumps(rows))
    (folder / "dev.json").write_text(json.dumps(rows[::2]))
    (folder / "test.json").write_text(json.dumps(rows[1::2]))
    return folder


@pytest.fixture(scope="session")
def store(tmp_path_factory):
    """All people but Dora May, three places, one redirect, and what two surfaces mean."""
    path = tmp_path_factory.mktemp("store") / "store"
    random = np.random.default_rng(0)
    titles = [*list(PEOPLE)[:3], "Rome", "Oslo", "Lima"]
    numbers = {**PEOPLE, **PLACES}
    return Vectors.from_arrays(
        words=WORDS,
        word_vectors=random.normal(size=(len(WORDS), WIDTH)),
        entities=titles,
        entity_vectors=random.normal(size=(len(titles), WIDTH)),
        redirects=[("Ciudad de los Reyes", "Lima")],
        wikidata=[(title, numbers[title]) for title in titles],
        path=path,
    )


@pytest.fixture(scope="session")
def tiny_bert(tmp_path_factory):
    """The folder of a tiny BERT with random weights."""
    folder = tmp_path_factory.mktemp("tiny-bert")
    return encoders.write_small(folder, PIECES, width=WIDTH, layers=2, inner=24, longest=LONGEST, spread=0.2)


@pytest.fixture
def tiny(tiny_bert, store):
    """A model of the tiny BERT and the store, fresh for each test because training changes it."""
    return EBert.fit(tiny_bert, store)


@pytest.fixture(scope="session")
def tiny_folder(tiny_bert, store, tmp_path_factory):
    """The same, on disk."""
    folder = tmp_path_factory.mktemp("models") / "tiny"
    EBert.fit(tiny_bert, store).save_pretrained(folder, include_vectors=False, include_encoder=False)
    return str(folder)
