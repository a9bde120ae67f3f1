"""Interning: equal expressions are one object, found by its digest before it is made."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Hashable
from dataclasses import MISSING, fields
from functools import cache
from hashlib import blake2b
from operator import itemgetter
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, ClassVar, NamedTuple, TypeVar
from uuid import uuid4
from weakref import ref

import numpy as np

from matnb.errors import ArgumentError, DTypeError
from matnb.expr.digest import digest_of, digest_of_node

if TYPE_CHECKING:
    from matnb.expr.nodes import Expr
    from matnb.io.source import Source

_Node = TypeVar("_Node", bound="Expr")


class InterningType(type):
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
        try:
            digest = _digest(form, values)
        except (TypeError, AttributeError) as error:
            raise _field_error(form, values) or error from None
        kept = InterningType._nodes.get(digest)
        node = None if kept is None else kept()
        if node is None:
            node = object.__new__(cls)
            own = node.__dict__
            own.update(zip(form.names, values))  # noqa: B905  as many, which was looked at
            own["digest"] = digest
            node.__post_init__()
            if cls.is_foreign:
                _check_settled(form, node)
            if form.functions and any(own[name].not_followed for name in form.functions):
                own["is_made_anew"] = True
            kept = _NodeRef(node, _forget)
            kept.digest = digest
            with InterningType._lock:
                found = InterningType._nodes.setdefault(digest, kept)
                if found is not kept:
                    other = found()
                    if other is None:
                        InterningType._nodes[digest] = kept
                    else:
                        node = other
        return node  # type: ignore[return-value]  # of this class


class _NodeRef(ref["Expr"]):
    # A node in the table, which does not keep it alive.
    __slots__ = ("digest",)
    digest: bytes


def _forget(kept: ref[Expr]) -> None:
    assert isinstance(kept, _NodeRef)
    with InterningType._lock:
        if InterningType._nodes.get(kept.digest) is kept:
            del InterningType._nodes[kept.digest]


class NodeFields(NamedTuple):
    """The fields of a class of nodes.

    Attributes
    ----------
    name, label
        The name of the class, and what names it in digests.
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

    name: str
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
            raise ArgumentError(f"{self.name} has the fields {', '.join(self.names)}")
        return tuple(given[name] for name in self.names)


@cache
def node_fields(node_class: type[Expr]) -> NodeFields:
    """Return the fields of a class of nodes."""
    own = fields(node_class)
    names = tuple(field.name for field in own)
    hold = {field.name for field in own if _OF_OPERANDS.fullmatch(_type_text(field.type))}
    places = [place for place, name in enumerate(names) if name not in hold]
    return NodeFields(
        node_class.__name__,
        _label_of(node_class),
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


# Types of fields that hold operands, as a module may write or import them.
_OF_OPERANDS = re.compile(r"([\w.]*\.)?Expr|([\w.]*\.)?[Tt]uple\[([\w.]*\.)?Expr, \.\.\.\]")
_labels: dict[str, int] = {}  # how often a class of other packages was defined in this process


def _type_text(kind: object) -> str:
    # With ``from __future__ import annotations`` it is a text already.
    return f"{kind.__module__}.{kind.__qualname__}" if type(kind) is InterningType else str(kind)


def _label_of(node_class: type[Expr]) -> str:
    # What names a class in digests. Other packages may give theirs the same name, and what they compute
    # changes with their files, or where a module or a cell is run again.
    if not node_class.is_foreign:
        return node_class.__name__
    name = f"{node_class.__module__}.{node_class.__qualname__}"
    _labels[name] = _labels.get(name, 0) + 1
    file = getattr(sys.modules.get(node_class.__module__), "__file__", None)
    if file is None or _labels[name] > 1:
        return f"{name} {uuid4().hex}"
    return f"{name} {blake2b(Path(file).read_bytes(), digest_size=16).hexdigest()}"


def _field_error(form: NodeFields, values: tuple[Hashable, ...]) -> DTypeError | None:
    # Which field has no digest, and what to write instead.
    operands = [(form.names[place], values[place]) for place in form.operands]
    if form.inputs is not None:
        inputs = values[form.inputs]
        if not isinstance(inputs, tuple):
            return _not_a_tuple(form, inputs)
        operands += [(f"inputs[{place}]", one) for place, one in enumerate(inputs)]
    for name, value in operands:
        if not isinstance(type(value), InterningType):
            return DTypeError(
                f"{form.name}: {name} is of type {type(value).__name__}, where an expression belongs: give "
                f"expression_of({name})"
            )
    for name, value in zip(form.parameter_names, form.parameters(values), strict=True):
        try:
            hash(value)
            digest_of(value)
        except TypeError:
            way = f"tuple({name})" if isinstance(value, list | set) else "a tuple of its parts"
            return DTypeError(
                f"{form.name}: {name} is of type {type(value).__name__}, where a number, a text, a dtype or "
                f"a tuple of these belongs: give {way}"
            )
    return None


def _not_a_tuple(form: NodeFields, inputs: object) -> DTypeError:
    given = f"{form.name}: inputs is of type {type(inputs).__name__}"
    return DTypeError(f"{given}, where a tuple of expressions belongs: give tuple(inputs)")


def _check_settled(form: NodeFields, node: Expr) -> None:
    own = node.__dict__
    held = [own[form.names[place]] for place in form.operands]
    if form.inputs is not None:
        if not isinstance(own["inputs"], tuple):
            raise _not_a_tuple(form, own["inputs"])
        held += own["inputs"]
    if "operands" not in own or list(own["operands"]) != held:
        fields = [f"self.{form.names[place]}" for place in form.operands]
        fields += [] if form.inputs is None else ["*self.inputs"]
        call = f"self.settle({', '.join(['shape', 'dtype', 'sparse', *fields])})"
        raise ArgumentError(f"{form.name}: __post_init__ has to call {call}, with each field of type Expr")
    if not isinstance(node.dtype, np.dtype):
        raise DTypeError(f"{form.name}: settle got the dtype {node.dtype!r}; give np.dtype(...)")


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
