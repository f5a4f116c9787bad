"""What the encoder sees of the paper's examples, piece by piece, in all modes and for all tasks.

The only golden tests that know modules of ebert: each in a function of its own, to be changed with them.
"""

import numpy as np
import pytest
from golden_tools import DATA, check_json

import ebert

pytestmark = pytest.mark.real

TITLES = ["Jean Marais", "World War II", "Battleground (film)", "Tony Adams (footballer)", "1998 FIFA World Cup"]
SENTENCE = (
    "Taylor was later part of the ensemble cast in MGM 's classic World War II drama `` Battleground '' ( 1949 ) ."
)
TEXT = "Adams and Platt are both injured and will miss England 's opening World Cup qualifier"
PASSAGES = {
    "native language": "The native language of [[Jean Marais]] is [MASK] .",
    "no space before the end": "The native language of [[Jean_Marais]] is [MASK].",
    "two entities": "Taylor was in MGM 's [[World War II]] drama `` [[Battleground (film)|Battleground]] '' ( 1949 ) .",
    "partly decoded": "[[Tony Adams (footballer)|Adams]] and Platt will miss the [[1998_FIFA_World_Cup|World Cup]] ...",
    "without a vector": "[[Jean Marais]] met [[Nobody At All|Nobody]] in [MASK] .",
    "odd letters": "“[[Jean Marais|Marais]]”, İstanbul’s naïve [[World War II|WWⅡ]]–era 东京 café\u00a0[MASK]…",
}


@pytest.fixture(scope="module")
def model(encoder):
    """The real BERT with a vector for each of the paper's entities, fed as it is."""
    vectors = np.random.default_rng(0).normal(size=(len(TITLES), 768))
    store = ebert.Vectors.from_arrays(entities=TITLES, entity_vectors=vectors)
    unaligned = ebert.Alignment.fit(store, {}, np.zeros((1, 768)), ebert.AlignmentOptions(method="none"))
    return ebert.EBert(encoder, store, unaligned)


def relation_pieces(model, mode) -> list[str]:
    """Return what a relation classifier feeds for the appendix's example."""
    from ebert.relations.data import Sample, SampleSpan

    def span(words, entity):
        return SampleSpan(SENTENCE.index(words), SENTENCE.index(words) + len(words), entity)

    sample = Sample(SENTENCE, span("Battleground", "Battleground (film)"), span("World War II", "World War II"), "P921")
    inputs = ebert.RelationClassifier.fresh(model, mode=mode, labels=["P921", "P19"]).inputs
    return inputs.show(inputs.prepare([sample])[0])


def linker_pieces(model, strategy) -> list[dict]:
    """Return what a linker feeds for Section 5's example, before anything is decoded and after Adams is."""
    from ebert.linking.document import Choice, Document, Span
    from ebert.linking.options import LinkerOptions
    from ebert.linking.refine import ChunkState, Verdict

    def spans(document):
        found = [("Adams", TITLES[3]), ("Platt", TITLES[0]), ("World Cup", TITLES[4])]
        places = [(document.text.index(surface), len(surface), title) for surface, title in found]
        return [Span(start, start + length, (Choice(title, 1.0),)) for start, length, title in places]

    linker = ebert.Linker.fresh(model, options=LinkerOptions(strategy=strategy), generator=spans)
    (chunk,) = linker.chunks([Document("1", TEXT)])
    adams = chunk.spans[0]
    laid = []
    for decoded in ({}, {adams: Verdict(adams, (0.0, 1.0), (0.0, 1.0))}):
        for one in linker.sequences(ChunkState(chunk, decoded)):
            tokens = linker.tokenizer.convert_ids_to_tokens([max(0, piece) for piece in one.ids])
            pieces = " ".join(one.entities.get(place, token).replace(" ", "_") for place, token in enumerate(tokens))
            laid.append({
                "decoded": [TEXT[placed.span.start : placed.span.end] for placed in decoded], "pieces": pieces,
                "positions": one.positions, "masks": one.masks,
                "blocks": [[block.start, block.stop, *block.hidden] for block in one.blocks],
            })  # fmt: skip
    return laid


def test_sequences(model):
    said = {
        name: {mode: " ".join(model.pieces(text, mode=mode)) for mode in ("bert", "concat", "replace")}
        for name, text in PASSAGES.items()
    }
    assert said["native language"] == {
        "bert": "[CLS] The native language of Jean Mara ##is is [MASK] . [SEP]",
        "concat": "[CLS] The native language of Jean_Marais / Jean Mara ##is is [MASK] . [SEP]",
        "replace": "[CLS] The native language of Jean_Marais is [MASK] . [SEP]",
    }
    check_json("sequences/fill.json", said)


def test_sequences_of_relations(model):
    modes = ("bert", "concat", "replace", "wikipedia2vec-concat", "wikipedia2vec-replace")
    check_json("sequences/relations.json", {mode: " ".join(relation_pieces(model, mode)) for mode in modes})


def test_sequences_of_linking(model):
    check_json("sequences/linking.json", {strategy: linker_pieces(model, strategy) for strategy in ("paper", "packed")})


def test_the_frozen_sequences_are_the_paper_s():
    """Of the appendix and of Section 5.2, but for the tokenizer's own way with quotes."""
    text = (DATA / "sequences" / "relations.json").read_text("utf-8")
    assert "classic $ World_War_II / World War II $ drama ` ` # Battleground_(film) / Battle ##ground # ' '" in text
    text = (DATA / "sequences" / "linking.json").read_text("utf-8")
    assert "[CLS] Adams and [MASK] / P ##latt * are both injured" in text
