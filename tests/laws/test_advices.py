"""What errors advise can be written: each piece of code that they name runs, and gives what was asked for.

The lists in ``tests/advices`` are of lines ``code -> what the other library's user meant``: the code as an
error names it, and what has the same value with the other library. ``*`` is for code of which nothing else
has the value, or that has no value: it only has to run.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import distributed
import matplotlib
import matplotlib.pyplot as plt
import networkx as nx
import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy
import scipy.linalg
import scipy.sparse as sp
import scipy.sparse.linalg as spla
import scipy.stats
import sklearn
import sklearn.cluster
import sklearn.decomposition
import sklearn.ensemble
import sklearn.feature_extraction.text
import sklearn.linear_model
import sklearn.naive_bayes
import sklearn.preprocessing
from counts import PROJECT
from habits.habits import judged, parsed
from habits.worlds import drawn

import matnb as mn
from matnb.calls import arguments
from matnb.errors import MatnbError, MissingAttributeError
from matnb.graph import other_names
from matnb.io import edges as edge_lists
from matnb.lazy import foreign_names, labels
from matnb.learn import estimator, named_arguments
from matnb.nested import numpy_calls
from matnb.tables import pandas_names

LISTS = PROJECT / "tests" / "advices"
ANY = "*"
Names = Mapping[str, Any]
# What looks like code in a sentence.
_CODE = re.compile(r"\w[\])]*[.(\[]\w|\w\(|[\])]|\w=[\w\"'(\[]| [-+*/@] ")


def arrays(path: Path, has_gaps: bool = False) -> tuple[Names, Names]:
    """A vector, beside whole numbers."""
    return vector(path, np.array([3.0, 1.0, np.nan if has_gaps else 2.0, 2.5, 2.0, 4.0]))


def gaps(path: Path) -> tuple[Names, Names]:
    """A vector with NaN."""
    return vector(path, np.array([2.0, 1.0, np.nan, 2.0, 5.0, -1.0]))


def vector(path: Path, x: np.ndarray) -> tuple[Names, Names]:
    shared = {
        "keys": np.array([0, 1, 0, 2, 1, 0]), "value": 0.5, "n": 2, "name": "fare", "values": [1.5, 2.5],
        "fn": lambda block: block * 2, "bins": [0.0, 1.0, 2.0, 5.0], "path": str(path / "x.npy"),
        "np": np, "sp": sp, "pandas": pd, "scipy": scipy, "dask": dask, "da": da, "plt": plt,
        "dataset": np.ones(3),
    }  # fmt: skip
    frame = pd.DataFrame({"fare": pd.to_datetime(["2020-01-01", "2020-01-02"])})
    pivot = mn.table({"one": ["a", "c"], "other": ["b", "b"]}).pivot("one", "other")
    ours = {"x": mn.asarray(x), "t": mn.table(frame), "P": pivot, "mn": mn}
    return {**shared, **ours}, {**shared, "x": x, "t": frame}


def matrices(path: Path) -> tuple[Names, Names]:
    """A sparse matrix that is symmetric and positive definite, and a right side."""
    some = sp.random_array((8, 8), density=0.3, rng=np.random.default_rng(1), format="csr")
    return matrix(path, sp.csr_array(some @ some.T + 4 * sp.eye_array(8)))


def squares(path: Path) -> tuple[Names, Names]:
    """A dense matrix that is symmetric and positive definite, and a right side."""
    some = np.random.default_rng(1).normal(size=(8, 8))
    return matrix(path, some @ some.T + np.eye(8))


def matrix(path: Path, A: Any) -> tuple[Names, Names]:
    entries = sp.coo_array(A)
    shared = {
        "rows": entries.coords[0], "columns": entries.coords[1], "values": entries.data, "m": 8, "n": 8,
        "i": 2, "j": 3, "value": 7.0, "path": str(path / "A.npz"), "texts": ["one two", "two three three"],
        "alpha": 0.5, "y": np.arange(8) % 2,
        "np": np, "sp": sp, "spla": spla, "scipy": scipy, "pandas": pd, "nx": nx, "sklearn": sklearn,
        "plt": plt,
    }  # fmt: skip
    L = np.linalg.cholesky(A.toarray() if sp.issparse(A) else A)
    theirs = {"A": A, "B": A, "x": A, "X": A, "b": np.arange(8.0), "L": L}
    ours = {name: mn.asarray(one) for name, one in theirs.items()}
    theirs["t"] = pd.DataFrame({"zone": ["a", "b", None, "a"]})
    ours["t"] = mn.table(theirs["t"])
    return {**shared, **ours, "mn": mn}, {**shared, **theirs}


def graphs(path: Path, is_list: bool = False) -> tuple[Names, Names]:
    """A connected graph without lengths, its matrix, and its file."""
    G = nx.connected_watts_strogatz_graph(12, 4, 0.4, seed=3)
    (path / "G.gml").write_text("0 1\n1 2\n" if is_list else "\n".join(nx.generate_gml(G)))

    def by(values: Mapping[int, float]) -> np.ndarray:
        return np.array([values[vertex] for vertex in range(12)])

    shared = {
        "v": 3, "u": 2, "i": 2, "j": 3, "k": 2, "rows": [0, 2, 3, 7], "edges": [*G.edges],
        "path": str(path / "G.gml"), "source": 4, "nx": nx, "np": np, "by": by, "G": G, "plt": plt, "pd": pd,
        "frame": pd.DataFrame({"source": [0, 1, 2], "target": [1, 2, 0]}),
    }  # fmt: skip
    A = mn.asarray(nx.to_scipy_sparse_array(G))
    if is_list:
        named = nx.relabel_nodes(G, "v{}".format)
        A = mn.asarray(named)
        shared |= {"G": named, "u": "v2", "v": "v3", "ids": ["v0", "v2", "v3", "v7"]}
        columns = {"src": ["a", "b", "b"], "dst": ["b", "c", "a"]}
        return (
            {
                **shared,
                "label": "v3",
                "A": A,
                "t": mn.table(columns),
                "mn": mn,
                "result": mn.graph.pagerank(A),
            },
            {**shared, "frame": pd.DataFrame(columns)},
        )
    return {**shared, "A": A, "D": mn.graph.all_pairs_shortest_path_length(A), "mn": mn}, shared


def edges(path: Path) -> tuple[Names, Names]:
    """A graph, and a file with a line for each edge."""
    return graphs(path, is_list=True)


def tables(path: Path, has_gaps: bool = False) -> tuple[Names, Names]:
    """A table as pandas's and polars's users have it."""
    t = pd.DataFrame(
        {
            "fare": [7.5, 12.0, 5.25, 3.0, 30.0, 9.0], "tip": [1.0, 2.5, 0.0, 0.5, 6.0, 1.25],
            "zone": ["a", "b", "a", "c", "b", "a"], "hour": [0, 5, 0, 7, 5, 5], "id": [4, 5, 6, 7, 8, 9],
            "name": ["u", "v", "u", "w", "v", "u"], "price": ["1", "x", "2.5", "3", "4", "5"],
            "when": ["01.02.2020", "31.12.2021"] * 3,
            "pickup": pd.to_datetime("2020-01-01") + pd.to_timedelta(np.arange(6) * 11, "h").as_unit("us"),
        }
    )  # fmt: skip
    if has_gaps:
        t["id"] = t["id"].astype("Int64")
        for at, name in enumerate(t.columns):
            t.loc[[at % 6, (at + 4) % 6], name] = None
    other = pd.DataFrame({"zone": ["a", "b", "d"], "borough": ["north", "south", "east"]})
    t.to_csv(path / "t.csv", index=False)
    shared = {
        "n": 2, "columns": ["fare", "tip"], "number": 1, "values": np.arange(6.0), "value": 5, "np": np,
        "fn": lambda one: one * 2, "path": str(path / "t.csv"), "pd": pd, "pl": pl, "plt": plt,
        "x": np.array([0.5, 1.5]), "xp": np.array([0.0, 1.0, 2.0]), "fp": np.array([1.0, 3.0, 2.0]),
        "keys": np.array([0, 1, 0, 2, 1, 0]), "frame": t.copy(), "format": "%d.%m.%Y", "scipy": scipy,
    }  # fmt: skip
    ours = {
        "t": mn.table(t),
        "u": mn.table(t),
        "counts": mn.table(t)["zone"].value_counts(),
        "other": mn.table(other),
        "mn": mn,
    }
    ours |= {"mask": ours["t"]["fare"] > 6, "groups": ours["t"].groupby("zone")}
    theirs = {"t": t, "u": t, "other": other, "p": pl.from_pandas(t), "mask": t["fare"] > 6}
    return {**shared, **ours}, {**shared, **theirs, "groups": t.groupby("zone")}


def column(x: pd.Series, has_gaps: bool, **more: Any) -> tuple[Names, Names]:
    """One column, and what the advices about columns name."""
    x = x.mask(np.arange(len(x)) == 1) if has_gaps else x
    frame = pd.DataFrame(
        {"x": x, "zone": ["a", "b", "a", "c"], "hour": [0, 1, 0, 2], "fare": [1.0, 2.0, 3.0, 4.0]}
    )
    shared = {
        "np": np, "pd": pd, "pl": pl, "plt": plt, "textwrap": textwrap, "name": "fare", "fn": lambda one: one,
        "n": 2,
        "mask": np.array([True, False, True, True]), **more,
    }  # fmt: skip
    t = mn.table(frame)
    return {**shared, "x": t["x"], "t": t, "mn": mn}, {**shared, "x": x, "t": frame}


def numbers(path: Path, has_gaps: bool = False) -> tuple[Names, Names]:
    """Whole numbers, of which one is missing."""
    values = pd.Series([20240131, 20240201, None, 20240131], dtype="Int64")
    more = {
        "bins": [20240000, 20240131, 20240200],
        "values": [20240131],
        "left": 20240200,
        "right": 20240300,
        "value": 1,
        "dtype": float,
    }
    return column(values, has_gaps, **more)


def texts(path: Path, has_gaps: bool = False) -> tuple[Names, Names]:
    """Texts of digits."""
    values = pd.Series(["12", "13", "ab", "12"])
    more = {
        "values": ["12"], "left": "12", "right": "13", "value": "?", "dtype": str, "pat": "([a-z])",
        "sep": "-",
        "text": "1", "old": "1", "new": "z", "table": {97: "x"}, "format": "%d", "errors": "coerce",
    }  # fmt: skip
    return column(values, has_gaps, **more)


def digits(path: Path, has_gaps: bool = False) -> tuple[Names, Names]:
    """Texts of days, which are numbers too."""
    return column(pd.Series(["12", "13", "05", "12"]), has_gaps, format="%d")


def times(path: Path, has_gaps: bool = False) -> tuple[Names, Names]:
    """Times of days."""
    values = pd.Series(
        pd.to_datetime(["2020-01-01 10:31", "2020-02-01 00:29", "2021-01-01 00:00", "2020-01-01 10:31"])
    )
    values = values.dt.as_unit("us")
    left, right = pd.Timestamp("2020-01-02"), pd.Timestamp("2020-12-31")
    more = {
        "values": [left, values[0]],
        "left": left,
        "right": right,
        "value": left,
        "dtype": "datetime64[s]",
    }
    return column(values, has_gaps, **more, freq="h", format="%Y", unit="s", name="UTC")


def zoned(path: Path, has_gaps: bool = False) -> tuple[Names, Names]:
    """Times in a zone."""
    return column(pd.Series(pd.date_range("2020-01-01", periods=4, tz="UTC")), has_gaps, name="Europe/Berlin")


def durations(path: Path, has_gaps: bool = False) -> tuple[Names, Names]:
    """Durations."""
    values = pd.Series(pd.to_timedelta([1, 30, 90, 1], "m")).dt.as_unit("us")
    left, right = pd.Timedelta("10m"), pd.Timedelta("2h")
    more = {"values": [left, values[0]], "left": left, "right": right, "value": left, "freq": "h"}
    return column(values, has_gaps, **more, dtype="timedelta64[s]")


def segments(path: Path) -> tuple[Names, Names]:
    """Lists of unequal length, and lists of lists."""
    lists = [[3.0, 1.0], [], [2.0]]
    N = mn.nested.from_lists(lists)
    return {"N": N, "np": np}, {"lists": lists, "np": np, "values": np.array([3.0, 1.0, 2.0])}


def levels(path: Path) -> tuple[Names, Names]:
    """Lists of lists of unequal length."""
    N = mn.nested.unflatten(mn.nested.from_lists([[1.0, 2.0], [3.0], [4.0, 5.0]]), [1, 2])
    return {"N": N}, {}


WORLDS = {
    one.__name__: one
    for one in (
        arrays, matrices, graphs, tables, numbers, texts, digits, times, zoned, durations, segments,
        levels, squares, gaps, edges,
    )
}  # fmt: skip
_OF_KINDS = pandas_names.OF_COLUMNS
_SENTENCES = {
    f"{function}({name}=)": way
    for function, ways in arguments.OF_FUNCTIONS.items()
    for name, way in ways.items()
    if not way.isidentifier()
}
# The tables of words in the code, and in which lists their code is.
TABLES: dict[str, tuple[Mapping[str, str], tuple[str, ...]]] = {
    "arrays": (foreign_names.INSTEAD, ("arrays", "gaps", "matrices", "graphs", "edges")),
    "nested arrays": (numpy_calls._INSTEAD, ("segments", "levels")),
    "matnb": (mn._INSTEAD, ("arrays", "gaps", "matrices", "graphs", "edges", "tables", "texts")),
    "graph": (mn.graph._INSTEAD, ("graphs", "edges")),
    "linalg": (mn.linalg._INSTEAD, ("matrices", "squares")),
    "learn": ({k: v for k, v in mn.learn._INSTEAD.items() if ": sklearn." not in v}, ("squares", "matrices")),
    "by batches": (estimator._BY_BATCHES, ("squares",)),
    "same arguments": (
        {
            f"{kind}: {name}: {number}": way
            for kind, found in named_arguments.SAME.items()
            for name, same in found.items()
            for number, way in enumerate((same.way, *same.special.values()))
        },
        ("squares", "matrices"),
    ),
    "tables": (pandas_names.OF_TABLES, ("tables", "edges")),
    "groups": (pandas_names.OF_GROUPS, ("tables",)),
    "numbers": (_OF_KINDS[""], ("numbers",)),
    "texts": (_OF_KINDS["text"], ("texts", "digits")),
    "times": (_OF_KINDS["datetime64"], ("times", "zoned")),
    "durations": (_OF_KINDS["timedelta64"], ("durations",)),
    "x.str": (pandas_names.OF_TEXTS, ("texts", "digits")),
    "x.dt": (pandas_names.OF_TIMES, ("times", "durations")),
    "names of vertices": (
        {
            "columns": labels._OF_COLUMNS,
            **{str(line): edge_lists.way_of_names(line) for line in (b"a b", b"a,b", b"a, b", b"a b 3")},
        },
        ("edges",),
    ),
    "results of graphs": (other_names.of_vertices("ranks"), ("graphs", "edges")),
    "arguments": (_SENTENCES | arguments.NO_ONE_NEEDS, ("arrays", "squares", "tables", "graphs")),
}
# Code that starts, ends or reaches a session, or a file of its own: it takes the arguments, and is not run.
BOUND = (
    "mn.start()", "mn.start(workers=n)", "mn.start(engine=...)", "mn.start(...)", "mn.stop()",
    "mn.connect(address)", "mn.current_session()", "mn.monitor()", "mn.table(pd.read_excel(path))",
    'mn.load(path, kind="svmlight")',
)  # fmt: skip


# Modules, settings, and what needs another library.
NAMED = (
    "t.to_pandas().hvplot, after import hvplot.pandas", "scipy.stats itself", "%config DistMat.engine",
    "%config DistMat.memo_dir",
)  # fmt: skip


@pytest.fixture(scope="module", autouse=True)
def session() -> Iterator[None]:
    before = matplotlib.get_backend()
    matplotlib.use("agg")
    with dask.config.set(scheduler="synchronous"), mn.start(workers=1, threads=1):
        yield
    mn.stop()
    matplotlib.use(before)


def lines_of(name: str) -> list[str]:
    text = (LISTS / f"{name}.txt").read_text(encoding="utf-8")
    return [line for line in text.splitlines() if line and not line.startswith("#")]


LINES = [(name, line) for name in WORLDS for line in lines_of(name)]


@pytest.mark.parametrize(("name", "line"), LINES, ids=[f"{name}: {line}" for name, line in LINES])
@pytest.mark.filterwarnings("ignore")
def test_what_is_advised_gives_what_was_meant(name: str, line: str, tmp_path: Path) -> None:
    habit = parsed(line)
    if habit.peer == ANY:
        ours, _ = WORLDS[name](tmp_path)
        run(habit.typed, ours)
        plt.close("all")
        return
    found = judged(habit, lambda: WORLDS[name](tmp_path), drawn, 1e-5)
    assert found.outcome == "works", found.text


GAPPY = ("arrays", "tables", "numbers", "texts", "digits", "times", "zoned", "durations")
# Lines that are refused with missing values, there or here, or leave out what has none.
WITHOUT_GAPS = {
    "np.histogram(x)": "NumPy refuses NaN as well",
    "t.fillna(value)": "a number for columns of text",
    't.to_pandas().set_index("id").reindex(values)': "two rows miss the label",
    't.pivot("zone", "hour", "fare")': "a zone without a fare has no row",
}
OF_GAPS = [(name, line) for name, line in LINES if name in GAPPY and parsed(line).typed not in WITHOUT_GAPS]


@pytest.mark.parametrize(
    ("name", "line"),
    OF_GAPS,
    ids=[f"{name}: {line}" for name, line in OF_GAPS],
)
@pytest.mark.filterwarnings("ignore")
def test_it_does_where_values_are_missing(name: str, line: str, tmp_path: Path) -> None:
    habit = parsed(line)
    if habit.peer == ANY:
        run(habit.typed, WORLDS[name](tmp_path, True)[0])
        plt.close("all")
        return
    found = judged(habit, lambda: WORLDS[name](tmp_path, True), drawn, 1e-5)
    assert found.outcome == "works", found.text


def run(code: str, names: Names) -> None:
    """Run code, an expression or not, and compute what it gives."""
    own = dict(names)
    try:
        value = eval(code, own)
    except SyntaxError:
        exec(code, own)
    else:
        if hasattr(value, "compute") and not isinstance(value, type):
            value.compute()


def codes_of(table: str) -> list[str]:
    found = [parsed(line).typed for name in TABLES[table][1] for line in lines_of(name)]
    return sorted({*found, *BOUND, *NAMED}, key=len, reverse=True)


@pytest.mark.parametrize("table", TABLES)
def test_every_code_of_an_advice_is_in_the_lists(table: str) -> None:
    codes, left = codes_of(table), []
    for name, words in TABLES[table][0].items():
        rest = words
        for code in codes:
            rest = rest.replace(code, "CODE")
        if _CODE.search(re.sub(r"NetworkX's|pandas's|SciPy's|scikit-learn's", "", rest)):
            left.append(f"{name}: {words}: {rest}")
    assert not left, "\n".join(left)


def test_every_line_of_the_lists_is_an_advice() -> None:
    told = {
        name: [words for ways, names in TABLES.values() if name in names for words in ways.values()]
        for name in WORLDS
    }
    unused = [
        f"{name}: {line}"
        for name, line in LINES
        if not any(parsed(line).typed in words for words in told[name])
    ]
    assert not unused, "\n".join(unused)


@pytest.mark.parametrize("code", BOUND)
def test_sessions_take_the_arguments_that_are_advised(code: str) -> None:
    binds(code, {"mn": mn})


def binds(code: str, names: Names) -> None:
    call = ast.parse(code, mode="eval").body
    assert isinstance(call, ast.Call)
    function = eval(compile(ast.Expression(call.func), "<advice>", "eval"), dict(names))
    given = [one for one in call.args if not (isinstance(one, ast.Constant) and one.value is ...)]
    inspect.signature(function).bind(*given, **{one.arg: one for one in call.keywords if one.arg})


def test_scikit_learns_own_are_there() -> None:
    found = [words.rpartition(": ")[2] for words in mn.learn._INSTEAD.values() if ": sklearn." in words]
    assert len(found) > 40
    for one in found:
        module, _, name = one.rpartition(".")
        assert hasattr(importlib.import_module(module), name), one


# Names of other libraries are other things than names of matnb's that are only like them.
OTHERS = {
    "matnb": (mn, (da, sp, pd, nx, distributed)),
    "graph": (mn.graph, (nx,)),
    "linalg": (mn.linalg, (scipy.linalg, spla)),
    "learn": (mn.learn, (sklearn.linear_model, sklearn.cluster, sklearn.ensemble, sklearn.decomposition)),
}


@pytest.mark.parametrize("name", OTHERS)
@pytest.mark.filterwarnings("ignore")
def test_no_name_of_another_library_is_answered_by_one_that_is_like_it(name: str) -> None:
    module, libraries = OTHERS[name]
    wrong = [
        text
        for library in libraries
        for one in dir(library)
        if not one.startswith("_") and callable(getattr(library, one)) and (text := said_of(module, one))
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.filterwarnings("ignore")
def test_names_of_pandas_are_answered_so_too() -> None:
    t = mn.table(
        pd.DataFrame({"s": ["a"], "n": pd.array([1], "Int64"), "w": pd.to_datetime(["2020-01-01"]), "i": [1]})
    )
    for one, frame in ((t, pd.DataFrame), (t["s"], pd.Series), (t["w"], pd.Series)):
        wrong = [text for name in dir(frame) if not name.startswith("_") and (text := said_of(one, name))]
        assert not wrong, "\n".join(wrong)


def said_of(owner: object, name: str) -> str:
    """Return what is said of a name if another one is suggested that is not the same letters."""
    try:
        getattr(owner, name)
    except AttributeError as error:
        meant = re.search(r"did you mean '?([\w.]+)'?\?$", str(error))
        if (
            meant is None
            or meant[1].rpartition(".")[2].replace("_", "").lower() == name.replace("_", "").lower()
        ):
            return ""
        return str(error)
    return ""


@pytest.mark.parametrize("name", sorted(mn._MADE_BY_SCIPY))
def test_what_scipy_makes_is_taken(name: str) -> None:
    with pytest.raises(AttributeError, match=rf"write mn\.asarray\(scipy\.sparse\.{name}\(\.\.\.\)\)$"):
        getattr(mn, name)
    made = {
        "block_diag": lambda make: make([np.eye(2), [[1.0]]]), "bmat": lambda make: make([[sp.eye_array(2)]]),
        "block_array": lambda make: make([[sp.eye_array(2)]]), "eye_array": lambda make: make(3),
        "diags": lambda make: make([1.0, 2.0]), "diags_array": lambda make: make([1.0, 2.0]),
        "spdiags": lambda make: make([1.0, 2.0], 0, 2, 2),
        "random_array": lambda make: make((3, 3), density=0.5),
    }  # fmt: skip
    theirs = made.get(name, lambda make: make(np.eye(3)))(getattr(sp, name))
    np.testing.assert_array_equal(np.asarray(mn.asarray(theirs)), theirs.toarray())


# What misled once, or says nothing of the way: the message, and the code that it names.

MISTAKES = {
    't["fare"] > 5 & t["tip"] > 1': "brackets",
    't["zone"] == "a" & t["tip"] > 1': "brackets",
    't["zone"] == "a" | t["zone"] == "b"': "brackets",
    '(t["zone"] == "a") & t["zone"]': "brackets",
    't["zone"] & t["fare"] > 1': "brackets",
    't["fare"] > 5 | t["zone"] == "a"': "brackets",
    't["pickup"] > day & t["fare"] > 1': "brackets",
    't["pickup"] > day & t["pickup"] < day': "brackets",
    't["fare"] > 5 and t["tip"] > 1': "brackets",
    "A[parts == 3]": "result.labels == ...",
    "np.arange(8)[parts == 3]": "result.labels == ...",
    "parts > 3": "result.labels > ...",
    "np.linalg.eigvals(A)": "np.linalg.eigvals of a DistArray",
    "mn.from_dask": "mn.asarray(x)",
    "mn.diags_array": "scipy.sparse.diags_array",
    'mn.load("nosuch.mtx")': "nosuch.mtx: No such file or directory",
    "A.indices": "x.to_scipy()",
}


@pytest.mark.parametrize("code", MISTAKES)
def test_what_misled_says_the_way(code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "zenios.mtx").write_text("")
    names = {**matrices(tmp_path)[0], **tables(tmp_path)[0], "day": np.datetime64("2020-01-02")}
    names["parts"] = mn.graph.connected_components(names["A"])
    with pytest.raises(Exception, match=re.escape(MISTAKES[code])) as caught:
        eval(code, names)
    assert "did you mean" not in str(caught.value)
    assert isinstance(caught.value, MatnbError | MissingAttributeError)
