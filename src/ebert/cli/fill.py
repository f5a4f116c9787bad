"""``ebert fill``: what an encoder puts where a mask is, with and without entities."""

import sys
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import TYPE_CHECKING, Any, cast

import click

from ebert.cli.common import device_options, json_option, print_json, torch_dtype
from ebert.errors import EbertError

if TYPE_CHECKING:
    from ebert.model.ebert import EBert
    from ebert.model.fill import Filled
    from ebert.model.modes import Mode
    from ebert.text.passage import Passage

MODES = ("bert", "concat", "replace")
WINDOW = 256


@click.command("fill")
@click.argument("text", nargs=-1)
@click.option("--model", help="A model folder made by 'ebert align', or 'starter'.")
@click.option("--bert", help="Instead of a model: an encoder without entities.  [default: bert-base-cased]")
@click.option("--vectors", help="Where the model's store is now, if not where it was.")
@click.option("--mode", help="Any of bert,concat,replace.  [default: all with a model, bert without]")
@click.option("--top", type=click.IntRange(min=1), default=5, show_default=True, help="Answers to show for each mask.")
@click.option("--candidates", help="A file with the words to choose from, one a line.")
@click.option("--why", is_flag=True, help="Also show the answers without each entity in turn.")
@device_options
@json_option
def command(
    text: tuple[str, ...],
    model: str | None,
    bert: str | None,
    vectors: str | None,
    mode: str | None,
    top: int,
    candidates: str | None,
    why: bool,
    device: str | None,
    dtype: str | None,
    as_json: bool,
) -> None:
    """Fill the masks of texts: plain BERT and E-BERT side by side.

    Entities are written [[Title]] or [[Title|surface]]. Without TEXT, lines of standard input are filled.

    \b
    Example:
      ebert fill --model enwiki-ebert "The native language of [[Jean Marais]] is [MASK]."
    """
    from ebert.text.passage import Passage

    if model and bert:
        raise EbertError("give --model or --bert, not both: a model has its encoder")
    if vectors and not model:
        raise EbertError("--vectors goes with --model")
    modes = _modes(mode, with_model=model is not None)
    if why and modes == ["bert"]:
        raise EbertError("--why shows what entities do: it needs --model and the mode concat or replace")
    passages = (Passage.parse(line) for line in text or _lines(sys.stdin))
    words = _read_words(candidates) if candidates else None
    first = next(passages, None)
    if first is None:
        raise EbertError("there is no text to fill; give it as an argument or on standard input")
    from ebert.model.batching import windows

    loaded = _load(model, bert, vectors, device, dtype)
    options: dict[str, Any] = {"top": top, "candidates": words}
    number = 0
    for window in windows(chain([first], passages), WINDOW):
        for passage, row in _fill(loaded, window, modes, options, number):
            number += 1
            reasons = _reasons(loaded, passage, modes, options) if why else None
            if as_json:
                print_json(_as_json(loaded, passage, row, reasons))
            else:
                _show(loaded, passage, row, reasons)


def _fill(
    model: "EBert", window: list["Passage"], modes: list[str], options: dict[str, Any], before: int
) -> Iterator[tuple["Passage", dict[str, "Filled"]]]:
    """Fill passages together; if one of them cannot be filled, give those before it and say which one it is."""
    try:
        columns = {mode: list(model.fill(window, mode=cast("Mode", mode), **options)) for mode in modes}
    except EbertError:
        for number, passage in enumerate(window, before + 1):
            try:
                row = {mode: model.fill(passage, mode=cast("Mode", mode), **options) for mode in modes}
            except EbertError as error:
                raise EbertError(f"text {number}: {error}") from None
            yield passage, row
        return
    for index, passage in enumerate(window):
        yield passage, {mode: filled[index] for mode, filled in columns.items()}


def _modes(given: str | None, *, with_model: bool) -> list[str]:
    modes = [name.strip() for name in given.split(",")] if given else list(MODES if with_model else MODES[:1])
    for name in modes:
        if name not in MODES:
            raise EbertError(f"unknown mode {name!r}; choose from {', '.join(MODES)}")
        if name != "bert" and not with_model:
            raise EbertError(f"the mode {name} needs entity vectors: give a --model made by 'ebert align'")
    return list(dict.fromkeys(modes))


def _load(model: str | None, bert: str | None, vectors: str | None, device: str | None, dtype: str | None) -> "EBert":
    from ebert.model.ebert import EBert

    if model:
        return EBert.from_pretrained(model, vectors=vectors, device=device, dtype=torch_dtype(dtype))
    return EBert.plain(bert or "bert-base-cased", device=device, dtype=torch_dtype(dtype))


def _lines(file: Iterable[str]) -> Iterator[str]:
    try:
        for line in file:
            if line.strip():
                yield line.rstrip("\r\n")
    except UnicodeDecodeError as error:
        raise EbertError(f"standard input is not UTF-8 ({error})") from None


def _read_words(path: str) -> list[str]:
    try:
        with click.open_file(path, encoding="utf-8") as file:
            return list(dict.fromkeys(line.strip() for line in file if line.strip()))
    except (OSError, UnicodeDecodeError) as error:
        raise EbertError(f"{path} cannot be read ({error}); it should be a text file with one word a line") from None


Reasons = list[tuple[str, dict[str, "Filled"]]]


def _reasons(model: "EBert", passage: "Passage", modes: list[str], options: dict[str, Any]) -> Reasons:
    """Fill the passage again without each of its entities that has a vector."""
    missing = set(model.missing(passage))
    reasons: Reasons = []
    for mention in passage.mentions:
        if mention.entity not in missing:
            left = passage.without([mention])
            row = {m: model.fill(left, mode=cast("Mode", m), **options) for m in modes if m != "bert"}
            reasons.append((mention.entity, row))
    return reasons


def _masks(filled: "Filled") -> list[dict[str, Any]]:
    return [
        {"mask": number, "answers": [{"token": a.token, "probability": a.probability} for a in answers]}
        for number, answers in enumerate(filled.masks)
    ]


def _as_json(model: "EBert", passage: "Passage", row: dict[str, "Filled"], reasons: Reasons | None) -> dict[str, Any]:
    value: dict[str, Any] = {
        "text": passage.text,
        "modes": {mode: _masks(filled) for mode, filled in row.items()},
        "missing": model.missing(passage),
    }
    if reasons is not None:
        value["why"] = [{"without": title, "modes": {m: _masks(f) for m, f in r.items()}} for title, r in reasons]
    return value


def _show(model: "EBert", passage: "Passage", row: dict[str, "Filled"], reasons: Reasons | None) -> None:
    from ebert.text.letters import listed

    click.secho(passage.markup(), bold=True)
    for title in model.missing(passage) if model.vectors else ():
        close = model.vectors.suggest(title, 3) if model.vectors else []
        hint = f"; nearest titles: {listed(close)}" if close else ""
        click.echo(f"  no vector for {title}{hint}", err=True)
    _columns(row)
    for title, other in reasons or []:
        click.echo(f"  without {title}:")
        _columns(other)
    click.echo()


def _columns(row: dict[str, "Filled"]) -> None:
    """Print the answers of the modes side by side; those that differ from plain BERT's best are bold."""
    count = len(next(iter(row.values())).masks)
    width = 3 + max(len(a.token) for filled in row.values() for answers in filled.masks for a in answers)
    width = max(width, 12)
    click.echo("  " + "".join(f"{mode:<{width + 8}}" for mode in row).rstrip())
    for mask in range(count):
        if count > 1:
            click.echo(f"  mask {mask + 1}")
        plain = row["bert"].masks[mask][0].token if "bert" in row else None
        for rank in range(len(next(iter(row.values())).masks[mask])):
            cells = []
            for filled in row.values():
                answer = filled.masks[mask][rank]
                cell = f"{answer.token:<{width}}{answer.probability:6.1%}"
                cells.append(click.style(cell, bold=rank == 0 and plain not in (None, answer.token)))
            click.echo("  " + "  ".join(cells))
