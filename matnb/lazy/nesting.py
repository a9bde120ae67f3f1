"""Nested tuples, lists and dicts of arrays, such as the state of a loop: taken apart and put together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol, cast

from matnb.errors import DTypeError
from matnb.lazy.array import DistArray

Key = str | int | float | bool | bytes | None


class Segments(Protocol):
    """Values in segments of unequal length, which stay while the values are others."""

    @property
    def __matnb_segments__(self) -> bytes:
        """What names the segments, and the positions of values in them."""

    @property
    def values(self) -> DistArray:
        """The values of all segments one after the other."""

    def with_values(self, values: object) -> Segments:
        """Return other values in the same segments."""

    def __len__(self) -> int: ...


@dataclass(frozen=True)
class Nesting:
    """How a value is nested: its kind (None for a leaf), and what is below, by the keys of a dict.

    Of ``segments``, values in segments of unequal length, the flat values are a leaf, and the key names them.
    """

    kind: type | None
    keys: tuple[Key, ...]
    below: tuple[Nesting, ...]
    segments: Segments | None = field(default=None, compare=False)

    @property
    def has_segments(self) -> bool:
        """Whether values in segments are anywhere in it."""
        return self.segments is not None or any(one.has_segments for one in self.below)

    def paths(self, start: str) -> Iterator[str]:
        """Yield for each leaf how a user would write it, ``start`` being the whole value."""
        if self.segments is not None:
            yield f"{start}.values"
            return
        if self.kind is None:
            yield start
        for key, inner in zip(self.keys, self.below, strict=True):
            yield from inner.paths(f"{start}[{key!r}]")

    def __str__(self) -> str:
        if self.kind is None:
            return "array"
        if self.segments is not None:
            return f"{self.kind.__name__} of {len(self.segments):,} segments"
        inner = [str(one) for one in self.below]
        if issubclass(self.kind, dict):
            inner = [f"{key!r}: {one}" for key, one in zip(self.keys, inner, strict=True)]
        shown = inner if len(inner) < 8 else [*inner[:6], f"... {len(inner) - 6} more"]
        return f"{self.kind.__name__}({', '.join(shown)})"


LEAF = Nesting(None, (), ())


def taken_apart(value: object, like: Nesting = LEAF) -> tuple[list[object], Nesting]:
    """Return the leaves of a value in order, and how it is nested.

    Tuples, named tuples, lists and dicts are nested; anything else is a leaf, of values in segments the flat
    values. Dicts with the keys of those of ``like`` are gone through in the order of these.

    Raises
    ------
    DTypeError
        For a dict with keys that are not constants.
    """
    match value:
        case dict():
            for key in value:
                if not isinstance(key, Key):
                    raise DTypeError(f"a dict with the key {key!r}: use strings or numbers")
            keys = like.keys if set(like.keys) == set(value) else tuple(value)
            inner = [value[key] for key in keys]
        case tuple() | list():
            keys, inner = tuple(range(len(value))), list(value)
        case _ if hasattr(type(value), "__matnb_segments__"):
            segments = cast(Segments, value)
            named = (segments.__matnb_segments__,)
            return [segments.values], Nesting(type(value), named, (LEAF,), segments)
        case _:
            return [value], LEAF
    leaves: list[object] = []
    below = []
    others = like.below if like.keys == keys else (LEAF,) * len(keys)
    for one, other in zip(inner, others, strict=True):
        found, nesting = taken_apart(one, other)
        leaves += found
        below.append(nesting)
    return leaves, Nesting(type(value), keys, tuple(below))


def put_together(nesting: Nesting, leaves: Sequence[object]) -> object:
    """Return a value of this nesting with these leaves, as many as it has."""
    remaining = iter(leaves)
    value = _put_together(nesting, remaining)
    assert next(remaining, None) is None
    return value


def _put_together(nesting: Nesting, leaves: Iterator[object]) -> object:
    kind = nesting.kind
    if kind is None:
        return next(leaves)
    inner = [_put_together(one, leaves) for one in nesting.below]
    if nesting.segments is not None:
        return nesting.segments.with_values(*inner)
    if issubclass(kind, dict):
        return dict(zip(nesting.keys, inner, strict=True))
    if issubclass(kind, list):
        return inner
    return kind(*inner) if hasattr(kind, "_fields") else tuple(inner)
