"""Every operation on sparse complex arrays gives what it gives on dense ones, or is refused when recorded."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp
from breadth.test_sparse_like_dense import COLUMNS, GROUPS, ROWS
from strategies import SEMIRINGS_WITH_LOOPS

import matnb as mn
from matnb.errors import MatnbError

DTYPES = (np.complex128, np.complex64)
TOLERANCE = {np.complex128: 1e-12, np.complex64: 1e-5}
RANDOM = np.random.default_rng(11)


def some(dtype: type, rows: int = ROWS, columns: int = COLUMNS) -> np.ndarray:
    """A few numbers of odd sixteenths, so that products of two are exact and no logarithm meets its pole."""
    parts = [2 * RANDOM.integers(-9, 9, (rows, columns)) + 1 for _ in range(2)]
    return ((parts[0] + 1j * parts[1]) / 16 * (RANDOM.random((rows, columns)) < 0.3)).astype(dtype)


pytestmark = pytest.mark.session("two workers")


def outcome(call: Callable[..., object], *given: object) -> object:
    """What a call gives, or its error."""
    try:
        return call(*given)
    except (MatnbError, TypeError) as error:
        return error


def array(value: object) -> np.ndarray:
    return np.asarray(value.todense() if hasattr(value, "todense") else value)


@pytest.mark.filterwarnings("ignore::numpy.exceptions.ComplexWarning")  # of NumPy's astype and histogram
@pytest.mark.parametrize("dtype", [np.complex128, pytest.param(np.complex64, marks=pytest.mark.slow)])
@pytest.mark.parametrize("group", GROUPS)
def test_functions(group: str, dtype: type):
    theirs = some(dtype), some(dtype)
    mine = [
        mn.asarray(sp.csr_array(one), blocks=cuts)
        for one, cuts in zip(theirs, (([0, 4, 11], None), (3, 2)), strict=True)
    ]
    wanted = [outcome(like.call, np, *theirs) for like in GROUPS[group]]
    found = [outcome(like.call, mn, *mine) for like in GROUPS[group]]
    lists = [one if isinstance(one, tuple) else (one,) for one in found]
    lazy = [one for some in lists for one in some if isinstance(one, mn.DistArray)]
    values = iter(mn.compute(*lazy))  # nothing that was recorded fails
    for like, one, results, expected in zip(GROUPS[group], found, lists, wanted, strict=True):
        computed = [next(values) if isinstance(each, mn.DistArray) else each for each in results]
        if isinstance(one, Exception):
            # NumPy too has no rounding, no remainder, no angle of complex numbers; it does sort them.
            assert isinstance(expected, TypeError) or "no order" in str(one), like.name
            continue
        assert not isinstance(expected, Exception), like.name
        if isinstance(one, mn.DistArray):
            assert one.sparse == like.is_sparse, like.name
        for each, known in zip(
            computed, expected if isinstance(expected, tuple) else (expected,), strict=True
        ):
            assert array(each).dtype == np.asarray(known).dtype, like.name
            np.testing.assert_allclose(
                array(each), known, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype], err_msg=like.name
            )


@pytest.mark.parametrize("dtype", DTYPES)
def test_products(dtype: type):
    A, B, S = some(dtype, 9, 9), some(dtype, 9, 9), some(dtype, 9, 9)
    a, b, s = (mn.asarray(sp.csr_array(one), blocks=3) for one in (A, B, S))
    power = np.linalg.matrix_power
    wanted = {
        "a @ b": (a @ b, sp.csr_array(A) @ sp.csr_array(B)),
        "a.T @ a": (a.T @ a, sp.csr_array(A).T @ sp.csr_array(A)),
        "a.conj().T @ a": (a.conj().T @ a, A.conj().T @ A),
        "a with real": (a @ mn.asarray(sp.csr_array(B.real)), A @ B.real),
        "a with ones": (a @ mn.asarray(sp.csr_array(B != 0)), A @ (B != 0)),
        "tensordot": (np.tensordot(a, b, 1), A @ B),
        "matrix_power": (power(a, 3), power(A, 3)),
        "three": (a @ b @ s, A @ B @ S),
        "trace": (np.trace(a @ b), np.trace(A @ B)),
        "under a mask": (mn.matmul(a, b, mask=s), A @ B * (S != 0)),
        "outside a mask": (mn.matmul(a, b, mask=~(s != 0)), A @ B * (S == 0)),
        "under a dense mask": (mn.matmul(a, b, mask=np.tri(9)), A @ B * np.tri(9)),
        "sampled": (s * (a @ b), S * (A @ B)),
        "sampled dense": (s * (mn.asarray(A) @ mn.asarray(B)), S * (A @ B)),
        "sampled by one": (s * (a @ mn.asarray(B)), S * (A @ B)),
        "sampled by another": (s * (mn.asarray(A) @ b), S * (A @ B)),
        "summed": ((s * (a @ b)).sum(axis=1), (S * (A @ B)).sum(axis=1)),
        "with the identity": (mn.eye(9, dtype=dtype) @ a, A),
        "with a diagonal": (mn.diag(mn.asarray(A[0])) @ b, np.diag(A[0]) @ B),
        "in a loop": (mn.iterate(lambda x: a @ x, b, max_iterations=2)[0], A @ A @ B),
    }
    found = mn.compute(*(one for one, _ in wanted.values()))
    for (name, (_, expected)), one in zip(wanted.items(), found, strict=True):
        known = array(expected)
        np.testing.assert_allclose(
            array(one), known, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype], err_msg=name
        )
    assert found[0].dtype == dtype
    assert hasattr(found[0], "todense")


@pytest.mark.parametrize("semiring", SEMIRINGS_WITH_LOOPS)
def test_semirings_of_complex_numbers_work_or_are_refused_when_recorded(semiring: str):
    A, B = some(np.complex128, 6, 6), some(np.complex128, 6, 6)
    met = (A != 0).astype(int) @ (B != 0).astype(int)
    a = mn.asarray(sp.csr_array(A), blocks=2)
    for b, mask in itertools.product((mn.asarray(sp.csr_array(B)), mn.asarray(B)), (None, a != 0)):
        if semiring.startswith("min"):
            with pytest.raises(mn.errors.DTypeError, match="real numbers"):
                mn.matmul(a, b, semiring=semiring, mask=mask)
            continue
        found = array(mn.matmul(a, b, semiring=semiring, mask=mask).compute())
        if not b.sparse:  # whose zeros are elements
            met = (A != 0).astype(int) @ np.ones((6, 6), int) if semiring == "plus_pair" else met
        known = {"plus_times": A @ B, "plus_pair": met}.get(semiring)
        if known is None:
            true = B != 0 if semiring in ("lor_land", "lor_second") else np.ones((6, 6), bool)
            known = ((A != 0).astype(int) @ (true if not b.sparse else B != 0).astype(int)) > 0
        np.testing.assert_allclose(found, known if mask is None else np.where(A != 0, known, 0), rtol=1e-13)


SYMMETRIES = ("general", "symmetric", "hermitian", "skew-symmetric")


@pytest.mark.parametrize("symmetry", SYMMETRIES)
@pytest.mark.parametrize("layout", ["coordinate", "array"])
def test_matrix_market_files_are_read_as_by_scipy(tmp_path: Path, layout: str, symmetry: str):
    A = np.tril(some(np.complex128, 9, 9) * np.pi, -1)
    diagonal = np.diag(some(np.complex128, 9, 9).ravel()[:9])
    A = {
        "general": A + some(np.complex128, 9, 9),
        "symmetric": A + A.T + diagonal,
        "hermitian": A + A.conj().T + diagonal.real,
        "skew-symmetric": A - A.T,
    }[symmetry]
    path = tmp_path / "a.mtx"
    scipy.io.mmwrite(path, sp.coo_array(A) if layout == "coordinate" else A, symmetry=symmetry, precision=17)
    found = mn.load(path)
    assert found.dtype == np.complex128
    assert found.sparse == (layout == "coordinate")
    assert np.array_equal(array(found.compute()), array(scipy.io.mmread(path)))


@pytest.mark.parametrize("is_sparse", [True, False])
def test_matrix_market_files_are_written_for_scipy(tmp_path: Path, is_sparse: bool):
    A = some(np.complex128, 9, 7) * np.pi
    A[2, 3], A[3, 3], A[4, 4] = complex(np.inf, -0.0), complex(-1, np.nan), complex(5e-324, -1.7e308)
    path = tmp_path / "a.mtx"
    mn.save(mn.asarray(sp.csr_array(A) if is_sparse else A, blocks=(2, 2)), path)
    back = array(mn.load(path).compute())
    for one in (back, array(scipy.io.mmread(path))):
        assert one.dtype == A.dtype
        assert np.array_equal(one.real, A.real)
        assert np.array_equal(one.imag, A.imag, equal_nan=True)


def test_bad_complex_files_are_refused(write_text: Callable[[str], Path]):
    for text, reason in (
        ("complex general\n2 2 1\n1 1 1.0\n", "3 columns where 4"),
        ("complex general\n2 2 1\n1 1 1.0 2.0 3\n", "5 columns where 4"),
        ("complex general\n2 2 1\n1 1 1.0 x\n", "'x' is not a number"),
        ("complex hermitian\n2 3 1\n1 1 1.0 0\n", "symmetric"),
        ("real hermitian\n2 2 1\n1 1 1.0\n", "only a complex matrix is hermitian"),
        ("complex general\n2 2 9\n1 1 1 0\n", "no room"),
    ):
        with pytest.raises(mn.errors.FileFormatError, match=reason):
            mn.load(write_text(f"%%MatrixMarket matrix coordinate {text}")).compute()


@pytest.fixture
def write_text(tmp_path: Path) -> Callable[[str], Path]:
    def write(text: str) -> Path:
        path = tmp_path / "bad.mtx"
        path.write_text(text)
        return path

    return write
