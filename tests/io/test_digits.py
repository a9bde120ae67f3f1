"""Numbers from text against Python's int() and float(), bit by bit."""

from __future__ import annotations

import math
import struct

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from matnb.io.digits import BadToken, parse_floats, parse_integers, text_of, token_places

DECIMALS = st.builds(
    lambda sign, whole, part, mark, exponent: f"{sign}{whole}.{part}" + (f"{mark}{exponent}" if mark else ""),
    st.sampled_from(["", "+", "-"]),
    st.from_regex(r"[0-9]{1,20}", fullmatch=True),
    st.from_regex(r"[0-9]{0,25}", fullmatch=True),
    st.sampled_from(["", "e", "E"]),
    st.integers(-400, 400),
)
FLOAT_TOKENS = st.one_of(
    st.floats(allow_nan=False).map(repr),
    st.floats(allow_nan=False, allow_infinity=False).map(lambda value: f"{value:.17g}"),
    st.floats(1e-6, 1e6).map(lambda value: f"{value:.16f}"),
    st.integers(-(10**24), 10**24).map(str),
    DECIMALS,
)


def tokens(words: list[str]):
    text = text_of(" ".join(words).encode())
    return text, *token_places(text.buffer > 32)


def bits(value: float) -> bytes:
    return struct.pack("d", value)


@given(st.lists(FLOAT_TOKENS, min_size=1, max_size=40))
@example(["9007199254740993", "9007199254740992.5", "9007199254740992.50000000000000000001"])
@example(["0.1", "1", "5.", ".5", "1e22", "1e23", "-0", "-0.0", "1e-400", "1e400", "0.3e-5"])
@example(["7205759403792793.5", "144115188075855.875", "0.000000000000000000001", "2.2250738585072014e-308"])
def test_floats_are_those_of_float(words: list[str]):
    parsed = parse_floats(*tokens(words))
    assert [bits(value) for value in parsed.tolist()] == [bits(float(word)) for word in words]


def test_many_floats_written_by_repr_come_back():
    values = np.random.default_rng(0).random(20_000) * 10.0 ** np.random.default_rng(1).integers(
        -18, 3, 20_000
    )
    parsed = parse_floats(*tokens([f"{value:.17g}" for value in values.tolist()]))
    assert parsed.tobytes() == values.tobytes()


def test_words_for_what_is_no_finite_number():
    parsed = parse_floats(*tokens(["nan", "inf", "-Infinity", "+INF", "1"]))
    assert math.isnan(parsed[0])
    assert parsed[1:].tolist() == [math.inf, -math.inf, math.inf, 1.0]


@pytest.mark.parametrize(
    "word",
    [
        "1.2.3",
        "1e5e3",
        "--1",
        "+-1",
        "1-2",
        "e5",
        "1e",
        "1e+",
        ".",
        "-",
        "+",
        "1_0",
        "0x10",
        "1,2",
        "é",
        "1e5.5",
        "nan1",
        "1.5abc",
        "\u0661",
        "..",
        "infin",
        "1e+-5",
        "+.",
        ".e5",
        "1f",
        "1d3",
        "1:2",
        "1/2",
    ],
)
def test_no_float(word: str):
    for words in (["1.5", word], ["1.5", word, "2.5"], [word], ["7"] * 50 + [word, "1e3", ".5"]):
        with pytest.raises(BadToken) as caught:
            parse_floats(*tokens(words))
        assert caught.value.number == words.index(word)


@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=40), st.sampled_from(["", "+", "000"]))
def test_integers_are_those_of_int(values: list[int], prefix: str):
    words = [str(value) if value < 0 else prefix + str(value) for value in values]
    assert parse_integers(*tokens(words)).tolist() == values


@pytest.mark.parametrize(
    "word",
    ["9223372036854775808", "-9223372036854775809", "18446744073709551617", "99999999999999999999",
     "1" * 5000, "1.0", "1e5", "-", "+", "1-", "x", "--1", "1_0", "\u0663", "0x1", "12345678x",
     "x12345678901"],
)  # fmt: skip
def test_no_integer(word: str):
    for words in (["1", word], [word, "12345678901234567"]):
        with pytest.raises(BadToken) as caught:
            parse_integers(*tokens(words))
        assert caught.value.number == words.index(word)
