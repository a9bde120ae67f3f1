"""Compiles the most common loops ahead, in a low-priority process, while a user types first cells."""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import os
import platform
import subprocess
import sys
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import TextIO

import llvmlite.binding  # type: ignore[import-untyped]  # it has no types
import numba

from matnb.blocks.kernels import compiled
from matnb.config import compiles_ahead, environment_without_settings
from matnb.version import VERSION

# Imports of matnb take a second too, so the priority is lowered before them.
_COMMAND = "import os; os.nice(10); from {module} import compile_for; compile_for({parent})"


def compile_ahead(module: str) -> subprocess.Popen[bytes] | None:
    """Start the process that makes machine code, where some is missing and a user is at the keyboard.

    Once for a version, a Python and a processor. It ends with this process, done or not, and is begun again
    where it was not.

    Parameters
    ----------
    module
        Whose ``compile_for`` makes the code, given the number of this process.

    Returns
    -------
    subprocess.Popen or None
        None where none was started: for scripts, with ``MATNB_COMPILE=off``, and where no code can be kept.
    """
    if not hasattr(sys, "ps1") or not compiles_ahead() or is_made():
        return None
    environment = environment_without_settings()
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
    try:
        process = subprocess.Popen(
            [sys.executable, "-c", _COMMAND.format(module=module, parent=os.getpid())],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # an interrupt is for a cell, not for it
        )
    except OSError:  # no memory for a process, say: first calls compile for themselves
        return None
    atexit.register(_end, process, os.getpid())
    return process


def _end(process: subprocess.Popen[bytes], starter: int) -> None:
    if os.getpid() == starter:  # and no process that was forked from it
        process.kill()
        process.wait()


def is_made() -> bool:
    """Tell whether the commonest machine code is there, or could not be kept."""
    path = _note()
    try:
        return path is None or path.read_text() == _stamp()
    except FileNotFoundError:
        return False
    except OSError:
        return True


@contextlib.contextmanager
def making() -> Iterator[bool]:
    """Note at the end that the code is made; give whether no other process makes it right now."""
    path = _note()
    if path is None:
        yield True
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+") as note:
        try:
            fcntl.flock(note, fcntl.LOCK_EX | fcntl.LOCK_NB)  # which ends with the process, however it ends
        except BlockingIOError:
            yield False
            return
        try:
            yield True
        except (OSError, MemoryError, KeyboardInterrupt):
            raise  # what was in the way may be gone next time
        except BaseException:
            _write(note)  # it would come again
            raise
        _write(note)


def _write(note: TextIO) -> None:
    note.truncate(0)
    note.write(_stamp())


def _note() -> Path | None:
    folder = compiled.code_folder()
    return None if folder is None else folder / "matnb-machine-code"


def _stamp() -> str:
    # all that makes Numba compile anew; reading the loops takes milliseconds
    content = sha256()
    for part in (
        *(VERSION, platform.python_version(), numba.__version__),
        *(llvmlite.binding.get_host_cpu_name(), llvmlite.binding.get_host_cpu_features().flatten()),
    ):
        content.update(part.encode())
    for path in sorted(Path(compiled.__file__).parent.rglob("*.py")):
        content.update(path.read_bytes())
    return content.hexdigest()
