"""Machine instructions that Python has no word for, as compiled loops call them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]  # it has no types
from numba import types
from numba.extending import intrinsic

from matnb.blocks.formats import NumericArray


def _trailing_zeros(_typing: object, _word: object) -> tuple[object, Callable[..., object]]:
    def instruction(context, builder, _signature, arguments):  # type: ignore[no-untyped-def]  # Numba's own
        return builder.cttz(arguments[0], context.get_constant(types.boolean, False))

    return types.uint64(types.uint64), instruction


def _prefetch(_typing: object, array: object, _place: object) -> tuple[object, Callable[..., object]]:
    def instruction(context, builder, signature, arguments):  # type: ignore[no-untyped-def]  # Numba's own
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        byte, word = ir.IntType(8).as_pointer(), ir.IntType(32)
        takes = ir.FunctionType(ir.VoidType(), [byte, word, word, word])
        called = builder.module.declare_intrinsic("llvm.prefetch", [byte], takes)
        address = builder.bitcast(builder.gep(data, [arguments[1]]), byte)
        builder.call(called, [address, word(0), word(3), word(1)])  # to read, soon and often, as data
        return context.get_dummy_value()

    return types.void(array, types.uint64), instruction


# The place of the lowest 1 bit of a word that is not 0.
trailing_zeros: Callable[[np.uint64], np.uint64] = intrinsic(_trailing_zeros)
# Begin to load what is at a place of an array in C order, counted over all its axes, into the first cache.
prefetch: Callable[[NumericArray, np.uint64], None] = intrinsic(_prefetch)
