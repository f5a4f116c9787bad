"""Processes of their own that begin at once: they are forked from a server which has imported what they need."""

import multiprocessing
import os
from collections.abc import Callable
from multiprocessing.process import BaseProcess
from typing import Any

PRELOAD = [
    "pytest", "torch", "transformers", "transformers.trainer", "transformers.models.bert.modeling_bert",
    "transformers.models.bert.tokenization_bert", "accelerate", "pandas", "pyarrow.parquet", "pyarrow.compute", "numba",
    "numba.typed", "scipy.linalg.blas", "threadpoolctl", "matplotlib.pyplot", "ebert.cli", "ebert.bert.maven",
    "ebert.bulk.encode", "ebert.bulk.link", "ebert.bulk.probe", "ebert.bulk.run", "ebert.linking.readers.layouts",
    "ebert.linking.readers.nif", "ebert.linking.train", "ebert.linking.wikipedia", "ebert.probing.run",
    "ebert.relations.train", "ebert.report.runs", "ebert.vectors.copies", "ebert.vectors.train.run",
    "ebert.vectors.formats.importer", "ebert.wikipedia.build", "ebert.wikipedia.wikidata",
]  # fmt: skip
CONTEXT = multiprocessing.get_context("forkserver")


def start(target: Callable[..., None], *arguments: Any) -> BaseProcess:
    """Start a process that calls a function, on one thread."""
    CONTEXT.set_forkserver_preload(PRELOAD)
    before = os.environ.get("OMP_NUM_THREADS")
    os.environ["OMP_NUM_THREADS"] = "1"  # of the server, if it does not run yet
    process = CONTEXT.Process(target=target, args=arguments)
    process.start()
    if before is None:
        del os.environ["OMP_NUM_THREADS"]
    return process
