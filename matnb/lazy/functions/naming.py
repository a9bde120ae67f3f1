"""What names a user's function: all it does and uses, whatever file and line it was written in."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from io import BytesIO
from types import CodeType
from typing import Any

import cloudpickle

from matnb.blocks.kernels.calls import Function
from matnb.errors import MatnbError, OptionError


def portable(fn: Callable[..., object], name: str, caller: str) -> Function:
    """Return a function as it travels to workers.

    Parameters
    ----------
    name, caller
        Of the function, and of what it was given to, for messages.

    Raises
    ------
    OptionError
        When it cannot be sent, as it uses what cannot.
    """
    try:
        return Function(name, cloudpickle.dumps(fn), named_by(fn))
    except MatnbError as error:
        raise OptionError(
            f"{caller}: {name} cannot be sent to a worker: {error}; give every DistArray as an argument"
        ) from error
    except (pickle.PicklingError, TypeError, AttributeError, ValueError, RecursionError) as error:
        raise OptionError(
            f"{caller}: {name} cannot be sent to a worker: {error}; let it use arguments and plain values"
        ) from error


def named_by(fn: Callable[..., object]) -> bytes:
    """Return bytes that are the same for the same function in another cell, process or place in its file.

    A function of a module that workers import is named by its code and defaults too, which tell its versions
    apart. May raise what pickling raises.
    """
    own = [getattr(fn, name, None) for name in ("__code__", "__defaults__", "__kwdefaults__")]
    buffer = BytesIO()
    _Namer(buffer).dump((fn, *own))
    return buffer.getvalue()


class _Namer(cloudpickle.Pickler):  # type: ignore[misc]  # without types
    """Writes code as what it does. Nobody reads what is written."""

    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, CodeType):
            return CodeType, _does(obj)
        return super().reducer_override(obj)


def _does(code: CodeType) -> tuple[object, ...]:
    return (
        code.co_code,
        code.co_exceptiontable,
        code.co_flags,
        (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount),
        (code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars),
        # The order of a set's strings is another in every process.
        tuple(
            ("set", *sorted(map(repr, one))) if isinstance(one, frozenset) else one for one in code.co_consts
        ),
    )
