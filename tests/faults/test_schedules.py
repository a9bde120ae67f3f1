"""Twenty schedules of faults; ``python -m tests.faults --schedules 300 --seed 1`` runs as many as wanted."""

from __future__ import annotations

import pytest

from faults.supervise import line, outcomes, totals


def test_four_schedules_with_workers_in_this_process() -> None:
    found = list(outcomes(1, range(4), processes=False))
    assert not [line(1, one) for one in found if one.is_bad], totals(found)


@pytest.mark.slow
def test_twenty_schedules_with_workers_in_this_process() -> None:
    found = list(outcomes(1, range(20), processes=False))
    assert not [line(1, one) for one in found if one.is_bad], totals(found)
    assert sum(one.struck for one in found) >= 10


@pytest.mark.slow
@pytest.mark.cluster
def test_four_schedules_with_worker_processes() -> None:
    found = list(outcomes(1, range(4), processes=True))
    assert not [line(1, one) for one in found if one.is_bad], totals(found)
