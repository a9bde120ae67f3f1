"""A result of several values names its fields where it is used as an array; unpacking and integers stay."""

from __future__ import annotations

import importlib
import inspect
import operator
import pkgutil
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import matnb as mn
from matnb.errors import DTypeError
from matnb.lazy.functions import decompositions

G = sp.csr_array(np.array([[0, 1.0, 0, 0], [1, 0, 1, 0], [0, 1, 0, 1], [0, 0, 1, 0]]))
S = np.diag([4.0, 3.0, 2.0, 1.0])
RESULTS: dict[str, Callable[[], Any]] = {
    "louvain": lambda: mn.graph.louvain(G),
    "connected_components": lambda: mn.graph.connected_components(G),
    "pagerank": lambda: mn.graph.pagerank(G),
    "hits": lambda: mn.graph.hits(G),
    "eigenvector_centrality": lambda: mn.graph.eigenvector_centrality(G),
    "markov_clustering": lambda: mn.graph.markov_clustering(G),
    "sssp": lambda: mn.graph.sssp(G, 0, predecessors=True),
    "bfs": lambda: mn.graph.bfs(G, 0),
    "cg": lambda: mn.linalg.cg(S, np.ones(4)),
    "lsqr": lambda: mn.linalg.lsqr(S, np.ones(4)),
    "lsmr": lambda: mn.linalg.lsmr(S, np.ones(4)),
    "svds": lambda: mn.linalg.svds(S, k=2),
    "eigsh": lambda: mn.linalg.eigsh(S, k=2),
    "topk": lambda: mn.topk(mn.asarray(S), 2),
}
# Named as NumPy's are, which are tuples and nothing else.
NUMPYS = {one for one in vars(decompositions).values() if inspect.isclass(one)}
USES: dict[str, Callable[[Any], object]] = {
    "==": lambda r: r == 3,
    "!=": lambda r: r != 3,
    "== of an array": lambda r: r == np.arange(4),
    "an array ==": lambda r: mn.arange(4) == r,
    "a NumPy array ==": lambda r: np.arange(4) == r,
    "a number <": lambda r: r > 3,
    ">= of a scalar": lambda r: r >= np.float64(3),
    "== of a list": lambda r: r == [0, 1, 0, 1],
    "== of a text": lambda r: r == "a",
    **{
        f"{one.__name__} of a number": lambda r, one=one: one(r, 2)
        for one in (
            operator.add,
            operator.sub,
            operator.mul,
            operator.truediv,
            operator.floordiv,
            operator.mod,
            operator.pow,
            operator.and_,
            operator.or_,
            operator.xor,
            operator.lshift,
            operator.matmul,
        )
    },
    **{
        f"a number {one.__name__}": lambda r, one=one: one(2, r)
        for one in (operator.add, operator.sub, operator.mul, operator.truediv, operator.pow, operator.and_)
    },
    "an array *": lambda r: mn.arange(4.0) * r,
    "* an array": lambda r: r * mn.arange(4.0),
    "a NumPy array *": lambda r: np.arange(4.0) * r,
    "a matrix @": lambda r: mn.asarray(G) @ r,
    "-": lambda r: -r,
    "~": lambda r: ~r,
    "abs": lambda r: abs(r),
    "float": lambda r: float(r),
    "int": lambda r: int(r),
    "np.sum": lambda r: np.sum(r),
    "np.sqrt": lambda r: np.sqrt(r),
    "np.where": lambda r: np.where(r, 1, 0),
    "np.unique": lambda r: np.unique(r),
    "np.bincount": lambda r: np.bincount(r),
    "np.asarray": lambda r: np.asarray(r),
    "np.array": lambda r: np.array(r),
    "mn.asarray": lambda r: mn.asarray(r),
    "mn.asarray of several": lambda r: mn.asarray([r, r]),
    "mn.sum": lambda r: mn.sum(r),
    "an index": lambda r: mn.asarray(S)[r],
    "an index of rows": lambda r: mn.asarray(S)[r, 0],
    "an index of columns": lambda r: mn.asarray(S)[:, r],
    "an assignment's rows": lambda r: operator.setitem(mn.asarray(S), (r, 0), 0),
    "keys of groups": lambda r: mn.groupby(r),
    "keys of several groups": lambda r: mn.groupby((mn.arange(4), r)),
    "a column of a table": lambda r: mn.table({"key": r}),
    "another column of a table": lambda r: mn.table({"key": range(4)}).with_columns(more=r),
    "an assignment's index": lambda r: operator.setitem(mn.asarray(S), r, 0),
    "a value": lambda r: operator.setitem(mn.asarray(S), 0, r),
    "np.take": lambda r: np.take(mn.asarray(S), r, axis=0),
    "isin": lambda r: np.isin(mn.arange(4), r),
    "indexed by a mask": lambda r: r[np.array([True, False])],
    "indexed by an array": lambda r: r[mn.arange(2)],
    "indexed by a text": lambda r: r["no field"],
}

pytestmark = pytest.mark.session("one thread")


@pytest.fixture(scope="module")
def made(session: None) -> dict[str, Any]:
    return {name: make() for name, make in RESULTS.items()}


@pytest.mark.parametrize("use", USES)
def test_a_result_used_as_an_array_names_its_fields(use: str, made: dict[str, Any]) -> None:
    for name, result in made.items():
        with pytest.raises(DTypeError, match=r"has the fields? .*, and is no array: write the one") as caught:
            USES[use](result)
        meant = "labels" if name == "connected_components" else result._fields[0]
        assert f"result.{meant}" in str(caught.value), name
        assert all(field in str(caught.value) for field in result._fields)


@pytest.mark.parametrize("name", RESULTS)
def test_what_tuples_do_stays(name: str, made: dict[str, Any]) -> None:
    result = made[name]
    values = tuple(result)
    first = next(iter(result))
    assert len(result) == len(values) == len(result._fields)
    assert first is result[0] is getattr(result, result._fields[0])
    assert result[-1] is values[-1] is result[np.int64(len(values) - 1)]
    assert result[:1] == (first,)
    assert (result == result) is True
    assert (result != values) is False
    assert (result == ()) is False
    assert (result == None) is False  # noqa: E711  what is tried
    assert operator.add(result, (1,)) == (*values, 1)
    assert bool(result)
    assert "__array_interface__" not in dir(result)
    with pytest.raises(AttributeError, match=f"no attribute 'compute'; its fields are {result._fields[0]}"):
        result.compute()
    assert mn.compute(*(one for one in values if isinstance(one, mn.DistArray)))


def test_a_field_is_what_was_meant() -> None:
    labels = mn.graph.louvain(G)
    part = mn.asarray(G)[labels.labels == labels.labels[0]]
    assert part.shape[1] == 4


def test_every_public_result_is_such_a_one() -> None:
    found = set()
    for room in (mn.graph, mn.linalg, mn.learn, mn.nested):
        for info in pkgutil.walk_packages(room.__path__, f"{room.__name__}."):
            module = importlib.import_module(info.name)
            for name, function in vars(module).items():
                if inspect.isfunction(function) and name in dir(room):
                    for kind in vars(module).values():
                        returned = str(inspect.signature(function).return_annotation)
                        if inspect.isclass(kind) and hasattr(kind, "_fields") and kind.__name__ in returned:
                            found.add(kind)
    found -= NUMPYS
    assert len(found) >= 15
    assert [one for one in found if not hasattr(one, "__matnb_array__")] == []
