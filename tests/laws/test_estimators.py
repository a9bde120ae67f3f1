"""Which usual estimators of scikit-learn run on the workers, which bring the array here, which refuse it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from estimators import COLUMNS, ROWS

pytestmark = pytest.mark.slow
FEATURES, COLUMN = 8 * ROWS * COLUMNS, 8 * ROWS  # bytes

# With array API dispatch. Of these no more than a few numbers a feature come here.
LAZY = (
    "StandardScaler", "MinMaxScaler", "MaxAbsScaler", "RobustScaler", "Normalizer", "PolynomialFeatures",
    "PCA full", "PCA covariance_eigh", "PCA randomized", "TruncatedSVD", "Ridge", "RidgeCV",
    "LogisticRegression",
    "GaussianNB", "LinearDiscriminantAnalysis", "GaussianMixture", "accuracy_score", "mean_squared_error",
    "r2_score", "euclidean_distances",
)  # fmt: skip
BRINGING = ("LinearRegression", "Lasso")
REFUSING = ("KMeans", "DBSCAN", "KNeighborsClassifier", "SVC", "RandomForestClassifier")


def _outcomes(mode: str) -> dict[str, dict[str, Any]]:
    folder = Path(__file__).parents[1]
    path = os.pathsep.join([str(folder.parent), str(folder), os.environ.get("PYTHONPATH", "")])
    ran = subprocess.run(
        [sys.executable, str(folder / "estimators.py"), mode],
        env={**os.environ, "SCIPY_ARRAY_API": "1", "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    found: dict[str, dict[str, Any]] = json.loads(ran.stdout.splitlines()[-1])
    return found


def test_with_dispatch_estimators_run_on_the_workers() -> None:
    outcomes = _outcomes("dispatch")
    assert outcomes.keys() == {*LAZY, *BRINGING, *REFUSING}
    for name in (*LAZY, *BRINGING):
        assert "refused" not in outcomes[name], (name, outcomes[name])
        assert outcomes[name]["error"] < 1e-9, (name, outcomes[name])
        limit = 8 * COLUMNS**2 if name in LAZY else FEATURES
        assert outcomes[name]["largest"] <= limit, (name, outcomes[name])
    for name in REFUSING:
        assert "refused" in outcomes[name], (name, outcomes[name])
        assert outcomes[name]["largest"] <= COLUMN, (name, outcomes[name])


def test_without_dispatch_they_bring_the_array_here() -> None:
    for name, one in _outcomes("plain").items():
        assert "refused" not in one, (name, one)
        assert one["error"] < 1e-9, (name, one)
        assert one["largest"] <= FEATURES, (name, one)
