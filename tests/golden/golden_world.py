"""Tiny inputs for all commands, written by hand or by fixed arithmetic, and the commands that are run on them."""

import json
import random
from pathlib import Path
from typing import Any, NamedTuple
from xml.sax.saxutils import escape

from golden_tools import Done, run

WIDTH, DIMENSION = 16, 8
WORDS = [
    "The", "the", "native", "language", "of", "is", "a", "city", "in", "France", "Italy", "Paris", "Rome", "French",
    "Italian", "and", "are", "both", "injured", "will", "miss", "opening", "qualifier", "was", "born", "died", "then",
    "World", "Cup", "England", "spoke", "film", "actor",
]  # fmt: skip
ENTITIES = [
    "Jean Marais", "Paris", "France", "Rome", "Italy", "Tony Adams (footballer)", "John Adams",
    "David Platt (footballer)", "England", "England national football team", "FIFA World Cup", "1998 FIFA World Cup",
]  # fmt: skip
LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
PIECES = [
    "[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS, "Jean", "Mara", "##is", "Adams", "Platt",
    *".,/*#$()'`", *LETTERS, *(f"##{letter}" for letter in LETTERS),
]  # fmt: skip
QUESTION = "The native language of [[Jean Marais]] is [MASK] ."
TEXT = "Adams and Platt are both injured and will miss England's opening World Cup qualifier."

# Surface, links, and entities with their share, as KnowBert's table has them.
TABLE = """Adams\t10\t1,0.6,John_Adams\t2,0.4,Tony_Adams_(footballer)
Platt\t4\t3,1.0,David_Platt_(footballer)
England\t30\t4,0.8,England\t5,0.2,England_national_football_team
World Cup\t20\t6,0.6,FIFA_World_Cup\t7,0.4,1998_FIFA_World_Cup
Paris\t9\t8,1.0,Paris
Jean Marais\t3\t9,1.0,Jean_Marais
"""

PROSE = (
    "In the old days {} was one of the places where people who had read about [[France]] and about [[Italy]] came to "
    "see the films of [[Jean Marais]] and of many others, and after the war they went by train from [[Paris]] to "
    "[[Rome]] with all that they had, while those who stayed in [[Paris]] for the winter spoke of nothing else.\n\n"
    "Later the same people wrote long letters, in which [[Rome]] is called a dream and Paris a city of work, and some "
    "of these letters were kept by the actor and given to a house of books in [[France]] that still has them."
)
PAGES = [
    ("Jean Marais", "'''Jean Marais''' was a [[France|French]] [[actor]] who lived in [[Paris]], [[France]].\n\n"
     "He is [[Jean marais|the same]] man, and [[Paris]] is in [[France]].\n== Life ==\nHe spoke [[French language]] in "
     "[[Paris]] and in [[Rome]], [[Italy]].", None),
    ("France", "'''France''' is a country whose capital is [[Paris]]. {{template|x}}\n* [[Italy]] is near.\n"
     "* [[Rome]] is far from [[Paris]] and [[France]].", None),
    ("Paris", "'''Paris''' is the capital of [[France]]. [[Jean Marais]] lived in [[Paris]] for [[year]]s, as [[Rome]]"
     " was too far.", None),
    ("Italy", "'''Italy''' is a country whose capital is [[Rome]]; [[France]] and [[Paris|the city of Paris]] are near."
     "", None),
    ("Rome", "'''Rome''' is the capital of [[Italy]], as [[Paris]] is the capital of [[France]].", None),
    *((title, PROSE.format(f"'''{title}'''"), None) for title in ("Cinema", "Theatre", "Travel")),
    ("Jean marais", "#REDIRECT [[Jean Marais#Life]]", "Jean Marais"),
    ("Gallia", "#REDIRECT [[France]]", "France"),
]  # fmt: skip

QUESTIONS = [
    {"text": QUESTION, "answers": ["French"], "relation": "language"},
    {"text": "[[Rome]] is a city in [MASK] .", "answers": ["Italy"], "relation": "country"},
    {"template": "[X] is in [Y] .", "subject": "Paris", "answers": ["France"], "relation": "country"},
    {"template": "[X] is in [Y] .", "subject": "Nowhere", "answers": ["Italy"], "relation": "country"},
]

LAMA = {
    "TREx/P103.jsonl": [("b1", "Jean Marais", "French", "Q168359"), ("b2", "Tony Adams", "Italian", None)],
    "TREx/P1376.jsonl": [("c1", "Paris France", "France", None), ("c2", "Rome", "Italy", "Q220")],
    "Google_RE/place_of_birth_test.jsonl": [("d1", "Jean Marais", "Paris", None), ("d2", "John Adams", "Rome", None)],
}
TEMPLATES = [
    {"relation": "P103", "template": "The native language of [X] is [Y] ."},
    {"relation": "P1376", "template": "[X] is in [Y] ."},
]


def write_world(root: Path) -> None:
    """Write all inputs into a folder."""
    write_bert(root / "bert")
    rng = random.Random(0)
    lines = [f"{len(WORDS) + len(ENTITIES)} {DIMENSION}"]
    names = [*WORDS, *("ENTITY/" + title.replace(" ", "_") for title in ENTITIES)]
    lines += [" ".join([name, *(f"{rng.randint(-999, 999) / 1000:.3f}" for _ in range(DIMENSION))]) for name in names]
    _lines(root / "vectors.txt", lines)
    (root / "table.tsv").write_text(TABLE, "utf-8")
    (root / "dump.xml").write_text(dump(), "utf-8")
    _lines(root / "ids.tsv", ["Jean Marais\tQ168359", "Paris\tQ90", "France\tQ142", "Nowhere\tQ7"])
    _lines(root / "titles.txt", ["Jean Marais", "Paris"])
    _lines(root / "candidates.txt", ["French", "Italian", "Paris"])
    _lines(root / "new.csv", [
        "title,description,aliases,id,wikidata", "Zorblax,The capital of France and Paris,Zorb|ZX,p-1,",
        "Quux,the country whose capital is Rome,,p-2,Q99999", ",nothing,,,",
    ])  # fmt: skip
    _lines(root / "vector.txt", [" ".join(f"{number / 8}" for number in range(DIMENSION))])
    _rows(root / "questions.jsonl", QUESTIONS)
    _rows(root / "texts.jsonl", [{"id": "t1", "text": TEXT}, {"id": "t2", "text": "Paris is a city in France ."}])
    _rows(root / "masked.jsonl", QUESTIONS[:2])
    write_lama(root / "lama")
    write_relations(root / "relations")
    _rows(root / "linking.jsonl", [gold("1", TEXT), gold("2", "Paris and England"), gold("3", "Adams was in Paris")])


def write_bert(folder: Path) -> None:
    """Write a tiny BERT, whose weights are the same with every version of torch and on every processor."""
    import numpy as np
    import torch
    from transformers import BertConfig, BertForMaskedLM, BertTokenizer

    vocabulary = {piece: row for row, piece in enumerate(dict.fromkeys(PIECES))}
    config = BertConfig(
        vocab_size=len(vocabulary), hidden_size=WIDTH, num_hidden_layers=1, num_attention_heads=2,
        intermediate_size=16, max_position_embeddings=64,
        hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
    )  # fmt: skip
    model = BertForMaskedLM(config)
    rng = np.random.default_rng(0)
    with torch.no_grad():
        for _, weights in sorted(model.named_parameters()):
            weights.copy_(torch.tensor(rng.integers(-999, 999, tuple(weights.shape)) / 1024))
    model.save_pretrained(folder)
    BertTokenizer(vocab=vocabulary, do_lower_case=False, model_max_length=64).save_pretrained(folder)


def dump() -> str:
    """Return a dump of a few pages."""
    parts = [
        '<mediawiki xmlns="http://www.mediawiki.org/xml/export-0.11/" version="0.11" xml:lang="en">\n  <siteinfo>\n'
        "    <sitename>Wikipedia</sitename>\n    <dbname>enwiki</dbname>\n"
        "    <base>https://en.wikipedia.org/wiki/Main_Page</base>\n    <case>first-letter</case>\n    <namespaces>\n"
        '      <namespace key="0" case="first-letter" />\n'
        '      <namespace key="14" case="first-letter">Category</namespace>\n    </namespaces>\n  </siteinfo>\n'
    ]
    for number, (title, text, redirect) in enumerate(PAGES):
        target = f'    <redirect title="{redirect}" />\n' if redirect else ""
        parts.append(
            f"  <page>\n    <title>{title}</title>\n    <ns>0</ns>\n    <id>{number}</id>\n{target}    <revision>\n"
            "      <id>8</id>\n      <timestamp>2020-01-01T00:00:00Z</timestamp>\n      <model>wikitext</model>\n"
            f'      <text bytes="{len(text)}" xml:space="preserve">{escape(text)}</text>\n'
            "    </revision>\n  </page>\n"
        )
    return "".join(parts) + "</mediawiki>\n"


def write_lama(folder: Path) -> None:
    """Write a LAMA of six questions."""
    for name, rows in LAMA.items():
        key = "sub_uri" if name.startswith("TREx") else "sub_w"
        _rows(folder / name, [{"uuid": u, "sub_label": s, "obj_label": a, key: q} for u, s, a, q in rows])
    _rows(folder / "relations.jsonl", TEMPLATES)
    _lines(folder / "common_vocab_cased.txt", ["Paris", "Rome", "France", "Italy", "French", "Italian", "Quito"])


def write_relations(folder: Path) -> None:
    """Write sentences as FewRel has them: train, dev and test."""
    rows = []
    for person in ("Jean Marais", "John Adams"):
        for place in ("Paris", "Rome"):
            for verb, label in (("born", "P19"), ("died", "P20")):
                text = f"then {person} was {verb} in {place} ."
                start, stop = text.index(person), text.index(place)
                ents = [[person, start, start + len(person), 0.5], [place, stop, stop + len(place), 0.5]]
                rows.append({"label": label, "text": text, "ents": ents})
    for name, some in (("train", rows), ("dev", rows[::2] + rows[1:2]), ("test", rows[1::2] + rows[:1])):
        (folder / f"{name}.json").parent.mkdir(parents=True, exist_ok=True)
        (folder / f"{name}.json").write_text(json.dumps(some), "utf-8")


def gold(name: str, text: str) -> dict:
    """Return a labelled document."""
    meant = {"Adams": "Tony Adams (footballer)", "Platt": "David Platt (footballer)", "England": "England",
             "World Cup": "1998 FIFA World Cup", "Paris": "Paris"}  # fmt: skip
    mentions = [
        {"start": text.index(surface), "end": text.index(surface) + len(surface), "entity": entity}
        for surface, entity in meant.items()
        if surface in text
    ]
    return {"id": name, "text": text, "mentions": mentions}


def _lines(path: Path, lines: list[str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in lines), "utf-8")


def _rows(path: Path, rows: list[dict]) -> None:
    _lines(path, [json.dumps(row, ensure_ascii=False) for row in rows])


class Step(NamedTuple):
    """A command, run with --json, and the steps that must be done before."""

    arguments: list[Any]
    needs: tuple[str, ...] = ()
    code: int = 0


_TRAINING = ["--dim", 8, "--epochs", 2, "--min-word-count", 1, "--min-entity-count", 1, "--min-opening", 1]
_LINKING = ["linking.jsonl", "--dev", "linking.jsonl", "--model", "linkmodel", "--epochs", 1, "--chunk", 64]
_RELATIONS = ["--model", "model", "--epochs", 1, "--batch", 4]
STEPS = {
    "corpus-build": Step(["corpus", "build", "dump.xml", "--out", "corpus", "--threads", 1]),
    "corpus-info": Step(["corpus", "info", "corpus"], ("corpus-build",)),
    "corpus-wikidata": Step(["corpus", "wikidata", "corpus", "--tsv", "ids.tsv"], ("corpus-info",)),
    "vectors-train": Step(
        ["vectors", "train", "corpus", "--out", "trained", "--threads", 1, *_TRAINING], ("corpus-wikidata",)
    ),
    "vectors-import": Step(["vectors", "import", "vectors.txt", "--out", "store", "--licence", "none"]),
    "vectors-import-half": Step(["vectors", "import", "vectors.txt", "--out", "half", "--dtype", "float16"]),
    "vectors-info": Step(["vectors", "info", "store", "--verify"], ("vectors-import",)),
    "vectors-find": Step(
        ["vectors", "find", "store", "jean_Marais", "https://en.wikipedia.org/wiki/Paris", "Jean Maris"],
        ("vectors-import",), 2,
    ),
    "vectors-find-trained": Step(["vectors", "find", "trained", "Gallia", "Q168359"], ("vectors-train",)),
    "vectors-nearest": Step(
        ["vectors", "nearest", "store", "Paris", "--kind", "both", "--top", 3], ("vectors-import",)
    ),
    "vectors-nearest-word": Step(["vectors", "nearest", "store", "city", "--word", "--top", 2], ("vectors-import",)),
    "vectors-export": Step(["vectors", "export", "store", "exported.txt"], ("vectors-import",)),
    "vectors-import-again": Step(["vectors", "import", "exported.txt", "--out", "growing"], ("vectors-export",)),
    "vectors-add": Step(
        ["vectors", "add", "growing", "Zork", "--vector", "vector.txt", "--alias", "Zo", "--wikidata", "Q4242",
         "--id", "z"],
        ("vectors-import-again",),
    ),
    "vectors-find-added": Step(["vectors", "find", "growing", "Zo", "Q4242", "z", "Zork"], ("vectors-add",)),
    "link-candidates": Step(
        ["link", "candidates", "store", "--table", "table.tsv", "--out", "linking"], ("vectors-import",)
    ),
    "link-candidates-corpus": Step(
        ["link", "candidates", "trained", "--corpus", "corpus", "--leave-out", "titles.txt", "--out", "recounted"],
        ("vectors-train",),
    ),
    "vectors-add-many": Step(["vectors", "add-many", "recounted", "new.csv"], ("link-wikipedia",)),
    "vectors-find-many": Step(["vectors", "find", "recounted", "ZX", "p-2"], ("vectors-add-many",)),
    "link-wikipedia": Step(
        ["link", "wikipedia", "corpus", "--dump", "dump.xml", "--vectors", "recounted", "--out", "documents",
         "--documents", 2, "--held-out", 1, "--words", 60],
        ("link-candidates-corpus",),
    ),
    "bert-get": Step(["bert", "get", "./bert"]),
    "align": Step(["align", "store", "--bert", "bert", "--out", "model"], ("vectors-import",)),
    "align-linking": Step(
        ["align", "linking", "--bert", "bert", "--out", "linkmodel", "--include-vectors", "--intercept", "--length", 2],
        ("link-candidates",),
    ),
    "align-trained": Step(["align", "recounted", "--bert", "bert", "--out", "learned"], ("link-candidates-corpus",)),
    "fill": Step(["fill", "--model", "model", "--top", 3, QUESTION, "[[Nobody]] is [MASK] [MASK]"], ("align",)),
    "fill-bert": Step(["fill", "--bert", "bert", "--top", 3, QUESTION]),
    "fill-why": Step(["fill", "--model", "model", "--why", "--candidates", "candidates.txt", QUESTION], ("align",)),
    "export": Step(["export", "model", "--entities", "titles.txt", "--out", "plain"], ("align",)),
    "probe-questions": Step(["probe", "questions", "questions.jsonl", "--model", "model", "--out", "own"], ("align",)),
    "probe-lama": Step(
        ["probe", "lama", "lama", "--model", "model", "--name-bert", "bert", "--out", "probed"], ("align",)
    ),
    "report": Step(["report", "probed", "--out", "report", "--resamples", 100], ("probe-lama",)),
    "report-check": Step(["report", "--check", "probed", "own"], ("probe-lama", "probe-questions")),
    "lama-uhn": Step(["lama", "uhn", "lama", "--bert", "bert", "--out", "uhn"]),
    "relations-train": Step(
        ["relations", "train", "relations", "--mode", "concat", *_RELATIONS, "--out", "concat"], ("align",)
    ),
    "relations-train-bert": Step(
        ["relations", "train", "relations", "--mode", "bert", *_RELATIONS, "--out", "plain-bert"], ("align",)
    ),
    "relations-evaluate": Step(
        ["relations", "evaluate", "concat", "relations/test.json", "--keep"], ("relations-train",)
    ),
    "relations-evaluate-bert": Step(
        ["relations", "evaluate", "plain-bert", "relations/test.json", "--keep"], ("relations-train-bert",)
    ),
    "relations-predict": Step(
        ["relations", "predict", "concat", "[[Jean Marais]] was born in [[Paris]] ."], ("relations-evaluate",)
    ),
    "relations-report": Step(
        ["relations", "report", "plain-bert", "concat", "--out", "compared", "--resamples", 100],
        ("relations-evaluate-bert", "relations-evaluate"),
    ),
    "relations-search": Step(
        ["relations", "search", "relations", "--mode", "replace", *_RELATIONS, "--learning-rate", 0.001,
         "--out", "grid"],
        ("align",),
    ),
    "link-train": Step(["link", "train", *_LINKING, "--out", "linker"], ("align-linking",)),
    "link-search": Step(
        ["link", "search", *_LINKING, "--learning-rates", 0.001, "--batches", 16, "--out", "link-grid"],
        ("align-linking",),
    ),
    "link-evaluate": Step(["link", "evaluate", "linker", "linking.jsonl"], ("link-train",)),
    "link-evaluate-given": Step(["link", "evaluate", "linker", "linking.jsonl", "--given-mentions"], ("link-train",)),
    "link-evaluate-prior": Step(
        ["link", "evaluate", "linking", "linking.jsonl", "--prior-only", "--threshold", 0.1], ("link-candidates",)
    ),
    "link-run": Step(["link", "run", "linker", "--text", TEXT], ("link-train",)),
    "link-run-untrained": Step(["link", "run", "linkmodel", "--rounds", 2, "--text", TEXT], ("align-linking",)),
    "doctor-store": Step(["doctor", "store"], ("vectors-import",)),
    "doctor-model": Step(["doctor", "model"], ("align",)),
    "encode-corpus": Step(["encode", "corpus", "texts.jsonl", "--model", "model", "--out", "encoded", "--workers", 1],
                          ("align",)),
    "link-corpus": Step(["link", "corpus", "texts.jsonl", "--linker", "linkmodel", "--out", "linked", "--workers", 1],
                        ("align-linking",)),
    "probe-corpus": Step(["probe", "corpus", "masked.jsonl", "--model", "model", "--out", "asked", "--workers", 1],
                         ("align",)),
}  # fmt: skip
BULK = ("encode-corpus", "link-corpus", "probe-corpus")  # each starts a process, which takes seconds


class World:
    """A folder with the inputs, in which steps are done once, when they are needed."""

    def __init__(self, root: Path) -> None:
        """Write the inputs."""
        self.root = root
        self._done: dict[str, Done] = {}
        write_world(root)

    def do(self, name: str) -> Done:
        """Return what a step printed; the current folder must be the world's."""
        if name not in self._done:
            step = STEPS[name]
            for other in step.needs:
                self.do(other)
            self._done[name] = run(*step.arguments, "--json", code=step.code)
        return self._done[name]
