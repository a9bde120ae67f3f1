"""Numbers are written short, exact where it matters, and never with an exponent."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from matnb.pictures.quantities import bytes_text, plural_text, seconds_text, shape_text, share_text


@pytest.mark.parametrize(
    ("num_bytes", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1 kB"),
        (999_499, "999 kB"),
        (999_500, "1 MB"),
        (35_200_000, "35.2 MB"),
    ],
)
def test_bytes(num_bytes, text):
    assert bytes_text(num_bytes) == text


@given(st.integers(0, 10**20))
def test_bytes_have_no_exponent_and_at_most_three_digits_before_the_unit(num_bytes):
    number, unit = bytes_text(num_bytes).split()
    assert "e" not in number
    assert len(number.replace(".", "")) <= 3
    assert unit in {"B", "kB", "MB", "GB", "TB", "PB", "EB"}


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (1.0, "100 %"),
        (0.5, "50 %"),
        (0.00205, "0.205 %"),
        (1e-9, "0.0000001 %"),
        (0.0, "0 %"),
        (0.99999, "100 %"),
    ],
)
def test_shares(share, text):
    assert share_text(share) == text


def test_plurals_shapes_and_seconds():
    assert [plural_text(n, "entry") for n in (0, 1, 1234)] == ["0 entries", "1 entry", "1,234 entries"]
    assert [plural_text(2, noun) for noun in ("array", "key", "block")] == ["2 arrays", "2 keys", "2 blocks"]
    assert [shape_text(shape) for shape in ((), (3,), (3, 4))] == ["scalar", "3", "3 x 4"]
    assert [seconds_text(s) for s in (3599.6, 5990, 163_720, 1e7)] == [
        "1 h 0 min", "1 h 40 min", "45 h 29 min", "115 d 17 h",
    ]  # fmt: skip
    assert [seconds_text(s) for s in (0.0123, 3.4, 59.97, 125)] == [
        "12.3 ms",
        "3.4 s",
        "1 min 0 s",
        "2 min 5 s",
    ]
