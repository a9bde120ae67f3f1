"""Versions of what a function reads differ where its code, or any plain value, does."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from functools import partial
from types import ModuleType

import pytest

from matnb.blocks.kernels.rebuilding import version_of

# Each name stands for texts of a module, in which `total` is of another version each time.
VERSIONS = {
    "defaults with a number twice": [
        "def total(x, a=1, b=2, c=1): return x",
        "def total(x, a=1, b=2, c=2): return x",
        "def total(x, a=1, b=1, c=2): return x",
        "def total(x, a=2, b=1, c=1): return x",
    ],
    "defaults by name": [
        "def total(x, *, a=1, b=1, c=2): return x",
        "def total(x, *, a=1, b=2, c=2): return x",
        "def total(x, *, a=1, b=2, d=2): return x",
    ],
    "a global read twice": [
        "A = 5\nB = 5\ndef total(x): return A * x + B",
        "A = 5\nB = None\ndef total(x): return A * x + B",
        "A = None\nB = 5\ndef total(x): return A * x + B",
    ],
    "a dict's keys": [
        "TABLE = {1: 2, 3: 4}\ndef total(x): return TABLE[x]",
        "TABLE = {1: 2, 5: 4}\ndef total(x): return TABLE[x]",
        "TABLE = {1: 4, 3: 2}\ndef total(x): return TABLE[x]",
        "TABLE = {1: 2, 3: 2}\ndef total(x): return TABLE[x]",
        "TABLE = {'a': 2, 3: 2}\ndef total(x): return TABLE[x]",
    ],
    "a set": [
        "KNOWN = {1, 2}\ndef total(x): return x in KNOWN",
        "KNOWN = {1, 3}\ndef total(x): return x in KNOWN",
        "KNOWN = {'a', 'b', 'c'}\ndef total(x): return x in KNOWN",
        "KNOWN = frozenset({'a', 'b', 'd'})\ndef total(x): return x in KNOWN",
        "KNOWN = set()\ndef total(x): return x in KNOWN",
    ],
    "how values are nested": [
        "ROWS = [[1, 2], [3]]\ndef total(x): return ROWS",
        "ROWS = [[1], [2, 3]]\ndef total(x): return ROWS",
        "ROWS = [1, 2, 3]\ndef total(x): return ROWS",
        "ROWS = (1, 2, 3)\ndef total(x): return ROWS",
        "ROWS = ((1, 2), 3)\ndef total(x): return ROWS",
    ],
    "the same list in two places": [
        "ONE = [1]\nTWO = ONE, ONE\ndef total(x): return TWO",
        "ONE = [1]\nTWO = ONE, [2]\ndef total(x): return TWO",
        "ONE = [1]\nTWO = ONE, [1], ONE\ndef total(x): return TWO",
    ],
    "attributes of a class": [
        "class Rate:\n    a, b = 1, 1\ndef total(x): return Rate.a",
        "class Rate:\n    a, b = 1, 2\ndef total(x): return Rate.a",
        "class Rate:\n    a, c = 1, 1\ndef total(x): return Rate.a",
    ],
    "whether a number is one": [
        "A = 1\ndef total(x): return A",
        "A = 1.0\ndef total(x): return A",
        "A = True\ndef total(x): return A",
        "A = '1'\ndef total(x): return A",
    ],
}  # fmt: skip


def of(text: str) -> ModuleType:
    """Return a module that is a user's."""
    module = ModuleType("a_users_module")
    exec(compile(text, "a_users_module", "exec", dont_inherit=True), vars(module))
    return module


@pytest.mark.parametrize("name", VERSIONS)
def test_every_version_has_a_digest_of_its_own(name: str) -> None:
    digests = [version_of(of(text).total) for text in VERSIONS[name]]
    assert len(set(digests)) == len(VERSIONS[name])
    assert digests == [version_of(of(text).total) for text in VERSIONS[name]], "the same, made again"


def test_arguments_that_are_kept_count_by_their_names() -> None:
    total = of("def total(x, a=0, b=0): return x").total
    found = [partial(total, **kept) for kept in ({"a": 1}, {"b": 1}, {"a": 1, "b": 1}, {"a": 1, "b": 2})]
    assert len({version_of(one) for one in found}) == len(found)


def test_what_holds_itself_has_a_version() -> None:
    first, second = (
        of("ROWS = [1]\nROWS.append(ROWS)\ndef total(x): return total, ROWS"),
        of("ROWS = [2]\nROWS.append(ROWS)\ndef total(x): return total, ROWS"),
    )
    assert version_of(first.total) != version_of(second.total)


@pytest.mark.parametrize("seed", ["1", "2"])
def test_sets_and_dicts_have_the_same_version_in_another_process(seed: str) -> None:
    text = "KNOWN, TABLE = {'a', 'b', 'c'}, {'d': {'e', 'f'}}\ndef total(x, a=(1, 1)): return KNOWN, TABLE"
    script = f"""
        from types import ModuleType
        from matnb.blocks.kernels.rebuilding import version_of
        module = ModuleType("a_users_module")
        exec({text!r}, vars(module))
        print(version_of(module.total).hex())
    """
    found = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, check=True,
        env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)},
    ).stdout.strip()  # fmt: skip
    assert found == version_of(of(text).total).hex()
