"""Chains of elementwise functions give the bits of the functions one by one, tile by tile."""

from __future__ import annotations

import tracemalloc
from itertools import pairwise

import numpy as np
import pytest
import strategies
from block_checks import array_of, assert_same, assert_well_formed, mask_of
from hypothesis import given, settings
from hypothesis import strategies as st

from matnb.blocks.formats import Csr, Dense
from matnb.blocks.kernels.elementwise import chains
from matnb.blocks.kernels.elementwise.chains import apply_chain
from matnb.blocks.kernels.elementwise.elementwise import Link, apply
from matnb.blocks.kernels.elementwise.tile_loops import TILE
from matnb.blocks.kernels.elementwise.tiles import form_of, write_tiles
from matnb.blocks.semiring import ANNIHILATORS
from matnb.errors import ShapeError, UnsupportedError

FLOAT, TRUTH, LONG = np.dtype(float), np.dtype(bool), np.dtype("int64")
# sqrt(a * a + a * a) * 2 - abs(a - .5) / (a + 1) + exp(-a), of a, 2, .5 and 1
SUM_OF_FUNCTIONS = (
    ("multiply", 0, 0), ("add", 4, 4), ("sqrt", 5), ("multiply", 6, 1), ("subtract", 0, 2),
    ("absolute", 8), ("add", 0, 3), ("divide", 9, 10), ("subtract", 7, 11), ("negative", 0), ("exp", 13),
    ("add", 12, 14),
)  # fmt: skip
SCALARS = tuple(Dense(np.array(value)) for value in (2.0, 0.5, 1.0))
FUNCTIONS = (
    "add",
    "multiply",
    "subtract",
    "maximum",
    "floor_divide",
    "divmod",
    "less",
    "sqrt",
    "where",
    "astype",
)


@pytest.fixture(autouse=True)
def small_tiles(monkeypatch):
    monkeypatch.setattr(chains, "TILE_ELEMENTS", 4)


def one_by_one(links, operands):
    values = list(operands)
    for link in links:
        read = [values[place] for place in link.arguments]
        values.append(apply(link.name, read, link.input_dtypes, link.dtype, link.output, link.sparse))
    return values[-1]


def assert_same_bits(found, expected):
    assert_well_formed(found)
    assert type(found) is type(expected)
    assert_same(found, expected.shape, expected.dtype, array_of(expected))
    np.testing.assert_array_equal(mask_of(found), mask_of(expected))
    if expected.dtype.kind == "f":
        np.testing.assert_array_equal(np.signbit(array_of(found)), np.signbit(array_of(expected)))


def link_of(name, arguments, dtypes, sparse=False, output=0, dtype=None):
    """Return a link of the dtypes that NumPy chooses, cast to ``dtype``."""
    if name == "astype":
        return Link(name, dtypes, dtype or FLOAT, 0, sparse, arguments)
    if name == "where":
        inputs, outputs = (TRUTH, *dtypes[1:]), (np.result_type(*dtypes[1:]),)
    else:
        ufunc = getattr(np, name)
        found = ufunc.resolve_dtypes((*dtypes, *[None] * ufunc.nout))
        inputs, outputs = found[: ufunc.nin], found[ufunc.nin :]
    return Link(name, inputs, dtype or outputs[output], output, sparse, arguments)


@st.composite
def dense_chains(draw):
    """Draw operands that broadcast, and links of several dtypes and functions that read any value before."""
    shape = draw(strategies.shapes(least=1, longest=7))
    operands = []
    for _ in range(draw(st.integers(1, 3))):
        own = tuple(1 if draw(st.booleans()) else length for length in shape)
        own = draw(st.sampled_from([shape, own, own[draw(st.integers(0, len(own))) :]]))
        dtype = draw(st.sampled_from(strategies.SPARSE_DTYPES))
        operands.append(draw(strategies.dense_blocks(own, dtype)))
    dtypes = [operand.dtype for operand in operands]
    links = []
    for _ in range(draw(st.integers(1, 6))):
        name = draw(st.sampled_from(FUNCTIONS))
        count = {"where": 3, "astype": 1, "sqrt": 1}.get(name, 2)
        places = tuple(draw(st.integers(0, len(dtypes) - 1)) for _ in range(count))
        read = tuple(dtypes[place] for place in places)
        if name != "astype" and name != "where" and all(dtype.kind == "b" for dtype in read):
            name, places, read = "logical_or", (places[0],) * 2, (read[0],) * 2
        if name == "sqrt" or name == "astype":
            places, read = places[:1], read[:1]
        output = draw(st.integers(0, 1)) if name == "divmod" else 0
        cast_to = draw(st.sampled_from([None, None, FLOAT, LONG])) if name != "where" else None
        links.append(link_of(name, places, read, output=output, dtype=cast_to))
        dtypes.append(links[-1].dtype)
    return links, operands


@settings(max_examples=300)
@given(dense_chains())
def test_dense_chains_give_the_bits_of_their_links(chain):
    links, operands = chain
    assert_same_bits(apply_chain(links, operands), one_by_one(links, operands))


SPARSE_FUNCTIONS = {
    "multiply": 2, "add": 2, "subtract": 2, "maximum": 2, "negative": 1, "sqrt": 1, "square": 1, "astype": 1
}  # fmt: skip


@st.composite
def sparse_chains(draw):
    """Draw blocks, some of one pattern, and a scalar, and links that keep absent elements absent."""
    shape = draw(strategies.matrix_shapes())
    first = draw(strategies.sparse_blocks(shape, FLOAT))
    operands = [first, draw(strategies.sparse_blocks(shape, FLOAT)), Dense(np.array(2.0))]
    if isinstance(first, Csr):
        values = np.arange(first.nnz, dtype=float)
        operands.append(Csr(shape, first.pointers, first.columns, values, FLOAT))
    sparse = [not isinstance(operand, Dense) for operand in operands]
    allowed = [place for place in range(len(operands)) if place != 1 or draw(st.booleans())]
    links = []
    for _ in range(draw(st.integers(1, 5))):
        name = draw(st.sampled_from(sorted(SPARSE_FUNCTIONS)))
        places = tuple(draw(st.sampled_from(allowed)) for _ in range(SPARSE_FUNCTIONS[name]))
        is_sparse = [sparse[place] for place in places]
        if any(is_sparse) and not all(is_sparse) and name not in ANNIHILATORS:
            name = "multiply"
        links.append(link_of(name, places, (FLOAT,) * len(places), sparse=any(is_sparse)))
        allowed.append(len(sparse))
        sparse.append(any(is_sparse))
    return links, operands


@settings(max_examples=300)
@given(sparse_chains())
def test_sparse_chains_give_the_bits_of_their_links(chain):
    links, operands = chain
    assert_same_bits(apply_chain(links, operands), one_by_one(links, operands))


def test_a_dense_result_of_sparse_operands():
    block = Csr((1, 9), np.array([0, 2], np.int32), np.array([1, 8], np.int32), np.array([2.0, -0.0]), FLOAT)
    links = [link_of("multiply", (0, 0), (FLOAT, FLOAT), sparse=True), link_of("exp", (1,), (FLOAT,))]
    assert_same_bits(apply_chain(links, [block]), one_by_one(links, [block]))


def test_ones_of_a_pattern_stay_a_pattern():
    pattern = Csr((1, 9), np.array([0, 6], np.int32), np.arange(6, dtype=np.int32), None, FLOAT)
    links = [
        link_of("multiply", (0, 0), (FLOAT, FLOAT), sparse=True),
        link_of("sqrt", (1,), (FLOAT,), sparse=True),
    ]
    found = apply_chain(links, [pattern])
    assert found.values is None
    assert np.shares_memory(found.columns, pattern.columns)


@pytest.mark.parametrize("shape", [(10_000,), (100, 100), (2, 5000), (10_000, 1), (5, 50, 40)])
def test_the_sum_of_functions(shape, monkeypatch):
    monkeypatch.setattr(chains, "TILE_ELEMENTS", 512)
    a = np.random.default_rng(1).random(shape)
    links = [link_of(name, places, (FLOAT,) * len(places)) for name, *places in SUM_OF_FUNCTIONS]
    links = [Link(one.name, one.input_dtypes, FLOAT, 0, False, tuple(one.arguments)) for one in links]
    found = apply_chain(links, [Dense(a), *SCALARS])
    expected = np.sqrt(a * a + a * a) * 2 - abs(a - 0.5) / (a + 1) + np.exp(-a)
    assert_same(found, shape, FLOAT, expected)


def test_memory_is_the_result_and_a_few_tiles(monkeypatch):
    monkeypatch.setattr(chains, "TILE_ELEMENTS", 1000)
    operands = [Dense(np.random.default_rng(1).random(100_000)), *SCALARS]
    links = [
        Link(name, (FLOAT,) * len(places), FLOAT, 0, False, tuple(places))
        for name, *places in SUM_OF_FUNCTIONS
    ]
    apply_chain(links, operands)
    tracemalloc.start()
    try:
        apply_chain(links, operands)
        assert tracemalloc.get_traced_memory()[1] < 800_000 + 14 * 8192 + 20_000
    finally:
        tracemalloc.stop()


def test_what_a_link_refuses_the_chain_refuses():
    links = [link_of("add", (0, 0), (FLOAT, FLOAT)), link_of("add", (2, 1), (FLOAT, FLOAT))]
    with pytest.raises(ShapeError, match="do not broadcast"):
        apply_chain(links, [Dense(np.ones(7)), Dense(np.ones(6))])
    links = [Link("no_such_function", (FLOAT,), FLOAT, 0, False, (0,)), link_of("sqrt", (1,), (FLOAT,))]
    for length in (2, 7):
        with pytest.raises(UnsupportedError, match="no elementwise function 'no_such_function'"):
            apply_chain(links, [Dense(np.ones(length))])
    links = [link_of("power", (0, 0), (LONG, LONG)), link_of("add", (1, 1), (LONG, LONG))]
    with pytest.raises(ValueError, match="negative integer powers"):
        apply_chain(links, [Dense(np.full(7, -1))])


@pytest.mark.parametrize("shape", [(50, 70), (7, 1100), (3, 5, 40)])
def test_windows_run_by_the_machine_row_by_row(shape: tuple[int, ...]) -> None:
    larger = np.random.default_rng(2).standard_normal(tuple(length + 2 for length in shape))
    keys = [tuple(slice(start, start + length) for length in shape) for start in range(3)]
    arrays = [larger[key] for key in keys] + [np.random.default_rng(3).standard_normal(shape)]
    double = (np.dtype(float),) * 2
    links = [
        Link("add", double, double[0], 0, False, (0, 1)),
        Link("multiply", double, double[0], 0, False, (4, 2)),
        Link("subtract", double, double[0], 0, False, (5, 3)),
    ]
    expected = (arrays[0] + arrays[1]) * arrays[2] - arrays[3]
    tiles = write_tiles(tuple(links), tuple(map(form_of, arrays)), 0, None)
    assert tiles is not None
    for bounds in ((0, expected.size), (0, 1, 33, expected.size // 2, expected.size)):
        out = np.full(shape, np.nan)
        run = tiles.begin(arrays, out)
        for begin, end in pairwise(bounds):
            run.run(begin, end, np.empty((tiles.num_buffers, TILE)))
        np.testing.assert_array_equal(out, expected)
