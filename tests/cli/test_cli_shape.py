"""The command line as a whole: help, options, exit codes, what is loaded."""

import dataclasses
import os
import subprocess
import sys

import click
import limits
import pytest

from ebert import AlignmentOptions
from ebert.bert.get import SOURCES
from ebert.cli import align, cli, common, fill, link, vectors
from ebert.model.options import MODES
from ebert.vectors.formats import importer


def commands(group=cli, path=()):
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from commands(command, (*path, name))
        else:
            yield pytest.param((*path, name), command, id=" ".join((*path, name)))


@pytest.mark.parametrize(("path", "command"), list(commands()))
def test_every_command_has_help_with_an_example_and_json(ebert, path, command):
    done = ebert(*path, "--help")
    assert done.code == 0
    assert "Example:" in done.out
    assert f"ebert {' '.join(path)}" in done.out
    assert any("--json" in option.opts for option in command.params)
    assert "*" not in done.out  # which the documentation site would take for emphasis


def test_the_commands_of_the_specification_are_there():
    assert {value.values[0] for value in commands()} == {
        ("bert", "get"), ("corpus", "build"), ("corpus", "info"), ("corpus", "wikidata"),
        ("vectors", "import"), ("vectors", "info"), ("vectors", "find"), ("vectors", "nearest"), ("vectors", "add"),
        ("vectors", "add-many"), ("vectors", "remove"), ("vectors", "copy"), ("vectors", "list"), ("vectors", "check"),
        ("vectors", "export"), ("vectors", "merged"), ("vectors", "train"),
        ("align",), ("fill",), ("probe", "lama"), ("probe", "questions"), ("lama", "uhn"), ("report",), ("export",),
        ("starter",), ("demo",), ("doctor",), ("relations", "train"), ("relations", "evaluate"),
        ("relations", "predict"), ("relations", "search"), ("relations", "report"),
        ("link", "candidates"), ("link", "wikipedia"), ("link", "train"), ("link", "search"), ("link", "run"),
        ("link", "evaluate"), ("link", "corpus"), ("encode", "corpus"), ("probe", "corpus"), ("serve",),
    }  # fmt: skip


def test_options_agree_with_the_library():
    fields = {field.name: field.default for field in dataclasses.fields(AlignmentOptions)}
    given = align.command.make_context("align", ["STORE", "--out", "MODEL"]).params
    assert {name: given[name] for name in given if name in fields} == fields
    assert vectors.FORMATS == importer.FORMATS
    assert vectors.KINDS == importer.KINDS
    assert fill.MODES == MODES

    from ebert.linking.readers.layouts import READERS

    assert all(layout in link.LAYOUT_HELP for layout in READERS)
    sources = next(option for option in cli.commands["bert"].commands["get"].params if option.name == "source")
    assert tuple(sources.type.choices) == tuple(SOURCES)
    import torch

    assert all(isinstance(getattr(torch, name), torch.dtype) for name in common.DTYPES)


@pytest.mark.parametrize(
    "arguments",
    [["--help"], ["--version"], ["fill", "--help"], ["vectors", "--help"], ["link", "--help"], ["serve", "--help"]],
)
def test_help_loads_neither_torch_nor_transformers_nor_numpy(arguments):
    code = (
        "import sys\nfrom ebert.cli import main\n"
        f"sys.argv = ['ebert', *{arguments!r}]\n"
        "try:\n    main()\nexcept SystemExit as stop:\n    assert not stop.code, stop.code\n"
        "heavy = {'torch', 'transformers', 'numpy', 'huggingface_hub'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


def test_importing_ebert_is_light_and_the_names_are_few():
    code = (
        "import sys, ebert\n"
        "heavy = {'torch', 'transformers', 'numpy', 'click'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
        "assert len(ebert.__all__) <= 12\n"
        "assert all(getattr(ebert, name) is not None for name in ebert.__all__)\n"
        "assert set(ebert.__all__) <= set(dir(ebert))\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_an_unknown_public_name():
    import ebert

    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        _ = ebert.Nothing


@pytest.mark.parametrize(
    "arguments", [["nothing"], ["fill", "--top", "0", "x"], ["align"], ["vectors", "import"], ["bert", "get"]]
)
def test_bad_usage_exits_with_2(ebert, arguments):
    assert ebert(*arguments).code == 2


def test_as_a_program():
    done = subprocess.run(
        [sys.executable, "-m", "ebert", "vectors", "info", "nowhere"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("error: there is no store at")
    assert "Traceback" not in done.stderr


def test_a_full_disk_is_a_failure_not_bad_input(ebert, store, tmp_path, monkeypatch):
    from ebert.vectors.formats import exporter  # noqa: F401 - compiled now: Python keeps bytecode that was cut off

    with limits.full_disk():
        done = ebert("vectors", "export", store, tmp_path / "out.txt")
    assert done.code == 1
    assert "File too large" in done.err
    assert list(tmp_path.glob("*out.txt*")) == []


def groups(group=cli, path=("ebert",)):
    yield pytest.param(group, path, id=" ".join(path))
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from groups(command, (*path, name))


@pytest.mark.parametrize(("group", "path"), list(groups()))
def test_every_group_has_an_example_and_whole_summaries(group, path):
    text = group.get_help(click.Context(group, info_name=" ".join(path), terminal_width=80))
    assert "Example:" in text
    assert "..." not in text.partition("\nCommands:")[2]
    assert max(map(len, text.partition("\nCommands:")[2].splitlines())) <= 80


def test_version_tells_what_matters(ebert):
    from importlib.metadata import version

    from ebert import __version__

    shown = dict(line.split(" ", 1) for line in ebert("--version").out.splitlines())
    assert shown["ebert"] == __version__
    assert shown["python"] == ".".join(map(str, sys.version_info[:3]))
    assert (shown["torch"], shown["transformers"]) == (version("torch"), version("transformers"))


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_can_complete(shell):
    environment = {**os.environ, "_EBERT_COMPLETE": f"{shell}_source"}
    code = "import sys; sys.argv = ['ebert']; from ebert.cli import main; main()"
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert "_EBERT_COMPLETE" in done.stdout
    environment |= {"_EBERT_COMPLETE": f"{shell}_complete", "COMP_WORDS": "ebert vectors ne", "COMP_CWORD": "2"}
    if shell == "bash":
        done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
        assert done.stdout.split() == ["plain,nearest"]
