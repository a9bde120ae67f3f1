"""The names of each list of habits: what they stand for in matnb, and what for the peer."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import dask
import dask.array as da
import matplotlib.pyplot as plt
import networkx as nx
import numpy as np
import pandas as pd
import polars
import scipy
import scipy.cluster
import scipy.io
import scipy.linalg
import scipy.sparse as sp
import scipy.sparse.csgraph
import scipy.sparse.linalg as spla
import scipy.spatial.distance
import scipy.special
import scipy.stats
import sklearn.base
import sklearn.cluster
import sklearn.decomposition
import sklearn.ensemble
import sklearn.feature_extraction.text
import sklearn.linear_model
import sklearn.manifold
import sklearn.metrics
import sklearn.mixture
import sklearn.model_selection
import sklearn.neighbors
import sklearn.pipeline
import sklearn.preprocessing
import sklearn.svm
import sklearn.utils
from habits.habits import Names

import matnb as mn


class Together:
    """One name for several modules, as ``mn`` is for its peers'."""

    def __init__(self, *modules: Any, **own: Any) -> None:
        self._modules = modules
        self.__dict__.update(own)

    def __getattr__(self, name: str) -> Any:
        for module in self._modules:
            if name in vars(module):
                return getattr(module, name)
        raise AttributeError(name)


def numpy() -> tuple[Names, Names]:
    random = np.random.default_rng(1)
    arrays = {
        "x": random.normal(size=(6, 4)).round(3),
        "y": random.normal(size=(6, 4)).round(3),
        "v": np.array([1.0, 2.0, np.nan, 0.5, -1.0, 3.0]),
        "w": random.normal(size=4).round(3),
        "n": random.integers(0, 6, 8),
        "M": random.normal(size=(4, 4)).round(3),
        "z": np.array([1 + 2j, 3 - 1j]),
    }
    ours = {name: mn.asarray(one) for name, one in arrays.items()}
    return {**ours, "np": np, "mn": mn}, {**arrays, "np": np, "mn": np}


def scipys() -> tuple[Names, Names]:
    random = np.random.default_rng(2)
    A, B = (sp.random_array((8, 8), density=0.3, rng=random, format="csr") for _ in range(2))
    S = sp.csr_array(A @ A.T + 4 * sp.eye_array(8))
    D, b = random.normal(size=(8, 3)), random.normal(size=8)
    entries = sp.coo_array(A)
    shared = {
        "sp": sp,
        "spla": spla,
        "np": np,
        "stats": scipy.stats,
        "special": scipy.special,
        "distance": scipy.spatial.distance,
        "dense": A.toarray(),
        "vals": entries.data,
        "rows": entries.coords[0],
        "cols": entries.coords[1],
    }
    arrays = {"A": A, "B": B, "S": S, "D": D, "b": b}
    peer = Together(
        sp,
        scipy.io,
        np,
        scipy,
        linalg=Together(spla, scipy.linalg),
        special=scipy.special,
        csgraph=sp.csgraph,
        sparse=sp,
        load=sp.load_npz,
        save=sp.save_npz,
    )
    ours = {name: mn.asarray(one) for name, one in arrays.items()}
    return {**shared, **ours, "mn": mn}, {**shared, **arrays, "mn": peer}


def frame() -> pd.DataFrame:
    """Return the table of the lists of pandas and Dask."""
    return pd.DataFrame(
        {
            "fare": [7.5, 12.0, np.nan, 5.25, 30.0, 9.0, 14.5, 8.0, 11.0, 6.0],
            "tip": [1.0, 2.5, 0.0, 0.5, 6.0, 1.25, 3.0, 0.75, 2.0, 0.25],
            "zone": ["a", "b", "a", None, "c", "b", "a", "c", "b", "a"],
            "n": pd.array([1, 2, None, 4, 5, 6, 7, 8, 9, 10], "Int64"),
            "k": [0, 1, 0, 2, 1, 0, 2, 1, 0, 2],
            "when": pd.to_datetime("2020-01-01 08:30")
            + pd.to_timedelta(np.arange(10) * 11, "h").as_unit("us"),
            "paid": [True, False] * 5,
            "price": [
                "$1,299.50",
                "$7.00",
                "$12.25",
                "$3.10",
                "$1.00",
                "$2.50",
                "$9.99",
                "$4.00",
                "$8.80",
                "$6.60",
            ],
        }
    )


def pandas() -> tuple[Names, Names]:
    t, u = frame(), pd.DataFrame({"zone": ["a", "b", "c"], "borough": ["north", "south", "east"]})
    shared = {"np": np, "pd": pd, "frame": t.copy(), "polars_frame": polars.from_pandas(t)}
    peer = Together(pd, table=pd.DataFrame, load=pd.read_csv)
    return {**shared, "t": mn.table(t), "u": mn.table(u), "mn": mn}, {**shared, "t": t, "u": u, "mn": peer}


def dasks() -> tuple[Names, Names]:
    a = np.random.default_rng(1).normal(size=(6, 4)).round(3)
    t = frame()
    shared = {"np": np, "pd": pd, "da": da, "dask": dask, "a": a, "lazy": da.from_array(a, chunks=3)}
    ours = {"x": mn.asarray(a, blocks=2), "t": mn.table(t), "mn": mn}
    return {**shared, **ours}, {**shared, "x": shared["lazy"], "t": t, "mn": Together(da, np, dask)}


def scikit() -> tuple[Names, Names]:
    random = np.random.default_rng(3)
    X = random.normal(size=(60, 4))
    y = X @ np.array([1.0, -2.0, 0.5, 0.0]) + 0.3 * random.normal(size=60)
    c = (y > 0).astype(int)
    C = sp.random_array((60, 8), density=0.4, rng=random, format="csr")
    learn = sklearn
    kinds = (
        learn.linear_model,
        learn.cluster,
        learn.decomposition,
        learn.neighbors,
        learn.manifold,
        learn.preprocessing,
        learn.model_selection,
        learn.pipeline,
        learn.metrics,
        learn.ensemble,
        learn.svm,
        learn.mixture,
        learn.feature_extraction.text,
    )
    shared = {
        "np": np,
        "metrics": learn.metrics,
        "clone": learn.base.clone,
        "shuffle": learn.utils.shuffle,
        "SkRidge": learn.linear_model.Ridge,
        "SkForest": learn.ensemble.RandomForestClassifier,
    }
    for module in (learn.model_selection, learn.preprocessing, learn.pipeline, learn.feature_extraction.text):
        shared |= {name: one for name, one in vars(module).items() if name in module.__all__}
    ours = {"X": mn.asarray(X), "y": mn.asarray(y), "c": mn.asarray(c), "C": mn.asarray(C), "mn": mn}
    peer = SimpleNamespace(learn=Together(*kinds))
    return {**shared, **ours}, {**shared, "X": X, "y": y, "c": c, "C": C, "mn": peer}


def networkx() -> tuple[Names, Names]:
    G = nx.gnm_random_graph(10, 20, seed=4)
    V = nx.gnm_random_graph(10, 30, seed=4, directed=True)
    for at, (_, _, values) in enumerate([*G.edges(data=True), *V.edges(data=True)]):
        values["weight"] = 1.0 + at % 3
    A, W = nx.to_scipy_sparse_array(G), nx.to_scipy_sparse_array(V)

    def by(values: dict[int, float]) -> np.ndarray:
        return np.array([values[vertex] for vertex in range(10)])

    def degrees(pairs: Any) -> np.ndarray:
        return by(dict(pairs))

    def lengths(graph: nx.Graph) -> np.ndarray:
        return np.array([by(row) for _, row in sorted(nx.all_pairs_shortest_path_length(graph))])

    shared = {"np": np, "pd": pd, "nx": nx, "G": G, "V": V, "by": by, "degrees": degrees, "lengths": lengths}
    peer = Together(nx, graph=nx)
    return {**shared, "A": mn.asarray(A), "W": mn.asarray(W), "mn": mn}, {
        **shared,
        "A": G,
        "W": V,
        "mn": peer,
    }


def pictures() -> tuple[Names, Names]:
    random = np.random.default_rng(5)
    h, x, t = random.normal(size=500), random.normal(size=(6, 4)), frame()
    A = sp.random_array((8, 8), density=0.3, rng=random, format="csr")
    shared = {"np": np, "pd": pd, "plt": plt}
    ours = {"h": mn.asarray(h), "x": mn.asarray(x), "A": mn.asarray(A), "t": mn.table(t), "mn": mn}
    peer = Together(plt, np, plot=plt.plot, spy=plt.spy)
    return {**shared, **ours}, {**shared, "h": h, "x": x, "A": A, "t": t, "mn": peer}


WORLDS = {
    "numpy": numpy,
    "scipy": scipys,
    "pandas": pandas,
    "dask": dasks,
    "sklearn": scikit,
    "networkx": networkx,
    "pictures": pictures,
}
# Iterative methods stop at tolerances of their own.
TOLERANCES = {"sklearn": 5e-3, "networkx": 1e-5, "scipy": 1e-4}


def drawn() -> object:
    """Return the numbers of the artists of this picture, and close it; None where nothing was drawn."""
    if not plt.get_fignums():
        return None
    seen: list[Any] = []
    for axes in plt.gcf().axes:
        seen += [np.asarray(line.get_xydata(), float) for line in axes.lines]
        seen += [np.asarray(patch.get_path().vertices) for patch in axes.patches]
        for collection in axes.collections:
            seen += [np.asarray(collection.get_offsets(), float)]
            if collection.get_array() is not None:
                seen += [np.asarray(collection.get_array(), float)]
        seen += [np.asarray(image.get_array(), float) for image in axes.images]
        seen += [np.asarray([*axes.get_xlim(), *axes.get_ylim()]), axes.get_title()]
    plt.close("all")
    return seen


@contextmanager
def folder(path: Path) -> Iterator[None]:
    """Be in a folder with the files that the lists name."""
    small = sp.random_array((8, 8), density=0.3, rng=np.random.default_rng(2), format="csr")
    sp.save_npz(path / "given.npz", small)
    scipy.io.mmwrite(path / "given.mtx", small)
    np.savetxt(path / "m.txt", np.arange(6.0).reshape(3, 2))
    t = frame()[["fare", "tip", "zone", "k", "when"]]
    t.to_csv(path / "taxi.csv", index=False)
    t.to_csv(path / "taxi-1.csv", index=False)
    t.to_parquet(path / "taxi.parquet")
    edges = nx.gnm_random_graph(10, 20, seed=4).edges
    (path / "web.txt").write_text("".join(f"{one} {other}\n" for one, other in edges))
    (path / "names.txt").write_text("ann bob\nbob cy\ncy ann\n")
    before = Path.cwd()
    os.chdir(path)
    try:
        yield
    finally:
        os.chdir(before)
