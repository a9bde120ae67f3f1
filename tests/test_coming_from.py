"""The page for users of other libraries says what errors and habits say.

Run as a script, this writes its tables anew: what is typed there comes from ``tests/habits``, and from the
words that errors have for the names of other libraries.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import dask
import dask.array
import distributed
import networkx
import numpy as np
import pandas as pd
import pytest
import scipy.io
import scipy.sparse as sp
from counts import PROJECT
from habits.habits import GAP, HERE, habits_of

import matnb as mn

PAGE = PROJECT / "docs" / "guides" / "coming_from.md"
_TABLE = re.compile(r"<!-- table of (\w+) -->\n(.*?)<!-- end -->", re.DOTALL)
_CODE = re.compile(r"```python\n(.*?)```", re.DOTALL)
_MOST = 4  # names in one row
# Between code and the words around it.
_JOINTS = re.compile(
    r"(, or | or |, else | else |, and | and |, which | which |, in which |, where | where |, with | with "
    r"| if | for |: |; )"
)


@dataclass(frozen=True)
class Peer:
    """A library whose names the page translates; its list of habits calls it ``mn``.

    Attributes
    ----------
    prefixes
        What ``mn`` is called there.
    words
        What errors say of names, for the modules that have these names, by what they are called.
    """

    prefixes: Mapping[str, str]
    words: Mapping[str, tuple[Mapping[str, str], tuple[Any, ...]]]


PEERS = {
    "pandas": Peer({"mn.": "pd."}, {"pd": (mn._INSTEAD, (pd,))}),
    "networkx": Peer({"mn.graph.": "nx.", "mn.": "nx."}, {"nx": (mn.graph._INSTEAD, (networkx,))}),
    "scipy": Peer(
        {"mn.linalg.": "sp.linalg.", "mn.": "sp."},
        {"sp": (mn._INSTEAD, (sp, scipy.io)), "sp.linalg": (mn.linalg._INSTEAD, (sp.linalg,))},
    ),
    "dask": Peer(
        {"mn.": "da."},
        {
            "da": (mn._INSTEAD, (dask.array,)),
            "distributed": (mn._INSTEAD, (distributed,)),
            "dask": (mn._INSTEAD, (dask,)),
        },
    ),
    "sklearn": Peer({"mn.learn.": ""}, {}),
}


def rows(name: str) -> dict[str, list[str]]:
    """Return what is written there, by what is written here."""
    found: dict[str, list[str]] = {}
    for owner, (words, modules) in PEERS[name].words.items():
        for one, way in words.items():
            if any(hasattr(module, one) for module in modules):
                found.setdefault(bare(way), []).append(f"{owner}.{one}")
    for habit in habits_of(HERE / f"{name}.txt"):
        if habit.words not in ("", GAP):
            there, known = typed_there(name, habit.typed), found.setdefault(bare(habit.words), [])
            if not any(there.startswith(f"{one}(") for one in known):
                known.append(there)
    return found


def bare(way: str) -> str:
    return re.sub(r"^(write|use|compute first:) ", "", way)


def typed_there(name: str, typed: str) -> str:
    for ours, theirs in PEERS[name].prefixes.items():
        typed = re.sub(rf"\b{re.escape(ours)}", theirs, typed)
    return re.sub(r" or \w+\..*", "", typed)  # what a list reads back


def is_code(text: str) -> bool:
    try:
        ast.parse(text)
    except SyntaxError:
        return False
    return bool(re.search(r"[.(\[=]", text))


def coded(way: str) -> str:
    """Return words for a cell of a table, their code between backticks: as long pieces as read as code."""
    parts = _JOINTS.split(way)
    for size in range(len(parts), 0, -2):
        if is_code(code := "".join(parts[:size])):
            rest = "".join(parts[size + 1 :])
            return f"`{code}`" + ("".join(parts[size : size + 1]) + coded(rest) if rest else "")
    return parts[0] + "".join(parts[1:2]) + (coded("".join(parts[2:])) if parts[2:] else "")


def table(name: str) -> str:
    """Return the lines of a library's table."""

    def lines() -> Iterator[str]:
        yield "| there | here |\n|:--|:--|"
        for way, there in rows(name).items():
            here = coded(way)
            if here.startswith("`"):  # else it is of a mistake, and no other word
                yield f"| {', '.join(map(coded, there[:_MOST]))} | {here} |".replace("||", r"\|\|")

    return "\n".join(lines()) + "\n"


def page(text: str) -> str:
    """Return the page with its tables as they have to be."""
    return _TABLE.sub(lambda one: f"<!-- table of {one[1]} -->\n{table(one[1])}<!-- end -->", text)


def test_the_tables_say_what_errors_and_habits_say() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert [name for name, _ in _TABLE.findall(text)] == list(PEERS)
    assert text == page(text), "write them anew: python tests/test_coming_from.py"


def test_what_needs_no_other_words_is_a_habit_that_works() -> None:
    works = {one.typed for name in PEERS for one in habits_of(HERE / f"{name}.txt") if not one.words}
    shown = [line for block in _CODE.findall(PAGE.read_text(encoding="utf-8")) for line in block.splitlines()]
    assert len(shown) > 30
    assert set(shown) <= works


_DIFFERENCE = re.compile(r"^\| `(.+?)` \| `(.+?)` \| .+ \|$", re.MULTILINE)
_DIFFERENCES = PAGE.read_text(encoding="utf-8").partition("<!-- differences from networkx -->")[2]
DIFFERENCES = _DIFFERENCE.findall(_DIFFERENCES.partition("<!-- end -->")[0])

ONE_THREAD = pytest.mark.session("one thread")


def compared(value: Any, graph: networkx.Graph) -> Any:
    """Return what NetworkX gives as an array in the order of the vertices."""
    if isinstance(value, Iterator):
        value = {(one, other): number for one, other, number in value}
    if isinstance(value, networkx.Graph):
        return networkx.to_scipy_sparse_array(value, sorted(value)).toarray()
    if sp.issparse(value):
        return value.toarray()
    if not isinstance(value, dict | networkx.classes.reportviews.DiDegreeView):
        return value
    values = dict(value)
    if isinstance(next(iter(values)), tuple):
        found = np.zeros((len(graph), len(graph)))
        for (one, other), number in values.items():
            found[one, other] = found[other, one] = number
        return found
    return np.array([values[vertex] for vertex in graph])


@ONE_THREAD
@pytest.mark.parametrize(("there", "here"), DIFFERENCES, ids=[there for there, _ in DIFFERENCES])
def test_where_defaults_differ_the_page_says_what_gives_the_same(
    there: str, here: str, session: None, tmp_path: Path
) -> None:
    G = networkx.connected_watts_strogatz_graph(12, 4, 0.4, seed=3)
    V = networkx.gnp_random_graph(10, 0.3, seed=2, directed=True)
    drawn = np.random.default_rng(1)
    L = networkx.gnp_random_graph(9, 0.4, seed=4)
    L.add_edges_from([(1, 1), (2, 2)])
    for graph in (G, V, L):
        for one, other in graph.edges:
            graph[one][other]["weight"] = float(drawn.integers(1, 6)) / 4
    S = L.copy()
    S.remove_edges_from(networkx.selfloop_edges(L))
    path = tmp_path / "edges.txt"
    path.write_text("0 1\n1 2\n0 3\n")
    labels = np.array([0, 0, 0, 3, 3, 3, 0, 3, 0, 3])
    names: dict[str, Any] = {
        "nx": networkx, "mn": mn, "G": G, "V": V, "path": str(path), "labels": labels,
        "A": mn.asarray(G), "W": mn.asarray(V), "L": L, "S": S, "M": mn.asarray(L),
        "combinations": combinations,
        "communities": [set(np.flatnonzero(labels == one).tolist()) for one in (0, 3)],
    }  # fmt: skip
    wanted = compared(eval(there, names), G if "(G" in there else S if "(S" in there else V)
    found = np.asarray(eval(here, names))
    np.testing.assert_allclose(found, wanted, atol=1e-4)
    if "(S" in there:  # or the self-loops of L would make no difference
        other = compared(eval(re.sub(r"\bS\b", "L", there), names), L)
        assert not np.allclose(other, found, atol=1e-4)
    plain = re.sub(r', "both"|, (directed|use_out_degree)=\w+|\.pattern\(float\)', "", here)
    if plain != here:  # or there would be nothing to say
        other = np.asarray(eval(plain, names))
        assert other.shape != found.shape or not np.allclose(other, found, atol=1e-4)


def test_all_differences_are_tried() -> None:
    assert len(DIFFERENCES) >= 13


def test_code_in_words_is_marked_as_code() -> None:
    assert coded("np.ptp(x)") == "`np.ptp(x)`"
    assert coded("A.nnz, in which a pair counts twice") == "`A.nnz`, in which a pair counts twice"
    assert coded("t.dtypes, or t.describe() for counts") == "`t.dtypes`, or `t.describe()` for counts"
    assert coded("give numbers") == "give numbers"


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
