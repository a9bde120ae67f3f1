"""A user's function as it travels to workers: by value, and named by all that it reads.

What workers would import is another version of a module that was edited, so that a user's own modules travel
with the function: what it reads of them. Installed packages and the standard library count by their versions.
"""

from __future__ import annotations

import builtins
import importlib
import inspect
import os
import pickle
import random
import sys
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from functools import _lru_cache_wrapper, cached_property, lru_cache
from hashlib import blake2b
from importlib import import_module, metadata
from importlib.util import find_spec, resolve_name
from io import BytesIO
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any, NamedTuple, TypeVar

import cloudpickle
import numpy as np

from matnb.blocks.kernels.calls import Function, code_of_file
from matnb.blocks.kernels.origins import Origin, is_users, origin_of, origin_of_file
from matnb.blocks.kernels.rebuilding import (
    cached,
    choosing,
    chosen_by_type,
    function_of,
    left_behind,
    module_of,
    set_contents,
    set_state,
    version_of,
    what_it_does,
)
from matnb.errors import MatnbError, OptionError
from matnb.lazy.code_reads import Chain, Read, reads_of
from matnb.lazy.handles import Handle

_CANNOT_SEND = (pickle.PicklingError, TypeError, AttributeError, ValueError, RecursionError)


def portable(fn: Callable[..., object], name: str, caller: str, keyword: str = "place") -> Function:
    """Return a function as it travels to workers.

    Parameters
    ----------
    name, caller
        Of the function, and of what it was given to, for messages.
    keyword
        By which it may ask where its block is.

    Raises
    ------
    OptionError
        When it cannot be sent, as it uses what cannot.
    """
    try:
        named = named_by(fn)
        return Function(name, _sent(fn, named), named.code, _takes(fn, keyword), named.reason)
    except MatnbError as error:
        raise OptionError(
            f"{caller}: {name} cannot be sent to a worker: {error}; give every DistArray as an argument"
        ) from error
    except _CANNOT_SEND as error:
        raise OptionError(
            f"{caller}: {name} cannot be sent to a worker: {error}; let it use arguments and plain values"
        ) from error


def _takes(fn: Callable[..., object], keyword: str) -> bool:
    try:
        found = inspect.signature(fn).parameters.get(keyword)
    except (TypeError, ValueError):  # ufuncs and much that is written in C have none
        return False
    return found is not None and found.kind is inspect.Parameter.KEYWORD_ONLY


@lru_cache(maxsize=1024)
def _version(package: str) -> str:
    if package in sys.stdlib_module_names:
        return sys.version
    version = getattr(sys.modules.get(package), "__version__", None)
    if isinstance(version, str):
        return version
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        file = getattr(sys.modules.get(package), "__file__", None)
        about = os.stat(file) if file and os.path.exists(file) else None
        return "" if about is None else f"{about.st_size} {about.st_mtime_ns}"


# Its name: everything that it reads, written down.


class FunctionReads(NamedTuple):
    """What names a function.

    Attributes
    ----------
    code
        The same for the same function in another cell, process or place in its file, whose reads are the
        same; random where something cannot be followed.
    reason
        What cannot be followed, and so the reason why results are not remembered; empty where all can.
    read
        What it reads of each of a user's modules.
    globals_read
        The values of globals that it reads, by module and name.
    left
        What is not sent, by its number: where a worker finds it.
    places
        Where all code was written, which errors name and ``code`` leaves out.
    """

    code: bytes
    reason: str
    read: Mapping[ModuleType, set[str]]
    globals_read: Mapping[tuple[str, str], object]
    left: Mapping[int, tuple[str, str]]
    places: tuple[Hashable, ...]


def named_by(fn: Callable[..., object]) -> FunctionReads:
    """Return what names a function: its code, and all that it reads.

    Reads are followed through a user's modules: helpers, globals, attributes of classes, functions inside of
    others, and what decorators, partials, bound methods and closures hold.

    Raises
    ------
    MatnbError
        Where it reads a DistArray.
    """
    own = [getattr(fn, name, None) for name in ("__code__", "__defaults__", "__kwdefaults__")]
    buffer = BytesIO()
    namer = _Namer(buffer)
    try:
        namer.dump((fn, *own))
    except _CANNOT_SEND as error:
        namer.lost.append(str(error))
    versions = ";".join(f"{one} {_version(one)}" for one in sorted(namer.packages))
    # Its digest: what it reads may be large arrays, and this goes wherever the function goes.
    code = blake2b(buffer.getbuffer(), digest_size=32)
    code.update(versions.encode())
    reason = ", ".join(dict.fromkeys(namer.lost))
    return FunctionReads(
        code.digest() + os.urandom(16) if reason else code.digest(),
        reason,
        namer.read,
        namer.globals_read,
        namer.left,
        tuple(namer.places),
    )


# What a function reads by these has no name in its code, and is not the same later.
_READS_ELSEWHERE = (
    builtins.open, builtins.eval, builtins.exec, builtins.compile, builtins.globals, builtins.input,
    builtins.__import__, importlib.import_module, importlib.reload, sys.modules, os.open, time.time,
    time.time_ns, time.monotonic, time.perf_counter, time.process_time,
    np.load, np.loadtxt, np.genfromtxt, np.fromfile, np.memmap,
)  # fmt: skip
_STATES = (random._inst, np.random.mtrand._rand)  # of functions that draw


def _reads_elsewhere(found: object) -> bool:
    if any(found is one for one in _READS_ELSEWHERE):
        return True
    if any(getattr(found, "__self__", None) is one for one in _STATES):
        return True
    # What only the settings of a process may name here.
    name = (
        getattr(found, "__qualname__", None) if isinstance(found, FunctionType) else type(found).__qualname__
    )
    return name in ("getenv", "_Environ") and getattr(found, "__module__", None) == "os"


_NOISE = ("__builtins__", "__loader__", "__spec__", "__cached__", "__doc__", "__warningregistry__")
_MISSING = object()


class _Token:
    """Stands for the kind of thing that is written. Nobody reads what is written."""


def _untracked(reduced: tuple[Any, ...]) -> tuple[Any, ...]:
    # A class by value, without the number by which cloudpickle finds it again: then one that came before
    # would get the attributes that it has now.
    maker, (*given, _, extra), *rest = reduced
    return (maker, (*given, None, extra), *rest)


def _class_by_value(found: type) -> tuple[Any, ...]:
    return _untracked(cloudpickle.cloudpickle._dynamic_class_reduce(found))


class _Namer(cloudpickle.Pickler):  # type: ignore[misc]  # it has no types
    """Writes code as what it does, and with a function what it reads."""

    def __init__(self, buffer: BytesIO) -> None:
        super().__init__(buffer)
        self.lost: list[str] = []
        self.packages: set[str] = set()
        self.read: dict[ModuleType, set[str]] = {}
        self.globals_read: dict[tuple[str, str], object] = {}
        self.left: dict[int, tuple[str, str]] = {}
        self.places: list[Hashable] = []

    def reducer_override(self, found: Any) -> Any:
        kind = type(found)
        if kind is CodeType:
            place = found.co_filename, found.co_qualname, found.co_firstlineno, found.co_linetable
            self.places.append(place)
            return CodeType, what_it_does(found)
        if kind is FunctionType:
            return self._function(found)
        if issubclass(kind, type):
            return self._class(found)
        if issubclass(kind, ModuleType):
            return self._module(found)
        if kind is MethodType:
            return _Token, (), (found.__func__, found.__self__)
        if kind is _lru_cache_wrapper:
            return _Token, (), (found.__wrapped__, found.cache_parameters())
        if kind is cached_property:
            return _Token, (), (found.func, found.attrname)
        if kind is TypeVar:
            return _Token, (), (found.__name__, found.__bound__, found.__constraints__)
        if kind.__module__.startswith("numba.") and isinstance(getattr(found, "py_func", None), FunctionType):
            self._installed("numba")
            return _Token, (), (found.py_func, repr(getattr(found, "targetoptions", None)))
        return self._object(found)

    def _lose(self, what: str) -> tuple[Any, ...]:
        self.lost.append(what)
        return _Token, (), what

    def _installed(self, module_name: str | None) -> None:
        package = (module_name or "").partition(".")[0]
        if package and package != __name__.partition(".")[0]:  # whose version is part of every digest
            self.packages.add(package)

    def _class(self, found: type) -> Any:
        if found in cloudpickle.cloudpickle._BUILTIN_TYPE_NAMES or found.__module__ == "builtins":
            return super().reducer_override(found)
        if not is_users(found):
            self._installed(found.__module__)
            return NotImplemented
        if origin_of(found.__module__) is Origin.COMPILED:
            return self._lose(f"{found.__module__}.{found.__qualname__} (compiled)")
        maker, given, (attributes, slots), *rest = _class_by_value(found)
        attributes = {name: one for name, one in attributes.items() if name != "__firstlineno__"}
        return maker, given, (attributes, slots), *rest

    def _object(self, found: Any) -> Any:
        kind = type(found)
        if _reads_elsewhere(found):
            return self._lose(getattr(found, "__name__", kind.__qualname__))
        own = self.dispatch_table.get(kind)
        try:
            reduced = found.__reduce_ex__(self.proto) if own is None else own(found)
        except MatnbError:
            raise
        except Exception as error:  # whatever the class of a user's raises
            return self._lose(_article(kind) + f" ({error})" * (not isinstance(error, TypeError)))
        if not isinstance(reduced, str):
            return reduced
        module_name = _whose(found, reduced)
        if module_name is None or origin_of(module_name) is not Origin.INSTALLED:
            return self._lose(f"{module_name}.{reduced}, {_article(kind)}")
        self._installed(module_name)
        return _Token, (), (module_name, reduced)

    def _module(self, found: ModuleType) -> Any:
        # One that is used as a value, so that anything in it may be read.
        origin = origin_of(found.__name__)
        if origin is Origin.INSTALLED:
            self._installed(found.__name__)
            return _Token, (), found.__name__
        if origin is Origin.COMPILED:
            return self._lose(f"{found.__name__} (compiled)")
        contents = _contents(found)
        for name, value in contents.items():
            if isinstance(value, Handle):  # stays where it is: it may be none of what is read
                self._lose(f"{found.__name__}.{name} (a DistArray)")
                self.left[id(value)] = found.__name__, name
        self.read.setdefault(found, set()).update(contents)
        self.globals_read.update({(found.__name__, name): value for name, value in contents.items()})
        followed = {name: value for name, value in contents.items() if id(value) not in self.left}
        return _Token, (), (found.__name__, followed)

    def _function(self, found: FunctionType) -> Any:
        if (chosen := chosen_by_type(found)) is not None:
            return _Token, (), chosen
        module_name = found.__globals__.get("__name__")
        if not is_users(found):
            if _reads_elsewhere(found):
                return self._lose(found.__name__)
            self._installed(found.__module__)
            return NotImplemented
        state: dict[str, object] = {}
        if origin_of(module_name) is Origin.INSTALLED:  # made by a decorator: its globals count by version
            self._installed(module_name)
            state["closure"] = [_content(cell) for cell in found.__closure__ or ()]
        else:
            self._reads(found, state)
        state["given"] = (
            found.__name__, found.__defaults__, found.__kwdefaults__, found.__annotations__, vars(found),
        )  # fmt: skip
        return _Token, (found.__code__,), state

    def _reads(self, found: FunctionType, state: dict[str, object]) -> None:
        reads, namespace = reads_of(found.__code__), found.__globals__
        for read in _globals_of(found):
            value = namespace.get(read.name, _MISSING)
            if value is not _MISSING:
                self.globals_read[str(namespace.get("__name__")), read.name] = value
                self._take(read.name, value, read.chains, state)
            elif _reads_elsewhere(getattr(builtins, read.name, None)):
                self._lose(read.name)
        cells = dict(zip(found.__code__.co_freevars, found.__closure__ or (), strict=True))
        chains = {read.name: read.chains for read in reads.free}
        for name, cell in cells.items():
            self._take(f"free {name}", _content(cell), chains.get(name, ((),)), state)
        for module, import_chains in _imported(found):
            self._take(f"import {module.__name__}", module, import_chains, state)

    def _take(self, name: str, value: object, chains: Iterable[Chain], state: dict[str, object]) -> None:
        if not isinstance(value, ModuleType):
            state[name] = None if value is _MISSING else value
            return
        state[name] = ("module", value.__name__)
        for chain in chains:
            self._follow(value, chain, name, state)

    def _follow(self, module: ModuleType, chain: Chain, path: str, state: dict[str, object]) -> None:
        is_installed = origin_of(module.__name__) is Origin.INSTALLED
        if is_installed:
            self._installed(module.__name__)
        if not chain:
            state[f"{path} itself"] = module
            return
        attribute, own = chain[0], vars(module)
        value = own.get(attribute, _MISSING)
        if isinstance(value, ModuleType):
            if not is_installed:
                self.read.setdefault(module, set()).add(attribute)
            state[f"{path}.{attribute}"] = ("module", value.__name__)
            self._follow(value, chain[1:], f"{path}.{attribute}", state)
        elif is_installed:
            if _reads_elsewhere(value):
                self._lose(f"{module.__name__}.{attribute}")
            if isinstance(value, FunctionType | type) and is_users(value):  # a user put it there
                state[f"{path}.{attribute}"] = value
        elif value is not _MISSING:
            self.read.setdefault(module, set()).add(attribute)
            self.globals_read[module.__name__, attribute] = value
            state[f"{path}.{attribute}"] = value
        elif "__getattr__" in own or type(module) is not ModuleType:
            self._lose(f"{module.__name__}.{attribute} (made by the module's __getattr__)")


def _article(kind: type) -> str:
    return f"a {kind.__module__}.{kind.__qualname__}".replace("a builtins.", "a ")


def _contents(module: ModuleType) -> dict[str, object]:
    return {name: value for name, value in vars(module).items() if name not in _NOISE}


def _content(cell: Any) -> object:
    try:
        return cell.cell_contents
    except ValueError:  # nothing yet
        return None


def _whose(found: object, name: str) -> str | None:
    # The module that has an object under a name, as pickle looks for it.
    module_name = getattr(found, "__module__", None) or getattr(type(found), "__module__", None)
    if getattr(sys.modules.get(module_name or ""), name, None) is found:
        return module_name
    return _searched(_ByIdentity(found), name)


class _ByIdentity:
    # A key that keeps its object alive.
    def __init__(self, found: object) -> None:
        self.found = found

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _ByIdentity) and self.found is other.found

    def __hash__(self) -> int:
        return id(self.found)


@lru_cache(maxsize=256)
def _searched(key: _ByIdentity, name: str) -> str | None:
    module_name: str = pickle.whichmodule(key.found, name)  # type: ignore[attr-defined]  # it has one
    is_there = getattr(sys.modules.get(module_name), name, None) is key.found
    return module_name if is_there else None


# By these a function reads globals whose names its code does not load.
_READ_GLOBALS = frozenset({"globals", "eval", "exec"})


def _globals_of(found: FunctionType) -> list[Read]:
    # The globals that a function may read. By ``globals()``, ``eval`` and kin these are all of its module;
    # of a notebook, whose names hold arrays and results without end, those that its own texts name.
    namespace = found.__globals__
    names = reads_of(found.__code__).names
    if not any(read.name in _READ_GLOBALS and read.name not in namespace for read in names):
        return list(names)
    module = sys.modules.get(str(namespace.get("__name__")))
    if module is not None and vars(module) is namespace and module.__name__ != "__main__":
        further = {name for name in _contents(module) if not isinstance(namespace[name], Handle)}
    else:
        further = set(reads_of(found.__code__).texts) & set(namespace)
    named = {read.name for read in names}
    return [*names, *(Read(name, ((),)) for name in sorted(further - named - {"__name__"}))]


def _imported(found: FunctionType) -> Iterator[tuple[ModuleType, tuple[Chain, ...]]]:
    # The user's modules that a function imports itself, and what it takes of each.
    for read in reads_of(found.__code__).imports:
        name = read.name
        if read.level:
            try:
                name = resolve_name("." * read.level + name, found.__globals__.get("__package__") or "")
            except ImportError:  # an error of the function, which it raises when it is called
                continue
        if name not in sys.modules and not _is_to_follow(name.partition(".")[0]):
            continue
        try:
            module = import_module(name)
        except Exception:  # the same
            continue
        for chain in read.chains:  # what is taken of a package may be a module that is not imported yet
            if chain and chain[0] not in vars(module) and hasattr(module, "__path__"):
                try:
                    import_module(f"{name}.{chain[0]}")
                except ImportError:
                    continue
        yield module, read.chains


def _is_to_follow(top: str) -> bool:
    try:
        spec = find_spec(top)
    except (ImportError, ValueError):
        return False
    if spec is None or spec.origin in ("built-in", "frozen"):
        return False
    file = spec.origin or next(iter(spec.submodule_search_locations or ()), None)
    return file is not None and origin_of_file(file) is Origin.USERS


# What is sent.


# What was sent of functions, as many are recorded again and again: of all that tells two of them apart.
_sent_before: OrderedDict[Hashable, bytes] = OrderedDict()
_MOST_KEPT, _MOST_KEPT_BYTES = 256, 1 << 16


def _sent(fn: Callable[..., object], named: FunctionReads) -> bytes:
    if named.reason:
        return _pickled_with_left(fn, named)
    key = named.code, named.places
    found = _sent_before.get(key)
    if found is None:
        found = _pickled_with_left(fn, named)
        if len(found) + len(named.code) <= _MOST_KEPT_BYTES:
            _sent_before[key] = found
            while len(_sent_before) > _MOST_KEPT:
                _sent_before.popitem(last=False)
    return found


def _pickled_with_left(fn: Callable[..., object], named: FunctionReads) -> bytes:
    # By value; what cannot be, such as a lock, is what the worker has under its name in the module there.
    try:
        return _pickled(fn, named, named.left)
    except MatnbError:
        raise
    except _CANNOT_SEND:
        left = dict(named.left)
        for value, module_name, path in _by_kind(fn, named):
            try:
                _pickled(value, named, left)
            except MatnbError:
                raise
            except _CANNOT_SEND:
                left[id(value)] = module_name, path
        if not left:
            raise
        return _pickled(fn, named, left)


def _by_kind(fn: Callable[..., object], named: FunctionReads) -> list[tuple[object, str, str]]:
    # What modules have under the names by which it is read; values first, as they may be all that cannot be
    # sent of a class or a function.
    found = [(value, module_name, name) for (module_name, name), value in named.globals_read.items()]
    if isinstance(fn, FunctionType | type):
        found.append((fn, fn.__module__, fn.__qualname__))
    there = [one for one in found if one[1] != "__main__" and _has(*one)]
    return sorted(
        there, key=lambda one: 1 if isinstance(one[0], type) else 2 * isinstance(one[0], FunctionType)
    )


def _has(value: object, module_name: str, path: str) -> bool:
    found: object = sys.modules.get(module_name)
    for name in path.split("."):
        found = getattr(found, name, None)
    return found is value and not isinstance(value, ModuleType)


def _pickled(value: object, named: FunctionReads, left: Mapping[int, tuple[str, str]]) -> bytes:
    buffer = BytesIO()
    _Sender(buffer, named.read, left).dump(value)
    return buffer.getvalue()


class _Sender(cloudpickle.Pickler):  # type: ignore[misc]  # it has no types
    """Writes a user's functions, classes and modules by value, and code with its file, which errors name."""

    def __init__(
        self, buffer: BytesIO, read: Mapping[ModuleType, set[str]], left: Mapping[int, tuple[str, str]]
    ) -> None:
        super().__init__(buffer)
        self._read, self._left = read, left

    def reducer_override(self, found: Any) -> Any:
        kind = type(found)
        if kind is CodeType:  # cloudpickle leaves its file out since 3.1.3
            return code_of_file, (found.co_filename, *self.dispatch_table[CodeType](found))
        if id(found) in self._left:
            module_name, path = self._left[id(found)]
            return left_behind, (module_name, path, version_of(found))
        if kind is FunctionType and is_users(found):
            if (chosen := chosen_by_type(found)) is not None:
                return choosing, (found.__name__, chosen)
            return self._by_value(found)
        if issubclass(kind, type):
            is_by_value = found.__module__ != "builtins" and is_users(found)
            is_by_value = is_by_value and origin_of(found.__module__) is not Origin.COMPILED
            return _class_by_value(found) if is_by_value else super().reducer_override(found)
        if issubclass(kind, ModuleType) and found in self._read:
            own = vars(found)
            names = {"__name__", "__package__", "__file__", "__path__"} | self._read[found]
            contents = {name: own[name] for name in sorted(names) if name in own}
            return module_of, (found.__name__,), contents, None, None, set_contents
        if kind is _lru_cache_wrapper and origin_of(found.__module__) is Origin.USERS:
            options = found.cache_parameters()
            return cached, (found.__wrapped__, options["maxsize"], options["typed"])
        if kind is cached_property:
            return cached_property, (found.func,), {"attrname": found.attrname}
        if kind is TypeVar and origin_of(found.__module__) is Origin.USERS:
            *given, _ = cloudpickle.cloudpickle._decompose_typevar(found)
            return cloudpickle.cloudpickle._make_typevar, (*given, None)
        return super().reducer_override(found)

    def _by_value(self, found: FunctionType) -> tuple[Any, ...]:
        _, given, (attributes, slots), *_ = self._dynamic_function_reduce(found)
        namespace = found.__globals__
        for read in _globals_of(found):  # in classes inside of a function they are other steps
            if read.name in namespace:
                slots["__globals__"][read.name] = namespace[read.name]
        modules = {
            one.__name__: one
            for one, _ in _imported(found)
            if one in self._read and origin_of(one.__name__) is Origin.USERS
        }
        return function_of, (*given, modules), (attributes, slots), None, None, set_state
