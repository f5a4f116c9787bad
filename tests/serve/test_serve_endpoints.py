"""Every endpoint, asked over HTTP: what it answers, and what it says when something is wrong."""

import math
from dataclasses import replace
from itertools import pairwise

import limits
import pytest
from pydantic import ValidationError
from serve_world import TEXT, live, nif, tiny, write_model, write_store

from ebert import Linker
from ebert.linking.document import Document
from ebert.model.check import TEMPLATES
from ebert.serve.app import make_api
from ebert.serve.schemas import encode
from ebert.serve.work import load

SENTENCE = "[[England]] will miss [MASK]"


def ok(answer, status=200):
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/json"
    return answer.json()


def wrong(answer, status, *words):
    assert answer.status_code == status, answer.text
    error = answer.json()["error"]
    assert all(word in error for word in words), error
    return error


# About the service


def test_health_and_readiness(client):
    assert ok(client.get("/health")) == {"status": "ok"}
    assert ok(client.get("/ready")) == {"ready": True, "why": None}


def test_the_model_is_described(client, service):
    about = ok(client.get("/api/model"))
    assert (about["name"], about["encoder"]) == ("model", "bert")
    assert about["keeps"] is False
    assert about["mask"] == "[MASK]"
    assert about["modes"] == ["bert", "concat", "replace"]
    assert (about["words"], about["dimension"], about["store"]) == (11, 16, "store")
    assert about["entities"] >= 20
    assert about["linker"] == {
        "name": "model (not trained to link)",
        "rounds": 1,
        "strategy": "packed",
        "precision": "fp32",
    }
    assert about["limits"] == {"characters": 20000, "body": 262144, "top": 100}


def test_metrics_count_requests_refusals_and_batches(client):
    ok(client.post("/api/fill", json={"text": SENTENCE}))
    client.post("/api/fill", json={"text": "x" * 20001})
    client.get("/nothing-like-this")
    answer = client.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain")
    lines = dict(line.rsplit(" ", 1) for line in answer.text.splitlines() if not line.startswith("#"))
    assert float(lines['ebert_requests_total{endpoint="/api/fill",status="200"}']) >= 1
    assert float(lines['ebert_requests_total{endpoint="other",status="404"}']) >= 1
    assert not any("nothing-like-this" in name for name in lines)
    assert float(lines['ebert_refused_total{reason="text too long"}']) >= 1
    assert float(lines['ebert_batch_requests_count{lane="fill"}']) >= 1
    assert float(lines['ebert_tokens_total{lane="fill"}']) >= 1
    assert float(lines['ebert_work_seconds_total{lane="fill"}']) > 0
    assert lines['ebert_waiting{lane="fill"}'] == "0.0"
    assert float(lines['ebert_request_seconds_count{endpoint="/api/fill"}']) >= 2


def test_openapi_has_examples_and_no_page_with_outside_assets(client):
    schema = ok(client.get("/openapi.json"))
    assert {"/api/fill", "/api/link", "/api/entities", "/api/explore", "/nif", "/metrics"} <= set(schema["paths"])
    for name in ("FillRequest", "LinkRequest", "NewEntity"):
        assert schema["components"]["schemas"][name]["examples"]
    turtle = schema["paths"]["/nif"]["post"]["requestBody"]["content"]["application/x-turtle"]
    assert "nif:isString" in turtle["example"]
    assert client.get("/docs").status_code == 404


def test_the_examples_in_the_schema_work(client):
    schema = ok(client.get("/openapi.json"))["components"]["schemas"]
    for example in schema["FillRequest"]["examples"]:
        answer = client.post("/api/fill", json={key: value for key, value in example.items() if key != "candidates"})
        assert ok(answer)["missing"] == ["Jean Marais"]
    for example in schema["LinkRequest"]["examples"]:
        ok(client.post("/api/link", json=example))


def test_the_page_and_its_files_are_served_with_a_strict_policy(client):
    page = client.get("/")
    assert page.status_code == 200
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    policy = page.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "script-src 'self'" in policy
    assert "unsafe" not in policy
    assert client.get("/page.js").headers["content-type"].startswith("text/javascript")
    for query in ("?path=/etc/passwd", "?file=/etc/passwd", "?file=x&path=y"):
        assert client.get(f"/page.js{query}").content == client.get("/page.js").content
    for path in ("/index.py", "/../app.py", "/%2e%2e/app.py", "/page/page.js", "//etc/passwd"):
        assert client.get(path).status_code == 404


def test_all_answers_have_the_security_headers(client):
    for answer in (client.get("/health"), client.get("/nothing"), client.post("/api/fill", content=b"{")):
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["x-frame-options"] == "DENY"
        assert "content-security-policy" in answer.headers


def test_every_endpoint_answers_what_it_declares_and_nothing_else(tiny_folder):
    asked = {
        ("GET", "/health"): {}, ("GET", "/ready"): {}, ("GET", "/api/model"): {},
        ("POST", "/api/fill"): {"json": {"text": "[[England]] and [[Atlantis]] will miss [MASK]"}},
        ("POST", "/api/link"): {"json": {"text": TEXT, "trace": True, "threshold": 0}},
        ("GET", "/api/entities"): {"params": {"q": "eng"}},
        ("GET", "/api/entity"): {"params": {"name": "England"}},
        ("GET", "/api/nearest"): {"params": {"name": "England"}},
        ("GET", "/api/explore"): {"params": {"name": "England"}},
        ("GET", "/api/check"): {"params": {"name": "England"}},
        ("POST", "/api/entities"): {"json": {"title": "Zorblax", "description": "both are injured"}},
    }  # fmt: skip
    with live(tiny(tiny_folder)) as service, service.client() as client:
        routes = [route for route in make_api(service.running.service).routes if getattr(route, "response_model", None)]
        assert {(method, route.path) for route in routes for method in route.methods} == set(asked)
        for route in routes:
            (method,) = route.methods
            answer = client.request(method, route.path, **asked[method, route.path])
            declared = route.response_model.model_validate_json(ok(answer, route.status_code or 200) and answer.content)
            assert declared.model_dump(exclude_unset=True) == answer.json()
            with pytest.raises(ValidationError):
                encode({**answer.json(), "more": 1}, route.response_model)


def test_an_answer_that_is_not_as_declared_is_a_failure_of_ours_and_not_an_answer(tiny_folder):
    with live(lambda: replace(tiny(tiny_folder)(), name=5)) as service, service.client() as client:
        wrong(client.get("/api/model"), 500, "ValidationError")
        ok(client.post("/api/fill", json={"text": SENTENCE}))


# Filling


def test_fill_answers_in_all_modes(client, service):
    answer = ok(client.post("/api/fill", json={"text": SENTENCE, "top": 3}))
    assert answer["text"] == "England will miss [MASK]"
    assert answer["mentions"] == [{"start": 0, "end": 7, "text": "England", "entity": "England"}]
    assert answer["missing"] == []
    assert [result["mode"] for result in answer["results"]] == ["bert", "concat", "replace"]
    model = service.loaded.model
    for result in answer["results"]:
        expected = model.fill(SENTENCE, mode=result["mode"], top=3)
        assert result["pieces"] == model.pieces(SENTENCE, mode=result["mode"])
        assert [a["token"] for a in result["masks"][0]] == [a.token for a in expected.answers]
        for got, wanted in zip(result["masks"][0], expected.answers, strict=True):
            assert got["probability"] == pytest.approx(wanted.probability, abs=1e-5)


def test_fill_takes_mentions_by_offsets(client):
    marked = ok(client.post("/api/fill", json={"text": SENTENCE}))
    mentions = [{"start": 0, "end": 7, "entity": "England"}]
    given = ok(client.post("/api/fill", json={"text": "England will miss [MASK]", "mentions": mentions}))
    assert given == marked
    plain = ok(client.post("/api/fill", json={"text": "[[England]] will miss [MASK]", "mentions": []}))
    assert plain["text"] == "[[England]] will miss [MASK]"


def test_fill_with_modes_and_candidates(client):
    asked = {"text": SENTENCE, "modes": ["concat", "concat"], "candidates": ["England", "Cup"], "top": 9}
    (result,) = ok(client.post("/api/fill", json=asked))["results"]
    assert {a["token"] for a in result["masks"][0]} == {"England", "Cup"}
    assert math.isclose(sum(a["probability"] for a in result["masks"][0]), 1, rel_tol=1e-4)


def test_fill_names_entities_without_vectors_and_fills_several_masks(client):
    answer = ok(client.post("/api/fill", json={"text": "[[Atlantis]] and [MASK] are [MASK]"}))
    assert answer["missing"] == ["Atlantis"]
    assert all(len(result["masks"]) == 2 for result in answer["results"])


@pytest.mark.parametrize(
    ("asked", "status", "words"),
    [
        ({"text": "no mask here"}, 422, ["[MASK]"]),
        ({"text": "[[England will miss [MASK]"}, 422, ["never closes"]),
        ({"text": ""}, 422, ["text is empty; at least one character is needed"]),
        ({}, 422, ["text is missing"]),
        ({"text": SENTENCE, "top": 0}, 422, ["top"]),
        ({"text": SENTENCE, "top": 101}, 422, ["at most 100"]),
        ({"text": SENTENCE, "modes": ["gpt"]}, 422, ["modes"]),
        ({"text": SENTENCE, "candidates": []}, 422, ["empty"]),
        ({"text": SENTENCE, "candidates": ["Constantinople"]}, 422, ["Constantinople"]),
        ({"text": SENTENCE, "unknown": 1}, 422, ["unknown"]),
        ({"text": "x [MASK]", "mentions": [{"start": 0, "end": 99, "entity": "England"}]}, 422, ["0:99"]),
        ({"text": "x " * 9000 + "[MASK]"}, 422, ["wordpieces"]),
        ({"text": "x" * 20001}, 413, ["20,001 characters", "20,000"]),
    ],
)
def test_fill_says_what_is_wrong(client, asked, status, words):
    wrong(client.post("/api/fill", json=asked), status, *words)


# Linking


def test_link_gives_what_the_linker_gives(client, tiny_folder):
    answer = ok(client.post("/api/link", json={"text": TEXT, "threshold": 0.0}))
    expected = Linker.from_pretrained(tiny_folder).link(Document("1", TEXT), threshold=0.0).mentions
    assert expected
    assert answer["text"] == TEXT
    for got, wanted in zip(answer["mentions"], expected, strict=True):
        assert (got["start"], got["end"], got["text"], got["entity"], got["url"]) == (
            wanted.start, wanted.end, wanted.text, wanted.entity, wanted.url,
        )  # fmt: skip
        assert got["probability"] == pytest.approx(wanted.probability, abs=1e-5)
        assert got["null_probability"] == pytest.approx(wanted.null, abs=1e-5)
        assert [one["entity"] for one in got["candidates"]] == [one.title for one in wanted.candidates]
        assert {"entity", "prior", "score", "probability"} == set(got["candidates"][0])


def test_rounds_of_refinement_can_be_followed(client):
    answer = ok(client.post("/api/link", json={"text": TEXT, "rounds": 3, "trace": True, "threshold": 0}))
    rounds = answer["rounds"]
    assert 1 < len(rounds) <= 3
    assert rounds[-1] == answer["mentions"]
    sizes = [len(mentions) for mentions in rounds]
    assert sizes == sorted(sizes)
    assert sizes[0] < sizes[-1]
    for before, after in pairwise(rounds):
        assert all(mention in after for mention in before)
    assert "rounds" not in ok(client.post("/api/link", json={"text": TEXT}))


def test_a_threshold_leaves_out_what_is_less_probable(client):
    every = ok(client.post("/api/link", json={"text": TEXT, "threshold": 0}))["mentions"]
    middle = sorted(mention["probability"] for mention in every)[len(every) // 2]
    some = ok(client.post("/api/link", json={"text": TEXT, "threshold": middle}))["mentions"]
    assert 0 < len(some) < len(every)
    assert all(mention["probability"] >= middle for mention in some)


def test_a_text_that_would_take_too_long_in_all_its_rounds_is_refused_before_anything_is_done(client, service):
    text = ("England and " * 1700)[:20_000]
    before = service.loaded.linker.dropped.copy()
    wrong(client.post("/api/link", json={"text": text, "rounds": 10}), 413, "20,000", "10 rounds", "200,000", "60,000")
    wrong(client.post("/api/link", json={"text": text, "rounds": 4}), 413, "fewer rounds")
    assert service.loaded.linker.dropped == before
    ok(client.post("/api/link", json={"text": text, "rounds": 3}))
    ok(client.post("/api/link", json={"text": text[:6000], "rounds": 10}))


@pytest.mark.parametrize(
    "asked", [{"text": TEXT, "threshold": 2}, {"text": TEXT, "rounds": 0}, {"text": TEXT, "rounds": 99}]
)
def test_link_says_what_is_wrong(client, asked):
    wrong(client.post("/api/link", json=asked), 422)


def test_a_text_without_words_has_no_mentions(client):
    assert ok(client.post("/api/link", json={"text": " \n\t ...", "trace": True}))["mentions"] == []


def test_without_a_mention_table_there_is_no_linker(tmp_path):
    folder = write_model(tmp_path, table={})
    with live(tiny(folder)) as service, service.client() as client:
        assert ok(client.get("/api/model"))["linker"] is None
        wrong(client.post("/api/link", json={"text": TEXT}), 404, "--linker")
        assert client.post("/nif", content=b"").status_code == 404
        ok(client.post("/api/fill", json={"text": SENTENCE}))


def test_a_linker_of_its_own(tiny_folder, tmp_path):
    Linker.from_pretrained(tiny_folder, rounds=2).save_pretrained(tmp_path / "linker")
    with live(lambda: load(str(tiny_folder), str(tmp_path / "linker"))) as service, service.client() as client:
        assert ok(client.get("/api/model"))["linker"] == {
            "name": "linker",
            "rounds": 2,
            "strategy": "packed",
            "precision": "fp32",
        }
        assert service.loaded.linker.vectors is service.loaded.vectors
        new = {"title": "Zorblax", "description": "both are injured and miss the opening"}
        ok(client.post("/api/entities", json=new), 201)
        answer = client.post("/nif", content=nif("Zorblax will miss England", [(0, 7)]))
        assert "taIdentRef <urn:ebert:entity:Zorblax>" in answer.text


# Entities


def test_suggestions_while_typing(client):
    def titles(typed, **more):
        found = ok(client.get("/api/entities", params={"q": typed, **more}))["entities"]
        assert all(set(one) == {"title", "count", "added", "oddity"} for one in found)
        return [one["title"] for one in found]

    assert titles("eng") == ["England national football team", "England"]  # the more usual one first
    assert titles("england")[0] == "England"  # unless it is there as it was typed
    assert titles("tony alex") == ["Tony Adams (footballer)"]  # by a redirect
    assert "1998 FIFA World Cup" in titles("world cup")
    assert titles("Enlgand")[0] == "England"
    assert titles("eng", count=1) == ["England national football team"]
    assert titles("") == titles("   ") == titles("%") == []


def test_an_entity_is_looked_up_by_any_of_its_names(client):
    england = ok(client.get("/api/entity", params={"name": "https://en.wikipedia.org/wiki/England"}))
    assert england == {
        "title": "England", "count": 5, "added": False, "oddity": None, "wikidata": "Q21", "aliases": [],
    }  # fmt: skip
    adams = ok(client.get("/api/entity", params={"name": "tony Alexander Adams"}))
    assert adams["aliases"] == ["Tony Alexander Adams"]
    wrong(client.get("/api/entity", params={"name": "Enlgand"}), 404, "England")
    wrong(client.get("/api/entity"), 422, "name")


def test_neighbours_of_entities_and_words(client, service):
    found = ok(client.get("/api/nearest", params={"name": "england", "count": 4}))
    expected = service.loaded.vectors.nearest("England", top=4, kind="both")
    assert found["name"] == "England"
    assert [(one["kind"], one["name"]) for one in found["neighbours"]] == [(one.kind, one.name) for one in expected]
    word = ok(client.get("/api/nearest", params={"name": "physics", "kind": "word", "count": 2}))
    assert len(word["neighbours"]) == 2
    wrong(client.get("/api/nearest", params={"name": "nothing", "kind": "word"}), 404, "nothing")
    wrong(client.get("/api/nearest", params={"name": "England", "kind": "colour"}), 422, "kind")


def test_a_neighbourhood_has_a_map(client):
    found = ok(client.get("/api/explore", params={"name": "England", "count": 3}))
    assert found["entity"]["title"] == "England"
    assert [len(found[part]) for part in ("entities", "words", "wordpieces")] == [3, 3, 3]
    assert [place["kind"] for place in found["map"]] == ["self", *["entity"] * 3, *["word"] * 3]
    assert all(-1 <= place[axis] <= 1 for place in found["map"] for axis in "xy")
    assert max(abs(place[axis]) for place in found["map"] for axis in "xy") == pytest.approx(1)
    similarities = [one["similarity"] for one in found["entities"]]
    assert similarities == sorted(similarities, reverse=True)


# Adding


def test_an_entity_is_checked_with_and_without_its_vector(client, service):
    answer = ok(client.get("/api/check", params={"name": "Tony Alexander Adams"}))  # by a redirect
    assert answer["name"] == "Tony Adams (footballer)"
    assert [one["template"] for one in answer["answers"]] == list(TEMPLATES)
    model = service.loaded.model
    for one in answer["answers"]:
        text = one["template"].format("[[Tony Adams (footballer)|Tony Adams]]")
        for found, mode in ((one["before"], "bert"), (one["after"], "concat")):
            expected = model.fill(text, mode=mode, top=3).answers
            assert [row["token"] for row in found] == [answer.token for answer in expected]
    wrong(client.get("/api/check", params={"name": "Atlantis"}), 404, "Atlantis")


@pytest.mark.parametrize("path", ["entity", "nearest", "explore", "check"])
def test_names_that_were_meant_are_a_list_too(client, path):
    answer = client.get(f"/api/{path}", params={"name": "Englund"})
    wrong(answer, 404, "there is no entity 'Englund' here; did you mean 'England'?")
    assert answer.json()["suggestions"] == ["England"]


def test_adding_an_entity_changes_answers_at_once_and_the_store_not_at_all(tmp_path):
    folder = write_model(tmp_path)
    before = {file.name: file.read_bytes() for file in (tmp_path / "store").iterdir()}
    new = {"title": "Zorblax Inc.", "description": "Both are injured, and miss the opening.", "aliases": ["Zorblax"]}
    with live(tiny(folder)) as service, service.client() as client:
        asked = {"text": "[[Zorblax Inc.]] will miss [MASK]", "modes": ["concat"]}
        assert ok(client.post("/api/fill", json=asked))["missing"] == ["Zorblax Inc."]
        added = ok(client.post("/api/entities", json=new), 201)
        assert added["entity"] == {
            "title": "Zorblax Inc.", "count": None, "added": True, "oddity": None, "wikidata": None,
            "aliases": ["Zorblax"],
        }  # fmt: skip
        assert added["words_used"] == ["are", "injured", "and", "miss", "the", "opening"]
        filled = ok(client.post("/api/fill", json=asked))
        assert filled["missing"] == []
        assert "Zorblax_Inc." in filled["results"][0]["pieces"]
        assert ok(client.get("/api/entities", params={"q": "zorb"}))["entities"][0]["added"]
        assert ok(client.get("/api/model"))["entities"] == 21
        wrong(client.post("/api/entities", json=new), 409, "already", '"replace": true')
        ok(client.post("/api/entities", json={**new, "replace": True}), 201)
        ok(client.post("/api/entities", json={**new, "title": "England", "replace": True}), 201)
        assert ok(client.get("/api/model"))["entities"] == 21
    assert {file.name: file.read_bytes() for file in (tmp_path / "store").iterdir()} == before


def test_with_keep_entities_stay(tmp_path):
    folder = write_model(tmp_path)
    with live(tiny(folder, keep=True)) as service, service.client() as client:
        ok(client.post("/api/entities", json={"title": "Zorblax", "description": "both are injured"}), 201)
    with live(tiny(folder)) as service, service.client() as client:
        assert ok(client.get("/api/entity", params={"name": "Zorblax"}))["added"]


@pytest.mark.parametrize(
    "new",
    [
        {"title": "Zorblax", "description": "xyzzy plugh"},  # no word of it has a vector
        {"title": "   ", "description": "both are injured"},
        {"title": "Zorblax", "description": ""},
        {"title": "Zorblax", "description": "both", "aliases": ["a"] * 101},
        {"title": "z" * 501, "description": "both"},
        {"description": "both"},
    ],
)
def test_adding_says_what_is_wrong(client, new):
    wrong(client.post("/api/entities", json=new), 422)


def test_a_disk_that_is_full_is_said_in_words_and_nothing_breaks(tmp_path):
    folder = write_model(tmp_path)
    new = {"title": "Zorblax", "description": "both are injured"}
    with live(tiny(folder, keep=True)) as service, service.client() as client:
        with limits.full_disk():
            wrong(client.post("/api/entities", json=new), 409, "cannot add to")
        ok(client.post("/api/entities", json=new), 201)


def test_an_addition_that_failed_between_two_stores_is_completed_by_the_same_again(tmp_path):
    folder = write_model(tmp_path)
    own = write_store(tmp_path / "other")
    own.add_many([{"title": f"Filler {number}", "description": "both are injured"} for number in range(1000)])
    Linker.from_pretrained(folder, vectors=own).save_pretrained(tmp_path / "linker")
    largest = max(file.stat().st_size for file in own.path.glob("added*"))  # too large to be written once more
    new = {"title": "Zorblax", "description": "both are injured", "aliases": ["Zorb"]}
    with live(lambda: load(str(folder), str(tmp_path / "linker"), keep=True)) as service, service.client() as client:
        model, linker = service.loaded.stores
        with limits.full_disk(largest // 2):
            wrong(client.post("/api/entities", json=new), 409, "cannot add to", "again")
        assert ("Zorblax" in model, "Zorblax" in linker) == (True, False)
        wrong(client.post("/api/entities", json={**new, "description": "the opening"}), 409, "already")
        added = ok(client.post("/api/entities", json=new), 201)
        assert added["entity"]["aliases"] == ["Zorb"]
        assert ("Zorblax" in model, "Zorblax" in linker) == (True, True)
        assert linker.find("Zorb").title == "Zorblax"
        wrong(client.post("/api/entities", json=new), 409, "already")  # done, and not begun any more


def test_so_many_entities_and_no_more(tiny_folder):
    from ebert.serve.options import Limits

    with live(tiny(tiny_folder), limits=Limits(added=1)) as service, service.client() as client:
        ok(client.post("/api/entities", json={"title": "One", "description": "both"}), 201)
        wrong(
            client.post("/api/entities", json={"title": "Two", "description": "both"}), 422, "limit of 1 added entities"
        )


def test_what_is_not_there(client):
    wrong(client.get("/api/nothing"), 404, "/openapi.json")
    wrong(client.delete("/api/fill"), 405, "DELETE")
    wrong(client.post("/api/entities/", json={}), 404)
