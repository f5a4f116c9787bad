"""The sequences of the paper's examples, and its first column of answers, with the real BERT."""

import numpy as np
import pytest
from paper import NATIVE_LANGUAGES

from ebert import EBert, Mention, Passage, Vectors
from ebert.model.alignment import Alignment
from ebert.model.options import AlignmentOptions

pytestmark = pytest.mark.real

TITLES = ["Jean Marais", "World War II", "Battleground (film)", "Tony Adams (footballer)", "1998 FIFA World Cup"]
SENTENCE = (
    "Taylor was later part of the ensemble cast in MGM 's classic World War II drama `` Battleground '' ( 1949 ) ."
)
# BERT's own tokenizer parts quotes and 's: ' s and ` `
HEAD = "[CLS] Taylor was later part of the ensemble cast in MGM ' s classic"


@pytest.fixture(scope="module")
def model(encoder):
    vectors = np.random.default_rng(0).normal(size=(len(TITLES), encoder.width))
    store = Vectors.from_arrays(entities=TITLES, entity_vectors=vectors)
    unaligned = Alignment.fit(store, {}, np.zeros((1, encoder.width)), AlignmentOptions(method="none"))
    return EBert(encoder, store, unaligned)


@pytest.mark.parametrize(("name", "language"), NATIVE_LANGUAGES.items())
def test_native_languages_according_to_plain_bert(bert, name, language):
    assert bert.fill(f"The native language of {name} is [MASK] .", mode="bert").best == language


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        ("bert", "[CLS] The native language of Jean Mara ##is is [MASK] . [SEP]"),
        ("concat", "[CLS] The native language of Jean_Marais / Jean Mara ##is is [MASK] . [SEP]"),
        ("replace", "[CLS] The native language of Jean_Marais is [MASK] . [SEP]"),
    ],
)
def test_the_sequences_of_section_3(model, mode, expected):
    pieces = model.pieces("The native language of [[Jean_Marais]] is [MASK].", mode=mode)
    assert " ".join(pieces) == expected


def battleground() -> tuple[Passage, Mention, Mention]:
    subject = Mention(SENTENCE.index("Battleground"), SENTENCE.index("Battleground") + 12, "Battleground_(film)")
    object_ = Mention(SENTENCE.index("World"), SENTENCE.index("World") + 12, "World_War_II")
    return Passage(SENTENCE, (subject, object_)), subject, object_


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        ("bert", f"{HEAD} World War II drama ` ` Battle ##ground ' ' ( 1949 ) . [SEP]"),
        (
            "concat",
            f"{HEAD} World_War_II / World War II drama ` ` Battleground_(film) / Battle ##ground ' ' ( 1949 ) . [SEP]",
        ),
        ("replace", f"{HEAD} World_War_II drama ` ` Battleground_(film) ' ' ( 1949 ) . [SEP]"),
    ],
)
def test_the_sequences_of_section_5(model, mode, expected):
    assert " ".join(model.pieces(battleground()[0], mode=mode)) == expected


def test_the_marked_sequence_of_the_appendix(model):
    passage, subject, object_ = battleground()
    marked = passage.mark({subject: "#", object_: "$"})
    assert " ".join(model.pieces(marked, mode="concat")) == (
        f"{HEAD} $ World_War_II / World War II $ drama ` ` "
        "# Battleground_(film) / Battle ##ground # ' ' ( 1949 ) . [SEP]"
    )
    assert " ".join(model.pieces(marked, mode="replace")) == (
        f"{HEAD} $ World_War_II $ drama ` ` # Battleground_(film) # ' ' ( 1949 ) . [SEP]"
    )


def test_the_partly_decoded_example_of_entity_linking(model):
    markup = (
        "[[Tony_Adams_(footballer)|Adams]] and Platt are both injured and will miss England 's opening "
        "[[1998_FIFA_World_Cup|World Cup]] qualifier ..."
    )
    assert " ".join(model.pieces(markup, mode="replace")) == (
        "[CLS] Tony_Adams_(footballer) and P ##latt are both injured and will miss England ' s opening "
        "1998_FIFA_World_Cup qualifier . . . [SEP]"
    )


def test_an_entity_without_a_vector_falls_back_to_its_wordpieces(model):
    text = "[[Jean Marais]] met [[Nobody At All|Nobody]] in [MASK] ."
    assert " ".join(model.pieces(text, mode="replace")) == "[CLS] Jean_Marais met Nobody in [MASK] . [SEP]"
    assert model.fill(text, mode="replace").missing == ("Nobody At All",)
    assert model.encode(text, mode="concat").missing == ("Nobody At All",)
    assert model.missing([text, "[[Other]]"]) == ["Nobody At All", "Other"]
