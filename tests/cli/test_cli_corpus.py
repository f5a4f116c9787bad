"""``ebert corpus`` as the shell sees it: what is printed, exit codes, what is left."""

import bz2
import json
import os
import signal
import subprocess
import sys

import pytest

PAGES = {
    "Jean Marais": "'''Jean Marais''' was a [[France|French]] [[actor]].",
    "France": "[[Paris]] is its capital.",
    "Empty": "",
}


def dump(pages):
    body = "".join(
        f"<page><title>{title}</title><ns>0</ns><revision><text>{text}</text></revision></page>\n"
        for title, text in pages.items()
    )
    return f'<mediawiki xml:lang="en"><siteinfo><dbname>enwiki</dbname></siteinfo>\n{body}</mediawiki>'.encode()


@pytest.fixture
def path(tmp_path):
    (tmp_path / "wiki.xml.bz2").write_bytes(bz2.compress(dump(PAGES)))
    return tmp_path / "wiki.xml.bz2"


def test_build_and_info(ebert, path, tmp_path):
    done = ebert("corpus", "build", path, "--out", tmp_path / "corpus", "--threads", 1)
    assert done.code == 0, done.err
    assert "vocabulary  10" in done.out
    assert f"from wiki.xml.bz2 ({path.stat().st_size} bytes)" in done.out
    assert "1  page with empty text  Empty" in done.out
    info = ebert("corpus", "info", tmp_path / "corpus", "--json").json
    assert (info["pages"], info["words"], info["links"], info["entities"], info["wikidata ids"]) == (2, 10, 3, 4, 0)
    assert info["skipped"] == {"page with empty text": [1, ["Empty"]]}
    again = ebert("corpus", "build", path, "--out", tmp_path / "corpus", "--threads", 1)
    assert again.code == 2
    assert "--overwrite" in again.err
    done = ebert(
        "corpus", "build", path, "--out", tmp_path / "corpus", "--threads", 1, "--overwrite", "--lowercase", "--json"
    )
    assert done.json["lowercase"]
    assert "french" in (tmp_path / "corpus" / "words.txt").read_text()


def test_worker_processes(ebert, path, tmp_path):
    assert ebert("corpus", "build", path, "--out", tmp_path / "corpus", "--threads", 2).code == 0
    assert sorted(file.name for file in tmp_path.iterdir()) == ["corpus", "wiki.xml.bz2"]


def test_a_truncated_dump(ebert, tmp_path):
    packed = bz2.compress(dump({f"Title {n}": f"text {n * n}" for n in range(30_000)}), 1)
    (tmp_path / "cut.xml.bz2").write_bytes(packed[:-1000])
    done = ebert("corpus", "build", tmp_path / "cut.xml.bz2", "--out", tmp_path / "corpus", "--threads", 1)
    assert done.code == 2
    assert "is damaged at about byte" in done.err
    assert "--keep-going" in done.err
    assert done.out == ""
    done = ebert(
        "corpus",
        "build",
        tmp_path / "cut.xml.bz2",
        "--out",
        tmp_path / "corpus",
        "--threads",
        1,
        "--keep-going",
        "--json",
    )
    assert done.code == 0
    assert 20_000 < done.json["pages"] < 30_000
    assert done.json["skipped"]["damaged place in a dump"][0] == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nothing.xml", "--out", "x"], "there is no dump at nothing.xml"),
        ([".", "--out", "x"], "is a folder"),
        (["--out", "x"], "Missing argument"),
        (["DUMP"], "Missing option '--out'"),
        (["DUMP", "--out", "x", "--namespaces", "a"], "must be numbers separated by commas"),
        (["DUMP", "--out", "x", "--threads", "0"], "0"),
        (["DUMP", "DUMP", "--out", "x"], "given twice"),
    ],
)
def test_bad_input(ebert, path, tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    done = ebert("corpus", "build", *(str(path) if word == "DUMP" else word for word in arguments))
    assert done.code == 2
    assert message in done.err
    assert not (tmp_path / "x").exists()


def test_without_numba(path, tmp_path):
    code = (
        "import sys\nsys.modules['numba'] = None\nfrom ebert.cli import main\n"
        f"sys.argv = ['ebert', 'corpus', 'build', {str(path)!r}, '--out', {str(tmp_path / 'corpus')!r}]\nmain()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr.strip() == "error: building a corpus needs numba: pip install 'ebert[train]'"


def test_a_corpus_is_read_without_numba(ebert, path, tmp_path):
    assert ebert("corpus", "build", path, "--out", tmp_path / "corpus", "--threads", 1).code == 0
    code = (
        "import sys\nsys.modules['numba'] = None\n"
        "from ebert.wikipedia.corpus import Corpus\nfrom ebert.wikipedia.tokens import words_of\n"
        f"assert words_of('a b') and Corpus.open({str(tmp_path / 'corpus')!r}).words\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_ctrl_c(tmp_path):
    """The signal comes to the whole group, workers and all, as from a terminal, while the dump is being read."""
    read, write = os.pipe()
    code = (
        "import sys, os\nfrom ebert.wikipedia import dump\n"
        "def pieces(looked, cut=dump.pieces):\n"
        "    for number in range(10**9):\n"
        "        for piece in cut(looked):\n"
        "            yield piece.__class__(number, piece.start, piece.end, piece.xml)\n"
        f"        os.write({write}, b'x')\n"
        "from ebert.wikipedia import build\nbuild.pieces = pieces\n"
        "from ebert.cli import main\nmain()\n"
    )
    (tmp_path / "wiki.xml.bz2").write_bytes(bz2.compress(dump(PAGES)))
    command = [sys.executable, "-c", code, "corpus", "build", "wiki.xml.bz2", "--out", "corpus", "--threads", "2"]
    with subprocess.Popen(
        command, cwd=tmp_path, stderr=subprocess.PIPE, text=True, start_new_session=True, pass_fds=[write]
    ) as process:
        for _ in range(10):
            os.read(read, 1)
        os.killpg(process.pid, signal.SIGINT)
        _, err = process.communicate()
    os.close(read)
    os.close(write)
    assert process.returncode == 130
    lines = [line for line in err.splitlines() if line and not line.startswith("read: ")]
    assert lines == ["stopped; run the same command again to continue", "error: interrupted"]
    assert sorted(file.name for file in tmp_path.iterdir()) == ["corpus.parts", "wiki.xml.bz2"]


def test_wikidata(ebert, path, tmp_path):
    ebert("corpus", "build", path, "--out", tmp_path / "corpus", "--threads", 1)
    (tmp_path / "ids.tsv").write_text("France\tQ142\nBerlin\tQ64\nbad line\n")
    done = ebert("corpus", "wikidata", tmp_path / "corpus", "--tsv", tmp_path / "ids.tsv")
    assert done.code == 0
    assert done.out.splitlines() == [
        "1 of 4 entities have an id",
        "1 ids are of titles that the corpus does not have",
        "1 rows could not be read, such as: bad line",
    ]
    assert ebert("corpus", "info", tmp_path / "corpus", "--json").json["wikidata ids"] == 1
    (tmp_path / "page.sql").write_text(
        "CREATE TABLE `page` (\n `page_id` int,\n `page_namespace` int,\n `page_title` blob\n);\n"
        "INSERT INTO `page` VALUES (1,0,'Jean_Marais');\n"
    )
    (tmp_path / "page_props.sql").write_text(
        "CREATE TABLE `page_props` (\n `pp_page` int,\n `pp_propname` blob,\n `pp_value` blob\n);\n"
        "INSERT INTO `page_props` VALUES (1,'wikibase_item','Q168359');\n"
    )
    done = ebert(
        "corpus", "wikidata", tmp_path / "corpus", "--page", tmp_path / "page.sql", "--page-props",
        tmp_path / "page_props.sql", "--json",
    )  # fmt: skip
    assert done.json == {"found": 1, "entities": 4, "elsewhere": 0, "twice": 0, "bad": 0, "examples": []}
    assert (tmp_path / "corpus" / "wikidata.tsv").read_text() == "Jean Marais\tQ168359\n"


@pytest.mark.parametrize(
    "arguments", [[], ["--page", "x"], ["--page-props", "x"], ["--tsv", "x", "--page", "y", "--page-props", "z"]]
)
def test_wikidata_needs_two_dumps_or_a_table(ebert, tmp_path, arguments):
    done = ebert("corpus", "wikidata", tmp_path, *arguments)
    assert done.code == 2
    assert "give --page and --page-props, or --tsv" in done.err


def test_info_of_nothing(ebert, tmp_path):
    done = ebert("corpus", "info", tmp_path / "nothing")
    assert done.code == 2
    assert "there is no corpus at" in done.err
    (tmp_path / "corpus.json").write_text(json.dumps([]))
    assert ebert("corpus", "info", tmp_path).code == 2
