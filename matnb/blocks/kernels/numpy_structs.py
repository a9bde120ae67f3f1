"""What NumPy's objects hold, by its public C interface: the loops of ufuncs, and where elements are."""

from __future__ import annotations

import ctypes
from functools import cache

import numpy as np

from matnb.blocks.formats import NumericArray

_DOUBLE = np.dtype(np.float64)
# A loop of NumPy takes addresses of operands and result, how many elements, their distances, and data.
_LOOP = ctypes.CFUNCTYPE(None, *(ctypes.c_void_p,) * 4)


class _Ufunc(ctypes.Structure):
    # The begin of PyUFuncObject, behind the head that every object has; part of NumPy's public C interface.
    _fields_ = (
        ("nin", ctypes.c_int),
        ("nout", ctypes.c_int),
        ("nargs", ctypes.c_int),
        ("identity", ctypes.c_int),
        ("functions", ctypes.POINTER(ctypes.c_void_p)),
        ("data", ctypes.POINTER(ctypes.c_void_p)),
        ("ntypes", ctypes.c_int),
        ("reserved1", ctypes.c_int),
        ("name", ctypes.c_char_p),
        ("types", ctypes.POINTER(ctypes.c_char)),
    )


@cache
def loop_address(name: str) -> int | None:
    """Return where NumPy's loop of a ufunc of doubles is that gives a double; None where there is none.

    It is none too where what is found there does not look as it must, or does not give the ufunc's bits: the
    caller then calls the ufunc.
    """
    ufunc = getattr(np, name, None)
    if not isinstance(ufunc, np.ufunc) or ufunc.signature is not None or ufunc.nout != 1 or ufunc.nin > 2:
        return None
    wanted = f"{'d' * ufunc.nin}->d"
    if wanted not in ufunc.types:
        return None
    inside = _Ufunc.from_address(id(ufunc) + object.__basicsize__)
    counts = (inside.nin, inside.nout, inside.nargs, inside.ntypes)
    if counts != (ufunc.nin, ufunc.nout, ufunc.nargs, ufunc.ntypes) or inside.name != ufunc.__name__.encode():
        return None
    place = ufunc.types.index(wanted)
    found = inside.types[place * ufunc.nargs : (place + 1) * ufunc.nargs]
    address = inside.functions[place]
    if found != bytes([_DOUBLE.num]) * ufunc.nargs or not address or (inside.data and inside.data[place]):
        return None
    return address if _gives_bits_of(ufunc, address) else None


def _gives_bits_of(ufunc: np.ufunc, address: int) -> bool:
    special = [0.0, -0.0, 1.0, -1.0, 0.5, np.inf, -np.inf, np.nan, 5e-324, 1e-310, 1e308, -745.5, 709.9]
    values = np.concatenate([special, np.linspace(-40.0, 40.0, 999), np.geomspace(1e-12, 1e12, 500)])
    operands = [values, values[::-1].copy()][: ufunc.nin]
    with np.errstate(all="ignore"):
        expected = ufunc(*operands)
        found = np.full(values.size, 7.0)
        places = [one.ctypes.data for one in (*operands, found)]
        _LOOP(address)(
            (ctypes.c_void_p * len(places))(*places),
            (ctypes.c_ssize_t * 1)(values.size),
            (ctypes.c_ssize_t * len(places))(*[_DOUBLE.itemsize] * len(places)),
            None,
        )
    return bool(found.tobytes() == expected.tobytes())


def _is_behind_head() -> bool:
    arrays = [np.arange(6.0), np.arange(6.0)[2:], np.zeros((2, 3), np.int32).T, np.zeros(0)]
    return all(_in_object(one) == one.__array_interface__["data"][0] for one in arrays)


def _in_object(array: NumericArray) -> int:
    # The first field of PyArrayObject_fields, part of NumPy's public C interface: a tenth of the time.
    return ctypes.c_ssize_t.from_address(id(array) + object.__basicsize__).value


_BEHIND_HEAD = _is_behind_head()


def address_of(array: NumericArray) -> int:
    """Return where the first element is."""
    if _BEHIND_HEAD:
        return _in_object(array)
    address: int = array.__array_interface__["data"][0]
    return address
