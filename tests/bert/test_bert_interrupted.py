"""get_bert that is interrupted, killed, or run twice at once."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from bundle_writer import COPY, JAR, rest_of

from ebert.bert.get import cached, get_bert, verify

NAME = "bert-base-cased"


def test_an_interrupted_write_leaves_no_half_folder(home, jar_by_hand, monkeypatch):
    def stop(tensors, path, metadata):
        Path(path).write_bytes(b"half")
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("safetensors.numpy.save_file", stop)
        with pytest.raises(KeyboardInterrupt):
            get_bert(NAME)
    assert cached() == []
    assert rest_of(home) == []
    # the lock is free again
    assert verify(get_bert(NAME, source="maven")) == []


def start_and_wait(home, programs):
    """Start a process whose mvn never ends, and wait until it is there."""
    programs("mvn", f'touch "{home}/waiting"; exec sleep 60')
    code = f"from ebert.bert.get import get_bert; get_bert('{NAME}', source='maven')"
    # Whoever runs the tests in the background has SIGINT ignored, which children inherit: here it counts.
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        stderr=subprocess.PIPE,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    while not (home / "waiting").exists():
        assert process.poll() is None
        time.sleep(0.02)
    assert rest_of(home) != []
    return process


def test_ctrl_c_leaves_nothing(home, programs):
    process = start_and_wait(home, programs)
    os.killpg(process.pid, signal.SIGINT)
    _, err = process.communicate()
    assert b"KeyboardInterrupt" in err
    assert cached() == []
    assert rest_of(home) == []


def test_what_a_killed_process_left_is_removed_by_the_next(home, programs, jar):
    process = start_and_wait(home, programs)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    assert rest_of(home) != []
    programs("mvn", f'{COPY}\ncp "{jar}" "$out/{JAR}"')
    assert verify(get_bert(NAME)) == []
    assert rest_of(home) == []


def test_two_at_once_fetch_once(home, jar, programs):
    programs("mvn", f'{COPY}\necho called >> "{home}/called"; sleep 0.5; cp "{jar}" "$out/{JAR}"')
    folders = []
    threads = [threading.Thread(target=lambda: folders.append(get_bert(NAME))) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert folders == [home / "bert" / NAME] * 3
    assert (home / "called").read_text() == "called\n"
    assert verify(folders[0]) == []
