"""The commands of ``ebert vectors`` about entities of your own: a store for them, adding, removing, checking."""

import shlex
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ebert._io.progress import say
from ebert.cli import common
from ebert.errors import EbertError
from ebert.model.folder import find_model, open_store

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ebert.model.check import CheckedAnswer
    from ebert.model.fill import Answer
    from ebert.vectors.store import Vectors

SHOWN = 20  # rows that were left out, and names that clash


@click.command("copy")
@click.argument("store")
@click.argument("out")
@click.option("--overwrite", is_flag=True, help="Replace what is at OUT.")
@common.json_option
def copy(store: str, out: str, overwrite: bool, as_json: bool) -> None:
    """Make an instant copy of a store, for your own entities. The big files never change, so both stores share them.

    What you add goes into the copy only. If OUT is already a copy of STORE, nothing changes.

    \b
    Example:
      ebert vectors copy starter my-entities
      ebert vectors add my-entities "Zorblax Inc." --description "Zorblax Inc. is a Danish maker of toys."
      ebert fill --model starter --vectors my-entities "[[Zorblax Inc.]] is a [MASK]."
    """
    from ebert.vectors.copies import is_copy
    from ebert.vectors.store import Vectors

    with Vectors.open(store) as vectors:
        changed = overwrite or not is_copy(vectors, Path(out))
        with vectors.copy(out, overwrite=overwrite) as own:
            facts = {"store": str(own.path), "entities": len(own), "changed": changed}
    if as_json:
        common.print_json(facts)
    else:
        what = f"{out} is now a store of your own" if changed else f"nothing changed: {out} is a copy of it already"
        click.echo(f"{what}, with {facts['entities']:,} entities")


@click.command("add")
@click.argument("store")
@click.argument("title")
@click.option("--description", help="A paragraph about the entity. Its vector is made from it.")
@click.option("--vector", help="Instead: a file with the numbers, .npy or text ('-': standard input).")
@click.option("--alias", "aliases", multiple=True, help="Another name to find it by; may be given several times.")
@click.option("--wikidata", help="Its Wikidata id, e.g. Q42.")
@click.option("--id", help="An id of your own to find it by.")
@click.option("--replace", is_flag=True, help="Replace the vector of an entity that is already there.")
@click.option("--model", help="After adding, show what BERT says about it, like 'ebert vectors check' with this model.")
@click.option("--refine", is_flag=True, help="Improve the vector with the description and --model (takes seconds).")
@common.json_option
def add(
    store: str, title: str, description: str | None, vector: str | None, wikidata: str | None, model: str | None,
    refine: bool, as_json: bool, **how: Any,
) -> None:  # fmt: skip
    """Add an entity to a store, for every process that has it open. Adding the same entity again changes nothing.

    \b
    Example:
      ebert vectors copy starter my-entities
      ebert vectors add my-entities "Zorblax Inc." --alias Zorblax --model starter \\
        --description "Zorblax Inc. is a Danish maker of wind turbines, founded in Aarhus in 1987."
    """
    from ebert.text.letters import remark
    from ebert.text.titles import wikidata_id

    number = wikidata_id(wikidata) if wikidata else None
    if wikidata and number is None:
        raise EbertError(f"{wikidata!r} is not a Wikidata id such as Q42")
    if (vector is None) == (description is None):
        raise EbertError(f"{title!r} needs a description or a vector: give one of --description and --vector")
    if refine and (model is None or description is None):
        raise EbertError("--refine needs a --description to learn from and a --model to learn through")
    with _own(store) as vectors:
        if model is not None:  # before anything is added
            open_store(find_model(model, vectors))
        given, before = None if vector is None else _read_vector(vector), vectors.stamp
        if refine:
            from ebert.model.ebert import EBert

            assert model is not None
            assert description is not None
            given, description = EBert.from_pretrained(model, vectors=vectors).refine(title, description), None
        entity = vectors.add(title, given, description=description, wikidata=number, **how)
        changed, size = vectors.stamp != before, len(vectors)
        facts: dict[str, Any] = {
            "title": entity.title, "oddity": entity.oddity, "entities": size, "changed": changed
        }  # fmt: skip
        if not as_json:
            named = f"{entity.title}{remark(entity.title)}"
            done = (
                f"added {named}; {store} now has"
                if changed
                else f"nothing changed: {store} has {named} already, one of"
            )
            click.echo(f"{done} {size:,} entities")
        if model is not None:
            checked = _check(model, vectors, entity.title)
            facts["answers"] = _as_value(checked)
            if not as_json:
                _show(entity.title, checked)
        elif not as_json:
            what = shlex.join(["ebert", "vectors", "check", entity.title, "--vectors", store])
            say(f"see what BERT says about it: {what} (--model MODEL if it is not the starter)")
    if as_json:
        common.print_json(facts)


@click.command("add-many")
@click.argument("store")
@click.argument("file")
@click.option("--replace", is_flag=True, help="Replace the vectors of entities that are already there.")
@click.option("--strict", is_flag=True, help="Exit with 2 if any row was left out.")
@click.option(
    "--rejected",
    type=click.Path(),
    help="Write the rows that were left out, with reasons, to this file, as JSON lines.",
)
@common.json_option
def add_many(store: str, file: str, replace: bool, strict: bool, rejected: str | None, as_json: bool) -> int:
    """Add a whole knowledge base to a store: .csv, .tsv or .jsonl (and .gz or .bz2).

    Columns (fields): title, description, and optionally aliases (a list, or names with vertical bars between them), id
    (your own) and wikidata. Rows that cannot be added are left out and listed. If no row can be added, the exit code is
    2. After Ctrl-C, the entities added so far stay.

    \b
    Example:
      ebert vectors add-many my-entities products.csv
    """
    from ebert._io.progress import progress
    from ebert._io.records import write_lines

    with _own(store) as vectors:
        before = len(vectors)
        try:
            with progress("add", total=common.size_of(file), unit="B") as advance:
                report = vectors.add_many(file, replace=replace, advance=advance)
        except (KeyboardInterrupt, EbertError, OSError):
            if more := len(vectors) - before:
                say(f"{more:,} entities were added before this")
            raise
        entities = len(vectors)
    if rejected is not None:
        rows = ({"line": row.number, "title": row.title, "reason": row.reason} for row in report.bad)
        write_lines(Path(rejected), rows)
    left_out = (f"line {row.number}{f', {row.title!r}' if row.title else ''}: {row.reason}" for row in report.bad)
    _say_some(left_out, len(report.bad), "" if rejected else " (--rejected FILE)")
    facts = {
        "added": report.added, "replaced": report.replaced, "unchanged": report.unchanged,
        "left out": len(report.bad), "shared names": len(report.clashes),
        "clashes": [{"name": one.name, "title": one.title, "means": one.means} for one in report.clashes],
        "odd titles": report.odd, "unused": sorted(report.unused), "entities": entities,
    }  # fmt: skip
    common.print_result(facts, as_json, lambda facts: _show_added(facts, store))
    return 2 if not report.added + report.unchanged or (strict and report.bad) else 0


def _show_added(facts: dict[str, Any], store: str) -> None:
    replaced = f" ({facts['replaced']:,} of them in place of others)" if facts["replaced"] else ""
    unchanged = f"{facts['unchanged']:,} were there already, " if facts["unchanged"] else ""
    done = f"added {facts['added']:,} entities{replaced}, {unchanged}left {facts['left out']:,} rows out"
    click.echo(f"{done}; {store} now has {facts['entities']:,} entities")
    if clashes := facts["clashes"]:
        click.echo(
            f"names that clash: {len(clashes):,}; each still finds the entity it found before, and in a text it can "
            "mean the new one too"
        )
        names = (f"  {one['name']!r}, a name of {one['title']!r}, finds {one['means']!r}" for one in clashes)
        _say_some(names, len(clashes), " (--json)")
    if facts["odd titles"]:
        click.echo(
            f"titles that mix letters of two scripts in a word, and may look like others: {facts['odd titles']:,}"
        )
    if facts["unused"]:
        click.echo(f"not used: {', '.join(facts['unused'])}")


def _say_some(lines: Iterable[str], count: int, more: str) -> None:
    for line, _ in zip(lines, range(SHOWN), strict=False):
        say(line)
    if count > SHOWN:
        say(f"... and {count - SHOWN:,} more{more}")


@click.command("remove")
@click.argument("store")
@click.argument("title", nargs=-1, required=True)
@common.json_option
def remove(store: str, title: tuple[str, ...], as_json: bool) -> None:
    """Remove entities from a store, for every process that has it open.

    Entities that you added are deleted. Entities that the store was made with are hidden until you add them again.

    \b
    Example:
      ebert vectors remove my-entities "Zorblax Inc."
    """
    with _own(store) as vectors:
        entities = {name: vectors.known(name) for name in title}  # none is removed if one is unknown
        removed = [vectors.remove(name).title for name in dict.fromkeys(one.title for one in entities.values())]
        size = len(vectors)
    if as_json:
        common.print_json({"removed": removed, "entities": size})
    else:
        click.echo(f"removed {', '.join(removed)}; {store} now has {size:,} entities")


@click.command("list")
@click.argument("store")
@click.option("--added", is_flag=True, help="List only added entities, with their other names and ids.")
@common.json_option
def list_(store: str, added: bool, as_json: bool) -> None:
    """List the titles of a store, one per line; with --json, one object per line.

    \b
    Example:
      ebert vectors list my-entities --added
    """
    from ebert.vectors.store import Vectors

    with Vectors.open(store) as vectors:
        if not added:
            for title in vectors:
                common.print_json({"title": title}) if as_json else click.echo(title)
            return
        for entity, _ in vectors.overlay.all():
            facts: dict[str, Any] = {
                "title": entity.title, "aliases": vectors.aliases(entity), "wikidata": entity.qid,
                "id": vectors.id_of(entity), "replaces": vectors.made(entity.title) is not None,
            }  # fmt: skip
            if as_json:
                common.print_json(facts)
                continue
            notes: list[Any] = [facts["replaces"] and "in place of the store's own", entity.qid, facts["id"]]
            also = [f"also {', '.join(facts['aliases'])}"] if facts["aliases"] else []
            noted = "; ".join(str(one) for one in (*notes, *also) if one)
            click.echo(f"{entity.title}{f' ({noted})' if noted else ''}")


@click.command("check")
@click.argument("title")
@click.option("--model", default="starter", show_default=True, help="The model to ask.")
@common.own_vectors_option
@click.option("--top", type=click.IntRange(min=1), default=3, show_default=True, help="Answers for each template.")
@common.device_option
@common.json_option
def check(title: str, model: str, vectors: str | None, top: int, device: str | None, as_json: bool) -> None:
    """Show what BERT says about an entity without its vector (before) and with it (after), on a few templates.

    \b
    Example:
      ebert vectors check "Natalia Lafourcade" --model starter
      ebert vectors check "Zorblax Inc." --model starter --vectors my-entities
    """
    with open_store(find_model(model, vectors)) as store:
        title = store.known(title).title  # before torch is loaded
        checked = _check(model, store, title, top=top, device=device)
    if as_json:
        common.print_json({"title": title, "answers": _as_value(checked)})
    else:
        _show(title, checked)


def _check(
    model: str, store: "Vectors", title: str, *, top: int = 3, device: str | None = None
) -> "list[CheckedAnswer]":
    from ebert.model.check import check_entity
    from ebert.model.ebert import EBert

    return check_entity(EBert.from_pretrained(model, vectors=store, device=device), title, top=top)


def _as_value(checked: "Sequence[CheckedAnswer]") -> list[dict[str, Any]]:
    def answers(found: "Sequence[Answer]") -> list[dict[str, Any]]:
        return [{"token": one.token, "probability": one.probability} for one in found]

    return [{"template": one.template, "before": answers(one.before), "after": answers(one.after)} for one in checked]


def _show(title: str, checked: "Sequence[CheckedAnswer]") -> None:
    click.secho(title, bold=True)
    rows = [("", "before (plain BERT)", "after (with the entity)")]
    rows += [(one.template.format("..."), _line(one.before), _line(one.after)) for one in checked]
    common.print_table(rows)


def _line(answers: "Sequence[Answer]") -> str:
    return ", ".join(f"{one.token} {one.probability:.0%}" for one in answers)


def _own(store: str) -> "Vectors":
    """Open a store to change it. Raise `EbertError` if it is the starter."""
    from ebert import _names
    from ebert.vectors.store import Vectors

    vectors = Vectors.open(store)
    if vectors.shared:
        vectors.close()
        raise _names.shared_store(store)
    return vectors


def _read_vector(path: str) -> "NDArray[Any]":
    import numpy as np

    try:
        if path.endswith(".npy"):
            array: NDArray[Any] = np.load(path, allow_pickle=False)
            if not isinstance(array, np.ndarray):
                raise ValueError("it is an archive of arrays")
            return array
        text = sys.stdin.read() if path == "-" else Path(path).read_text(encoding="utf-8")
        return np.asarray([float(number) for number in text.replace(",", " ").strip("[] \n").split()])
    except FileNotFoundError:
        raise EbertError(f"there is no file {path}") from None
    except (OSError, ValueError, EOFError) as error:
        raise EbertError(f"{path} is not a vector: {error}") from None
