"""Nonnegative matrix factorization of a sparse matrix by multiplicative updates, against scikit-learn."""

from __future__ import annotations

import warnings
from functools import partial

import numpy as np
import scipy.sparse as sp
import sklearn.decomposition
from harness.comparison import Bench, Claim, Contender
from harness.inputs import THREADS
from harness.sessions import public
from harness.threads import blas_threads

import matnb as mn

RANK, ROUNDS = 20, 10
TARGETS = {"frobenius": 0.7, "kullback-leibler": 0.7}
Start = tuple[np.ndarray, np.ndarray]


def start(shape: tuple[int, ...], number: int) -> Start:
    """Return the first factors of a round."""
    rng = np.random.default_rng(number)
    return rng.random((shape[0], RANK)), rng.random((RANK, shape[1]))


def by_scikit_learn(X: sp.csr_array, loss: str, given: Start) -> float:
    """Return the error after all rounds."""
    W, H = given
    model = sklearn.decomposition.NMF(
        RANK, init="custom", solver="mu", beta_loss=loss, tol=0, max_iter=ROUNDS
    )
    model.fit(X, W=W.copy(), H=H.copy())
    return float(model.reconstruction_err_)


def compare(bench: Bench, X: sp.csr_array, loss: str) -> None:
    stored = mn.asarray(X).persist()

    def fit(given: Start) -> mn.DistArray:
        W, H = given
        model = mn.learn.NMF(RANK, init="custom", beta_loss=loss, tol=0, max_iter=ROUNDS)
        return model.fit(stored, W=W, H=H).reconstruction_err_

    ours, call = public(fit, partial(start, X.shape), float)
    run, prepare = partial(by_scikit_learn, X, loss), partial(start, X.shape)
    theirs = Contender("scikit-learn, mu", run, prepare, within=partial(blas_threads, THREADS))
    bench.compare(
        Claim(
            f"NMF, {loss}",
            f"NMF({RANK}).fit(X), {ROUNDS} rounds of mu, {X.shape[0]:,} x {X.shape[1]:,}, {X.nnz:,} entries, "
            f"{loss}, stored",
            TARGETS[loss],
        ),
        [ours, theirs],
        call.notes,
    )


def main() -> None:
    bench = Bench(__doc__)
    shape = bench.sized(20_000, 800), bench.sized(10_000, 400)
    X = sp.random_array(shape, density=0.013, format="csr", rng=np.random.default_rng(1))
    with mn.start(threads=THREADS), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for loss in TARGETS:
            compare(bench, X, loss)


if __name__ == "__main__":
    main()
