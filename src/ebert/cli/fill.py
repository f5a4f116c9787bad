"""``ebert fill``: what an encoder puts where a mask is, with and without entities."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

import click

from ebert._io.progress import say, waiting
from ebert.cli.common import device_option, dtype_option, json_option, own_vectors_option, print_json, standard_input
from ebert.errors import EbertError
from ebert.model.folder import find, open_store
from ebert.model.options import MASK, MODES, feeds_entities, parse_modes
from ebert.text.passage import Mention, Passage

if TYPE_CHECKING:
    from ebert.model.ebert import EBert
    from ebert.model.fill import Filled
    from ebert.model.folder import FoundModel
    from ebert.model.options import Mode
    from ebert.vectors.store import Vectors

WINDOW = 256  # passages that are filled together
ALIKE = 20_000  # titles with the same words that are looked at
LIKELY = 0.1  # least link probability of words that are offered as an entity

Row = dict["Mode", "Filled"]
Reasons = list[tuple[str, Row]]


@click.command("fill")
@click.argument("text", nargs=-1)
@click.option("--model", help="A model made by 'ebert align': its folder, a hub id, or 'starter'.")
@click.option("--bert", help="Instead of a model: an encoder without entities.  [default: bert-base-cased]")
@own_vectors_option
@click.option("--mode", help=f"Any of {','.join(MODES)}.  [default: all with a model, bert without]")
@click.option("--top", type=click.IntRange(min=1), default=5, show_default=True, help="Answers to show for each mask.")
@click.option("--candidates", help="A file with the words to choose from, one per line.")
@click.option("--why", is_flag=True, help="Also show the answers with each entity left out in turn.")
@device_option
@dtype_option
@json_option
def command(
    text: tuple[str, ...], model: str | None, bert: str | None, vectors: str | None, mode: str | None, top: int,
    candidates: str | None, why: bool, device: str | None, dtype: str | None, as_json: bool,
) -> None:  # fmt: skip
    """Fill the masks of texts: plain BERT and E-BERT side by side.

    Write entities as [[Title]] or [[Title|surface]]. Case matters only if two titles differ in case alone. Without
    TEXT, the command fills the lines of standard input.

    \b
    Example:
      ebert fill --model starter "The native language of [[Natalia Lafourcade]] is [MASK]."
    """
    if model and bert:
        raise EbertError("give --model or --bert, not both: a model has its encoder")
    if vectors and not model:
        raise EbertError("--vectors goes with --model")
    modes = parse_modes(mode, with_entities=model is not None)
    fed = any(map(feeds_entities, modes))
    if why and not fed:
        raise EbertError("--why shows what entities do: it needs --model and the mode concat or replace")
    options = {"top": top, "candidates": _read_words(candidates) if candidates else None}
    found = find(model, None if model else bert or "bert-base-cased", vectors)
    passages = _passages(text, found)
    store = open_store(found) if model else None
    if store is not None and fed:
        passages = map(_Marker(store), passages)
    first = next(passages, None)
    if first is None:
        raise EbertError("there is no text to fill; give it as an argument or on standard input")
    with waiting(f"loading {found.name}"):
        from ebert.model.ebert import load_model

        loaded = load_model(found, store, device, dtype)
    number, passages = 0, chain([first], passages)
    while window := list(islice(passages, WINDOW)):
        for passage, row in _fill(loaded, window, modes, options, number):
            number += 1
            reasons = _reasons(loaded, passage, row, options) if why else None
            if as_json:
                print_json(_as_json(passage, row, reasons))
            else:
                _show(loaded, passage, row, reasons)


def _passages(texts: tuple[str, ...], found: "FoundModel") -> Iterator[Passage]:
    """Return the passages of texts, all of which are checked now, or of standard input, of which the first line is."""
    from ebert.bert.load import mask_of

    assert found.encoder_folder is not None
    mask = mask_of(found.encoder_folder)
    if texts:
        passages = list(map(Passage.parse, texts))
        for number, passage in enumerate(passages, 1):
            _check_text(passage.text, mask, f"text {number}: " if len(passages) > 1 else "")
        return iter(passages)
    lines = (Passage.parse(line.rstrip("\r\n")) for line in standard_input() if line.strip())
    if (first := next(lines, None)) is None:
        return iter(())
    _check_text(first.text, mask, "text 1: ")
    return chain([first], lines)


def _check_text(text: str, mask: str | None, where: str) -> None:
    if not text.strip():
        raise EbertError(f"{where}the text is empty")
    if mask is not None and not any(one.casefold() in text.casefold() for one in (MASK, mask)):
        raise EbertError(f"{where}the text has no mask; write {MASK} where the answer goes: {text[:60]!r}")


def _fill(
    model: "EBert", window: list[Passage], modes: list["Mode"], options: dict[str, Any], before: int
) -> Iterator[tuple[Passage, Row]]:
    """Fill passages together; if one of them cannot be filled, yield those before it and raise an error about it."""
    try:
        yield from zip(window, list(model.fill_modes(window, modes, **options)), strict=True)
        return
    except EbertError:
        pass
    for number, passage in enumerate(window, before + 1):
        try:
            row = next(model.fill_modes([passage], modes, **options))
        except EbertError as error:
            raise EbertError(f"text {number}: {error}") from None
        yield passage, row


def _read_words(path: str) -> list[str]:
    try:
        with click.open_file(path, encoding="utf-8") as file:
            return list(dict.fromkeys(line.strip() for line in file if line.strip()))
    except (OSError, UnicodeDecodeError) as error:
        raise EbertError(f"{path} cannot be read ({error}); it should be a text file with one word per line") from None


def _reasons(model: "EBert", passage: Passage, row: Row, options: dict[str, Any]) -> Reasons:
    """Fill the passage again without each of its entities that has a vector."""
    missing = next(iter(row.values())).missing
    modes = [mode for mode in row if feeds_entities(mode)]
    fed = [mention for mention in passage.mentions if mention.entity not in missing]
    rows = model.fill_modes([passage.without([mention]) for mention in fed], modes, **options)
    return list(zip([mention.entity for mention in fed], rows, strict=True))


def _as_json(passage: Passage, row: Row, reasons: Reasons | None) -> dict[str, Any]:
    def masks(row: Row) -> dict[str, Any]:
        return {
            mode: [
                {"mask": number, "answers": [{"token": a.token, "probability": a.probability} for a in answers]}
                for number, answers in enumerate(filled.masks)
            ]
            for mode, filled in row.items()
        }

    missing = next(iter(row.values())).missing
    value: dict[str, Any] = {"text": passage.text, "modes": masks(row), "missing": list(missing)}
    if reasons is not None:
        value["why"] = [{"without": title, "modes": masks(other)} for title, other in reasons]
    return value


def _show(model: "EBert", passage: Passage, row: Row, reasons: Reasons | None) -> None:
    from ebert.text.letters import listed

    click.secho(passage.markup(), bold=True)
    for title in next(iter(row.values())).missing if model.vectors else ():
        close = model.vectors.suggest(title, 3) if model.vectors else []
        hint = f"; nearest titles: {listed(close)}" if close else ""
        click.echo(f"  no vector for {title}{hint}", err=True)
    _columns(row)
    for title, other in reasons or []:
        click.echo(f"  without {title}:")
        _columns(other)
    click.echo()


def _columns(row: Row) -> None:
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


class _Marker:
    """Looks at the entities that passages name, and says what somebody may have meant."""

    def __init__(self, vectors: "Vectors") -> None:
        self._vectors = vectors
        self._offered = False  # it is said once

    def __call__(self, passage: Passage) -> Passage:
        """Return the passage with titles in the store's own case."""
        if not passage.mentions and not self._offered:
            self._offered = True
            self._offer(passage.text)
        mentions = [one if one.entity in self._vectors else self._in_any_case(one) for one in passage.mentions]
        return Passage(passage.text, tuple(mentions))

    def _in_any_case(self, mention: Mention) -> Mention:
        """Return a mention with the only title that equals its own if case is ignored, if there is one."""
        from ebert.text.titles import clean
        from ebert.vectors.lookup import words_in

        wanted = clean(mention.entity).casefold()
        if not (words := words_in(mention.entity)):
            return mention
        alike = self._vectors.matching(" ".join(f'"{word}"' for word in words), ALIKE)
        titles = {entity.title for entity in alike if entity.title.casefold() == wanted}
        if len(titles) != 1:
            return mention
        title = titles.pop()
        say(f"{mention.entity!r} is read as {title!r}")
        return replace(mention, entity=title)

    def _offer(self, text: str) -> None:
        """Say which entities the text seems to name, by how often its words are links."""
        from ebert.linking.candidates.table import MentionTable
        from ebert.linking.document import Document
        from ebert.linking.prior import chosen

        spans = chosen(MentionTable(self._vectors)(Document("", text)), LIKELY, "longest")
        named = [Mention(span.start, span.end, span.choices[0].title) for span in spans]
        named = [mention for mention in named if MASK not in text[mention.start - 1 : mention.end + 1]]
        hint = f"try: {Passage(text, tuple(named)).markup()}" if named else "mark one as [[Title]]"
        say(f"no entity is marked, so all modes give the same answers; {hint}")
