"""Batches that are read ahead count in what a plan may take where workers are in this process."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import matnb as mn
from matnb.errors import TooLargeError
from matnb.lazy.read_ahead import bytes_ahead

ROWS, WIDTH = 40_000, 50  # 16 MB


@pytest.fixture(scope="module")
def numbers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("ahead") / "numbers.npy"
    np.save(path, np.ones((ROWS, WIDTH)))
    return path


def summed(path: Path, batch_size: int) -> float:
    return sum(float(batch.X.sum()) for batch in mn.sources.files(path, batch_size=batch_size))


def test_batches_of_which_four_fit_are_read(numbers: Path) -> None:
    with mn.start(workers=1, threads=1, memory_limit="8MB", memo="off"):
        assert summed(numbers, 4000) == ROWS * WIDTH  # 1.6 MB each
        assert bytes_ahead() == 0


def test_batches_of_which_three_fill_the_memory_are_refused_with_what_is_ahead(numbers: Path) -> None:
    with mn.start(workers=1, threads=1, memory_limit="8MB", memo="off"):
        with pytest.raises(TooLargeError) as error:
            summed(numbers, 8000)  # 3.2 MB each: one, two ahead and the one that is read
        assert re.search(r"\(9.6 MB of all for batches that are read ahead\)", str(error.value))
        assert "give a smaller batch_size" in str(error.value)
        assert bytes_ahead() == 0
        assert summed(numbers, 4000) == ROWS * WIDTH


def test_a_loop_over_a_source_leaves_room_for_the_piece_ahead(numbers: Path) -> None:
    def step(total, batch):
        return total + batch.X.sum()

    source = mn.sources.files(numbers, batch_size=1000)
    with (
        mn.start(workers=1, threads=1, memory_limit="24MB", memo="off"),
        pytest.raises(TooLargeError, match="read ahead"),
    ):
        float(mn.iterate(step, 0.0, over=source)[0])  # a piece takes all 16 MB, and so does the next
