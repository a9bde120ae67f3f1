"""k-means as a loop over parts: each part sends its rows to the nearest center and sums them up."""

from __future__ import annotations

import numpy as np

import matnb as mn


def assigned(
    x: np.ndarray, old: np.ndarray, centers: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
    """Return the label of each row, the sums and numbers of rows by label, and how many labels changed."""
    middle = centers.mean(axis=0)
    offsets = centers - middle
    # |x - c|^2 but for |x - m|^2, in which all centers c around their middle m are alike
    scores = x @ (-2 * offsets).T + (offsets * (offsets + 2 * middle)).sum(axis=1)
    labels = scores.argmin(axis=1).astype(np.int32)
    sums = np.zeros(centers.shape)
    np.add.at(sums, labels, x)
    return labels, sums, np.bincount(labels, minlength=len(centers)), int((labels != old).sum())


def kmeans(
    X: mn.DistArray, start: mn.DistArray, most: int = 100
) -> tuple[mn.DistArray, mn.DistArray, mn.DistArray]:
    """Return centers, the label of each row, and the number of iterations until no label changes.

    Every center must keep a row.
    """
    State = tuple[mn.DistArray, mn.DistArray, mn.DistArray]

    def step(state: State) -> State:
        centers, labels, _ = state
        _, sums, counts, changed = mn.foreach(
            assigned, mn.splits(X), mn.splits(labels), whole=[centers], out=[labels], reduce="plus"
        )
        return sums / counts[:, None], labels, changed

    begin = (start, mn.full(len(X), -1, np.int32), mn.asarray(len(X)))
    (centers, labels, _), count = mn.iterate(
        step, begin, until=lambda old, new: new[2] == 0, max_iterations=most
    )
    return centers, labels, count
