"""Trees of arrays, such as the state of a loop: flattened into leaves, and put together again."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from matnb.errors import DTypeError, OptionError
from matnb.registration import Registry, name_and_place

Key = str | int | float | bool | bytes | None


@dataclass(frozen=True)
class Container:
    """How values of a type are flattened; see :func:`register_container`."""

    flatten: Callable[[Any], tuple[Sequence[object], Any]]
    unflatten: Callable[[Any, Sequence[Any]], object]
    paths: Callable[[Any], Sequence[str]] | None
    fixes_shapes: bool
    parts: str
    advice: str


_containers: Registry[type, Container] = Registry("the container", lambda one: one.flatten)


def register_container(
    kind: type,
    flatten: Callable[[Any], tuple[Sequence[object], Any]],
    unflatten: Callable[[Any, Sequence[Any]], object],
    *,
    paths: Callable[[Any], Sequence[str]] | None = None,
    fixes_shapes: bool = False,
    parts: str = "structures",
    advice: str = "",
) -> None:
    """Let values of a type be states of loops, results of branches and of cells, as JAX's pytrees are.

    Parameters
    ----------
    kind
        The type; its subclasses are flattened in the same way.
    flatten
        Returns the children of a value, arrays or other containers, and its structure: what else there is.
        Two values may take each other's place where their structures are equal; ``str`` says it to a user.
    unflatten
        Makes a value of a structure and as many children.
    paths
        Returns, for a structure, how each child is written after the value, such as ``.values``; by default
        ``[0]``, ``[1]`` and so on.
    fixes_shapes
        Whether a structure fits children of one shape only, so that rows of them are no such container.
    parts
        What users call structures.
    advice
        What to write, in an error, where those of two values differ.

    Raises
    ------
    OptionError
        Where the type is registered with other functions, elsewhere, or ``kind`` is not a type.
    """
    if not isinstance(kind, type):
        raise OptionError(f"register_container: {kind!r} is no type")
    _containers[kind] = Container(flatten, unflatten, paths, fixes_shapes, parts, advice)


def _container_of(kind: type) -> Container | None:
    return next((_containers[one] for one in kind.__mro__ if one in _containers), None)


@dataclass(frozen=True)
class TreeDef:
    """The structure of a tree: its root's type (None for a leaf) and structure, and what is below."""

    kind: type | None
    structure: Any
    below: tuple[TreeDef, ...]

    @property
    def fixed(self) -> TreeDef | None:
        """The first container in it whose structure fixes the shapes of its children; None without one."""
        if self.kind is not None and self._container.fixes_shapes:
            return self
        return next((found for one in self.below if (found := one.fixed) is not None), None)

    def difference(self, other: TreeDef) -> Container | None:
        """Return the first container whose structure is not that of another tree which reads alike."""
        if self.kind is None or self == other:
            return None
        if self.structure != other.structure:
            return self._container
        pairs = zip(self.below, other.below, strict=True)
        return next((found for one, two in pairs if (found := one.difference(two)) is not None), None)

    @property
    def _container(self) -> Container:
        assert self.kind is not None
        found = _container_of(self.kind)
        assert found is not None
        return found

    def paths(self, start: str) -> Iterator[str]:
        """Yield for each leaf how a user would write it, ``start`` being the whole value."""
        if self.kind is None:
            yield start
            return
        written = self._container.paths
        paths = [f"[{at}]" for at in range(len(self.below))] if written is None else written(self.structure)
        for path, inner in zip(paths, self.below, strict=True):
            yield from inner.paths(f"{start}{path}")

    def __str__(self) -> str:
        if self.kind is None:
            return "array"
        if not issubclass(self.kind, tuple | list | dict):
            return f"{self.kind.__name__} {self.structure}"
        inner = [str(one) for one in self.below]
        if issubclass(self.kind, dict):
            inner = [f"{key!r}: {one}" for key, one in zip(self.structure, inner, strict=True)]
        shown = inner if len(inner) < 8 else [*inner[:6], f"... {len(inner) - 6} more"]
        return f"{self.kind.__name__}({', '.join(shown)})"


LEAF = TreeDef(None, (), ())


def flatten(value: object, like: TreeDef = LEAF) -> tuple[list[Any], TreeDef]:
    """Return the leaves of a tree in order, and its structure.

    Tuples, named tuples, lists, dicts and what is registered are containers; anything else is a leaf. Dicts
    with the keys of those of ``like`` are gone through in the order of these.

    Raises
    ------
    DTypeError
        For a dict with keys that are not constants.
    """
    container = _container_of(type(value))
    if container is None:
        return [value], LEAF
    kind = type(value)
    if isinstance(value, dict) and like.kind is not None and set(like.structure) == set(value):
        value = {key: value[key] for key in like.structure}
    children, structure = _flattened(container, value)
    leaves: list[Any] = []
    below = []
    others = like.below if len(like.below) == len(children) else (LEAF,) * len(children)
    for one, other in zip(children, others, strict=True):
        found, tree = flatten(one, other)
        leaves += found
        below.append(tree)
    return leaves, TreeDef(kind, structure, tuple(below))


def _flattened(container: Container, value: object) -> tuple[Sequence[object], Any]:
    match container.flatten(value):
        case (Sequence() as children, structure) if not isinstance(children, str):
            return children, structure
        case found:
            raise OptionError(
                f"{name_and_place(container.flatten)} returned {type(found).__name__} of a "
                f"{type(value).__name__}: let it return (children, structure), children as a tuple"
            )


def unflatten(tree: TreeDef, leaves: Sequence[object]) -> Any:
    """Return a value of this structure with these leaves, as many as it has."""
    remaining = iter(leaves)
    value = _unflatten(tree, remaining)
    assert next(remaining, None) is None
    return value


def _unflatten(tree: TreeDef, leaves: Iterator[object]) -> object:
    if tree.kind is None:
        return next(leaves)
    children = [_unflatten(one, leaves) for one in tree.below]
    container = tree._container
    if container is _containers[tuple] and hasattr(tree.kind, "_fields"):
        return tree.kind(*children)
    return container.unflatten(tree.structure, children)


def _flatten_dict(value: dict[Any, Any]) -> tuple[Sequence[object], tuple[Key, ...]]:
    for key in value:
        if not isinstance(key, Key):
            raise DTypeError(f"a dict with the key {key!r}: use strings or numbers")
    return list(value.values()), tuple(value)


def _flatten_sequence(value: Sequence[object]) -> tuple[Sequence[object], tuple[int, ...]]:
    return value, tuple(range(len(value)))


register_container(
    dict,
    _flatten_dict,
    lambda keys, children: dict(zip(keys, children, strict=True)),
    paths=lambda keys: [f"[{key!r}]" for key in keys],
)
register_container(tuple, _flatten_sequence, lambda _, children: tuple(children))
register_container(list, _flatten_sequence, lambda _, children: list(children))
