"""What ``ebert relations predict`` is asked about, and how it answers."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ebert.errors import EbertError

if TYPE_CHECKING:
    from ebert.relations.classifier import RelationPrediction
    from ebert.relations.data import Sample


@dataclass
class Given:
    """What `predict` is asked about: lines of JSON, or texts with markup."""

    object_first: bool
    fault: EbertError | None = None
    """What is wrong with a stream; it ends there, so that the answers before it are given first."""

    def sample(self, line: str, where: str) -> "Sample":
        """Read a line."""
        from ebert.relations.classifier import as_sample, swapped
        from ebert.relations.data import read_line

        if line.lstrip().startswith("{"):
            return read_line(line, where)
        sample = as_sample(line, where)
        return swapped(sample) if self.object_first else sample

    def texts(self, texts: Iterable[str]) -> "list[Sample]":
        """Read the arguments."""
        return [self.sample(text, f"text {number}") for number, text in enumerate(texts, 1)]

    def all_of(self, path: Path) -> "list[Sample]":
        """Read a file: samples as for training, or lines of which some have markup."""
        from ebert.relations.data import parse, text_of

        text = text_of(path)
        lines = [(n, line.rstrip("\r")) for n, line in enumerate(text.split("\n"), 1) if line.strip()]
        if re.match(r"\s*\[(?!\[)", text) or all(line.lstrip().startswith("{") for _, line in lines):
            return parse(text, path.name)  # as a whole, as FewRel's starts are put right by all of them
        return [self.sample(line, f"{path.name}, line {n}") for n, line in lines]

    def stream(self, lines: Iterable[str]) -> "Iterator[Sample]":
        """Read lines as they come."""
        try:
            for number, line in enumerate(lines, 1):
                if line.strip():
                    yield self.sample(line.rstrip("\r\n"), f"line {number}")
        except UnicodeDecodeError as error:
            self.fault = EbertError(f"standard input is not UTF-8 ({error})")
        except EbertError as error:
            self.fault = error


def as_value(prediction: "RelationPrediction", names: Mapping[str, str]) -> dict[str, Any]:
    """Give a prediction for programs, with what the relations are called where that is known."""
    sample = prediction.sample
    roles = {"subject": sample.subject, "object": sample.object}
    value: dict[str, Any] = {"text": sample.text}
    for (role, span), title in zip(roles.items(), prediction.entities, strict=True):
        value[role] = {"start": span.start, "end": span.end, "text": sample.surface(span), "entity": title}
    value["relations"] = [
        {"relation": label, **({"name": names[label]} if label in names else {}), "probability": share}
        for label, share in prediction.relations
    ]
    return value


def show(prediction: "RelationPrediction", names: Mapping[str, str]) -> None:
    """Print a prediction for people."""
    sample = prediction.sample
    click.secho(sample.text, bold=True)
    for name, span, title in zip(
        ("subject", "object"), (sample.subject, sample.object), prediction.entities, strict=True
    ):
        click.echo(f"  {name:<8}{sample.surface(span)} ({title or 'no vector'})")
    for label, share in prediction.relations:
        click.echo(f"  {share:6.1%}  {label} {names.get(label, '')}".rstrip())
