"""Programs of the tile machine as one loop: the bits of the functions one by one, into rows with gaps too."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from matnb.blocks.formats import Dense
from matnb.blocks.kernels.elementwise import tile_loops, tiles
from matnb.blocks.kernels.elementwise.elementwise import Link, apply
from matnb.blocks.kernels.elementwise.one_pass import Share, reduce_chain
from matnb.blocks.kernels.elementwise.tile_loops import TILE
from matnb.blocks.kernels.elementwise.tiles import FLOAT, TRUTH, BoundPass, form_of, write_tiles
from matnb.blocks.kernels.reductions.reductions import reduce_block

SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, np.inf, -np.inf, np.nan, 5e-324, -1e-310, 1e308]


@pytest.fixture(autouse=True)
def compiled_at_once(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(tile_loops, "_WORTH_COMPILING", 0)
    tiles.write_tiles.cache_clear()
    yield
    tiles.write_tiles.cache_clear()


def link(name: str, *places: int, dtype: np.dtype = FLOAT, first: np.dtype = FLOAT) -> Link:
    return Link(name, (first, *(FLOAT,) * (len(places) - 1)), dtype, 0, False, places)


# Of three arrays 0, 1, 2 and the number 3.
LINKS = (
    link("add", 0, 1), link("subtract", 4, 2), link("multiply", 5, 3), link("divide", 3, 6),
    link("negative", 7), link("maximum", 8, 0), link("minimum", 1, 9), link("absolute", 10),
    link("sqrt", 11), link("less", 12, 2, dtype=TRUTH), link("where", 13, 0, 12, first=TRUTH),
    link("not_equal", 14, 1, dtype=TRUTH), link("where", 15, 14, 5, first=TRUTH), link("square", 16),
    link("subtract", 3, 17), link("add", 18, 3),
)  # fmt: skip


def one_by_one(operands: list[np.ndarray], links: tuple[Link, ...]) -> np.ndarray:
    values = [Dense(one) for one in operands]
    for one in links:
        read = [values[place] for place in one.arguments]
        values.append(apply(one.name, read, one.input_dtypes, one.dtype, 0, False))
    return values[-1].values


def operands_of(shape: tuple[int, ...], steps: bool = False) -> list[np.ndarray]:
    rng = np.random.default_rng(3)
    own = (*shape[:-1], shape[-1] + 7) if steps else shape
    arrays = [rng.standard_normal(own) for _ in range(3)]
    for one in arrays:
        one.flat[rng.integers(0, one.size, min(one.size, 200))] = rng.choice(SPECIAL, min(one.size, 200))
    return [*(one[..., : shape[-1]] for one in arrays), np.array(-1.75)]


@pytest.mark.parametrize("count", range(1, len(LINKS) + 1))
@pytest.mark.parametrize("shape", [(7,), (1024,), (5001,), (9, 40), (3, 5, 33)])
def test_one_loop_gives_the_bits_of_the_functions(shape: tuple[int, ...], count: int) -> None:
    links = LINKS[:count]
    for operands in (operands_of(shape), operands_of(shape, steps=len(shape) > 1)):
        program = write_tiles(links, tuple(map(form_of, operands)), 0, None)
        assert program is not None
        room = np.full((*shape[:-1], shape[-1] + 3), 7.0)
        gives_truths = links[-1].dtype == TRUTH
        contiguous = np.empty(shape, links[-1].dtype)
        for out in (contiguous, contiguous if gives_truths or len(shape) == 1 else room[..., 1:-2]):
            run = program.begin(operands, out)
            assert gives_truths or run.room[0] == 0, "the loop needs no tile"
            run.run(0, program.length, np.empty(run.room))
            assert out.tobytes() == one_by_one(operands, links).tobytes()
        assert (room[..., :1] == 7.0).all()
        assert (room[..., -2:] == 7.0).all()


# The same with functions of NumPy's between them, whose values are read several times and in other orders.
MIXED = (
    link("multiply", 0, 3), link("subtract", 4, 1), link("exp", 5), link("add", 6, 5), link("square", 2),
    link("add", 7, 8), link("tanh", 9), link("multiply", 10, 6), link("subtract", 3, 11), link("add", 12, 7),
    link("less", 13, 8, dtype=TRUTH), link("where", 14, 13, 12, first=TRUTH), link("log1p", 15),
    link("negative", 16), link("maximum", 17, 3),
)  # fmt: skip


@pytest.mark.parametrize("count", range(3, len(MIXED) + 1))
@pytest.mark.parametrize("shape", [(7,), (5001,), (9, 40)])
def test_functions_around_those_of_numpy_are_one_loop(shape: tuple[int, ...], count: int) -> None:
    links = MIXED[:count]
    operands = operands_of(shape, steps=len(shape) > 1)
    program = write_tiles(links, tuple(map(form_of, operands)), 0, None)
    assert program is not None
    out = np.empty(shape, links[-1].dtype)
    expected = one_by_one(operands, links).tobytes()
    with np.errstate(all="ignore"):
        for end in (program.length, program.length // 2):
            run = program.begin(operands, out)
            buffers = np.full(run.room, np.nan)
            run.run(0, end, buffers)
            run.run(end, program.length, buffers)
            assert out.tobytes() == expected


def test_loops_among_functions_of_numpy_take_fewer_passes() -> None:
    operands = operands_of((5001,))
    program = write_tiles(MIXED, tuple(map(form_of, operands)), 0, None)
    assert program is not None
    code = program.begin(operands, np.empty(5001)).program(np.empty((program.num_buffers, 1024)))[0]
    several = code[:, 5] == tile_loops.SEVERAL
    assert several.sum() >= 3
    assert len(code) < len(program.code) - 4


def test_what_such_loops_make_is_summed_and_measured_alike() -> None:
    x = np.random.default_rng(4).standard_normal(300_007)
    links = (link("multiply", 0, 1), link("add", 2, 1), link("exp", 3), link("add", 4, 2), link("square", 5))
    given = [Dense(x), Dense(np.array(0.3))]
    block = Dense(one_by_one([x, np.array(0.3)], links))
    shares = [Share(6, name, (0,), FLOAT, 0, 100) for name in ("sum", "deviation")]
    for share, part in zip(shares, reduce_chain(links, shares, given), strict=True):
        alone = reduce_block(share.operation, block, share.axes, share.dtype, share.along, share.start)
        assert part.values.tobytes() == alone.values.tobytes()


@pytest.mark.parametrize("shape", [(9, 40), (3, 5, 33), (2, 2000)])
def test_the_machine_writes_into_rows_with_gaps(
    shape: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tile_loops, "_WORTH_COMPILING", 2**62)
    tiles._whole_loop.cache_clear()
    operands, room = operands_of(shape, steps=True), np.full((*shape[:-1], shape[-1] + 3), 7.0)
    program = write_tiles(LINKS, tuple(map(form_of, operands)), 0, None)
    assert program is not None
    out = room[..., 1:-2]
    run = program.begin(operands, out)
    assert run.room[0] > 0
    for begin, end in ((0, 35), (35, program.length)):
        run.run(begin, end, np.empty(run.room))
    assert out.tobytes() == one_by_one(operands, LINKS).tobytes()
    assert (room[..., :1] == 7.0).all()
    assert (room[..., -2:] == 7.0).all()
    tiles._whole_loop.cache_clear()


def test_it_is_compiled_when_it_pays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tile_loops, "_WORTH_COMPILING", 100)
    lines = tuple((tile_loops.ADD, 3 + number, (-1, -2)) for number in range(7))
    loop = tile_loops.WholeLoop(lines, 9, ())
    assert [loop.code(30) is None for _ in range(5)] == [True, True, True, False, False]
    short = tile_loops.WholeLoop(lines[:1], 3, ())  # saves less
    assert [short.code(1300) is None for _ in range(5)] == [True, True, True, False, False]


def test_what_one_loop_makes_is_measured_alike() -> None:
    x = np.random.default_rng(4).standard_normal(300_007)
    links = (link("multiply", 0, 1), link("add", 2, 1))
    given = [Dense(x), Dense(np.array(1.3))]
    block = Dense(one_by_one([x, np.array(1.3)], links))
    shares = [Share(3, name, (0,), FLOAT, 0, 100) for name in ("sum", "deviation")]
    for share, part in zip(shares, reduce_chain(links, shares, given), strict=True):
        alone = reduce_block(share.operation, block, share.axes, share.dtype, share.along, share.start)
        assert part.values.tobytes() == alone.values.tobytes()


def test_a_bound_pass_is_told_where_its_tiles_lie_in_each_run() -> None:
    links = (link("exp", 0), link("multiply", 1, 0), link("exp", 2))
    x = np.linspace(-3.0, 1.0, 5000)
    program = write_tiles(links, (form_of(x),), 0, None)
    assert program is not None
    bound, out = BoundPass(program), np.empty(5000)
    first, second = np.full((2, program.num_buffers, TILE), 7.0)
    bound.run([x], out, first)
    assert not (first == 7.0).all(), "it has tiles"
    first[:] = 7.0
    bound.run([x], out, second)
    assert (first == 7.0).all()
    np.testing.assert_array_equal(out, np.exp(np.exp(x) * x))
