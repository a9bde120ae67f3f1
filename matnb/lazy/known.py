"""What is known of handles before anything is computed."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any, Self

import numpy as np

from matnb.blocks.layout import Layout
from matnb.errors import OptionError, UnsupportedError
from matnb.expr.nodes import Expr
from matnb.lazy import reductions
from matnb.lazy.evaluator import evaluator
from matnb.lazy.registry import recorded


class Known:
    """Attributes of handles, and the array API standard's on namespace and device."""

    __slots__ = ()

    _expression: Expr

    def _recorded(self, node: Expr) -> Any:
        raise NotImplementedError

    @property
    def shape(self) -> tuple[int, ...]:
        """Lengths of the axes."""
        return self._expression.shape

    @shape.setter
    def shape(self, shape: object) -> None:
        raise UnsupportedError(
            f"x.shape = {shape!r} changes an array in place, as nothing does: x = x.reshape({shape!r})"
        )

    @property
    def dtype(self) -> np.dtype:
        """Type of the elements."""
        return self._expression.dtype

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return self._expression.ndim

    @property
    def size(self) -> int:
        """Number of elements, absent ones included."""
        return self._expression.size

    @property
    def sparse(self) -> bool:
        """True when absent elements are not stored."""
        return self._expression.sparse

    @property
    def nnz(self) -> int:
        """Number of stored entries; counted on the workers when it is not known yet."""
        known = evaluator().facts(self._expression).nnz
        if known is not None:
            return known
        return int(self._recorded(reductions.reduce(self._expression, "stored")))

    @property
    def layout(self) -> Layout | None:
        """Cuts and owners of the blocks, or None while nothing is computed."""
        return evaluator().layout(self._expression)

    @property
    def itemsize(self) -> int:
        """Bytes of an element."""
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """Bytes of all elements, as a dense array would take; absent ones included."""
        return self.size * self.itemsize

    @property
    def real(self) -> Any:
        """The real parts."""
        return recorded(np.real)(self)

    @property
    def imag(self) -> Any:
        """The imaginary parts."""
        return recorded(np.imag)(self)

    @property
    def mT(self) -> Any:
        """The matrices of the last two axes transposed."""
        return recorded(np.matrix_transpose)(self)

    @property
    def device(self) -> str:
        """The standard's name of where arrays are: "cpu", the memory of the workers."""
        return "cpu"

    def to_device(self, device: str, /, stream: None = None) -> Self:
        """Return the array, which is on the only device there is.

        Raises
        ------
        OptionError
            For another device.
        """
        if device != "cpu":
            raise OptionError(f"device={device!r}: arrays are on the workers of the cluster, device 'cpu'")
        return self

    def __array_namespace__(self, /, *, api_version: str | None = None) -> ModuleType:
        """Return ``matnb``, the array API standard's namespace for the array."""
        if api_version not in (None, "2021.12", "2022.12", "2023.12", "2024.12"):
            raise OptionError(f"api_version={api_version!r}: matnb is at 2024.12")
        return sys.modules[__name__.partition(".")[0]]
