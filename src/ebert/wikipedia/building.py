"""Building a corpus from dumps: pieces to parts on all cores, parts to a corpus, words of links to a mention table.

Parts stand in a folder beside the corpus while it is built (`corpus.parts`). A build that was stopped goes on with
those it finds there.
"""

import os
import re
import time
from collections.abc import Sequence
from pathlib import Path

from ebert import __version__
from ebert._io import files
from ebert._io.progress import Watch, unwatched
from ebert._runs import saying_where
from ebert.errors import EbertError
from ebert.wikipedia import mentions
from ebert.wikipedia.corpus import INFO, Corpus, CorpusInfo
from ebert.wikipedia.dump import Dump, look
from ebert.wikipedia.making import Options
from ebert.wikipedia.merging import merge
from ebert.wikipedia.parts import Skipped
from ebert.wikipedia.pipeline import Job, Run, make_parts
from ebert.wikipedia.site import Site
from ebert.wikipedia.workshop import workshop

_WIKIPEDIA = re.compile(r"<sitename>Wikipedia</sitename>|<dbname>[a-z_]+wiki</dbname>|//[a-z-]+\.wikipedia\.org/")
LICENCE = "CC BY-SA 4.0, text of Wikipedia"


def build_corpus(
    dumps: Sequence[str | Path],
    out: str | Path,
    *,
    lowercase: bool = False,
    namespaces: Sequence[int] = (0,),
    threads: int | None = None,
    keep_going: bool = False,
    overwrite: bool = False,
    run: Run | None = None,
    watch: Watch = unwatched,
) -> Corpus:
    """Build a corpus of MediaWiki exports at `out`, or go on building it.

    `threads` worker processes (as many as there are cores, if not given) read the dumps; with one, this process does.
    `keep_going` takes what can be read of a damaged dump instead of stopping there. `run` shares the pieces of dumps
    out in another way, such as to a cluster (`ebert.bulk.ray.RayTasks`); the corpus is the same.
    """
    began = time.monotonic()
    target, threads = Path(out), threads or os.cpu_count() or 1
    files.refuse_existing(target, overwrite=overwrite, marker=INFO)
    looked = _look(dumps)
    language = _language(looked)
    options = Options(lowercase, frozenset(namespaces))
    with saying_where(target), workshop(target, [dump for dump, _ in looked], options, overwrite=overwrite) as bench:
        job = Job(options, bench, threads, keep_going, run)
        with watch("read", total=sum(dump.size for dump, _ in looked), unit="B") as advance:
            parts = make_parts(looked, job, advance)
        folder, skipped = bench.fresh_folder(), Skipped()
        with watch("merge", total=2 * len(parts), unit="parts") as advance:
            merged = merge(parts, folder, skipped, advance)
        if not merged.words:
            bench.remove()
            raise EbertError(f"there is no text in {', '.join(map(str, dumps))}; skipped: {skipped.summary()}")
        with watch("count mentions", total=merged.words, unit="words") as advance:
            surfaces = mentions.write(folder, threads=threads, advance=advance)
        CorpusInfo(
            language=language,
            lowercase=lowercase,
            namespaces=sorted(options.namespaces),
            pages=merged.pages,
            words=merged.words,
            vocabulary=merged.vocabulary,
            entities=merged.entities,
            links=merged.links,
            redirects=merged.redirects,
            surfaces=surfaces,
            skipped=skipped.value(),
            dumps=[{"name": dump.path.name, "size": dump.size} for dump, _ in looked],
            licence=LICENCE if all(_WIKIPEDIA.search(dump.header) for dump, _ in looked) else "unknown",
            seconds=round(time.monotonic() - began, 1),
            version=__version__,
        ).write(folder)
        with files.replacing_folder(target, overwrite=overwrite, marker=INFO) as whole:
            for file in folder.iterdir():
                file.rename(whole / file.name)
        bench.remove()
    return Corpus.open(target)


def _look(dumps: Sequence[str | Path]) -> list[tuple[Dump, Site]]:
    if not dumps:
        raise EbertError("a corpus needs at least one dump")
    looked: dict[Path, tuple[Dump, Site]] = {}
    for path in map(Path, dumps):
        dump = look(path)
        if path.resolve() in looked:
            raise EbertError(f"{path} is given twice; give every dump once")
        looked[path.resolve()] = dump, Site.from_siteinfo(dump.header)
    return list(looked.values())


def _language(looked: list[tuple[Dump, Site]]) -> str:
    languages = {site.language: dump.path.name for dump, site in looked}
    if len(languages) > 1:
        shown = ", ".join(f"{name}: {language}" for language, name in languages.items())
        raise EbertError(f"the dumps are in different languages ({shown}); build a corpus for each language")
    return next(iter(languages))
