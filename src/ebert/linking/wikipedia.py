"""Make documents to train a linker on from the links of Wikipedia, so that nobody needs licensed text.

Articles come from a corpus or, with all their punctuation, from its dumps. A corpus keeps words only, and a linker that
never saw a comma reads ordinary text worse, so the dumps are the better source where they are at hand; the corpus then
says which articles to take.

Wikipedia links an entity once or twice in an article, and never links the article's own subject. A linker for news
should find every name. So later mentions take the entity that their words, or the longer name they are part of, were
linked to before in the same article, and names of the subject take the subject. An unlinked span whose words are often
a link is left out of the loss, instead of being taught as nothing. Links of common nouns (steel, water), which are
usually written in lower case, are taught as nothing, unless all links are asked for (`names`). Held-out documents, on
which thresholds are tuned and epochs chosen, are labelled in the same way.
"""

import json
import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import asdict, replace
from functools import partial
from itertools import islice, pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ebert import __version__
from ebert._io import files
from ebert._io.progress import Advance, silent
from ebert.errors import EbertError
from ebert.linking.candidates.generator import CandidateGenerator
from ebert.linking.candidates.recount import PageChoice, choose_pages
from ebert.linking.candidates.table import MentionTable, is_date
from ebert.linking.candidates.words import begins_sentence
from ebert.linking.document import Document
from ebert.linking.options import WikipediaOptions
from ebert.linking.resolve import TitleResolver
from ebert.linking.styles import in_styles
from ebert.text.passage import Mention
from ebert.vectors.lookup import surface_of
from ebert.vectors.store import Vectors
from ebert.wikipedia import dump
from ebert.wikipedia.corpus import Corpus
from ebert.wikipedia.site import Site
from ebert.wikipedia.tokens import WordsOf, words_of
from ebert.wikipedia.wikitext import Anchor, to_plain

SHORT = 12  # words of a line that is not prose: a heading, an entry of a list
CROWDED = 0.5  # share of a line's letters that are links, in a row of a table
CROWDED_PAGE = 0.35  # share of the words of a page that are links, in a page of tables
INFO, TRAIN, HELD_OUT = "documents.json", "train.jsonl", "held-out.jsonl"
COMMON = 0.5  # share of an entity's links by some words that are in lower case, from which on these are no name
NAME = 0.02  # link probability from which on unlinked words with a capital, which are a name, tell nothing
SPARE = 2.0  # pages looked at for a document: not all have enough prose with links
_SMALL = frozenset(("of", "the", "and", "in", "a", "de", "la", "at", "on", "for", "to"))
_SENTENCE = re.compile(r"(?<=[.!?])[\"'”’)]*\s+(?=[\"'“‘(]*[A-Z0-9])")


class Article(NamedTuple):
    """The text of an article, a paragraph a line, and its links."""

    title: str
    text: str
    anchors: tuple[Anchor, ...]


def documents(
    articles: Iterable[Article], generator: CandidateGenerator, resolver: TitleResolver, options: WikipediaOptions, *,
    words_of: WordsOf = words_of,
) -> Iterator[Document]:  # fmt: skip
    """Make documents from articles; skip those with too few links."""
    for article in articles:
        text, anchors = prose(article, options.words)
        document = _linked(article.title, text, anchors, resolver, words_of)
        if len(document.gold) >= options.min_links:
            yield _labelled(document, resolver.same(article.title), generator, options, words_of)


def prose(article: Article, words: int) -> tuple[str, tuple[Anchor, ...]]:
    """Return the first paragraphs of an article that are prose, and the links in them."""
    lines: list[str] = []
    anchors: list[Anchor] = []
    start = done = length = 0
    begins = [anchor.start for anchor in article.anchors]
    for line in article.text.split("\n"):
        end = start + len(line)
        inside = article.anchors[bisect_left(begins, start) : bisect_left(begins, end)]
        inside = tuple(anchor for anchor in inside if anchor.end <= end)
        size = len(line.split())
        crowded = sum(anchor.end - anchor.start for anchor in inside) > CROWDED * len(line)
        if size >= SHORT and not crowded and " ; " not in line:
            if lines and done + size > words:
                break
            line, size = _cut(line, words) if size > words else (line, size)
            kept = (anchor for anchor in inside if anchor.end - start <= len(line))
            shift = length - start
            anchors += [Anchor(anchor.start + shift, anchor.end + shift, anchor.title) for anchor in kept]
            lines.append(line)
            length += len(line) + 1
            done += size
        start = end + 1
    return "\n".join(lines), tuple(anchors)


def _cut(line: str, words: int) -> tuple[str, int]:
    """Cut a long paragraph after a sentence, or after a word if there are no sentences."""
    done = end = 0
    for begin, stop in pairwise([0, *(match.end() for match in _SENTENCE.finditer(line)), len(line)]):
        size = len(line[begin:stop].split())
        if done and done + size > words:
            break
        done, end = done + size, stop
    if done <= words:
        return line[:end].rstrip(), done
    cut = [match.end() for match in re.finditer(r"\S+", line)][words - 1]
    return line[:cut], words


def _linked(title: str, text: str, anchors: Iterable[Anchor], resolver: TitleResolver, words_of: WordsOf) -> Document:
    """Return a document with the links of an article, except those of dates."""
    gold, ignore, end = [], [], 0
    for anchor in anchors:
        surface = text[anchor.start : anchor.end]
        start = anchor.start + len(surface) - len(surface.lstrip())
        stop = start + len(surface.strip())
        if start < end or start >= stop:
            continue
        if is_date(words_of(surface)):
            ignore.append((start, stop))
        else:
            gold.append(Mention(start, stop, resolver.same(anchor.title)))
        end = stop
    return Document(title, text, tuple(gold), tuple(ignore))


def _labelled(
    document: Document, subject: str, generator: CandidateGenerator, options: WikipediaOptions, words_of: WordsOf
) -> Document:
    """Label later mentions and those of the subject, and leave out spans that the links tell nothing about."""
    spans = sorted(generator(document), key=lambda span: (span.start - span.end, span.start))  # longest first
    if options.names:
        common = {(span.start, span.end, one.title) for span in spans for one in span.choices if one.lower >= COMMON}
        kept = (one for one in document.gold if (one.start, one.end, one.entity) not in common)
        document = replace(document, gold=tuple(kept))
    text, own = document.text, set(words_of(surface_of(document.id, words_of))) - _SMALL
    nouns = {word.lower() for word in own}  # nobody knows which of them an editor would link
    first: dict[str, Mention] = {}  # of each surface: where it was linked first
    named = {subject: (0, own)}  # of each entity: where it is linked first, and the words of its names
    taken = bytearray(len(text))  # by character
    for mention in document.gold:
        words = words_of(text[mention.start : mention.end])
        first.setdefault(" ".join(words), mention)
        place, names = named.get(mention.entity, (mention.start, set(words_of(surface_of(mention.entity, words_of)))))
        named[mention.entity] = place, names | set(words)
        taken[mention.start : mention.end] = b"\1" * (mention.end - mention.start)
    gold, ignore = list(document.gold), set(document.ignore)
    for span in spans:
        if taken.find(1, span.start, span.end) >= 0:
            continue  # in a link, around one, or in a longer span that was dealt with
        words = words_of(text[span.start : span.end])
        linked = first.get(" ".join(words))
        before = linked is not None and linked.start < span.start
        # Its words are part of a name that was given before, and one of its meanings is what that name means.
        known = [
            choice.title
            for choice in span.choices
            if choice.prior >= options.part and choice.title in named
            and named[choice.title][0] < max(span.start, 1) and set(words) <= named[choice.title][1]
        ]  # fmt: skip
        is_name = text[span.start : span.end] != text[span.start : span.end].lower()
        certain_name = options.names and is_name and not begins_sentence(text, span.start)
        usual = min(options.usual, NAME) if certain_name else options.usual
        is_common = options.names and bool(span.choices) and span.choices[0].lower >= COMMON
        if is_common and not (linked or known):
            continue
        if linked and before and span.sure >= options.later:
            gold.append(Mention(span.start, span.end, linked.entity))
        elif is_name and len(known) == 1:
            gold.append(Mention(span.start, span.end, known[0]))
        elif linked or set(words) <= own | nouns or span.sure >= usual:
            ignore.add((span.start, span.end))
        else:
            continue
        taken[span.start : span.end] = b"\1" * (span.end - span.start)
    return Document(document.id, text, tuple(gold), tuple(sorted(ignore)))


def from_corpus(corpus: Corpus, numbers: Iterable[int]) -> Iterator[Article]:
    """Yield articles of a corpus by their page numbers: words, with blanks between them."""
    words, entities = corpus.words, corpus.entities
    for page in numbers:
        first, last = corpus.page_paragraphs[page], corpus.page_paragraphs[page + 1]
        begins = corpus.paragraphs[first : last + 1].tolist()
        place: dict[int, tuple[int, int]] = {}  # of a token, in the text
        lines: list[str] = []
        position = 0
        for begin, end in pairwise(begins):
            line = [words[token] for token in corpus.tokens[begin:end].tolist()]
            for number, word in enumerate(line, begin):
                place[number] = (position, position + len(word))
                position += len(word) + 1
            lines.append(" ".join(line))
        links = slice(int(corpus.page_anchors[page]), int(corpus.page_anchors[page + 1]))
        anchors = []
        for start, length, entity in zip(
            corpus.anchor_start[links].tolist(), corpus.anchor_length[links].tolist(),
            corpus.anchor_entity[links].tolist(), strict=True,
        ):  # fmt: skip
            if length and start + length - 1 in place:
                anchors.append(Anchor(place[start][0], place[start + length - 1][1], entities[entity]))
        yield Article(entities[corpus.page_entity[page]], "\n".join(lines), tuple(anchors))


def from_dumps(paths: Iterable[str | Path], wanted: Collection[str], *, advance: Advance = silent) -> Iterator[Article]:
    """Yield the articles of dumps that have one of the titles. The progress is in bytes of the files."""
    left = set(wanted)
    for path in paths:
        file = dump.look(Path(path))
        site = Site.from_siteinfo(file.header)
        for piece in dump.whole_pages(file):
            for raw in dump.cut_pages(piece.xml or b"").pages:
                page = dump.read_page(raw)
                title = site.title(page.title)
                if title not in left or page.text is None or page.redirect is not None:
                    continue
                plain = to_plain(page.source(), site)
                if plain.anchors:  # the same title may be in another dump, without links
                    left.discard(title)
                    yield Article(title, plain.text, tuple(plain.anchors))
            if piece.damage:
                raise EbertError(f"{piece.damage}; get the file again")
            advance(piece.end - piece.start)


def training_pages(corpus: Corpus, choice: PageChoice) -> NDArray[np.int64]:
    """Return the pages whose links stand in running text: at most every third word is linked, unlike in tables."""
    links = np.diff(np.asarray(corpus.page_anchors))
    words = np.diff(np.asarray(corpus.paragraphs)[np.asarray(corpus.page_paragraphs)])
    page = np.repeat(np.arange(len(links)), links)
    linked = np.bincount(page, weights=np.asarray(corpus.anchor_length), minlength=len(links))
    return np.flatnonzero(choice.linked & (linked <= CROWDED_PAGE * words))


def prepare(
    corpus: Corpus, vectors: Vectors, out: str | Path, *, options: WikipediaOptions | None = None,
    dumps: Sequence[str | Path] = (), leave_out: Collection[str] = (), overwrite: bool = False,
    advance: Advance = silent,
) -> dict[str, Any]:  # fmt: skip
    """Write a folder of documents and return what is in it. Articles named in `leave_out` are not used."""
    options = options or WikipediaOptions()
    files.refuse_existing(Path(out), overwrite=overwrite, marker=INFO)
    choice = choose_pages(corpus, leave_out)
    pages = np.random.default_rng(options.seed).permutation(training_pages(corpus, choice))
    held, rest = pages[: int(SPARE * options.held_out)], pages[int(SPARE * options.held_out) :]
    wanted = rest[: int(SPARE * options.documents)]
    titles = corpus.entities
    names = [[titles[corpus.page_entity[page]] for page in group] for group in (held, wanted)]
    generator, resolver = MentionTable(vectors), TitleResolver(vectors)
    if dumps:
        found = {a.title: a for a in from_dumps(dumps, {*names[0], *names[1]}, advance=advance)}
        articles = [[found[name] for name in group if name in found] for group in names]
    else:
        articles = [from_corpus(corpus, group.tolist()) for group in (held, wanted)]  # type: ignore[misc]
    make = partial(
        documents, generator=generator, resolver=resolver, options=options,
        words_of=partial(words_of, by=corpus.info.tokeniser),
    )  # fmt: skip
    groups = {
        HELD_OUT: islice(make(articles[0]), options.held_out),
        TRAIN: in_styles(islice(make(articles[1]), options.documents), options.styles, options.seed),
    }
    chosen = asdict(options)
    amounts = {name: chosen.pop(name) for name in ("documents", "held_out", "seed")}
    with files.replacing_folder(Path(out), overwrite=overwrite, marker=INFO) as folder:
        counts = {name: write_documents(folder / name, group) for name, group in groups.items()}
        if not counts[TRAIN]["documents"]:
            raise EbertError(
                f"none of the {len(wanted):,} articles that were looked at has enough linked prose to train on"
                + (f"; are {', '.join(Path(path).name for path in dumps)} the dumps of the corpus?" if dumps else "")
            )
        info = {
            "ebert": __version__, "options": chosen, "amounts": amounts,
            "dumps": [Path(path).name for path in dumps], "corpus": corpus.info.dumps, "licence": corpus.info.licence,
            "left_out": sorted(choice.left_out), "files": counts,
        }  # fmt: skip
        files.write_json(folder / INFO, info)
    return {"out": str(out), **info}


def write_documents(path: Path, documents: Iterable[Document]) -> dict[str, int]:
    """Write documents of articles in our own layout, one per line; return their number and what is in them."""
    counts = Counter({"documents": 0, "words": 0, "gold": 0, "left out": 0})
    with files.replacing(path, "w") as file:
        for document in documents:
            row: dict[str, Any] = {"id": document.id, "text": document.text}
            row["mentions"] = [{"start": m.start, "end": m.end, "entity": m.entity} for m in document.gold]
            if document.ignore:
                row["ignore"] = document.ignore
            row["title"] = document.id  # so that its article can be left out of a table, say
            file.write(json.dumps(row, ensure_ascii=False) + "\n")
            words, gold, left_out = len(document.text.split()), len(document.gold), len(document.ignore)
            counts.update({"documents": 1, "words": words, "gold": gold, "left out": left_out})
    return dict(counts)
