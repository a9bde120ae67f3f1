"""What a worker makes again of a user's function: modules with what is read of them, and its imports."""

from __future__ import annotations

import builtins
import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dis import get_instructions
from functools import partial
from hashlib import blake2b
from importlib import import_module
from importlib.util import resolve_name
from operator import attrgetter
from types import CellType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from matnb.blocks.kernels.origins import is_users
from matnb.errors import OptionError

_IMPORT, _BUILTINS = "__import__", "__builtins__"


class _Import:
    """Imports modules that came with a function as they came, and all others as Python does."""

    def __init__(self) -> None:
        self.modules: dict[str, ModuleType] = {}

    def __call__(
        self,
        name: str,
        globals: Mapping[str, Any] | None = None,
        locals: Mapping[str, Any] | None = None,
        fromlist: tuple[str, ...] | None = (),
        level: int = 0,
    ) -> ModuleType:
        wanted = name if fromlist else name.partition(".")[0]
        if level:
            wanted = resolve_name("." * level + name, (globals or {}).get("__package__") or "")
        if wanted in self.modules:
            return self.modules[wanted]
        return builtins.__import__(name, globals, locals, fromlist or (), level)


def function_of(
    code: CodeType,
    namespace: dict[str, Any],
    name: str | None,
    defaults: tuple[object, ...] | None,
    closure: tuple[CellType, ...] | None,
    modules: Mapping[str, ModuleType],
) -> FunctionType:
    """Return a function whose own imports find the given modules; its state is set by :func:`set_state`."""
    own = namespace.get(_BUILTINS)
    if not isinstance(own, dict) or not isinstance(own.get(_IMPORT), _Import):
        own = namespace[_BUILTINS] = {**vars(builtins), _IMPORT: _Import()} if modules else vars(builtins)
    if modules:
        own[_IMPORT].modules.update(modules)
    return FunctionType(code, namespace, name, defaults, closure)


def set_state(function: FunctionType, state: tuple[dict[str, Any], dict[str, Any]]) -> None:
    """Give a function its globals, its closure and attributes."""
    attributes, slots = state
    vars(function).update(attributes)
    own = function.__globals__.get(_BUILTINS)
    function.__globals__.update(slots.pop("__globals__"))
    function.__globals__[_BUILTINS] = own
    slots.pop("_cloudpickle_submodules", None)
    for empty, cell in zip(function.__closure__ or (), slots.pop("__closure__") or (), strict=True):
        try:
            empty.cell_contents = cell.cell_contents
        except ValueError:  # it has nothing in it
            continue
    for name, value in slots.items():
        setattr(function, name, value)


def module_of(name: str) -> ModuleType:
    """Return a module that stands for the one of that name, with nothing in it yet."""
    return ModuleType(name)


def set_contents(module: ModuleType, contents: dict[str, object]) -> None:
    """Fill a module that stands for another."""
    vars(module).update(contents)


def cached(function: Callable[..., object], maxsize: int | None, typed: bool) -> Callable[..., object]:
    """Return a function with a cache of its own."""
    return functools.lru_cache(maxsize, typed)(function)


def chosen_by_type(function: FunctionType) -> list[tuple[type, Callable[..., object]]] | None:
    """Return what ``functools.singledispatch`` chooses from; None for any other function."""
    if function.__globals__ is not vars(functools) or not hasattr(function, "dispatch"):
        return None
    registry: Mapping[type, Callable[..., object]] = function.registry  # type: ignore[attr-defined]  # it has one
    return list(registry.items())


def choosing(name: str, chosen: Sequence[tuple[type, Callable[..., object]]]) -> Callable[..., object]:
    """Return a function that calls another for each type of its first argument."""
    by_type = dict(chosen)
    made: Any = functools.singledispatch(by_type.pop(object))
    for kind, function in by_type.items():
        made.register(kind, function)
    made.__name__ = name
    return made  # type: ignore[no-any-return]  # a function


def left_behind(module: str, path: str, version: bytes) -> object:
    """Return what could not be sent, as a worker has it in a module that it imports.

    Raises
    ------
    OptionError
        Where it is of another version than what was to be sent, or is not there.
    """
    advice = "call mn.stop() and start again, or use arguments and plain values instead"
    try:
        found: object = attrgetter(path)(import_module(module))
    except (ImportError, AttributeError) as error:
        raise OptionError(
            f"{module}.{path} cannot be sent to a worker, and is not there ({error}); {advice}"
        ) from error
    if version != version_of(found):
        raise OptionError(
            f"{module}.{path} cannot be sent to a worker, which has another version of it; {advice}"
        )
    return found


def version_of(found: object) -> bytes:
    """Return what tells versions of a user's function, class or object apart: code and plain values."""
    return blake2b(repr(list(_parts(found, {}))).encode(), digest_size=16).digest()


_PLAIN = (int, float, complex, str, bytes, type(None), type(...), range, slice, np.generic)


def _parts(found: object, seen: dict[int, tuple[int, object]]) -> Iterator[object]:
    if isinstance(found, _PLAIN):
        yield found
        return
    if not isinstance(found, tuple | frozenset):  # of which equal ones may be one or several
        if id(found) in seen:
            yield "again", seen[id(found)][0]
            return
        seen[id(found)] = len(seen), found
    below: Iterable[object] = ()
    if isinstance(found, FunctionType):
        if is_users(found):
            yield _plain(found.__code__)
            below = _beside(found)
    elif isinstance(found, type):
        if found.__module__ != "builtins" and is_users(found):
            yield found.__qualname__
            below = *found.__bases__, *(one for one in sorted(vars(found).items()) if one[0][:2] != "__")
    elif isinstance(found, MethodType):
        below = found.__func__, found.__self__
    elif isinstance(found, partial):
        below = found.func, found.args, found.keywords
    elif isinstance(found, property):
        below = found.fget, found.fset
    elif isinstance(found, tuple | list | set | frozenset | dict):
        yield type(found).__name__, len(found)
        below = found.items() if isinstance(found, dict) else found
        below = sorted(found, key=_rank) if isinstance(found, set | frozenset) else below
    elif not isinstance(found, ModuleType):
        below = type(found), getattr(found, "__wrapped__", None)  # what a class holds, or a cache is of
    for one in below:
        yield from _parts(one, seen)


def _rank(member: object) -> str:
    # Where it is in a set, the same in every process.
    if isinstance(member, frozenset):
        return repr(sorted(map(_rank, member)))
    return getattr(member, "__qualname__", None) or repr(member)


def _beside(function: FunctionType) -> Iterator[object]:
    yield function.__defaults__
    yield function.__kwdefaults__
    for cell in function.__closure__ or ():
        with suppress(ValueError):  # nothing yet
            yield cell.cell_contents
    codes = [function.__code__]
    for code in codes:
        codes += [one for one in code.co_consts if isinstance(one, CodeType)]
    stored = {
        step.argval for code in codes for step in get_instructions(code) if step.opname == "STORE_GLOBAL"
    }
    for name in sorted(
        {name for code in codes for name in code.co_names} - stored
    ):  # stored ones count calls
        yield function.__globals__.get(name)


def what_it_does(code: CodeType) -> tuple[object, ...]:
    """Return what code does, without the place where it is written."""
    return (
        code.co_code,
        code.co_exceptiontable,
        code.co_flags,
        (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount),
        (code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars),
        # The order of a set's strings is another in every process; no constant is a dict.
        tuple(
            {"set": sorted(map(repr, one))} if isinstance(one, frozenset) else one for one in code.co_consts
        ),
    )


def _plain(value: object) -> object:
    if isinstance(value, CodeType):
        return _plain(what_it_does(value))
    return tuple(map(_plain, value)) if isinstance(value, tuple) else value
