"""A small report over a file that tests run in processes of its own: prints what it found and what it ran."""

from __future__ import annotations

import json
import sys

import numpy as np

import matnb as mn
from matnb.events import LoopFinished, RunFinished


def main(folder: str, matrix: str, offset: float) -> None:
    found: dict[str, tuple[object, int]] = {}
    tasks: list[int] = []

    def seen(event: object) -> None:
        if isinstance(event, RunFinished | LoopFinished):
            tasks.append(event.num_tasks)

    def tell(name: str, value: object) -> None:
        found[name] = value, sum(tasks)
        tasks.clear()

    with mn.start(workers=1, threads=2, memo_dir=folder) as session:
        A = mn.load(matrix)
        session.subscribe(seen)  # reading tells of tasks too
        y = A @ mn.random.default_rng(3).random(A.shape[1], blocks=2)
        tell("number", float(y.sum()))
        tell("sparse", int((A.T @ A).to_scipy().nnz))
        scale, words = 2.0, "abc"
        solved = mn.replicated(
            lambda m, v: np.linalg.solve(m, v) * scale if words in {"abc", "def", "ghi"} else v,
            np.eye(3) * 2,
            np.arange(3.0),
        )
        tell("function", solved.compute().tolist())
        x, n = mn.iterate(
            lambda x: x * 0.5 + offset,
            mn.ones(400),
            until=lambda old, new: abs(new - old).max() < 1e-3,
            max_iterations=99,
        )
        values = mn.compute(x, n)
        tell("loop", [float(values[0][0]), int(values[1])])
        w = mn.asarray(np.arange(1000.0)) + y.sum()
        tell("array", float(w.compute()[5]))
        tell("operand", float((w * 2).min()))
    print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], float(sys.argv[3]))
