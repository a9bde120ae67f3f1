"""Where a block's entries are, in a few numbers, by brute force; and blocks that keep no others alive."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from matnb.blocks.formats import Csr, Dense, Empty, csr_block
from matnb.blocks.kernels.profiles import entry_counts, entry_profile, on_its_own
from matnb.blocks.kernels.shaping.shaping import cut

counts_by_row = st.lists(st.integers(0, 40), min_size=1, max_size=60)


def _block(counts: list[int], num_columns: int = 50) -> Csr:
    columns = np.concatenate([np.arange(count) for count in counts]).astype(np.int32)
    pointers = np.append(0, np.cumsum(counts)).astype(np.int32)
    values = np.arange(columns.size, dtype=np.float64)
    return Csr((len(counts), num_columns), pointers, columns, values, np.dtype(np.float64))


@given(counts_by_row, st.integers(1, 20))
def test_a_profile_has_the_entries_before_its_places_and_both_ends_of_every_heavy_row(
    counts: list[int], num_parts: int
) -> None:
    places, entries = entry_profile([_block(counts)], num_parts).values
    before = np.append(0, np.cumsum(counts))
    assert places[0] == 0
    assert places[-1] == len(counts)
    assert (np.diff(places) > 0).all()
    np.testing.assert_array_equal(entries, before[places])
    assert len(places) <= 2 * num_parts + 2
    share = sum(counts) / num_parts
    for row, count in enumerate(counts):
        if count > share:
            assert {row, row + 1} <= set(places.tolist())
    # What is between two places is a row, or no more than a share.
    assert all(
        stop == start + 1 or entry <= share + 1e-9
        for start, stop, entry in zip(places, places[1:], np.diff(entries), strict=False)
    )


def test_a_block_without_entries_has_two_places() -> None:
    empty = Empty((7, 3), np.dtype(np.float64))
    np.testing.assert_array_equal(entry_profile([empty], 4).values, [[0, 7], [0, 0]])
    dense = Dense(np.ones((7, 3)))
    np.testing.assert_array_equal(entry_profile([dense], 4).values, [[0, 7], [0, 21]])


@given(counts_by_row, st.data())
def test_entries_are_counted_between_edges_of_both_axes(counts: list[int], data: st.DataObject) -> None:
    block = _block(counts)
    rows = data.draw(st.sets(st.integers(1, len(counts))))
    columns = data.draw(st.sets(st.integers(1, 50)))
    row_edges = tuple(sorted({0, *rows, len(counts)}))
    column_edges = tuple(sorted({0, *columns, 50}))
    found = entry_counts([block], row_edges, column_edges).values
    stored = sp.csr_array((np.ones(block.nnz), block.columns, block.pointers), block.shape).toarray()
    expected = np.add.reduceat(np.add.reduceat(stored, row_edges[:-1], 0), column_edges[:-1], 1)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("pattern", [False, True])
def test_a_small_part_of_a_block_becomes_a_copy_and_a_large_one_stays_a_view(pattern: bool) -> None:
    whole = csr_block(sp.random(1000, 50, 0.2, "csr", random_state=0), pattern)
    small, large = cut(whole, (slice(0, 300), slice(0, 50))), cut(whole, (slice(0, 950), slice(0, 50)))
    copied, kept = on_its_own([small]), on_its_own([large])
    assert isinstance(copied, Csr)
    assert isinstance(whole, Csr)
    assert kept is large
    assert not np.shares_memory(copied.columns, whole.columns)
    np.testing.assert_array_equal(copied.columns, small.columns)
    np.testing.assert_array_equal(copied.pointers, small.pointers)
    np.testing.assert_array_equal(copied.entries, small.entries)
    assert (copied.values is None) == pattern


def test_a_part_of_a_part_is_measured_by_the_whole_that_it_keeps_alive() -> None:
    values = np.arange(1000.0)
    once = on_its_own([Dense(values[:900])])
    assert np.shares_memory(once.values, values)
    twice = on_its_own([Dense(once.values[:700])])
    assert not np.shares_memory(twice.values, values)
    received = np.frombuffer(values.tobytes(), np.float64)
    assert not np.shares_memory(on_its_own([Dense(received[:10])]).values, received)
