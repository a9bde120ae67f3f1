"""Calls that are wrong, of every public function, class and method, as the lines that a user would write."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import matnb as mn

# What a user has by these names; what the calls are written with.
WORLD = """
import datetime
import numpy as np
import matnb as mn
class Thing: pass
x, A, M = mn.asarray([3.0, 1.0, 2.0]), mn.asarray(np.eye(3)), mn.ones((3, 2))
S = mn.asarray(__import__("scipy.sparse").sparse.csr_array(np.eye(3)))
t = mn.table({
    "zone": ["a", "b", "a"], "fare": [1.0, 2.0, 3.0], "tip": [1, None, 3],
    "at": np.array(["2024-01-01", "2024-01-02", "2024-01-03"], "datetime64[s]"),
})
zone, tip, at, groups = t["zone"], t["tip"], t["at"], t.groupby("zone")
pivot, keyed = t.pivot("zone", "tip", "fare"), mn.groupby(mn.asarray([0, 1, 0]))
N, g, session = mn.nested.from_lists([[1, 2], [3]]), mn.random.default_rng(0), mn.current_session()
"""
OBJECTS = ("x", "S", "t", "zone", "tip", "at", "groups", "pivot", "keyed", "N", "g", "session")
MODULES = {
    "mn": mn, "mn.graph": mn.graph, "mn.linalg": mn.linalg, "mn.learn": mn.learn,
    "mn.learn.models": mn.learn.models, "mn.nested": mn.nested, "mn.sources": mn.sources,
    "mn.random": mn.random, "mn.special": mn.special,
}  # fmt: skip


def _is_ours(one: Any) -> bool:
    return str(getattr(one, "__module__", None) or type(one).__module__).startswith("matnb")


def _required(one: Any) -> int | None:
    # How many arguments a call needs; None where it tells of none.
    try:
        parameters = inspect.signature(one).parameters.values()
    except (TypeError, ValueError):
        return None
    return sum(
        each.default is each.empty and each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)
        for each in parameters
    )


def _wrong_calls(called: str, one: Any) -> Iterator[str]:
    # A word that is none of its arguments', more arguments than it takes, and things where it takes arrays.
    yield f"{called}(nothing_like_it=1)"
    needed = _required(one)
    if needed:
        yield f"{called}({', '.join(['Thing()'] * needed)})"
    elif needed == 0:
        yield f"{called}({', '.join(['Thing()'] * 12)})"


def of_modules() -> Iterator[str]:
    """Yield wrong calls of what the modules offer, and names that they have not."""
    for prefix, module in MODULES.items():
        for name in dir(module):
            one = getattr(module, name)
            if isinstance(one, ModuleType) or not callable(one) or not _is_ours(one):
                continue
            if isinstance(one, type) and issubclass(one, BaseException | tuple):  # nobody makes results
                continue
            yield from _wrong_calls(f"{prefix}.{name}", one)
            yield f"{prefix}.{name}_x"


def of_objects(world: dict[str, Any]) -> Iterator[str]:
    """Yield wrong calls of the methods of a user's objects, and names that they have not."""
    for called in OBJECTS:
        one = world[called]
        for name in dir(type(one)):
            method = inspect.getattr_static(type(one), name)
            if name.startswith("_"):
                continue
            yield f"{called}.{name}_x"
            if callable(method):
                yield from _wrong_calls(f"{called}.{name}", getattr(one, name))


def of_estimators() -> Iterator[str]:
    """Yield wrong calls of the methods of estimators."""
    for name in mn.learn.__all__:
        kind = getattr(mn.learn, name)
        if not isinstance(kind, type) or not hasattr(kind, "fit") or _required(kind):
            continue
        for method in dir(kind):
            if not method.startswith("_") and inspect.isfunction(inspect.getattr_static(kind, method)):
                yield from _wrong_calls(f"mn.learn.{name}().{method}", getattr(kind(), method))
        yield f"mn.learn.{name}().fit_x"
