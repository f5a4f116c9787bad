"""Measure stores of vectors by LAMA: Hits@1 of E-BERT beside plain BERT (Section 4.1 of the paper).

    python experiments/lama.py STORE... --data ../shared/data/lama.tar.xz
        [--align paper --align weight_power=0.6,intercept=1,length=2 ...] [--tune] [--per-relation 100] [--out FILE]

For each of the 44 relations, it takes a fixed pseudo-random choice of the questions whose subject, as LAMA writes it,
is a title or a redirect in all stores (or in those of --covered-by). Answers come from the words of LAMA's candidate
vocabulary that are single wordpieces. Hits@1 is the mean over relations: for all questions, and for those whose answer
is not part of the subject's name (the paper's string-match filter).

With --tune, the best of several alignments is chosen on one half of the relations and reported on the other half, in
both directions. Without stores, it measures plain BERT alone, on any questions.
"""

import argparse
import hashlib
import json
import math
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from questions import DATA, choose, load
from scores import Score, gain_error, mean, score, tune

from ebert import AlignmentOptions, EBert, EbertError, Vectors
from ebert._io import files
from ebert._io.home import home
from ebert._io.progress import progress
from ebert.model.encoder import Encoder, Vocabulary
from ebert.model.options import MODES, Mode
from ebert.probing.filters import string_match
from ebert.probing.questions import Question

CHUNK = 256  # questions between two steps of the progress bar


# Answers


class Examiner:
    """Asks one encoder with any number of stores, and remembers what plain BERT said."""

    def __init__(self, bert: str, vocabulary: Sequence[str], *, cache: Path | None = None) -> None:
        """Load the encoder; `cache` is where plain BERT's answers are kept."""
        self.encoder = Encoder.load(bert)
        single = Vocabulary(self.encoder.tokenizer).words
        self.candidates = [word for word in dict.fromkeys(vocabulary) if word in single]
        self.left_out = len(set(vocabulary)) - len(self.candidates)
        self.rate = 0.0  # questions a second, of the last time anything was asked
        self._plain = EBert(self.encoder)
        what = hashlib.sha256("\n".join([self.encoder.fingerprint, "float32", *self.candidates]).encode()).hexdigest()
        self._cache = (cache or home() / "experiments") / f"lama-plain-{what[:16]}.json"

    def fit(self, store: Vectors, options: AlignmentOptions) -> EBert:
        """Fit W."""
        return EBert.fit(self.encoder, store, options=options)

    def ask(self, model: EBert, questions: Sequence[Question], mode: Mode, what: str = "questions") -> list[str]:
        """Return the best answer to each question."""
        began = time.perf_counter()
        answers: list[str] = []
        with progress(what, total=len(questions), unit="questions") as advance:
            passages = [question.passage() for question in questions]
            for filled in model.fill(passages, mode=mode, top=1, candidates=self.candidates):
                answers.append(filled.best)
                if len(answers) % CHUNK == 0:
                    advance(CHUNK)
        self.rate = len(questions) / max(time.perf_counter() - began, 1e-9)
        return answers

    def plain(self, questions: Sequence[Question]) -> list[str]:
        """Return plain BERT's answers, from the cache if it has them."""
        known: dict[str, str] = json.loads(self._cache.read_text(encoding="utf-8")) if self._cache.exists() else {}
        new = list({q.text: q for q in questions if q.text not in known}.values())
        self.rate = math.nan
        for start in range(0, len(new), 4096):  # kept as we go: all of LAMA takes minutes
            part = new[start : start + 4096]
            answers = self.ask(self._plain, part, "bert", "plain BERT")
            known |= {question.text: answer for question, answer in zip(part, answers, strict=True)}
            with files.replacing(self._cache, "w") as file:
                json.dump(known, file, ensure_ascii=False)
        return [known[question.text] for question in questions]


# Command line


def parse_alignment(text: str) -> AlignmentOptions:
    """Read 'paper' or 'weight_power=0.6,intercept=1,length=2'."""
    values: dict[str, Any] = {}
    kinds = {option.name: option.default for option in fields(AlignmentOptions)}
    for part in text.split(","):
        name, sign, value = (piece.strip() for piece in part.partition("="))
        if name == "paper" and not sign:
            continue
        if name not in kinds or not sign:
            raise EbertError(f"--align {text!r}: {part!r} is not 'paper' or one of {', '.join(kinds)} with =VALUE")
        try:
            if isinstance(kinds[name], bool):
                values[name] = value.lower() in ("1", "true", "yes")
            elif name == "method":
                values[name] = value
            else:
                values[name] = int(value) if name == "seed" else float(value)
        except ValueError:
            raise EbertError(f"--align {text!r}: {value!r} is not a number") from None
    return AlignmentOptions(**values)


def parse() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("stores", nargs="*", type=Path, metavar="STORE")
    parser.add_argument("--data", type=Path, default=DATA, help="LAMA: archive or folder")
    parser.add_argument("--bert", default="bert-base-cased")
    parser.add_argument("--per-relation", default="100", help="questions per relation, or 'all'")
    parser.add_argument("--relations", help="only these, separated by commas")
    parser.add_argument("--mode", action="append", choices=MODES, help="may be repeated; concat if not given")
    parser.add_argument("--align", action="append", help="'paper' or options of the alignment; may be repeated")
    parser.add_argument("--covered-by", action="append", type=Path, metavar="STORE", default=[], help="whose subjects")
    parser.add_argument("--tune", action="store_true")
    parser.add_argument(
        "--cache", type=Path, help="folder for plain BERT's answers; EBERT_HOME/experiments if not given"
    )
    parser.add_argument("--out", type=Path, help="write all figures as JSON")
    options = parser.parse_args()
    options.align = options.align or ["paper"]
    options.mode = options.mode or ["concat"]
    if options.per_relation != "all" and not options.per_relation.isdigit():
        parser.error("--per-relation is a number or 'all'")
    options.per_relation = None if options.per_relation == "all" else int(options.per_relation)
    options.alignments = {text: parse_alignment(text) for text in options.align}
    return options


@dataclass
class Row:
    """One line of the table: a store, an alignment and a mode."""

    store: str
    align: str
    mode: str
    score: Score
    gain: float = 0.0
    gain_error: float = 0.0
    better: int = 0
    worse: int = 0
    rate: float = math.nan
    fit: dict[str, Any] = field(default_factory=dict)

    def line(self) -> str:
        """Write it for people."""
        gain = f"{self.gain:+6.2f} ±{self.gain_error:4.2f}" if self.mode != "bert" else " " * 12
        changed = f"+{self.better} -{self.worse}" if self.mode != "bert" else ""
        fit = f"{self.fit['r2']:.3f} {self.fit['top1']:5.1f}" if self.fit.get("top1") is not None else " " * 11
        rate = "cached" if math.isnan(self.rate) else f"{self.rate:.0f}"
        figures = f"{self.score.all:6.2f} {self.score.filtered:8.2f}  {gain}  {changed:<12} {fit}  {rate:>6}"
        return f"{Path(self.store).name:<24.24} {self.mode:<8} {self.align:<44.44} {figures}"


HEAD = (
    f"{'store':<24} {'mode':<8} {'alignment':<44} {'all':>6} {'filtered':>8}  {'gain':>12}  "
    f"{'changed':<12} {'R²':<5} {'top1':>5}  {'q/s':>6}"
)


def measure(
    examiner: Examiner, store: Vectors, options: AlignmentOptions, questions: Sequence[Question], mode: Mode = "concat"
) -> tuple[list[str], dict[str, Any]]:
    """Fit W and ask; return the answers and how well W fits."""
    model = examiner.fit(store, options)
    assert model.alignment is not None
    return examiner.ask(model, questions, mode, f"{store.path.name} {mode}"), asdict(model.alignment.report)


def compare(
    name: str, align: str, mode: str, questions: Sequence[Question], answers: Sequence[str], base: Sequence[str]
) -> Row:
    """Make a line of the table, beside plain BERT."""
    right = [(a == q.answers[0], b == q.answers[0]) for q, a, b in zip(questions, answers, base, strict=True)]
    row = Row(name, align, mode, score(questions, answers))
    row.gain = row.score.filtered - score(questions, base).filtered
    row.gain_error = gain_error(questions, answers, base)
    row.better, row.worse = sum(a and not b for a, b in right), sum(b and not a for a, b in right)
    return row


def run(options: argparse.Namespace) -> dict[str, Any]:
    """Run everything and print the progress; return all figures."""
    lama = load(options.data)
    stores = {str(path): Vectors.open(path) for path in options.stores}
    covering = [Vectors.open(path) for path in options.covered_by] or list(stores.values())
    examiner = Examiner(options.bert, lama.vocabulary or [], cache=options.cache)
    asked = lama.questions
    if options.relations:
        asked = [question for question in asked if question.relation in options.relations.split(",")]
    # A store's own look-up: title or redirect, as given.
    choice = choose(asked, examiner.candidates, [store.__contains__ for store in covering], options.per_relation)
    questions = choice.questions
    if not questions:
        raise EbertError("no question is left: no subject has a vector, or --relations names none of LAMA's")
    relations = {question.relation for question in questions}
    clean = sum(not string_match(question) for question in questions)
    print(f"{len(questions):,} questions of {len(relations)} relations, {clean:,} after the string-match filter")
    print("not asked: " + ", ".join(f"{count:,} {why}" for why, count in choice.skipped.items()))
    left_out = f"{examiner.left_out:,} words of LAMA's are not one wordpiece"
    print(f"{len(examiner.candidates):,} candidates ({left_out}), {options.bert}\n\n{HEAD}", flush=True)
    base = examiner.plain(questions)
    rows = [Row("-", "-", "bert", score(questions, base), rate=examiner.rate)]
    print(rows[0].line(), flush=True)
    for name, store in stores.items():
        for mode in options.mode:
            for align, chosen in options.alignments.items():
                answers, fit = measure(examiner, store, chosen, questions, mode)
                row = compare(name, align, mode, questions, answers, base)
                row.rate, row.fit = examiner.rate, fit
                rows.append(row)
                print(row.line(), flush=True)
    return {
        "command": " ".join(sys.argv),
        "bert": options.bert,
        "questions": len(questions),
        "filtered questions": clean,
        "skipped": choice.skipped,
        "candidates": len(examiner.candidates),
        "rows": [asdict(row) for row in rows],
        "tuned": tuned(rows, options) if options.tune else {},
    }


def tuned(rows: Sequence[Row], options: argparse.Namespace) -> dict[str, Any]:
    """Choose among the alignments of each store and mode, and print it."""
    found = {}
    plain = rows[0].score
    print("\nchosen on one half of the relations, reported on the other (both ways, averaged)")
    for path in options.stores:
        for mode in options.mode:
            scores = {row.align: row.score for row in rows if (row.store, row.mode) == (str(path), mode)}
            result = found[f"{path} {mode}"] = tune(scores)
            picks = " | ".join(half["chosen"] for half in result["halves"])
            base = mean(plain.over(set(plain.relations) - set(half["chosen on"])) for half in result["halves"])
            result["gain"] = result["filtered"] - base
            print(f"{path.name} {mode}: all {result['all']:.2f}, filtered {result['filtered']:.2f}, "
                  f"gain {result['gain']:+.2f}; chosen: {picks}")  # fmt: skip
    return found


def main() -> int:
    """Run from the command line."""
    try:
        options = parse()
        result = run(options)
        if options.out:
            files.write_json(options.out, result)
    except EbertError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
