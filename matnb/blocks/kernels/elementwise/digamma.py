"""The digamma function of many positive numbers, in loops of which the compiler makes vector instructions.

SciPy's takes a number at a time, by as many steps of the recurrence as it needs: 30 to 60 ns.
"""

from __future__ import annotations

from collections.abc import Callable
from math import sqrt

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]  # it has no types
from numba import types
from numba.extending import intrinsic

from matnb.blocks.formats import NumericArray
from matnb.blocks.kernels.compiled import compiled, given, inlined

_SMALLEST, _LARGEST = 1e-150, 1e30  # between them nothing below overflows or loses digits
_WORD, _DOUBLE = ir.IntType(64), ir.DoubleType()


def _as_word(_typing: object, _number: object) -> tuple[object, Callable[..., object]]:
    def instruction(_context, builder, _signature, arguments):  # type: ignore[no-untyped-def]  # Numba's own
        return builder.bitcast(arguments[0], _WORD)

    return types.uint64(types.float64), instruction


def _as_number(_typing: object, _word: object) -> tuple[object, Callable[..., object]]:
    def instruction(_context, builder, _signature, arguments):  # type: ignore[no-untyped-def]  # Numba's own
        return builder.bitcast(arguments[0], _DOUBLE)

    return types.float64(types.uint64), instruction


# The bits of a double as a word, and back.
as_word: Callable[[float], np.uint64] = intrinsic(_as_word)
as_number: Callable[[np.uint64], float] = intrinsic(_as_number)

_SHIFT, _FRACTION = np.uint64(52), np.uint64((1 << 52) - 1)
_ONE = np.uint64(1023 << 52)  # the bits of 1.0
_COUNTER, _COUNTED = np.uint64(0x433 << 52), 2.0**52 + 1023.0  # of 2**52, to which a whole number is added
_ROOT = sqrt(2.0)


@inlined
def _logarithm(y: float) -> float:
    # FreeBSD's e_log.c of a positive normal number, without its branches: an error below 1 ulp.
    bits = as_word(y)
    exponent = as_number((bits >> _SHIFT) | _COUNTER) - _COUNTED
    fraction = as_number((bits & _FRACTION) | _ONE)
    is_above = fraction > _ROOT
    f = (0.5 * fraction if is_above else fraction) - 1.0
    k = exponent + 1.0 if is_above else exponent
    s: float = np.divide(f, 2.0 + f)
    z = s * s
    w = z * z
    even = w * (3.999999999940941908e-01 + w * (2.222219843214978396e-01 + w * 1.531383769920937332e-01))
    odd = z * (
        6.666666666666735130e-01
        + w * (2.857142874366239149e-01 + w * (1.818357216161805012e-01 + w * 1.479819860511658591e-01))
    )
    half = 0.5 * f * f
    return k * 6.93147180369123816490e-01 - (
        (half - (s * (half + (even + odd)) + k * 1.90821492927058770002e-10)) - f
    )


@inlined
def _near_root(x: float) -> float:
    # Between 1 and 2, where the terms of others cancel: Boost's digamma_imp_1_2.
    u = x - 1.0
    over = -0.045251321448739056 + u * -0.0020713321167745952
    over = -0.65031853770896507 + u * (-0.28919126444774784 + u * over)
    over = 0.25479851061131551 + u * (-0.32555031186804491 + u * over)
    under = 0.0021284987017821144 + u * -0.55789841321675513e-6
    under = 0.43593529692665969 + u * (0.054151797245674225 + u * under)
    under = 1.0 + u * (2.0767117023730469 + u * (1.4606242909763515 + u * under))
    away = x - 1569415565.0 * 2.0**-30
    away -= 381566830.0 * 2.0**-60
    away -= 0.9016312093258695918615325266959189453125e-19
    quotient: float = np.divide(over, under)
    return away * 0.99558162689208984 + away * quotient


@compiled
def _digamma(x: NumericArray, out: NumericArray) -> int:
    # psi(x) = psi(x + 8) - sum of 1 / (x + i), i below 8, whose terms of one i(7 - i) have t = x(x + 7) in
    # common; then Abramowitz and Stegun 6.3.18: the next term is below 2e-16. Neither a choice nor NumPy's
    # division is a branch. Returns how many numbers this is not for.
    for i in range(np.uint64(x.size)):
        one: float = x[i]
        t, y = one * (one + 7.0), one + 8.0
        b, c, d = t + 6.0, t + 10.0, t + 12.0
        over = (t + b) * (c * d) + (c + d) * (t * b)
        before = np.divide((2.0 * one + 7.0) * over, (t * b) * (c * d))
        r = np.divide(1.0, y)
        z = r * r
        tail = 1 / 252 - z * (1 / 240 - z * (1 / 132 - z * (691 / 32760 - z * (1 / 12 - z * (3617 / 8160)))))
        rest = 0.5 * r + z * (1 / 12 - z * (1 / 120 - z * tail))
        far, near = (_logarithm(y) - rest) - before, _near_root(one)
        out[i] = near if (one >= 1.0) & (one <= 2.0) else far
    left = 0
    for i in range(np.uint64(x.size)):
        left += not ((x[i] > _SMALLEST) & (x[i] < _LARGEST))
    return left


def digamma(values: NumericArray) -> NumericArray:
    """Return ``scipy.special.psi``, of positive doubles by other steps: both are within 1e-14 of it.

    What an element gives depends on it alone. Further memory: of float32 twice the elements as doubles;
    elements that are not positive, and other dtypes, are SciPy's.
    """
    from scipy.special import psi  # a sixth of a second of every import else

    if values.dtype not in (np.float64, np.float32):
        return np.asarray(psi(values))  # type: ignore[type-var]  # complex numbers too
    flat = given(np.asarray(values, np.float64).reshape(-1))
    out = np.empty(flat.size)
    if _digamma(flat, out):
        left = ~((flat > _SMALLEST) & (flat < _LARGEST))
        out[left] = psi(flat[left])
    return out.astype(values.dtype, copy=False).reshape(values.shape)
