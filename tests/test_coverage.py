"""``docs/coverage.md``: which names of the standard and of NumPy there are, as the code and its tests say.

``python tests/test_coverage.py`` writes it anew.
"""

from __future__ import annotations

import pickle
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from breadth.test_cases import CASES
from standard_names import DAILY, LIBRARY, STANDARD

import matnb as mn
from matnb.errors import UnsupportedError

TESTS = Path(__file__).parent
PAGE = TESTS.parent / "docs" / "coverage.md"
# Why a name is not there; a name that is there has no reason.
REASONS = {
    "fft": "FFT is left out",
    "graph.leiden": "not there: `graph.louvain` finds communities",
}
# What operators and built-in functions call; cases named so call all of them.
ATTRIBUTES = " ".join(STANDARD[f"Array object: {kind}"] for kind in ("attributes", "methods")).split()
OPERATORS = {
    name
    for name in ATTRIBUTES
    if name.startswith("__") and name not in ("__array_namespace__", "__dlpack__", "__dlpack_device__")
}
LAST = "test_any_cuts.py"  # calls whole libraries: who looks for a test of a name wants its own
UNTESTED = "no test"  # a name without one counts as missing
# What functions that are there do not take, as calls of an array x of shape (3, 4) that are refused.
REFUSED = (
    "np.unique(x, axis=0)",
    "np.lexsort((x, x))",
    "np.histogram(x, bins='stone')",
    "np.pad(x, 1, print)",
    "np.clip(x, 0, 1, where=x > 0)",
    "np.matmul(x, x, axes=[(0, 1), (1, 0), (0, 1)])",
    "np.geomspace(x, 2 * x)",
    "np.subtract.accumulate(x)",
    "np.dot(x, x.T, out=np.ones((3, 3)))",
    "np.linalg.eig(x)",
    "mn.vectorize(abs, signature='(n)->()')",
    "mn.r_['0,2', x]",
    "x.resize((4, 3))",
    "pickle.dumps(x)",
    "mn.learn.PCA().set_output(transform='pandas')",
)
INTRODUCTION = """# What there is of NumPy and of the array API standard

Written by `python tests/test_coverage.py`, which asks the code: "yes" is a name that matnb has and that a
test calls; the last column says where, and whether the bytes that are moved are counted there.

Left out: FFT; object and string dtypes; views that change their array (`x[...] = v` changes `x`, never a
slice that was taken before); pickling as `np.save` does for objects (`mn.save` writes from the workers).
Sparse arrays are matrices and stay sparse where zeros stay zeros; elsewhere results are dense.
What functions that are there do not take is at the end.

Of the 1380 tests in the standard's own suite 1295 passed when it was last tried, and none found a wrong
number. `tests/array_api/skips.txt` lists 31 of the other 85, each with its reason: what is NumPy's own answer
for special values (`//` and `**` of infinities, complex `expm1` and `tanh`), and views, which there are none
of. What the other 54 are was not noted; the extensions `fft` and `linalg` are switched off where it runs.
`tests/array_api/test_public_suite.py` runs it at a fixed commit, which may not be the one of that count.
"""


def test_the_page_says_what_there_is() -> None:
    assert PAGE.read_text() == page(), (
        "docs/coverage.md is not what there is: run python tests/test_coverage.py"
    )


def test_every_name_is_there_and_tested_or_has_a_reason() -> None:
    lacking = [name for _, name in names() if found(name) is None and reason(name) is None]
    assert not lacking, f"no such names, and no reasons: {lacking}"
    untested = [name for _, name in names() if found(name) is not None and checked_by(name) == UNTESTED]
    assert not untested, f"nothing tests {untested}"
    stale = [name for _, name in names() if found(name) is not None and reason(name) is not None]
    assert not stale, f"reasons for what is there: {stale}"


def test_cases_of_operators_call_all_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    called = set()

    def noted(name: str, method: Callable[..., object]) -> Callable[..., object]:
        def call(*arguments: object) -> object:
            called.add(name)
            return method(*arguments)

        return call

    for name in OPERATORS:
        monkeypatch.setattr(mn.DistArray, name, noted(name, getattr(mn.DistArray, name)))
    with mn.start(engine="interpret"):
        for case in CASES:
            if case.name == "operators":
                case.call(mn, *(mn.asarray(make(np.random.default_rng(0))) for make in case.makers))
    mn.stop()
    assert called >= OPERATORS


@pytest.mark.parametrize("call", REFUSED)
def test_what_is_not_taken_is_refused_with_a_way(call: str) -> None:
    assert re.search(r": .|; .", said(call)), "a refusal names the nearest way"


def said(call: str) -> str:
    """Return what a refused call says."""
    with pytest.raises(UnsupportedError) as raised:
        eval(call, {"np": np, "mn": mn, "pickle": pickle, "x": mn.asarray(np.ones((3, 4)))})
    return str(raised.value)


def names() -> list[tuple[str, str]]:
    """Return sections and names, in their order on the page."""
    both = {**STANDARD, **{f"NumPy: {section}": listed for section, listed in DAILY.items()}, **LIBRARY}
    return [(section, name) for section, listed in both.items() for name in listed.split()]


def found(name: str) -> object:
    """Return what a name stands for: of ``matnb``, or of handles if it is an attribute of theirs."""
    section = next(section for section, one in names() if one == name)
    place: object = mn.DistArray if section.startswith("Array object") else mn
    if name == "newaxis":
        return "None" if mn.newaxis is None else None
    for part in name.split("."):
        place = getattr(place, part, None)
    return place


def reason(name: str) -> str | None:
    """Return why a name is not there."""
    return REASONS.get(name, REASONS.get(name.partition(".")[0]))


def checked_by(name: str) -> str:
    """Return which file of the tests calls what a name stands for."""
    families, counted = cases()
    meant = aliases(name)
    calling = sorted(meant & families.keys())
    if calling:
        where = families[name if name in families else calling[0]]
        return f"{where}{', bytes counted' if meant & counted else ''}"
    value = found(name)
    if name == "newaxis" or (isinstance(value, type | float) and value is getattr(np, name, None)):
        return "itself: NumPy's"
    if name in OPERATORS:
        return families["operators"]
    if name == "__dlpack__":
        meant = {"from_dlpack"}  # which calls it
    # As an attribute of a handle, or of what every test calls mn.
    owner = "" if name in ATTRIBUTES else r"\bmn"
    called = re.compile(rf"{owner}\.(?:{'|'.join(map(re.escape, sorted(meant)))})\b")
    for path, text in sorted(texts().items(), key=lambda one: (Path(one[0]).name == LAST, one[0])):
        if called.search(text):
            return path
    return UNTESTED


def aliases(name: str) -> set[str]:
    """Return the names in ``matnb`` of what a name stands for."""
    value = found(name)
    return {name} | {one for one in mn.__all__ if value is not None and getattr(mn, one) is value}


@cache
def cases() -> tuple[dict[str, str], set[str]]:
    """Return the file of each name that cases have, and the names whose bytes are counted."""
    families: dict[str, str] = {}
    for case in CASES:
        family = case.call.__globals__["__name__"].replace(".", "/")
        families.setdefault(case.name, f"{family}.py")
    return families, {case.name for case in CASES if case.large}


@cache
def texts() -> dict[str, str]:
    """Return the texts of all tests by their paths."""
    return {
        str(path.relative_to(TESTS)): path.read_text()
        for path in TESTS.rglob("test_*.py")
        if path != Path(__file__)
    }


def page() -> str:
    """Return the page."""
    lines, before = [INTRODUCTION], ""
    for section, name in names():
        if section != before:
            lines += ["", f"## {section}", "", "| name | | tested in |", "|---|---|---|"]
            before = section
        there = found(name) is not None
        why = "" if there else reason(name) or "not there"
        lines.append(f"| `{name}` | {'yes' if there else 'no'} | {checked_by(name) if there else why} |")
    lines += ["", "## What functions that are there do not take", "", "| call | says |", "|---|---|"]
    lines += [f"| `{call}` | {said(call)} |" for call in REFUSED]
    return "\n".join(lines).replace("\n\n\n", "\n\n") + "\n"


if __name__ == "__main__":
    PAGE.write_text(page())
