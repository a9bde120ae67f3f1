"""NumPy's loops by address: found where they give the ufunc's bits, in chains too, and else left alone."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from matnb.blocks.formats import Dense
from matnb.blocks.kernels import numpy_structs
from matnb.blocks.kernels.elementwise import chains, tiles
from matnb.blocks.kernels.elementwise.chains import apply_chain
from matnb.blocks.kernels.elementwise.elementwise import Link, apply
from matnb.blocks.kernels.elementwise.tile_loops import TILE
from matnb.blocks.kernels.numpy_structs import address_of, loop_address

FLOAT = np.dtype(float)
UNARY = ("exp", "log", "sin", "tanh", "expm1", "floor", "cbrt", "square", "reciprocal", "positive", "fabs")
BINARY = (
    "power",
    "arctan2",
    "copysign",
    "remainder",
    "floor_divide",
    "add",
    "subtract",
    "multiply",
    "divide",
)
SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, 2.0, np.inf, -np.inf, np.nan, 5e-324, -1e-310, 1e308, 710.0, -750.0]


@pytest.fixture
def machine_runs(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Have the machine run chains of any length, and return the list of its runs."""
    ran: list[str] = []
    run = tiles.Tiles.begin

    def begin(self: tiles.Tiles, operands: list[np.ndarray], out: np.ndarray) -> object:
        ran.append("ran")
        return run(self, operands, out)

    monkeypatch.setattr(chains, "TILE_ELEMENTS", 4)
    monkeypatch.setattr(chains, "_WORTH_COMPILING", 0)
    monkeypatch.setattr(tiles.Tiles, "begin", begin)
    tiles.write_tiles.cache_clear()
    yield ran
    tiles.write_tiles.cache_clear()


def link(name: str, *places: int) -> Link:
    return Link(name, (FLOAT,) * len(places), FLOAT, 0, False, places)


def one_by_one(links: list[Link], operands: list[Dense]) -> np.ndarray:
    values = list(operands)
    for one in links:
        values.append(
            apply(one.name, [values[place] for place in one.arguments], one.input_dtypes, FLOAT, 0, False)
        )
    return values[-1].values


@pytest.mark.parametrize("length", [7, TILE, 2 * TILE + 5])
@pytest.mark.parametrize("name", [*UNARY, *BINARY])
def test_chains_give_numpys_bits(name: str, length: int, machine_runs: list[str]):
    rng = np.random.default_rng(length)
    values = rng.standard_normal(length) * 10.0 ** rng.integers(-20, 20, length)
    values[rng.permutation(length)[: len(SPECIAL)]] = SPECIAL[:length]
    operands = [
        Dense(values),
        Dense(values[::-1].copy()),
        *(Dense(np.array(one)) for one in (2.0, -0.0, 0.5)),
    ]
    pairs = [(0,), (1,)] if name in UNARY else [(0, 1), (0, 2), (2, 0), (0, 3), (4, 0), (2, 4)]
    for places in pairs:
        links = [link(name, *places), link("negative", 5), link("subtract", 6, 0)]
        found = apply_chain(links, operands)
        assert isinstance(found, Dense)
        np.testing.assert_array_equal(
            found.values.view(np.uint64), one_by_one(links, operands).view(np.uint64)
        )
    assert len(machine_runs) == len(pairs)


def test_a_link_over_its_own_operand_memory(machine_runs: list[str]):
    values = np.linspace(-3.0, 3.0, 3 * TILE + 1)
    links = [link("exp", 0), link("power", 1, 1), link("exp", 2)]
    expected, out = one_by_one(links, [Dense(values)]), values.copy()
    assert chains.chain_into(links, [out], out, np.empty, lambda memory: None)
    np.testing.assert_array_equal(out, expected)
    assert machine_runs


@pytest.mark.parametrize("name", ["isnan", "modf", "matmul", "where", "no such name", "ldexp", "clip"])
def test_there_is_none_for_functions_of_other_kinds(name: str):
    assert loop_address(name) is None


def test_a_loop_of_other_bits_is_none(monkeypatch: pytest.MonkeyPatch, machine_runs: list[str]):
    address = loop_address("log")
    assert address is not None
    assert numpy_structs._gives_bits_of(np.log, address)
    assert not numpy_structs._gives_bits_of(np.exp, address)
    monkeypatch.setattr(tiles, "loop_address", lambda name: None)
    links, operands = [link("exp", 0), link("multiply", 2, 1)], [Dense(np.arange(9.0)), Dense(np.array(2.0))]
    found = apply_chain(links, operands)
    assert isinstance(found, Dense)
    np.testing.assert_array_equal(found.values, one_by_one(links, operands))
    assert machine_runs == []


def test_a_structure_that_does_not_look_as_it_must_is_left_alone(monkeypatch: pytest.MonkeyPatch):
    at = numpy_structs._Ufunc.from_address

    class Shifted:
        @staticmethod
        def from_address(address: int) -> numpy_structs._Ufunc:
            return at(address + 4)

    monkeypatch.setattr(numpy_structs, "_Ufunc", Shifted)
    assert loop_address.__wrapped__("exp") is None


@pytest.mark.parametrize("is_behind_head", [True, False])
def test_addresses_are_those_of_first_elements(monkeypatch: pytest.MonkeyPatch, is_behind_head: bool):
    monkeypatch.setattr(numpy_structs, "_BEHIND_HEAD", is_behind_head)
    whole = np.arange(24.0).reshape(4, 6)
    for array in (whole, whole[1:, 2:], whole.T, whole[::-1], whole[2:3, 1], np.empty(0), np.array(3.0)):
        assert address_of(array) == array.ctypes.data
