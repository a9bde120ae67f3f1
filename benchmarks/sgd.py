"""Logistic regression in one pass by AdaGrad in batches, against scikit-learn, dask-ml and vowpalwabbit."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import dask
import dask.array as da
import dask_ml.wrappers
import numpy as np
import scipy.sparse as sp
from harness.comparison import Bench, Claim, Contender
from harness.inputs import THREADS
from harness.sessions import public
from sklearn.linear_model import SGDClassifier
from vowpalwabbit import Workspace

import matnb as mn

BATCH = 10_000
WORSE = 1.01  # the most that a loss may be of that of the peer
Rows = np.ndarray | sp.csr_array


def dense(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return rows of 32 features, and labels of a logistic model."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, 32))
    return X, _labels(X @ rng.standard_normal(32) / 3, rng)


def sparse(n: int) -> tuple[sp.csr_array, np.ndarray]:
    """Return rows of 20 of 100,000 features, some frequent and most rare, and labels of a logistic model."""
    rng, p, k = np.random.default_rng(0), 100_000, 20
    features = np.minimum(p * rng.uniform(size=(n, k)) ** 3, p - 1).astype(np.int32)
    starts = np.arange(0, n * k + 1, k, dtype=np.int32)
    X = sp.csr_array((np.ones(n * k), features.ravel(), starts), shape=(n, p))
    X.sum_duplicates()
    return X, _labels(X @ rng.standard_normal(p) / 2, rng)


def _labels(score: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return (score + rng.logistic(size=len(score)) > 0).astype(float)


def loss_of(score: np.ndarray, y: np.ndarray) -> float:
    """Return the mean logistic loss."""
    return float((np.logaddexp(0, score) - y * score).mean())


class Wabbit:
    """Vowpal Wabbit's adaptive steps over a binary cache of the rows, which is made before it is timed."""

    def __init__(self, folder: str, name: str, X: Rows, y: np.ndarray) -> None:
        self._rows, self._model = Path(folder, f"{name}.txt"), Path(folder, f"{name}.model")
        self._scores = Path(folder, f"{name}.scores")
        labels = np.where(y > 0, 1, -1)
        with self._rows.open("w") as file:
            if isinstance(X, np.ndarray):
                line = "%d |f " + " ".join(f"{one}:%.7g" for one in range(X.shape[1])) + "\n"
                file.writelines(line % (label, *row) for label, row in zip(labels, X.tolist(), strict=True))
            else:
                ends = X.indptr.tolist()
                for i, label in enumerate(labels.tolist()):
                    words = " ".join(map(str, X.indices[ends[i] : ends[i + 1]].tolist()))
                    file.write(f"{label} |f {words}\n")
        self.learn(0)

    def learn(self, _: int) -> None:
        """Make one pass."""
        self._run(f"--loss_function logistic -b 18 -f {self._model}")

    def scores(self, _: object) -> np.ndarray:
        """Return the score of each row by what was learned last."""
        self._run(f"-t -i {self._model} -r {self._scores}")
        return np.loadtxt(self._scores)

    def _run(self, options: str) -> None:
        Workspace(f"--quiet -d {self._rows} --cache_file {self._rows}.cache {options}").finish()


def compare(bench: Bench, name: str, X: Rows, y: np.ndarray, rate: float, peer: dict[str, object]) -> None:
    A, b = mn.asarray(X).persist(), mn.asarray(y).persist()
    model = mn.learn.models.GeneralizedLinear("logit")

    def by_matnb(_: int) -> mn.learn.Learner:
        return mn.learn.Learner(model, mn.learn.AdaGrad(rate)).fit(A, b, batch_size=BATCH)

    def by_sklearn(_: int) -> SGDClassifier:
        classifier = SGDClassifier(loss="log_loss", **peer)
        for start in range(0, len(y), BATCH):
            rows = slice(start, start + BATCH)
            classifier.partial_fit(X[rows], y[rows], classes=[0, 1])
        return classifier

    def by_dask(_: int) -> SGDClassifier:
        rows = [da.from_array(one, chunks=(BATCH, *one.shape[1:])) for one in (X, y)]
        with dask.config.set(scheduler="threads", num_workers=THREADS):
            model = dask_ml.wrappers.Incremental(SGDClassifier(loss="log_loss", **peer), shuffle_blocks=False)
            return model.fit(*rows, classes=[0, 1]).estimator_

    losses: dict[str, float] = {}

    def told(who: str, score: Callable[[object], np.ndarray]) -> Callable[[object], float]:
        return lambda fitted: losses.setdefault(who, loss_of(score(fitted), y))

    def score(learner: mn.learn.Learner) -> np.ndarray:
        w, c = (np.asarray(one) for one in learner.parameters_.values())
        return X @ w + c

    def notes() -> list[str]:
        ours, theirs = losses["matnb"], losses["scikit-learn"]
        if not bench.is_small and ours > WORSE * theirs:
            raise SystemExit(f"{name}: the loss is {ours:.4f}, above {WORSE} of {theirs:.4f}")
        return [", ".join(f"{who} {loss:.4f}" for who, loss in losses.items()) + ": losses", *call.notes()]

    ours, call = public(by_matnb, value=told("matnb", score))
    work = f"one pass over {X.shape[0]:,} x {X.shape[1]:,} in batches of {BATCH:,}"
    sklearn = Contender(
        "scikit-learn",
        by_sklearn,
        value=told("scikit-learn", lambda fitted: fitted.decision_function(X)),
        tolerance=None,
    )
    with TemporaryDirectory() as folder:
        wabbit = Wabbit(folder, name, X, y)
        peers = [
            sklearn,
            Contender(
                "vowpalwabbit, 1 thread, from its cache", wabbit.learn,
                value=told("vowpalwabbit", wabbit.scores), tolerance=None,
            ),
        ]  # fmt: skip
        if isinstance(X, np.ndarray):  # a sparse array of SciPy's has no blocks there
            dask_ml_peer = Contender(
                "dask-ml, Incremental", by_dask,
                value=told("dask-ml", lambda fitted: fitted.decision_function(X)), tolerance=None,
            )  # fmt: skip
            peers.append(dask_ml_peer)
        bench.compare(Claim(f"AdaGrad, logistic, {name}", work, 1.0), [ours, *peers], notes)


def main() -> None:
    bench = Bench(__doc__)
    n = bench.sized(1_000_000, 50_000)
    falling = {"alpha": 1e-7, "learning_rate": "invscaling", "eta0": 0.5, "power_t": 0.5}
    constant = {"alpha": 0.0, "learning_rate": "constant", "eta0": 0.1}
    # Of the peer's schedules, those that came to the least loss on each of the two.
    with mn.start(threads=THREADS):
        compare(bench, "dense", *dense(n), 0.1, falling)
        compare(bench, "sparse", *sparse(n), 0.4, constant)


if __name__ == "__main__":
    main()
