"""Numbers from text, many at once: strict, in NumPy alone, bit-equal to int() and float()."""

# Measured (docs/decisions/0003-reading-text.md): NumPy lets the GIL go in each step, so pieces are read side
# by side, and nothing is compiled. Eight digits are turned into a number at once by arithmetic on a 64-bit
# word.

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

MARGIN = 24  # spaces before the text, so that the words that end at a token never start before the buffer
Bytes = npt.NDArray[np.uint8]
Places = npt.NDArray[np.int64]  # positions in the buffer

_ZEROS = np.uint64(0x3030303030303030)
_SIXES = np.uint64(0x7676767676767676)
_HIGH_BITS = np.uint64(0x8080808080808080)
_PAIRS = np.uint64(0x000000FF000000FF)
_POWERS = np.array([float(f"1e{k}") for k in range(23)])  # 10**22 is the last that a double holds exactly
_INTEGER_POWERS = np.array([10**k for k in range(20)], np.uint64)
_EXACT = np.uint64(2**53)
_HALF = np.uint64(2**63)
_SPLIT = float(2**27 + 1)
_NUMBER_BYTES = frozenset(b"0123456789+-.eEinfatyINFATY")


class BadToken(ValueError):  # noqa: N818  stays in io: the reader adds the file and the line
    """A token that is not a number: its place among those given, and why."""

    def __init__(self, number: int, reason: str) -> None:
        self.number, self.reason = number, reason
        super().__init__(number, reason)


@dataclass(frozen=True, eq=False)
class Text:
    """Whole lines of a file.

    Parameters
    ----------
    buffer
        ``MARGIN`` spaces and then the lines, the last one ended by a newline too.
    """

    buffer: Bytes

    def bytes_at(self, start: int, stop: int) -> bytes:
        """Return the bytes between two positions."""
        return self.buffer[start:stop].tobytes()


def text_of(data: bytes | bytearray | memoryview) -> Text:
    """Return lines as a Text; a newline is added where the last line lacks it."""
    ended = len(data) == 0 or data[-1] in (10, b"\n")
    buffer = np.empty(MARGIN + len(data) + (not ended), np.uint8)
    buffer[:MARGIN] = 32
    buffer[MARGIN : MARGIN + len(data)] = np.frombuffer(data, np.uint8)
    if not ended:
        buffer[-1] = 10
    return Text(buffer)


def token_places(token_bytes: npt.NDArray[np.bool_]) -> tuple[Places, Places]:
    """Return where tokens start and stop, given which bytes belong to one; the first and last byte do not."""
    changes = np.flatnonzero(token_bytes[1:] != token_bytes[:-1]) + 1
    return changes[0::2], changes[1::2]


def parse_integers(text: Text, starts: Places, stops: Places) -> npt.NDArray[np.int64]:
    """Return tokens as 64-bit integers.

    Raises
    ------
    BadToken
        For the first token that is not an integer, or one out of the range of 64 bits.
    """
    first = text.buffer[starts]
    negative = first == 45
    signed = negative | (first == 43)
    lengths = stops - starts
    if signed.any():
        lengths = lengths - signed
    value, good = _whole(text, stops, lengths)
    good &= (lengths > 0) & (value < _HALF)
    result = value.view(np.int64)
    np.negative(result, out=result, where=negative)
    for number in np.flatnonzero(~good):
        result[number] = _integer(text.bytes_at(starts[number], stops[number]), int(number))
    return result


def _integer(token: bytes, number: int, lowest: int = -(2**63), highest: int = 2**63 - 1) -> int:
    digits = token[1:] if token[:1] in (b"-", b"+") else token
    if not digits.isdigit():
        raise BadToken(number, f"{shown(token)} is not a whole number")
    if len(digits) <= 4000:  # int() refuses more, and none of them would fit
        value = int(token)
        if lowest <= value <= highest:
            return value
        if value < 0 == lowest:
            raise BadToken(number, f"{shown(token)} is negative")
    raise BadToken(number, f"{shown(token)} does not fit 64 bits")


def parse_unsigned(text: Text, starts: Places, stops: Places) -> npt.NDArray[np.uint64]:
    """Return tokens as 64-bit integers without a sign.

    Raises
    ------
    BadToken
        For the first token that is not an integer from 0 on and below 2**64.
    """
    lengths = stops - starts
    value, good = _whole(text, stops, lengths)
    good &= (lengths > 0) & (lengths <= 18)  # of which no digit is lost
    for number in np.flatnonzero(~good):
        value[number] = _integer(text.bytes_at(starts[number], stops[number]), int(number), 0, 2**64 - 1)
    return value


def parse_floats(text: Text, starts: Places, stops: Places) -> npt.NDArray[np.float64]:
    """Return tokens as the doubles nearest to them, as float() gives; "nan" and "inf" are read too.

    Raises
    ------
    BadToken
        For the first token that is not a number.
    """
    first = text.buffer[starts]
    negative = first == 45
    heads = starts + (negative | (first == 43))
    good = np.ones(starts.size, np.bool_)
    ends, exponents = _exponents(text, starts, stops, good)
    dots = _within(np.flatnonzero(text.buffer == 46), heads, ends, good)
    if dots is None:
        num_digits = ends - heads
        mantissa, right = _whole(text, ends, num_digits)
    else:
        whole_lengths, part_lengths = dots - heads, ends - dots - (dots < ends)
        num_digits = whole_lengths + part_lengths
        mantissa, right = _whole(text, dots, whole_lengths)
        part, also = _whole(text, ends, part_lengths)
        right &= also & ((mantissa == 0) | (num_digits <= 19))
        mantissa *= _INTEGER_POWERS[np.minimum(part_lengths, 19)]
        mantissa += part
        exponents = -part_lengths if exponents is None else exponents - part_lengths
    good &= right & (num_digits > 0)
    result = _scaled(mantissa, exponents, good)
    np.negative(result, out=result, where=negative)
    for number in np.flatnonzero(~good):
        result[number] = _float(text.bytes_at(starts[number], stops[number]), int(number))
    return result


def _scaled(
    mantissa: npt.NDArray[np.uint64], exponents: Places | None, good: npt.NDArray[np.bool_]
) -> npt.NDArray[np.float64]:
    # mantissa * 10**exponent. A mantissa up to 2**53 and a power up to 10**22 are exact in a double, so that
    # one division or multiplication rounds correctly (Clinger 1990). Larger mantissas are divided with a
    # remainder: quotient + rest is the value to some 100 bits; it is rounded correctly if a little more and a
    # little less of the rest give the same double (Ziv 1991). What that leaves open is no longer good.
    value = mantissa.astype(np.float64)
    large = mantissa > _EXACT
    if exponents is None:
        good &= ~large
        return value
    good &= (np.abs(exponents) <= 22) & ~(large & (exponents > 0))
    powers = _POWERS[np.minimum(np.abs(exponents), 22)]
    result: npt.NDArray[np.float64] = value / powers
    upward = exponents > 0
    np.multiply(value, powers, out=result, where=upward)
    hard = np.flatnonzero(large & good)
    if hard.size:
        value, powers, quotient = value[hard], powers[hard], result[hard]
        # what the double leaves out, which may be negative
        below = (mantissa[hard] - value.astype(np.uint64)).view(np.int64)
        product, error = _exact_product(quotient, powers)
        rest = (((value - product) - error) + below) / powers
        more, less = quotient + rest * (1 + 2.0**-46), quotient + rest * (1 - 2.0**-46)
        result[hard] = more
        good[hard] &= more == less
    return result


def _exact_product(
    a: npt.NDArray[np.float64], b: npt.NDArray[np.float64]
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    # The product and its rounding error, both exact (Dekker 1971).
    product = a * b
    a_high, b_high = a * _SPLIT - (a * _SPLIT - a), b * _SPLIT - (b * _SPLIT - b)
    a_low, b_low = a - a_high, b - b_high
    return product, ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low


def _float(token: bytes, number: int) -> float:
    if _NUMBER_BYTES.issuperset(token):
        try:
            return float(token)
        except ValueError:
            pass
    raise BadToken(number, f"{shown(token)} is not a number")


def _exponents(
    text: Text, starts: Places, stops: Places, good: npt.NDArray[np.bool_]
) -> tuple[Places, Places | None]:
    # Where mantissas end, and the exponents; None if no token has one.
    marks = _within(np.flatnonzero((text.buffer | 32) == 101), starts, stops, good)
    if marks is None:
        return stops, None
    marked = np.flatnonzero(marks < stops)
    begin, end = marks[marked] + 1, stops[marked]
    sign = text.buffer[begin]
    lengths = end - begin - ((sign == 45) | (sign == 43))
    value, right = _whole(text, end, lengths)
    good[marked] &= right & (lengths > 0) & (lengths <= 4)
    exponents = np.zeros(starts.size, np.int64)
    exponents[marked] = np.where(sign == 45, -1, 1) * value.astype(np.int64)
    return marks, exponents


def _within(marks: Places, starts: Places, stops: Places, good: npt.NDArray[np.bool_]) -> Places | None:
    # For each token the place of the mark in it, or its end; None if no token has one. Two marks make it not
    # good.
    if marks.size == starts.size and bool(((marks >= starts) & (marks < stops)).all()):
        return marks
    owners = np.searchsorted(starts, marks, "right") - 1
    inside = owners >= 0
    inside[inside] = marks[inside] < stops[owners[inside]]
    if not inside.any():
        return None
    marks, owners = marks[inside], owners[inside]
    good[owners[1:][owners[1:] == owners[:-1]]] = False
    places = stops.copy()
    places[owners] = marks
    return places


def _whole(
    text: Text, stops: Places, lengths: Places
) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.bool_]]:
    # The numbers that `lengths` digits before `stops` write, and which of them are all digits and below
    # 10**19.
    words = np.ndarray((text.buffer.size - 7,), "V8", text.buffer, strides=(1,))
    longest = int(lengths.max(initial=0))
    value, good = _eight(words, stops, lengths)
    if longest > 8:
        upper, also = _eight(words, stops - 8, lengths - 8)
        value += upper * np.uint64(10**8)
        good &= also
    if longest > 16:
        upper, also = _eight(words, stops - 16, lengths - 16)
        value += upper * np.uint64(10**16)
        good &= also & (upper < 1000)
    if longest > 24:
        good &= lengths <= 24
    return value, good


def _eight(
    words: npt.NDArray[np.void], stops: Places, lengths: Places
) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.bool_]]:
    # The text's first digit is the word's lowest byte. Bytes before the token become zeros; then neighbors
    # are joined to pairs, fours and eights (Lemire 2018, "Quickly parsing eight digits").
    word = words[stops - 8].view("<u8").astype(np.uint64, copy=False)
    word ^= _ZEROS
    shift = ((8 - np.clip(lengths, 0, 8)) << 3).astype(np.uint64)  # a shift by 64 leaves 0 in NumPy
    word >>= shift
    word <<= shift
    good = ((word + _SIXES) | word) & _HIGH_BITS == 0
    tens = word * np.uint64(10)
    word >>= np.uint64(8)
    word += tens
    high = (word >> np.uint64(16)) & _PAIRS
    word &= _PAIRS
    word *= np.uint64(0x000F424000000064)
    high *= np.uint64(0x0000271000000001)
    word += high
    word >>= np.uint64(32)
    return word, good


def shown(token: bytes) -> str:
    """Return a token as a message shows it: quoted, and cut when long."""
    cut = token if len(token) <= 40 else token[:37] + b"..."
    return repr(cut.decode("utf-8", "backslashreplace"))
