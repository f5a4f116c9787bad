"""Packed against the paper's strategy after training each on the same spans: quality and time.

    python experiments/strategies.py --work /tmp/linking --out results/strategies.json [--spans 5000] [--rows ...]

It needs the documents and the model that `experiments/linking.py` leaves in --work (its first steps suffice). Every row
is trained on the same labelled spans, in chunks of at most 256 wordpieces, tuned on 20 held-out documents and judged
on 20 others. The paper's way takes about an hour on two cores. Complete rows are kept, and a stopped training goes on;
the seconds are those of the last start.
"""

import argparse
import time
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from ebert import EBert, files
from ebert.linking.document import Document
from ebert.linking.examples import GOLD, OVER, examples
from ebert.linking.judging import judge
from ebert.linking.linker import Linker
from ebert.linking.options import LinkerOptions, TrainingOptions
from ebert.linking.preparing import HELD_OUT, TRAIN
from ebert.linking.readers import read
from ebert.linking.resolve import Resolver
from ebert.linking.run import train

CHUNK = 256
FIGURES = "figures.json"
FEWER, SHARE = "packed, three in ten over-generated spans", 0.3
ROWS = {
    "packed": LinkerOptions(strategy="packed", chunk=CHUNK),
    FEWER: LinkerOptions(strategy="packed", chunk=CHUNK),
    "packed, copies": LinkerOptions(strategy="packed", block="copy", chunk=CHUNK),
    "paper": LinkerOptions(strategy="paper", chunk=CHUNK),
}


def documents(work: Path, name: str, resolver: Resolver) -> list[Document]:
    return resolver.documents(read(str(work / "documents" / name)).documents).documents


def first_spans(linker: Linker, given: list[Document], spans: int) -> list[Document]:
    """Give as many of the first documents as have that many labelled spans."""
    total = 0
    for number, document in enumerate(given):
        counts = examples(linker, [document])[1]
        total += counts[GOLD] + counts[OVER]
        if total >= spans:
            return given[: number + 1]
    return given


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--spans", type=int, default=5000)
    parser.add_argument("--documents", type=int, default=20, help="to judge on")
    parser.add_argument("--learning-rate", type=float, default=5e-5)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--rows", nargs="+", choices=list(ROWS), default=list(ROWS))
    options = parser.parse_args()
    training = TrainingOptions(
        epochs=options.epochs, learning_rate=options.learning_rate, batch=options.batch, checkpoint_steps=20
    )
    rows: dict[str, Any] = {}
    for name in options.rows:
        out = options.work / "strategies" / name.replace(", ", "-").replace(" ", "-")
        if (out / FIGURES).exists():
            rows[name] = files.read_json(out / FIGURES, "a row")
            continue
        model = EBert.from_pretrained(options.work / "model")
        assert model.vectors is not None
        resolver = Resolver(model.vectors)
        held_out = documents(options.work, HELD_OUT, resolver)
        dev, test = held_out[-options.documents :], held_out[: options.documents]
        fresh = Linker.fresh(model, options=ROWS["packed"])
        chosen = first_spans(fresh, documents(options.work, TRAIN, resolver), options.spans)
        start = time.monotonic()
        own = replace(training, nulls=SHARE) if name == FEWER else training
        train(chosen, dev, model, out, linker_options=ROWS[name], options=own, say=print)
        seconds = time.monotonic() - start
        linker = Linker.from_pretrained(out)
        start = time.monotonic()
        found = judge(linker, test, resolver).value()
        rows[name] = {
            "documents": len(chosen), "micro": found["micro"], "macro": found["macro"],
            "candidate_recall": found["candidate_recall"],
            "training seconds": round(seconds, 1), "judging seconds": round(time.monotonic() - start, 1),
        }  # fmt: skip
        files.write_json(out / FIGURES, rows[name])
        print(name, rows[name], flush=True)
    files.write_json(options.out, {"chunk": CHUNK, "spans": options.spans, **asdict(training), "rows": rows})


if __name__ == "__main__":
    main()
