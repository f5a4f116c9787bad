"""Fit and apply W: the sum of ||W v(x) - e(x)||² over all words x that are also wordpieces (Section 3.1)."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ebert._io import files
from ebert.errors import EbertError
from ebert.model.options import AlignmentOptions, AlignmentReport, LearningReport
from ebert.vectors.store import Vectors

Matrix = NDArray[np.float64]

# Beyond this the normal equations lose half of float64's digits, and the slower solver takes over.
WORST_CONDITION = 1e9


def least_squares(x: Matrix, y: Matrix, ridge: float = 0.0) -> Matrix:
    """Return W, shape (y's width, x's width), that minimises the sum of squares of W x - y plus ridge times W's.

    Use normal equations if they are safe: they are ten times as fast as a decomposition of x.
    """
    if ridge:  # as many more pairs as there are dimensions, which want W to be zero
        x, y = np.vstack([x, np.sqrt(ridge) * np.eye(x.shape[1])]), np.pad(y, ((0, x.shape[1]), (0, 0)))
    gram = x.T @ x  # (d, d)
    eigenvalues = np.linalg.eigvalsh(gram)
    safe = eigenvalues[0] * WORST_CONDITION > eigenvalues[-1]
    weight = np.linalg.solve(gram, x.T @ y) if safe else np.linalg.lstsq(x, y, rcond=None)[0]
    return np.asarray(weight.T, np.float64)


def procrustes(x: Matrix, y: Matrix, _ridge: float = 0.0) -> Matrix:
    """Return the W with orthonormal rows or columns, whichever are fewer, that projects x closest to y."""
    left, _, right = np.linalg.svd(y.T @ x, full_matrices=False)
    return left @ right


SOLVERS = {"linear": least_squares, "orthogonal": procrustes}  # the methods of `AlignmentOptions` that fit something
MOST_HELD_OUT = 2000  # words are enough for a percentage to one decimal
CHUNK_ROWS = 8192  # of the wordpiece table at a time
CORRECTION = ("inner", "constant", "outer")
TIE = 1e-6  # cosines that differ by less are equal


@dataclass(repr=False, eq=False)
class Correction:
    """A hidden layer beside W, learned with it: ``W v + outer · relu(inner · v + constant)``."""

    inner: NDArray[np.float32]  # (hidden, source)
    constant: NDArray[np.float32]  # (hidden,)
    outer: NDArray[np.float32]  # (target, hidden)

    def __call__(self, vectors: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return what is added to the projection of vectors, shape (n, source)."""
        return np.maximum(vectors @ self.inner.T + self.constant, 0) @ self.outer.T


@dataclass(repr=False, eq=False)
class Alignment:
    """A map from a store's space (`source` wide) to an encoder's input space (`target` wide)."""

    weight: NDArray[np.float32] | None  # (target, source)
    bias: NDArray[np.float32] | None  # (target,)
    source: int
    target: int
    options: AlignmentOptions
    report: AlignmentReport
    learned: LearningReport | None = None  # how W was learned on from there, if it was
    correction: Correction | None = None

    def __repr__(self) -> str:
        return f"Alignment({self.options.method}, from {self.source} to {self.target}, {self.report.pairs:,} words)"

    @classmethod
    def fit(
        cls, vectors: Vectors, pieces: Mapping[str, int], embedding: ArrayLike, options: AlignmentOptions | None = None
    ) -> "Alignment":
        """Fit W on the words of a store that are wordpieces.

        `pieces` gives the row in `embedding`, shape (wordpieces, width), of every word that is a wordpiece.
        """
        options = options or AlignmentOptions()
        table = np.asarray(embedding)  # in its own dtype: large vocabularies have a gigabyte of it
        source, target = vectors.dimension, table.shape[1]
        if options.method == "none":
            if source != target:
                raise EbertError(
                    f"vectors of dimension {source} cannot go without alignment into an encoder of width {target}; "
                    "fit an alignment, or use vectors of that dimension"
                )
            return cls(None, None, source, target, options, AlignmentReport(pairs=0, r2=None))
        x, y, weights, rows = _pairs(vectors, pieces, table, options)
        weight, bias = _solve(x, y, weights, options)
        if not np.abs([weight.min(), weight.max(), bias.min(), bias.max()]).max() <= np.finfo(np.float32).max:
            raise EbertError(
                f"no alignment can be fitted to the word vectors of {vectors.path}: W has values that are not "
                f"numbers or too large; check these vectors and those of the encoder"
            )
        held_out = _held_out(x, y, weights, rows, table, options)
        report = AlignmentReport(pairs=len(x), r2=_r2(x @ weight.T + bias, y), **held_out)
        single = weight.astype(np.float32, order="C")  # safetensors writes the bytes as they lie in memory
        constant = bias.astype(np.float32) if options.intercept else None
        return cls(single, constant, source, target, options, report)

    def arrays(self) -> dict[str, NDArray[np.float32]]:
        """Return its numbers, by name."""
        layer = vars(self.correction) if self.correction else {}
        found = {"weight": self.weight, "bias": self.bias, **{f"correction.{name}": layer[name] for name in layer}}
        return {name: array for name, array in found.items() if array is not None}

    def learning(self) -> dict[str, Any]:
        """Return how W was learned, for the records of runs; an empty dict if it was not learned."""
        return {"learned": asdict(self.learned)} if self.learned else {}

    def project(self, vectors: NDArray[np.float32]) -> NDArray[np.float32]:
        """Project entity vectors, shape (n, source), into the encoder's space, shape (n, target)."""
        if vectors.ndim != 2 or vectors.shape[1] != self.source:
            raise EbertError(f"vectors of shape {vectors.shape} do not fit an alignment from dimension {self.source}")
        with np.errstate(over="ignore", invalid="ignore"):  # seen below
            projected = vectors if self.weight is None else vectors @ self.weight.T
            if self.bias is not None:
                projected = projected + self.bias
            if self.correction is not None:
                projected = projected + self.correction(vectors)
        if self.options.length is not None:
            projected = _unit(projected) * np.float32(self.options.length)
        if not np.isfinite(projected).all():
            raise EbertError("a vector is too large to be projected, or has values that are not numbers")
        return np.asarray(projected, np.float32)

    def save(self, path: str | Path) -> None:
        """Write one safetensors file."""
        from safetensors.numpy import save

        facts: dict[str, Any] = {"source": self.source, "target": self.target}
        facts |= {"options": asdict(self.options), "report": asdict(self.report), **self.learning()}
        with files.replacing(Path(path)) as file:
            file.write(save(self.arrays(), metadata={"ebert": json.dumps(facts)}))

    @classmethod
    def load(cls, path: str | Path) -> "Alignment":
        """Read what `save` wrote."""
        from safetensors import SafetensorError, safe_open

        try:
            with safe_open(str(path), framework="np") as file:
                facts = json.loads(file.metadata()["ebert"])
                tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            options, report = AlignmentOptions(**facts["options"]), AlignmentReport(**facts["report"])
            learned = LearningReport(**facts["learned"]) if "learned" in facts else None
            _check(tensors, options, facts["source"], facts["target"])
        except FileNotFoundError:
            raise EbertError(f"there is no alignment at {path}; make one with 'ebert align'") from None
        except (SafetensorError, OSError, KeyError, TypeError, ValueError, OverflowError, RecursionError) as error:
            raise EbertError(f"{path} is damaged ({error}); make it again with 'ebert align'") from None
        layer = [tensors[f"correction.{name}"] for name in CORRECTION if f"correction.{name}" in tensors]
        return cls(
            tensors.get("weight"), tensors.get("bias"), facts["source"], facts["target"], options, report, learned,
            Correction(*layer) if layer else None,
        )  # fmt: skip


def _check(tensors: Mapping[str, NDArray[Any]], options: AlignmentOptions, source: object, target: object) -> None:
    """Raise an error if the parts of an alignment do not fit together, or are not made of numbers."""
    hidden = len(tensors.get("correction.constant", ()))
    layer = dict(zip(CORRECTION, ((hidden, source), (hidden,), (target, hidden)), strict=True))
    shapes = {"weight": (target, source), "bias": (target,), **{f"correction.{name}": layer[name] for name in layer}}
    if type(source) is not int or type(target) is not int:
        raise TypeError(f"it goes from {source!r} to {target!r}, which are not dimensions")
    if any(tensor.shape != shapes[name] for name, tensor in tensors.items()):
        raise ValueError("its tensors have other shapes than it says")
    if 0 < sum(name.startswith("correction.") for name in tensors) < len(CORRECTION):
        raise ValueError("a part of its hidden layer is missing")
    if "weight" not in tensors and (options.method != "none" or source != target):
        raise ValueError("it has no weight")
    if any(tensor.dtype != np.float32 or not np.isfinite(tensor).all() for tensor in tensors.values()):
        raise ValueError("its tensors have values that are infinite or not numbers")


def _pairs(
    vectors: Vectors, pieces: Mapping[str, int], table: NDArray[Any], options: AlignmentOptions
) -> tuple[Matrix, Matrix, Matrix, NDArray[np.intp]]:
    """Return the two sides of the fit, the weights of the pairs, and their rows in the wordpiece table."""
    found = [(row, piece, word) for word, piece in pieces.items() if (row := vectors.find_word(word)) is not None]
    if not found:
        raise EbertError(
            f"none of the {vectors.info.words:,} words of {vectors.path} is a wordpiece: "
            "is this the right store, and is its case (cased or lower-cased) that of the encoder?"
        )
    rows = np.array([piece for _, piece, _ in found])
    x = np.asarray(vectors.word_matrix[[row for row, _, _ in found]], np.float64)  # (pairs, source)
    if not np.isfinite(x).all():
        raise EbertError(f"{vectors.path} has word vectors with values that are not numbers; make the store again")
    y = np.asarray(table[rows], np.float64)  # (pairs, target)
    if not options.weight_power:
        return x, y, np.ones(len(x)), rows
    counts = [vectors.word_count(word) for _, _, word in found]
    if None in counts:
        raise EbertError(
            f"{vectors.path} has no counts of its words, so they cannot be weighted by frequency; "
            "import a model file or train the vectors with ebert, or leave weight_power at 0"
        )
    with np.errstate(over="ignore"):
        weights = np.maximum(np.array(counts, np.float64), 1.0) ** options.weight_power
    if not 0 < weights.sum() < np.inf:
        raise EbertError(f"weight_power is {options.weight_power}, which makes weights too large or too small")
    return x, y, weights / weights.mean(), rows


def _solve(x: Matrix, y: Matrix, weights: Matrix, options: AlignmentOptions) -> tuple[Matrix, Matrix]:
    """Return W and the intercept (zero without one)."""
    middle_x = np.average(x, axis=0, weights=weights) if options.intercept else np.zeros(x.shape[1])
    middle_y = np.average(y, axis=0, weights=weights) if options.intercept else np.zeros(y.shape[1])
    root = np.sqrt(weights)[:, None]
    left, right = (x - middle_x) * root, (y - middle_y) * root
    weight = SOLVERS[options.method](left, right, options.ridge)
    return weight, middle_y - weight @ middle_x


def _ranks(projected: NDArray[np.float32], table: NDArray[Any], own: NDArray[np.intp]) -> NDArray[np.intp]:
    """Count, for each projected vector, the wordpieces that are nearer by cosine than its own."""
    least = np.einsum("ij,ij->i", projected, _unit(table[own]))[:, None] + TIE
    ranks = np.zeros(len(projected), np.intp)
    for start in range(0, len(table), CHUNK_ROWS):
        ranks += (projected @ _unit(table[start : start + CHUNK_ROWS]).T > least).sum(axis=1)  # (held out, chunk)
    return ranks


def _unit(rows: NDArray[Any]) -> NDArray[np.float32]:
    """Return rows of length 1, or of zeros; float32 is precise enough to find the nearest."""
    rows = rows.astype(np.float64)  # whose squares neither vanish nor become infinite
    return np.asarray(rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-300), np.float32)


def _r2(projected: Matrix, y: Matrix) -> float:
    return float(1 - ((projected - y) ** 2).sum() / max(((y - y.mean(axis=0)) ** 2).sum(), 1e-30))


def _held_out(
    x: Matrix, y: Matrix, weights: Matrix, rows: NDArray[np.intp], table: NDArray[Any], options: AlignmentOptions
) -> dict[str, Any]:
    """Fit on most words and measure whether the others are projected to their own wordpieces."""
    size = min(int(len(x) * options.held_out), MOST_HELD_OUT)
    if size < 1:
        return {}
    order = np.random.default_rng(options.seed).permutation(len(x))
    out, rest = order[:size], order[size:]
    weight, bias = _solve(x[rest], y[rest], weights[rest], options)
    projected = x[out] @ weight.T + bias  # (held out, target)
    ranks = _ranks(_unit(projected), table, rows[out])
    return {
        "held_out_pairs": size,
        "held_out_r2": _r2(projected, y[out]),
        "top1": 100 * float((ranks < 1).mean()),
        "top10": 100 * float((ranks < 10).mean()),
    }
