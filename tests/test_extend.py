"""What packages add through matnb.extend is checked: results of their functions, and what they register."""

from __future__ import annotations

import importlib
import re
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

import matnb as mn
from matnb import passes
from matnb.errors import ArgumentError, DTypeError, FileFormatError, OptionError, ShapeError, UnsupportedError
from matnb.extend import (
    METHODS,
    SPARSE_METHODS,
    Block,
    Csr,
    Dense,
    Empty,
    Expr,
    Kind,
    PlanWriter,
    Rewritten,
    Run,
    Value,
    WholeFile,
    Workers,
    csr_block,
    expression_of,
    implements,
    lowers,
    means,
    reader,
    register_container,
    register_pass,
    to_numpy,
    wrap,
    writes,
)
from matnb.io.source import READERS
from matnb.lazy.tree import _containers, flatten
from matnb.session.run_listeners import MAKERS


@dataclass(frozen=True, eq=False, repr=False)
class Copy(Expr):
    """The same array, of a kernel that is one of RETURNS."""

    operand: Expr
    how: str
    is_sparse: bool = False

    def __post_init__(self) -> None:
        self.settle(self.operand.shape, self.operand.dtype, self.is_sparse, self.operand)


def pattern(x: np.ndarray, **changes: np.ndarray) -> Csr:
    found = csr_block(sp.csr_array(x))
    assert isinstance(found, Csr)
    parts = {"pointers": found.pointers, "columns": found.columns, "entries": found.entries, **changes}
    return Csr(found.shape, parts["pointers"], parts["columns"], parts["entries"], found.dtype)


RETURNS: dict[str, Callable[[np.ndarray], object]] = {
    "right": lambda x: Dense(x + 0),
    "its operand": Dense,
    "shape": lambda x: Dense(x[:-1]),
    "dtype": lambda x: Dense(x.astype(np.float32)),
    "format": lambda x: csr_block(sp.csr_array(x)),
    "array": lambda x: x + 0,
    "list": lambda x: Dense(x.tolist()),
    "nothing": lambda x: None,
    "sparse": pattern,
    "no entry": lambda x: Empty(x.shape, x.dtype),
    "dense": Dense,
    "unsorted": lambda x: pattern(x, columns=pattern(x).columns[::-1].copy()),
    "twice": lambda x: pattern(x, columns=np.zeros_like(pattern(x).columns)),
    "far": lambda x: pattern(x, columns=pattern(x).columns + 10**6),
    "int64": lambda x: pattern(x, columns=pattern(x).columns.astype(np.int64)),
    "pointers": lambda x: pattern(x, pointers=pattern(x).pointers[:-1].copy()),
    "falling": lambda x: pattern(x, pointers=pattern(x).pointers[::-1].copy()),
    "few values": lambda x: pattern(x, entries=pattern(x).entries[:1]),
    "behind": lambda x: pattern(x, pointers=np.minimum(pattern(x).pointers, 1)),
}
WRONG = {
    "shape": (ShapeError, r"returned Dense of shape \(1, 3\) and dtype float64, where Dense.*shape \(2, 3\)"),
    "dtype": (
        DTypeError,
        r"returned Dense of shape \(2, 3\) and dtype float32, where .*dtype float64 belongs",
    ),
    "format": (DTypeError, r"returned Csr of shape .*, where Dense\(array\) of shape"),
    "array": (DTypeError, r"returned ndarray of shape .*, where Dense\(array\)"),
    "list": (DTypeError, r"returned Dense of type list"),
    "nothing": (DTypeError, r"returned NoneType, where Dense\(array\)"),
    "dense": (DTypeError, r"returned Dense of .*, where csr_block\(matrix\) or Empty of shape \(2, 3\)"),
    "unsorted": (
        ShapeError,
        r"columns that do not ascend within a row, where what csr_block\(matrix\) makes belongs",
    ),
    "twice": (ShapeError, "columns that do not ascend"),
    "far": (ShapeError, "an index of 1000000 along an axis of length 3"),
    "int64": (ShapeError, "columns of dtype int64, not int32"),
    "pointers": (ShapeError, "2 pointers where 3 are needed"),
    "falling": (ShapeError, "pointers start at"),
    "few values": (ShapeError, "indices and 1 entries"),
    "behind": (ShapeError, "entries behind the last row"),
}
OF_MEANINGS = {"shape", "dtype", "nothing", "dense", "unsorted", "twice", "far"}  # others have no blocks
SPARSE = list(RETURNS)[list(RETURNS).index("sparse") :]


@means(Copy)
def _(node: Copy, operands: Sequence[Value]) -> Value:
    value = RETURNS[node.how](operands[0])  # type: ignore[arg-type]  # dense
    match value:
        case Dense(values):
            return values
        case Csr():
            parts = (value.values, value.columns, value.pointers)
            matrix = sp.csr_array(operands[0])
            matrix.data, matrix.indices, matrix.indptr = parts
            return matrix
        case Empty(shape, dtype):
            return sp.csr_array(shape, dtype=dtype)
    return value  # type: ignore[return-value]  # wrong on purpose


COPY = Kind("copy of a test", shown="elementwise")


@lowers(Copy)
def _(node: Copy, writer: PlanWriter, workers: Workers) -> None:
    for block in writer.each_block(node, writer.registers[node.operand].layout, COPY):
        value = writer.read(block, node.operand, block.region, block.owner)
        block.do(Run(copied, (node.how,)), value)


def copied(values: Sequence[Block], how: str) -> object:
    return RETURNS[how](to_numpy(values[0]))


def copy(x: object, how: str) -> mn.DistArray:
    return wrap(Copy(expression_of(x), how, how in SPARSE))


X = np.array([[1.0, 2.0, 0.0], [0.0, 3.0, 4.0]])
LINE = copied.__code__.co_firstlineno


@pytest.fixture(scope="module", params=["threads", "interpret"])
def engine(request: pytest.FixtureRequest) -> Iterator[str]:
    ways = {"engine": "interpret"} if request.param == "interpret" else {"workers": 1, "processes": False}
    with mn.start(**ways):
        yield request.param


@pytest.mark.parametrize("how", sorted(set(RETURNS) - set(WRONG)))
def test_what_is_right_is_taken(engine: str, how: str):
    expected = np.zeros_like(X) if how == "no entry" else X
    found = copy(X, how)
    np.testing.assert_array_equal(np.asarray((found * 2).sum(axis=0)), (expected * 2).sum(axis=0))


@pytest.mark.parametrize("how", WRONG)
def test_what_a_kernel_returns_has_to_be_the_block(engine: str, how: str):
    kind, words = WRONG[how]
    if engine == "interpret":
        if how not in OF_MEANINGS:
            return
        words = "Copy: its meaning"
    with pytest.raises(kind, match=words) as caught:
        copy(X, how).compute()
    assert "Copy: its " in str(caught.value)
    if engine == "threads":
        assert f"copied (test_extend.py, line {LINE}) returned" in str(caught.value)
        assert caught.value.raised_at == (__file__, LINE)


def test_an_element_on_its_own_is_an_array_without_axes(engine: str):
    # NumPy gives an element of its own for an array without axes, as np.clip does
    assert float(copy(mn.asarray(X).sum(), "right").compute()) == X.sum()


def test_a_node_without_a_rule_says_how_to_write_one(engine: str):
    @dataclass(frozen=True, eq=False, repr=False)
    class Bare(Expr):
        operand: Expr

        def __post_init__(self) -> None:
            self.settle(self.operand.shape, self.operand.dtype, False, self.operand)

    word = "means" if engine == "interpret" else "lowers"
    with pytest.raises(UnsupportedError, match=rf"Bare has no \w+: write a function under @{word}\(Bare\)"):
        wrap(Bare(expression_of(X))).compute()


# Fields of nodes.


def test_fields_say_what_belongs_there():
    operand = expression_of(X)
    with pytest.raises(DTypeError, match=r"Copy: how is of type list, .* belongs: give tuple\(how\)"):
        Copy(operand, ["right"])  # type: ignore[arg-type]
    with pytest.raises(DTypeError, match=r"Copy: how is of type ndarray, .* give a tuple of its parts"):
        Copy(operand, X)  # type: ignore[arg-type]
    with pytest.raises(
        DTypeError, match=r"Copy: operand is of type DistArray.* give expression_of\(operand\)"
    ):
        Copy(mn.asarray(X), "right")  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="Copy has the fields operand, how, is_sparse"):
        Copy(operand)  # type: ignore[call-arg]


def test_settle_is_given_a_dtype():
    @dataclass(frozen=True, eq=False, repr=False)
    class Texts(Expr):
        def __post_init__(self) -> None:
            self.settle((3,), "f8", False)  # type: ignore[arg-type]

    with pytest.raises(DTypeError, match=r"Texts: settle got the dtype 'f8'; give np.dtype"):
        Texts()


def test_settle_is_given_the_operands():
    @dataclass(frozen=True, eq=False, repr=False)
    class Joined(Expr):
        inputs: tuple[Expr, ...]

        def __post_init__(self) -> None:
            self.settle(self.inputs[0].shape, self.inputs[0].dtype, False)

    one = expression_of(X)
    with pytest.raises(ArgumentError, match=r"self\.settle\(shape, dtype, sparse, \*self\.inputs\)"):
        Joined((one,))
    with pytest.raises(DTypeError, match=r"inputs is of type list.* give tuple\(inputs\)"):
        Joined([one])  # type: ignore[arg-type]


MODULE = """
from dataclasses import dataclass
import numpy as np
from matnb.extend import *

@dataclass(frozen=True, eq=False, repr=False)
class Scale(Expr):
    operand: Expr
    factor: float

    def __post_init__(self):
        self.settle(self.operand.shape, self.operand.dtype, False, self.operand)

@means(Scale)
def _(node, operands):
    return operands[0] * node.factor

def kernel(values, factor):
    return Dense(to_numpy(values[0]) * factor)

KIND = Kind("scale NAME", shown="elementwise")

@lowers(Scale)
def _(node, writer, workers):
    for block in writer.each_block(node, writer.registers[node.operand].layout, KIND):
        block.do(Run(kernel, (node.factor,)), writer.read(block, node.operand, block.region, block.owner))

def scale(x, factor):
    return wrap(Scale(expression_of(x), factor))

def same(graph):
    return Rewritten(graph, {})

register_pass("NAME", same, after="identities", because="anywhere")

class Pair:
    pass

register_container(Pair, lambda pair: ((), ""), lambda structure, children: Pair())

@reader("NAME", ".NAME")
def _(file):
    raise file.error("cannot be read")

@writes(Pair, suffixes=[".NAME"])
def _(value, path, **options):
    pass

@on_run("NAME")
class Log:
    def __init__(self, workers):
        pass

    def note(self, plan, timed):
        pass

    def section(self, measured):
        return None

METHODS["NAME"] = lambda x: x
"""


def times(text: str, number: int) -> str:
    return re.sub(r"\* ((node\.)?factor)", rf"* \1 * {number}", text)


@pytest.fixture
def modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str, str], object]]:
    """Return what writes a module of a name and loads it, again if it is loaded."""
    listed = list(passes.PASSES)
    kept = [dict(one) for one in (READERS, MAKERS, METHODS)]
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    names = []

    def load(name: str, text: str) -> object:
        (tmp_path / f"{name}.py").write_text(text.replace("NAME", name))
        importlib.invalidate_caches()
        names.append(name)
        return importlib.reload(sys.modules[name]) if name in sys.modules else importlib.import_module(name)

    yield load
    passes.PASSES[:] = listed
    for registry, before in zip((READERS, MAKERS, METHODS), kept, strict=True):
        for name in set(registry) - set(before):
            del registry[name]
    for name in names:
        sys.modules.pop(name, None)


def test_a_module_that_is_reloaded_registers_again(modules: Callable[..., object], engine: str):
    first = modules("scaling", MODULE)
    once = first.scale(X, 2.0)  # type: ignore[attr-defined]
    np.testing.assert_array_equal(once.compute(), X * 2)
    again = modules("scaling", "# moved by a line\n" + times(MODULE, 10))
    np.testing.assert_array_equal(again.scale(X, 2.0).compute(), X * 20)  # type: ignore[attr-defined]
    np.testing.assert_array_equal(once.compute(), X * 2)
    assert [one.name for one in passes.PASSES].count("scaling") == 1


def test_two_packages_may_give_nodes_one_name(modules: Callable[..., object], engine: str):
    one, two = modules("doubling", MODULE), modules("tripling", times(MODULE, 3))
    x = one.scale(X, 2.0)  # type: ignore[attr-defined]
    y = two.scale(X, 2.0)  # type: ignore[attr-defined]
    np.testing.assert_array_equal(np.asarray(x), X * 2)
    np.testing.assert_array_equal(np.asarray(y), X * 6)


TWICE: dict[str, tuple[Callable[[], object], str]] = {
    "a reader's kind": (lambda: reader("csv", ".mine")(lambda file: file), "the reader 'csv' is there"),
    "a suffix": (lambda: reader("mine", ".csv"), "the suffix '.csv' are of the kind 'csv'"),
    "a suffix without a dot": (lambda: reader("mine", "csv"), "a suffix is in small letters, after a dot"),
    "a container": (
        lambda: register_container(dict, lambda d: ((), ""), lambda s, c: {}),
        "the container dict is there already",
    ),
    "a pass": (
        lambda: register_pass("chains", lambda g: Rewritten(g, {}), after="order", because=""),
        "the pass 'chains' is there already: order_chains",
    ),
    "a pass after none": (
        lambda: register_pass("mine", lambda g: Rewritten(g, {}), after="identites", because=""),
        "did you mean 'identities'",
    ),
    "a lowering": (lambda: lowers(Copy)(lambda n, w, s: None), "the lowering of Copy is there already"),
    "a function": (lambda: implements(np.sum)(lambda x: x), "the implementation of sum is there already"),
    "what writes": (lambda: writes(mn.Table)(lambda v, p: None), "what writes values of Table is there"),
    "a method": (lambda: METHODS.__setitem__("astype", lambda x: x), "the method 'astype' is there already"),
    "a kind": (lambda: Kind("sort", shown="mine"), "matnb.program.kinds shows tasks of this name as 'sort'"),
}  # fmt: skip


@pytest.mark.parametrize("what", TWICE)
def test_nothing_gets_a_second_meaning(what: str):
    register, words = TWICE[what]
    with pytest.raises(OptionError, match=re.escape(words)):
        register()


def test_the_same_may_be_registered_again():
    for _ in range(2):
        own = _containers[dict]
        register_container(dict, own.flatten, own.unflatten, paths=own.paths)
    leaves, tree = flatten({"a": 1})
    assert (leaves, [*tree.paths("d")]) == ([1], ["d['a']"])


# Readers.


def opened_wrong(file: object) -> WholeFile:
    raise KeyError("header")


def opened_nothing(file: object) -> None:
    return None


def opened(file: object) -> WholeFile:
    return WholeFile("mine", file, (2,), np.dtype(float), read_wrong)  # type: ignore[arg-type]


def read_wrong(stream: object) -> np.ndarray:
    raise LookupError("no such part")


def needing(file: object) -> WholeFile:
    raise ModuleNotFoundError("No module named 'zzz'")


@pytest.fixture
def wrong_readers(modules: object) -> None:
    for name, function in (
        ("wrong", opened_wrong), ("none", opened_nothing), ("late", opened), ("needing", needing)
    ):  # fmt: skip
        reader(name, f".{name}")(function)  # type: ignore[type-var]  # wrong on purpose


@pytest.mark.usefixtures("wrong_readers")
def test_errors_of_readers_name_the_file_and_the_reader(tmp_path: Path, engine: str):
    for kind, words, cause in (
        ("wrong", "the reader of kind 'wrong', opened_wrong (test_extend.py", KeyError),
        ("none", "returned NoneType: return a source, such as WholeFile(...)", None),
        ("late", "what reads files of kind 'mine', read_wrong (test_extend.py", LookupError),
    ):
        path = tmp_path / f"a.{kind}"
        path.write_text("x")
        with pytest.raises(FileFormatError, match=re.escape(words)) as caught:
            mn.load(path)
        assert f"a.{kind}" in str(caught.value)
        if kind == "wrong":
            assert isinstance(caught.value.__cause__, cause)  # type: ignore[arg-type]
    path = tmp_path / "a.needing"
    path.write_text("x")
    with pytest.raises(UnsupportedError, match=r"needs a package: No module named 'zzz'"):
        mn.load(path)


@pytest.mark.usefixtures("modules")
def test_the_longest_suffix_tells_the_kind(tmp_path: Path):
    reader("mine", ".mine.csv")(opened)
    (tmp_path / "a.mine.csv").write_text("x")
    with mn.start(engine="interpret"), pytest.raises(FileFormatError, match="read_wrong"):
        mn.load(tmp_path / "a.mine.csv")


@dataclass(frozen=True)
class Circle:
    """A container whose structure is neither as long as it has children nor to be gone through."""

    center: object
    radius: object
    name: str | None


@pytest.mark.parametrize("name", [None, "", "m", "a long name"])
def test_children_are_numbered_unless_their_paths_are_given(name: str | None):
    register_container(
        Circle, lambda one: ((one.center, one.radius), one.name), lambda name, both: Circle(*both, name)
    )
    try:
        tree = flatten(Circle(mn.zeros(2), [1.0, mn.ones(1)], name))[1]
        assert list(tree.paths("c")) == ["c[0]", "c[1][0]", "c[1][1]"]
        with mn.start(engine="interpret"):
            start = Circle(mn.zeros(2), mn.ones(1), name)
            end, _ = mn.iterate(
                lambda one: Circle(one.center + 1, one.radius * 2, one.name), start, max_iterations=3
            )
            assert end.center.compute().tolist() == [3, 3]
            chosen = mn.cond(mn.asarray(True), lambda: end, lambda: start)
            assert (chosen.radius.compute().tolist(), chosen.name) == ([8], name)
            with pytest.raises(ShapeError, match=r"\[1\]"):
                mn.iterate(lambda one: Circle(one.center, mn.ones(7), name), start, max_iterations=3)
    finally:
        _containers.pop(Circle)


def test_what_cannot_be_registered_is_refused_at_once():
    for wrong in (
        lambda: register_container("x", tuple, tuple),
        lambda: lowers(int)(print),
        lambda: means(mn.ones(2).expression)(print),
        lambda: implements(3)(print),
        lambda: METHODS.__setitem__("sum", print),
        lambda: SPARSE_METHODS.__setitem__("compute", print),
    ):
        with pytest.raises(OptionError, match=r"'x' is no type|no subclass of|not callable|every Dist"):
            wrong()


def test_flatten_that_returns_something_else_is_named():
    register_container(Circle, lambda one: np.float64(3), lambda name, both: Circle(*both, name))
    try:
        with pytest.raises(OptionError, match=r"lambda.*test_extend.py.* returned float64 of a Circle"):
            flatten(Circle(1, 2, None))
    finally:
        _containers.pop(Circle)


class Failing:
    """A listener that raises where it is told to."""

    where = ""

    def __init__(self, workers: object) -> None:
        self.fail("__init__")

    def fail(self, where: str) -> None:
        if where == self.where:
            raise KeyError("a")

    def note(self, plan: object, timed: object) -> None:
        self.fail("note")

    def section(self, measured: bool) -> None:
        self.fail("section")


@pytest.mark.parametrize("where", ["__init__", "note", "section"])
def test_a_listener_that_raises_is_left_out_and_named(where: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(MAKERS, "failing", Failing)
    monkeypatch.setattr(Failing, "where", where)
    with (
        warnings.catch_warnings(record=True, action="always") as warned,
        mn.start(workers=1, threads=1) as session,
    ):
        assert float((mn.ones(4) + 1).sum()) == 8
        mn.history()
        assert "failing" not in session.listeners
        assert float((mn.ones(4) + 2).sum()) == 12
    (one,) = [str(each.message) for each in warned if "listener" in str(each.message)]
    assert re.fullmatch(r"the listener 'failing', Failing .* is left out: KeyError: 'a'", one)
