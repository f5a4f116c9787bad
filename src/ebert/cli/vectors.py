"""``ebert vectors``: stores of word and entity vectors."""

from pathlib import Path
from typing import Any, get_args

import click

from ebert.cli import add
from ebert.cli.common import json_option, overwrite_option, print_facts, print_json, print_table
from ebert.errors import EbertError
from ebert.vectors.layout import StorageDtype

FORMATS = ("auto", "text", "wikipedia2vec", "word2vec-binary", "numpy")
KINDS = ("prefix", "words", "entities")


@click.group("vectors")
def group() -> None:
    """Import, look at and change stores of word and entity vectors.

    \b
    Example:
      ebert vectors import enwiki.txt --out enwiki-vectors
      ebert vectors find enwiki-vectors "Jean Marais"
    """


group.add_command(add.add)
group.add_command(add.add_many)
group.add_command(add.remove)


@group.command("import")
@click.argument("source", nargs=-1, required=True)
@click.option("--out", required=True, help="The folder of the new store.")
@click.option("--format", "format_", type=click.Choice(FORMATS), default="auto", show_default=True)
@click.option(
    "--kind",
    type=click.Choice(KINDS),
    default="prefix",
    show_default=True,
    help="What the names are: entities where they begin with ENTITY/ and words elsewhere, or all of one kind.",
)
@click.option("--names", help="For numpy: the file with the names of the rows, one a line.")
@click.option("--dtype", type=click.Choice(get_args(StorageDtype)), default="float32", show_default=True)
@click.option("--licence", default="unknown", help="Noted in the store, e.g. 'CC BY-SA 4.0 (Wikipedia)'.")
@overwrite_option
@json_option
def import_(
    source: tuple[str, ...],
    out: str,
    format_: str,
    kind: str,
    names: str | None,
    dtype: str,
    licence: str,
    overwrite: bool,
    as_json: bool,
) -> None:
    """Make a store of files of vectors: Wikipedia2Vec (text or model), word2vec (text or binary), GloVe, numpy.

    Memory stays small however large the files are. Text may be compressed (.gz, .bz2).

    \b
    Example:
      ebert vectors import enwiki_20180420_300d.txt.bz2 --out enwiki-vectors
    """
    from ebert._io.progress import progress
    from ebert.vectors.formats.importer import import_vectors

    total = sum(Path(path).stat().st_size for path in source if Path(path).is_file())
    with progress("import", total=total, unit="B") as advance:
        store = import_vectors(
            source, out, format=format_, kind=kind, names=names, dtype=dtype, licence=licence, overwrite=overwrite,
            advance=advance,
        )  # fmt: skip
    _show(store.describe(), as_json)
    store.close()


@group.command("info")
@click.argument("store")
@click.option("--verify", is_flag=True, help="Read all files and compare them with their hashes.")
@json_option
def info(store: str, verify: bool, as_json: bool) -> None:
    """Print what is in a store.

    \b
    Example:
      ebert vectors info enwiki-vectors --verify
    """
    from ebert.vectors.store import Vectors

    with Vectors.open(store, verify=verify) as vectors:
        _show(vectors.describe(), as_json)


@group.command("find")
@click.argument("store")
@click.argument("name", nargs=-1, required=True)
@json_option
def find(store: str, name: tuple[str, ...], as_json: bool) -> int:
    """Look entities up by title, redirect, Wikipedia URL, Wikidata or own id; for a miss, show the closest titles.

    \b
    Example:
      ebert vectors find enwiki-vectors "jean_Marais" Q168359
    """
    from ebert.text.letters import listed
    from ebert.vectors.store import Vectors

    missed = False
    with Vectors.open(store) as vectors:
        for query in name:
            entity = vectors.find(query)
            missed = missed or entity is None
            close = vectors.suggest(query) if entity is None else []
            own = vectors.id_of(entity) if entity is not None else None
            if as_json:
                print_json({"name": query, "title": entity and entity.title, "row": entity and entity.row,
                            "count": entity and entity.count, "wikidata": entity and entity.qid,
                            "id": own, "oddity": entity and entity.oddity,
                            "added": bool(entity and entity.added), "nearest": close})  # fmt: skip
            elif entity is None:
                click.echo(f"{query}: no such entity; nearest titles: {listed(close) or 'none'}")
            else:
                facts = [f"row {entity.row}" + (" (added)" if entity.added else "")]
                facts += [f"linked {entity.count:,} times"] if entity.count is not None else []
                facts += [entity.qid] if entity.qid else []
                facts += [f"id {own}"] if own else []
                facts += [entity.oddity] if entity.oddity else []
                click.echo(f"{query}: {entity.title} ({', '.join(facts)})")
    return 2 if missed else 0


@group.command("nearest")
@click.argument("store")
@click.argument("name")
@click.option("--word", is_flag=True, help="NAME is a word, not an entity.")
@click.option("--kind", type=click.Choice(["entities", "words", "both"]), default="entities", show_default=True)
@click.option("--top", type=click.IntRange(min=1), default=10, show_default=True)
@json_option
def nearest(store: str, name: str, word: bool, kind: Any, top: int, as_json: bool) -> None:
    """Show the nearest entities or words, by cosine.

    \b
    Example:
      ebert vectors nearest enwiki-vectors "Jean Marais" --kind both --top 5
    """
    from ebert.vectors.store import Vectors

    with Vectors.open(store) as vectors:
        found = vectors.nearest(name, top=top, kind=kind, word=word)
    if as_json:
        print_json([{"kind": n.kind, "name": n.name, "similarity": n.similarity} for n in found])
    else:
        print_table((f"{n.similarity:.3f}", n.kind, n.name) for n in found)


@group.command("export")
@click.argument("store")
@click.argument("file")
@click.option(
    "--decimals",
    type=click.IntRange(1, 9),
    help="Significant digits.  [default: as many as give the same numbers again]",
)
@overwrite_option
@json_option
def export(store: str, file: str, decimals: int | None, overwrite: bool, as_json: bool) -> None:
    """Write a store in Wikipedia2Vec's text format.

    \b
    Example:
      ebert vectors export enwiki-vectors enwiki.txt
    """
    from ebert._io.progress import progress
    from ebert.vectors.formats.exporter import export_text
    from ebert.vectors.store import Vectors

    if file.endswith((".gz", ".bz2")):
        raise EbertError(f"{file} would not be compressed; write plain text and compress it afterwards")
    if Path(file).is_dir() or (Path(file).exists() and not overwrite):
        raise EbertError(f"{file} exists; choose another place or allow it to be overwritten (--overwrite)")
    with Vectors.open(store) as vectors, progress("export", total=vectors.info.words + len(vectors)) as advance:
        lines = export_text(vectors, file, decimals=decimals, advance=advance)
    if as_json:
        print_json({"file": file, "lines": lines})
    else:
        click.echo(f"wrote {lines:,} vectors to {file}")


def _show(facts: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print_json(facts)
        return
    made = facts.pop("made")
    print_facts({**facts, **{f"made: {name}": value for name, value in made.items()}})
