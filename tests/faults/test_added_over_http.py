"""Additions by the service: names that nobody can read and vectors that are none are refused there, too."""

import sys
from pathlib import Path

import numpy as np

sys.path.append(str(Path(__file__).parents[1] / "serve"))
import serve_world


def test_unseen_characters_are_refused_and_damage_is_told(tmp_path):
    folder = serve_world.write_model(tmp_path)
    with serve_world.live(serve_world.tiny(folder)) as service, service.client() as client:

        def add(title, *aliases):
            asked = {"title": title, "description": "both injured and will miss", "aliases": list(aliases)}
            return client.post("/api/entities", json=asked)

        assert add("Zorblax").status_code == 201
        assert add("Zorbl\u0430x").status_code == 201  # with a Cyrillic a
        found = client.get("/api/entities", params={"q": "zorb"}).json()["entities"]
        assert [one["title"] for one in found[:2]] == ["Zorblax", "Zorbl\u0430x"]
        assert [one["oddity"] for one in found[:2]] == [None, "mixes Latin and Cyrillic letters"]
        for title, aliases in (("Zor\u200bblax 2", ()), ("Zor\0blax 3", ()), ("Zorblax 4", ("Zor\u2066b",))):
            answer = add(title, *aliases)
            assert answer.status_code == 422
            assert "is invisible; leave it out" in answer.json()["error"]
            assert client.get("/api/entity", params={"name": title}).status_code == 404
    outputs = tmp_path / "store" / "outputs.safetensors"
    content = bytearray(outputs.read_bytes())
    content[256:] = np.full((len(content) - 256) // 4, np.nan, "<f4").tobytes()
    outputs.write_bytes(content)
    with serve_world.live(serve_world.tiny(folder)) as service, service.client() as client:
        answer = client.post("/api/entities", json={"title": "Zorblax 5", "description": "both injured"})
        assert answer.status_code == 422
        assert "infinite or not numbers" in answer.json()["error"]
        assert client.get("/api/entity", params={"name": "Zorblax 5"}).status_code == 404
