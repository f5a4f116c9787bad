"""``ebert corpus``: from Wikipedia dumps to the text, links and mentions that vectors are trained on."""

from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import click

from ebert._io.progress import say
from ebert._options import cli_options
from ebert.bulk.options import WORKER_FIELDS, EngineOptions
from ebert.cli.common import json_option, overwrite_option, print_facts, print_result, print_table, size_of
from ebert.cli.lazy import Group
from ebert.wikipedia.options import CorpusOptions


@click.group("corpus", cls=Group)
def group() -> None:
    """Build and inspect corpora: the text of a Wikipedia with its links, from a dump.

    \b
    Example:
      ebert corpus build enwiki-20260101-pages-articles-multistream.xml.bz2 --out enwiki
      ebert corpus info enwiki
    """


@group.command("build")
@click.argument("dump", nargs=-1, required=True)
@click.option("--out", required=True, help="The folder of the new corpus.")
@cli_options(CorpusOptions)
@cli_options(EngineOptions, into="engine", without=WORKER_FIELDS)
@overwrite_option
@json_option
def build(
    dump: tuple[str, ...], out: str, options: CorpusOptions, engine: EngineOptions, overwrite: bool, as_json: bool
) -> None:
    """Make a corpus from MediaWiki exports (.xml, .xml.bz2, .xml.gz), such as a Wikipedia's pages-articles dump.

    Several dumps of one language become one corpus; if two dumps have the same title, it is one page. To continue a
    build that was stopped, run the same command again. Until the build is complete, its parts are in OUT.parts.

    \b
    Example:
      ebert corpus build enwiki-latest-pages-articles-multistream.xml.bz2 --out enwiki
    """
    from ebert._io.progress import progress
    from ebert.wikipedia.build import build_corpus

    run = None
    if engine.engine == "ray":
        from ebert.bulk.ray import RayTasks, need_ray

        need_ray()  # now, not after the dumps were read
        run = RayTasks(replace(engine, workers=options.threads))
    dumps = [str(Path(path).absolute()) for path in dump] if run else dump  # other machines know no folder of ours
    try:
        corpus = build_corpus(dumps, out, overwrite=overwrite, run=run, watch=progress, **asdict(options))
    except KeyboardInterrupt:
        say("stopped; run the same command again to continue")
        raise
    print_result(asdict(corpus.info), as_json, _show)


@group.command("info")
@click.argument("corpus")
@json_option
def info(corpus: str, as_json: bool) -> None:
    """Print what is in a corpus, what it was made from, and what was skipped and why.

    \b
    Example:
      ebert corpus info enwiki
    """
    from ebert.wikipedia.corpus import Corpus

    opened = Corpus.open(corpus)
    print_result({**asdict(opened.info), "wikidata ids": len(opened.wikidata())}, as_json, _show)


@group.command("wikidata")
@click.argument("corpus")
@click.option("--page", help="The dump of the table 'page' of the same wiki (page.sql.gz).")
@click.option("--page-props", help="The dump of its table 'page_props' (page_props.sql.gz).")
@click.option("--tsv", help="Instead: a file of titles and ids (Q42), one pair per line, separated by a tab.")
@json_option
def wikidata(corpus: str, page: str | None, page_props: str | None, tsv: str | None, as_json: bool) -> None:
    """Find the Wikidata ids of the entities of a corpus.

    \b
    Example:
      ebert corpus wikidata enwiki --page enwiki-latest-page.sql.gz --page-props enwiki-latest-page_props.sql.gz
    """
    from ebert._io.progress import progress
    from ebert.wikipedia import wikidata
    from ebert.wikipedia.corpus import Corpus

    if bool(page) != bool(page_props) or bool(page) == bool(tsv):
        raise click.UsageError("give --page and --page-props, or --tsv")
    opened = Corpus.open(corpus)
    sources = [Path(name) for name in (page, page_props, tsv) if name]
    with progress("ids", total=size_of(*map(str, sources)), unit="B") as advance:
        if tsv:
            ids = wikidata.from_tsv(opened, sources[0], advance=advance)
        else:
            ids = wikidata.from_sql(opened, sources[0], sources[1], advance=advance)
    wikidata.write(opened, ids)
    facts = {
        "found": len(ids.found), "entities": len(opened.entities), "elsewhere": ids.elsewhere, "twice": ids.twice,
        "bad": ids.bad, "examples": ids.examples,
    }  # fmt: skip
    print_result(facts, as_json, _show_ids)


def _show(facts: dict[str, Any]) -> None:
    skipped, dumps = facts.pop("skipped"), facts.pop("dumps")
    namespaces, lowercase = ", ".join(map(str, facts["namespaces"])), "yes" if facts["lowercase"] else "no"
    print_facts({**facts, "namespaces": namespaces, "lowercase": lowercase})
    for dump in dumps:
        click.echo(f"from {dump['name']} ({dump['size']:,} bytes)")
    if skipped:
        click.echo("skipped:")
        print_table((f"  {count:,}", reason, ", ".join(examples)) for reason, (count, examples) in skipped.items())


def _show_ids(facts: dict[str, Any]) -> None:
    click.echo(f"{facts['found']:,} of {facts['entities']:,} entities have an id")
    click.echo(f"{facts['elsewhere']:,} ids are of titles that the corpus does not have")
    if facts["twice"]:
        click.echo(f"{facts['twice']:,} were second ids of a title; the first is kept")
    if facts["bad"]:
        click.echo(f"{facts['bad']:,} rows could not be read, such as: {'; '.join(facts['examples'])}")
