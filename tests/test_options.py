"""Options check themselves, and the command line is made of their fields."""

from dataclasses import dataclass
from typing import Literal

import click
import pytest
from click.testing import CliRunner

from ebert import EbertError
from ebert._options import Options, cli_options, option


@dataclass(frozen=True, slots=True, kw_only=True)
class Small(Options):
    method: Literal["linear", "none"] = option("linear", "How W is fitted.")
    epochs: int = option(3, "Passes over the text.", low=1)
    share: float = option(0.1, "Share of the steps.", low=0, below=1)
    length: float | None = option(None, "Scale to this length.", above=0)
    links: bool = option(True, "Follow links.")
    intercept: bool = option(False, "Also fit a constant vector.")
    hidden: int = option(7, "Not on the command line.", cli=False)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"method": "cubic"}, "unknown method 'cubic'; choose one of linear, none"),
        ({"epochs": 0}, "epochs is 0; it must be at least 1"),
        ({"epochs": 1.5}, "epochs is 1.5; it must be a whole number"),
        ({"epochs": True}, "epochs is True; it must be a whole number"),
        ({"share": 1.0}, "share is 1.0; it must be at least 0 and below 1"),
        ({"share": float("nan")}, "share is nan; it must be at least 0 and below 1"),
        ({"length": 0.0}, "length is 0.0; it must be above 0"),
        ({"links": "no"}, "links is 'no'; it must be yes or no"),
        ({"hidden": "x"}, "hidden is 'x'; it must be a whole number"),
    ],
)
def test_a_value_out_of_bounds_is_an_error(given, message):
    with pytest.raises(EbertError) as error:
        Small(**given)
    assert str(error.value) == message


def run(arguments, **how):
    got = {}

    @click.command()
    @cli_options(Small, **how)
    def command(options):
        got["options"] = options

    result = CliRunner().invoke(command, arguments)
    return got.get("options"), result


def test_the_command_gets_an_instance():
    options, _ = run(["--epochs", "5", "--no-links", "--intercept", "--length", "2.5"])
    assert options == Small(epochs=5, links=False, intercept=True, length=2.5)


def test_without_arguments_the_defaults_hold():
    assert run([])[0] == Small()
    assert run([], defaults={"epochs": 9})[0] == Small(epochs=9)


def test_only_what_was_given_for_presets():
    assert run(["--epochs", "3", "--no-links"], given_only=True)[0] == {"epochs": 3, "links": False}


def test_help_has_names_defaults_bounds_and_choices():
    shown = run(["--help"])[1].output
    assert "--method [linear|none]" in shown
    assert "Passes over the text.  [default: 3; x>=1]" in shown
    assert "--links / --no-links" in shown
    assert "hidden" not in shown


def test_left_out_fields_are_no_options():
    assert run(["--epochs", "5"], without=["epochs"])[1].exit_code == 2


def test_a_bad_value_is_a_usage_error():
    assert "x>=1" in run(["--epochs", "0"])[1].output
