"""The journal of a long job: what a kill leaves of it."""

from ebert._runs import Journal


def test_a_journal_goes_on_before_its_first_damaged_line(tmp_path):
    path = tmp_path / "done.jsonl"
    path.write_bytes(b'1\n2\n{"half\n3\n4')
    with Journal(path) as journal:
        assert list(journal.read()) == [1, 2]
        journal.add(5)
    assert path.read_bytes() == b"1\n2\n5\n"
