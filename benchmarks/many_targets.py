"""300 logistic targets in one pass over sparse rows, against one of them and against one classifier each."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from harness.comparison import Bench, Claim, Contender
from harness.inputs import THREADS
from harness.sessions import public
from sklearn.linear_model import SGDClassifier
from sklearn.multiclass import OneVsRestClassifier

import matnb as mn

TARGETS, BATCH = 300, 5000
RATE = 0.2


def rows(n: int) -> tuple[sp.csr_array, np.ndarray]:
    """Return rows of 50 of 10,000 features, some frequent and most rare, and labels of logistic models."""
    rng, p, k = np.random.default_rng(0), 10_000, 50
    features = np.minimum(p * rng.uniform(size=(n, k)) ** 3, p - 1).astype(np.int32)
    starts = np.arange(0, n * k + 1, k, dtype=np.int32)
    X = sp.csr_array((np.ones(n * k), features.ravel(), starts), shape=(n, p))
    X.sum_duplicates()
    score = X @ rng.standard_normal((p, TARGETS)) / 4
    return X, (score + rng.logistic(size=score.shape) > 0).astype(float)


def fitted(X: mn.DistArray, Y: mn.DistArray) -> mn.learn.GLM:
    links = "logit" if Y.ndim == 1 else ["logit"] * Y.shape[1]
    return mn.learn.GLM(links, optimizer=mn.learn.AdaGrad(RATE), batch_size=BATCH).fit(X, Y)


def main() -> None:
    bench = Bench(__doc__)
    X, Y = rows(bench.sized(100_000, 5000))
    work = f"{TARGETS} targets, one pass over {X.shape[0]:,} x {X.shape[1]:,}, {X.nnz:,} entries"
    with mn.start(threads=THREADS):
        A, B, y = (mn.asarray(one).persist() for one in (X, Y, Y[:, 0].copy()))
        ours, call = public(lambda _: fitted(A, B), value=lambda model: model.coef_.compute()[0])
        alone, _ = public(
            lambda _: fitted(A, y), value=lambda model: model.coef_.compute(), name="one target"
        )
        bench.compare(Claim("many targets against one", work, 8.0), [ours, alone], call.notes)
        peer = OneVsRestClassifier(
            SGDClassifier(loss="log_loss", max_iter=1, tol=None, learning_rate="constant", eta0=0.1, alpha=0)
        )
        each = Contender("scikit-learn's OneVsRest", lambda _: peer.fit(X, Y), tolerance=None, value=len_of)
        bench.compare(Claim("many targets against OneVsRest", work, 0.1), [ours, each], call.notes)


def len_of(classifier: OneVsRestClassifier) -> int:
    return len(classifier.estimators_)


if __name__ == "__main__":
    main()
