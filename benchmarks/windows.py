"""Rolling windows and an exponentially weighted mean of a long vector, as users write them; pandas."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from harness.comparison import Bench, Claim, Contender
from harness.inputs import THREADS
from harness.sessions import public

import matnb as mn

LENGTH, SMALL_LENGTH = 10_000_000, 20_000
WINDOW, ALPHA = 100, 0.1
TARGET = 1.0  # of the seconds of pandas


def follow(one: Any, following: Any) -> Any:
    """Return two steps of y[i] = a[i] y[i - 1] + b[i] as one."""
    (a, b), (c, d) = one, following
    return a * c, c * b + d


def ewma(x: Any) -> Any:
    """Return the exponentially weighted mean as pandas has it without ``adjust``."""
    terms = ALPHA * x
    terms[:1] = x[:1]
    return mn.associative_scan(follow, (mn.full(x.shape, 1.0 - ALPHA), terms))[1]


def compare(bench: Bench, name: str, text: str, ours: Callable[..., Any], theirs: Callable[..., Any]) -> None:
    length = bench.sized(LENGTH, SMALL_LENGTH)

    def elements(number: int) -> np.ndarray:
        return np.random.default_rng(number).normal(size=length)

    contender, call = public(
        lambda x: ours(x).persist(),
        lambda number: mn.asarray(elements(number)).persist(),
        lambda result: result.compute()[WINDOW:],
    )
    peer = Contender(
        "pandas",
        theirs,
        lambda number: pd.Series(elements(number)),
        lambda result: result.to_numpy()[WINDOW:],
        tolerance=1e-7,  # pandas takes off what leaves a window again
    )
    bench.compare(Claim(name, f"{text}, {length:,} doubles, stored", TARGET), [contender, peer], call.notes)


def main() -> None:
    bench = Bench(__doc__)
    with mn.start(threads=THREADS):
        for name in ("mean", "min", "std"):
            compare(
                bench,
                f"rolling {name}",
                f"mn.rolling(x, {WINDOW}).{name}()",
                lambda x, name=name: getattr(mn.rolling(x, WINDOW), name)(),
                lambda x, name=name: getattr(x.rolling(WINDOW), name)(),
            )
        compare(
            bench,
            "exponentially weighted mean",
            f"y[i] = {1 - ALPHA} y[i - 1] + {ALPHA} x[i] by mn.associative_scan",
            ewma,
            lambda x: x.ewm(alpha=ALPHA, adjust=False).mean(),
        )


if __name__ == "__main__":
    main()
