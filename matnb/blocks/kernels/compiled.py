"""The one way a loop is compiled: Numba without the interpreter's lock, cached on disk."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import TypeVar

import numba
import numpy as np
import numpy.typing as npt
from llvmlite import ir  # type: ignore[import-untyped]  # it has no types
from numba import types
from numba.core import event
from numba.core.caching import IndexDataCacheFile
from numba.extending import intrinsic

from matnb.blocks.formats import IndexArray, NumericArray

Loop = TypeVar("Loop", bound=Callable[..., object])
Scalar = TypeVar("Scalar", bound=np.generic)
UnsignedArray = npt.NDArray[np.uint32]
_IMPORT = re.compile(r"^(?:from|import)\s[^(\n]*(?:\([^)]*\))?", re.MULTILINE)
_WORD = re.compile(r"\w+")


class _MachineCodes(event.Listener):  # type: ignore[misc]  # it has no types
    # How many machine codes this process has made or read from disk: asked for twice a task. And how many
    # loops it began to compile, which compile the loops that they call, and whether it compiles now.

    def __init__(self) -> None:
        self.number = self.num_begun = self.depth = 0
        self.is_any_loaded = False
        self.folder: Path | None = None

    def on_start(self, event: object) -> None:
        self.num_begun += self.depth == 0
        self.depth += 1

    def on_end(self, event: object) -> None:
        self.depth -= 1

    def count_those_of(self, loop: numba.core.registry.CPUDispatcher) -> None:
        add = loop.add_overload

        def counted(code: object) -> None:
            self.number += 1
            self.is_any_loaded = True
            add(code)

        loop.add_overload = counted


_machine_codes = _MachineCodes()
event.register("numba:compile", _machine_codes)


def compiled(function: Loop) -> Loop:
    """Compile a loop at its first call for each combination of dtypes, and keep the machine code on disk.

    No threads of its own (blocks already run side by side) and no fast math (bits must not depend on it).
    The code is kept beside the loop's file, and where that folder is read-only in the user's cache folder.
    It is made anew when that file changes, or one that it imports of its folder or of the core's kernels:
    loops call loops of other files.
    """
    try:
        loop = numba.njit(nogil=True, cache=True)(function)
    except RuntimeError:  # neither folder can be written: each process compiles for itself
        loop = numba.njit(nogil=True)(function)
    else:
        # Numba asks for the time and size of the loop's own file, and an installer gives all files one time.
        # Where it keeps the answer is its own affair: hence the upper bound on its version.
        loop._cache._cache_file.__class__ = _CodeFiles
        if function.__module__.rpartition(".")[0] == __package__:
            _machine_codes.folder = Path(loop._cache.cache_path)
        loop._cache._cache_file._source_stamp = _stamp_of(Path(function.__code__.co_filename))
    _machine_codes.count_those_of(loop)
    compiled_loop: Loop = loop
    return compiled_loop


class _CodeFiles(IndexDataCacheFile):  # type: ignore[misc]  # it has no types
    # The files of a loop's machine code. Two processes that make different codes of a loop at one time may
    # take the same name for them, and Numba believes the name: code of other dtypes would be called.
    # So each file says itself what it holds.

    def save(self, key: object, data: object) -> None:
        super().save(key, (self._source_stamp, key, data))

    def load(self, key: object) -> object:
        match super().load(key):
            case (stamp, held, data) if stamp == self._source_stamp and held == key:
                return data
        return None

    def lists(self, key: object) -> bool:
        return key in self._load_index()


@cache
def _stamp_of(file: Path) -> str:
    # Of the file, and of all in its folder and the core's that it imports, or that those import.
    reached, waiting = {file}, [file]
    while waiting:
        for other in _imported_beside(waiting.pop()) - reached:
            reached.add(other)
            waiting.append(other)
    content = sha256()
    for path in sorted(reached):
        content.update(path.name.encode() + path.read_bytes())
    return content.hexdigest()


@cache
def _imported_beside(file: Path) -> frozenset[Path]:
    # each word of an import may be a file's name; the syntax tree of all files takes a tenth of a second
    words = {word for found in _IMPORT.findall(file.read_text()) for word in _WORD.findall(found)}
    # loops of families call those of the core
    folders = {file.parent, Path(__file__).parent, *Path(__file__).parent.glob("*/")}
    paths = (folder / f"{word}.py" for folder in folders for word in words)
    return frozenset(path for path in paths if path.is_file())


def inlined(function: Loop) -> Loop:
    """Mark a few lines that compiled loops of the same file share: they become part of each.

    A call from a loop costs about a nanosecond, as much as one entry of a row.
    """
    lines: Loop = numba.njit(nogil=True, inline="always")(function)
    return lines


def _prefetch(_typing: object, array: object, _place: object) -> tuple[object, Callable[..., object]]:
    def instruction(context, builder, signature, arguments):  # type: ignore[no-untyped-def]  # Numba's own
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        byte, word = ir.IntType(8).as_pointer(), ir.IntType(32)
        takes = ir.FunctionType(ir.VoidType(), [byte, word, word, word])
        called = builder.module.declare_intrinsic("llvm.prefetch", [byte], takes)
        address = builder.bitcast(builder.gep(data, [arguments[1]]), byte)
        builder.call(called, [address, word(0), word(3), word(1)])  # to read, soon and often, as data
        return context.get_dummy_value()

    return types.void(array, types.uint64), instruction


# Begin to load what is at a place of an array in C order, counted over all its axes, into the first cache.
prefetch: Callable[[NumericArray, np.uint64], None] = intrinsic(_prefetch)


def is_ready(loop: Callable[..., object]) -> bool:
    """Return whether a compiled loop was called before in this process."""
    return bool(getattr(loop, "overloads", ()))


def is_worth_compiling(loop: Callable[..., object], num_elements: int, *arguments: object) -> bool:
    """Tell whether a loop is to be called, or NumPy's functions, which give the same bits, for now.

    It is where its machine code is there, in this process or on disk, or where NumPy had so much to do in its
    place that compiling would have taken no longer; code on disk is read once NumPy had so much to do that
    starting Numba would have taken no longer. A task during which NumPy steps in says little of the
    loop: ``num_specializations`` grows, as if it had been compiled.

    Parameters
    ----------
    num_elements
        How much there is to do.
    arguments
        Of the call, or others of their dtypes.
    """
    key = loop, *(one.dtype for one in arguments if isinstance(one, np.ndarray))
    done = _done_by_numpy.get(key, 0)
    if done >= _WORTH_COMPILING:
        return True
    done += _CALL + num_elements
    if done < _WORTH_COMPILING and not _has_code(loop, arguments):
        _done_by_numpy[key] = done
        _machine_codes.number += 1
        return False
    _done_by_numpy[key] = _WORTH_COMPILING
    return True


# Elements that take NumPy about as long as a loop takes to be compiled, and Numba to start; and how many a
# call is worth.
_WORTH_COMPILING, _WORTH_STARTING, _CALL = 1 << 24, 1 << 23, 1 << 11
_done_by_numpy: dict[tuple[object, ...], int] = {}


def compile_always() -> None:
    """Have NumPy step in for no loop from now on."""
    global _WORTH_COMPILING
    _WORTH_COMPILING = 0


def _has_code(loop: numba.core.registry.CPUDispatcher, arguments: tuple[object, ...]) -> bool:
    # Without the compiler's lock, since another thread may compile for seconds: nothing is changed here.
    # Numba takes a fifth of a second before it gives its first code, be it from disk.
    if not _machine_codes.is_any_loaded and sum(tuple(_done_by_numpy.values())) < _WORTH_STARTING:
        return False
    kinds = tuple(numba.typeof(one) for one in arguments)
    if kinds in loop.overloads:
        return True
    cache = loop._cache
    if not hasattr(cache, "_cache_file"):  # nothing can be kept
        return False
    return bool(cache._cache_file.lists(cache._index_key(kinds, loop.targetctx.codegen())))


def compiled_so_far() -> tuple[int, bool]:
    """Return how many loops this process began to compile, and whether it compiles one now."""
    return _machine_codes.num_begun, _machine_codes.depth > 0


def num_specializations() -> int:
    """Return how many machine codes this process has made or read from disk.

    A task during which it grew says more about the compiler than about the task.
    """
    return _machine_codes.number


def code_folder() -> Path | None:
    """Return where the machine code of this folder's loops is kept, or None where it is not."""
    return _machine_codes.folder


def given(array: np.ndarray[tuple[int, ...], np.dtype[Scalar]]) -> np.ndarray:
    """Return an input of a loop as a read-only array in C order, so that each dtype is compiled only once."""
    view = np.ascontiguousarray(array).view()
    view.flags.writeable = False
    return view


def unsigned(indices: IndexArray) -> UnsignedArray:
    """Return pointers or columns as a read-only input of a loop that need not ask whether they are negative.

    Python's negative indices cost a comparison an access. In the loop, keep what is computed from them
    unsigned too: Numba makes a float of a signed with an unsigned 64-bit integer.
    """
    view: UnsignedArray = given(indices).view(np.uint32)
    return view
