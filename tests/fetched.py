"""Counts what comes into this process of arrays on workers, at the one place where it comes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from matnb.blocks.formats import Block
from matnb.expr.nodes import Expr
from matnb.lazy import evaluator as hook


@dataclass
class Fetched:
    """The sizes in bytes of the values that came, one by one."""

    sizes: list[int] = field(default_factory=list)

    @property
    def num_bytes(self) -> int:
        return sum(self.sizes)

    @property
    def largest(self) -> int:
        return max(self.sizes, default=0)


class _Counting:
    def __init__(self, inner: hook.Evaluator, seen: Fetched) -> None:
        self._inner, self._seen = inner, seen

    def value(self, node: Expr) -> Block:
        block = self._inner.value(node)
        self._seen.sizes.append(block.nbytes)
        return block

    def __getattr__(self, name: str) -> object:
        return getattr(self._inner, name)


@contextmanager
def counting() -> Iterator[Fetched]:
    """Count every value that a handle gives while the block runs."""
    inner, seen = hook.evaluator(), Fetched()
    hook.set_evaluator(_Counting(inner, seen))
    try:
        yield seen
    finally:
        hook.set_evaluator(inner)
