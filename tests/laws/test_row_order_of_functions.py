"""Whatever makes a value for each row of a column keeps the order of its rows: no other table takes it."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
import sklearn.linear_model
import sklearn.utils

import matnb as mn
from matnb.errors import ShapeError

pytestmark = pytest.mark.session("interpreter")

FRAME = pd.DataFrame(
    {
        "text": ["d", "b", "a", "c"],
        "x": [1.0, 2.5, None, 4.0],
        "y": [10.0, 3.0, 5.0, 4.0],
        "n": [4, 2, 3, 1],
        "flag": [True, False, True, True],
        "masked": pd.array([1, None, 3, 4], "Int64"),
        "when": pd.to_datetime(["2024-01-05", "2024-03-01", None, "2025-01-01"]),
        "length": pd.to_timedelta([3, 1, 2, 5], unit="h"),
    }
)
# What functions may take after a column; what does not fit is left out.
ARGUMENTS: list[tuple[Any, ...]] = [
    *[(), (2,), (1, 2), (0.5, 1.5), ([2, 3],), (lambda x: x,), (lambda x: x > 0,), ({"a": "b", 2: 1},)],
    *[("a",), ("a", "b"), ("%Y",), ("D",), ("h",), ("UTC",), (float,), (str,), ("2024-01-01", "2024-12-01")],
]
# Functions that put values in an order of their own, have nothing of the values, or are of few elements.
_ORDER = "argpartition argsort flip flipud nlargest nonzero nsmallest partition sort sort_values sample roll "
_SETS = "setdiff1d setxor1d union1d unique unique_all unique_counts unique_inverse unique_values intersect1d "
_NONE = "fromiter empty_like full_like ones_like zeros_like imag iscomplex isreal "
_LISTS = "broadcast_arrays where flatnonzero "
_PARTS = "ediff1d gradient hstack unwrap polyval"  # made of slices, which have rows of their own
EXCEPT = {*(_ORDER + _SETS + _NONE + _LISTS + _PARTS).split()}
# Functions that are not of one array, change it, or write.
_SESSION = (
    "connect doctor explain facts history info memo monitor plot progress simulate source spy stamp start "
)
_FILES = (
    "stop visualize compute persist save savetxt savez savez_compressed test tofile dump lookfor fill put "
)
_CHANGES = "copyto fill_diagonal place putmask put_along_axis resize"
ELSEWHERE = {*(_SESSION + _FILES + _CHANGES).split()}


def names_of(owner: Any) -> list[str]:
    names = [one for one in dir(owner) if not one.startswith("_") and one not in EXCEPT | ELSEWHERE]
    return [one for one in names if not inspect.isclass(inspect.getattr_static(owner, one, None))]


def columns_in(found: Any) -> list[Any]:
    if isinstance(found, tuple):
        return [one for each in found for one in columns_in(each)]
    if isinstance(found, mn.Table):
        return [one for name in found.columns for one in columns_in(found[name])]
    is_column = isinstance(found, mn.Column) or (isinstance(found, mn.DistArray) and found.ndim == 1)
    return [found] if is_column and len(found) == len(FRAME) and found.dtype.kind != "c" else []


def lost_by(t: mn.Table, call: Callable[..., Any]) -> tuple[int, list[tuple[Any, ...]]]:
    # How often a function gave a column, and the arguments with which a table in another order took it.
    count, lost = 0, []
    for arguments in ARGUMENTS:
        try:
            found = columns_in(call(*arguments))
        except Exception:  # of arguments that are for others
            continue
        for one in found:
            count += 1
            try:
                t.with_columns(z=one)
            except ShapeError:
                continue
            lost.append(arguments)
    return count, lost


@pytest.fixture(scope="module")
def t() -> mn.Table:
    return mn.table(FRAME)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", list(FRAME))
def test_methods_of_columns_keep_the_order(t: mn.Table, name: str) -> None:
    s = t.sort_values("text")
    calls: dict[str, Callable[..., Any]] = {}
    for method in names_of(s[name]):
        if method in ("str", "dt"):
            for other in names_of(getattr(s[name], method)):
                calls[f"{method}.{other}"] = lambda *given, one=method, two=other: _called(
                    getattr(getattr(s[name], one), two), given
                )
        else:
            calls[method] = lambda *given, one=method: _called(getattr(s[name], one), given)
    found = {one: lost_by(t, call) for one, call in calls.items()}
    assert {one: lost for one, (_, lost) in found.items() if lost} == {}
    assert sum(count > 0 for count, _ in found.values()) > 15  # of each kind of columns


def _called(method: Any, given: tuple[Any, ...]) -> Any:
    return method(*given) if callable(method) else method


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("module", [np, mn])
@pytest.mark.parametrize("name", ["x", "n", "flag"])
def test_functions_of_columns_keep_the_order(t: mn.Table, module: Any, name: str) -> None:
    s = t.sort_values("text")
    functions = {
        one: getattr(module, one)
        for one in names_of(module)
        if callable(getattr(module, one)) and (module is np or getattr(np, one, None) is not getattr(mn, one))
    }
    found = {one: lost_by(t, lambda *given, f=f: f(s[name], *given)) for one, f in functions.items()}
    lost = {one: lost for one, (_, lost) in found.items() if lost}
    assert lost.pop("searchsorted", []) in ([], [([2, 3],)])
    assert lost == {}
    assert sum(count > 0 for count, _ in found.values()) > (50 if module is np else 3)


ROWS: list[Callable[[mn.Table], Any]] = [
    lambda s: mn.rolling(s["y"], 2).sum(),
    lambda s: mn.rolling(s["x"], 2, min_periods=1).mean(),
    lambda s: ~s["n"].isin([2]),
    lambda s: s[["x", "n"]].mean(axis=1),
    lambda s: s[["y", "n"]].sum(axis=1),
    lambda s: s[["y", "n"]].median(axis=1),
    lambda s: s[["x", "n"]].std(axis=1),
    lambda s: s[["x", "n"]].isna().any(axis=1),
    lambda s: s.isna().any(axis=1),
    lambda s: s[["y", "n"]].duplicated(),
    lambda s: s.missing(),
    lambda s: s[["y", "n"]].to_matrix() @ np.ones(2),
    lambda s: s[["y", "n"]].to_matrix()[:, 1],
    lambda s: s[["y", "n"]].to_matrix().argmax(axis=1),
    lambda s: np.linalg.norm(s[["y", "n"]].to_matrix(), axis=1),
    lambda s: np.column_stack([s["y"], s["n"]]).max(axis=1),
    lambda s: np.stack([s["y"], s["n"]]).mean(axis=0),
    lambda s: np.vstack([s["y"], s["n"]]).T.max(axis=1),
    lambda s: np.interp(s["n"], [1.0, 2.0], [3.0, 4.0]),
    lambda s: np.digitize(s["n"], [1, 2]),
    lambda s: np.select([s["n"] > 2], [s["y"]], 0),
    lambda s: np.convolve(s["y"], [1.0, 2.0, 1.0], "same"),
    lambda s: s["x"].bfill(),
    lambda s: s["y"][::-1].cumsum()[::-1],
    lambda s: mn.map_blocks(lambda block: block * 2, s["y"]),
    lambda s: mn.asarray(np.arange(9.0))[s["n"]],
    lambda s: s.groupby("masked")["y"].transform("sum"),
    lambda s: s.groupby("text").ngroup(),
]


@pytest.mark.parametrize("make", ROWS)
def test_what_is_made_of_rows_is_for_these_rows(t: mn.Table, make: Callable[[mn.Table], Any]) -> None:
    s = t.sort_values("text")
    for one, other in ((s, t), (t, s)):
        with pytest.raises(ShapeError, match="order"):
            other.with_columns(z=make(one))
        found = make(one)
        one.with_columns(z=found)
        if found.dtype.kind == "b":
            one[found]
            with pytest.raises(ShapeError, match="order"):
                other[found]


def test_rows_of_the_same_places_go_together(t: mn.Table) -> None:
    s = t.sort_values("text")
    assert (s[["x", "y"]].iloc[:3]["y"] + s[["n"]].iloc[:3]["n"]).tolist() == [8.0, 5.0, 5.0]
    assert (s[["y"]][s["n"] > 1]["y"] + s[["n"]][s["n"] > 1]["n"]).tolist() == [8.0, 5.0, 14.0]
    for one, two in ((t.head(2), s.head(2)), (t.head(2), t.tail(2))):
        with pytest.raises(ShapeError, match="order"):
            one["y"] - two["y"]
    assert (t["y"][1:] - t["y"][:-1]).tolist() == FRAME["y"].diff().tolist()[1:]


def test_learners_take_targets_of_the_same_rows(t: mn.Table) -> None:
    s = t.sort_values("text")
    model, classifier = mn.learn.LinearRegression(), mn.learn.LogisticRegression()
    for X in (s[["n"]], s[["n", "y"]].to_matrix(), np.log(s[["n"]])):
        with pytest.raises(
            ShapeError, match="LinearRegression: y is of a table whose rows are in another order"
        ):
            model.fit(X, t["y"])
        with pytest.raises(ShapeError, match="another order"):
            classifier.fit(X, t["flag"])
        with pytest.raises(ShapeError, match="another order"):
            classifier.fit(X, t["text"])
        with pytest.raises(ShapeError, match="sample_weight is of a table"):
            model.fit(X, s["y"], sample_weight=t["n"])
        expected = sklearn.linear_model.LinearRegression().fit(np.asarray(X), np.asarray(s["y"]))
        model.fit(X, s["y"])
        np.testing.assert_allclose(np.asarray(model.coef_), expected.coef_)
        assert model.score(X, s["y"]) == pytest.approx(expected.score(np.asarray(X), np.asarray(s["y"])))
        classifier.fit(X, s["flag"])
        for one, y in ((model, t["y"]), (classifier, t["flag"])):
            with pytest.raises(ShapeError, match="score: y is of a table"):
                one.score(X, y)
    with pytest.raises(ShapeError, match="order"):
        t.with_columns(p=model.predict(np.log(s[["n"]])))
    model.fit(s[["n"]], np.asarray(t["y"]))  # by position
    X, y = sklearn.utils.shuffle(t[["n"]], t["y"], random_state=1)
    model.fit(X, y)
