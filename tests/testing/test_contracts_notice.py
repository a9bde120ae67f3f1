"""Each contract notices what breaks it, and says what: classes that keep it but for one thing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import matnb as mn
from matnb import passes
from matnb.extend import (
    Block,
    Dense,
    Expr,
    ExprGraph,
    File,
    Kind,
    PlanWriter,
    Rewritten,
    Run,
    Value,
    WholeFile,
    Workers,
    expression_of,
    lowers,
    means,
    reader,
    register_container,
    register_pass,
    rewrite,
    to_numpy,
    wrap,
)
from matnb.io.source import READERS
from matnb.lazy.tree import _containers
from matnb.testing import ContainerTests, EstimatorTests, ExampleFile, OpTests, SourceTests


def noticed(tests: object) -> dict[str, str]:
    """Run all tests of a class, and return what those say that fail."""
    found = {}
    for name in dir(tests):
        if name.startswith("test_"):
            try:
                getattr(tests, name)()
            except Exception as error:  # whatever a test raises is a failure
                found[name] = str(error)
    return found


# An operation that doubles, wrong in one way.


@dataclass(frozen=True, eq=False, repr=False)
class Twice(Expr):
    """Doubles."""

    operand: Expr
    how: str

    def __post_init__(self) -> None:
        dtype = np.dtype(np.float32) if self.how == "dtype" else self.operand.dtype
        self.settle(self.operand.shape, dtype, False, self.operand)


@means(Twice)
def _(node: Twice, operands: Sequence[Value]) -> Value:
    return np.asarray(operands[0] * (3 if node.how == "meaning" else 2), node.dtype)


TWICE = Kind("twice of a test", shown="elementwise")


@lowers(Twice)
def _(node: Twice, writer: PlanWriter, workers: Workers) -> None:
    for block in writer.each_block(node, writer.registers[node.operand].layout, TWICE):
        region = block.region
        if node.how == "first rows":
            region = ((0, region[0][1] - region[0][0]), *region[1:])
        kernel: Callable[..., Block] = overwriting if node.how == "overwrites" else doubling
        if node.how == "lambda":
            kernel = lambda values, how: doubling(values, how)  # noqa: E731
        value = writer.read(block, node.operand, region, block.owner)
        block.do(Run(kernel, (node.how,)), value)


def doubling(values: Sequence[Block], how: str) -> Block:
    x = to_numpy(values[0])
    if how == "block":
        x = x[:1]
    return Dense(x * (2.5 if how == "kernel" else 2))


def overwriting(values: Sequence[Block], how: str) -> Block:
    x = to_numpy(values[0])
    x *= 2
    return Dense(x)


counted = iter(range(10**6))


class TwiceTests(OpTests):
    how = "right"

    def record(self, x: Any) -> mn.DistArray:
        how = f"{next(counted)}" if self.how == "new" else self.how
        return wrap(Twice(expression_of(x), how))

    def expected(self, x: Any) -> np.ndarray:
        return x * 2

    def operands(self) -> list[tuple[np.ndarray, ...]]:
        return [] if self.how == "none" else [(np.arange(12.0).reshape(6, 2),)]


OPS = {
    "meaning": ("test_its_meaning_is_what_is_expected", "Twice"),
    "dtype": ("test_its_meaning_is_what_is_expected", "settle() says"),
    "kernel": ("test_its_tasks_make_it_from_any_cuts", "cuts 0, 1 workers"),
    "block": ("test_its_tasks_make_it_from_any_cuts", "Twice: its kernel doubling"),
    "first rows": ("test_its_tasks_make_it_from_any_cuts", "cuts"),
    "overwrites": ("test_its_tasks_make_it_from_any_cuts", "read-only"),
    "lambda": ("test_its_tasks_travel", "let kernels be functions of a module"),
    "new": ("test_equal_calls_are_one_node", "two equal calls are two nodes"),
    "none": ("test_its_tasks_travel", "gives no operands"),
}


def test_an_operation_that_keeps_the_contract():
    assert noticed(TwiceTests()) == {}


@pytest.mark.parametrize("how", OPS)
def test_an_operation_that_is_wrong_in_one_way(how: str):
    name, words = OPS[how]
    tests = TwiceTests()
    tests.how = how
    found = noticed(tests)
    assert words.lower() in found[name].lower(), found


def test_a_pass_that_changes_the_meaning_is_noticed(monkeypatch: pytest.MonkeyPatch):
    def wrong(graph: ExprGraph) -> Rewritten:
        return rewrite(graph, lambda node: node.operand if isinstance(node, Twice) else None)

    monkeypatch.setattr(passes, "PASSES", [*passes.PASSES])
    register_pass("wrong", wrong, after="identities", because="of a test")
    assert "after all passes" in noticed(TwiceTests())["test_passes_keep_what_it_means"]


# A container.


class Pair:
    """Two parts and a word, as the tests want them."""

    def __init__(self, one: Any, two: Any, word: Any) -> None:
        self.one, self.two, self.word = one, two, word


class Word:
    """A word that is like no other, and cannot be read."""


PAIRS: dict[str, tuple[dict[str, Any], str]] = {
    "turned": ({"unflatten": lambda word, parts: Pair(parts[1], parts[0], word)}, "changes the leaves"),
    "type": ({"unflatten": lambda word, parts: (*parts, word)}, "became tuple"),
    "structure": ({"flatten": lambda pair: ((pair.one, pair.two), Word())}, "two structures of one value"),
    "paths": ({"paths": lambda word: (".one", ".one")}, "give paths="),
    "others": ({"flatten": lambda pair: ((pair.one, pair.two), "a")}, "have one structure"),
}


class PairTests(ContainerTests):
    def values(self) -> list[Pair]:
        return [Pair(mn.ones(2), mn.zeros(3), "a")]

    def others(self) -> list[tuple[Pair, Pair]]:
        return [(Pair(mn.ones(2), mn.zeros(3), "a"), Pair(mn.ones(2), mn.zeros(3), "b"))]


@pytest.fixture
def pairs() -> Iterator[None]:
    yield
    _containers.pop(Pair, None)


@pytest.mark.usefixtures("pairs")
def test_a_container_that_keeps_the_contract_and_those_that_do_not():
    right = {
        "flatten": lambda pair: ((pair.one, pair.two), pair.word),
        "unflatten": lambda word, parts: Pair(*parts, word),
        "paths": lambda word: (".one", ".two"),
    }
    assert "call register_container(Pair, ...)" in str(noticed(PairTests()))
    register_container(Pair, **right)
    assert noticed(PairTests()) == {}
    for how, (change, words) in PAIRS.items():
        _containers.pop(Pair)
        register_container(Pair, **{**right, **change})
        assert words in str(noticed(PairTests())), how


# A reader.


def numbers(stream: Any, factor: int) -> np.ndarray:
    return np.array(stream.read().split(), float) * factor


def careless(file: File) -> WholeFile:
    with file.open() as stream:
        count = len(stream.read().split())
    return WholeFile("careless", file, (count,), np.dtype(float), numbers, (1,))


class Forgetful(WholeFile):
    def identity(self) -> tuple[str | int, ...]:
        return (self.kind,)


def open_forgetful(file: File) -> WholeFile:
    source = careless(file)
    return Forgetful(source.kind, file, source.shape, source.dtype, numbers, (1,))


def open_doubling(file: File) -> WholeFile:
    source = careless(file)
    return WholeFile(source.kind, file, source.shape, source.dtype, numbers, (2,))


def lenient(stream: Any, factor: int) -> np.ndarray:
    return np.array([float(one) if one.isdigit() else 0.0 for one in stream.read().decode().split()])


def open_lenient(file: File) -> WholeFile:
    source = careless(file)
    return WholeFile(source.kind, file, source.shape, source.dtype, lenient, (1,))


def open_anew(file: File) -> WholeFile:
    source = careless(file)
    return WholeFile(f"opened {next(counted)}", file, source.shape, source.dtype, numbers, (1,))


class NumberTests(SourceTests):
    kind = "numbers"

    def files(self) -> list[ExampleFile]:
        return [ExampleFile("a.numbers", b"1 2 3 4", np.arange(1.0, 5.0))]

    def bad_files(self) -> list[tuple[str, bytes, str]]:
        return [("b.numbers", b"1 two", "two")]


SOURCES: dict[str, tuple[Callable[..., Any], str, str]] = {
    "values": (open_doubling, "test_any_pieces_and_cuts_give_the_array", "a.numbers in 1 pieces"),
    "identity": (open_forgetful, "test_its_identity_changes_with_the_file", "leaves out the file"),
    "bad files": (open_lenient, "test_bad_files_say_what_is_wrong", "is read, though it is bad"),
    "opened anew": (open_anew, "test_a_source_is_a_value", "opened twice, sources differ"),
}


@pytest.fixture
def readers() -> Iterator[None]:
    yield
    READERS.pop("numbers", None)


@pytest.mark.usefixtures("readers")
def test_a_reader_that_keeps_the_contract_and_those_that_do_not(tmp_path: Path):
    reader("numbers", ".numbers")(careless)
    assert noticed(NumberTests()) == {}
    for how, (function, name, words) in SOURCES.items():
        READERS.pop("numbers")
        reader("numbers", ".numbers")(function)
        assert words in noticed(NumberTests()).get(name, ""), how
    READERS.pop("numbers")
    reader("numbers")(careless)
    assert "no reader for this suffix" in noticed(NumberTests())["test_its_suffix_tells_its_kind"]


# An estimator: the middle of each column, wrong in one way.


class Middle:
    def __init__(self, how: str = "right") -> None:
        self.how = f"{how}!" if how.startswith("constructor") else how

    def fit(self, X: Any, y: Any = None) -> Any:
        if self.how == "nothing":
            return self
        if self.how == "again" and hasattr(self, "middle_"):
            self.middle_ = self.middle_ + 1
            return self
        given = X
        X = mn.asarray(X)
        self.middle_ = np.asarray(X.mean(axis=0))
        if self.how == "cuts":
            layout = X.persist().layout
            assert layout is not None
            self.middle_ = np.asarray(X[: layout.grid.cuts[0][1]].mean(axis=0))
        if self.how == "names":
            self.middle = self.middle_
        if self.how == "data" and isinstance(given, np.ndarray):
            given *= 2
        return None if self.how == "self" else self

    def transform(self, X: Any) -> Any:
        X = mn.asarray(X)
        if self.how == "before":
            return X
        if self.how == "order":
            return np.cumsum(X - self.middle_, axis=0)
        if self.how == "columns":
            return X - self.middle_[0]
        found = X - self.middle_
        return found.compute() if self.how == "eager" else found[:3] if self.how == "rows" else found

    def __getstate__(self) -> dict[str, Any]:
        return {"how": self.how} if self.how == "pickle" else dict(vars(self))


class MiddleTests(EstimatorTests):
    how = "right"

    def make(self) -> Middle:
        return Middle(self.how)

    def data(self) -> tuple[np.ndarray, None]:
        return np.random.default_rng(0).normal(size=(12, 3)), None


ESTIMATORS = {
    "constructor": ("test_the_constructor_keeps_what_it_is_given", "changes how in its constructor"),
    "nothing": ("test_fit_returns_the_estimator_and_keeps_its_arguments", "learns nothing"),
    "names": ("test_fit_returns_the_estimator_and_keeps_its_arguments", "fit sets middle:"),
    "self": ("test_fit_returns_the_estimator_and_keeps_its_arguments", "something else than self"),
    "again": ("test_fitting_again_gives_the_same", "fitted again: middle_"),
    "data": ("test_data_is_not_changed", "changes its data"),
    "before": ("test_before_fit_it_says_so", "returns something before fit"),
    "order": ("test_results_have_a_row_for_each_row", "rows in another order"),
    "columns": ("test_other_columns_are_refused", "refuse them"),
    "eager": ("test_results_have_a_row_for_each_row", "returns ndarray, not a DistArray"),
    "rows": ("test_results_have_a_row_for_each_row", "returns 3 rows for 12"),
    "cuts": ("test_any_cuts_teach_the_same", "middle_"),
    "pickle": ("test_it_is_pickled_with_what_it_learned", "pickled: learns"),
}


def test_an_estimator_that_keeps_the_contract():
    assert noticed(MiddleTests()) == {}


@pytest.mark.parametrize("how", ESTIMATORS)
def test_an_estimator_that_is_wrong_in_one_way(how: str):
    name, words = ESTIMATORS[how]
    tests = MiddleTests()
    tests.how = how
    found = noticed(tests)
    assert words in found[name], found


def test_what_a_subclass_leaves_out_is_named():
    for kind in (OpTests, ContainerTests, SourceTests, EstimatorTests):
        assert all("write " in text or "kind" in text for text in noticed(kind()).values() if text)
        assert len(noticed(kind())) > 2
