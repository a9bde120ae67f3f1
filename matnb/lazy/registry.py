"""Which NumPy functions are recorded, and what other rooms make of methods: one dict and one decorator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from matnb.errors import OptionError, UnsupportedError
from matnb.registration import Registry, name_and_place

if TYPE_CHECKING:
    from matnb.lazy.array import DistArray


class MethodRegistry(Registry[str, Callable[..., object]]):
    """Methods by name; a name that every DistArray has is refused."""

    taken: frozenset[str] = frozenset()

    def __setitem__(self, key: str, value: Callable[..., object]) -> None:
        """Register a method.

        Raises
        ------
        OptionError
            If another definition, or every DistArray, has the name.
        """
        if key in self.taken:
            raise OptionError(f"every DistArray has {key!r}: give {name_and_place(value)} another name")
        super().__setitem__(key, value)


FUNCTIONS: dict[Callable[..., object], Callable[..., Any]] = Registry("the implementation of")
# Methods that families give to DistArrays, dense or sparse, by name; what NumPy's arrays have is no family's.
METHODS = MethodRegistry("the method")
SPARSE_METHODS = MethodRegistry("the method")
# What families make of columns that a reader found and of their arrays, and how they write values.
LOADED: dict[str, Callable[..., object]] = {}
_writers: Registry[type, Callable[..., None]] = Registry("what writes values of")
_writers_by_suffix: Registry[str, Callable[..., None]] = Registry("what writes files with the suffix")
_Function = TypeVar("_Function", bound=Callable[..., object])
_Writer = TypeVar("_Writer", bound=Callable[..., None])


def implements(*functions: Any) -> Callable[[_Function], _Function]:
    """Return a decorator that registers a function as the implementation of NumPy's for DistArrays."""

    def register(function: _Function) -> _Function:
        for one in functions:
            if not callable(one):
                raise OptionError(f"@implements: {one!r} is not callable")
            FUNCTIONS[one] = function
        if function.__doc__ is None:  # made for one of many similar functions, whose name it takes
            function.__name__ = function.__qualname__ = functions[0].__name__
            function.__doc__ = f"``numpy.{function.__name__}`` for DistArrays, computed on the workers."
        return function

    return register


def writes(*kinds: type, suffixes: Sequence[str] = ()) -> Callable[[_Writer], _Writer]:
    """Return a decorator that registers what :func:`matnb.save` calls for values of some types.

    It is called with the value, the path and the options, also for other values where the path ends in one of
    ``suffixes``.
    """

    def register(function: _Writer) -> _Writer:
        for kind in kinds:
            _writers[kind] = function
        for suffix in suffixes:
            _writers_by_suffix[suffix] = function
        return function

    return register


def writer_of(value: object, suffix: str) -> Callable[..., None] | None:
    """Return what a family writes a value with, into a file with such an end; None where none does."""
    own = next((_writers[one] for one in type(value).__mro__ if one in _writers), None)
    return own or _writers_by_suffix.get(suffix)


def recorded(function: Callable[..., object]) -> Callable[..., DistArray]:
    """Return what a NumPy function does on a DistArray; what it gives is one, mostly.

    Raises
    ------
    UnsupportedError
        When it does nothing, naming the nearest way.
    """
    if function in FUNCTIONS:
        return FUNCTIONS[function]
    name = f"{function.__module__.replace('numpy', 'np', 1)}.{function.__name__}"
    raise UnsupportedError(
        f"{name} is not supported for DistArrays; compute them first, as in {name}(x.compute(), ...)"
    )
