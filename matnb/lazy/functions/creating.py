"""NumPy's functions that make arrays from parameters, beside those of ``lazy.creation``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np
import numpy.typing as npt

from matnb.blocks.grid import BlocksSpec
from matnb.errors import OptionError, ShapeError, UnsupportedError
from matnb.expr.nodes import Broadcast, Expr, Index
from matnb.lazy import reductions, ufuncs
from matnb.lazy.array import DistArray, expression_of, handle_of, wrap
from matnb.lazy.creation import (
    Order,
    ShapeLike,
    arange,
    asarray,
    check_device,
    eye,
    linspace,
    shape_of,
    zeros,
)
from matnb.lazy.registry import implements


@implements(np.array)
def array(
    obj: object,
    dtype: npt.DTypeLike | None = None,
    *,
    copy: bool | None = True,
    order: Order = "K",
    subok: bool = False,
    ndmin: int = 0,
    blocks: BlocksSpec = None,
    format: str | None = None,
) -> DistArray:
    """``numpy.array``: a DistArray of its own; see :func:`matnb.asarray`."""
    made = asarray(obj, dtype, copy=copy or None, blocks=blocks, format=format)
    return made[(None,) * max(0, ndmin - made.ndim)] if made.ndim < ndmin else made


@implements(np.asanyarray, np.ascontiguousarray, np.asfortranarray)
def asanyarray(
    a: object, dtype: npt.DTypeLike | None = None, order: Order = None, **rest: object
) -> DistArray:
    """``numpy.asanyarray``: a DistArray, the same where it is one."""
    return asarray(a, dtype)


@implements(np.copy)
def copy(a: object, order: Order = "K", subok: bool = False) -> DistArray:
    """``numpy.copy``: another handle."""
    return asarray(a, copy=True)


@implements(np.empty)
def empty(
    shape: ShapeLike,
    dtype: npt.DTypeLike | None = None,
    order: Order = "C",
    *,
    device: str | None = None,
    blocks: BlocksSpec = None,
) -> DistArray:
    """``numpy.empty``: zeros, as no memory is ever handed out unwritten."""
    return zeros(shape, dtype, device=device, blocks=blocks)


@implements(np.identity)
def identity(n: int, dtype: npt.DTypeLike | None = None) -> DistArray:
    """``numpy.identity``: sparse, as :func:`matnb.eye`."""
    return eye(n, dtype=dtype)


def _is_one(a: object, b: object, max_work: object = None) -> bool:
    """``numpy.shares_memory``: whether both are one handle, as assigning to another changes nothing here."""
    return a is b and handle_of(a).size > 0


implements(np.shares_memory, np.may_share_memory)(_is_one)


@implements(np.from_dlpack)
def from_dlpack(x: object, /, *, device: str | None = None, copy: bool | None = None) -> DistArray:
    """``numpy.from_dlpack``: the elements are copied, unless ``x`` is a DistArray."""
    check_device(device)
    if isinstance(x, DistArray):
        return asarray(x, copy=copy)
    if copy is False:
        raise OptionError("from_dlpack(copy=False): the elements go to the workers, so a copy is needed")
    return asarray(np.from_dlpack(x))  # type: ignore[arg-type]  # or it raises


@implements(np.meshgrid)
def meshgrid(
    *xi: object, copy: bool = True, sparse: bool = False, indexing: str = "xy"
) -> tuple[DistArray, ...]:
    """``numpy.meshgrid``; ``sparse`` is NumPy's: axes of length 1, which stretch where they meet."""
    if indexing not in ("xy", "ij"):
        raise OptionError(f"meshgrid(indexing={indexing!r}): choose 'xy' or 'ij'")
    nodes = [expression_of(one) for one in xi]
    if any(node.ndim > 1 for node in nodes):
        raise ShapeError("meshgrid: give arrays of one axis")
    count = len(nodes)
    lengths = [node.size for node in nodes]
    order = list(range(count))
    if indexing == "xy" and count > 1:
        order[:2] = [1, 0]  # where on the axes each array goes
    shape = [0] * count
    for place, length in zip(order, lengths, strict=True):
        shape[place] = length
    made = []
    for place, node in zip(order, nodes, strict=True):
        own = slice(0, node.size, 1)
        new = tuple(own if axis == place and node.ndim else None for axis in range(count))
        axes = node if count == 1 and node.ndim else Index(node, new)
        made.append(
            wrap(axes if sparse else Broadcast(axes, tuple(shape)) if axes.shape != tuple(shape) else axes)
        )
    return tuple(made)


@implements(np.logspace)
def logspace(
    start: object,
    stop: object,
    num: int = 50,
    endpoint: bool = True,
    base: object = 10.0,
    dtype: npt.DTypeLike | None = None,
    axis: int = 0,
) -> DistArray:
    """``numpy.logspace``."""
    if np.ndim(base):  # type: ignore[arg-type]  # or it raises
        start, stop, base = np.broadcast_arrays(*(asarray(one) for one in (start, stop, base)))
        base = np.expand_dims(base, axis)
    made = np.power(base, linspace(start, stop, num, endpoint, axis=axis))  # type: ignore[call-overload]  # records
    return made if dtype is None else made.astype(dtype)  # type: ignore[no-any-return]  # a handle


@implements(np.geomspace)
def geomspace(
    start: float,
    stop: float,
    num: int = 50,
    endpoint: bool = True,
    dtype: npt.DTypeLike | None = None,
    axis: int = 0,
) -> DistArray:
    """``numpy.geomspace`` between real numbers of one sign."""
    if np.ndim(start) or np.ndim(stop) or np.iscomplexobj(start) or np.iscomplexobj(stop):
        raise UnsupportedError(
            "np.geomspace between arrays or complex numbers is not recorded: "
            "10 ** np.linspace(np.log10(a), np.log10(b), num)"
        )
    if start * stop <= 0:
        raise OptionError(f"geomspace: from {start} to {stop}: neither can be 0, and signs must be equal")
    sign, (num,) = (-1.0 if start < 0 else 1.0), shape_of(num)
    made = logspace(np.log10(abs(float(start))), np.log10(abs(float(stop))), num, endpoint) * sign
    places = arange(num)
    node = _with(places == 0, float(start), made)  # the ends are exact
    if endpoint and num > 1:
        node = _with(places == num - 1, float(stop), wrap(node))
    return wrap(node if dtype is None else ufuncs.astype(node, dtype))


def _with(place: object, number: float, array: object) -> Expr:
    return reductions.where(expression_of(place), ufuncs.literal(number), expression_of(array))


@implements(np.fromfunction)
def fromfunction(
    function: Callable[..., object],
    shape: Sequence[int],
    *,
    dtype: npt.DTypeLike | None = None,
    **rest: object,
) -> object:
    """``numpy.fromfunction``: the function is called once, with handles on the indices."""
    return function(*_indices(shape_of(shape), float if dtype is None else dtype), **rest)


def _indices(shape: tuple[int, ...], dtype: npt.DTypeLike) -> tuple[DistArray, ...]:
    return meshgrid(*(arange(length, dtype=dtype) for length in shape), indexing="ij")


@implements(np.fromiter)
def fromiter(iter: Iterable[object], dtype: npt.DTypeLike, count: int = -1) -> DistArray:
    """``numpy.fromiter``."""
    return asarray(np.fromiter(iter, dtype, count))


@implements(np.frombuffer)
def frombuffer(buffer: object, dtype: npt.DTypeLike = float, count: int = -1, offset: int = 0) -> DistArray:
    """``numpy.frombuffer``: the elements are copied."""
    return asarray(np.frombuffer(buffer, dtype, count, offset))  # type: ignore[call-overload]  # or it raises


def _read_here(reader: Callable[..., object]) -> None:
    def read(*args: object, **options: object) -> DistArray:
        return asarray(reader(*args, **options))

    read.__doc__ = f"``numpy.{reader.__name__}``, in this process; :func:`matnb.load` has the workers read."
    implements(reader)(read)


_read_here(np.loadtxt)
_read_here(np.genfromtxt)
_read_here(np.fromstring)
_read_here(np.fromfile)
