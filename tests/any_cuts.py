"""What the laws of the library share: sessions of each kind, odd cuts, and the values of a named result."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import numpy as np
import pytest
import scipy.sparse as sp

import matnb as mn
from matnb.events import LoopFinished

KINDS = {
    "threads": {"engine": "gang", "workers": 1, "threads": 2},
    "workers": {"engine": "gang", "workers": 3, "threads": 1},
    "processes": {"engine": "gang", "workers": 2, "threads": 1, "processes": True},
    "interpreter": {"engine": "interpret"},
}
PARAMS = [pytest.param(one, marks=[pytest.mark.cluster] if one == "processes" else []) for one in KINDS]
# For what does not depend on how it is run: where that is quickest, of a file's `session` that has PARAMS.
ON_THREADS = pytest.mark.parametrize("session", ["threads"], indirect=True)
Arrays = tuple[np.ndarray, ...]


class Library:
    """A session of one kind, in which each loop must run on the gang."""

    def __init__(self, kind: str, session: mn.session.Session) -> None:
        self.kind = kind
        self.loops: list[LoopFinished] = []
        session.subscribe(lambda event: self.loops.append(event) if type(event) is LoopFinished else None)

    def values(self, results: object) -> Arrays:
        """Return what an algorithm gave, all of it computed in one run; a sparse array as its three."""
        parts = [results] if isinstance(results, mn.DistArray) else list(results)  # type: ignore[call-overload]
        found = []
        for part, value in zip(parts, mn.compute(*parts), strict=True):
            if part.sparse:
                value = sp.csr_array(value.to_scipy_sparse())
                value.sort_indices()
                found += [value.indptr, value.indices, value.data]
            else:
                found.append(np.asarray(value))
        assert {one.engine for one in self.loops} <= {"gang"}, [one.reason for one in self.loops]
        return tuple(found)


@contextmanager
def library(kind: str) -> Iterator[Library]:
    """Start a session of a kind."""
    with mn.start(**KINDS[kind]) as session:
        yield Library(kind, session)
    mn.stop()


def cut(matrix: sp.csr_array | np.ndarray, cuts: Sequence[int] | None) -> mn.DistArray:
    """Return a matrix of a session, with its own cuts or with these."""
    made = mn.asarray(matrix)
    return made if cuts is None else mn.repartition(made, cuts=cuts)


def expected_of(
    algorithms: Mapping[str, Callable[[mn.DistArray], object]], matrices: Mapping[str, sp.csr_array]
) -> dict[tuple[str, str], Arrays]:
    """Return what each algorithm gives of each matrix on one thread, without cuts."""
    with mn.start(workers=1, threads=1) as session:
        one = Library("one thread", session)
        found = {
            (name, which): one.values(algorithm(mn.asarray(matrix)))
            for name, algorithm in algorithms.items()
            for which, matrix in matrices.items()
        }
    mn.stop()
    return found


def check_same(found: Arrays, expected: Arrays, tolerance: float | None) -> None:
    """Compare values: bit for bit, or to an absolute and relative tolerance."""
    assert [(one.shape, one.dtype) for one in found] == [(one.shape, one.dtype) for one in expected]
    for one, other in zip(found, expected, strict=True):
        if tolerance is None or one.dtype.kind in "iub":
            assert one.tobytes() == other.tobytes(), (one, other)
        else:
            np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance)
