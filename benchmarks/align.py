"""Fitting W: `ebert` beside `numpy.linalg.lstsq` on a problem of BERT's size.

    python benchmarks/align.py [--words N] [--dim N] [--width N] [--rounds N]

Both solve the same least squares in float64; the residuals are printed beside the times.
"""

import argparse
import os
import platform
import time

import numpy as np

from ebert.model.alignment import least_squares


def main() -> None:
    """Run both and print the ratio."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--words", type=int, default=22_000)
    parser.add_argument("--dim", type=int, default=300)
    parser.add_argument("--width", type=int, default=768)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    x = rng.normal(size=(options.words, options.dim))
    y = x @ rng.normal(size=(options.dim, options.width)) + rng.normal(size=(options.words, options.width))
    best = {"ebert": float("inf"), "numpy.linalg.lstsq": float("inf")}
    maps = {}
    for _ in range(options.rounds):
        for name in best:
            start = time.perf_counter()
            maps[name] = least_squares(x, y) if name == "ebert" else np.linalg.lstsq(x, y, rcond=None)[0].T
            best[name] = min(best[name], time.perf_counter() - start)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    print(f"{options.words:,} words, {options.dim} to {options.width}, {cores} cores, {platform.machine()}")
    for name, seconds in best.items():
        print(f"  {name:<20} {seconds:7.3f} s  residual {((x @ maps[name].T - y) ** 2).sum():.9e}")
    print(f"ratio align: {best['numpy.linalg.lstsq'] / best['ebert']:.2f}")


if __name__ == "__main__":
    main()
