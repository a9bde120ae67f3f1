"""A label that is missing is no class: the error says which it is, how many are, and what to do."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import matnb as mn
from matnb.errors import DTypeError, OptionError

X = np.random.default_rng(0).normal(size=(6, 2))
TEXTS = ["no", "yes", None, "no", "yes", None]

pytestmark = pytest.mark.session("one thread")

GIVEN: dict[str, Any] = {
    "a list with None": TEXTS,
    "a list with NaN": ["no", "yes", float("nan"), "no", "yes", float("nan")],
    "objects": np.array(TEXTS, dtype=object),
    "a column of one axis more": np.array(TEXTS, dtype=object)[:, None],
    "pandas's objects": pd.Series(TEXTS, dtype=object),
    "pandas's strings": pd.Series(TEXTS, dtype="string"),
    "categories": pd.Series(TEXTS, dtype="category"),
    "truths": pd.Series([True, False, None, True, False, None], dtype="boolean"),
    "whole numbers": pd.Series([1, 2, None, 1, 2, None], dtype="Int64"),
    "days": pd.Series(pd.to_datetime(["2020-01-01", "2020-01-02", *[None] * 3, "2020-01-01"])).astype(object),
    "numbers": np.array([1.0, 2.0, np.nan, 1.0, 2.0, np.nan]),
}  # fmt: skip


@pytest.mark.parametrize("name", GIVEN)
@pytest.mark.parametrize("model", ["LogisticRegression", "SGDClassifier"])
def test_a_missing_label_is_named(model: str, name: str) -> None:
    missing = 3 if name == "days" else 2
    text = rf"y\[2\] is missing \(.*\), as are {missing} of 6 labels; leave out these rows"
    with pytest.raises(OptionError, match=text) as raised:
        getattr(mn.learn, model)().fit(X, GIVEN[name])
    assert isinstance(raised.value, ValueError)


def test_texts_that_look_missing_are_classes() -> None:
    y = np.array(["nan", "None", "nan", "None", "", ""])
    assert mn.learn.LogisticRegression().fit(X, y).classes_.tolist() == ["", "None", "nan"]
    assert mn.learn.LogisticRegression().fit(X, y.tolist()).classes_.tolist() == ["", "None", "nan"]


def test_a_mixture_says_of_what() -> None:
    with pytest.raises(DTypeError, match=r"different types \(int, str\)"):
        mn.learn.LogisticRegression().fit(X, np.array([1, "a", 1, "a", 1, "a"], dtype=object))
