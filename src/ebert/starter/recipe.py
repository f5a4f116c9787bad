"""How the full set is made from dumps: the commands, in order, and their options. Nothing heavy is imported.

`ebert starter --build full` runs them (`ebert.cli.starter_full`); `experiments/vectors.py` and `experiments/starter.py`
take the options from here.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from ebert._options import Options, option

# A vector for every entity that is linked at all, as a linker needs: `all300` of experiments/vectors.py.
VECTORS = ("--epochs", "5", "--min-entity-count", "1", "--repeats", "8", "--opening-words", "400")
DTYPE = "float16"
WEIGHT_POWER, LENGTH = 0.4, 2.5
LEARNED = ("--weight-power", str(WEIGHT_POWER), "--intercept", "--length", str(LENGTH), "--evaluate", "200")
STEPS = 2400  # of the learning of W, at most
# As experiments/linking.py trains the linker of docs/results.md.
LINKER = (
    "--adapter", "--strategy", "packed", "--epochs", "1", "--learning-rate", "5e-5", "--batch", "128",
    "--nulls", "0.3", "--evaluations", "4", "--chunk", "512",
)  # fmt: skip
STORE, RUN, RESULT = "vectors", "run", "linker"  # folders: the store, the training, and what comes out


@dataclass(frozen=True, slots=True, kw_only=True)
class FullOptions(Options):
    """What can be chosen about the full set. All of it decides what comes out."""

    bert: str = option("bert-base-cased", "The encoder, a hub name or a local folder.", metavar="TEXT")
    documents: int = option(1000, "Documents to train the linker on.", low=1)
    held_out: int = option(60, "Documents to tune the linker on.", low=1)
    dim: int = option(300, "Length of the vectors.", low=1, high=65536)
    steps: int = option(STEPS, "Gradient steps of the learning of W, at most.", low=1)


class Step(NamedTuple):
    """A command that makes a folder; `done` is the file in it that is there when it is complete."""

    folder: str
    done: str
    command: list[str]


def steps(
    place: Path, dumps: Sequence[str], options: FullOptions, *, left_out: Sequence[str] = (),
    not_learned: Sequence[str] = (), threads: int, device: str | None = None,
) -> list[Step]:  # fmt: skip
    """Return the steps that make the full set in the folder `place`.

    Articles that the files in `left_out` name are left out of all counts and documents. They and those of
    `not_learned`, which may be LAMA, are not used to learn W. Mentions are counted twice: first to find the spans of
    the training documents, then without these documents, so that the linker does not learn from counts that contain its
    answers.
    """
    names = ("corpus", "trained-vectors", "first-table", "documents", STORE, "model", RUN)
    corpus, trained, first, documents, vectors, model, run = (str(place / name) for name in names)
    out = _each("--leave-out", left_out)
    own = _each("--leave-out", (f"{documents}/train.jsonl", f"{documents}/held-out.jsonl"))
    counted = ["link", "candidates", trained, "--corpus", corpus, "--threads", str(threads), *out]
    placed = ["--device", device] if device else []
    table = [
        ("corpus.json", corpus, ["corpus", "build", *dumps, "--threads", str(threads)]),
        ("store.json", trained, ["vectors", "train", corpus, *VECTORS, "--dim", str(options.dim), "--dtype", DTYPE,
                                 "--threads", str(threads), "--resume"]),
        ("store.json", first, counted),
        ("documents.json", documents, ["link", "wikipedia", corpus, *_each("--dump", dumps), "--vectors", first, *out,
                                       "--documents", str(options.documents), "--held-out", str(options.held_out)]),
        ("store.json", vectors, [*counted, *own]),
        ("ebert.json", model, ["align", vectors, "--bert", options.bert, *LEARNED, "--steps", str(options.steps),
                               "--learn", corpus, *out, *_each("--leave-out", not_learned), *placed]),
        ("metrics.json", run, ["link", "train", documents, "--model", model, *LINKER, *placed]),
    ]  # fmt: skip
    return [Step(Path(folder).name, done, [*command, "--out", folder]) for done, folder, command in table]


def _each(flag: str, values: Sequence[str]) -> list[str]:
    return [part for value in values for part in (flag, value)]
