"""Tables of Wikidata ids and titles."""

import json

import pytest

from ebert.errors import EbertError
from ebert.vectors.wikidata_ids import read_ids

URL = "https://en.wikipedia.org/wiki/Berlin"


@pytest.mark.parametrize(
    "text",
    [
        json.dumps({"Q90": "Paris", "/m/1": {"wikidata_id": "Q64", "wikipedia": URL}, "/m/2": {"wikidata_id": "Q1"}}),
        f"\ufeffParis\tQ90\n\nQ64\t{URL}\r\nParis, France\tQ90\n",
    ],
)
def test_every_form(tmp_path, text):
    (tmp_path / "ids").write_text(text, "utf-8")
    assert read_ids(tmp_path / "ids") == {90: "Paris", 64: URL}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[]", "is not a table"), ("{}", "has no Wikidata ids"), ('{"Paris": "Q90"}', "has no Wikidata ids"),
        ("{", "cannot be read"), ("", "has no Wikidata ids"), ("Paris\tQ90\nLondon\n", "line 2: no title"),
    ],
)  # fmt: skip
def test_what_is_none(tmp_path, text, message):
    (tmp_path / "ids").write_text(text)
    with pytest.raises(EbertError, match=f"ids.* {message}.*; it should be JSON such as"):
        read_ids(tmp_path / "ids")
    with pytest.raises(EbertError, match="cannot be read"):
        read_ids(tmp_path / "nothing")
