"""The bits of results do not hang on blocks, threads or workers."""

from __future__ import annotations

from math import prod

import numpy as np
import pytest
import scipy.sparse as sp
from plan_runner import given_to, run_by_hand, whole

import matnb as mn
from matnb.blocks.formats import Dense
from matnb.blocks.grid import regular
from matnb.blocks.layout import Layout
from matnb.ops import combining, reducing
from matnb.plan.lower import lower
from matnb.program import writer
from matnb.program.plan import StoredArray, Workers

RNG = np.random.default_rng(0)
VECTOR = RNG.standard_normal(70_001) * 10.0 ** RNG.integers(-8, 8, 70_001)
MATRIX = RNG.standard_normal((700, 90))
WIDE = RNG.standard_normal((300, 500))
SPARSE = sp.random_array((700, 300), density=0.2, format="csr", rng=1)
CUTS = {
    "vector": [None, 2, 7, [[0, 1, 63, 64, 40_000, 70_001]]],
    "matrix": [None, 3, [2, 3], [[0, 5, 640, 700], [0, 1, 64, 90]], [None, 4]],
    "rows": [None, 2, 9, [[0, 1, 100, 693, 700], None]],
}
MEASURES = {
    "sum": lambda x: x.sum(),
    "mean": lambda x: x.mean(),
    "var": lambda x: x.var(),
    "norm": lambda x: np.linalg.norm(x),
    "rows": lambda x: x.sum(axis=x.ndim - 1),
}


def bits_of_everything() -> dict[str, set[bytes]]:
    found: dict[str, set[bytes]] = {}

    def note(name: str, value: mn.DistArray) -> None:
        found.setdefault(name, set()).add(value.compute().tobytes())

    for name, measure in MEASURES.items():
        for blocks in CUTS["vector"]:
            note(f"vector {name}", measure(mn.asarray(VECTOR, blocks=blocks)))
            note(f"short {name}", measure(mn.asarray(VECTOR.astype(np.float32), blocks=blocks)))
        for blocks in CUTS["matrix"]:
            note(f"matrix {name}", measure(mn.asarray(MATRIX, blocks=blocks)))
        for blocks in CUTS["rows"]:
            note(f"sparse {name}", measure(mn.asarray(SPARSE, blocks=blocks)))
    for blocks in CUTS["matrix"]:
        array = mn.asarray(MATRIX, blocks=blocks)
        note("columns", array.sum(axis=0))
        note("chain", np.sqrt(abs(array) + 1).sum())
        note("complex", (array + 1j * np.cos(array)).sum(axis=(0, 1)))
    for rows in CUTS["rows"]:
        A = mn.asarray(SPARSE, blocks=rows)
        for inner in (None, 2, [[0, 1, 64, 300]]):
            note("A @ x", A @ mn.asarray(VECTOR[:300], blocks=inner))
            note(
                "short A @ x",
                A.astype(np.float32) @ mn.asarray(VECTOR[:300].astype(np.float32), blocks=inner),
            )
        for inner in (None, 3):
            X = mn.asarray(WIDE, blocks=inner)  # it holds more bytes than A
            note("A @ X", A @ X)
            note("affine", 0.85 * (A @ X) + 1.0)
        U = mn.asarray(MATRIX[:, :7], blocks=rows if isinstance(rows, int) else None)
        note("sampled", ((A * (U @ WIDE[:, :7].T)) @ np.ones(300)))
        note("sampled sum", (A * (U @ WIDE[:, :7].T)).sum())
        note("least", mn.matmul(A, mn.asarray(VECTOR[:300], blocks=2), semiring="min_plus"))
    return found


@pytest.fixture(scope="module")
def alone() -> dict[str, set[bytes]]:
    with mn.start(workers=1, threads=1):
        found = bits_of_everything()
    mn.stop()
    return found


@pytest.mark.parametrize(("workers", "threads"), [(1, 2), (3, 1)])
def test_results_have_one_value_whatever_the_blocks(
    alone: dict[str, set[bytes]], workers: int, threads: int
) -> None:
    assert {name: len(bits) for name, bits in alone.items()} == dict.fromkeys(alone, 1)
    with mn.start(workers=workers, threads=threads):
        assert bits_of_everything() == alone
    mn.stop()


def test_they_are_the_right_results() -> None:
    with mn.start(workers=1, threads=2):
        for array in (MATRIX, SPARSE.toarray()):
            given = mn.asarray(array, blocks=[3, 4])
            for measure in MEASURES.values():
                np.testing.assert_allclose(measure(given).compute(), measure(array), rtol=1e-12)
        cut = mn.asarray(SPARSE, blocks=[3, 4])  # promised for whole rows only, but right
        np.testing.assert_allclose(cut.sum(axis=0).compute(), SPARSE.sum(axis=0), rtol=1e-12)
        np.testing.assert_allclose(cut.sum(axis=1).compute(), SPARSE.sum(axis=1), rtol=1e-12)
        np.testing.assert_allclose(cut.sum().compute(), SPARSE.sum(), rtol=1e-12)
    mn.stop()


# Wherever blocks lie and tasks run: plans for clusters that are not there, run in this process.

TALL, OTHER = RNG.standard_normal((2000, 180)), RNG.standard_normal((2000, 180)) * 1e3
SQUARE = RNG.standard_normal((240, 240))
BULKY = RNG.standard_normal((40, 30, 20)).astype(np.float32)
PLACED = {
    "tall": lambda blocks: mn.asarray(TALL, blocks=blocks).T @ mn.asarray(OTHER, blocks=blocks),
    "short tall": lambda blocks: (
        mn.asarray(TALL.astype(np.float32), blocks=blocks).T
        @ mn.asarray(OTHER.astype(np.float32), blocks=blocks)
    ),
    "squares": lambda blocks: (
        mn.asarray(SQUARE, blocks=[3, min(blocks, 24)]) @ mn.asarray(SQUARE.T, blocks=[min(blocks, 24), 4])
    ),
    "columns": lambda blocks: mn.asarray(TALL, blocks=blocks).sum(axis=0),
    "short columns": lambda blocks: mn.asarray(TALL.astype(np.float32), blocks=blocks).sum(axis=0),
    "complex": lambda blocks: (mn.asarray(TALL, blocks=blocks) * (1 + 2j)).sum(axis=0),
    "least": lambda blocks: mn.asarray(TALL, blocks=blocks).min(axis=0),
    "einsum": lambda blocks: np.einsum(
        "ijk,jf,kf->if",
        mn.asarray(BULKY, blocks=[min(blocks, 5), 3, min(blocks, 20)]),
        mn.asarray(SQUARE[:30, :50].astype(np.float32), blocks=[3, 1]),
        mn.asarray(SQUARE[:20, :50].astype(np.float32), blocks=[2, 1]),
    ),
    "three axes": lambda blocks: mn.asarray(BULKY, blocks=[min(blocks, 8), 3, 2]).sum(axis=(0, 1)),
    "sparse columns": lambda blocks: mn.asarray(SPARSE, blocks=[blocks, 2]).sum(axis=0),
    "sparse transpose": lambda blocks: (
        mn.asarray(SPARSE, blocks=[blocks, 1]).T @ mn.asarray(VECTOR[:700], blocks=blocks)
    ),
    "sparse product": lambda blocks: (
        mn.asarray(SPARSE, blocks=[2, min(blocks, 9)]) @ mn.asarray(SPARSE.T, blocks=[min(blocks, 9), 2])
    ).sum(axis=1),
}


def made_on(name: str, blocks: int, workers: Workers) -> np.ndarray:
    node = PLACED[name](blocks).expression
    plan = lower([node], [], {}, workers)
    return whole(node, plan.outputs[node], run_by_hand(plan))


@pytest.mark.parametrize("name", PLACED)
@pytest.mark.parametrize("blocks", [1, 7, 40])
def test_bits_follow_no_machine_and_no_way_of_placing(
    monkeypatch: pytest.MonkeyPatch, name: str, blocks: int
) -> None:
    for module in (combining, reducing):  # so that small parts go the way of large ones
        monkeypatch.setattr(module, "SMALL_BYTES", 1)
    monkeypatch.setattr(writer, "_RELAYED_BYTES", 1)
    alone = made_on(name, blocks, Workers((0,), 1, 0))
    for nodes, each in ((1, 4), (4, 1), (3, 3)):
        numbers = tuple(range(nodes * each))
        machines = tuple(number // each for number in numbers)
        grids = [None, *(grid for grid in ((2, 2), (4, 1), (1, 4), (3, 1)) if prod(grid) == nodes)]
        for grid in grids:
            for placing in ("loads", "owners", "turns"):
                found = made_on(name, blocks, Workers(numbers, 1, 0, machines, grid, placing))
                assert found.tobytes() == alone.tobytes(), (nodes, each, grid, placing)


# Laid out anew blocks of neighbors lie together; after loops, joins and repartitions they may lie anywhere.

NARROW = RNG.standard_normal((400, 150))
SCATTERED = {
    "columns": lambda X: X.sum(axis=0),
    "rows": lambda X: (X * 2.0).sum(axis=1),
    "sum": lambda X: X.sum(),
    "var": lambda X: X.var(axis=0),
    "norm": lambda X: np.linalg.norm(X, axis=0),
    "tall": lambda X: X.T @ X,
    "einsum": lambda X: mn.einsum("ij,ik->jk", X, np.sqrt(abs(X))),
}


@pytest.mark.parametrize("name", SCATTERED)
@pytest.mark.parametrize("counts", [(40, 1), (7, 3), (1, 20)])
def test_bits_are_the_same_for_blocks_on_any_workers(name: str, counts: tuple[int, int]) -> None:
    rng, X = np.random.default_rng(0), mn.asarray(NARROW)
    grid, node = regular(NARROW.shape, counts), SCATTERED[name](X).expression
    keys = tuple(f"X-{number}" for number in range(grid.num_blocks))
    parts = (NARROW[tuple(slice(*part) for part in region)] for region in grid.regions())
    blocks = {key: Dense(np.ascontiguousarray(part)) for key, part in zip(keys, parts, strict=True)}
    found = set()
    for nodes, each in ((1, 1), (1, 3), (3, 2), (4, 4), (4, 4), (16, 1)):
        numbers = tuple(range(nodes * each))
        workers = Workers(numbers, 1, 0, tuple(number // each for number in numbers))
        owners = tuple(rng.choice(numbers, grid.num_blocks).tolist())
        stored = {X.expression: StoredArray(Layout(grid, owners), keys)}
        plan = lower([node], [], stored, workers)
        value = whole(node, plan.outputs[node], run_by_hand(plan, given_to(plan, stored, blocks)))
        found.add(value.tobytes())
    assert len(found) == 1
