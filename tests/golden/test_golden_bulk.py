"""Jobs over many rows: what they print, what their folders hold, and the columns and values of their rows.

A job starts a process, which imports torch again: run these with EBERT_GOLDEN=all, or =write.
"""

import os

import pyarrow.parquet as pq
import pytest
from golden_tools import check_json, folder, scrub
from golden_world import BULK

pytestmark = pytest.mark.skipif("EBERT_GOLDEN" not in os.environ, reason="only with EBERT_GOLDEN=all")
OUT = {"link-corpus": "linked", "encode-corpus": "encoded", "probe-corpus": "asked"}


@pytest.mark.parametrize("name", BULK)
def test_job(world, name):
    out = OUT[name]
    printed = scrub(world.do(name).json, world.root)
    table = pq.read_table(world.root / out / "rows")
    columns = {field.name: str(field.type) for field in table.schema}
    files = folder(world.root / out, world.root, inexact=("*.parquet", "job.key"))
    value = {"printed": printed, "files": files, "columns": columns, "rows": table.to_pylist()}
    check_json(f"bulk/{name}.json", value, within=1e-3)
