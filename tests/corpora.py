"""Small corpora, written by hand."""

from collections import Counter
from pathlib import Path

import numpy as np

from ebert.wikipedia.corpus import ARRAYS, Corpus, CorpusInfo

CITIES = {"France": "Paris", "Italy": "Rome", "Spain": "Madrid", "Germany": "Berlin", "Japan": "Tokyo"}
FOOD = {"France": "cheese", "Italy": "pasta", "Spain": "ham", "Germany": "bread", "Japan": "rice"}


def pages(copies):
    """Return a small world: title and paragraphs of words, links as (words, title)."""
    random = np.random.default_rng(0)
    out = []
    for copy in range(copies):
        for country, city in CITIES.items():
            food = FOOD[country]
            filler = [f"w{number}" for number in random.integers(0, 40, 6)]
            out.append((
                f"{city} {copy}",
                [
                    [city, str(copy), "is", "the", "capital", "of", ([country], country), "where", food, "is", "eaten"],
                    [*filler, "people", "of", ([city], city), "like", food, "and", ([country], country), *filler],
                ],
            ))  # fmt: skip
    return out


def write_corpus(folder: Path, given, *, redirects=(), wikidata=()) -> Corpus:
    """Write a corpus by hand: every array as its format has it."""
    folder.mkdir(parents=True)
    words, links = Counter(), Counter()
    for _, paragraphs in given:
        for paragraph in paragraphs:
            for item in paragraph:
                words.update([item] if isinstance(item, str) else item[0])
                links.update([] if isinstance(item, str) else [item[1]])
    vocabulary = sorted(words, key=lambda word: (-words[word], word))
    titles = sorted({title for title, _ in given} | set(links), key=lambda title: (-links[title], title))
    word_ids, title_ids = ({name: i for i, name in enumerate(names)} for names in (vocabulary, titles))
    tokens, arrays = [], {name: [] for name in ARRAYS}
    for name in ("paragraphs", "page_paragraphs", "page_anchors", "surface_mentions"):
        arrays[name].append(0)
    surfaces: dict[str, Counter] = {}
    for title, paragraphs in given:
        arrays["page_entity"].append(title_ids[title])
        arrays["page_opening"].append(sum(1 if isinstance(x, str) else len(x[0]) for x in paragraphs[0]))
        for paragraph in paragraphs:
            for item in paragraph:
                if isinstance(item, str):
                    tokens.append(word_ids[item])
                    continue
                arrays["anchor_start"].append(len(tokens))
                arrays["anchor_length"].append(len(item[0]))
                arrays["anchor_entity"].append(title_ids[item[1]])
                surfaces.setdefault(" ".join(item[0]), Counter())[title_ids[item[1]]] += 1
                tokens += [word_ids[word] for word in item[0]]
            arrays["paragraphs"].append(len(tokens))
        arrays["page_paragraphs"].append(len(arrays["paragraphs"]) - 1)
        arrays["page_anchors"].append(len(arrays["anchor_start"]))
    for surface, meant in surfaces.items():
        arrays["surface_occurrences"].append(words[surface])
        for entity, count in meant.most_common():
            arrays["mention_entity"].append(entity)
            arrays["mention_count"].append(count)
        arrays["surface_mentions"].append(len(arrays["mention_entity"]))
    arrays["tokens"] = tokens
    arrays["word_counts"] = [words[word] for word in vocabulary]
    arrays["entity_counts"] = [links[title] for title in titles]
    for name, kind in ARRAYS.items():
        np.save(folder / f"{name}.npy", np.array(arrays[name], kind))
    for name, lines in (("words", vocabulary), ("entities", titles), ("surfaces", surfaces)):
        (folder / f"{name}.txt").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    (folder / "redirects.tsv").write_text("".join(f"{a}\t{b}\n" for a, b in redirects), encoding="utf-8")
    if wikidata:
        (folder / "wikidata.tsv").write_text("".join(f"{a}\t{b}\n" for a, b in wikidata), encoding="utf-8")
    CorpusInfo(
        language="en", lowercase=False, namespaces=[0], pages=len(given), words=len(tokens),
        vocabulary=len(vocabulary), entities=len(titles), links=sum(links.values()), redirects=len(redirects),
        surfaces=len(surfaces), skipped={}, dumps=[{"name": "by-hand.xml", "size": 1}], licence="CC BY-SA 4.0",
    ).write(folder)  # fmt: skip
    return Corpus.open(folder)


def world(folder: Path) -> Corpus:
    """Write a corpus of a few thousand words about five countries."""
    return write_corpus(folder, pages(30), redirects=[("Gallia", "France")], wikidata=[("France", 142), ("Nowhere", 7)])
