"""Which loops of Python's become one node, what that looks like, and that it means the same."""

from __future__ import annotations

import time

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import matnb as mn
from matnb.expr.control import Loop
from matnb.expr.nodes import Expr
from matnb.expr.traverse import topological
from matnb.lazy.array import DistArray
from matnb.lazy.handles import live_expressions, renew
from matnb.lazy.loop_rolling import repetitions, roll, rolled
from matnb.lazy.recording import Recording, recording, resumed
from matnb.ops.interpret import interpret

A = np.array([[0, 1, -1], [1, 1, 0], [-1, 0, 1]])


def names(dtype: type = np.int64) -> dict[str, object]:
    return {
        "np": np,
        "mn": mn,
        "A": mn.asarray(A.astype(dtype)),
        "B": mn.asarray(A.T.astype(dtype)),
        "S": mn.asarray(sp.csr_array(A.astype(dtype))),
        "b": mn.asarray(np.array([1, 2, 3], dtype)),
        "x0": mn.asarray(np.array([1, -1, 2], dtype)),
    }


def cell(source: str, dtype: type = np.int64) -> tuple[dict[str, object], Recording]:
    """Run the code of a cell, and return the names it leaves and what it recorded."""
    space = names(dtype)
    with recording("<cell>") as record:
        exec(compile(source, "<cell>", "exec"), space)
    return space, record


def loops(node: Expr) -> list[Loop]:
    return [one for one in topological([node]) if isinstance(one, Loop)]


# Of each cell the loops below `x`: how many iterations, how many arrays in the state.
ROLLED = {
    "one state": ("x = x0\nfor _ in range(7): x = A @ x + b", [(7, 1)]),
    "several lines": ("x = x0\nfor _ in range(7):\n    y = A @ x\n    y = y * b\n    x = y - x", [(7, 1)]),
    "what does not change": ("x = x0\nfor _ in range(7): x = A.T @ (x * (b + 1)) + b.sum()", [(7, 1)]),
    "noted twice in an iteration": ("x = x0\nfor _ in range(7): x = A @ (x * x) + x * x", [(7, 1)]),
    "sums that are not noted": ("x = 1.0 * x0\nfor _ in range(7): x = x - (A @ x).mean()", [(7, 1)]),
    "in place": ("x = x0.copy()\nfor _ in range(7): x += A @ x", [(7, 1)]),
    "elements assigned": ("x = x0.copy()\nfor _ in range(7): x[1:] = (A @ x)[:2]", [(7, 1)]),
    "the state before the last": ("x, y = x0, b\nfor _ in range(7): x, y = y, A @ x + y", [(6, 2)]),
    "three states": (
        "x, r, p = b * 0, b, b + 1\nfor _ in range(7):\n"
        "    q = A @ p\n    x = x + q.sum() * p\n    r = r - q\n    p = r + r.sum() * p\nx = x + r + p",
        [(7, 3)],
    ),
    "from a number": ("x = 2.0\nfor _ in range(7): x = (b * x).sum() + 1", [(7, 1)]),
    "a dtype that changes first": ("x = x0\nfor _ in range(7): x = A @ x * 0.5", [(6, 1)]),
    "a state of another dtype first": ("F = A * 1.5\nx = x0\nfor _ in range(7): x = F @ x", [(6, 1)]),
    "what the first iteration leaves": (
        "x = x0\nfor k in range(7):\n    y = A @ x\n    z = y if k == 0 else z\n    x = y * z.sum()\ndel z",
        [(6, 1)],
    ),
    "another state from the middle on": (
        "x, p, q = x0, x0, x0\nfor k in range(18): x, p, q = A @ x + (p if k < 8 else q), x, p",
        [(6, 2), (12, 3)],
    ),
    "another rotation": (
        "y = A @ x0\nfor _ in range(7):\n    x = y + b\n    y = A @ x\nx = (y * 2).sum()", [(7, 1)]
    ),
    "code before and after": (
        "y = A @ x0 - b\nx = y * y\nfor _ in range(7): x = A @ x + b\nx = (x - y).max()", [(7, 1)]
    ),
    "two loops": (
        "x = x0\nfor _ in range(7): x = A @ x + b\nx = x * 2\nfor _ in range(5): x = B @ x - b",
        [(7, 1), (5, 1)],
    ),
    "a loop in a loop": (
        "x = x0\nfor _ in range(5):\n    for _ in range(6): x = A @ x + b\n    x = x - x.sum()", [(5, 1)]
    ),
    "the state before is wanted": ("x = x0\nfor _ in range(7): old, x = x, A @ x + b\nx = x - old", [(7, 2)]),
    "a test at its end": (
        "x = x0\nfor _ in range(7):\n    new = A @ x + b\n    d = abs(new - x).sum()\n    x = new\nx = d",
        [(7, 2)],
    ),
    "a sparse state": ("x = S\nfor _ in range(5): x = (x @ S) * S", [(5, 1)]),
}  # fmt: skip
UNROLLED = {
    "three iterations": "x = x0\nfor _ in range(3): x = A @ x + b",
    "elementwise functions only": "x = x0\nfor _ in range(9): x = x * 2 + b",
    "the number of the iteration": "x = x0\nfor k in range(9): x = A @ x + k",
    "another matrix each time": "x = x0\nfor k in range(9): x = (A + k) @ x",
    "powers of a matrix": "x = A\nfor _ in range(9): x = x @ A",
    "all states are held": "x, held = x0, []\nfor _ in range(9):\n    x = A @ x + b\n    held.append(x)",
    "things made from all states are held": (
        "x, held = x0, []\nfor _ in range(9):\n    x = A @ x + b\n    held.append(x * 2)"
    ),
    "an older state is read": (
        "x = x0\nfor k in range(9):\n    x = A @ x + b\n    y = x if k == 3 else y if k > 3 else x\nx = x + y"
    ),
    "shapes that change": "x = mn.ones(20)\nfor _ in range(9): x = x[1:] * x.sum()",
    "a pattern that fills": "x = S\nfor k in range(9): x = x @ A if k == 4 else x @ S",
}


@pytest.mark.parametrize(("source", "shapes"), ROLLED.values(), ids=ROLLED)
def test_a_loop_of_pythons_is_one_node(source: str, shapes: list[tuple[int, int]]) -> None:
    space, record = cell(source)
    x: DistArray = space["x"]
    after = rolled([x.expression], record.written, (), live_expressions())[x.expression]
    found = loops(after)
    assert [(int(loop.limit.value), loop.num_state) for loop in found] == shapes
    expected, value = interpret(x.expression), interpret(after)
    if sp.issparse(value):
        expected, value = expected.toarray(), value.toarray()
    np.testing.assert_array_equal(value, expected, strict=True)


def loops_of_script(source: str) -> list[tuple[int, int]]:
    """Run code outside of cells and ask for ``x``; return the iterations and states of its loops."""
    space = names()
    exec(compile(source, "script.py", "exec"), space)
    x: DistArray = space["x"]
    written = x.expression
    (after,) = roll([written], None, ())
    np.testing.assert_array_equal(interpret(after), interpret(written), strict=True)
    if x.expression is not after:
        raise AssertionError("the handle does not stand for what is asked of it")
    return [(int(loop.limit.value), loop.num_state) for loop in loops(after)]


@pytest.mark.parametrize(
    ("source", "shapes"),
    [
        ROLLED["one state"],
        ROLLED["several lines"],
        ROLLED["elements assigned"],
        (ROLLED["three states"][0], [(6, 3)]),
        (
            "x = mn.asarray(np.arange(9.0))\nfor _ in range(7):\n"
            "    y = x.copy()\n    y[1:-1] = x[2:] - x[:-2] * 0.5\n    x = y",
            [(7, 1)],
        ),
    ],
)
def test_a_loop_of_a_script_is_one_node(source: str, shapes: list[tuple[int, int]]) -> None:
    assert loops_of_script(source) == shapes


@pytest.mark.parametrize(
    "source",
    [
        "all = [x0]\nfor _ in range(7): all.append(A @ all[-1])\nx = sum(all)",
        "x = x0\nfor _ in range(3): x = A @ x",
        "x = x0\nfor k in range(7): x = A @ x + k",
        "x = x0\nfor _ in range(7): x = x * b - 1",
    ],
)
def test_what_is_no_loop_of_a_script_stays(source: str) -> None:
    assert loops_of_script(source) == []


@pytest.mark.parametrize("count", [3, 4, 5, 9])
@pytest.mark.parametrize(
    "source",
    [
        "x, y = mn.iterate(step, x, max_iterations=3)",
        "x, y = mn.iterate(step, x, until=lambda old, new: abs(new - old).sum() < 40, max_iterations=9)",
        "x, y = mn.iterate(step, x + y, max_iterations=3)",
        "(x, z), y = mn.iterate(lambda xz: (step(xz[0]) + xz[1], xz[1] + 1), (x, x * 2), max_iterations=3)\n"
        "y = y + z",
        "z, y = mn.iterate(step, x, max_iterations=2)\nx = z % 5\ny = y + z.sum()",
    ],
)
@pytest.mark.parametrize("asked", ["x", "y", "x + y"])
def test_what_an_inner_loop_gives_beside_its_array_can_be_asked_for(
    source: str, count: int, asked: str
) -> None:
    lines = ["x, y, step = x0, x0 * 0, lambda x: (A @ x) % 7", f"for _ in range({count}):"]
    lines += [f"    {line}" for line in source.splitlines()] + [f"x = {asked}"]
    loops_of_script("\n".join(lines))


@pytest.mark.parametrize("source", UNROLLED.values(), ids=UNROLLED)
def test_what_is_no_loop_or_better_without_stays(source: str) -> None:
    space, record = cell(source)
    x = space["x"].expression
    assert rolled([x], record.written, (), live_expressions()) == {}


@pytest.mark.parametrize("source", [source for source, _ in ROLLED.values()], ids=ROLLED)
def test_what_is_found_reads_alike_throughout(source: str) -> None:
    _, record = cell(source)
    sequence = list(dict.fromkeys(record.written))
    for found in repetitions(sequence, (), [True] * len(sequence)):
        for place in range(found.begin, found.end):
            for read, operand in zip(found.read_at(place), sequence[place].operands, strict=True):
                if isinstance(read, int):
                    before = found.before.get(place - read)
                    assert operand is (sequence[place - read] if place - read >= found.begin else before)


def test_it_is_the_node_that_iterate_makes() -> None:
    space, record = cell("x = x0\nfor _ in range(7): x = A @ x + b")
    a, b = space["A"], space["b"]
    x = space["x"].expression
    final, _ = mn.iterate(lambda x: a @ x + b, space["x0"], max_iterations=7)
    assert rolled([x], record.written)[x] is final.expression


def test_handles_get_what_their_expressions_became_and_older_ones_are_let_go() -> None:
    space, record = cell(
        "x = x0\nfor _ in range(7):\n    old = x\n    s = x.sum()\n    x = A @ x + s\ny = old\nz = x.max()"
    )
    before = {name: interpret(space[name].expression) for name in ("x", "old", "s")}
    long = len(topological([space["x"].expression]))
    with resumed(record):
        renew(rolled([space["z"].expression], record.written, (), live_expressions()))
    (loop,) = {loop for name in before for loop in loops(space[name].expression)}
    assert space["y"].expression is space["old"].expression
    assert len(topological([space["x"].expression])) < long / 3
    for name, value in before.items():
        np.testing.assert_array_equal(interpret(space[name].expression), value)
    product = next(node for node in topological(loop.body.roots) if node.operands and node.shape == (3,))
    assert record.lines[product] == [5]
    assert record.lines[space["z"].expression] == [7]


def test_nothing_below_known_values_is_looked_at() -> None:
    space, record = cell("x = x0\nfor _ in range(9): x = A @ x + b")
    x = space["x"].expression
    known = {x.operands[0].operands[1]}  # the eighth state
    assert rolled([x], record.written, known) == {}


@pytest.mark.parametrize(
    "source",
    [
        "x = x0\nfor _ in range(2500): x = x * 2 + 1.0\nx = x.sum()",
        "x = x0\nfor k in range(2500): x = A @ (x + k)",
        "x = x0\nfor k in range(2500):\n    x = (A @ x if k % 7 < 2 or k % 11 == 3 else x * k) - b",
    ],
    ids=["a long chain", "a chain of products", "no period"],
)
def test_thousands_of_operations_take_a_moment(source: str) -> None:
    space, record = cell(source)
    begin = time.process_time()
    assert rolled([space["x"].expression], record.written) == {}
    assert time.process_time() - begin < 2


STATEMENTS = [
    "{0} = A @ {1}",
    "{0} = {1} + {2}",
    "{0} = {1} * b - {0}",
    "{0} = {1} - {2}.sum()",
    "{0}, {1} = {1}, {0}",
    "{0} += B @ {1}",
    "{0} = np.maximum({0}, {1}) + {1}",
    "w = {1} @ {2}",
    "{0} = {0} + w",
]


@st.composite
def cells(draw: st.DrawFn) -> str:
    """A few states that go through a few statements several times, in some rotation."""
    states = ["x", "y", "z"][: draw(st.integers(1, 3))]
    state = st.sampled_from(states)
    body = [
        draw(st.sampled_from(STATEMENTS)).format(draw(state), draw(state), draw(state))
        for _ in range(draw(st.integers(1, 5)))
    ]
    lines = ["w = b.sum()", *(f"{one} = x0 + {place}" for place, one in enumerate(states))]
    lines += body[draw(st.integers(0, len(body))) :]
    lines += [f"for _ in range({draw(st.integers(3, 7))}):", *(f"    {line}" for line in body)]
    lines += body[: draw(st.integers(0, len(body)))]
    return "\n".join(lines)


@given(source=cells(), hold=st.booleans())
@settings(max_examples=60)
def test_rolled_and_unrolled_mean_the_same(source: str, hold: bool) -> None:
    space, record = cell(source)
    roots = [space[name].expression for name in ("x", "y", "z", "w") if name in space]
    live = live_expressions() if hold else ()
    for node, after in rolled(roots, record.written, (), live).items():
        np.testing.assert_array_equal(interpret(after), interpret(node), strict=True)
