"""R-MAT graphs: the same in any pieces, with the quarters' probabilities, and refusals."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reading import read_whole

from matnb.blocks.formats import Csr
from matnb.errors import OptionError
from matnb.io import rmat
from matnb.io.rmat import Rmat
from matnb.ops.creation import read_here


@given(
    st.integers(0, 6),
    st.integers(0, 9),
    st.integers(0, 2**64 - 1),
    st.booleans(),
    st.integers(1, 9),
    st.data(),
)
def test_pieces_and_blocks_do_not_matter(
    scale, factor, seed, permute: bool, pieces: int, data: st.DataObject
):
    source = Rmat(scale, factor, seed=seed, permute=permute)
    once = read_whole(source)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rmat, "_SMALLEST_PIECE", 1)
        patch.setattr(rmat, "_BATCH", 4 * data.draw(st.integers(1, 5)))
        again = read_whole(source, pieces, data.draw(st.integers(1, 3)))
    assert once[0] == again[0]
    assert np.array_equal(once[1], again[1])
    assert set(np.unique(once[1])) <= {0, 1}


def drawn(source: Rmat) -> tuple[np.ndarray, np.ndarray]:
    entries = source.parse(source.pieces(1)[0])
    assert entries.rows.size == source.num_drawn
    return entries.rows, entries.columns


def test_every_level_has_the_probabilities_asked_for():
    source = Rmat(8, 400, a=0.5, b=0.25, c=0.15, seed=3)
    rows, columns = drawn(source)
    for level in range(8):
        quarter = (rows >> level & 1) * 2 + (columns >> level & 1)
        shares = np.bincount(quarter, minlength=4) / source.num_drawn
        # five standard deviations of 102,400 draws
        assert np.allclose(shares, [0.5, 0.25, 0.15, 0.1], atol=5 * 0.5 / source.num_drawn**0.5)
    upper, lower = rows >> 1 & 1, rows & 1
    assert abs(np.corrcoef(upper, lower)[0, 1]) < 5 / source.num_drawn**0.5


def test_the_benchmark_graph_is_skewed():
    # by design the first of 8 equal row blocks holds about 43 % of the distinct entries
    found, block = read_here(Rmat(14, seed=1))
    assert isinstance(block, Csr)
    assert block.values is None
    assert found.pattern
    assert 0.38 < block.pointers[2**14 // 8] / block.nnz < 0.45


@pytest.mark.parametrize("scale", [0, 1, 2, 3, 7, 10])
def test_permuting_gives_the_vertices_other_numbers(scale: int):
    numbers = Rmat(scale, seed=5, permute=True)._renumbered(np.arange(2**scale, dtype=np.uint32))
    assert sorted(numbers.tolist()) == list(range(2**scale))
    plain, other = drawn(Rmat(scale, seed=5)), drawn(Rmat(scale, seed=5, permute=True))
    for before, after in zip(plain, other, strict=True):
        assert np.array_equal(after, numbers[before])
    if scale >= 7:
        assert np.count_nonzero(numbers == np.arange(2**scale)) < 2**scale / 10
        # the large degrees, which were at the smallest numbers, are spread
        heavy = np.bincount(other[0], minlength=2**scale).reshape(8, -1).sum(1) / plain[0].size
        assert heavy.max() < 0.3


def test_seeds_and_probabilities_are_part_of_the_identity():
    options = [{}, {"edge_factor": 8}, {"a": 0.5}, {"b": 0.2}, {"c": 0.1}, {"seed": 1}, {"permute": True}]
    assert len({Rmat(5, **one).identity() for one in options}) == len(options)
    assert Rmat(5, seed=np.int64(3)) == Rmat(5, seed=3)
    assert not np.array_equal(drawn(Rmat(8, seed=1))[0], drawn(Rmat(8, seed=2))[0])


@pytest.mark.parametrize(
    "options",
    [{"scale": -1}, {"scale": 32}, {"scale": 2.5}, {"scale": True}, {"edge_factor": -1}, {"a": -0.1},
     {"a": 1.1},
     {"a": 0.6, "b": 0.3, "c": 0.2},
     {"c": "x"}, {"seed": -1}, {"seed": 2**64}, {"permute": 1}, {"a": float("nan")}],
)  # fmt: skip
def test_refusals(options):
    with pytest.raises(OptionError, match=next(reversed(options)) if len(options) == 1 else r"a \+ b \+ c"):
        Rmat(**({"scale": 5} | options))
