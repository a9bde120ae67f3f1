"""Reductions of chains, and several of one block, in one pass: the bits of one by one, in little memory."""

from __future__ import annotations

import tracemalloc
from math import prod

import numpy as np
import pytest

from matnb.blocks.formats import Dense
from matnb.blocks.kernels.calls import unpack
from matnb.blocks.kernels.elementwise.chains import apply_chain
from matnb.blocks.kernels.elementwise.elementwise import Link
from matnb.blocks.kernels.elementwise.one_pass import Share, packed, reduce_chain
from matnb.blocks.kernels.reductions.reductions import reduce_block

FLOAT, BOOL = np.dtype(float), np.dtype(bool)
LINKS = [
    Link("subtract", (FLOAT, FLOAT), FLOAT, 0, False, (0, 1)),
    Link("absolute", (FLOAT,), FLOAT, 0, False, (2,)),
    Link("square", (FLOAT,), FLOAT, 0, False, (3,)),
    Link("greater", (FLOAT, FLOAT), BOOL, 0, False, (2, 1)),
]


def operands(shape: tuple[int, ...], dtype: str = "float64") -> list[Dense]:
    rng = np.random.default_rng(0)
    return [Dense((rng.standard_normal(shape) * 9).astype(dtype)), Dense(rng.standard_normal(shape[-1:]))]


def values_of(given: list[Dense]) -> list[Dense]:
    values = list(given)
    for link in LINKS:
        one = Link(link.name, link.input_dtypes, link.dtype, 0, False, tuple(range(len(link.arguments))))
        values.append(apply_chain([one], [values[place] for place in link.arguments]))
    return values


@pytest.mark.parametrize("along", [None, 0])
@pytest.mark.parametrize("dtype", ["float64", "float32", "int64"])
@pytest.mark.parametrize(
    "shape", [(70,), (70_001,), (140_007,), (50_001, 3), (70, 1999), (2, 70_000), (9, 5, 2000)]
)
def test_every_share_has_the_bits_that_it_has_alone(shape, dtype, along):
    given = operands(shape, dtype)
    every, start = tuple(range(len(shape))), 0 if along is None else 100
    shares = [
        *(Share(place, "sum", every, FLOAT, along, start) for place in (2, 3, 4)),
        *(Share(place, "deviation", every, FLOAT, along, start) for place in (2, 4)),
        *(Share(place, name, every, FLOAT) for place in (2, 4) for name in ("min", "max")),
        Share(5, "any", every, BOOL),
        Share(5, "sum", every, np.dtype(int)),
        Share(2, "prod", every, FLOAT),
        Share(4, "sum", (0,), FLOAT, along, start),
        Share(0, "max", every, np.dtype(dtype)),
    ]
    if len(shape) > 1:
        shares += [Share(3, "sum", every[1:], FLOAT), Share(3, "min", (len(shape) - 1,), FLOAT)]
    values = values_of(given)
    for some in (shares, [one for one in shares if one.operation != "prod"], shares[-1:], shares[1:2]):
        found = reduce_chain(LINKS, some, given)
        for share, part in zip(some, found, strict=True):
            block = values[share.place]
            alone = reduce_block(share.operation, block, share.axes, share.dtype, share.along, share.start)
            assert part.values.tobytes() == alone.values.tobytes(), share
            assert (part.shape, part.dtype) == (alone.shape, alone.dtype)
    outputs = [(part.shape, part.dtype) for part in found]
    block = packed(found, outputs)
    for place, part in enumerate(found):
        assert unpack([block], outputs, place).values.tobytes() == part.values.tobytes()


@pytest.mark.parametrize("start", [None, 0, 1, 64, 100, 4096, 5000])
@pytest.mark.parametrize("length", [1, 63, 600, 4095, 9005, 300_000])
def test_what_is_made_and_measured_by_one_loop_has_the_bits_of_each_alone(length, start):
    x = np.random.default_rng(length).standard_normal(length) * 9 + 50
    links = [LINKS[0], LINKS[2]]
    links[1] = Link("square", (FLOAT,), FLOAT, 0, False, (2,))
    taken: list[int] = []

    def take(shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
        taken.append(prod(shape))
        return np.empty(shape, dtype)

    given, along = [Dense(x), Dense(np.array(47.25))], None if start is None else 0
    block = apply_chain(links, given)
    sums = [Share(3, name, (0,), FLOAT, along, start or 0) for name in ("sum", "deviation")]
    shares = [*sums, Share(3, "min", (0,), FLOAT), Share(3, "max", (0,), FLOAT)]
    reduce_chain(links, shares, [Dense(np.ones(300_000)), given[1]])  # compiled from here on
    for some in (shares, shares[1:2], shares[2:], shares[::3]):
        for share, part in zip(some, reduce_chain(links, some, given, take), strict=True):
            alone = reduce_block(share.operation, block, share.axes, share.dtype, share.along, share.start)
            assert part.values.tobytes() == alone.values.tobytes()
            assert part.shape == alone.shape
    assert max(taken, default=0) < 2**14  # tiles of the machine, and no slab


@pytest.mark.parametrize("odd", [np.nan, np.inf, 0.0, -0.0])
@pytest.mark.parametrize("place", [3, 4097, 9004])
def test_odd_elements_of_what_is_made_and_measured_by_one_loop(odd, place):
    x = np.random.default_rng(2).random(9005) + 1.0
    x[place] = odd
    links = [Link("multiply", (FLOAT, FLOAT), FLOAT, 0, False, (0, 1))]
    shares = [Share(2, name, (0,), FLOAT) for name in ("min", "max")]
    shares += [Share(2, name, (0,), FLOAT, 0, 0) for name in ("sum", "deviation")]
    reduce_chain(links, shares, [Dense(np.ones(300_000)), Dense(np.array(2.0))])
    given = [Dense(x), Dense(np.array(-2.0))]
    block = apply_chain(links, given)
    for share, part in zip(shares, reduce_chain(links, shares, given), strict=True):
        alone = reduce_block(share.operation, block, share.axes, share.dtype, share.along, share.start)
        assert part.values.tobytes() == alone.values.tobytes()


@pytest.mark.parametrize("shape", [(2_000_000,), (20_000, 100)])
def test_a_chain_that_is_reduced_takes_tiles(shape):
    given = [Dense(np.ones(shape)), Dense(np.ones(shape[-1:]))]
    every = tuple(range(len(shape)))
    shares = [Share(4, name, every, FLOAT) for name in ("sum", "max", "deviation")]
    reduce_chain(LINKS[:3], shares, given)
    tracemalloc.start()
    reduce_chain(LINKS[:3], shares, given)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4 * 2**20  # the block takes 16 MB


def test_memory_of_tiles_is_given_back():
    taken: list[int] = []
    given: list[int] = []

    def take(shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
        array = np.empty(shape, dtype)
        taken.append(id(array))
        held.append(array)
        return array

    held: list[np.ndarray] = []
    reduce_chain(
        LINKS, [Share(4, "max", (0,), FLOAT)], operands((200_000,)), take, lambda one: given.append(id(one))
    )
    assert sorted(taken) == sorted(given)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(
    "odd", [[np.nan], [np.inf, -np.inf, np.nan], [np.inf], [0.0, -0.0], [-0.0, 0.0], [3.0]]
)
def test_extremes_that_a_deviation_finds_as_well_are_numpys(odd, dtype):
    every, element = (0,), np.dtype(dtype)
    for place in (17, 4096, 8999):  # among leaves of 64 that are measured together, of one that is cut
        x = np.random.default_rng(2).random(9005) + 1.0
        x[place : place + len(odd)] = odd
        for block in (Dense(x.astype(dtype)), Dense(-x.astype(dtype))):
            shares = [Share(0, name, every, element) for name in ("min", "max")]
            found = reduce_chain([], [*shares, Share(0, "deviation", every, FLOAT, 0, 0)], [block])
            for share, part in zip(shares, found, strict=False):
                alone = reduce_block(share.operation, block, every, element)
                assert part.values.tobytes() == alone.values.tobytes()
