"""Where any order will do, that of expressions is the same in each run: over new files, and random names."""

from __future__ import annotations

import os
from collections import Counter
from itertools import count
from pathlib import Path

import numpy as np
import pytest

from matnb.blocks.formats import Dense
from matnb.expr import stable_order
from matnb.expr.client_data import owned
from matnb.expr.nodes import Elementwise, Expr, Load
from matnb.expr.stable_order import place_of, steady_digest
from matnb.io.rmat import Rmat
from matnb.io.source import open_source
from matnb.passes import optimize

FLOAT = np.dtype(float)


def loaded(path: Path) -> Load:
    return Load(open_source(path), "matrix", (3,), FLOAT, False)


def written(path: Path, number: int = 0) -> Load:
    """Load a file that was just written anew, with the same content, at another time."""
    path.unlink(missing_ok=True)
    np.save(path, np.arange(3.0))
    os.utime(path, ns=(number, number))
    return loaded(path)


def applied(name: str, *operands: Expr) -> Elementwise:
    return Elementwise(name, operands, (FLOAT,) * len(operands), FLOAT)


def added(first: Expr, second: Expr) -> Elementwise:
    return applied("add", first, second)


def in_order(first: Expr, second: Expr) -> tuple[Expr, ...]:
    (found,) = {optimize({"x": added(*both)})["x"] for both in ((first, second), (second, first))}
    return found.operands


def test_a_file_that_is_written_anew_is_another_value_in_the_same_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    digests, orders = set(), set()
    for number in range(20):
        monkeypatch.setattr(stable_order, "_versions", {})  # as in a process of its own
        monkeypatch.setattr(stable_order, "_num_versions", Counter())
        x = written(tmp_path / "x.npy", number)
        digests.add(x.digest)
        orders.add(tuple(one.name for one in in_order(applied("sin", x), applied("cos", x))))
        del x
    assert len(digests) == 20
    assert len(orders) == 1


def test_files_of_one_name_are_in_the_order_in_which_they_were_seen(tmp_path: Path) -> None:
    folders = [tmp_path / str(number) for number in range(8)]
    for folder in folders:
        folder.mkdir()
    seen = [written(folder / "y.npy", number) for number, folder in enumerate(reversed(folders))]
    other = written(tmp_path / "other.npy")
    told = sorted([other, *seen], key=place_of)
    del seen
    again = [loaded(folder / "y.npy") for folder in folders]  # the same ones, in another order
    assert sorted([*again, other], key=place_of) == told
    assert len({steady_digest(one) for one in again}) == len(again)


def test_an_array_that_is_named_at_random_is_in_the_same_place_in_each_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    digests, orders = set(), set()
    for _ in range(20):
        monkeypatch.setattr(stable_order, "_num_given", count())  # as in a process of its own
        x, y = (owned(Dense(np.arange(3.0))) for _ in range(2))
        assert x is not y
        assert steady_digest(x) != steady_digest(y)
        digests.add(x.digest)
        found = in_order(applied("sin", x), applied("sin", y))
        orders.add(tuple(one.operands[0] is x for one in found))
    assert len(digests) == 20
    assert len(orders) == 1


@pytest.mark.parametrize("name", ["add", "multiply", "hypot"])
def test_what_two_versions_of_a_file_make_has_one_order(name: str, tmp_path: Path) -> None:
    versions = [written(tmp_path / "z.npy", number) for number in range(2)]
    assert versions[0] is not versions[1]
    assert len({optimize({"x": applied(name, *both)})["x"] for both in (versions, versions[::-1])}) == 1


def test_without_a_file_the_digest_tells() -> None:
    graph = Load(Rmat(4), "matrix", (16, 16), FLOAT, True)
    node = applied("sin", graph)
    assert not node.digest_varies
    assert steady_digest(node) == node.digest
    assert place_of(node) == (node.digest, node.digest)


def test_a_long_chain_over_a_file_is_gone_through_without_recursion(tmp_path: Path) -> None:
    x = y = written(tmp_path / "long.npy")
    for _ in range(5000):
        y = applied("sin", y)
    assert steady_digest(y) != y.digest
    assert y.digest_varies
    assert in_order(x, y) in {(x, y), (y, x)}
