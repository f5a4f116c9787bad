"""What is said before torch is loaded, and the commands that never load it."""

import os
import subprocess
import sys

import pytest

MAIN = """
import contextlib, io, sys
from ebert.cli import main

def run(*arguments, stdin=""):
    sys.argv, sys.stdin = ["ebert", *arguments], io.StringIO(stdin)
    out, err = io.StringIO(), io.StringIO()
    code = 0
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main()
        except SystemExit as stop:
            code = stop.code or 0
    heavy = {"torch", "transformers"} & set(sys.modules)
    assert not heavy, (arguments, heavy)
    return code, out.getvalue(), err.getvalue()

def refuses(words, *arguments, **more):
    code, out, err = run(*arguments, **more)
    assert (code, out, words in err) == (2, "", True), (arguments, code, out, err)
"""


def in_new_process(code, folder):
    done = subprocess.run([sys.executable, "-c", MAIN + code], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_wrong_names_are_reported_before_torch_is_loaded(tmp_path, store, small_bert):
    (tmp_path / "data.jsonl").write_text('{"text": "[[Paris]] is [MASK]", "answers": ["French"]}\n')
    (tmp_path / "titles.txt").write_text("Paris\n")
    code = f"""
bert, store = {small_bert!r}, {store!r}
no_model, no_linker, no_classifier = (f"there is no {{kind}} at nowhere" for kind in ("model", "linker", "classifier"))
refuses(no_model, "fill", "--model", "nowhere", "a [MASK]")
refuses("no-such-folder is not the folder of an encoder", "fill", "--bert", "./no-such-folder", "a [MASK]")
refuses("no-such-folder is not the folder of an encoder", "align", store, "--bert", "./no-such-folder", "--out", "m")
refuses("there is no store at nowhere", "align", "nowhere", "--bert", {small_bert!r}, "--out", "m")
refuses(no_model, "export", "nowhere", "--entities", "titles.txt", "--out", "out")
refuses("there is no file nothing.txt", "export", "nowhere", "--entities", "nothing.txt", "--out", "out")
refuses(no_model, "probe", "questions", "data.jsonl", "--model", "nowhere", "--out", "out")
refuses(no_model, "probe", "lama", "lama.tar.xz", "--model", "nowhere", "--out", "out")
refuses("there is no LAMA at", "lama", "uhn", "lama.tar.xz", "--bert", {small_bert!r}, "--out", "out")
refuses(no_model, "probe", "corpus", "data.jsonl", "--model", "nowhere", "--out", "out")
refuses(no_model, "encode", "corpus", "data.jsonl", "--model", "nowhere", "--out", "out")
refuses(no_linker, "link", "corpus", "data.jsonl", "--linker", "nowhere", "--out", "out")
refuses(no_linker, "link", "run", "nowhere", "--text", "a")
refuses("there is no file nothing.txt", "link", "run", "nowhere", "nothing.txt")
refuses(no_linker, "link", "evaluate", "nowhere", "data.jsonl")
refuses(no_model, "link", "train", "data.jsonl", "--model", "nowhere", "--out", "out")
refuses(no_model, "relations", "train", "data", "--model", "nowhere", "--mode", "concat", "--out", "out")
refuses("there is no folder data", "relations", "train", "data", "--model", bert, "--mode", "bert", "--out", "o")
refuses(no_classifier, "relations", "evaluate", "nowhere", "data.jsonl")
refuses(no_classifier, "relations", "predict", "nowhere", "[[A]] is [[B]]")
refuses(no_model, "serve", "nowhere")
"""
    in_new_process(code, tmp_path)


def test_texts_and_options_are_checked_before_torch_is_loaded(tmp_path, model, small_bert):
    (tmp_path / "not-one").write_text("")
    code = f"""
refuses("text 2: the text has no mask", "fill", "--bert", {small_bert!r}, "a [MASK]", "no mask")
refuses("text 1: the text has no mask", "fill", "--bert", {small_bert!r}, stdin="no mask\\na [MASK]\\n")
refuses("the text is empty", "fill", "--bert", {small_bert!r}, " ")
refuses("never closes", "fill", "--bert", {small_bert!r}, "a [MASK]", "[MASK] [[Paris")
refuses("there is no text to fill", "fill", "--bert", {small_bert!r})
refuses("unknown mode 'magic'", "fill", "--bert", {small_bert!r}, "--mode", "magic", "a [MASK]")
refuses("nothing.txt cannot be read", "fill", "--bert", {small_bert!r}, "--candidates", "nothing.txt", "a [MASK]")
refuses("there is no store at elsewhere", "fill", "--model", {model!r}, "--vectors", "elsewhere", "a [MASK]")
"""
    in_new_process(code, tmp_path)


def test_a_mask_goes_by_the_name_that_the_encoder_gives_it(tmp_path, small_bert):
    from ebert.bert.load import mask_of

    assert mask_of(tmp_path) is None
    (tmp_path / "special_tokens_map.json").write_text('{"mask_token": {"content": "<mask>", "lstrip": true}}')
    assert mask_of(tmp_path) == "<mask>"
    (tmp_path / "tokenizer_config.json").write_text('{"mask_token": "<blank>"}')
    assert mask_of(tmp_path) == "<blank>"


def test_commands_that_never_load_torch(tmp_path, store, model, small_bert):
    code = f"""
done = run("starter")
assert done[0] == 0, done
for name in ("starter", {store!r}):
    for command in (["info", name], ["find", name, "Paris"], ["nearest", name, "Paris"]):
        code, out, err = run("vectors", *command)
        assert (code, bool(out)) == (0, True), (command, out, err)
numbers = " ".join(["1"] * 8)
assert run("vectors", "add", {store!r}, "Zorblax", "--vector", "-", stdin=numbers)[0] == 0
copied = {str(tmp_path / "starter")!r}
import shutil
shutil.copytree(done[1].strip() + "/vectors", copied)
code, out, err = run("vectors", "add", copied, "Zorblax", "--description", "Zorblax is a Danish city.")
assert (code, "added Zorblax" in out) == (0, True), err
assert run("doctor", "--quick")[0] == 0
assert run("doctor", "--quick", "starter", {store!r}, {model!r}, {small_bert!r})[0] == 0
assert run("--version")[1].splitlines()[0].startswith("ebert ")
"""
    in_new_process(code, tmp_path)


def test_a_terminal_is_told_that_a_model_loads_and_a_pipe_is_not(small_bert):
    command = [sys.executable, "-m", "ebert", "fill", "--bert", small_bert, "--json", "a [MASK]"]
    pty = pytest.importorskip("pty")
    ours, theirs = pty.openpty()
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=theirs, text=True, check=True)
    os.close(theirs)
    said = os.read(ours, 10_000).decode()
    os.close(ours)
    assert said.startswith(f"loading {small_bert} ...")
    assert said.endswith("\r\x1b[K")
    assert done.stdout.startswith('{"text"')
