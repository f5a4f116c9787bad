"""``ebert vectors train``."""

import pytest

from ebert.vectors.store import Vectors


def test_a_list_of_titles_to_keep(world, tmp_path, ebert):
    (tmp_path / "keep.txt").write_text("Paris 3\n\nAtlantis\n", encoding="utf-8")
    done = ebert(
        "vectors", "train", str(world.path), "--out", str(tmp_path / "store"), "--dim", "8", "--epochs", "1",
        "--no-openings", "--keep", str(tmp_path / "keep.txt"),
    )  # fmt: skip
    assert done.code == 0, done.err
    assert "Atlantis" in done.err
    assert "Paris 3" in Vectors.open(tmp_path / "store")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [(["--dim", "0"], "dim"), (["--keep", "nowhere.txt"], "nowhere.txt"), (["--checkpoint", "0"], "--checkpoint")],
)
def test_bad_options_on_the_command_line(world, tmp_path, ebert, arguments, told):
    done = ebert("vectors", "train", str(world.path), "--out", str(tmp_path / "store"), *arguments)
    assert done.code == 2
    assert told in done.err
    assert not (tmp_path / "store").exists()


def test_no_corpus(tmp_path, ebert):
    done = ebert("vectors", "train", str(tmp_path / "nothing"), "--out", str(tmp_path / "store"))
    assert done.code == 2
    assert "ebert corpus build" in done.err
