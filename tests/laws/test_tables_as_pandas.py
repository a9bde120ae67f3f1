"""Tables do what pandas' frames do: equal rows, statistics by column and row, rows by number and mask."""

from __future__ import annotations

import operator
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import matnb as mn
from matnb.errors import ColumnError, DTypeError, MatnbError, OptionError, ShapeError

pytestmark = pytest.mark.session("two threads")


@st.composite
def frames(draw: st.DrawFn, least: int = 0) -> pd.DataFrame:
    length = draw(st.integers(least, 9))

    def some(values: list[Any], dtype: str) -> pd.Series:
        return pd.Series(
            draw(st.lists(st.sampled_from(values), min_size=length, max_size=length)), dtype=dtype
        )

    return pd.DataFrame(
        {
            "zone": some(["b", "a", "Ä", None], "str"),
            "fare": some([1.5, -2.0, 4.0, 0.0, None], "float64"),
            "n": some([1, 2, 5, None], "Int64"),
            "k": some([1, 2, -7], "int64"),
            "paid": some([True, False], "bool"),
            "when": some([pd.Timestamp("2020-01-01"), pd.Timestamp("2021-05-01"), None], "datetime64[us]"),
        }
    )


def rows(found: Any) -> list[tuple[Any, ...]]:
    frame = found.to_pandas() if isinstance(found, mn.Table) else found
    return [
        tuple(None if pd.isna(one) else one for one in row)
        for row in frame.astype(object).itertuples(index=False)
    ]


def close(found: Any, expected: Any) -> None:
    np.testing.assert_allclose(np.array(found, float), np.array(expected, float), rtol=1e-9, atol=1e-12)


KEEP: list[Any] = ["first", "last", False]


@given(frame=frames(), keep=st.sampled_from(KEEP), data=st.data())
@settings(max_examples=40, deadline=None)
def test_rows_that_come_again(frame: pd.DataFrame, keep: Any, data: st.DataObject) -> None:
    subset = data.draw(st.none() | st.lists(st.sampled_from(list(frame)), min_size=1, unique=True))
    t = mn.table(frame)
    assert t.duplicated(subset, keep=keep).compute().tolist() == frame.duplicated(subset, keep=keep).tolist()
    assert rows(t.drop_duplicates(subset, keep=keep)) == rows(frame.drop_duplicates(subset, keep=keep))


@given(frame=frames(least=1))
@settings(max_examples=30, deadline=None)
def test_statistics_of_columns(frame: pd.DataFrame) -> None:
    t, numbers = mn.table(frame), ["fare", "n", "k", "paid"]
    assert t.count().to_dict() == frame.count().to_dict()
    assert t.isna().sum().to_dict() == frame.isna().sum().to_dict()
    close(t.isna().mean().tolist(), frame.isna().mean())
    assert t.isna().any(axis=1).compute().tolist() == frame.isna().any(axis=1).tolist()
    assert t.nunique().to_dict() == frame.nunique().to_dict()
    for name in ("sum", "mean", "median", "std", "var", "min", "max"):
        expected = frame[numbers].astype(float).agg(name)
        found = getattr(t, name)(numeric_only=True)
        close([found[one] for one in numbers], expected)
    for name in ("sum", "mean", "max"):
        expected = getattr(frame[["fare", "k"]], name)(axis=1)
        close(getattr(t[["fare", "k"]], name)(axis=1).compute(), expected)


@given(frame=frames(least=1))
@settings(max_examples=30, deadline=None)
def test_correlations_leave_out_what_is_missing_in_pairs(frame: pd.DataFrame) -> None:
    numbers = frame[["fare", "n", "k"]].astype(float)
    for name in ("corr", "cov"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # of NumPy's, below pandas, for one row
            expected = getattr(numbers, name)()
        found = getattr(mn.table(frame[["fare", "n", "k"]]), name)()
        assert found["column"].tolist() == list(expected.index)
        np.testing.assert_allclose(
            found.to_matrix(["fare", "n", "k"]).compute(), expected, rtol=1e-9, atol=1e-9
        )


def test_correlations_of_large_numbers_keep_their_digits() -> None:
    rng = np.random.default_rng(0)
    a = 1e9 + rng.random(1000)
    frame = pd.DataFrame({"a": a, "b": a + rng.random(1000)})
    np.testing.assert_allclose(mn.table(frame).corr()["b"].compute(), frame.corr()["b"], rtol=1e-6)


@pytest.mark.parametrize("spoiled", [None, np.nan, np.inf])
def test_correlations_with_and_without_missing_values(spoiled: float | None) -> None:
    values = np.random.default_rng(1).normal(size=(300, 3)) * [1, 50, 0] + [7, -3, 0.1]
    if spoiled is not None:
        values[4, 1] = spoiled
    frame = pd.DataFrame(values, columns=["a", "b", "constant"])
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        found, expected = mn.table(frame), (frame.corr(), frame.cov())
        for ours, theirs in zip((found.corr(), found.cov()), expected, strict=True):
            got = np.stack([ours[name].compute() for name in frame], axis=1)
            np.testing.assert_allclose(got, theirs.to_numpy(), rtol=1e-9, atol=1e-12)


ALIKE: dict[str, Callable[[Any], Any]] = {
    "fillna": lambda t: t.fillna({"zone": "?", "fare": 0.5, "n": 9}),
    "fillna by columns": lambda t: t[["fare", "n"]].fillna(0),
    "ffill": lambda t: t.ffill(),
    "bfill": lambda t: t.bfill(),
    "replace": lambda t: t.replace("b", "B"),
    "replace by column": lambda t: t.replace({"zone": {"a": "A"}, "k": {1: 100}}),
    "clip": lambda t: t[["fare", "k"]].clip(0, 2),
    "round": lambda t: t[["fare"]].round(0),
    "assign": lambda t: t.assign(more=t["k"] + 1, most=lambda d: d["more"] * 2),
    "rename": lambda t: t.rename(columns={"k": "count"}),
    "rename by function": lambda t: t.rename(columns=str.upper),
    "drop": lambda t: t.drop(columns=["k", "fare"]),
    "drop one": lambda t: t.drop("k", axis=1),
    "numbers": lambda t: t.select_dtypes("number"),
    "not text": lambda t: t.select_dtypes(exclude=["object", "str"]),
    "iloc": lambda t: t.iloc[1:5],
    "iloc from the end": lambda t: t.iloc[-3:, :2],
    "iloc numbers": lambda t: t.iloc[[2, 0, -1]],
    "loc": lambda t: t.loc[t["k"] > 1],
    "loc columns": lambda t: t.loc[t["k"] > 1, ["zone", "k"]],
    "loc from one to another": lambda t: t.loc[:, "fare":"k"],
    "reset_index": lambda t: t[t["k"] > 1].reset_index(drop=True),
    "astype": lambda t: t.astype({"k": "float32"}),
    "isin": lambda t: t[["zone", "k"]].isin({"zone": ["a"], "k": [1]}),
    "where": lambda t: t[t["zone"].isna() | (t["fare"] > 1)],
}


@pytest.mark.parametrize("name", ALIKE)
@given(frame=frames(least=3))
@settings(max_examples=8, deadline=None)
def test_what_pandas_does(name: str, frame: pd.DataFrame) -> None:
    found, expected = ALIKE[name](mn.table(frame)), ALIKE[name](frame)
    assert list(found.columns) == list(expected.columns)
    assert rows(found) == rows(expected)


def test_a_row_and_a_value() -> None:
    frame = pd.DataFrame({"zone": ["a", "b"], "fare": [1.5, 2.5], "k": [3, 4]})
    t = mn.table(frame)
    assert t.iloc[-1].to_dict() == frame.iloc[-1].to_dict()
    assert (t.iloc[0, 1], t.iloc[1, 0]) == (frame.iloc[0, 1], frame.iloc[1, 0])
    assert t.to_dict("records") == frame.to_dict("records")
    assert t.to_dict() == frame.to_dict()
    assert t.equals(mn.table(frame.copy()))
    assert not t.equals(mn.table(frame.assign(k=[3, 5])))
    assert t.info()["fare"] == "2 non-null, float64"


def test_a_sample_repeats_with_its_seed_and_has_no_row_twice() -> None:
    t = mn.table({"x": np.arange(100)})
    one = t.sample(10, random_state=3)["x"].compute()
    assert one.tolist() == t.sample(10, seed=3)["x"].compute().tolist()
    assert len(set(one.tolist())) == 10
    assert sorted(t.sample(frac=1, random_state=0)["x"].tolist()) == list(range(100))
    assert len(t.sample(300, replace=True, random_state=0)) == 300
    assert t["x"].sample(3).shape == (3,)


def test_files_that_tables_write(tmp_path: Any) -> None:
    frame = pd.DataFrame({"zone": ["a", "b"], "fare": [1.5, 2.5]})
    t = mn.table(frame)
    t.to_csv(tmp_path / "t.csv", index=False)
    t.to_parquet(tmp_path / "t.parquet")
    assert pd.read_csv(tmp_path / "t.csv").equals(pd.read_csv(tmp_path / "t.csv"))
    assert (
        rows(pd.read_csv(tmp_path / "t.csv")) == rows(pd.read_parquet(tmp_path / "t.parquet")) == rows(frame)
    )


def test_records_compute_with_each_other() -> None:
    t = mn.table({"a": [1.0, None, 3.0], "b": [2.0, 4.0, 6.0]})
    missing = t.isna().sum()
    assert (missing / len(t)).to_dict() == pytest.approx({"a": 1 / 3, "b": 0})
    assert missing[missing > 0].to_dict() == {"a": 1}
    assert (t.max() - t.min()).to_dict() == {"a": 2.0, "b": 4.0}
    assert missing.sort_values(ascending=False).index == ("a", "b")
    assert repr(missing) == "a  1\nb  0"
    assert "<script" not in mn.table({"<script>": [1.0]}).mean()._repr_html_()


@pytest.mark.parametrize(
    ("use", "error", "words"),
    [
        (lambda t: t.fillna(0), DTypeError, "t.fillna({'zone': ...}) names columns"),
        (lambda t: t["fare"].fillna(t["fare"].mean(skipna=False)).compute(), OptionError, "x.mean() and"),
        (lambda t: t["zone"].fillna(method="ffill"), OptionError, "write x.ffill()"),
        (lambda t: t["zone"].fillna(None), OptionError, "give a value that is not missing"),
        (lambda t: t["fare"].where([True]), DTypeError, "give 3 booleans"),
        (lambda t: t["zone"].where(t["fare"] > 1, 5), DTypeError, "cannot have 5: give strings"),
        (lambda t: t["zone"].mean(), DTypeError, "x.to_float() are numbers"),
        (lambda t: t["zone"].diff(), DTypeError, "x.to_float() are numbers"),
        (lambda t: t["zone"].str.contains("("), OptionError, "regex=False takes it as a text"),
        (lambda t: t["zone"].str.extract("a"), OptionError, "has no group"),
        (lambda t: t["zone"].map(3), OptionError, "give a dict, or a function"),
        (lambda t: t["zone"].shift("a"), OptionError, "give a number of rows"),
        (lambda t: t.drop(columns="zon"), ColumnError, "did you mean 'zone'?"),
        (lambda t: t.drop([0]), OptionError, "t[mask] and t[start:stop] keep rows"),
        (lambda t: t.rename(columns={"zone": "fare"}), OptionError, "two columns would be named 'fare'"),
        (lambda t: t.loc["a"], OptionError, 'write t[t["id"] == \'a\']'),
        (lambda t: t.loc[1:2], OptionError, "t.iloc[start:stop] takes their numbers"),
        (lambda t: t.iloc[7], IndexError, "row 7 of a table of 3 rows"),
        (lambda t: t.sample(9), OptionError, "give fewer, or replace=True"),
        (lambda t: t.select_dtypes("nummer"), OptionError, "did you mean 'number'?"),
        (lambda t: t.corr(method="spearman"), OptionError, "t.to_pandas().corr"),
        (lambda t: t["fare"].corr(t["fare"], method="kendall"), OptionError, "t.to_pandas().corr"),
        (lambda t: bool(t), OptionError, "write len(t) > 0 for whether it has rows"),
        (lambda t: t["zone"] / t["fare"].sum(), DTypeError, "column 'zone' is text"),
        (lambda t: t["fare"] * t["zone"], DTypeError, "column 'zone' is text"),
        (lambda t: -t["zone"], DTypeError, "x.to_float() has the numbers"),
        (lambda t: t[["zone", "fare"]] / t["fare"].sum(), DTypeError, "t['fare'] selects numbers"),
        (lambda t: 2 - t[["zone", "fare"]], DTypeError, "column 'zone' is text"),
        (lambda t: -t[["zone", "fare"]], DTypeError, "t['fare'] selects numbers"),
        (lambda t: t[["zone", "fare"]] > 1, DTypeError, "column 'zone': a column of text cannot be compared"),
        (lambda t: t[["zone"]].mean(), DTypeError, "t.describe() is of every column"),
        (lambda t: t.to_csv("t.txt"), OptionError, "write t.to_pandas().to_csv(path, index=False)"),
        (lambda t: t.to_csv("t.csv.gz"), OptionError, "Parquet, of t.to_parquet, is compressed"),
        (lambda t: t.to_csv("t.parquet"), OptionError, "write mn.save(t, path)"),
        (lambda t: mn.save(t, "t.csv.gz"), OptionError, "to_csv(path, index=False) compresses .csv.gz"),
        (lambda t: t.replace(b"a", 1), DTypeError, "give a dict by column"),
        (lambda t: t.mean()["nothing"], ColumnError, "no value of 'nothing'"),
        (lambda t: bool(t.mean()), OptionError, "use .any() or .all()"),
        (lambda t: mn.ones((2, 2)).unique(), MatnbError, "which have one axis"),
        (lambda t: t.duplicated(keep="all"), OptionError, "choose 'first', 'last' or False"),
    ],
)  # fmt: skip
def test_what_cannot_be_done_says_what_to_write(
    use: Callable[[mn.Table], object], error: type[Exception], words: str
) -> None:
    table = mn.table({"zone": ["a", None, "b"], "fare": [1.0, None, 2.0]})
    with pytest.raises(error) as caught:
        use(table)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_del_says_how_to_leave_out_a_column() -> None:
    table = mn.table({"zone": ["a"]})
    with pytest.raises(MatnbError, match=r"write t = t\.drop\(columns='zone'\)"):
        del table["zone"]


def test_a_missing_value_is_not_equal_to_zero() -> None:
    t = mn.table({"x": [0.0, None, 0.0, None], "n": pd.array([0, None, 0, None], "Int64")})
    for name in t.columns:
        assert t.duplicated(name).compute().tolist() == [False, False, True, True]
        assert [t[name].nunique(), t[name].nunique(dropna=False)] == [1, 2]


def test_a_dict_may_say_what_missing_values_become() -> None:
    t = mn.table({"zone": ["a", None, "b"], "n": pd.array([1, None, 2], "Int64")})
    assert t["zone"].map({"a": "A", None: "none"}).compute().tolist() == ["A", "none", np.nan]
    assert t["n"].map({1: 10.0, np.nan: 0.5}).compute().tolist()[:2] == [10.0, 0.5]


@pytest.mark.parametrize(
    "make", [np.asarray, lambda x: x.astype("U"), list, pd.Series, lambda x: pd.Series(x, dtype="str")]
)
def test_text_is_compared_with_an_array_row_by_row(make: Callable[[Any], Any]) -> None:
    column = pd.Series(["b", "a", None, "b", "Ä"])
    others = np.array(["b", "b", "a", "", "Ä"], object)
    found, given_values = mn.table({"zone": column})["zone"], make(others)
    for compare in (operator.eq, operator.ne, operator.lt, operator.ge):
        expected = compare(column, others).to_numpy(bool)
        np.testing.assert_array_equal(compare(found, given_values), expected)
        if not isinstance(given_values, pd.Series):
            turned = {operator.lt: operator.gt, operator.ge: operator.le}.get(compare, compare)
            np.testing.assert_array_equal(turned(given_values, found), expected)
    assert float((found == given_values).mean()) == 0.4
    with pytest.raises(ShapeError, match="of 5 rows is compared with 2 texts"):
        found == make(others[:2])  # noqa: B015


@pytest.mark.parametrize("name", ["zone", "n", "fare"])
def test_errors_never_print_what_is_long(name: str) -> None:
    t = mn.table({"zone": ["a", None], "n": pd.array([1, None], "Int64"), "fare": [1.5, None]})
    long = list(range(5000)) if name == "zone" else ["text"] * 5000
    for ask in (lambda x: x == long, lambda x: x < long, lambda x: x.fillna(long), lambda x: x.isin([long])):
        with pytest.raises((MatnbError, TypeError)) as caught:
            ask(t[name]).compute()
        assert len(str(caught.value)) < 400
