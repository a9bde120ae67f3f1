"""Batches that are read ahead count in what a plan may take where workers are in this process."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import matnb as mn
from matnb.errors import TooLargeError
from matnb.lazy.read_ahead import bytes_ahead

ROWS, WIDTH = 320_000, 50  # 128 MB


@pytest.fixture(scope="module")
def numbers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("ahead") / "numbers.npy"
    np.save(path, np.ones((ROWS, WIDTH)))
    return path


def summed(path: Path, batch_size: int) -> float:
    return sum(float(batch.X.sum()) for batch in mn.sources.files(path, batch_size=batch_size))


def test_batches_of_which_four_fit_are_read(numbers: Path) -> None:
    with mn.start(workers=1, threads=1, memory_limit="64MB", memo="off"):
        assert summed(numbers, 32_000) == ROWS * WIDTH  # 12.8 MB each
        assert bytes_ahead() == 0


def test_batches_of_which_three_fill_the_memory_are_refused_with_what_is_ahead(numbers: Path) -> None:
    with mn.start(workers=1, threads=1, memory_limit="64MB", memo="off"):
        with pytest.raises(TooLargeError) as error:
            summed(numbers, 64_000)  # 25.6 MB each: one, two ahead and the one that is read
        assert str(error.value) == (
            "batches take 102 MB: 25.6 MB for one, as much for each of 3 that are read ahead; "
            "workers have 64 MB: give a smaller batch_size"
        )
        assert bytes_ahead() == 0
        assert summed(numbers, 32_000) == ROWS * WIDTH


def test_pieces_of_a_loop_are_cut_to_the_memory_and_batches_larger_than_these_are_refused(
    numbers: Path,
) -> None:
    def step(total, batch):
        return total + batch.X.sum()

    def total(batch_size):
        source = mn.sources.files(numbers, batch_size=batch_size)
        return float(mn.iterate(step, 0.0, over=source)[0])

    with mn.start(workers=1, threads=1, memory_limit="64MB", memo="off"):
        assert total(1000) == ROWS * WIDTH
        with pytest.raises(TooLargeError, match="give a smaller batch_size"):
            total(80_000)  # 32 MB each, and one ahead


def test_what_is_ahead_counts_in_a_plan_and_is_told(numbers: Path) -> None:
    with mn.start(workers=1, threads=1, memory_limit="64MB", memo="off"):
        batches = iter(mn.sources.files(numbers, batch_size=32_000))
        next(batches)
        with pytest.raises(TooLargeError, match=r"\(38.4 MB of all for batches that are read ahead\)"):
            mn.random.default_rng(0).random((4_000, 1000)).persist()  # 32 MB
        batches.close()
        mn.random.default_rng(0).random((4_000, 1000)).persist()
