"""pytest imports test files by their name alone, so no two may share one."""

from collections import Counter
from pathlib import Path


def test_no_two_test_files_have_one_name():
    names = Counter(path.name for path in Path(__file__).parent.rglob("*.py") if path.name != "conftest.py")
    assert [name for name, count in names.items() if count > 1] == []
