"""How long commands take from the shell, beside a bare transformers script that fills the same mask.

    python benchmarks/startup.py [--rounds N] [--bert NAME]

Every run is a new process. Rounds alternate between the contestants, and the fastest run of each counts. Commands that
load no model are also timed, in seconds, beside a Python process that only imports numpy.
"""

import argparse
import os
import platform
import resource
import subprocess
import sys
import time
from importlib.metadata import version

from ebert import get_bert

TEXT = "The native language of Jean Marais is [MASK] ."
MARKED = "The native language of [[Jean Marais]] is [MASK] ."
BARE = f"""
import sys
import torch
from transformers import AutoModelForMaskedLM, AutoTokenizer

tokenizer = AutoTokenizer.from_pretrained(sys.argv[1])
model = AutoModelForMaskedLM.from_pretrained(sys.argv[1]).eval()
inputs = tokenizer({TEXT!r}, return_tensors="pt")
with torch.inference_mode():
    logits = model(**inputs).logits[0]
place = inputs["input_ids"][0].tolist().index(tokenizer.mask_token_id)
values, pieces = logits[place].softmax(-1).topk(5)
print(list(zip(tokenizer.convert_ids_to_tokens(pieces), values.tolist())))
"""


def race(contestants: dict[str, list[str]], rounds: int) -> dict[str, tuple[float, float]]:
    """Run all contestants in turn, several times; return the least wall-clock and CPU seconds of each."""
    best = dict.fromkeys(contestants, (float("inf"), float("inf")))
    for _ in range(rounds):
        for name, command in contestants.items():
            before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
            done = subprocess.run(command, capture_output=True, check=False)
            seconds, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
            used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
            if done.returncode != (2 if name == "a wrong name" else 0):
                raise SystemExit(f"{name} failed: {done.stderr.decode()}")
            best[name] = min(best[name][0], seconds), min(best[name][1], used)
    return best


def main() -> None:
    """Run the races and print them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--bert", default="bert-base-cased", help="The encoder of the starter.")
    options = parser.parse_args()
    ebert = [sys.executable, "-m", "ebert"]
    commands = {
        "bare transformers": [sys.executable, "-c", BARE, str(get_bert(options.bert))],
        "ebert fill": [*ebert, "fill", "--model", "starter", MARKED],
        "python with numpy": [sys.executable, "-c", "import numpy"],
        "ebert starter": [*ebert, "starter"],
        "ebert vectors find": [*ebert, "vectors", "find", "starter", "Jean Marais"],
        "a wrong name": [*ebert, "fill", "--model", "nowhere", MARKED],
    }
    race({name: commands[name] for name in ("bare transformers", "ebert fill", "ebert starter")}, 1)  # from the disk
    best = race(commands, options.rounds)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    libraries = ", ".join(f"{name} {version(name)}" for name in ("torch", "transformers"))
    print(f"{cores} cores, {platform.machine()}, Python {platform.python_version()}, {libraries}")
    for name, (seconds, used) in best.items():
        print(f"  {name:<20} {seconds:6.2f} s, of which {used:.2f} s of the processor")
    (bare, bare_used), (ours, ours_used) = best["bare transformers"], best["ebert fill"]
    print(f"ratio processor's time of a bare script to ebert fill: {bare_used / ours_used:.2f}")
    print(f"ratio bare script to ebert fill: {bare / ours:.2f}")


if __name__ == "__main__":
    main()
