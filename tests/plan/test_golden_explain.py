"""What explain and pictures say, against frozen texts."""

from __future__ import annotations

import pytest
from golden_explain import CASES, FOLDER, told


@pytest.mark.parametrize("name", CASES)
def test_what_is_said_is_what_was_said(name: str) -> None:
    assert told(name) == (FOLDER / f"{name}.txt").read_text(encoding="utf-8")


def test_no_text_is_left_over() -> None:
    assert {path.stem for path in FOLDER.glob("*.txt")} == set(CASES)
