"""Chains of small arrays, analyzed once: the bits of functions one by one, also over an operand's memory."""

from __future__ import annotations

import numpy as np
import pytest

from matnb.blocks.formats import Dense
from matnb.blocks.kernels.elementwise.chains import apply_chain
from matnb.blocks.kernels.elementwise.elementwise import Link
from matnb.blocks.kernels.elementwise.one_pass import Share
from matnb.blocks.kernels.elementwise.small_chains import MOST_SMALL, SmallShare, form_of_array, small_chain
from matnb.blocks.kernels.reductions.reductions import accumulator_dtype, reduce_block

FLOAT, SINGLE, TRUTH, WHOLE = map(np.dtype, ("f8", "f4", "?", "i8"))


def link(name: str, inputs: tuple[np.dtype, ...], dtype: np.dtype, *arguments: int) -> Link:
    return Link(name, inputs, dtype, 0, False, arguments)


CHAINS = {
    "casts": (
        link("add", (FLOAT, FLOAT), FLOAT, 0, 1),
        link("astype", (FLOAT,), SINGLE, 2),
        link("multiply", (FLOAT, FLOAT), FLOAT, 3, 0),
    ),
    "chooses": (
        link("less", (FLOAT, FLOAT), TRUTH, 0, 1),
        link("where", (TRUTH, FLOAT, FLOAT), FLOAT, 2, 1, 0),
    ),
    "extremes": (link("maximum", (FLOAT, FLOAT), FLOAT, 0, 1), link("negative", (FLOAT,), FLOAT, 2)),
    "functions": (link("exp", (FLOAT,), FLOAT, 0), link("floor_divide", (FLOAT, FLOAT), FLOAT, 2, 1)),
    "truths": (link("isfinite", (FLOAT,), TRUTH, 0), link("logical_not", (TRUTH,), TRUTH, 2)),
}


@pytest.mark.parametrize("shapes", [((50,), (50,)), ((7, 9), (7, 9)), ((50,), ()), ((), ())])
@pytest.mark.parametrize("name", CHAINS)
def test_bits_are_those_of_functions_one_by_one(name: str, shapes: tuple[tuple[int, ...], ...]) -> None:
    links, rng = CHAINS[name], np.random.default_rng(1)
    arrays = [rng.standard_normal(shape) for shape in shapes]
    if arrays[0].size > 3:
        arrays[0].flat[:3] = np.nan, -0.0, np.inf
    chain = small_chain(links, [form_of_array(one) for one in arrays])
    assert chain is not None
    with np.errstate(all="ignore"):
        expected = apply_chain(links, [Dense(one) for one in arrays]).values
        for _ in range(2):  # what is kept of the first run changes nothing of the next
            out = np.full(chain.shape, 1, chain.dtype)
            chain.write(arrays, out)
            assert out.dtype == expected.dtype
            assert out.tobytes() == np.asarray(expected).tobytes()
        wide = np.full((*chain.shape[:-1], 2 * (chain.shape or (1,))[-1]), 1, chain.dtype)[..., ::2]
        if chain.shape:
            chain.write(arrays, wide)
            assert wide.tobytes() == expected.tobytes()
        for place in (0, 1):
            if arrays[place].shape == chain.shape and chain.dtype == FLOAT:
                own = [one.copy() for one in arrays]
                chain.write(own, own[place])
                assert own[place].tobytes() == expected.tobytes()


def test_what_is_long_sparse_or_out_of_order_is_left_to_others() -> None:
    links = CHAINS["extremes"]
    for array in (np.zeros(MOST_SMALL + 1), np.zeros(80)[::2], np.zeros((4, 5)).T):
        assert small_chain(links, [form_of_array(array)] * 2) is None
    assert small_chain(links, [form_of_array(np.zeros(3)), form_of_array(np.zeros(4))]) is None


@pytest.mark.parametrize(("along", "start"), [(None, 0), (0, 0), (0, 5)])
@pytest.mark.parametrize("dtype", [FLOAT, SINGLE, TRUTH, WHOLE])
@pytest.mark.parametrize("operation", ["sum", "min", "max", "any", "all", "prod"])
def test_shares_are_those_of_blocks(operation: str, dtype: np.dtype, along: int | None, start: int) -> None:
    made = TRUTH if operation in ("any", "all") else dtype
    tree = operation == "sum" and made.kind == "f"
    if along is not None and not tree:
        return  # only such sums have shares of a part
    rng = np.random.default_rng(1)
    for shape, axes in (((1,), (0,)), ((70,), (0,)), ((6, 5), (0,)), ((6, 5), (0, 1)), ((0,), (0,))):
        values = (rng.standard_normal(shape) * 3).astype(dtype)
        share = Share(0, operation, axes, made, along, start)
        expected = reduce_block(operation, Dense(values), axes, made, along, start)
        found = SmallShare(share, values.shape, values.dtype).of(values)
        assert found.dtype == expected.dtype == accumulator_dtype(operation, made)
        assert found.shape == expected.shape
        assert found.values.tobytes() == expected.values.tobytes()
