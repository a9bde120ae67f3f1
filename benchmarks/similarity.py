"""Similarity of items by who rated them, R'R and R R'R, against SciPy."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from harness.comparison import Bench, Claim, Contender
from harness.inputs import THREADS
from harness.sessions import public

import matnb as mn

USERS, ITEMS, RATINGS = 50_000, 5_000, 5_000_000
SMALL = 500, 100, 5_000
TARGET = 0.5


def ratings(users: int, items: int, number: int) -> sp.csr_array:
    """Return ratings of 1 to 5, a few of the items rated most, as in real ones."""
    rng = np.random.default_rng(1)
    column = np.minimum((rng.random(number) ** 2 * items).astype(int), items - 1)
    made = sp.csr_array((np.ones(number), (rng.integers(0, users, number), column)), shape=(users, items))
    made.sum_duplicates()
    made.data = rng.integers(1, 6, made.nnz).astype(float)
    return made


def main() -> None:
    bench = Bench(__doc__)
    with mn.start(threads=THREADS):
        given = ratings(*bench.sized((USERS, ITEMS, RATINGS), SMALL))
        R = mn.asarray(given).persist()
        about = f"{given.shape[0]:,} users, {given.shape[1]:,} items, {given.nnz:,} ratings, stored"
        for name, ours, theirs in (
            ("R'R", lambda: R.T @ R, lambda: given.T @ given),
            ("R R'R", lambda: R @ (R.T @ R), lambda: given @ (given.T @ given)),
        ):
            contender, call = public(
                lambda _, ours=ours: float(abs(ours()).sum()),
            )
            bench.compare(
                Claim(f"{name} of ratings", f"and the sum of its elements; {about}", TARGET),
                [contender, Contender("SciPy", lambda _, theirs=theirs: float(abs(theirs()).sum()))],
                call.notes,
            )


if __name__ == "__main__":
    main()
