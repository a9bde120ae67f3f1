"""Arguments that a function does not take: which one was meant, or what other libraries call it."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping

import numpy as np

from matnb.errors import ArgumentError, IndexingError, MatnbError, OptionError, suggestion

_UNKNOWN = re.compile(r"(?:\w+\.)*(\w+)\(\) got an unexpected keyword argument '(\w+)'")
_NAMED, _ANY_NAME = (
    (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY),
    (inspect.Parameter.VAR_KEYWORD),
)


def _ways(ways: Mapping[str, str]) -> dict[str, str]:
    return {name: way for names, way in ways.items() for name in names.split()}


_WEIGHTS = {"weight weights weighted": "stored weights count; give A.pattern(float) for a graph without them"}
# What others call an argument, and the argument that is meant, where the function has it, or else a sentence:
# of some functions and classes, of all, and of those that have no such argument.
_OF_FUNCTIONS = {
    "start": _ways(
        {
            "n_workers num_workers nworkers n_jobs num_cpus": "workers",
            "threads_per_worker nthreads n_threads num_threads": "threads",
            "memory mem": "memory_limit", "scheduler address": "write mn.connect(address)",
            "local_directory spill spill_directory": "memo_dir",
            "dashboard_address dashboard": "mn.monitor() shows what runs",
        }
    ),
    "connect": _ways(
        {
            "address scheduler host url": "target", "timeout": "timeout_seconds",
            "memory_limit memory": "the cluster's workers have theirs: start them with --memory-limit",
            "workers n_workers threads nthreads processes": (
                "the cluster's workers are used: start them with as many"
            ),
            "engine": "set MATNB_ENGINE, or %config DistMat.engine, before",
            "memo_dir": "set MATNB_MEMO_DIR, or %config DistMat.memo_dir, before",
        }
    ),
    "compute": _ways(
        {
            "scheduler num_workers n_workers workers": "mn.start(workers=n) says where all is computed",
            "optimize_graph sync get": "leave it out",
        }
    ),
    "save": _ways({"format fmt kind": "the suffix of the path says it, as .npy, .npz, .mtx, .csv or .parquet",
            "index header": "leave it out"}),
    "repartition": _ways({"chunks blocks": "cuts", "npartitions n_partitions num_blocks": "n"}),
    "groupby": _ways({"by key": "keys", "ngroups n_groups": "num_groups"}),
    "rolling": _ways({"n size window_size": "window"}),
    "topk": _ways({"n": "k"}),
    "KMeans MiniBatchKMeans": _ways({"k clusters num_clusters": "n_clusters", "seed": "random_state"}),
    "LinearRegression": _ways(
        {
            "alpha l2": "write mn.learn.Ridge(alpha)",
            "normalize": "fit it to (X - X.mean(axis=0)) / X.std(axis=0)",
        }
    ),
    "PCA TruncatedSVD NMF MiniBatchNMF LatentDirichletAllocation SpectralEmbedding IncrementalPCA": _ways(
        {"k n rank dim components num_components num_topics n_topics": "n_components"}
    ),
    "ALS": _ways({"rank k n_factors num_factors": "factors", "reg regParam lambda_ l2": "regularization"}),
    "NearestNeighbors": _ways({"k": "n_neighbors"}),
    "value_counts": _ways(
        {
            "normalize": 'write counts["count"] / counts["count"].sum() of the counts that it returns',
            "dropna sort ascending": "leave it out: the largest count is first",
            "bins": "write np.histogram(x, bins)",
        }
    ),
    "fillna": _ways({"method": "write t.ffill() or t.bfill()", "limit": "leave it out"}),
    "sort_values": _ways(
        {
            "key": 'write t.with_columns(key=t["zone"].str.lower()).sort_values("key")',
            "kind axis ignore_index": "leave it out: the order is stable, and there is no index",
        }
    ),
    "sum mean median std var min max prod": _ways(
        {
            "numeric_only": "leave it out: it is of numbers alone",
            "skipna": "leave it out: missing values are skipped",
        }
    ),
    "quantile": _ways({"interpolation method": "leave it out: it is linear", "numeric_only": "leave it out"}),
    "pivot": _ways(
        {"fill_value": "leave it out: elements without rows are 0, of missing values alone NaN"}
    ),
    "to_datetime": _ways({"dayfirst": "format", "utc": 'write t["pickup"].dt.tz_localize("UTC")'}),
    "pagerank": _ways({"alpha damping_factor d c": "damping", "nstart": "start", **_WEIGHTS}),
    "katz eigenvector_centrality": _ways({"nstart": "leave it out: every vertex starts alike", **_WEIGHTS}),
    "hits laplacian markov_clustering": _ways(_WEIGHTS),
    "clustering average_clustering": _ways(
        {"weighted weight weights": 'nx.clustering(mn.graph.to_networkx(A), weight="weight") counts them'}
    ),
    "betweenness edge_betweenness": _ways({"k": "write sources=, the vertices to start from"}),
    "louvain modularity": _ways({"gamma": "resolution", **_WEIGHTS}),
    "eye identity": _ways({"format sparse": "write mn.asarray(scipy.sparse.eye_array(n)) for a sparse one"}),
    "lsqr": _ways({"maxiter": "iter_lim"}),
}  # fmt: skip
OF_FUNCTIONS = {name: ways for names, ways in _OF_FUNCTIONS.items() for name in names.split()}

# Of whatever function has the argument that is named as the way.
OF_ANY = _ways(
    {
        "axes dim dims": "axis", "keep_dims keepdim": "keepdims", "correction": "ddof", "unbiased": "ddof",
        "out_dtype type": "dtype", "max_iter maxiter n_iter iterations num_iterations maxit steps iter_lim": (
            "max_iterations max_iter maxiter iter_lim iterations"
        ),
        "max_iterations": "max_iter maxiter iter_lim iterations",
        "tol eps atol rtol epsilon threshold": "tolerance tol rtol", "tolerance": "tol rtol",
        "random_state": "seed", "seed random_seed rng": "random_state seed",
        "weight weights": "weighted", "directed is_directed undirected": "symmetric",
        "src root start source_node": "source", "k n": "n_clusters n_components",
        "graph G adj adjacency": "A",
        "X data array arr a": "x A", "n_components": "k", "lr eta": "learning_rate",
        "batchsize": "batch_size",
        "fname filename file": "path", "chunks": "blocks", "func function f": "fn",
        "l2 reg regularization lambda_ lam": "alpha regularization",
        "by key keys on": "by keys", "index": "rows", "aggfunc": "combine",
    }
)  # fmt: skip
NO_ONE_NEEDS = {
    "n_jobs": "the session has all workers: mn.start(workers=n)",
    "verbose": "mn.monitor() shows how far it is",
    "as_index": "the keys are columns of the result: leave it out",
    "random_state": "it draws no random numbers: leave it out",
    "copy_X": "arrays are never changed: leave it out",
    "copy": "arrays are never changed: leave it out",
    "chunks": "mn.repartition(x, n) cuts an array, and matnb cuts by itself",
    "device": "all runs on the workers of the session: leave it out",
    "engine": "mn.start(engine=...) chooses it for all",
    "inplace": "write x = ... with the result",
    "scheduler": "mn.start(...) or mn.connect(address) choose where it runs",
}


# What wrong arguments lead to where nothing has looked at them, and the error that says so.
OF_ARGUMENTS: Mapping[type[BaseException], type[MatnbError]] = {
    TypeError: ArgumentError, AttributeError: ArgumentError,
    ValueError: OptionError, IndexError: IndexingError,
}  # fmt: skip


def argument_error(
    error: BaseException,
    function: Callable[..., object],
    args: tuple[object, ...],
    kwargs: Mapping[str, object],
) -> MatnbError | None:
    """Return the error that says which argument was meant, or which it does not take.

    None where the arguments are arrays alone, which it does take, and where Python asks by a protocol.

    Parameters
    ----------
    error
        What the call raised.
    function, args, kwargs
        The call.
    """
    known = _parameters(function)
    called = _called(function, args)
    refused = _UNKNOWN.fullmatch(str(error))
    if known is not None and _ANY_NAME not in {one.kind for one in known.values()}:
        unknown = [name for name in kwargs if name not in known]
    elif refused is not None and refused[2] in kwargs:  # by what is called with all that is given
        known, unknown = _parameters(getattr(np, refused[1], None)) or known, [refused[2]]
    else:
        unknown = []
    names = [name for name, one in (known or {}).items() if one.kind in _NAMED and name != "self"]
    if unknown:
        is_array = bool(args) and hasattr(type(args[0]), "expression")  # of the class: it may not be made yet
        advice = [
            f"np.nan{called}(x) skips NaN; x.{called}() does not, as NumPy's"
            if name == "skipna" and is_array
            else _advice(name, called, names)
            for name in unknown
        ]
        said = [f"{name!r}: {one}" for name, one in zip(unknown, advice, strict=True)]
        return _in_place(f"{called}() got an unexpected keyword argument {'; and '.join(said)}")
    try:
        inspect.signature(function).bind(*args, **kwargs)
    except TypeError as reason:
        return _in_place(f"{called}(): {reason}; it is called as {called}({', '.join(_shown(known))})")
    except ValueError:  # it tells of none
        pass
    kinds = list(dict.fromkeys(_kind(one) for one in (*args, *kwargs.values()) if not _is_matnbs(one)))
    if not kinds or (
        function.__name__.startswith("__") and function.__name__ not in ("__init__", "__call__")
    ):
        return None
    text = str(error).removeprefix(f"{called}() ")
    kind = OF_ARGUMENTS[type(error)]
    other = kind(f"{called}() does not take what it was given, of {' and '.join(kinds)}: {text}")
    other.__cause__ = error
    return other


def _in_place(text: str) -> ArgumentError:
    # Of an error that says all that another one says.
    error = ArgumentError(text)
    error.__suppress_context__ = True
    return error


def _is_matnbs(one: object) -> bool:
    return type(one).__module__.partition(".")[0] == "matnb"


def _kind(one: object) -> str:
    return type(one).__name__ if one is not None else "None"


def _called(function: Callable[..., object], args: tuple[object, ...]) -> str:
    owner = args[0] if args else None
    if function.__name__ == "__init__":
        return type(owner).__name__
    if function.__name__ == "__call__":  # of a ufunc
        return str(getattr(owner, "__name__", type(owner).__name__))
    return function.__name__


def _parameters(function: object) -> Mapping[str, inspect.Parameter] | None:
    if not callable(function):
        return None
    try:
        return inspect.signature(function).parameters
    except (TypeError, ValueError):  # as some that are compiled
        return None


def _shown(known: Mapping[str, inspect.Parameter] | None) -> list[str]:
    found = [one.replace(annotation=inspect.Parameter.empty) for one in (known or {}).values()]
    return [str(one) for one in found if one.name != "self"]


def _advice(name: str, called: str, names: list[str]) -> str:
    way = OF_FUNCTIONS.get(called, {}).get(name, "")
    if " " in way:
        return way
    for one in (way, *OF_ANY.get(name, "").split()):
        if one in names:
            return f"write {one}="
    if name in NO_ONE_NEEDS:
        return NO_ONE_NEEDS[name]
    if not names:
        return f"{called}() takes none"
    return suggestion(name, names, "it takes", shown=lambda one: f"{one}=")
