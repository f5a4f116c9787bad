"""Writing so that a crash leaves the old or the new: files, folders, and what an interrupted swap leaves behind."""

import os
from pathlib import Path

import pytest

from ebert import EbertError
from ebert._io import files, staging


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


@pytest.fixture
def others_may_not_read():
    before = os.umask(0o027)
    yield
    os.umask(before)


@pytest.mark.usefixtures("others_may_not_read", "swap")
def test_the_umask_counts_and_is_never_changed(tmp_path, monkeypatch):
    """It is the whole process's: what another thread writes meanwhile would be anybody's."""
    monkeypatch.setattr(os, "umask", lambda mask: pytest.fail("the umask was changed"))
    files.write_json(tmp_path / "file", {})
    with files.replacing_folder(tmp_path / "folder") as folder:
        (folder / "inside").touch()
    modes = {name: (tmp_path / name).stat().st_mode & 0o777 for name in ("file", "folder", "folder/inside")}
    assert modes == {"file": 0o640, "folder": 0o750, "folder/inside": 0o640}


@pytest.mark.usefixtures("swap")
@pytest.mark.skipif(os.name == "nt", reason="Windows has no such call for folders")
def test_a_folder_is_written_to_the_disk_after_something_in_it_was_renamed(tmp_path, monkeypatch):
    written, sync = [], os.fsync

    def watch(number):
        written.append((os.fstat(number).st_ino, sorted(path.name for path in tmp_path.glob("[!.]*"))))
        sync(number)

    monkeypatch.setattr(os, "fsync", watch)
    parent = tmp_path.stat().st_ino
    files.write_json(tmp_path / "file", {})
    assert written[-1] == (parent, ["file"])
    for _ in range(2):  # a new one, and one in the place of another
        with files.replacing_folder(tmp_path / "folder", overwrite=True) as folder:
            (folder / "inside").touch()
            inside = [path.stat().st_ino for path in (folder, folder / "inside")]
        assert written[-1] == (parent, ["file", "folder"])
        assert set(inside) <= {number for number, _ in written}  # what nobody else has written out
        (tmp_path / "folder" / "inside").rename(tmp_path / "folder" / "old")


@pytest.mark.usefixtures("swap")
@pytest.mark.parametrize("there", [True, False])
def test_a_link_to_a_folder_stays_a_link(tmp_path, there):
    (tmp_path / "disk").mkdir()
    if there:
        (tmp_path / "disk" / "store").mkdir()
        (tmp_path / "disk" / "store" / "old").touch()
    link = tmp_path / "link"
    link.symlink_to(Path("disk") / "store")
    with files.replacing_folder(link, overwrite=True) as folder:
        (folder / "new").touch()
    assert link.readlink() == Path("disk") / "store"
    assert [path.name for path in (tmp_path / "disk" / "store").iterdir()] == ["new"]
    assert [path.name for path in (tmp_path / "disk").iterdir()] == ["store"]
    assert [path.name for path in tmp_path.iterdir() if path != tmp_path / "disk"] == ["link"]


def test_what_somebody_made_meanwhile_is_not_overwritten_unasked(tmp_path):
    with pytest.raises(EbertError, match="exists"), files.replacing_folder(tmp_path / "folder"):
        (tmp_path / "folder").mkdir()
        (tmp_path / "folder" / "theirs").touch()
    assert [path.name for path in (tmp_path / "folder").iterdir()] == ["theirs"]
    assert list(tmp_path.iterdir()) == [tmp_path / "folder"]


def test_what_removes_a_place_leaves_it_to_the_one_that_locks_it_meanwhile(tmp_path, monkeypatch):
    """A place is nobody's until its maker has locked it, which may be just after another process removed the lock."""
    place = tmp_path / ".store.0123456789ab.ebert-tmp"
    place.mkdir()
    rmdir, maker = Path.rmdir, staging._lock(place)

    def lock_first(path):
        if not maker.is_locked:
            maker.acquire(timeout=0)
            (place / staging.NEW).mkdir()
        rmdir(path)

    monkeypatch.setattr(Path, "rmdir", lock_first)
    staging.settle(place)
    assert maker.is_locked
    assert sorted(path.name for path in place.iterdir()) == [staging.LOCK, staging.NEW]
    maker.release()
