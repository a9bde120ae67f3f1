"""The plan-cache key: a request's structure, without data and names."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence
from math import isfinite
from typing import NamedTuple

from matnb.blocks.creation import Full
from matnb.expr.digest import digest_of
from matnb.expr.interning import node_fields
from matnb.expr.nodes import (
    Broadcast,
    Create,
    Data,
    Elementwise,
    Expr,
    Index,
    Literal,
    Load,
    Regrid,
    Transpose,
)
from matnb.ops.indexing import Put
from matnb.program.plan import StoredArray, Workers

# Numbers that passes look at: what they do to one of these they do not do to others.
_SPECIAL = (0.0, 0.5, 1.0, 2.0)
# Functions of whole numbers or booleans that passes may find to be zero whatever they are applied to.
_ZERO_MAKERS = {"subtract", "multiply", "bitwise_xor", "logical_xor"}


class StructuralKey(NamedTuple):
    """The form of a request; ``key`` is its cache key.

    Attributes
    ----------
    key
        Equal for runs that are planned alike: operations, parameters and constants, which operand is which,
        and of what is stored shapes, dtypes, formats, cuts, owners and counts.
    nodes
        The expressions, operands first; what is stored has no operands here. Forms of equal keys have
        expressions that play the same part at the same place.
    numbers
        The places of constants whose value may be another in a run of the same form.
    """

    key: Hashable
    nodes: Sequence[Expr]
    numbers: frozenset[int]


def structural_key(
    order: Sequence[Expr],
    known: Mapping[Expr, StoredArray],
    roots: Collection[Expr],
    keep: Collection[Expr],
    workers: Workers,
    with_numbers: bool = False,
    counts: Hashable = (),
) -> StructuralKey:
    """Return the form of a request.

    Parameters
    ----------
    order
        Every expression, operands before their users.
    known
        Those whose arrays are stored.
    roots, keep
        Those that are wanted, and those that stay if they are computed on the way.
    workers
        What a plan is laid out over.
    with_numbers
        Whether the value of every constant belongs to the form; it does also where passes may make constants
        of others, since what those are decides what comes of their readers.
    counts
        What was counted for this plan.
    """
    with_numbers = with_numbers or any(map(_may_fold, order))
    places = {node: place for place, node in enumerate(order)}
    numbers = set()
    parts: list[Hashable] = []
    for place, node in enumerate(order):
        if node in known:
            parts.append(_stored_part(node, known[node], places))
        elif isinstance(node, Literal):
            if with_numbers or not _may_differ(node):
                parts.append((node.content, node.lengths, node.element))
            else:
                numbers.add(place)
                parts.append((Literal, node.element))
        elif isinstance(node, Data):
            # Where entries are decides cuts; of a dense array no value is looked at, and none is in a plan.
            parts.append(node.digest if node.sparse else (Data, node.shape, node.dtype))
        else:
            own = tuple(node.__dict__[name] for name in node_fields(type(node)).parameter_names)
            told = own if node.plain else _told(node, own)
            parts.append((type(node), node.sparse, told, *[places[one] for one in node.operands]))
    ends = tuple(places[node] for node in roots), tuple(places[node] for node in keep)
    return StructuralKey((tuple(parts), ends, workers, with_numbers, counts), order, frozenset(numbers))


def _stored_part(node: Expr, array: StoredArray, places: Mapping[Expr, int]) -> Hashable:
    about: Hashable = None
    if node.is_cheap or (isinstance(node, Data | Load | Regrid) and node.sparse):
        about = node.digest  # made again where it is read; where entries are decides how a transpose is cut
    elif isinstance(node, Regrid):
        about = places.get(node.operand)
    return (
        type(node), about, node.shape, node.dtype, node.sparse,
        array.layout, array.block_nnz, array.block_bytes,
    )  # fmt: skip


def _may_differ(node: Literal) -> bool:
    if node.lengths or node.element.kind != "f":
        return False
    value = abs(float(node.value))
    return isfinite(value) and value not in _SPECIAL


def _may_fold(node: Expr) -> bool:
    # Where this is false of every expression, passes leave no operation whose operands are all constants.
    match node:
        case Elementwise("where", (condition, x, y)):
            return _is_constant(condition) or (_is_constant(x) and _is_constant(y))
        case Elementwise(name, inputs, dtypes):
            return (
                all(map(_is_constant, inputs))
                or (name in _ZERO_MAKERS and node.dtype.kind in "biu")
                or any(  # 1 + 1e-9 in single precision is one of the numbers that passes look at
                    isinstance(one, Literal) and one.dtype != dtype
                    for one, dtype in zip(inputs, dtypes, strict=True)
                )
            )
        case Index() | Transpose() | Broadcast() | Put(inputs=()):
            return any(map(_is_constant, node.operands))
    return False


def _is_constant(node: Expr) -> bool:
    return isinstance(node, Literal) or (isinstance(node, Create) and isinstance(node.creation, Full))


def _told(node: Expr, own: tuple[Hashable, ...]) -> bytes:
    # 1, 1.0 and True compare equal, and so do 0.0 and -0.0: their digests differ. A file's tells its version.
    return node.digest if isinstance(node, Load) else digest_of(*own)
