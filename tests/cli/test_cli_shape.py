"""The command line as a whole: help, options, exit codes, what is loaded."""

import dataclasses
import subprocess
import sys

import click
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
        ("vectors", "add-many"), ("vectors", "remove"), ("vectors", "export"), ("vectors", "train"),
        ("align",), ("fill",), ("probe", "lama"), ("probe", "questions"), ("lama", "uhn"), ("report",), ("export",),
        ("starter",), ("doctor",), ("relations", "train"), ("relations", "evaluate"), ("relations", "predict"),
        ("relations", "search"), ("relations", "report"),
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
    import resource

    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, limits[1]))
    try:
        done = ebert("vectors", "export", store, tmp_path / "out.txt")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert done.code == 1
    assert "File too large" in done.err
    assert list(tmp_path.glob("*out.txt*")) == []
