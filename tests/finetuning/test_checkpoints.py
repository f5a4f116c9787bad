"""From which checkpoint a training goes on."""

import json

import numpy as np
import pytest
import torch
from safetensors.numpy import save_file

from ebert.errors import EbertError
from ebert.finetuning.trainer import last_checkpoint


def write(folder, step):
    path = folder / f"checkpoint-{step}"
    path.mkdir()
    save_file({"weights": np.ones((8, 8), np.float32)}, path / "model.safetensors")
    torch.save({"step": step}, path / "optimizer.pt")
    (path / "trainer_state.json").write_text(json.dumps({"global_step": step}))
    return path


def test_the_newest_that_is_complete_is_taken_and_half_written_ones_are_removed(tmp_path):
    assert last_checkpoint(tmp_path) is None
    for step in (4, 12, 20):
        write(tmp_path, step)
    (tmp_path / "checkpoint-16").mkdir()  # killed before its state was written
    (tmp_path / "checkpoint-20" / "trainer_state.json").write_text('{"global_st')
    assert last_checkpoint(tmp_path) == str(tmp_path / "checkpoint-12")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["checkpoint-12", "checkpoint-4"]


@pytest.mark.parametrize("name", ["model.safetensors", "optimizer.pt"])
def test_a_damaged_one_is_named_and_left(name, tmp_path):
    write(tmp_path, 4)
    damaged = write(tmp_path, 12) / name
    damaged.write_bytes(damaged.read_bytes()[:-50])
    with pytest.raises(EbertError, match=rf"checkpoint-12/{name} is damaged .*remove .*checkpoint-12 to continue"):
        last_checkpoint(tmp_path)
    assert damaged.exists()
