"""Indexing and restructuring ask for numbers of the structure alone: values stay on the workers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import matnb as mn
from matnb.expr.nodes import Expr

COUNT, SEGMENTS = 60_000, 6_000
MOST = 4 * 512 + 64  # numbers: what the summary of a structure takes, for two of them

pytestmark = pytest.mark.session("two workers", memo="off")


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The sizes of all that came to this process."""
    sizes: list[int] = []
    kind = type(mn.current_session())
    value = kind.value

    def noted(session: Any, node: Expr) -> Any:
        sizes.append(node.size)
        return value(session, node)

    monkeypatch.setattr(kind, "value", noted)
    return sizes


def made() -> tuple[Any, dict[str, Any]]:
    rng = np.random.default_rng(0)
    counts = rng.multinomial(COUNT - 20_000, [1 / SEGMENTS] * SEGMENTS)
    counts[7] += 20_000  # in several blocks
    N = mn.nested.unflatten(mn.asarray(rng.random(COUNT), blocks=4), mn.asarray(counts, blocks=4))
    to = rng.permutation(COUNT)
    starts = np.cumsum([0, *counts])
    segment = np.searchsorted(starts, to, side="right") - 1
    given = {
        "mask": mn.asarray(rng.random(SEGMENTS) < 0.5, blocks=4),
        "order": mn.asarray(rng.permutation(SEGMENTS), blocks=4),
        "target": (mn.asarray(segment, blocks=4), mn.asarray(to - starts[segment], blocks=4)),
        "rows": mn.asarray(sp.random_array((500, 300), density=0.2, rng=rng, format="csr"), blocks=4),
        "keys": mn.asarray(rng.integers(0, 2**60, COUNT), blocks=4),
        "counts": counts,
    }
    given["others"] = mn.asarray(sp.random_array((500, 300), density=0.2, rng=rng, format="csr"), blocks=4)
    return N, given


OPERATIONS: dict[str, Callable[[Any, dict[str, Any]], Any]] = {
    "slice": lambda N, given: N[10:-10],
    "steps": lambda N, given: N[::-3],
    "mask": lambda N, given: N[given["mask"]],
    "order": lambda N, given: N[given["order"]],
    "combine": lambda N, given: N.combine(given["target"]),
    "shuffle": lambda N, given: N.shuffle(given["target"], counts=given["counts"]),
    "transpose": lambda N, given: N.T,
    "rows": lambda N, given: mn.nested.from_rows(given["rows"]),
    "columns": lambda N, given: mn.nested.from_rows(given["rows"]).T,
    "union": lambda N, given: mn.nested.from_rows(given["rows"]) + mn.nested.from_rows(given["others"]),
    "keys": lambda N, given: mn.nested.from_keys(given["keys"], N.values).segments,
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_no_values_come_here(name: str, asked: list[int]) -> None:
    N, given = made()
    asked.clear()
    found = OPERATIONS[name](N, given)
    found.values.persist()
    assert found.num_values > MOST
    assert max(asked) <= MOST


def test_an_element_is_two_offsets_and_one_value(asked: list[int]) -> None:
    N, _ = made()
    expected = N[7].compute()[12_345]
    asked.clear()
    one = N[7, 12_345]
    assert asked == [2]
    assert one.compute() == expected
    assert asked == [2, 1]
    plan = one.explain("plan")
    assert plan.count("slice") == 1, plan
