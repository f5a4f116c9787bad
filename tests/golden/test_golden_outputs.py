"""What every command prints with --json, and what it writes, from tiny inputs.

Numbers may differ by a tolerance, as processors do. Run folders, stores and models are described file by file.
"""

import pytest
from golden_tools import check_json, check_text, folder, run, scrub, shape
from golden_world import BULK, STEPS

# Trained weights depend on torch too: their names and shapes are frozen, not their numbers.
TRAINED = ("weights.safetensors",)
FOLDERS = {
    "corpus": ("corpus-wikidata", {}),
    "trained": ("vectors-train", {"hashes": False}),
    "store": ("vectors-import", {}),
    "half": ("vectors-import-half", {}),
    "linking": ("link-candidates", {}),
    "recounted": ("link-candidates-corpus", {"hashes": False, "inexact": ("added-*",)}),
    "documents": ("link-wikipedia", {}),
    "growing": ("vectors-add", {"inexact": ("added-*",)}),
    "model": ("align", {}),
    "linkmodel": ("align-linking", {}),
    "plain": ("export", {"inexact": ("tokenizer*", "config.json")}),
    "own": ("probe-questions", {}),
    "probed": ("probe-lama", {}),
    "report": ("report", {"inexact": ("report.md", "runs.csv")}),
    "uhn": ("lama-uhn", {}),
    "concat": ("relations-evaluate", {"inexact": (*TRAINED, "tokenizer*", "config.json")}),
    "compared": ("relations-report", {}),
    "grid": ("relations-search", {"inexact": (*TRAINED, "tokenizer*", "config.json")}),
    "linker": ("link-train", {"inexact": (*TRAINED, "tokenizer*", "config.json")}),
    "link-grid": ("link-search", {"inexact": (*TRAINED, "tokenizer*", "config.json")}),
}


@pytest.mark.parametrize("name", [name for name in STEPS if name not in BULK])
def test_output(world, name):
    check_json(f"outputs/{name}.json", scrub(world.do(name).json, world.root), within=1e-3)


@pytest.mark.parametrize("name", FOLDERS)
def test_folder(world, name):
    step, how = FOLDERS[name]
    world.do(step)
    check_json(f"folders/{name}.json", folder(world.root / name, world.root, **how), within=1e-3)


def test_exported_text(world):
    world.do("vectors-export")
    check_text("exported.txt", (world.root / "exported.txt").read_text("utf-8"))


def test_doctor_and_starter():
    told = run("doctor", "--json").json
    assert [shape(one) for one in told] == [{"what": "str", "state": "str", "detail": "str"}] * len(told)
    assert {"python", "ebert", "torch", "transformers", "cache"} <= {one["what"] for one in told}
    assert shape(run("starter", "--json").json) == {"model": "str", "vectors": "str"}
