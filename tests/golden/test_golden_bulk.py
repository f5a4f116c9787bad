"""Jobs over many rows: what they print, what their folders hold, and the columns and values of their rows.

A job starts a process, which takes seconds; so one is always run, and all with EBERT_GOLDEN=all (or =write).
"""

import os

import pyarrow.parquet as pq
import pytest
from golden_tools import check_json, folder, scrub
from golden_world import BULK

ALL = "EBERT_GOLDEN" in os.environ
OUT = {"link-corpus": "linked", "encode-corpus": "encoded", "probe-corpus": "asked"}


@pytest.mark.parametrize("name", [name for name in BULK if ALL or name == "link-corpus"])
def test_job(world, name):
    out = OUT[name]
    printed = scrub(world.do(name).json, world.root)
    table = pq.read_table(world.root / out / "rows")
    columns = {field.name: str(field.type) for field in table.schema}
    files = folder(world.root / out, world.root, inexact=("*.parquet", "job.key"))
    value = {"printed": printed, "files": files, "columns": columns, "rows": table.to_pylist()}
    check_json(f"bulk/{name}.json", value, within=1e-3)
