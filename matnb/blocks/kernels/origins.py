"""Where code comes from: a user's own source, which may be edited, or what is installed."""

from __future__ import annotations

import os
import sys
from enum import Enum, auto
from functools import lru_cache
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import PurePath
from sysconfig import get_paths
from types import FunctionType


class Origin(Enum):
    """Where the code of a module comes from."""

    USERS = auto()  # source that may be edited
    COMPILED = auto()  # a user's, without code that could be read
    INSTALLED = auto()  # packages and the standard library, which have versions


_MATNB = __name__.partition(".")[0]  # its version is part of every digest
_INSTALLED_PATHS = tuple(
    {get_paths()[kind] + os.sep for kind in ("stdlib", "platstdlib", "purelib", "platlib")}
)
_INSTALLED_FOLDERS = ("site-packages", "dist-packages")


def origin_of(module_name: str | None) -> Origin:
    """Return where a module comes from; one that is not loaded, as a notebook's, is a user's."""
    top = (module_name or "").partition(".")[0]
    if top == _MATNB:
        return Origin.INSTALLED
    module = sys.modules.get(module_name or "")
    if module is None:
        return Origin.USERS
    file = getattr(module, "__file__", None)
    if file is None:  # a part of a compiled module, or a folder without a file of its own
        outer = sys.modules.get(top, module)
        file = getattr(outer, "__file__", None) or next(iter(getattr(outer, "__path__", ())), None)
    if file is None:
        origin = getattr(getattr(module, "__spec__", None), "origin", None)
        return Origin.INSTALLED if origin in ("built-in", "frozen") else Origin.USERS
    return origin_of_file(file)


@lru_cache(maxsize=4096)
def origin_of_file(file: str) -> Origin:
    """Return where a module comes from that lies in a file or folder."""
    parts = PurePath(file).parts
    if file.startswith(_INSTALLED_PATHS) or any(one in parts for one in _INSTALLED_FOLDERS):
        return Origin.INSTALLED
    return Origin.COMPILED if file.endswith(tuple(EXTENSION_SUFFIXES)) else Origin.USERS


def is_users(found: FunctionType | type) -> bool:
    """Tell whether a function or class is a user's, or one that no module has under its name."""
    module_name = getattr(found, "__module__", None)
    # One that a decorator of an installed package made has the name of the function inside of it.
    is_renamed = isinstance(found, FunctionType) and found.__globals__.get("__name__") != module_name
    if origin_of(module_name) is Origin.USERS and not is_renamed:
        return True
    value: object = sys.modules.get(module_name or "")
    for name in found.__qualname__.split("."):
        value = getattr(value, name, None)
    return value is not found or origin_of(module_name) is Origin.USERS
