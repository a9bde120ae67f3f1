"""Digests: sixteen bytes that name a value by what it is made of, alike in every process."""

from __future__ import annotations

import struct
from collections.abc import Callable, Hashable
from dataclasses import fields, is_dataclass
from functools import cache, lru_cache
from hashlib import blake2b

import numpy as np

from matnb.version import VERSION

# Part of every digest, as matnb's version is: what other code computes are other results.
KERNEL_TABLE_VERSION = "8"
_PREFIX = f"matnb {VERSION} kernels {KERNEL_TABLE_VERSION};".encode()


def digest_of(*parts: Hashable) -> bytes:
    """Return the digest of a sequence of values.

    Values of different types have different digests, as have 0.0 and -0.0, though they compare equal.
    """
    return blake2b(_PREFIX + b"".join(map(_encode, parts)), digest_size=16).digest()


def digest_of_node(label: str, parameters: tuple[Hashable, ...], below: bytes, are_plain: bool) -> bytes:
    """Return the digest of an operation with parameters on operands.

    Parameters
    ----------
    below
        The operands' digests side by side: an operation has a number of them, or its parameters tell it.
    are_plain
        Whether parameters that compare equal are the same, so that it is remembered how they are written.
    """
    if are_plain:
        head = _plain_head(label, parameters)
    elif parameters and type(parameters[0]) is bytes:
        before, after = _around_content(label, parameters[1:])
        head = before + _encode_bytes(parameters[0]) + after
    else:
        head = _head(label, parameters)
    return blake2b(head + below, digest_size=16).digest()


def _head(label: str, parameters: tuple[Hashable, ...]) -> bytes:
    return b"%sN%d:%b%b" % (_PREFIX, len(label), label.encode(), _encode_tuple(parameters))


_plain_head = lru_cache(maxsize=1024)(_head)


@lru_cache(maxsize=1024)
def _around_content(label: str, others: tuple[Hashable, ...]) -> tuple[bytes, bytes]:
    # What ``_head`` writes before and after the first parameter, where that is the content of an array and
    # the others are its shape and dtype: contents are many, and each is written once.
    before = b"%sN%d:%b(%d:" % (_PREFIX, len(label), label.encode(), 1 + len(others))
    return before, b"".join(map(_encode, others)) + b")"


def _encode_bytes(value: bytes) -> bytes:
    return b"b%d:" % len(value) + value


def _encode_text(value: str) -> bytes:
    text = value.encode()
    return b"s%d:" % len(text) + text


def _encode_tuple(value: tuple[Hashable, ...]) -> bytes:
    return b"(%d:" % len(value) + b"".join(map(_encode, value)) + b")"


@cache
def _encode_dtype(dtype: np.dtype) -> bytes:
    return b"d" + dtype.str.encode() + b";"


_ENCODERS: dict[type, Callable[..., bytes]] = {
    bytes: _encode_bytes,
    str: _encode_text,
    tuple: _encode_tuple,
    bool: lambda value: b"?1" if value else b"?0",
    int: lambda value: b"i%d;" % value,
    float: lambda value: b"f" + struct.pack("<d", value),
    type(None): lambda value: b"n",
    slice: lambda value: b"l" + _encode_tuple((value.start, value.stop, value.step)),
}


def _encode(value: Hashable) -> bytes:
    encoder = _ENCODERS.get(type(value))
    if encoder is not None:
        return encoder(value)
    if isinstance(value, np.dtype):
        return _encode_dtype(value)
    for kind, encode in _ENCODERS.items():  # of a kind that is derived from one of those
        if isinstance(value, kind):
            return encode(value)
    if isinstance(value, np.generic):
        return b"g" + value.dtype.str.encode() + b";" + value.tobytes()
    digest = getattr(value, "digest", None)
    if isinstance(digest, bytes):
        return b"h" + digest
    if is_dataclass(value):
        named = tuple((field.name, getattr(value, field.name)) for field in fields(value))
        return b"r" + _encode((type(value).__qualname__, named))
    raise TypeError(f"a parameter of type {type(value).__name__} has no digest")
