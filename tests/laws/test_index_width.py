"""A sparse array has at most 2**31 - 1 rows and columns: a longer one is refused when it is recorded.

At that length everything either works, its numbers those of SciPy, or says before it runs what it would take.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import matnb as mn
from matnb.blocks.formats import LARGEST_LENGTH, block_from
from matnb.errors import MatnbError, TooLargeError

PLACES = (5, 2**30, 2**31 - 7, 2**31 - 3)


def hypersparse(columns: int, first: int = 0) -> sp.csr_array:
    """Three rows and five entries, one of them in the last column."""
    places = [min(one + first, columns - 1) for one in PLACES]
    rows, values = [0, 2, 2, 0, 1], [1.0, 2.0, 3.0, 4.0, 5.0]
    return sp.csr_array(sp.coo_array((values, (rows, [*places, columns - 1])), shape=(3, columns)))


def wide(columns: int) -> mn.DistArray:
    return mn.asarray(hypersparse(columns))


def halves(columns: int) -> list[mn.DistArray]:
    return [wide(columns // 2), wide(columns - columns // 2)]


def small() -> mn.DistArray:
    return mn.asarray(sp.csr_array(np.eye(3)))


def assigned(columns: int) -> mn.DistArray:
    one, other = halves(columns)
    made = np.concatenate([one, other], axis=1)
    made[1, 5] = 7.0
    return made


# Of a length, an array that has so many columns or rows; of an odd one, some that are one shorter.
MAKERS: dict[str, Callable[[int], object]] = {
    "asarray": lambda n: mn.asarray(sp.coo_array(([1.0], ([2], [5])), shape=(3, n))),
    "concatenate": lambda n: np.concatenate(halves(n), axis=1),
    "concatenate of three": lambda n: np.concatenate([wide(5), *halves(n - 5)], axis=1),
    "hstack": lambda n: np.hstack(halves(n)),
    "vstack": lambda n: np.vstack([one.T for one in halves(n)]),
    "column_stack": lambda n: np.column_stack(halves(n)),
    "block": lambda n: np.block([halves(n)]),
    "append": lambda n: np.append(*halves(n), axis=1),
    "c_": lambda n: mn.c_[tuple(halves(n))],
    "r_": lambda n: mn.r_[tuple(one.T for one in halves(n))],
    "tile": lambda n: np.tile(wide(n // 2), (1, 2)),
    "tile of rows": lambda n: np.tile(wide(n // 2).T, (2, 1)),
    "repeat": lambda n: np.repeat(wide(n // 2), 2, axis=1),
    "repeat of rows": lambda n: np.repeat(wide(n // 2).T, 2, axis=0),
    "kron": lambda n: np.kron(mn.asarray(sp.csr_array([[1.0, 2.0]])), wide(n // 2)),
    "kron with dense": lambda n: np.kron(wide(n // 2), np.ones((1, 2))),
    "pad": lambda n: np.pad(wide(n - 9), ((0, 0), (4, 5))),
    "pad of rows": lambda n: np.pad(wide(n - 9).T, ((9, 0), (0, 0))),
    "reshape": lambda n: mn.asarray(sp.coo_array(([1.0], ([0], [5])), shape=(2, n // 2))).reshape(1, -1),
    "transpose": lambda n: np.concatenate(halves(n), axis=1).T,
    "outer product of two": lambda n: mn.eye(n, 1) @ mn.eye(1, n),
    "einsum": lambda n: np.einsum("ij,jk->ik", mn.eye(n, 2), mn.eye(2, 3)),
    "eye": lambda n: mn.eye(n, 3),
    "eye of columns": lambda n: mn.eye(3, n, dtype=np.int32),
    "identity": lambda n: mn.identity(n),
    "diag": lambda n: mn.diag(mn.ones(n)),
    "diagflat": lambda n: np.diagflat(mn.ones(n - 2), 2),
    "elementwise": lambda n: np.add(*(np.concatenate(halves(n), axis=1) for _ in range(2))),
    "assignment": assigned,
}
LENGTHS = st.sampled_from((2**31 - 1, 2**31, 2**32)) | st.integers(2**31 - 9, 2**31 + 9)

pytestmark = pytest.mark.session("two workers")


@pytest.mark.parametrize("name", MAKERS)
@settings(max_examples=20)
@given(length=LENGTHS)
def test_longer_arrays_are_refused_when_they_are_recorded(name: str, length: int):
    make = MAKERS[name]
    if length <= LARGEST_LENGTH:
        found = make(length)
        assert isinstance(found, mn.DistArray)
        assert found.sparse
        assert length - 1 <= max(found.shape) <= length
        return
    with pytest.raises(TooLargeError, match=r"sparse array of shape \(.*2,147,483,647 rows") as caught:
        make(length)
    assert "leave out" in str(caught.value)


def test_files_of_longer_arrays_are_refused(tmp_path: Path):
    for length in (2**31, 2**32):
        header = tmp_path / "a.mtx"
        header.write_text(f"%%MatrixMarket matrix coordinate real general\n3 {length} 1\n1 {length} 1.0\n")
        archive = tmp_path / "a.npz"
        sp.save_npz(archive, sp.csr_array(sp.coo_array(([1.0], ([2], [length - 1])), shape=(3, length))))
        edges = tmp_path / "a.txt"
        edges.write_text(f"0 {length - 1}\n")
        scale = int(np.log2(length))
        for load in (
            partial(mn.load, header),
            partial(mn.load, archive),
            partial(mn.load, edges, relabel=False),
            partial(mn.load, edges, relabel=False, num_vertices=length),
            partial(mn.random.rmat, scale=scale, edge_factor=1),
        ):
            with pytest.raises(MatnbError, match=r"2,?147,?483,?64|at most|scale"):
                load()


def test_data_of_longer_arrays_is_refused_before_it_is_copied():
    import sparse

    for length in (2**31, 2**32):
        entries = sp.coo_array(([1.0], ([2], [length - 1])), shape=(3, length))
        for one in (
            entries,
            sp.csr_array(entries),
            sp.csr_array(entries).T,
            sparse.COO.from_scipy_sparse(entries),
        ):
            with pytest.raises(TooLargeError, match="2,147,483,647 rows"):
                block_from(one)


def listed(matrix: object) -> tuple[object, ...]:
    """Shape, places and values, in order."""
    entries = sp.coo_array(matrix)
    entries.eliminate_zeros()
    order = np.lexsort((entries.col, entries.row))
    return entries.shape, *(one[order].tolist() for one in (entries.row, entries.col, entries.data))


M = hypersparse(LARGEST_LENGTH)
OTHER = hypersparse(LARGEST_LENGTH, 2)
READERS: dict[str, tuple[Callable[[mn.DistArray, mn.DistArray], mn.DistArray], Callable[[], object]]] = {
    "itself": (lambda s, _: s, lambda: M),
    "abs(-s)": (lambda s, _: abs(-s), lambda: M),
    "s + other": (lambda s, t: s + t, lambda: M + OTHER),
    "s * other": (lambda s, t: s * t, lambda: M * OTHER),
    "maximum": (np.maximum, lambda: M.maximum(OTHER)),
    "where": (lambda s, _: np.where(s > 1, s, 0) * 1, lambda: M * (M > 1) + 0 * M),
    "right half": (lambda s, _: s[:, 2**30 :], lambda: M[:, 2**30 :]),
    "last columns": (lambda s, _: s[:, -10:], lambda: M[:, -10:]),
    "every third": (
        lambda s, _: s[:, ::3],
        lambda: of(lambda row, column: (row, column // 3), lambda c: c % 3 == 0, 3),
    ),
    "a huge step": (
        lambda s, _: s[:, 5 :: 2**31 - 20],
        lambda: sp.csr_array(([1.0], ([0], [0])), shape=(3, 2)),
    ),
    "a step beyond": (lambda s, _: s[:, 5 :: 2**40], lambda: sp.csr_array(([1.0], ([0], [0])), shape=(3, 1))),
    "backwards": (lambda s, _: s[:, ::-1], lambda: of(lambda row, column: (row, M.shape[1] - 1 - column))),
    "both backwards": (
        lambda s, _: np.flip(s),
        lambda: of(lambda row, column: (2 - row, M.shape[1] - 1 - column)),
    ),
    "roll": (
        lambda s, _: np.roll(s, 9, axis=1),
        lambda: of(lambda row, column: (row, (column + 9) % M.shape[1])),
    ),
    "triu": (lambda s, _: np.triu(s, 2**31 - 8), lambda: of(keep=lambda c: c > 2**31 - 7)),
    "tril": (lambda s, _: np.tril(s, 2**30), lambda: of(keep=lambda c: c <= 2**30 + 2)),
    "diff": (lambda s, _: np.diff(s, axis=0), lambda: M[1:] - M[:-1]),
    "halves joined": (lambda s, _: np.hstack([s[:, : 2**30], s[:, 2**30 :]]), lambda: M),
    "padded": (lambda s, _: np.pad(s[:, 5:-3], ((0, 0), (5, 3))), lambda: of(keep=lambda c: c < 2**31 - 4)),
    "regridded": (lambda s, _: mn.asarray(s, blocks=(2, [0, 9, 2**30, s.shape[1]])), lambda: M),
    "assigned": (lambda s, _: _set(s), lambda: _set_there()),
    "sum": (lambda s, _: s.sum(), lambda: M.sum()),
    "sum of rows": (lambda s, _: s.sum(axis=1), lambda: M.sum(axis=1)),
    "max of rows": (lambda s, _: s.max(axis=1), lambda: M.max(axis=1).toarray()),
    "mean of rows": (lambda s, _: s.mean(axis=1), lambda: M.sum(axis=1) / LARGEST_LENGTH),
    "any": (lambda s, _: s.any(axis=1), lambda: [True, True, True]),
    "count_nonzero": (lambda s, _: np.count_nonzero(s, axis=1), lambda: [2, 1, 2]),
    "norm": (lambda s, _: np.linalg.norm(s), lambda: np.sqrt(55.0)),
    "einsum": (lambda s, t: np.einsum("ij,ij->i", s, t), lambda: (M * OTHER).sum(axis=1)),
    "an element": (lambda s, _: s[1, LARGEST_LENGTH - 1], lambda: 5.0),
    "elements": (lambda s, _: s[[0, 1, 2], [2**31 - 3, -1, 2**30]], lambda: [4.0, 5.0, 2.0]),
    "a mask": (lambda s, _: s[s > 1], lambda: [4.0, 5.0, 2.0, 3.0]),
    "nonzero rows": (lambda s, _: np.nonzero(s)[0], lambda: listed(M)[1]),
    "nonzero columns": (lambda s, _: np.nonzero(s)[1], lambda: listed(M)[2]),
    "argwhere": (lambda s, _: np.argwhere(s), lambda: np.transpose(listed(M)[1:3])),
    "trace": (lambda s, _: np.trace(s, 2**31 - 3), lambda: 9.0),
}


def of(
    move: Callable[[int, int], tuple[int, int]] = lambda row, column: (row, column),
    keep: Callable[[int], bool] = lambda column: True,
    narrower: int = 1,
) -> sp.coo_array:
    """The entries of some columns at other places."""
    shape, rows, columns, values = listed(M)
    kept = [
        (*move(row, column), value)
        for row, column, value in zip(rows, columns, values, strict=True)
        if keep(column)
    ]
    moved_rows, moved_columns, moved_values = zip(*kept, strict=True)
    return sp.coo_array((moved_values, (moved_rows, moved_columns)), shape=(3, -(-shape[1] // narrower)))


def _set(s: mn.DistArray) -> mn.DistArray:
    made = s.copy()
    made[1, LARGEST_LENGTH - 2] = 7.0
    made[0, 5] = 9.0
    return made


def _set_there() -> sp.coo_array:
    _, rows, columns, values = listed(M)
    values[columns.index(5)] = 9.0
    return sp.coo_array(([*values, 7.0], ([*rows, 1], [*columns, LARGEST_LENGTH - 2])), shape=M.shape)


@pytest.mark.parametrize(
    "blocks", [None, pytest.param((3, [0, 6, 2**30, 2**30 + 1, LARGEST_LENGTH]), marks=pytest.mark.slow)]
)
def test_the_longest_arrays_are_read_as_by_scipy(blocks: object, tmp_path: Path):
    s, t = mn.asarray(M, blocks=blocks), mn.asarray(OTHER)
    found = mn.compute(*(call(s, t) for call, _ in READERS.values()))
    for (name, (_, known)), one in zip(READERS.items(), found, strict=True):
        wanted = known()
        if hasattr(one, "todense"):
            assert listed(one.to_scipy_sparse()) == listed(wanted), name
        else:
            np.testing.assert_allclose(one, np.reshape(wanted, np.shape(one)), rtol=1e-15, err_msg=name)
    for suffix in ("npz", "mtx"):
        mn.save(s, tmp_path / f"a.{suffix}")
        assert listed(mn.load(tmp_path / f"a.{suffix}").to_scipy()) == listed(M)
