"""Packed against the paper's strategy after training each on the same spans: quality and time.

    python experiments/strategies.py --work /tmp/linking --out results/strategies [--spans 5000] [--rows ...]

It needs the documents and the model that `experiments/linking.py` leaves in --work (its first steps suffice). Every row
is trained on the same labelled spans, in chunks of at most 128 wordpieces (--chunk), tuned on 20 held-out documents and
evaluated on 20 others in one round, end to end and with given mentions; each is compared with the paper's by a paired
bootstrap over documents. On two slow cores, the paper's way takes an hour, or two hours with chunks of 256. Complete
rows are kept, and a stopped training continues. The seconds include tuning, and count from the last start. Writes
OUT.json and OUT.md.
"""

import argparse
import time
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from ebert import EBert
from ebert._io import files
from ebert._runs import differences, machine
from ebert.linking.document import Document
from ebert.linking.evaluate import difference, judge, read_scores
from ebert.linking.examples import GOLD, OVER, examples
from ebert.linking.linker import Linker
from ebert.linking.options import LinkerOptions, LinkTrainingOptions
from ebert.linking.readers.layouts import read
from ebert.linking.resolve import TitleResolver
from ebert.linking.train import train
from ebert.linking.wikipedia import HELD_OUT, TRAIN

ROUNDS = 1  # of refinement, which would cost the paper's way as much again and gains nothing (results/linking-whole.md)
FIGURES = "figures.json"
KINDS = {"end to end": False, "given mentions": True}
PAPER = "paper"
FEWER, SHARE = "packed, three in ten over-generated spans", 0.3
ROWS = {
    "packed": LinkerOptions(strategy="packed"),
    FEWER: LinkerOptions(strategy="packed"),
    "packed, copies": LinkerOptions(strategy="packed", block="copy"),
    PAPER: LinkerOptions(strategy="paper"),
}


def documents(work: Path, name: str, resolver: TitleResolver) -> list[Document]:
    """Read documents of the recipe."""
    return resolver.documents(read(str(work / "documents" / name)).documents).documents


def first_spans(linker: Linker, given: list[Document], spans: int) -> list[Document]:
    """Return the first documents that together have this many labelled spans."""
    total = 0
    for number, document in enumerate(given):
        counts = examples(linker, [document])[1]
        total += counts[GOLD] + counts[OVER]
        if total >= spans:
            return given[: number + 1]
    return given


def figures(
    name: str, options: argparse.Namespace, training: LinkTrainingOptions, facts: dict[str, Any]
) -> dict[str, Any]:
    """Train a row, continue it, or find it complete; return its figures, also those of each document."""
    out = options.work / "strategies" / name.replace(", ", "-").replace(" ", "-")
    if (out / FIGURES).exists():
        known = files.read_json(out / FIGURES, "a row")
        if changes := differences(known["made"], facts):
            raise SystemExit(f"{out} was made with other options: {'; '.join(changes)}; remove it to make it again")
        return known
    model = EBert.from_pretrained(options.work / "model")
    assert model.vectors is not None
    resolver = TitleResolver(model.vectors)
    held_out = documents(options.work, HELD_OUT, resolver)
    if len(held_out) < 2 * options.documents:
        raise SystemExit(
            f"{len(held_out)} held-out documents are too few to tune and judge on {options.documents} each"
        )
    dev, test = held_out[-options.documents :], held_out[: options.documents]
    fresh = Linker.fresh(model, options=replace(ROWS["packed"], chunk=options.chunk))
    chosen = first_spans(fresh, documents(options.work, TRAIN, resolver), options.spans)
    start = time.monotonic()
    own = replace(training, nulls=SHARE) if name == FEWER else training
    way = replace(ROWS[name], chunk=options.chunk)
    train(chosen, dev, model, out, linker_options=way, options=own, data=facts["data"], say=print)
    found: dict[str, Any] = {
        "made": facts, "documents": len(chosen), "training seconds": round(time.monotonic() - start, 1)
    }  # fmt: skip
    linker = Linker.from_pretrained(out, rounds=ROUNDS)
    for kind, given in KINDS.items():
        start = time.monotonic()
        value = judge(linker, test, resolver, given_mentions=given).value(per_document=True)
        found[kind] = {**value, "seconds": round(time.monotonic() - start, 1)}
    files.write_json(out / FIGURES, found)
    return found


def table(rows: dict[str, Any]) -> str:
    """Write the figures as Markdown."""
    head = ["", "training", "linking a document"]
    head += [f"{kind}: {what}" for kind in KINDS for what in ("micro F1", "beside the paper's way")]
    lines = ["| " + " | ".join(head) + " |", "|---|" + "---|" * (len(head) - 1)]
    for name, row in rows.items():
        seconds = row["end to end"]["seconds"] / row["end to end"]["documents"]
        cells = [name, f"{row['training seconds']:,.0f} s", f"{seconds:.1f} s"]
        for kind in KINDS:
            cells.append(f"{row[kind]['micro']['f1']:.1f}")
            change = row[kind].get("difference")
            cells.append(f"{change['value']:+.1f} [{change['low']:+.1f}, {change['high']:+.1f}]" if change else "")
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True, help="without .json and .md")
    parser.add_argument("--spans", type=int, default=5000)
    parser.add_argument("--chunk", type=int, default=128, help="wordpieces that the encoder sees at once")
    parser.add_argument("--documents", type=int, default=20, help="to judge on")
    parser.add_argument("--learning-rate", type=float, default=5e-5)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--rows", nargs="+", choices=list(ROWS), default=list(ROWS))
    options = parser.parse_args()
    training = LinkTrainingOptions(
        epochs=options.epochs, learning_rate=options.learning_rate, batch=options.batch, checkpoint_steps=20
    )
    hashes = {name: files.sha256(options.work / "documents" / name) for name in (TRAIN, HELD_OUT)}
    judged = {"chunk": options.chunk, "rounds": ROUNDS, "spans": options.spans, "judged on": options.documents}
    facts = {**judged, **asdict(training), "data": hashes}
    rows: dict[str, Any] = {}
    for name in options.rows:
        rows[name] = figures(name, options, training, facts)
        print(name, {kind: rows[name][kind]["micro"] for kind in KINDS}, flush=True)
    scores = {name: {kind: read_scores(row[kind], name) for kind in KINDS} for name, row in rows.items()}
    for name, row in rows.items():
        del row["made"]
        for kind in KINDS:
            del row[kind]["per_document"]
            if PAPER in rows and name != PAPER:
                row[kind]["difference"] = asdict(difference(scores[name][kind], scores[PAPER][kind]))
    files.write_json(options.out.with_suffix(".json"), {**facts, "machine": machine(), "rows": rows})
    with files.replacing(options.out.with_suffix(".md"), "w") as file:
        file.write(table(rows))


if __name__ == "__main__":
    main()
