"""Digests: sixteen bytes that name a value by what it is made of, alike in every process."""

from __future__ import annotations

import struct
from collections.abc import Hashable
from dataclasses import fields, is_dataclass
from functools import cache
from hashlib import blake2b

import numpy as np

from matnb.version import VERSION

# Part of every digest, as matnb's version is: what other code computes are other results.
KERNEL_TABLE_VERSION = "1"
_PREFIX = f"matnb {VERSION} kernels {KERNEL_TABLE_VERSION};".encode()


def digest_of(*parts: Hashable) -> bytes:
    """Return the digest of a sequence of values.

    Values of different types have different digests, as have 0.0 and -0.0, though they compare equal.
    """
    return blake2b(_PREFIX + b"".join(map(_encode, parts)), digest_size=16).digest()


@cache
def _encoded_dtype(dtype: np.dtype) -> bytes:
    return b"d" + dtype.str.encode() + b";"


def _encode(value: Hashable) -> bytes:
    # Those that every node has come first: this is most of the time of recording.
    match value:
        case bytes():
            return b"b%d:" % len(value) + value
        case str():
            text = value.encode()
            return b"s%d:" % len(text) + text
        case tuple():
            return b"(%d:" % len(value) + b"".join(map(_encode, value)) + b")"
        case np.dtype():
            return _encoded_dtype(value)
        case bool():
            return b"?1" if value else b"?0"
        case int():
            return b"i%d;" % value
        case float():
            return b"f" + struct.pack("<d", value)
        case None:
            return b"n"
        case slice():
            return b"l" + _encode((value.start, value.stop, value.step))
        case np.generic():
            return b"g" + value.dtype.str.encode() + b";" + value.tobytes()
    digest = getattr(value, "digest", None)
    if isinstance(digest, bytes):
        return b"h" + digest
    if is_dataclass(value):
        named = tuple((field.name, getattr(value, field.name)) for field in fields(value))
        return b"r" + _encode((type(value).__qualname__, named))
    raise TypeError(f"a parameter of type {type(value).__name__} has no digest")
