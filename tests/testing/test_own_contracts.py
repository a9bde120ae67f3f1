"""Our own operations, containers and readers keep the contracts that others' keep."""

from __future__ import annotations

import io
from typing import Any, NamedTuple

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp

import matnb as mn
from matnb.testing import ContainerTests, ExampleFile, OpTests, SourceTests

RNG = np.random.default_rng(0)
X = RNG.integers(-8, 9, (23, 5)) / 4.0
S = sp.random_array((23, 17), density=0.2, format="csr", rng=1)


class TestCumsum(OpTests):
    def record(self, x: Any) -> mn.DistArray:
        return np.cumsum(x, axis=0)

    def expected(self, x: Any) -> np.ndarray:
        return np.cumsum(x, axis=0)

    def operands(self) -> list[tuple[np.ndarray, ...]]:
        return [(X,), (X[:0],), (X[:, 0],), ((X * 4).astype(np.int32),)]


class TestSort(OpTests):
    def record(self, x: Any) -> mn.DistArray:
        return np.sort(x, axis=0)

    def expected(self, x: Any) -> np.ndarray:
        return np.sort(x, axis=0)

    def operands(self) -> list[tuple[np.ndarray, ...]]:
        return [(X,), (X[:1],), (X[:, 0] * np.nan,)]


class TestProduct(OpTests):
    tolerance = 1e-12

    def record(self, a: Any, x: Any) -> mn.DistArray:
        return a @ x

    def expected(self, a: Any, x: Any) -> Any:
        return a @ x

    def operands(self) -> list[tuple[Any, ...]]:
        return [(S, RNG.normal(size=17)), (X.T, S), (S.T.tocsr(), S), (S, X[:17])]


class TestPattern(OpTests):
    def record(self, a: Any) -> mn.DistArray:
        return a.pattern(float)

    def expected(self, a: Any) -> sp.csr_array:
        found = a.copy()
        found.data = np.ones(a.nnz)
        return found

    def operands(self) -> list[tuple[sp.csr_array, ...]]:
        return [(S,), (sp.csr_array((4, 3)),)]


class Pair(NamedTuple):
    left: Any
    right: Any


class TestTrees(ContainerTests):
    def values(self) -> list[Any]:
        return [
            {"a": mn.ones(2), "b": [mn.asarray(S)]},
            (mn.ones(2), 1.5),
            Pair(mn.ones(2), {"c": mn.zeros(())}),
        ]

    def others(self) -> list[tuple[Any, Any]]:
        return [({"a": mn.ones(2)}, {"b": mn.ones(2)}), ((mn.ones(2),), [mn.ones(2)])]


@pytest.mark.usefixtures("interpreter")
class TestSegments(ContainerTests):
    def values(self) -> list[Any]:
        return [
            mn.nested.from_lists([[1.0, 2.0], [], [3.0]]),
            mn.nested.unflatten(mn.nested.from_lists([[1], [2, 3]]), [2, 0]),
        ]

    def others(self) -> list[tuple[Any, Any]]:
        return [(mn.nested.from_lists([[1.0], [2.0]]), mn.nested.from_lists([[1.0, 2.0], []]))]


def written(write: Any, *arguments: Any) -> bytes:
    stream = io.BytesIO()
    write(stream, *arguments)
    return stream.getvalue()


class TestNpy(SourceTests):
    kind = "npy"

    def files(self) -> list[ExampleFile]:
        arrays = {
            "x": X,
            "whole": (X * 4).astype(np.int16),
            "line": X[:, 0],
            "turned": np.asfortranarray(X),
            "none": X[:0],
        }
        return [ExampleFile(f"{name}.npy", written(np.save, one), one) for name, one in arrays.items()]

    def bad_files(self) -> list[tuple[str, bytes, str]]:
        return [("bad.npy", b"no array at all", "bad.npy")]


class TestMatrixMarket(SourceTests):
    kind = "matrixmarket"

    def files(self) -> list[ExampleFile]:
        return [
            ExampleFile("s.mtx", written(scipy.io.mmwrite, S), S),
            ExampleFile("x.mtx", written(scipy.io.mmwrite, X), X),
        ]

    def bad_files(self) -> list[tuple[str, bytes, str]]:
        begin = b"%%MatrixMarket matrix coordinate real general\n2 2 1\n"
        return [("far.mtx", begin + b"3 1 1.0\n", "line 3"), ("word.mtx", begin + b"1 1 one\n", "line 3")]


class TestNpz(SourceTests):
    kind = "npz"

    def files(self) -> list[ExampleFile]:
        return [ExampleFile("s.npz", written(sp.save_npz, S), S)]


def test_names_of_numpys_testing_stay() -> None:
    import matnb.testing

    assert mn.testing is matnb.testing
    mn.testing.assert_allclose(mn.arange(3), [0, 1, 2])
    with pytest.raises(AttributeError, match="OpTest"):
        mn.testing.OpTest  # noqa: B018  asked for
