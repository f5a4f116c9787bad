"""A pipeline with the linker in it, saved and loaded by spaCy: where the linker is, or a copy of it."""

import gc
import json
import shutil
import subprocess
import sys
from pathlib import Path

import link_world
import pytest
import spacy
import srsly
from spacy.util import load_model_from_config

from ebert import EbertError
from ebert._io import trusted
from ebert.spacy import EXTENSIONS

TEXT = link_world.TEXT
NAME = "ebert_linker"


def links(nlp):
    return [(e.text, e.label_, e.kb_id_, *(e._.get(name) for name in EXTENSIONS)) for e in nlp(TEXT).ents]


def from_bytes(nlp, data, **config):
    """The round trip of spaCy's documentation: the config makes the pipeline, the bytes fill it."""
    settings = nlp.config.copy()
    settings["components"][NAME].update(config)
    return load_model_from_config(settings, auto_fill=True).from_bytes(data)


@pytest.fixture
def own(folder, tmp_path):
    """A linker and its store that a test may move away."""
    info = json.loads((folder / "linker.json").read_text("utf-8"))
    shutil.copytree(info["vectors"]["name"], tmp_path / "own" / "store")
    shutil.copytree(folder, tmp_path / "own" / "linker")
    info["vectors"]["name"] = str(tmp_path / "own" / "store")
    info["saved_here"] = trusted.mark(info["vectors"]["name"])
    (tmp_path / "own" / "linker" / "linker.json").write_text(json.dumps(info), "utf-8")
    return tmp_path / "own"


def test_saved_and_loaded(pipeline, tmp_path):
    nlp = pipeline(threshold=0.2, label="WIKI", mentions="own", alignment_mode="strict", overwrite=True)
    nlp.add_pipe("entity_ruler", first=True).add_patterns([{"label": "GPE", "pattern": "England"}])
    nlp.to_disk(tmp_path / "saved")
    again = spacy.load(tmp_path / "saved")
    assert again.pipe_names == nlp.pipe_names
    assert again.config == nlp.config
    assert again.to_bytes() == nlp.to_bytes()
    assert again.get_pipe(NAME).options == nlp.get_pipe(NAME).options
    assert links(again) == links(nlp)
    assert len(links(nlp)) > 2
    again.to_disk(tmp_path / "twice")
    assert links(spacy.load(tmp_path / "twice")) == links(nlp)


def test_as_bytes(pipeline):
    nlp = pipeline(threshold=0.2, label="WIKI")
    data = nlp.to_bytes()
    again = from_bytes(nlp, data)
    assert again.to_bytes() == data
    assert again.get_pipe(NAME).options == nlp.get_pipe(NAME).options
    assert links(again) == links(nlp)


def test_saving_loads_no_linker(pipeline, tmp_path):
    nlp = pipeline()
    nlp.to_disk(tmp_path / "saved")
    assert spacy.load(tmp_path / "saved").get_pipe(NAME)._linker is None
    assert nlp.get_pipe(NAME)._linker is None


def test_a_path_is_good_from_everywhere(own, tmp_path, monkeypatch):
    monkeypatch.chdir(own)
    nlp = spacy.blank("en")
    nlp.add_pipe(NAME, config={"linker": "linker", "vectors": "store"})
    nlp.to_disk("saved")
    expect = links(nlp)
    monkeypatch.chdir(tmp_path)
    assert links(spacy.load("own/saved")) == expect


def test_the_config_that_is_given_counts(own, pipeline, tmp_path):
    nlp = spacy.blank("en")
    nlp.add_pipe(NAME, config={"linker": str(own / "linker"), "copy_linker": True})
    nlp.to_disk(tmp_path / "saved")
    expect = links(nlp)
    (own / "linker").rename(tmp_path / "moved")
    (own / "store").rename(tmp_path / "store")
    places = {"linker": str(tmp_path / "moved"), "vectors": str(tmp_path / "store")}
    again = spacy.load(tmp_path / "saved", config={"components": {NAME: {**places, "label": "OTHER"}}})
    assert again.get_pipe(NAME).linker.vectors.path == tmp_path / "store"
    assert [(text, *rest) for text, _, *rest in links(again)] == [(text, *rest) for text, _, *rest in expect]
    assert {label for _, label, *_ in links(again)} == {"OTHER"}
    other = spacy.load(tmp_path / "saved", config={"components": {NAME: {"vectors": places["vectors"]}}})
    assert other.get_pipe(NAME).linker.vectors.path == tmp_path / "store"  # of the linker there is the copy
    assert links(other) == expect


def test_a_linker_that_has_moved_is_named(own, tmp_path):
    nlp = spacy.blank("en")
    nlp.add_pipe(NAME, config={"linker": str(own / "linker")})
    nlp.to_disk(tmp_path / "saved")
    (own / "linker").rename(tmp_path / "moved")
    with pytest.raises(EbertError, match=r"the pipe 'ebert_linker' cannot load its linker: there is no linker at"):
        spacy.load(tmp_path / "saved")(TEXT)


def test_a_copy_needs_nothing_else(own, tmp_path):
    nlp = spacy.blank("en")
    nlp.add_pipe(NAME, config={"linker": str(own / "linker"), "copy_linker": True})
    nlp.get_pipe(NAME).linker.add("Zorblax Inc.", [1.0, 0, 0, 0], surfaces=["Zorblax"])
    expect = links(nlp)
    nlp.to_disk(tmp_path / "saved")
    data = nlp.to_bytes()
    shutil.rmtree(own)
    place = (tmp_path / "saved").rename(tmp_path / "moved")
    code = (
        f"import spacy\nnlp = spacy.load({str(place)!r})\n"
        f"print([(e.text, e.kb_id_) for e in nlp({TEXT!r}).ents], [e.kb_id_ for e in nlp('Zorblax').ents])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout == f"{[(row[0], row[2]) for row in expect]} ['Zorblax Inc.']\n", done.stderr
    again = from_bytes(nlp, data)
    assert links(again) == expect
    again.to_disk(tmp_path / "third")
    assert links(spacy.load(tmp_path / "third")) == expect


def test_a_copy_of_a_model_that_was_not_trained_to_link(pipeline, folder, tmp_path):
    nlp = pipeline(linker=str(folder.parent / "ebert"), copy_linker=True)
    nlp.to_disk(tmp_path / "saved")
    again = spacy.load(tmp_path / "saved")
    assert links(again) == links(nlp) != []
    assert Path(again.get_pipe(NAME)._place[0]).is_relative_to(tmp_path)


def test_a_copy_can_be_saved_in_its_place_again(pipeline, tmp_path):
    nlp = pipeline(copy_linker=True)
    nlp.to_disk(tmp_path / "saved")
    again = spacy.load(tmp_path / "saved")
    expect = links(again)
    again.get_pipe(NAME).linker.add("Zorblax Inc.", [1.0, 0, 0, 0], surfaces=["Zorblax"])
    again.to_disk(tmp_path / "saved")
    assert links(again) == expect
    third = spacy.load(tmp_path / "saved")
    assert links(third) == expect
    assert [e.kb_id_ for e in third("Zorblax").ents] == ["Zorblax Inc."]
    nlp.to_disk(tmp_path / "saved")  # another pipeline in its place
    assert not spacy.load(tmp_path / "saved")("Zorblax").ents


def test_the_copy_of_bytes_goes_with_the_pipe(pipeline):
    nlp = pipeline(copy_linker=True)
    again = from_bytes(nlp, nlp.to_bytes())
    folder = Path(again.get_pipe(NAME)._place[0]).parent
    assert (folder / "linker" / "linker.json").is_file()
    assert links(again) == links(nlp)
    del again
    gc.collect()
    assert not folder.exists()


def test_a_generator_of_ones_own_is_not_copied(pipeline, tmp_path):
    nlp = pipeline(copy_linker=True)
    nlp.get_pipe(NAME).linker.generator = lambda document: []
    with pytest.raises(EbertError, match="finds spans with function, which cannot be copied"):
        nlp.to_disk(tmp_path / "saved")


def test_other_folders_and_bytes_are_refused(pipeline, tmp_path):
    pipe = pipeline().get_pipe(NAME)
    with pytest.raises(EbertError, match=r"is not a saved ebert_linker: it has no pipe\.json"):
        pipe.from_disk(tmp_path)
    (tmp_path / "pipe.json").write_text('{"format": 99}', "utf-8")
    with pytest.raises(EbertError, match="has format 99; this version of ebert reads 1: upgrade ebert"):
        pipe.from_disk(tmp_path)
    (tmp_path / "pipe.json").write_text('{"format": 1}', "utf-8")
    with pytest.raises(EbertError, match="is damaged"):
        pipe.from_disk(tmp_path)
    for name in ("../escaped", str(tmp_path / "escaped")):
        with pytest.raises(EbertError, match="outside their folder"):
            pipe.from_bytes(srsly.msgpack_dumps({name: b"x"}))
    assert not (tmp_path / "escaped").exists()


def test_a_pipeline_from_elsewhere_names_no_paths(own, tmp_path, monkeypatch):
    nlp = spacy.blank("en")
    nlp.add_pipe(NAME, config={"linker": str(own / "linker")})
    nlp.to_disk(tmp_path / "saved")
    data, expect = nlp.to_bytes(), links(nlp)
    monkeypatch.setenv("EBERT_HOME", str(tmp_path / "another machine"))
    refused = rf"names the linker {own / 'linker'}, and has no mark of being saved on this machine"
    with pytest.raises(EbertError, match=refused):
        spacy.load(tmp_path / "saved")
    with pytest.raises(EbertError, match=refused):
        from_bytes(nlp, data)
    record = tmp_path / "saved" / NAME / "pipe.json"
    record.write_text(json.dumps({**json.loads(record.read_text("utf-8")), "linker": "starter"}), "utf-8")
    with pytest.raises(EbertError, match="names the linker starter"):  # by another place, that is
        spacy.load(tmp_path / "saved", config={"components": {NAME: {"linker": "starter"}}})
    places = {"linker": str(own / "linker"), "vectors": str(own / "store")}
    assert links(spacy.load(tmp_path / "saved", config={"components": {NAME: places}})) == expect


def test_a_copy_from_elsewhere_has_no_links_to_other_folders(own, tmp_path):
    nlp = spacy.blank("en")
    nlp.add_pipe(NAME, config={"linker": str(own / "linker"), "copy_linker": True})
    nlp.to_disk(tmp_path / "saved")
    vectors = tmp_path / "saved" / NAME / "vectors"
    shutil.rmtree(vectors)
    vectors.symlink_to(own / "store")
    with pytest.raises(EbertError, match="names vectors, which is not inside it"):
        spacy.load(tmp_path / "saved")
