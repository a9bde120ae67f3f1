"""Blocks that a user asked for are those they get, whatever was asked for before and is stored."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import psutil
import pytest
import scipy.sparse as sp

import matnb as mn
from matnb.errors import ShapeError

DENSE = np.random.default_rng(0).random((300, 70))
SPARSE = sp.random_array((300, 70), density=0.1, format="csr", rng=1)


@pytest.fixture(scope="module", params=[1, 3])
def workers(request: pytest.FixtureRequest) -> Iterator[int]:
    with mn.start(workers=request.param, threads=1):
        yield request.param
    mn.stop()


@pytest.fixture(params=[DENSE, SPARSE], ids=["dense", "sparse"])
def given(request: pytest.FixtureRequest) -> object:
    return request.param


def counts(array: mn.DistArray) -> tuple[int, ...]:
    assert array.layout is not None
    return array.layout.grid.counts


def values(array: mn.DistArray) -> np.ndarray:
    return array.to_scipy().toarray() if array.sparse else array.compute()


def plain(given: object) -> np.ndarray:
    return given.toarray() if sp.issparse(given) else given


@pytest.mark.parametrize(("first", "second"), [(2, 8), (8, 2)])
def test_each_handle_has_the_blocks_it_asked_for(
    workers: int, given: object, first: int, second: int
) -> None:
    a = mn.asarray(given, blocks=first)
    b = mn.asarray(given, blocks=second)
    a.persist()
    assert counts(a) == (first, 1)
    b.persist()
    assert (counts(a), counts(b)) == ((first, 1), (second, 1))
    np.testing.assert_array_equal(values(a), plain(given))
    np.testing.assert_array_equal(values(b), plain(given))
    np.testing.assert_array_equal(values(a + b), 2 * plain(given))


def test_a_stored_array_gets_new_cuts(workers: int, given: object) -> None:
    stored = mn.asarray(given).persist()
    for blocks, expected in [(5, (5, 1)), ([2, 3], (2, 3)), ([[0, 1, 300], None], (2, 1)), (1, (1, 1))]:
        cut = mn.asarray(stored, blocks=blocks).persist()
        assert counts(cut) == expected
        assert cut.sparse == stored.sparse
        np.testing.assert_array_equal(values(cut), plain(given))
    computed = mn.asarray((stored * 2).persist(), blocks=[3, 2]).persist()
    assert counts(computed) == (3, 2)
    np.testing.assert_array_equal(values(computed), 2 * plain(given))


def test_transposes_slices_and_products_of_cut_arrays(workers: int, given: object) -> None:
    a, b = mn.asarray(given, blocks=2), mn.asarray(given, blocks=[4, 3])
    for one in (a, b):
        np.testing.assert_array_equal(values(one.T), plain(given).T)
        np.testing.assert_array_equal(values(one[10:280:3, ::-1]), plain(given)[10:280:3, ::-1])
        np.testing.assert_array_equal(values(mn.asarray(one.T, blocks=[2, 5])), plain(given).T)
        np.testing.assert_array_equal(values(mn.asarray(one[5:], blocks=7)), plain(given)[5:])
    np.testing.assert_allclose(values(a.T @ b), plain(given).T @ plain(given))


def test_an_array_made_from_parameters_is_cut_where_asked(workers: int) -> None:
    for array, expected in [
        (mn.eye(40, blocks=[4, 2]), np.eye(40)),
        (mn.eye(40, blocks=3), np.eye(40)),
        (mn.arange(10, blocks=4), np.arange(10)),
    ]:
        array.persist()
        np.testing.assert_array_equal(values(array), expected)
    assert counts(mn.eye(40, blocks=[4, 2]).persist()) == (4, 2)
    assert counts(mn.arange(10, blocks=4).persist()) == (4,)
    same = [mn.random.default_rng(3).random((20, 4), blocks=blocks).persist() for blocks in (1, 5)]
    assert [counts(one) for one in same] == [(1, 1), (5, 1)]
    np.testing.assert_array_equal(values(same[0]), values(same[1]))
    graphs = [mn.random.rmat(6, blocks=blocks).persist() for blocks in (2, [3, 2])]
    assert [counts(one) for one in graphs] == [(2, 1), (3, 2)]
    np.testing.assert_array_equal(values(graphs[0]), values(graphs[1]))


def test_a_file_is_cut_where_asked_each_time(workers: int, tmp_path: Path) -> None:
    path = tmp_path / "edges.txt"
    edges = np.random.default_rng(0).integers(0, 50, (200, 2)) * 7
    path.write_text("".join(f"{one} {other}\n" for one, other in edges))
    loaded = [mn.load(path, relabel=True, blocks=blocks) for blocks in (2, [3, 4], None, 5)]
    assert [counts(one) for one in loaded if one is not loaded[2]] == [(2, 1), (3, 4), (5, 1)]
    for one in loaded:
        np.testing.assert_array_equal(values(one), values(loaded[0]))
        assert one.labels is not None
        np.testing.assert_array_equal(one.labels.compute(), np.unique(edges))
    again = mn.asarray(loaded[0], blocks=7).persist()
    assert counts(again) == (7, 1)
    assert again.labels is not None
    np.testing.assert_array_equal(again.labels.compute(), np.unique(edges))
    with pytest.raises(ShapeError, match="axes"):
        mn.load(path, blocks=[1, 2, 3])


def test_what_is_known_of_given_data_does_not_hang_on_its_cuts(workers: int) -> None:
    facts, expected = mn.asarray(SPARSE, blocks=6).facts(), mn.asarray(SPARSE).facts()
    assert facts.nnz == SPARSE.nnz
    assert facts.num_bytes == expected.num_bytes


def test_a_single_element_stays_a_constant(workers: int) -> None:
    scaled = mn.asarray(SPARSE) * mn.asarray([2.0], blocks=1)
    assert scaled.sparse
    assert np.maximum(mn.asarray(SPARSE), mn.asarray([0.0], blocks=1)).sparse


@pytest.mark.cluster
def test_a_file_is_read_again_into_the_same_cuts_after_a_loss(tmp_path: Path) -> None:
    path = tmp_path / "a.mtx"
    with mn.start(workers=2, threads=1, processes=True) as session:
        mn.save(mn.asarray(SPARSE), path)
        loaded = mn.load(path, blocks=[3, 2])
        assert counts(loaded) == (3, 2)
        pid = next(iter(session.cluster.client.run(os.getpid).values()))
        psutil.Process(pid).kill()
        loaded.persist()
        assert counts(loaded) == (3, 2)
        np.testing.assert_array_equal(values(loaded), SPARSE.toarray())
    mn.stop()
