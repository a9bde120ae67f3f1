"""Counting triangles as a user writes it, against every method of GraphBLAS."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

import graphblas as gb
import scipy.io
import scipy.sparse as sp
from graphblas import semiring
from harness import graphblas_peer
from harness.comparison import Bench, Claim, Contender
from harness.inputs import THREADS, lower_triangle, rmat
from harness.sessions import public

import matnb as mn

TARGETS = {16: 0.6, 18: 0.5}


def loaded_pattern(matrix: sp.csr_array) -> mn.DistArray:
    """Return a matrix without its values, as a file that lists no values gives it."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "lower.mtx"
        scipy.io.mmwrite(path, matrix, field="pattern", symmetry="general")
        return mn.load(str(path)).persist()


def methods(lower: sp.csr_array) -> dict[str, Callable[[], gb.Matrix]]:
    """Return the ways of GraphBLAS to the number of triangles at each edge."""
    L = graphblas_peer.pattern(lower, bool)
    U = L.T.new()
    pair = semiring.plus_pair
    return {
        "C<L> = L * L, saxpy": lambda: L.mxm(L, pair).new(mask=L.S),
        "C<L> = L * U', dot": lambda: L.mxm(U.T, pair).new(mask=L.S),
        "C<L> = L * L', dot": lambda: L.mxm(L.T, pair).new(mask=L.S),
    }


def graphblas_contender(name: str, method: Callable[[], gb.Matrix]) -> Contender:
    """Return one of the ways, with the sum over all edges."""
    return Contender(f"GraphBLAS, {name}", lambda _: method().reduce_scalar().new().value, value=int)


def compare(bench: Bench, scale: int, target: float) -> None:
    lower = lower_triangle(rmat(scale))
    L = loaded_pattern(lower)
    ours, call = public(lambda _: float(((L @ L) * L).sum()), value=int)
    bench.compare(
        Claim(
            f"triangles, 2^{scale}",
            f"((L @ L) * L).sum() on persisted L, R-MAT 2^{scale} made symmetric, {lower.nnz:,} entries in L",
            target,
        ),
        [ours, *(graphblas_contender(name, method) for name, method in methods(lower).items())],
        call.notes,
    )


def main() -> None:
    bench = Bench(__doc__)
    with mn.start(threads=THREADS):
        for scale, target in TARGETS.items():
            compare(bench, scale, target)


if __name__ == "__main__":
    main()
