"""Fits scikit-learn's usual estimators to DistArrays and to NumPy's arrays, and tells of each how it went.

A program of its own, as SciPy reads SCIPY_ARRAY_API when it is imported: `estimators.py dispatch` or `plain`.
Prints one line of JSON.
"""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Callable

import numpy as np
import sklearn
from fetched import counting
from sklearn import (
    cluster,
    decomposition,
    discriminant_analysis,
    ensemble,
    linear_model,
    metrics,
    mixture,
    naive_bayes,
    neighbors,
    preprocessing,
    svm,
)

import matnb as mn

ROWS, COLUMNS = 600, 6
# Of features X, classes y and numbers t
Case = Callable[[object, object, object], object]


def transformed(made: Callable[[], object]) -> Case:
    return lambda X, y, t: made().fit(X).transform(X)  # type: ignore[attr-defined]  # an estimator


def predicted(made: Callable[[], object], of_classes: bool = False) -> Case:
    return lambda X, y, t: made().fit(X, y if of_classes else t).predict(X)  # type: ignore[attr-defined]


CASES: dict[str, Case] = {
    "StandardScaler": transformed(preprocessing.StandardScaler),
    "MinMaxScaler": transformed(preprocessing.MinMaxScaler),
    "MaxAbsScaler": transformed(preprocessing.MaxAbsScaler),
    "RobustScaler": transformed(preprocessing.RobustScaler),
    "Normalizer": transformed(preprocessing.Normalizer),
    "PolynomialFeatures": transformed(preprocessing.PolynomialFeatures),
    "PCA full": transformed(lambda: decomposition.PCA(2, svd_solver="full")),
    "PCA covariance_eigh": transformed(lambda: decomposition.PCA(2, svd_solver="covariance_eigh")),
    "PCA randomized": transformed(lambda: decomposition.PCA(2, svd_solver="randomized", random_state=0)),
    "TruncatedSVD": transformed(lambda: decomposition.TruncatedSVD(2, random_state=0)),
    "Ridge": predicted(lambda: linear_model.Ridge(solver="svd")),
    "RidgeCV": predicted(linear_model.RidgeCV),
    "LinearRegression": predicted(linear_model.LinearRegression),
    "Lasso": predicted(linear_model.Lasso),
    "LogisticRegression": predicted(linear_model.LogisticRegression, True),
    "GaussianNB": predicted(naive_bayes.GaussianNB, True),
    "LinearDiscriminantAnalysis": predicted(discriminant_analysis.LinearDiscriminantAnalysis, True),
    # It adds reg_covar through a view, which is not a view here.
    "GaussianMixture": lambda X, y, t: (
        mixture.GaussianMixture(2, random_state=0, init_params="random", reg_covar=0, max_iter=5, tol=0)
        .fit(X)
        .predict_proba(X)
    ),
    "KMeans": lambda X, y, t: cluster.KMeans(2, random_state=0, n_init=1).fit(X).predict(X),
    "DBSCAN": lambda X, y, t: cluster.DBSCAN(2.0).fit_predict(X),
    "KNeighborsClassifier": predicted(neighbors.KNeighborsClassifier, True),
    "SVC": predicted(svm.SVC, True),
    "RandomForestClassifier": predicted(lambda: ensemble.RandomForestClassifier(5, random_state=0), True),
    "accuracy_score": lambda X, y, t: metrics.accuracy_score(y, 1 - y),  # type: ignore[operator]
    "mean_squared_error": lambda X, y, t: metrics.mean_squared_error(t, t + 1),  # type: ignore[operator]
    "r2_score": lambda X, y, t: metrics.r2_score(t, t + 1),  # type: ignore[operator]
    "euclidean_distances": lambda X, y, t: metrics.pairwise.euclidean_distances(X),
}


def outcome(case: Case, given: tuple[np.ndarray, ...]) -> dict[str, object]:
    with sklearn.config_context(array_api_dispatch=False):
        expected = np.asarray(case(*given), float)
    with counting() as fetched:
        try:
            found = case(*map(mn.asarray, given))
        except (TypeError, ValueError, NotImplementedError, AttributeError) as error:
            return {"refused": f"{type(error).__name__}: {error}", "largest": fetched.largest}
    is_lazy = isinstance(found, mn.DistArray)
    values = np.asarray(found.compute() if is_lazy else found, float)
    return {
        "is_lazy": is_lazy,
        "largest": fetched.largest,
        "error": float(np.max(np.abs(values - expected), initial=0))
        if values.shape == expected.shape
        else 1e9,
    }


def main(mode: str) -> None:
    rng = np.random.default_rng(0)
    features = rng.normal(size=(ROWS, COLUMNS))
    features[: ROWS // 2] += 3
    classes = (np.arange(ROWS) >= ROWS // 2).astype(np.int64)
    given = features, classes, features @ np.arange(float(COLUMNS)) + rng.normal(size=ROWS)
    warnings.simplefilter("ignore")
    sklearn.set_config(array_api_dispatch=mode == "dispatch")
    with mn.start(workers=1, threads=2):
        print(json.dumps({name: outcome(case, given) for name, case in CASES.items()}))
    mn.stop()


if __name__ == "__main__":
    main(sys.argv[1])
