"""What is said of a name that is not there: the one that was meant, or what to write instead."""

from __future__ import annotations

import pickle
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import networkx  # noqa: F401  whose functions are named where it is loaded
import numpy as np
import pytest
import scipy.linalg
import scipy.sparse as sp
import scipy.special

import matnb as mn
from matnb.errors import MatnbError, near_name, no_attribute, suggestion


def test_a_near_name_is_told_and_else_all_are_listed() -> None:
    names = ["fare", "tip", "zone"]
    assert suggestion("fair", names) == "did you mean 'fare'?"
    assert suggestion("ZONE", names) == "did you mean 'zone'?"
    assert suggestion("distance", names) == "there are 'fare', 'tip', 'zone'"
    assert suggestion(3, names) == "there are 'fare', 'tip', 'zone'"
    assert suggestion("fare", []) == "there are none"
    assert suggestion("x", [f"column {n}" for n in range(1_000_000)]).endswith("'column 49' and 999,950 more")


def test_nothing_is_looked_for_until_the_message_is_read() -> None:
    asked: list[str] = []
    error = no_attribute("x", "fair", lambda: asked.append("known") or ["fare"])
    assert asked == []
    assert str(error) == "x has no attribute 'fair'; did you mean 'fare'?"
    assert asked == ["known"]
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is AttributeError
    assert str(again) == str(error)


def test_who_asks_for_names_that_are_not_there_loads_no_library() -> None:
    program = (
        "import sys, matnb as mn; x = mn.ones(2); before = set(sys.modules)\n"
        "assert not any(hasattr(one, 'nothing_like_it') for one in (mn, mn.graph, x))\n"
        "assert set(sys.modules) == before, set(sys.modules) - before"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_a_name_without_end_is_compared_with_nothing() -> None:
    assert near_name("a" * 10**6, ["a" * 10**6 + "b"]) is None
    assert near_name("fare", ["f" * 10**6, "fares"]) == "fares"


@pytest.mark.parametrize("module", [mn.graph, mn.linalg, mn.learn, mn.learn.models, mn.sources])
def test_libraries_complete_what_they_offer_and_no_files_of_theirs(module) -> None:
    assert dir(module) == sorted(module.__all__)
    assert all(hasattr(module, name) for name in dir(module))
    with pytest.raises(
        AttributeError, match=rf"^module '{module.__name__}' has no attribute 'nothing_like_it'"
    ):
        module.nothing_like_it  # noqa: B018  asked for


def test_other_modules_complete_what_they_offer() -> None:
    assert dir(mn.random) == ["Generator", "default_rng", "rmat"]
    assert {"softmax", "expit", "gammaln"} <= set(dir(mn.special)) <= set(dir(scipy.special))
    assert set(dir(mn)) == {*mn.__all__, "__version__"}


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("from matnb import read_csv", "'read_csv' from 'matnb'; write mn.load(path)"),
        ("from matnb import KMeans", "'KMeans' from 'matnb'; write mn.learn.KMeans"),
        (
            "from matnb.learn import Ridge, OneHotEncoder",
            "'OneHotEncoder' from 'matnb.learn'; write mn.asarray(",
        ),
        ("from matnb.learn import GridSearchCV as G", "DistArrays: sklearn.model_selection.GridSearchCV"),
        ("from matnb.linalg import eigs", "'eigs' from 'matnb.linalg'; write mn.linalg.eigsh(A)"),
        ("from matnb.graph import read_gml", "'read_gml' from 'matnb.graph'; write"),
        ("from matnb import nothing_like_it", "cannot import name 'nothing_like_it' from 'matnb'"),
    ],
)
def test_what_cannot_be_imported_is_told_with_what_to_write(line: str, said: str) -> None:
    with pytest.raises(ImportError, match=re.escape(said)):
        exec(line)
    exec("from matnb.learn import PCA; from matnb import graph, learn, tables")
    assert not hasattr(mn, "read_csv")


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (lambda: mn.graph.page_rank, "did you mean 'pagerank'?"),
        (lambda: mn.linalg.eigsch, "did you mean 'eigsh'?"),
        (lambda: mn.linalg.eigs, "if A is symmetric, else scipy.sparse.linalg.eigs(A.to_scipy())"),
        (lambda: mn.linalg.lu_factor, "compute first: scipy.linalg.lu_factor(A.compute())"),
        (lambda: mn.graph.diameter, "where D.min() is 0: no path is missing"),
        (lambda: mn.graph.is_planar, "there: nx.is_planar(mn.graph.to_networkx(A))"),
        (lambda: mn.learn.KMean, "did you mean 'KMeans'?"),
        (lambda: mn.learn.StandardScaler, "write (X - X.mean(axis=0)) / X.std(axis=0), or of sparse rows "
            "X / X.std(axis=0)"),
        (lambda: mn.learn.make_pipeline, "scikit-learn's own takes these estimators and DistArrays: "
            "sklearn.pipeline.make_pipeline"),
        (lambda: mn.sources.file, "did you mean 'files'?"),
        (lambda: mn.random.default_rgn, "did you mean 'default_rng'?"),
        (lambda: mn.random.randn, "mn.random.default_rng(seed).standard_normal(...)"),
        (lambda: mn.random.default_rng(0).integer, "did you mean 'integers'?"),
        (lambda: mn.random.default_rng(0).vonmises, "np.random.default_rng(seed).vonmises(...))"),
        (lambda: mn.special.exppit, "did you mean 'expit'?"),
        (lambda: mn.special.zeros_like_this, "has no attribute 'zeros_like_this'"),
        (lambda: mn.stopp, "did you mean mn.stop?"),
        (lambda: mn.pagerank, "write mn.graph.pagerank"),
        (lambda: mn.page_rank, "did you mean mn.graph.pagerank?"),
        (lambda: mn.KMeans, "write mn.learn.KMeans"),
        (lambda: mn.read_csv, "write mn.load(path)"),
        (lambda: mn.csr_matrix, "mn.coo_array((values, (rows, columns)), shape=(m, n))"),
        (lambda: mn.block_diag, "write mn.block([[A, None], [None, B]])"),
        (lambda: mn.dia_array, "write mn.asarray(scipy.sparse.dia_array(...))"),
        (lambda: mn.busday_count, "np.busday_count(x.compute())"),
        (lambda: mn.dask_matrix, "module 'matnb' has no attribute 'dask_matrix'"),
    ],
)  # fmt: skip
def test_a_name_that_a_module_has_not_is_told_with_the_one_that_was_meant(
    wrong: Callable[[], object], said: str
) -> None:
    with pytest.raises(AttributeError) as caught:
        wrong()
    text = str(caught.value)
    assert text.endswith(said)
    assert text.count("did you mean") == said.count("did you mean")
    assert caught.value.obj is None, "Python would add a suggestion of its own"


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("values", "write x.to_numpy()"),
        ("tolil", "x.to_scipy().tolil is SciPy's"),
        ("getnnz", "write x.nnz"),
        ("median", "write np.median(x)"),
        ("interp", "write np.interp(x, xp, fp)"),
        ("isna", "write np.isnan(x)"),
        ("rechunk", "write mn.repartition(x, n)"),
        ("view", "compute first: x.toarray().view"),
        ("shap", "did you mean 'shape'?"),
        ("compue", "did you mean 'compute'?"),
        ("recorded", "has no attribute 'recorded'"),
        ("nothing_like_it", "has no attribute 'nothing_like_it'"),
    ],
)
def test_an_attribute_of_other_libraries_arrays_is_told_with_what_to_write(name: str, said: str) -> None:
    x = mn.asarray(sp.eye_array(3).tocsr())
    with pytest.raises(AttributeError, match=f"^DistArray has no attribute '{name}'") as caught:
        getattr(x, name)
    assert str(caught.value).endswith(said)


def test_what_is_said_of_dense_arrays_can_be_written() -> None:
    with pytest.raises(
        AttributeError, match=re.escape("scipy.sparse.csr_array(x.compute()).tocsc is SciPy's")
    ):
        mn.ones((2, 2)).tocsc  # noqa: B018  asked for


def test_asking_for_protocols_says_nothing_more() -> None:
    for name in ("__arrow_c_stream__", "_repr_png_", "__dataframe__"):
        assert not hasattr(mn.ones(2), name)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (lambda: mn.matmul(np.eye(2), np.eye(2), semiring="minplus"), "'min_plus'"),
        (lambda: mn.reduce(mn.ones(2), "mins"), "'min'"),
        (lambda: mn.start(engine="gangs"), "'gang'"),
        (lambda: mn.start(rebalance="entrie"), "'entries'"),
        (lambda: np.pad(mn.ones(2), 1, mode="reflekt"), "'reflect'"),
        (lambda: np.histogram(mn.ones(2), bins="sturgis"), "'sturges'"),
        (lambda: mn.learn.Ridge().set_params(alhpa=1), "'alpha'"),
        (lambda: mn.linalg.svds(np.eye(3), 1, solver="lanczoss"), "'lanczos'"),
    ],
)  # fmt: skip
def test_options_are_told_with_the_one_that_was_meant(wrong: Callable[[], object], said: str) -> None:
    with pytest.raises(MatnbError, match=rf"did you mean {said}\?$"):
        wrong()
    assert mn.active_session() is None


def test_files_columns_and_options_of_readers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "trips.csv").write_text("fare,tip\n1,2\n")
    with mn.start(engine="interpret"):
        for wrong, said in (
            (lambda: mn.load("trip.csv"), "trip.csv: No such file or directory; did you mean 'trips.csv'?"),
            (
                lambda: mn.load("trips.csv", columns=["fair"]),
                "trips.csv: no column 'fair'; did you mean 'fare'?",
            ),
            (lambda: mn.load("trips.csv", delimeter=";"), "did you mean 'delimiter'?"),
            (
                lambda: mn.load("trips.csv", kind="parket"),
                "no kind 'parket'; did you mean 'parquet' (.parquet",
            ),
            (lambda: mn.load("trips.csv")["fair"], "no column 'fair'; did you mean 'fare'?"),
            (lambda: mn.load("nowhere/trips.csv"), "nowhere/trips.csv: No such file or directory"),
        ):
            with pytest.raises(MatnbError, match=re.escape(said)):
                wrong()
    mn.stop()
