"""Registries of what packages add: no name gets a second meaning; what is reloaded may register again."""

from __future__ import annotations

import sys
from collections.abc import Callable
from inspect import unwrap
from pathlib import Path
from typing import Any, TypeVar

from matnb.errors import OptionError

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


def is_foreign(definition: object) -> bool:
    """Tell whether a class or function is of another package than matnb."""
    return str(getattr(definition, "__module__", "")).split(".", 1)[0] != "matnb"


def written_at(function: object) -> tuple[str, int] | None:
    """Return the file and line of a Python function, be it compiled or wrapped; None of anything else."""
    inner = getattr(function, "py_func", function)  # as Numba calls what it compiles
    code = getattr(unwrap(inner) if callable(inner) else inner, "__code__", None)
    return None if code is None else (code.co_filename, code.co_firstlineno)


def name_and_place(definition: object) -> str:
    """Return the name of a function or class, and its file and line, for messages."""
    name = getattr(definition, "__qualname__", None) or type(definition).__qualname__
    place = written_at(definition)
    if place is None:
        return f"{name} of {getattr(definition, '__module__', None)}"
    return f"{name} ({Path(place[0]).name}, line {place[1]})"


class Registry(dict[_Key, _Value]):
    """Definitions by name; a name that is already taken is refused.

    The same definition may be registered again: the same object, or, as when a module is reloaded or a cell
    of a notebook runs again, what the same place defines now.

    Parameters
    ----------
    what
        What is registered, in errors.
    definition
        Returns the function or class of a value, which tells the module.
    """

    def __init__(self, what: str, definition: Callable[[_Value], Any] = lambda value: value) -> None:
        super().__init__()
        self._what, self._definition = what, definition
        self._loads: dict[_Key, object] = {}

    def __setitem__(self, key: _Key, value: _Value) -> None:
        """Register a value.

        Raises
        ------
        OptionError
            Where another definition has the name.
        """
        load = _load_of(self._definition(value))
        if key in self and self[key] != value:
            old, new = self._definition(self[key]), self._definition(value)
            if not _is_defined_again(old, new, load is not self._loads.get(key)):
                name, first = getattr(key, "__name__", None) or repr(key), name_and_place(old)
                raise OptionError(
                    f"{self._what} {name} is there already: {first}; give {name_and_place(new)} another name"
                )
        super().__setitem__(key, value)
        self._loads[key] = load

    def update(self, *given: Any, **named: Any) -> None:
        """Register several values."""
        for key, value in dict(*given, **named).items():
            self[key] = value


def _load_of(definition: object) -> object:
    # What is another object each time a module is loaded: its spec, or in a program run again its names.
    names = getattr(definition, "__globals__", None)
    if names is None:
        names = vars(sys.modules.get(getattr(definition, "__module__", ""), sys))
    return names.get("__spec__") or names


def _is_defined_again(old: object, new: object, is_other_load: bool) -> bool:
    if getattr(old, "__module__", None) != getattr(new, "__module__", None):
        return False
    places = written_at(old), written_at(new)
    if is_other_load or places[0] == places[1] is not None:
        return True
    if places[0] is None or places[1] is None:
        return getattr(old, "__qualname__", 0) == getattr(new, "__qualname__", 1)
    return places[0][0] != places[1][0]  # two cells of a notebook, or one that was changed
