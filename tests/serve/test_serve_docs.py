"""The commands of the page about serving, run as they are written (but for the port, which must be a free one)."""

import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "howto" / "serve.md"
BLOCK = re.compile(r"^```(bash|python)\n(.*?)^```", re.DOTALL | re.MULTILINE)
# A service runs in the background; the one before it is ended first.
SETUP = """
set -eu
curl() { command curl --fail-with-body "$@" && echo; }
ebert() {
  "$PYTHON" -m ebert "$@" & SERVICE=$!
  until command curl -sf "$URL/ready" > /dev/null; do kill -0 "$SERVICE"; sleep 0.2; done
}
end() { if [ -n "${SERVICE-}" ]; then kill "$SERVICE"; wait "$SERVICE"; SERVICE=; fi; }
trap end EXIT
"""


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


@pytest.mark.real
def test_the_commands_work_as_they_are_written(tmp_path):
    blocks = BLOCK.findall(PAGE.read_text("utf-8"))
    assert len(blocks) >= 8
    port = free_port()
    script = SETUP
    for language, block in blocks:
        if language == "python":
            block = f"\"$PYTHON\" - <<'PROGRAM'\n{block}PROGRAM\n"
        if block.startswith("ebert serve") or "\nebert serve" in block:
            block = "end\n" + block.replace("ebert serve starter", f"ebert serve starter --port {port}")
        script += f"echo '### {len(script)}'\n{block.replace('127.0.0.1:8000', f'127.0.0.1:{port}')}\n"
    done = subprocess.run(
        ["bash", "-c", script], cwd=tmp_path, text=True, capture_output=True, check=False,
        env={name: value for name, value in os.environ.items() if name != "EBERT_TOKEN"}
        | {"PYTHON": sys.executable, "URL": f"http://127.0.0.1:{port}"},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    for expected in (
        f"open http://127.0.0.1:{port}/#token=", '"token":"French"', '"rounds":', '"title":"Jean Marais"', '"map":',
        '"words_used":', "taIdentRef <http://en.wikipedia.org/wiki/Berlin>", '{"status":"ok"}', "ebert_requests_total",
        '"missing":[]', "concat {'token': ",
    ):  # fmt: skip
        assert expected in done.stdout, expected


def test_the_page_names_every_endpoint_and_every_option_it_speaks_of():
    from ebert.cli.serve import command
    from ebert.serve.app import make_api
    from ebert.serve.options import ServeOptions
    from ebert.serve.service import Service

    text = PAGE.read_text("utf-8")
    paths = set(make_api(Service(ServeOptions(token="only-for-its-schema"))).openapi()["paths"])
    assert {path for path in paths if path not in text} == set()
    options = {name for option in command.params for name in (*option.opts, *option.secondary_opts)}
    assert set(re.findall(r"`(--[a-z-]+)", text)) <= options
