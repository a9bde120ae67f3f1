"""(A * A) + (A * A) of a sparse matrix as a user writes it, against SciPy with the product written once."""

from __future__ import annotations

from typing import Any

import scipy.sparse as sp
from harness.comparison import Bench, Claim, Contender
from harness.inputs import THREADS, rmat
from harness.sessions import public

import matnb as mn

SCALE = 20


def by_hand(A: sp.csr_array) -> sp.csr_array:
    """The best a user writes with SciPy."""
    product = A.multiply(A)
    return product + product


def recorded(A: Any) -> Any:
    """What the claim is about: the product is written twice."""
    return (A * A) + (A * A)


def main() -> None:
    bench = Bench(__doc__)
    with mn.start(threads=THREADS):
        graph = rmat(SCALE, values=True)
        A = mn.asarray(graph).persist()
        kept, call = public(lambda _: recorded(A).persist(), value=lambda result: result.to_scipy())
        fetched, _ = public(lambda _: recorded(A).to_scipy(), name="matnb, brought here", judged=False)
        theirs = Contender("SciPy, product written once", lambda _: by_hand(graph))
        bench.compare(
            Claim(
                "(A * A) + (A * A), sparse, public call",
                f"((A * A) + (A * A)).persist() on persisted A with values, R-MAT 2^{SCALE}, "
                f"{graph.nnz:,} entries",
                0.5,
            ),
            [kept, theirs, fetched],
            call.notes,
        )


if __name__ == "__main__":
    main()
