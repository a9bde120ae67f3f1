"""scikit-learn splits, searches and validates tables and their columns as it does pandas's frames."""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable
from typing import Any

import joblib
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import model_selection as ms
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import BaggingClassifier, StackingClassifier
from sklearn.feature_selection import RFECV, SelectKBest, chi2
from sklearn.impute import SimpleImputer
from sklearn.inspection import permutation_importance
from sklearn.linear_model import LogisticRegression as TheirLogisticRegression
from sklearn.metrics import silhouette_score
from sklearn.naive_bayes import MultinomialNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    OneHotEncoder,
    OrdinalEncoder,
    StandardScaler,
)
from sklearn.utils import resample, shuffle

import matnb as mn
from matnb.errors import IndexingError, OptionError, UnsupportedError

N = 90

pytestmark = pytest.mark.session("two workers")


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    random = np.random.default_rng(0)
    found = pd.DataFrame({"a": random.normal(size=N), "b": random.normal(size=N)})
    found["device"] = random.choice(["phone", "tablet", None], N)
    found["user"] = random.integers(0, 6, N)
    found["click"] = (found.a + 0.3 * random.normal(size=N) > 0).astype(np.int64)
    found["said"] = np.where(found.click, "yes", "no")
    return found


def as_frame(part: Any) -> Any:
    return part.to_pandas() if hasattr(part, "to_pandas") else np.asarray(part)


def rows_of(part: Any) -> list[Any]:
    # Values row by row, of whatever library.
    values = np.asarray(part, object)
    return [tuple(None if pd.isna(one) else one for one in np.atleast_1d(row)) for row in values]


@pytest.mark.parametrize(
    "split",
    [
        lambda t: ms.train_test_split(t, random_state=1),
        lambda t: ms.train_test_split(t, shuffle=False),
        lambda t: ms.train_test_split(t[["a", "b"]], t["click"], stratify=t["said"], random_state=1),
        lambda t: ms.train_test_split(t["device"], t["a"], t["said"], random_state=1, train_size=7),
        lambda t: [shuffle(t, random_state=2)],
        lambda t: shuffle(t, t["device"], random_state=2),
        lambda t: [resample(t, n_samples=11, stratify=t["said"], random_state=2)],
    ],
)
def test_rows_are_those_of_frames(split: Callable[[Any], list[Any]], frame: pd.DataFrame) -> None:
    ours, theirs = split(mn.table(frame)), split(frame)
    assert len(ours) == len(theirs)
    for one, other in zip(ours, theirs, strict=True):
        assert rows_of(as_frame(one)) == rows_of(other)


@pytest.mark.parametrize(
    "splitter",
    [
        ms.KFold(3),
        ms.StratifiedKFold(3),
        ms.ShuffleSplit(2, random_state=0),
        ms.TimeSeriesSplit(3),
        ms.StratifiedShuffleSplit(2, random_state=0),
        ms.RepeatedStratifiedKFold(n_splits=2, n_repeats=2, random_state=0),
    ],
)
def test_every_splitter_scores_as_with_frames(splitter: Any, frame: pd.DataFrame) -> None:
    model, tables = mn.learn.LogisticRegression(), (mn.table(frame), frame)
    ours, theirs = (ms.cross_val_score(model, t[["a", "b"]], t["said"], cv=splitter) for t in tables)
    np.testing.assert_allclose(ours, theirs)


@pytest.mark.parametrize(
    "splitter",
    [
        ms.GroupKFold(3),
        ms.LeavePGroupsOut(1),
        ms.LeaveOneGroupOut(),
        ms.GroupShuffleSplit(2, random_state=0),
        ms.StratifiedGroupKFold(3),
    ],
)
def test_splitters_of_groups_too(splitter: Any, frame: pd.DataFrame) -> None:
    model, tables = mn.learn.LogisticRegression(), (mn.table(frame), frame)
    ours, theirs = (
        ms.cross_val_score(model, t[["a", "b"]], t["click"], groups=t["user"], cv=splitter) for t in tables
    )
    np.testing.assert_allclose(ours, theirs)


@pytest.mark.parametrize(
    "found",
    [
        lambda m, X, y: ms.GridSearchCV(m, {"C": [0.01, 1.0]}, cv=3).fit(X, y).cv_results_["mean_test_score"],
        lambda m, X, y: CalibratedClassifierCV(m, cv=3).fit(X, y).predict_proba(X),
        lambda m, X, y: StackingClassifier([("m", m)], clone(m), cv=3).fit(X, y).predict(X),
        lambda m, X, y: ms.learning_curve(m, X, y, cv=3, train_sizes=[0.5, 1.0])[2],
        lambda m, X, y: ms.validation_curve(m, X, y, param_name="C", param_range=[0.1, 1], cv=3)[1],
        lambda m, X, y: ms.cross_val_predict(m, X, y, cv=3, method="predict_proba"),
        lambda m, X, y: ms.cross_validate(m, X, y, cv=3, scoring="roc_auc")["test_score"],
        lambda m, X, y: ms.cross_val_score(make_pipeline(StandardScaler(), m), X, y, cv=3),
        lambda m, X, y: BaggingClassifier(m, n_estimators=2, random_state=0).fit(X, y).predict(X),
        lambda m, X, y: RFECV(m, cv=3).fit(X, y).ranking_,
        lambda m, X, y: ms.TunedThresholdClassifierCV(m, cv=3).fit(X, y).best_score_,
    ],
)
def test_searches_find_what_they_find_in_frames(found: Callable[..., Any], frame: pd.DataFrame) -> None:
    t, model = mn.table(frame), mn.learn.LogisticRegression()
    ours, theirs = (found(model, one[["a", "b"]], one["click"]) for one in (t, frame))
    np.testing.assert_allclose(np.asarray(ours), np.asarray(theirs), rtol=1e-5)


def test_what_changes_a_table_in_place_is_given_a_frame(frame: pd.DataFrame) -> None:
    X, y = mn.table(frame)[["a", "b"]], mn.table(frame)["click"]
    model = mn.learn.LogisticRegression().fit(X, y)
    with pytest.raises(AttributeError, match=r"give it t\.to_pandas\(\)"):
        permutation_importance(model, X, y, n_repeats=2, random_state=0)
    found = permutation_importance(model, X.to_pandas(), y, n_repeats=2, random_state=0)
    assert found.importances_mean.shape == (2,)


@settings(max_examples=25, deadline=None)
@given(st.data())
def test_take_is_that_of_frames(data: st.DataObject) -> None:
    frame = pd.DataFrame({"a": [1.0, 2.0, None], "b": ["x", None, "y"]})
    axis = data.draw(st.sampled_from([0, 1, "index", "columns"]))
    length = frame.shape[axis in (1, "columns")]
    places = data.draw(st.lists(st.integers(-length, length - 1), max_size=4, unique=axis in (1, "columns")))
    if axis in (1, "columns"):
        places = list({place % length: place for place in places}.values())  # a name is that of one column
    ours = mn.table(frame).take(np.array(places, np.int64), axis=axis)
    theirs = frame.take(np.array(places, np.int64), axis=axis)
    assert list(ours.columns) == list(theirs.columns)
    if theirs.size:
        assert rows_of(ours.to_pandas()) == rows_of(theirs)


@pytest.mark.parametrize(
    "imputer",
    [
        SimpleImputer(strategy="most_frequent"),
        SimpleImputer(strategy="constant", fill_value="none"),
        SimpleImputer(strategy="most_frequent", add_indicator=True),
        OrdinalEncoder(encoded_missing_value=-1),
        OneHotEncoder(sparse_output=False),
    ],
    ids=str,
)
@pytest.mark.parametrize(
    "names", [["device"], ["device", "said"], ["device", "a"], ["gaps", "device"]], ids=str
)
def test_missing_text_is_what_it_is_in_frames(imputer: Any, names: list[str], frame: pd.DataFrame) -> None:
    frame = frame.assign(gaps=frame["user"].astype("Int64").mask(frame["user"] == 2))
    t = mn.table(frame)
    expected = clone(imputer).fit_transform(frame[names].astype(object).mask(frame[names].isna(), np.nan))
    found = clone(imputer).fit_transform(t[names])
    pd.testing.assert_frame_equal(pd.DataFrame(found), pd.DataFrame(expected), check_dtype=False)
    pd.testing.assert_frame_equal(
        pd.DataFrame(ms.train_test_split(t["device"], random_state=0)[0].to_numpy()),
        pd.DataFrame(ms.train_test_split(frame["device"], random_state=0)[0].to_numpy(object)),
    )


def test_what_is_missing_is_unequal_to_itself() -> None:
    frame = pd.DataFrame(
        {
            "text": ["a", None],
            "when": pd.to_datetime(["2020-01-01", None]),
            "zoned": pd.to_datetime(["2020-01-01", None], utc=True),
            "long": pd.to_timedelta(["1s", None]),
            "gaps": pd.array([2**53 + 1, None], "Int64"),
        }
    )
    t = mn.table(frame)
    for names in (list(frame), ["when", "text"], ["zoned"], ["long"], ["when"], ["gaps", "text"]):
        found = np.asarray(t[names])
        assert pd.isna(pd.DataFrame(found)).equals(pd.isna(pd.DataFrame(frame[names].to_numpy())))
        assert (found[1] != found[1]).all()
    assert np.asarray(t[["when"]]).dtype == frame[["when"]].to_numpy().dtype
    assert t["text"].compute().tolist() == [*t["text"]] == frame["text"].tolist()
    many = mn.table({"text": [*map(str, range(50)), None]})["text"]  # of which few are picked
    assert many[[50, 3]].compute().tolist() == [np.nan, "3"]


def test_take_refuses_what_is_not_there(frame: pd.DataFrame) -> None:
    t = mn.table(frame)
    with pytest.raises(OptionError, match="axis=2: give 0 for rows, or 1 for columns"):
        t.take([0], axis=2)
    with pytest.raises(IndexingError, match=f"row {N} of a table of {N} rows"):
        t.take([N])
    for refused in (lambda: t.take([6], axis=1), lambda: t.iloc[:, 6], lambda: t.iloc[0, -7]):
        with pytest.raises(IndexingError, match=r"columns .*-?[67].* of a table of 6 columns"):
            refused()


# Sparse arrays


@pytest.mark.parametrize(
    "asked",
    [
        lambda X, y: StandardScaler().fit_transform(X),
        lambda X, y: StandardScaler(with_mean=False).fit_transform(X),
        lambda X, y: MaxAbsScaler().fit_transform(X),
        lambda X, y: SelectKBest(chi2, k=3).fit_transform(X, y),
        lambda X, y: MultinomialNB().fit(X, y),
        lambda X, y: TheirLogisticRegression().fit(X, y),
        lambda X, y: make_pipeline(MaxAbsScaler(), mn.learn.LogisticRegression()).fit(X, y),
        lambda X, y: silhouette_score(X, y),
    ],
)
def test_sparse_arrays_are_never_dense_in_silence(asked: Callable[..., Any]) -> None:
    S = sp.random_array((40, 12), density=0.2, rng=np.random.default_rng(1), format="csr")
    y = np.arange(40) % 2
    with pytest.raises(
        UnsupportedError, match=r"\(40, 12\) as a dense one of 3.84 kB: give it x\.to_scipy\(\)"
    ):
        asked(mn.asarray(S), y)
    asked(mn.asarray(S.toarray()), y)


def test_sparse_arrays_go_where_nothing_makes_them_dense() -> None:
    S = sp.random_array((40, 12), density=0.2, rng=np.random.default_rng(1), format="csr")
    y, X = np.arange(40) % 2, mn.asarray(S)
    train, _ = ms.train_test_split(X, random_state=0)
    assert train.sparse
    assert (train.to_scipy() != ms.train_test_split(S, random_state=0)[0]).nnz == 0
    assert len(ms.cross_val_score(mn.learn.LogisticRegression(), X, y, cv=2)) == 2
    assert make_pipeline(mn.learn.TruncatedSVD(2), StandardScaler()).fit_transform(X).shape == (40, 2)
    assert FunctionTransformer(np.asarray).fit_transform(X.to_scipy().toarray()).shape == (40, 12)
    np.testing.assert_array_equal(np.asarray(X), S.toarray())  # whoever else asks


def test_processes_are_refused_with_what_to_write() -> None:
    X, y = mn.asarray(np.arange(24.0).reshape(12, 2)), np.arange(12) % 2
    with joblib.parallel_config("threading"):  # which share the session
        assert len(ms.cross_val_score(mn.learn.LogisticRegression(), X, y, cv=2, n_jobs=2)) == 2
    with pytest.raises(
        UnsupportedError, match=r"with mn\.save, or pickle x\.to_numpy\(\) or x\.to_scipy\(\)"
    ):
        pickle.dumps(X)
    with pytest.raises(UnsupportedError, match=r"with mn\.save, or pickle"):
        joblib.dump(X, io.BytesIO())
    from joblib.externals.loky.backend import reduction

    with pytest.raises(UnsupportedError, match="leave n_jobs=1, as each fit is parallel already"):
        reduction.dumps((X, y))
