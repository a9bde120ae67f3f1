"""``scipy.special`` on distributed arrays: its ufuncs, and softmax and sums of exponentials along axes."""

from __future__ import annotations

from typing import Any

import numpy as np

from matnb.blocks.kernels.elementwise.elementwise import ufunc_named
from matnb.errors import DTypeError, no_attribute
from matnb.lazy.array import DistArray, handle_of
from matnb.lazy.creation import asarray
from matnb.lazy.functions.elementwise import named

Axis = int | tuple[int, ...] | None


def softmax(x: object, axis: Axis = None) -> DistArray:
    """Return the exponentials of an array over their sum along axes, as ``scipy.special.softmax``.

    Parameters
    ----------
    x
        Real numbers of any shape; of whole numbers the result is float64.
    axis
        Along which the result adds up to 1; all of the array by default.

    Raises
    ------
    DTypeError
        For complex numbers.

    Notes
    -----
    The greatest element along the axes is taken off first, so that no exponential overflows.

    Examples
    --------
    >>> import matnb as mn
    >>> mn.special.softmax(mn.asarray([0.0, 0.0, 1000.0])).compute()
    array([0., 0., 1.])
    """
    numbers = _real(x, "softmax")
    powers: Any = np.exp(numbers - np.max(numbers, axis=axis, keepdims=True))
    return handle_of(powers / np.sum(powers, axis=axis, keepdims=True))


def log_softmax(x: object, axis: Axis = None) -> DistArray:
    """Return the logarithms of ``softmax``, exact where that is 0, as ``scipy.special.log_softmax``.

    Raises
    ------
    DTypeError
        For complex numbers.

    Examples
    --------
    >>> import matnb as mn
    >>> mn.special.log_softmax(mn.asarray([0.0, 1000.0])).compute()
    array([-1000.,     0.])
    """
    numbers = _real(x, "log_softmax")
    greatest = _finite(np.max(numbers, axis=axis, keepdims=True))
    away: Any = numbers - greatest
    return handle_of(away - np.log(np.sum(np.exp(away), axis=axis, keepdims=True)))


def logsumexp(a: object, axis: Axis = None, b: object = None, keepdims: bool = False) -> DistArray:
    """Return the logarithm of the sum of exponentials along axes, as ``scipy.special.logsumexp``.

    Parameters
    ----------
    a
        Real numbers of any shape; of whole numbers the result is float64.
    axis
        Along which exponentials are added; all of the array by default.
    b
        Factors of the exponentials, which broadcast; a negative sum gives NaN.
    keepdims
        Whether those axes stay, with length 1.

    Raises
    ------
    DTypeError
        For complex numbers.

    Notes
    -----
    The greatest element along the axes is taken off first, so that no exponential overflows.

    Examples
    --------
    >>> import matnb as mn
    >>> round(float(mn.special.logsumexp(mn.asarray([1000.0, 1000.0]))), 3)
    1000.693
    """
    numbers: Any = _real(a, "logsumexp")
    factors: Any = None if b is None else _real(b, "logsumexp")
    if factors is not None:
        # What has the factor 0 is not there, whatever it is.
        numbers = np.where(factors == 0, -np.inf, numbers)
    greatest = _finite(np.max(numbers, axis=axis, keepdims=True))
    powers: Any = np.exp(numbers - greatest)
    total: Any = np.sum(powers if factors is None else factors * powers, axis=axis, keepdims=True)
    found = np.log(total) + greatest
    axes = axis if axis is not None else tuple(range(numbers.ndim))
    return handle_of(found if keepdims else np.squeeze(found, axis=axes))


def _real(values: object, name: str) -> DistArray:
    array = asarray(values)
    if array.dtype.kind == "c":
        raise DTypeError(f"{name} of dtype {array.dtype}: give real numbers")
    return array if array.dtype.kind == "f" else array.astype(np.float64)


def _finite(greatest: Any) -> Any:
    # What is taken off before exponentials: of infinities nothing, which would give NaN.
    return handle_of(np.where(np.isfinite(greatest), greatest, 0))


def __getattr__(name: str) -> Any:
    if name.startswith("_"):
        raise no_attribute("module 'matnb.special'", name)
    if not hasattr(np, name) and ufunc_named(name) is not None:
        return named(name)
    raise no_attribute("module 'matnb.special'", name, __dir__, lambda: _instead_of(name))


def _instead_of(name: str) -> str:
    from scipy import special

    return f"compute first: scipy.special.{name}(x.compute())" if hasattr(special, name) else ""


def __dir__() -> list[str]:
    from scipy import special  # late, as ufunc_named has it

    ufuncs = [name for name in dir(special) if not hasattr(np, name) and ufunc_named(name) is not None]
    return sorted({*ufuncs, "softmax", "log_softmax", "logsumexp"})
