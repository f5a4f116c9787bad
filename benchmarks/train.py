"""From a dump to vectors: `ebert` beside Wikipedia2Vec, same text, threads, dimension, window, negatives, epochs.

    python benchmarks/train.py [--dump FILE.xml.bz2] [--pages 3000] [--dim 300] [--threads 2] [--epochs 1] [--keep DIR]

Both get the same dump file, keep case, have the same minimum counts and subsampling, and train the three objectives
of the paper (words, link graph, anchors). Each runs in its own processes. "train loop" compares words per second
between the first word and the last, without start-up and saving; for both, words are counted before subsampling, in our
tokenisation. "dump to vectors" compares the wall time of everything, including the start of the interpreters.

The dump is the first pages of one in ../shared/data, unless you give another; --pages 0 takes all pages. With several
--rounds, the fastest loop and the fastest whole run of each count. The script also prints how busy other processes kept
the machine: ratios from a busy machine mean little.
"""

import argparse
import bz2
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

DUMP = Path(__file__).parents[2] / "shared" / "data" / "enwiki-linked-24k.xml.bz2"
ALPHA, LEAST_ALPHA = 0.025, 0.0001  # Wikipedia2Vec's defaults
ENTITIES_PER_PAGE = 10
REPEATS = 4  # pages x 10 / entities is 3.4 for the 8,000 pages of results/quality.md
CHUNK = 100


@dataclass(frozen=True, kw_only=True)
class Setting:
    """What both have to do."""

    dim: int = 300
    threads: int = 2
    epochs: int = 1
    window: int = 5
    negative: int = 5
    sample: float = 1e-4
    min_count: int = 5  # of words and of entities


# The text


def cut(dump: Path, pages: int, out: Path) -> int:
    """Write the first pages of a dump to a new dump; return how many there were."""
    count = 0
    with bz2.open(dump, "rb") as source, bz2.open(out, "wb") as target:
        for line in source:
            if line.strip() == b"<page>":
                count += 1
                if count > pages:
                    target.write(b"</mediawiki>\n")
                    return pages
            target.write(line)
    return count


# Wikipedia2Vec, in a process of its own


class Watch:
    """Stands in for the progress bar of Wikipedia2Vec's training, and notes when it moves."""

    last = 0.0

    def __init__(self, **_: object) -> None:
        """Take what a progress bar takes."""

    def __enter__(self) -> "Watch":
        """Be used like a progress bar."""
        return self

    def __exit__(self, *_: object) -> None:
        """Be used like a progress bar."""

    def update(self, _: int) -> None:
        """Note the time: a page is done."""
        Watch.last = time.time()


def train_theirs(setting: Setting, dump: Path, folder: Path) -> dict[str, Any]:
    """Do what `wikipedia2vec train` does, by stage; return seconds and counts. Finished stages are not repeated."""
    import multiprocessing

    from wikipedia2vec import wikipedia2vec as module
    from wikipedia2vec.dictionary import Dictionary
    from wikipedia2vec.dump_db import DumpDB
    from wikipedia2vec.link_graph import LinkGraph
    from wikipedia2vec.utils.tokenizer import get_default_tokenizer
    from wikipedia2vec.utils.wiki_dump_reader import WikiDumpReader

    stages: dict[str, float] = {}

    @contextmanager
    def stage(name: str) -> Iterator[None]:
        began = time.time()
        yield
        stages[name] = time.time() - began

    pool = {"pool_size": setting.threads, "chunk_size": CHUNK}
    quiet = {**pool, "progressbar": False}
    paths = {name: folder / name for name in ("dump.db", "dictionary.pkl", "graph.pkl", "model.pkl")}
    done = paths["graph.pkl"].exists()  # the last before training
    if not done:
        with stage("dump database"):
            DumpDB.build(WikiDumpReader(str(dump)), str(paths["dump.db"]), **pool)
    database = DumpDB(str(paths["dump.db"]))
    tokenizer = get_default_tokenizer(database.language)
    if done:
        dictionary = Dictionary.load(str(paths["dictionary.pkl"]))
        graph = LinkGraph.load(str(paths["graph.pkl"]), dictionary)
    else:
        with stage("dictionary"):
            dictionary = Dictionary.build(
                database, tokenizer, lowercase=False, min_word_count=setting.min_count, category=False, disambi=False,
                min_entity_count=setting.min_count, min_paragraph_len=5, **quiet,
            )  # fmt: skip
            dictionary.save(str(paths["dictionary.pkl"]))
        with stage("link graph"):
            graph = LinkGraph.build(database, dictionary, **quiet)
            graph.save(str(paths["graph.pkl"]))

    # The loop begins when its workers are ready: they are forked, and say so through shared memory.
    ready = multiprocessing.Value("d", 0.0)
    original = module._init_worker

    def initialise(*arguments: object) -> None:
        original(*arguments)
        with ready.get_lock():
            ready.value = max(ready.value, time.time())

    module._init_worker, module.tqdm = initialise, Watch
    model = module.Wikipedia2Vec(dictionary)
    began = time.time()
    model.train(
        database, graph, None, tokenizer, None, dim_size=setting.dim, init_alpha=ALPHA, min_alpha=LEAST_ALPHA,
        window=setting.window, negative=setting.negative, word_neg_power=0.75, entity_neg_power=0,
        sample=setting.sample, iteration=setting.epochs, entities_per_page=ENTITIES_PER_PAGE, **pool,
    )  # fmt: skip
    stages["start of training"] = ready.value - began
    stages["train loop"] = Watch.last - ready.value
    with stage("save"):
        model.save(str(paths["model.pkl"]))
    return {
        "stages": stages,
        "words": int(sum(word.count for word in dictionary.words())) * setting.epochs,
        "vocabulary": dictionary.word_size,
        "entities": dictionary.entity_size,
    }


def measure_theirs(setting: Setting, dump: Path, folder: Path) -> tuple[dict[str, Any], float]:
    """Run Wikipedia2Vec in a fresh process; return what it prints and the wall time."""
    folder.mkdir(parents=True, exist_ok=True)
    began = time.perf_counter()
    told = json.dumps({**asdict(setting), "dump": str(dump), "folder": str(folder)})
    command = [sys.executable, __file__, "--theirs", told]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    whole = time.perf_counter() - began
    return json.loads(done.stdout.splitlines()[-1]), whole


# Ours, through the command line


def measure_ours(setting: Setting, dump: Path, folder: Path, *, seed: int = 0) -> tuple[dict[str, Any], float]:
    """Build the corpus, unless it exists, and train; return the training's report and the wall time."""
    corpus, store = folder / "corpus", folder / "store"
    stages: dict[str, float] = {}
    began = time.perf_counter()
    if not (corpus / "corpus.json").exists():
        ebert("corpus", "build", dump, "--out", corpus, "--threads", setting.threads)
        stages["corpus"] = time.perf_counter() - began
    trained = time.perf_counter()
    told_to = [*training(setting), "--seed", seed, "--overwrite", "--json"]
    printed = ebert("vectors", "train", corpus, "--out", store, *told_to)
    ended = time.perf_counter()
    told = json.loads(printed.splitlines()[-1])
    stages["train loop"] = told["loop_seconds"]
    stages["rest of training"] = ended - trained - told["loop_seconds"]
    return {"stages": stages, **told}, ended - began


def training(setting: Setting) -> list[object]:
    """Return the options of `ebert vectors train` that make it do what Wikipedia2Vec does.

    For each page, Wikipedia2Vec lets 10 entities of the whole dictionary predict all their neighbours in the link
    graph, which comes to a few visits of every entity in an epoch. Ours repeats the objectives of entities as often.
    """
    return [
        "--preset", "paper", "--repeats", REPEATS, "--dim", setting.dim, "--epochs", setting.epochs,
        "--threads", setting.threads,
        "--window", setting.window, "--anchor-window", setting.window, "--negative", setting.negative,
        "--sample", setting.sample, "--rate", ALPHA, "--min-rate", LEAST_ALPHA,
        "--min-word-count", setting.min_count, "--min-entity-count", setting.min_count,
    ]  # fmt: skip


def ebert(*arguments: object) -> str:
    """Run an ebert command; return what it prints."""
    command = [sys.executable, "-m", "ebert", *map(str, arguments)]
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout


MEASURES: dict[str, Callable[[Setting, Path, Path], tuple[dict[str, Any], float]]] = {
    "theirs": measure_theirs,
    "ours": measure_ours,
}
NAMES = {"theirs": "Wikipedia2Vec", "ours": "ebert"}


# Figures


def word_pairs(corpus: Path, *, window: int, sample: float, min_count: int) -> tuple[float, float]:
    """Return how many words a word is trained to predict: in windows of 1 to `window`, and in windows of 1.

    An expectation over subsampling and over the windows' sizes, in the text of a corpus.
    """
    counts = np.load(corpus / "word_counts.npy").astype(np.float64)
    tokens = np.load(corpus / "tokens.npy", mmap_mode="r")
    ends = np.load(corpus / "paragraphs.npy")
    counts[counts < min_count] = 0
    threshold = sample * counts.sum()
    with np.errstate(divide="ignore", invalid="ignore"):
        keep = np.where(counts > 0, np.minimum(1.0, (np.sqrt(counts / threshold) + 1) * threshold / counts), 0.0)
    kept = keep[tokens]
    paragraph = np.repeat(np.arange(len(ends) - 1), np.diff(ends))
    near = []
    for distance in range(1, window + 1):
        same = paragraph[distance:] == paragraph[:-distance]
        near.append(2 * float((kept[distance:] * kept[:-distance])[same].sum()) / len(tokens))
    return sum(pairs * (window - place) / window for place, pairs in enumerate(near)), near[0]


def matrix_rate(threads: int) -> float:
    """Return the machine's float32 matrix product, in GFLOP/s."""
    import torch

    torch.set_num_threads(threads)
    size, best = 2048, 0.0
    a, b = torch.randn(size, size), torch.randn(size, size)
    for _ in range(5):
        began = time.perf_counter()
        a @ b
        best = max(best, 2 * size**3 / (time.perf_counter() - began) / 1e9)
    return best


def machine() -> str:
    """Name the machine."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    name = platform.machine()
    if Path("/proc/cpuinfo").exists():
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        name = next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), name)
    return f"{name}, {cores} cores; Python {platform.python_version()}, numpy {np.__version__}"


class Busy:
    """Watches how busy the machine is with processes other than this one and its children."""

    def __init__(self) -> None:
        """Begin to watch."""
        self._began, self._busy, self._own = time.time(), _busy_seconds(), _own_seconds()

    def others(self) -> float:
        """Return how many cores others have kept busy."""
        used = _busy_seconds() - self._busy - (_own_seconds() - self._own)
        return max(0.0, used / (time.time() - self._began))


def _busy_seconds() -> float:
    stat = Path("/proc/stat")
    if not stat.exists():
        return float("nan")
    user, nice, system, _idle, _waiting, irq, softirq, steal = map(int, stat.read_text().split()[1:9])
    return (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")


def _own_seconds() -> float:
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def show(name: str, told: dict[str, Any], whole: float, setting: Setting) -> None:
    """Print the results of one of the two, and how long each stage took."""
    print(f"  {NAMES[name]}: {told['vocabulary']:,} words, {told['entities']:,} entities, "
          f"{told['words'] / setting.epochs:,.0f} words of text by its own count")  # fmt: skip
    for stage, seconds in {**told["stages"], "everything": whole}.items():
        print(f"    {stage:<20} {seconds:8.1f} s")


def parse() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dump", type=Path, default=DUMP)
    parser.add_argument("--pages", type=int, default=3000, help="how many pages of it; 0: all")
    for option in fields(Setting):
        parser.add_argument(f"--{option.name.replace('_', '-')}", type=type(option.default), default=option.default)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--only", choices=["ours", "theirs"], help="run one of the two")
    parser.add_argument("--keep", type=Path, help="a folder for all files, instead of a temporary one")
    parser.add_argument("--theirs", help=argparse.SUPPRESS)
    return parser.parse_args()


def main() -> None:
    """Run both and print the ratios."""
    options = parse()
    if options.theirs:
        told = json.loads(options.theirs)
        dump, folder = Path(told.pop("dump")), Path(told.pop("folder"))
        print(json.dumps(train_theirs(Setting(**told), dump, folder)))
        return
    if not options.dump.exists():
        print(f"there is no {options.dump}; give a Wikipedia's pages-articles dump (.xml.bz2) with --dump")
        return
    setting = Setting(**{option.name: getattr(options, option.name) for option in fields(Setting)})
    with tempfile.TemporaryDirectory(prefix="ebert-train-") as temporary:
        folder = options.keep or Path(temporary)
        if any((folder / f"{name}-0").exists() for name in MEASURES):
            sys.exit(f"{folder} has the files of an earlier run, which would not be timed again; choose another --keep")
        folder.mkdir(parents=True, exist_ok=True)
        race(setting, options, folder)


def race(setting: Setting, options: argparse.Namespace, folder: Path) -> None:
    """Run both in a folder."""
    dump = options.dump
    if options.pages:
        dump = folder / "cut.xml.bz2"
        print(f"the first {cut(options.dump, options.pages, dump):,} pages of {options.dump.name}")
    print(f"dimension {setting.dim}, window {setting.window}, {setting.negative} negatives, {setting.epochs} epochs, "
          f"{setting.threads} threads; {machine()}", flush=True)  # fmt: skip
    runs: dict[str, list[tuple[dict[str, Any], float]]] = {
        name: [] for name in MEASURES if options.only in (None, name)
    }
    for number in range(options.rounds):
        for name, done in runs.items():
            busy = Busy()
            done.append(MEASURES[name](setting, dump, folder / f"{name}-{number}"))
            show(name, *done[-1], setting)
            print(f"    {'other processes':<20} {busy.others():8.1f} cores", flush=True)
    if options.only:
        return
    wide, narrow = word_pairs(
        folder / "ours-0" / "corpus", window=setting.window, sample=setting.sample, min_count=setting.min_count
    )
    # It overwrites the window with each size that it draws from it (wikipedia2vec.py, _train_page).
    print(f"  words predicted by a word: ebert {wide:.2f} (window {setting.window}), Wikipedia2Vec {narrow:.2f} "
          f"(its window shrinks to 1 within a page and stays there)")  # fmt: skip
    loop = {name: min(told["stages"]["train loop"] for told, _ in done) for name, done in runs.items()}
    whole = {name: min(seconds for _, seconds in done) for name, done in runs.items()}
    words = runs["ours"][0][0]["words"]
    gflops = max(told["gflops"] for told, _ in runs["ours"])
    print(
        f"  train loop: Wikipedia2Vec {words / loop['theirs']:,.0f} words a second, ebert {words / loop['ours']:,.0f}"
    )
    rate = matrix_rate(setting.threads)
    print(f"  ebert's train loop does {gflops:.0f} GFLOP/s; a matrix product reaches {rate:.0f} on this machine")
    print(f"ratio train loop: {loop['theirs'] / loop['ours']:.2f}")
    print(f"ratio dump to vectors: {whole['theirs'] / whole['ours']:.2f}")


if __name__ == "__main__":
    main()
