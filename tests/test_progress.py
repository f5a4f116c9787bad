"""Progress on a pipe: a line now and then, with rate and time left."""

from ebert._io import progress


def test_long_work_writes_lines_on_a_pipe(capsys, monkeypatch):
    monkeypatch.setattr(progress, "EVERY", 0.0)
    with progress.progress("import", total=200, unit="rows") as advance:
        advance(50)
        advance(50)
    first, second = capsys.readouterr().err.splitlines()
    assert first.startswith("import: 50 rows, ")
    assert ", 25%, " in first
    assert second.startswith("import: 100 rows, ")
    assert second.endswith(" s left")


def test_short_work_writes_nothing(capsys):
    with progress.progress("import") as advance:
        advance(5)
    assert capsys.readouterr().err == ""


def test_slow_work_has_a_rate_too(capsys, monkeypatch):
    clock = iter((0.0, 40.0))
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(clock))
    with progress.progress("training", unit="steps") as advance:
        advance(20)
    assert capsys.readouterr().err == "training: 20 steps, 0.50 a second\n"
