"""Habits of other libraries' users: how their lists are read, done in matnb and with the peer, and judged."""

from __future__ import annotations

import ast
import contextlib
import io
import re
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import dask
import numpy as np
import pandas as pd
import scipy.sparse as sp

import matnb as mn

HERE = Path(__file__).parent
GAP = "??"

Outcome = Literal["works", "says", "raises", "differs"]
Names = Mapping[str, Any]
World = Callable[[], tuple[Names, Names]]  # fresh names, matnb's and the peer's


@dataclass(frozen=True)
class Habit:
    """What somebody types, what the peer says to it, and what matnb does today.

    Attributes
    ----------
    typed
        Python; where its last statement is an expression, that is its value.
    peer
        What gives the same value under the peer's names; the same text if the list has no other.
    words
        Empty where the habit works; else what the error has to say, or ``??`` for one that tells no way.
    """

    typed: str
    peer: str
    words: str

    def line(self) -> str:
        """Return the line of the list."""
        peer = f" -> {self.peer}" if self.peer != self.typed else ""
        mark = f" {GAP}" if self.words == GAP else f" !! {self.words}" if self.words else ""
        return self.typed + peer + mark


@dataclass(frozen=True)
class SourceFacts:
    """What came of a habit: its outcome, and the error's message or the two values."""

    outcome: Outcome
    text: str = ""


def parsed(line: str) -> Habit:
    """Return the habit of a line: ``typed [-> peer] [!! words | ??]``."""
    rest, words = line.strip(), ""
    if rest.endswith(f" {GAP}"):
        rest, words = rest.removesuffix(GAP).strip(), GAP
    elif " !! " in rest:
        rest, words = rest.split(" !! ", 1)
    typed, _, peer = rest.partition(" -> ")
    return Habit(typed.strip(), peer.strip() or typed.strip(), words.strip())


def habits_of(path: Path) -> list[Habit]:
    """Return the habits of a list; lines that begin with # say what its names stand for."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return [parsed(line) for line in lines if line.strip() and not line.startswith("#")]


def done(code: str, names: Names, picture: Callable[[], object]) -> object:
    """Run a habit and return its value; what it printed, or drew, where it has none."""
    tree = ast.parse(code)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    own, printed = dict(names), io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, "<habit>", "exec"), own)
        value = None if last is None else eval(compile(ast.Expression(last.value), "<habit>", "eval"), own)
        drawn = picture()
        if drawn is not None:
            return drawn
        value = plain(value)
    return printed.getvalue() if value is None else value


def judged(habit: Habit, world: World, picture: Callable[[], object], tolerance: float) -> SourceFacts:
    """Do a habit with the peer and with matnb."""
    ours, theirs = world()
    with warnings.catch_warnings(), np.errstate(all="ignore"), np.printoptions():
        warnings.simplefilter("ignore")
        try:
            expected, asked = done(habit.peer, theirs, picture), True
        except Exception as error:  # some habits are mistakes, which both must refuse
            expected, asked = error, False
        try:
            found = done(habit.typed, ours, picture)
        except Exception as error:
            message = f"{type(error).__name__}: {error}"
            said = habit.words not in ("", GAP) and habit.words in message
            return SourceFacts("says" if said else "raises", message)
    if asked and same(found, expected, tolerance):
        return SourceFacts("works")
    return SourceFacts("differs", f"{short(found)} where the peer has {short(expected)}")


def short(value: object) -> str:
    """Return a value in one line."""
    return re.sub(r"\s+", " ", f"{type(value).__name__} {value!r}")[:200]


def plain(value: Any) -> Any:
    """Return a value as NumPy's arrays, pandas's frames and Python's own, whoever made it."""
    if isinstance(value, mn.Table):
        return value.to_pandas()
    if isinstance(value, (mn.DistArray, mn.Column, mn.TextColumn, mn.TimeColumn, mn.MaskedColumn)):
        return plain(value.compute())
    if sp.issparse(value) or type(value).__module__.startswith("sparse."):
        return value.toarray() if sp.issparse(value) else value.todense()
    if isinstance(value, pd.api.extensions.ExtensionArray):
        return np.asarray(value)
    if isinstance(value, np.matrix):
        return np.asarray(value)
    if isinstance(value, (pd.Series, pd.Index)):
        named = isinstance(value, pd.Series) and not isinstance(value.index, pd.RangeIndex)
        if named and value.index.names != [None]:
            return plain(value.reset_index(name=value.name or "size"))
        return np.asarray(value)
    if dask.is_dask_collection(value):
        return plain(value.compute())
    if type(value).__module__.startswith("polars."):
        return value.to_pandas()
    if isinstance(value, (tuple, list)):
        return [plain(one) for one in value]
    return value


def same(found: Any, expected: Any, tolerance: float) -> bool:
    """Whether a value is what the peer has: kind, shape, and numbers within a relative tolerance."""
    if isinstance(expected, pd.DataFrame):
        return same_frame(found, expected, tolerance)
    if isinstance(expected, (list, dict)) and not isinstance(found, np.ndarray):
        if isinstance(expected, dict):
            found, expected = [list(each.items()) for each in (found, expected)]
        return len(found) == len(expected) and all(
            same(*pair, tolerance) for pair in zip(map(plain, found), map(plain, expected), strict=True)
        )
    if isinstance(expected, (str, type(None), np.dtype, type, pd.Timestamp, pd.Timedelta)):
        return bool(found == expected)
    if isinstance(expected, (bool, int, float, complex, np.generic, np.ndarray, list)):
        return same_array(np.asarray(found), np.asarray(expected), tolerance)
    return type(found) is type(expected)


def same_array(found: np.ndarray, expected: np.ndarray, tolerance: float) -> bool:
    if found.shape != expected.shape:
        return False
    kinds = found.dtype.kind + expected.dtype.kind
    if set(kinds) <= set("biufc"):
        if ("b" in kinds) and kinds != "bb":
            return False
        return bool(np.allclose(found, expected, rtol=tolerance, atol=tolerance, equal_nan=True))
    if set(kinds) <= set("mM"):
        return bool(np.array_equal(found, expected, equal_nan=True))
    pairs = zip(found.ravel().tolist(), expected.ravel().tolist(), strict=True)
    return all(pd.isna(one) == pd.isna(other) and (pd.isna(one) or one == other) for one, other in pairs)


def same_frame(found: Any, expected: pd.DataFrame, tolerance: float) -> bool:
    if not isinstance(found, pd.DataFrame):
        return isinstance(found, np.ndarray) and same_array(found, expected.to_numpy(), tolerance)
    if len(found.columns) > len(expected.columns):  # a table has what is in pandas's index as columns
        expected = expected.reset_index(names=list(found.columns[: expected.index.nlevels]))
    names = [[str(name) for name in frame.columns] for frame in (found, expected)]
    if names[0] != names[1] or len(found) != len(expected):
        return False
    columns = ((found.iloc[:, at], expected.iloc[:, at]) for at in range(len(names[0])))
    return all(same_array(*map(column, pair), tolerance) for pair in columns)


def column(one: pd.Series) -> np.ndarray:
    """Return a column's values; numbers with holes as floats, categories as what they stand for."""
    if isinstance(one.dtype, pd.CategoricalDtype):
        return np.asarray(one.astype(object))
    if one.dtype.kind in "iuf" and one.isna().any():
        return one.to_numpy(float, na_value=np.nan)
    if isinstance(one.dtype, pd.DatetimeTZDtype):
        return np.asarray(one.dt.tz_convert("UTC").dt.tz_localize(None))
    return one.to_numpy()
