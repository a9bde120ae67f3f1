"""Methods of a column under ``str`` and ``dt``: what they return has the column's name, as in pandas."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from types import FunctionType, MethodType
from typing import Any, TypeVar

from matnb.tables.column_arrays import column_array

_Kind = TypeVar("_Kind", bound=type)


def keeps_names(kind: _Kind) -> _Kind:
    """Have the columns that the methods of an accessor return named as the accessor's own column is."""
    for name, value in list(vars(kind).items()):
        if name.startswith("_") and name not in ("__getitem__", "__getattr__"):
            continue
        if isinstance(value, FunctionType):
            setattr(kind, name, _naming(value))
        elif isinstance(value, property) and value.fget is not None:
            setattr(kind, name, property(_naming(value.fget), doc=value.__doc__))
    return kind


def _naming(method: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(method)
    def named(self: Any, *args: Any, **kwargs: Any) -> Any:
        return _named(method(self, *args, **kwargs), self._column.name)

    return named


def _named(made: Any, name: str) -> Any:
    if isinstance(made, MethodType):  # of the column itself

        @wraps(made)
        def called(*args: Any, **kwargs: Any) -> Any:
            return _named(made(*args, **kwargs), name)

        return called
    return column_array(made, name)
