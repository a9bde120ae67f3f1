"""Interning: equal expressions are one object, found by its digest before it is made."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import MISSING, fields
from functools import cache
from operator import itemgetter
from threading import RLock
from typing import TYPE_CHECKING, ClassVar, NamedTuple, TypeVar
from weakref import ref

from matnb.expr.digest import digest_of_node

if TYPE_CHECKING:
    from matnb.expr.nodes import Expr
    from matnb.io.source import Source

_Node = TypeVar("_Node", bound="Expr")


class Interned(type):
    """Makes equal expressions the same object, so that they are compared with ``is``.

    A node is looked up by its digest before it is made, and its fields are written here: recording an
    operation is little else, and a frozen dataclass sets each field by a call.
    """

    _nodes: ClassVar[dict[bytes, _NodeRef]] = {}  # by digest
    # Without the lock, threads made twins of one expression. A node may die in the thread that holds it.
    _lock: ClassVar[RLock] = RLock()

    def __call__(cls: type[_Node], *values: Hashable, **named: Hashable) -> _Node:  # type: ignore[misc]  # typed for the classes it makes
        """Return the node of this class with these fields, which may be there already."""
        form = node_fields(cls)
        if named or len(values) != len(form.names):
            values = form.complete(values, named)
        digest = _digest(form, values)
        kept = Interned._nodes.get(digest)
        node = None if kept is None else kept()
        if node is None:
            node = object.__new__(cls)
            own = node.__dict__
            own.update(zip(form.names, values))  # noqa: B905  as many, which was looked at
            own["digest"] = digest
            node.__post_init__()
            if form.functions and any(own[name].not_followed for name in form.functions):
                own["is_made_anew"] = True
            kept = _NodeRef(node, _forget)
            kept.digest = digest
            with Interned._lock:
                found = Interned._nodes.setdefault(digest, kept)
                if found is not kept:
                    other = found()
                    if other is None:
                        Interned._nodes[digest] = kept
                    else:
                        node = other
        return node  # type: ignore[return-value]  # of this class


class _NodeRef(ref["Expr"]):
    # A node in the table, which does not keep it alive.
    __slots__ = ("digest",)
    digest: bytes


def _forget(kept: ref[Expr]) -> None:
    assert isinstance(kept, _NodeRef)
    with Interned._lock:
        if Interned._nodes.get(kept.digest) is kept:
            del Interned._nodes[kept.digest]


class NodeFields(NamedTuple):
    """The fields of a class of nodes.

    Attributes
    ----------
    label
        The name of the class.
    names, defaults
        Of the fields, and what some are by default.
    parameter_names, parameters
        Of the fields that hold no operands, and what picks their values.
    source, operands, inputs
        Where among the fields a source is, those of one operand each, and that of several.
    functions
        Of the fields that hold a user's function, the names.
    are_plain
        Whether parameters that compare equal are the same.
    """

    label: str
    names: tuple[str, ...]
    defaults: dict[str, Hashable]
    parameter_names: tuple[str, ...]
    parameters: Callable[[tuple[Hashable, ...]], tuple[Hashable, ...]]
    source: int | None
    operands: tuple[int, ...]
    inputs: int | None
    functions: tuple[str, ...]
    are_plain: bool

    def complete(self, values: tuple[Hashable, ...], named: dict[str, Hashable]) -> tuple[Hashable, ...]:
        """Return the values of all fields, given the first of them and others by their names."""
        given = {**self.defaults, **dict(zip(self.names, values, strict=False)), **named}
        if given.keys() != set(self.names) or len(values) > len(self.names):
            raise TypeError(f"{self.label} has the fields {', '.join(self.names)}")
        return tuple(given[name] for name in self.names)


@cache
def node_fields(node_class: type[Expr]) -> NodeFields:
    """Return the fields of a class of nodes."""
    own = fields(node_class)
    names = tuple(field.name for field in own)
    hold = {field.name for field in own if field.type in ("Expr", "tuple[Expr, ...]")}
    places = [place for place, name in enumerate(names) if name not in hold]
    return NodeFields(
        node_class.__name__,
        names,
        {field.name: field.default for field in own if field.default is not MISSING},
        tuple(names[place] for place in places),
        itemgetter(*places) if len(places) > 1 else lambda values: tuple(values[place] for place in places),
        names.index("source") if "source" in names else None,
        tuple(place for place, name in enumerate(names) if name in hold and name != "inputs"),
        names.index("inputs") if "inputs" in hold else None,
        tuple(field.name for field in own if field.type == "Function"),
        node_class.plain,
    )


def _digest(form: NodeFields, values: tuple[Hashable, ...]) -> bytes:
    if form.source is not None:
        # a file's size and time tell its versions apart
        source: Source = values[form.source]  # type: ignore[assignment]  # as the class declares it
        values = (*values[: form.source], source.identity(), *values[form.source + 1 :])
    below = b""
    for place in form.operands:
        below += values[place].digest  # type: ignore[attr-defined]  # an operand
    if form.inputs is not None:
        for operand in values[form.inputs]:  # type: ignore[attr-defined]  # several
            below += operand.digest
    return digest_of_node(form.label, form.parameters(values), below, form.are_plain)
