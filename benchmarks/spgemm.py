"""A @ A of a sparse matrix as a user writes it, against SciPy."""

from __future__ import annotations

from harness.comparison import Bench, Claim, Contender
from harness.inputs import THREADS, rmat
from harness.sessions import public

import matnb as mn

SCALE = 14


def main() -> None:
    bench = Bench(__doc__)
    with mn.start(threads=THREADS):
        graph = rmat(SCALE, values=True)
        A = mn.asarray(graph).persist()
        kept, call = public(lambda _: (A @ A).persist(), value=lambda product: product.to_scipy())
        fetched, _ = public(lambda _: (A @ A).to_scipy(), name="matnb, brought here", judged=False)
        theirs = Contender("SciPy, 1 thread", lambda _: graph @ graph)
        bench.compare(
            Claim(
                "A @ A, public call",
                f"(A @ A).persist() on persisted A with values, R-MAT 2^{SCALE}, {graph.nnz:,} entries",
                0.8,
            ),
            [kept, theirs, fetched],
            call.notes,
        )


if __name__ == "__main__":
    main()
