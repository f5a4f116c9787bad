"""Writing so that a crash leaves the old or the new: files, folders, and what an interrupted swap leaves behind."""

import pytest

from ebert import EbertError, files


@pytest.fixture(params=["in one step", "in two steps"])
def swap(request, monkeypatch):
    """Both ways of swapping folders; the second is for systems without a call for it."""
    if request.param == "in two steps":
        monkeypatch.setattr(files.sys, "platform", "other")


def test_a_file_is_replaced_when_the_block_ends_well(tmp_path):
    target = tmp_path / "file.txt"
    target.write_text("old")
    with files.replacing(target, "w") as file:
        file.write("new")
        assert target.read_text() == "old"
    assert target.read_text() == "new"
    assert list(tmp_path.iterdir()) == [target]


def test_a_file_stays_when_the_block_fails(tmp_path):
    target = tmp_path / "file.txt"
    target.write_text("old")
    with pytest.raises(KeyboardInterrupt), files.replacing(target, "w") as file:
        file.write("half")
        raise KeyboardInterrupt
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]


@pytest.mark.usefixtures("swap")
def test_a_folder_is_replaced_whole(tmp_path):
    target = tmp_path / "folder"
    target.mkdir()
    (target / "old").touch()
    with files.replacing_folder(target, overwrite=True) as folder:
        (folder / "new").touch()
        assert [path.name for path in target.iterdir()] == ["old"]
    assert [path.name for path in target.iterdir()] == ["new"]
    assert list(tmp_path.iterdir()) == [target]


@pytest.mark.usefixtures("swap")
def test_a_folder_stays_when_the_block_fails(tmp_path):
    target = tmp_path / "folder"
    target.mkdir()
    (target / "old").touch()
    with pytest.raises(OSError, match="full"), files.replacing_folder(target, overwrite=True) as folder:
        (folder / "new").touch()
        raise OSError("full")
    assert [path.name for path in target.iterdir()] == ["old"]
    assert list(tmp_path.iterdir()) == [target]


def test_what_is_there_is_not_overwritten_unasked(tmp_path):
    (tmp_path / "folder").mkdir()
    with files.replacing_folder(tmp_path / "folder") as folder:  # an empty folder is no obstacle
        (folder / "new").touch()
    with pytest.raises(EbertError, match="exists"), files.replacing_folder(tmp_path / "folder"):
        pass
    (tmp_path / "file").touch()
    with pytest.raises(EbertError, match="is a file"), files.replacing_folder(tmp_path / "file", overwrite=True):
        pass
    with pytest.raises(EbertError, match="is not a folder"), files.replacing_folder(tmp_path / "file" / "inside"):
        pass


def test_a_folder_of_something_else_is_never_overwritten(tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "thesis.txt").touch()
    with (
        pytest.raises(EbertError, match=r"has no store\.json"),
        files.replacing_folder(tmp_path / "folder", overwrite=True, marker="store.json"),
    ):
        pass
    assert (tmp_path / "folder" / "thesis.txt").exists()


def test_a_folder_that_an_interrupted_swap_left_aside_comes_back(tmp_path):
    aside = tmp_path / ".store.old"
    aside.mkdir()
    (aside / "kept").touch()
    files.recover(tmp_path / "store")
    assert [path.name for path in (tmp_path / "store").iterdir()] == ["kept"]


@pytest.mark.parametrize("content", [b"{", b"[]", b"\xff\xfe"])
def test_damaged_json_is_named(tmp_path, content):
    (tmp_path / "x.json").write_bytes(content)
    with pytest.raises(EbertError, match=r"x\.json is damaged"):
        files.read_json(tmp_path / "x.json", "a thing")
    with pytest.raises(EbertError, match=r"is not a thing: it has no y\.json"):
        files.read_json(tmp_path / "y.json", "a thing")
