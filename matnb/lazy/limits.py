"""How much of an array may come into this process: what its values take here, in each form, and the limit."""

from __future__ import annotations

import os
from math import prod

import numpy as np

from matnb.blocks.foreign import bytes_elsewhere
from matnb.errors import TooLargeError
from matnb.expr.nodes import Expr
from matnb.lazy.evaluator import evaluator
from matnb.pictures.quantities import bytes_text

RAISE = (
    "or raise the limit: mn.current_session().set_compute_limit(...) at once, compute_limit= of mn.start and "
    "mn.connect for the next session"
)
_POINTER_BYTES = 8
_LIST_BYTES = 72  # of one without elements, and what the collector keeps beside it


def check_limit(limit: int, node: Expr, size: int, form: str = "") -> None:
    """Refuse to make a value of so many bytes in this process if that is above the limit.

    Parameters
    ----------
    form
        What the array would become, where that is not what ``compute()`` gives.

    Raises
    ------
    TooLargeError
        With the numbers, and what to do.
    """
    if size <= limit:
        return
    kind = "sparse array" if node.sparse else "result"
    ways = "reduce or slice it, keep it on the workers with persist(), write it with mn.save"
    if form and node.sparse:
        ways = f"x.to_scipy() keeps it sparse; else {ways}"
    elif form and (own := node.size * node.dtype.itemsize) <= limit:
        ways = f"x.compute() is an array of {bytes_text(own)}; else {ways}"
    raise TooLargeError(
        f"a {kind} of shape {node.shape} {node.dtype} is {bytes_text(size)}{f' as {form}' if form else ''}, "
        f"over the limit of {bytes_text(limit)} for bringing values into this process; "
        f"{ways}, {RAISE}"
    )


def check_incoming(data: object) -> None:
    """Refuse to read data into this process that is not in it yet, if it is above the session's limit.

    What comes in is bounded as what goes out: an array of Dask's, or a dataset in a file, would go through
    this process as a whole. A NumPy array is here already, and is never refused, but where it is a file that
    is mapped into memory and larger than that.

    Raises
    ------
    TooLargeError
        With the numbers, and what to do.
    """
    if isinstance(data, np.memmap) and data.nbytes > (memory := _physical_memory()):
        raise TooLargeError(
            f"a mapped file of shape {data.shape} {data.dtype} is {bytes_text(data.nbytes)}, and there are "
            f"{bytes_text(memory)} of memory here: give a part of it, as in mn.asarray(x[:1000]), or go "
            "through its parts in batches with mn.sources.calls"
        )
    size = bytes_elsewhere(data)
    if not size or size <= (limit := evaluator().limit()):
        return
    name = f"{type(data).__module__.partition('.')[0]} {type(data).__name__}".replace("builtins ", "")
    of = f" of shape {data.shape} {data.dtype}" if hasattr(data, "shape") and hasattr(data, "dtype") else ""
    raise TooLargeError(
        f"a {name}{of} is {bytes_text(size)}, over the limit of {bytes_text(limit)} for bringing values into "
        "this process, where all of it would be read before it goes to the workers; give a part or a "
        "reduction of it, or its parts in batches with mn.sources.calls, or read the file it comes from with "
        f"mn.load, {RAISE}; np.asarray(x), which takes so much memory here, is not refused"
    )


def _physical_memory() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def converted_bytes(node: Expr, dtype: np.dtype | None) -> int:
    """Return the bytes of all elements in a dtype, or in their own if those are more."""
    element = node.dtype if dtype is None else dtype
    if element.kind == "O":
        return node.size * (_POINTER_BYTES + _number_bytes(node.dtype))
    # How long text is follows from the dtype that is written out.
    width = element.itemsize or np.empty(0, node.dtype).astype(element).itemsize
    return node.size * max(node.dtype.itemsize, width)


def list_bytes(node: Expr) -> int:
    """Return the bytes of the elements as nested lists of Python's numbers."""
    num_lists = sum(prod(node.shape[:place]) for place in range(node.ndim))
    elements = node.size * (_POINTER_BYTES + _number_bytes(node.dtype))
    return elements + num_lists * (_LIST_BYTES + _POINTER_BYTES)


def _number_bytes(dtype: np.dtype) -> int:
    # Of one of Python's numbers made of NumPy's, in the steps in which the interpreter allocates memory.
    if dtype.kind == "b":
        return 0  # there are only two
    if dtype.char in "gG":
        return dtype.itemsize + 48  # none of Python's numbers: they stay NumPy's
    return 48 if dtype.kind in "iu" and dtype.itemsize == 8 else 32
