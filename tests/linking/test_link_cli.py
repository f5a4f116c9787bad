"""``ebert link`` as the shell runs it: data in, figures and links out, bad input named."""

import json
import os

import corpora
import encoders
import link_world
import pytest

from ebert import EBert, Linker, Vectors
from ebert._io.files import sha256
from ebert.cli.link_data import use_candidates
from ebert.linking.document import Document
from ebert.vectors.copies import with_surfaces

PIECES = [*encoders.SPECIAL, "/", "*", ".", "'", "s", "Adams", "Platt", *link_world.WORDS]


def lines(*rows):
    return "".join(json.dumps(row) + "\n" for row in rows)


@pytest.fixture
def store(tmp_path):
    path = tmp_path / "store"
    link_world.write_store(path).close()
    return path


@pytest.fixture
def data(tmp_path):
    rows = [
        {"id": "1", "text": link_world.TEXT, "mentions": [
            {"start": 0, "end": 5, "entity": "Tony Alexander Adams"}, {"start": 10, "end": 15, "entity": "Nobody"},
            {"start": 47, "end": 54, "entity": "england"},
        ]},
        {"id": "2", "text": "", "mentions": []},
    ]  # fmt: skip
    path = tmp_path / "data.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return path


def test_the_prior_alone_on_a_store(ebert, store, data, tmp_path):
    """At 0.1: Adams and England right, Platt wrong (Nobody is not in the store), World Cup qualifier not gold."""
    done = ebert("link", "evaluate", store, data, "--prior-only", "--threshold", "0.1", "--json")
    assert done.code == 0
    value = done.json
    assert value["micro"] == {"precision": 50.0, "recall": pytest.approx(200 / 3), "f1": pytest.approx(400 / 7)}
    assert (value["gold"], value["unresolved"]) == (3, 1)
    assert value["macro"]["f1"] == pytest.approx((400 / 7 + 100) / 2)
    assert value["candidate_recall"] == pytest.approx(200 / 3)
    out = tmp_path / "one.json"
    ebert("link", "evaluate", store, data, "--prior-only", "--threshold", "0.1", "--out", out)
    again = ebert(
        "link", "evaluate", store, data, "--prior-only", "--threshold", "0.4", "--against", out, "--json"
    ).json
    assert again["difference"]["value"] < 0
    shown = ebert("link", "evaluate", store, data, "--prior-only", "--given-mentions", "--against", out).out
    assert "candidate recall" in shown
    assert "difference in micro F1" in shown


@pytest.mark.parametrize(
    ("gold", "threshold", "rule"),
    [
        # Link probabilities: Adams 0.1, Platt 0.2, injured 0.01, England 0.3, World Cup 0.5, World Cup qualifier 0.1.
        (["Adams", "Platt", "England", "World Cup"], 0.02, "probability"),
        (["England", "World Cup"], 0.25, "longest"),
        (["Adams", "Platt", "injured", "England", "World Cup qualifier"], 0.005, "longest"),
    ],
)
def test_the_prior_is_tuned(ebert, store, tmp_path, gold, threshold, rule):
    """Of the settings that find exactly the gold, which the default one does not, the first is taken."""
    meant = {surface: max(found, key=found.get) for surface, (_, found) in link_world.TABLE.items()}
    text = link_world.TEXT
    places = [{"start": text.index(s), "end": text.index(s) + len(s), "entity": meant[s]} for s in gold]
    data = tmp_path / "tuning.jsonl"
    data.write_text(lines({"id": "1", "text": text, "mentions": places}), "utf-8")
    default = ebert("link", "evaluate", store, data, "--prior-only", "--json").json
    assert default["micro"]["f1"] < 100
    value = ebert("link", "evaluate", store, data, "--prior-only", "--tune", data, "--json").json
    assert (value["threshold"], value["rule"], value["micro"]["f1"]) == (threshold, rule, 100)


def test_candidates_from_a_corpus_without_test_articles(ebert, store, tmp_path):
    links = [(["Adams"], "John Adams"), "and", (["England"], "England"), (["London"], "London"), (["Cairo"], "Cairo")]
    filler = [f"w{number % 9}" for number in range(60)]
    one, two = [*links, *filler, (["NATO"], "NATO"), "said"], [*links, *filler]
    corpora.write_corpus(tmp_path / "corpus", [("One", [one]), ("Two", [two])])
    (tmp_path / "titles.txt").write_text("Two\nThree\n", "utf-8")
    out = tmp_path / "new"
    done = ebert("link", "candidates", store, "--corpus", tmp_path / "corpus", "--leave-out", tmp_path / "titles.txt",
                 "--out", out, "--json")  # fmt: skip
    assert done.code == 0
    assert done.json["left out"] == ["Two"]
    assert Vectors.open(out).candidates("England")[0].count == 1
    docs = tmp_path / "docs"
    done = ebert("link", "wikipedia", tmp_path / "corpus", "--vectors", out, "--out", docs, "--held-out", 0, "--json")
    assert done.code == 0, done.err
    assert json.loads((docs / "train.jsonl").read_text("utf-8"))["id"] == "One"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (lines({"text": "Adams", "mentions": []}), "none of its 1 documents has a title"),
        (lines({"input": "[START_ENT] Adams [END_ENT]", "output": []}), "(read as layout 'kilt')"),
        ("-DOCSTART- (1 Two)\nAdams\tB\tAdams\tJohn_Adams\n", "one title per line"),
        ("", "has no titles"),
    ],
)
def test_what_cannot_be_left_out_is_named(ebert, store, tmp_path, content, message):
    corpora.write_corpus(tmp_path / "corpus", [("Two", [["Adams"]])])
    path = tmp_path / "test"
    path.write_text(content, "utf-8")
    for command in (["candidates", store, "--corpus", tmp_path / "corpus"],
                    ["wikipedia", tmp_path / "corpus", "--vectors", store]):  # fmt: skip
        done = ebert("link", *command, "--leave-out", path, "--out", tmp_path / "new")
        assert done.code == 2
        assert str(path) in done.err
        assert message in done.err
        assert not (tmp_path / "new").exists()


def test_documents_without_a_title_are_counted(ebert, store, tmp_path):
    links = [([name], name) for name in ("England", "London", "Cairo", "NATO", "Physics")]
    corpora.write_corpus(tmp_path / "corpus", [("One", [links]), ("Two", [links])])
    path = tmp_path / "test.jsonl"
    path.write_text(lines({"text": "a", "title": "Two"}, {"text": "b"}), "utf-8")
    done = ebert("link", "candidates", store, "--corpus", tmp_path / "corpus", "--leave-out", path,
                 "--out", tmp_path / "new", "--json")  # fmt: skip
    assert done.json["left out"] == ["Two"]
    assert "1 of 2 documents" in done.err


def test_candidates_from_a_table(ebert, store, tmp_path):
    (tmp_path / "table").write_text("Adams\t10\t1,1.0,John_Adams\n", "utf-8")
    done = ebert("link", "candidates", store, "--table", tmp_path / "table", "--out", tmp_path / "new", "--json")
    assert done.json["surfaces"] == 1
    made = Vectors.open(tmp_path / "new").info.made["mentions"]
    assert made == {"from": "table", "sha256": sha256(tmp_path / "table")}  # tells it from another of this name
    for wrong in (["--table", tmp_path / "table", "--corpus", store], ["--leave-out", tmp_path / "table"],
                  ["--no-merge", "--keep-apart", tmp_path / "table"]):  # fmt: skip
        assert ebert("link", "candidates", store, *wrong, "--out", tmp_path / "other").code == 2


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A model of a very small BERT with random weights."""
    folder = tmp_path_factory.mktemp("model")
    store = link_world.write_store(folder / "store")
    EBert.fit(encoders.write_small(folder / "bert", PIECES), store).save_pretrained(
        folder / "ebert", include_vectors=False, include_encoder=False
    )
    return folder / "ebert"


@pytest.mark.parametrize("strategy", ["packed", "paper"])
def test_train_evaluate_and_run(ebert, model, data, tmp_path, strategy):
    linker = tmp_path / "linker"
    done = ebert("link", "train", data, "--dev", data, "--model", model, "--strategy", strategy, "--epochs", 1,
                 "--chunk", 64, "--warmup", 0.2, "--weight-decay", 0.05, "--checkpoint-steps", 7, "--out", linker,
                 "--json")  # fmt: skip
    assert done.code == 0, done.err
    assert done.json["best epoch"] == 1
    told = json.loads((linker / "run.json").read_text("utf-8"))["options"]
    assert (told["warmup"], told["weight_decay"], told["checkpoint_steps"], told["precision"]) == (0.2, 0.05, 7, "fp32")
    assert "<svg" in (linker / "convergence.svg").read_text("utf-8")
    for more in ([], ["--given-mentions"], ["--prior-only"]):
        value = ebert("link", "evaluate", linker, data, "--json", *more).json
        assert value["gold"] == 3
        assert value["candidate_recall"] == pytest.approx(200 / 3)
        assert set(value["micro"]) == set(value["macro"]) == {"precision", "recall", "f1"}
    texts = [link_world.TEXT, "", f"😀 שלום {link_world.TEXT}"]
    done = ebert("link", "run", linker, "--json", *(part for text in texts for part in ("--text", text)))
    rows = [json.loads(line) for line in done.out.splitlines()]
    assert [row["text"] for row in rows] == texts
    assert [bool(row["mentions"]) for row in rows] == [True, False, True]
    for row in rows:
        for mention in row["mentions"]:
            assert row["text"][mention["start"] : mention["end"]] == mention["text"]
            assert mention["text"] in link_world.TABLE
            assert {"entity", "probability", "candidates"} <= set(mention)


def test_train_reads_titles_of_ids_from_a_list(ebert, model, tmp_path):
    data, ids = tmp_path / "data.jsonl", tmp_path / "ids.tsv"
    mentions = [{"start": 0, "end": 5, "entity": "Q379999"}, {"start": 47, "end": 54, "entity": "Q21"}]
    data.write_text(lines({"id": "1", "text": link_world.TEXT, "mentions": mentions}), "utf-8")
    ids.write_text("Tony Adams (footballer)\tQ379999\n", "utf-8")
    command = ["link", "train", data, "--dev", data, "--model", model, "--epochs", 1, "--chunk", 64]
    for out, more, missing in (("without", [], 1), ("with", ["--ids", ids], 0)):  # the store knows Q21 only
        done = ebert(*command, "--out", tmp_path / out, *more)
        assert done.code == 0, done.err
        assert f"2 gold mentions, {missing} of entities that the store does not have" in done.err
    told = json.loads((tmp_path / "with" / "run.json").read_text("utf-8"))
    assert told["data"]["ids"] == {"file": ids.name, "sha256": sha256(ids)}
    done = ebert(*command, "--out", tmp_path / "with")
    assert (done.code, "a run with other data" in done.err) == (2, True)


def test_a_run_is_gone_on_with_on_the_same_things_only(ebert, model, data, tmp_path):
    """Other training data of the same name as the dev data, other candidates, another mention table."""
    folder = tmp_path / "dev"
    folder.mkdir()
    dev, given = folder / data.name, tmp_path / "given.jsonl"
    dev.write_text(data.read_text("utf-8"), "utf-8")
    rows = [{"surface": "Adams", "candidates": ["Tony Adams (footballer)", "John Adams"]},
            {"surface": "England", "candidates": ["England"]}]  # fmt: skip
    given.write_text(lines(*rows), "utf-8")
    other = tmp_path / "other"  # stores of the same name and the same vectors
    surfaces = [("Adams", 10, [(0, 9), (1, 1)]), ("England", 10, [(5, 10)])]
    for name in ("one", "two"):
        with_surfaces(
            Vectors.open(model.parent / "store"), other / name / "store", surfaces, made={"from": name}
        ).close()

    def train(out, *more):
        return ebert("link", "train", data, "--dev", dev, "--model", model, "--epochs", 1, "--chunk", 64, "--out",
                     tmp_path / out, "--json", *more)  # fmt: skip

    def use(linker, given, text):
        loaded = Linker.from_pretrained(linker)
        use_candidates(loaded, str(given))
        [span] = loaded.generator(Document("1", text))
        return [choice.title for choice in span.choices]

    for out, more in (("a", ["--given", given, "--candidates", 1]), ("b", ["--vectors", other / "one" / "store"])):
        assert train(out, *more).code == 0
        again = train(out, *more)
        assert again.code == 0
        assert "complete already" in again.err
    info = json.loads((tmp_path / "a" / "run.json").read_text("utf-8"))
    assert info["data"]["train"] == info["data"]["dev"] == {"file": data.name, "sha256": sha256(data)}
    assert info["generator"] == {"file": given.name, "sha256": sha256(given), "candidates": 1}
    prior = ["evaluate", tmp_path / "a", data, "--prior-only", "--json"]
    for command in (["run", tmp_path / "a", "--text", "Adams"], prior):
        told = ebert("link", *command).err
        assert "trained with the candidates of given.jsonl; it now uses those of the mention table" in told
    recall = ebert("link", *prior, "--given", given).json["candidate_recall"]
    assert recall == pytest.approx(100 / 3)  # England's: of Adams the prior sees one candidate, as the linker does
    linked = ebert("link", "run", tmp_path / "a", "--text", "England", "--given", given, "--json")
    assert "trained with" not in linked.err
    Linker.from_pretrained(tmp_path / "a").save_pretrained(tmp_path / "copy")
    assert Linker.from_pretrained(tmp_path / "copy").trained_with == info["generator"]
    assert use(tmp_path / "copy", given, "Adams") == ["John Adams"]  # of two alike, the first: one, as in training
    assert "trained with" not in ebert("link", "run", tmp_path / "b", "--text", "Adams").err
    done = train("b", "--vectors", other / "two" / "store")
    assert (done.code, "a run with other mentions" in done.err) == (2, True)
    given.write_text(lines(*rows[:1]), "utf-8")
    done = train("a", "--given", given, "--candidates", 1)
    assert (done.code, "a run with other generator" in done.err) == (2, True)
    given.write_text(lines(*rows), "utf-8")
    data.write_text(data.read_text("utf-8").replace("Nobody", "Platt (Florida)"), "utf-8")
    done = train("a", "--given", given, "--candidates", 1)
    assert (done.code, "a run with other data" in done.err) == (2, True)


def test_a_run_of_the_version_before(ebert, model, data, tmp_path):
    """It is a linker as it always was. What it cannot tell nobody goes on with."""
    out = tmp_path / "linker"
    command = ["link", "train", data, "--dev", data, "--model", model, "--epochs", 1, "--chunk", 64, "--out", out]
    assert ebert(*command).code == 0
    path = out / "run.json"
    info = json.loads(path.read_text("utf-8"))
    del info["mentions"]
    before = {data.name: sha256(data), "documents": 2, "dev documents": 2}
    path.write_text(json.dumps({**info, "format": 1, "data": before}), "utf-8")
    assert ebert("link", "evaluate", out, data, "--json").json["gold"] == 3
    assert Linker.from_pretrained(out).options.chunk == 64
    done = ebert(*command)
    assert done.code == 2
    assert "another version of ebert" in done.err


def test_run_reads_files_folders_lines_and_standard_input(ebert, model, tmp_path):
    folder = tmp_path / "texts"
    folder.mkdir()
    (folder / "a.txt").write_text("Adams\nPlatt\n", "utf-8")
    (folder / "b.jsonl").write_text('{"id": "x", "text": "Platt"}\n', "utf-8")

    def ids(*arguments, **options):
        done = ebert("link", "run", model, "--json", *arguments, **options)
        assert done.code == 0, done.err
        return [json.loads(line)["id"] for line in done.out.splitlines()]

    (folder / "c").write_text("Adams", "utf-8")
    (folder / "d.tsv").write_text("-DOCSTART- (1 Zoo)\nAdams\n", "utf-8")
    (folder / "e.tsv").write_text("a table\tof numbers\n", "utf-8")
    for passed_over in (".DS_Store", ".git/index", "program"):
        (folder / passed_over).parent.mkdir(exist_ok=True)
        (folder / passed_over).write_bytes(b"\xff\x00")
    assert ids(folder) == ["a.txt", "x", "c", "1 Zoo"]
    assert ids(folder / "a.txt", "--lines") == ["a.txt:1", "a.txt:2"]
    assert ids(stdin="Adams and Platt") == ["stdin"]
    assert ids(stdin='\ufeff{"id": "y", "text": "Adams"}\n') == ["y"]
    assert ids(stdin='{"text": "Adams"}\n{"text": "Platt"}\n') == ["1", "2"]
    assert ids(folder / "a.txt", "-", folder / "b.jsonl", stdin="Platt") == ["a.txt", "stdin", "x"]
    assert ids("-", "--text", "Adams", stdin="Platt") == ["1", "stdin"]
    assert ids("-", folder / "a.txt", "-", folder / "a.txt", stdin="Platt") == ["stdin", "a.txt", "a.txt"]
    out = tmp_path / "out.html"
    assert ebert("link", "run", model, folder, "--format", "html", "--out", out).code == 0
    assert out.read_text("utf-8").startswith("<!doctype html>")


def test_a_layout_is_read_from_standard_input_too(ebert, model):
    zelda = lines({"id": "z", "text": "Adams met Platt", "index": [[0, 5]], "wikipedia_titles": ["John Adams"]})
    aida = "-DOCSTART- (1 Zoo)\nAdams\nmet\nPlatt\n"
    for layout, text, name in (("zelda", zelda, "z"), ("aida", aida, "1 Zoo")):
        done = ebert("link", "run", model, "--json", "--layout", layout, stdin=text)
        assert done.code == 0, done.err
        row = json.loads(done.out)
        assert (row["id"], row["text"]) == (name, "Adams met Platt")
    kilt = lines({"id": "k", "input": "[START_ENT] Adams [END_ENT] met Platt", "output": [{"answer": "John Adams"}]})
    nif = """@prefix nif: <http://persistence.uni-leipzig.org/nlp2rdf/ontologies/nif-core#> .
<http://x/n#char=0,15> a nif:Context ; nif:beginIndex 0 ; nif:endIndex 15 ; nif:isString "Adams met Platt" ."""
    for text in (aida, kilt, nif, f"# a comment\n\n{nif}"):  # these cannot be taken for a text
        done = ebert("link", "run", model, "--json", stdin=text)
        assert done.code == 0, done.err
        assert done.json["text"] == "Adams met Platt"
    about = "See nif-core# and -DOCSTART- on Adams"
    assert ebert("link", "run", model, "--json", stdin=about).json["text"] == about
    done = ebert("link", "run", model, "--layout", "nif", stdin=aida)
    assert done.code == 2
    assert "stdin" in done.err


@pytest.mark.parametrize("broken", ['{"text": "Adams"', '{"text": "Adams", "id": ' + "1" * 5000 + "}", "Adams"])
def test_json_that_is_broken_from_the_first_line_on_is_no_text(ebert, model, tmp_path, broken):
    path = tmp_path / "cut.jsonl"
    path.write_text(broken + '\n{"text": "Platt"}\n', "utf-8")
    done = ebert("link", "run", model, path, "--json")
    assert (done.code, done.out) == (2, "")
    assert "cut.jsonl, line 1: it is not JSON" in done.err
    text = '{"Adams" and so on'
    assert ebert("link", "run", model, "--json", stdin=text).json["text"] == text


def test_ids_that_cannot_be_written(ebert, model, tmp_path):
    folder, out = tmp_path / "texts", tmp_path / "out.jsonl"
    folder.mkdir()
    (folder / os.fsdecode(b"caf\xe9.txt")).write_text("Adams", "utf-8")
    (folder / "more.jsonl").write_text('{"text": "Adams", "id": "\\ud800"}\n', "utf-8")
    done = ebert("link", "run", model, folder, "--json", "--out", out)
    assert done.code == 0, done.err
    assert [json.loads(line)["id"] for line in out.read_text("utf-8").splitlines()] == ["caf?.txt", "?"]


def test_what_was_left_out_is_told(ebert, model, data, tmp_path):
    """A candidate of the file that the store does not have, and a span that is longer than a chunk."""
    text = "Adams " + "x" * 30 + " " + "and " * 70
    path, given = tmp_path / "long.jsonl", tmp_path / "given.jsonl"
    path.write_text(lines({"id": "1", "text": text, "mentions": []}), "utf-8")
    row = {"id": "1", "spans": [{"start": 0, "end": len(text), "candidates": ["Injury", "No such thing"]}]}
    given.write_text(lines(row), "utf-8")
    named = "1 candidates that the store does not have"
    spans = "spans that a split cuts or that are longer than a chunk"
    done = ebert("link", "evaluate", model, path, "--given", given)
    assert done.code == 0, done.err
    assert named in done.err
    assert f"left out: 1 {spans}" in done.out
    done = ebert("link", "evaluate", model, path, "--given", given, "--json")
    assert done.json["left_out"] == {spans: 1}
    assert ebert("link", "evaluate", model, path, "--given", given, "--prior-only", "--json").json["left_out"] == {}
    done = ebert("link", "run", model, path, "--given", given)
    assert named in done.err
    assert f"1 {spans}" in done.err
    done = ebert("link", "train", data, "--model", model, "--given", given, "--out", tmp_path / "linker")
    assert named in done.err


@pytest.fixture
def no_matplotlib(monkeypatch):
    """As if it were not installed."""
    import sys

    for name in [name for name in sys.modules if name.split(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)


def test_a_search_without_matplotlib_ends_well(ebert, model, data, tmp_path, no_matplotlib):
    done = ebert("link", "search", data, "--dev", data, "--model", model, "--epochs", 1, "--chunk", 64, "--batches", 8,
                 "--learning-rates", "1e-4", "--out", tmp_path / "search", "--json")  # fmt: skip
    assert done.code == 0, done.err
    assert done.json["best"] == "0.0001-8"
    shown = ebert("link", "search", data, "--dev", data, "--model", model, "--epochs", 1, "--chunk", 64, "--batches", 8,
                  "--learning-rates", "1e-4", "--out", tmp_path / "search").out  # fmt: skip
    assert shown.splitlines()[-1].split()[:3] == ["0.0001", "8", "1"]
    assert shown.endswith("best\n")
    assert "matplotlib" in done.err
    assert not (tmp_path / "search" / "curve.svg").exists()


def test_given_candidates(ebert, model, data, tmp_path):
    given = tmp_path / "given.jsonl"
    given.write_text('{"surface": "injured", "candidates": ["Injury"]}\n', "utf-8")
    value = ebert("link", "evaluate", model, data, "--given", given, "--json").json
    assert (value["spans"], value["candidate_recall"]) == (1, 0)


def test_given_candidates_of_documents_without_an_id(ebert, model, tmp_path):
    """They are numbered from 1, by whatever command."""
    given, path = tmp_path / "given.jsonl", tmp_path / "texts.jsonl"
    given.write_text(lines({"id": "2", "surface": "Platt", "candidates": ["Platt (Florida)"]}), "utf-8")
    row = {"text": "Platt", "mentions": [{"start": 0, "end": 5, "entity": "Platt (Florida)"}]}
    path.write_text(lines(row) + "\n" + lines(row), "utf-8")
    run = ebert("link", "evaluate", model, path, "--given", given, "--out", tmp_path / "out.json")
    assert run.code == 0, run.err
    assert [one["id"] for one in ebert("link", "run", model, path, "--given", given, "--json").lines] == ["1", "2"]
    found = json.loads((tmp_path / "out.json").read_text("utf-8"))
    assert (found["spans"], [one["id"] for one in found["per_document"]]) == (1, ["1", "2"])


def test_a_tuning_set_knows_the_ids_too(ebert, store, tmp_path):
    label = {"span": [0, 5], "entity_id": "Q1", "name": "Nobody at all"}
    row = {"id": 1, "title": "", "text": "Adams", "labels": [label], "evaluation_span": [0, 5]}
    path, ids = tmp_path / "elevant.jsonl", tmp_path / "ids.json"
    path.write_text(lines(row), "utf-8")
    ids.write_text(json.dumps({"Q1": "Tony Adams (footballer)"}), "utf-8")
    done = ebert("link", "evaluate", store, path, "--prior-only", "--tune", path, "--ids", ids, "--json")
    assert "1 gold mentions, 0 of entities that the store does not have" in done.err
    assert done.json["micro"]["f1"] == 100


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "MODEL", "nowhere.txt"], "there is no file"),
        (["evaluate", "MODEL", "nowhere.jsonl"], "there is no file"),
        (["evaluate", "MODEL", "DATA", "--layout", "nif"], "not Turtle"),
        (["evaluate", "MODEL", "DATA", "--tune", "DATA"], "--prior-only"),
        (["evaluate", "MODEL", "DATA", "--layout", "zelda"], "there is no 'index'"),
        (["evaluate", "MODEL", "DATA", "--given-mentions", "--threshold", "0.5"], "leave out --threshold"),
        (["evaluate", "MODEL", "DATA", "--prior-only", "--mask", "standard"], "--prior-only uses no encoder"),
        (["evaluate", "MODEL", "DATA", "--against", "nowhere.json"], "there is no file nowhere.json"),
        (["evaluate", "MODEL", "DATA", "--out", "FOLDER"], "is a folder; give the name of a file"),
        (["evaluate", "MODEL", "DATA", "--given", "EMPTY"], "has no candidates that the store has"),
        (["run", "MODEL", "DATA", "--out", "/proc/nothing.txt"], "/proc/nothing.txt cannot be written"),
        (["run", "MODEL", "--text", "Adams", "--layout", "aida"], "--layout is for files"),
        (["run", "MODEL", "DATA", "--json", "--format", "html"], "not both"),
        (["run", "FOLDER", "DATA"], "and no model that can link without training"),
        (["train", "DATA", "--model", "MODEL", "--out", "FOLDER"], "contains something else (it has no run.json)"),
        (["train", "DATA", "--model", "MODEL", "--out", "/proc/nothing"], "/proc/nothing cannot be made"),
        (["train", "ONE", "--model", "MODEL", "--out", "OUT"], "has one document"),
        (["candidates", "STORE", "--table", "TABLE", "--out", "OUT"], "no surface of the new table"),
        (["train", "DATA", "--model", "nowhere", "--out", "OUT"], "nowhere"),
        (["wikipedia", "nowhere", "--vectors", "nowhere", "--out", "OUT"], "there is no corpus"),
    ],
)
def test_bad_input_is_named(ebert, model, store, data, tmp_path, arguments, message):
    places = {
        "MODEL": model, "DATA": data, "OUT": tmp_path / "out", "FOLDER": tmp_path, "EMPTY": tmp_path / "empty",
        "ONE": tmp_path / "one.jsonl", "TABLE": tmp_path / "table.txt", "STORE": store,
    }  # fmt: skip
    places["EMPTY"].write_text("")
    places["ONE"].write_text(lines({"text": "Adams", "mentions": [{"start": 0, "end": 5, "entity": "John Adams"}]}))
    places["TABLE"].write_text("Adams\t1\t1,1.0,Nobody\n")
    done = ebert("link", *(places.get(argument, argument) for argument in arguments))
    assert done.code == 2
    assert message in done.err
    assert not (tmp_path / "out").exists()
