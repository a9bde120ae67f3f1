"""Results of several values: an error names the fields where one is used as an array."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NoReturn, TypeVar

import numpy as np

from matnb.errors import DTypeError, no_attribute

_Result = TypeVar("_Result")
_COMPARED = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_BINARY = {
    "add": "+", "sub": "-", "mul": "*", "truediv": "/", "floordiv": "//", "mod": "%", "pow": "**",
    "matmul": "@", "and": "&", "or": "|", "xor": "^", "lshift": "<<", "rshift": ">>",
}  # fmt: skip
_UNARY = {
    "neg": "-{}",
    "pos": "+{}",
    "invert": "~{}",
    "abs": "abs({})",
    "float": "float({})",
    "int": "int({})",
}


def has_fields(kind: type[_Result], main: str = "", ways: Mapping[str, str] | None = None) -> type[_Result]:
    """Have the results of a class say that a field is meant, where one is used as an array.

    Unpacking, integers and slices as indices, ``len`` and what tuples make of tuples stay. A class that is no
    named tuple lists its fields in ``_fields``.

    Parameters
    ----------
    main
        The field that is meant most often, if it is not the first.
    ways
        What to write instead of names that others have.

    Examples
    --------
    >>> from typing import NamedTuple
    >>> @has_fields
    ... class Ranks(NamedTuple):
    ...     values: float
    ...     iterations: int
    >>> try:
    ...     Ranks(3.0, 2) == 3
    ... except DTypeError as error:
    ...     print(str(error).partition(":")[0])
    Ranks has the fields values and iterations, and is no array
    """
    fields: tuple[str, ...] = kind._fields  # type: ignore[attr-defined]  # see above
    first = f"result.{main or fields[0]}"

    def refuse(use: str) -> NoReturn:
        named = ", ".join(fields[:-1]) + f" and {fields[-1]}" if len(fields) > 1 else f"only {fields[-1]}"
        noun = "fields" if len(fields) > 1 else "field"
        advice = f"write the one that is meant, as in {use}"
        raise DTypeError(f"{kind.__name__} has the {noun} {named}, and is no array: {advice}")

    def unless_tuple(name: str, sign: str) -> Callable[[Any, object], object]:
        of_tuples = getattr(tuple, name)

        def used(self: Any, other: object) -> object:
            if isinstance(other, tuple | kind):
                return of_tuples(tuple(self), tuple(other))  # type: ignore[arg-type]  # both are sequences
            if other is None and sign in ("==", "!="):
                return sign == "!="
            return refuse(f"{first} {sign} ...")

        return used

    def refused(use: str) -> Callable[..., NoReturn]:
        return lambda self, *others, **options: refuse(use)

    own_item = kind.__getitem__  # type: ignore[index]  # a sequence

    def item(self: Any, key: object) -> object:
        if isinstance(key, slice | int | np.integer) and not isinstance(key, bool | np.bool_):
            return own_item(self, key)
        if isinstance(key, str):
            return refuse(f"result.{key}" if key in fields else first)
        return refuse(f"{first}[...]")

    def missing(self: object, name: str) -> NoReturn:
        if name.startswith("_"):  # libraries ask for protocols that there are not
            raise AttributeError(f"{kind.__name__} has no attribute {name!r}")
        raise no_attribute(
            kind.__name__,
            name,
            lambda: fields,
            lambda: (ways or {}).get(name) or f"its fields are {', '.join(fields)}",
        )

    methods: dict[str, Callable[..., object]] = {
        **{f"__{name}__": unless_tuple(f"__{name}__", sign) for name, sign in _COMPARED.items()},
        **{f"__{name}__": refused(f"{first} {sign} ...") for name, sign in _BINARY.items()},
        **{f"__r{name}__": refused(f"... {sign} {first}") for name, sign in _BINARY.items()},
        **{f"__{name}__": refused(text.format(first)) for name, text in _UNARY.items()},
        "__add__": unless_tuple("__add__", "+"),
        "__getitem__": item,
        "__getattr__": missing,
        "__array__": refused(first),
        "__array_ufunc__": lambda self, ufunc, *others, **options: refuse(f"np.{ufunc.__name__}({first})"),
        "__array_function__": refused(first),  # a user may have called what calls that function
        "__matnb_array__": refused(first),
    }
    for name, method in methods.items():
        method.__name__ = name  # which errors of it name
        setattr(kind, name, method)
    return kind


def refuse_result(key: object) -> None:
    """Raise for a result of several values that is given for an array: it would be taken for a tuple of them.

    Of a tuple, such as an index for each axis, each item is looked at.

    Raises
    ------
    DTypeError
        Naming its fields.
    """
    if type(key) is tuple:
        for one in key:
            refuse_result(one)
    elif hasattr(type(key), "__matnb_array__") and hasattr(type(key), "_fields"):
        key.__matnb_array__()  # type: ignore[attr-defined]  # which refuses
