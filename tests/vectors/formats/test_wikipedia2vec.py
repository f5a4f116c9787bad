"""Wikipedia2Vec's files: written by the package itself where it is installed, and by hand in its layout."""

import bz2

import joblib
import marisa_trie
import numpy as np
import pytest

from ebert import EbertError
from ebert.vectors.formats.importer import import_vectors

WORDS = ["the", "paris", "été", "日本"]
TITLES = ["Jean Marais", "Paris", "New York City", "AC/DC"]
REDIRECTS = {"NYC": "New York City", "Jean Alfred Villain-Marais": "Jean Marais"}
DIMENSION = 5


def parts():
    """Names in tries, counts, and vectors in the order of the tries: words, then entities."""
    words, entities = marisa_trie.Trie(WORDS), marisa_trie.Trie(TITLES)
    redirects = marisa_trie.RecordTrie("<I", [(a, (entities[b],)) for a, b in REDIRECTS.items()])
    word_stats = np.array([[10 + i, 1] for i in range(len(words))], np.int32)
    entity_stats = np.array([[100 + i, 1] for i in range(len(entities))], np.int32)
    # Three decimals, as save_text writes them
    vectors = np.random.default_rng(0).standard_normal((len(words) + len(entities), DIMENSION)).round(3)
    return words, entities, redirects, word_stats, entity_stats, vectors.astype(np.float32)


def layout(**changes):
    words, entities, redirects, word_stats, entity_stats, vectors = parts()
    dictionary = {
        "word_dict": words.tobytes(),
        "entity_dict": entities.tobytes(),
        "redirect_dict": redirects.tobytes(),
        "word_stats": word_stats,
        "entity_stats": entity_stats,
        "meta": {"uuid": "x", "language": "en", "lowercase": True, "min_paragraph_len": 0, "build_params": {}},
    }
    dictionary |= changes.pop("dictionary", {})
    return {"syn0": vectors, "syn1": vectors * 0, "dictionary": dictionary, "train_params": {"window": 5}} | changes


def check_vectors(store):
    words, entities, _, _, _, vectors = parts()
    assert (store.info.words, len(store), store.dimension) == (4, 4, DIMENSION)
    for word in WORDS:
        np.testing.assert_array_equal(store.word_vector(word), vectors[words[word]])
    for title in TITLES:
        np.testing.assert_array_equal(store[title], vectors[len(words) + entities[title]])
    assert "dropped" not in store.info.made


def check_names(store):
    words, entities, _, _, _, _ = parts()
    assert store.find("NYC").title == "New York City"
    assert store.find("Jean Alfred Villain-Marais").title == "Jean Marais"
    for word in WORDS:
        assert store.word_count(word) == 10 + words[word]
    for title in TITLES:
        assert store.find(title).count == 100 + entities[title]


@pytest.fixture
def model():
    wikipedia2vec = pytest.importorskip("wikipedia2vec")
    dictionary = pytest.importorskip("wikipedia2vec.dictionary")
    *names, vectors = parts()
    made = wikipedia2vec.Wikipedia2Vec(dictionary.Dictionary(*names, language="en", lowercase=True))
    made.syn0, made.syn1 = vectors, vectors * 0
    return made


def test_a_model_that_the_package_saved(model, tmp_path):
    model.save(str(tmp_path / "model.pkl"))
    with import_vectors([tmp_path / "model.pkl"], tmp_path / "store") as store:
        check_vectors(store)
        check_names(store)


def test_a_model_that_the_package_loaded_mapped_and_saved_again(model, tmp_path):
    from wikipedia2vec import Wikipedia2Vec

    model.save(str(tmp_path / "first.pkl"))
    Wikipedia2Vec.load(str(tmp_path / "first.pkl")).save(str(tmp_path / "model.pkl"))
    with import_vectors([tmp_path / "model.pkl"], tmp_path / "store") as store:
        check_vectors(store)
        check_names(store)


@pytest.mark.parametrize("style", ["default", "word2vec", "glove"])
def test_text_that_the_package_saved(model, tmp_path, style):
    model.save_text(str(tmp_path / "v.txt"), out_format=style)
    with import_vectors([tmp_path / "v.txt"], tmp_path / "store") as store:
        check_vectors(store)


def test_a_model_that_the_package_read_from_text_knows_no_counts(model, tmp_path):
    from wikipedia2vec import Wikipedia2Vec

    model.save_text(str(tmp_path / "v.txt"))
    Wikipedia2Vec.load_text(str(tmp_path / "v.txt")).save(str(tmp_path / "model.pkl"))
    with import_vectors([tmp_path / "model.pkl"], tmp_path / "store") as store:
        check_vectors(store)
        assert store.word_count("the") is None  # the file says 0 for all


def test_the_package_reads_what_is_exported(model, tmp_path):
    from wikipedia2vec import Wikipedia2Vec

    from ebert.vectors.formats.exporter import export_text

    model.save(str(tmp_path / "model.pkl"))
    with import_vectors([tmp_path / "model.pkl"], tmp_path / "store") as store:
        export_text(store, tmp_path / "v.txt")
    read = Wikipedia2Vec.load_text(str(tmp_path / "v.txt"))
    for word in WORDS:
        np.testing.assert_array_equal(read.get_word_vector(word), model.get_word_vector(word))
    for title in TITLES:
        np.testing.assert_array_equal(read.get_entity_vector(title), model.get_entity_vector(title))


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_the_documented_layout(tmp_path, protocol):
    joblib.dump(layout(), tmp_path / "model.pkl", protocol=protocol)
    done = []
    with import_vectors([tmp_path / "model.pkl"], tmp_path / "store", advance=done.append) as store:
        check_vectors(store)
        check_names(store)
    assert sum(done) == (tmp_path / "model.pkl").stat().st_size


def test_output_vectors_are_kept_so_that_entities_can_be_described(tmp_path):
    words, _, _, _, _, vectors = parts()
    joblib.dump(layout(syn1=vectors[::-1].copy()), tmp_path / "model.pkl")
    with import_vectors([tmp_path / "model.pkl"], tmp_path / "store") as store:
        np.testing.assert_array_equal(store.word_outputs, vectors[::-1][: len(words)])
        assert store.lowercase
        store.add("New", description="Paris, the PARIS!")  # no word is in capitals there
        assert store["New"].any()
    for name, options in (("words", {"kind": "words"}), ("entities", {"kind": "entities"})):
        with import_vectors([tmp_path / "model.pkl"], tmp_path / name, **options) as store:
            assert store.word_outputs is None
    joblib.dump(layout(), tmp_path / "zero.pkl")
    joblib.dump(layout(syn1=None), tmp_path / "none.pkl")
    joblib.dump(layout(syn1=vectors[1:]), tmp_path / "other.pkl")
    for name in ("zero", "none", "other"):
        with import_vectors([tmp_path / f"{name}.pkl"], tmp_path / name) as store:
            assert store.word_outputs is None


@pytest.mark.parametrize(
    "change",
    [np.asfortranarray, lambda m: m.astype(">f4"), lambda m: m.astype(np.float64), lambda m: np.vstack([m, m[:1]])],
)
def test_vectors_of_other_orders_types_and_one_row_too_many(tmp_path, change):
    joblib.dump(layout(syn0=change(parts()[-1])), tmp_path / "model.pkl")
    with import_vectors([tmp_path / "model.pkl"], tmp_path / "store") as store:
        check_vectors(store)


def test_a_redirect_that_leads_nowhere_is_counted(tmp_path):
    broken = marisa_trie.RecordTrie("<I", [("NYC", (99,))]).tobytes()
    joblib.dump(layout(dictionary={"redirect_dict": broken}), tmp_path / "model.pkl")
    with import_vectors([tmp_path / "model.pkl"], tmp_path / "store") as store:
        assert store.info.made["dropped"] == {"redirects": 1}


@pytest.mark.parametrize(
    "value",
    [
        [1, 2],
        None,
        {},
        layout(syn0=None),
        layout(syn0=parts()[-1][:5]),
        layout(syn0=parts()[-1].ravel()),
        layout(dictionary={"word_dict": b"not a trie"}),
        layout(dictionary={"word_dict": 5}),
        layout(dictionary={"word_stats": [1, 2, 3]}),
        layout(dictionary={"entity_stats": None}),
        layout(dictionary={"word_stats": np.zeros((1, 2), np.int32) + 1}),
    ],
)
def test_what_is_no_model(tmp_path, value):
    joblib.dump(value, tmp_path / "model.pkl")
    with pytest.raises(EbertError, match=r"model\.pkl"):
        import_vectors([tmp_path / "model.pkl"], tmp_path / "store")
    assert not (tmp_path / "store").exists()


@pytest.mark.parametrize("share", [0.02, 0.3, 0.5, 0.9, 0.999])
def test_a_truncated_model(tmp_path, share):
    joblib.dump(layout(), tmp_path / "whole.pkl")
    whole = (tmp_path / "whole.pkl").read_bytes()
    (tmp_path / "model.pkl").write_bytes(whole[: int(len(whole) * share)])
    with pytest.raises(EbertError, match=r"model\.pkl"):
        import_vectors([tmp_path / "model.pkl"], tmp_path / "store")


def test_a_compressed_model_is_to_be_decompressed_first(tmp_path):
    joblib.dump(layout(), tmp_path / "model.pkl")
    (tmp_path / "model.pkl.bz2").write_bytes(bz2.compress((tmp_path / "model.pkl").read_bytes()))
    joblib.dump(layout(), tmp_path / "zipped.pkl", compress=3)
    for name in ("model.pkl.bz2", "zipped.pkl"):
        with pytest.raises(EbertError, match="decompress it first"):
            import_vectors([tmp_path / name], tmp_path / "store")
