"""A family of kernels: one dict and one decorator, by operation and formats."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from matnb.blocks.formats import Block
from matnb.errors import UnsupportedError

Kernel = TypeVar("Kernel", bound=Callable[..., Block])
Format = type[Block]


class Family:
    """The kernels of one family.

    Parameters
    ----------
    name
        What the family makes, for the message of a miss: "product", "transpose" and so on.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self._kernels: dict[tuple[str, tuple[Format, ...]], Callable[..., Block]] = {}

    def register(self, operation: str, *formats: Format) -> Callable[[Kernel], Kernel]:
        """Return the decorator that enters a kernel under an operation and the formats of its blocks."""

        def enter(kernel: Kernel) -> Kernel:
            self._kernels[operation, formats] = kernel
            return kernel

        return enter

    def find(self, operation: str, *blocks: Block) -> Callable[..., Block]:
        """Return the kernel for an operation on these blocks.

        Raises
        ------
        UnsupportedError
            When there is none; the message lists what there is.
        """
        formats = tuple(type(block) for block in blocks)
        if (operation, formats) in self._kernels:
            return self._kernels[operation, formats]
        known = [_text(others) for name, others in self._kernels if name == operation]
        if known:
            raise UnsupportedError(
                f"no {self.name} {operation!r} for {_text(formats)}; known: {', '.join(known)}"
            )
        names = dict.fromkeys(name for name, _ in self._kernels)
        raise UnsupportedError(f"no {self.name} {operation!r}; known: {', '.join(names)}")


PRODUCTS = Family("product")  # by semiring; filled by the files of products, found by products.multiply


def _text(formats: tuple[Format, ...]) -> str:
    return f"({', '.join(one.__name__ for one in formats)})"
