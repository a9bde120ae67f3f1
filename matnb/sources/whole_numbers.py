"""Whole numbers that sources, estimators and learners are given."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from matnb.errors import DTypeError, OptionError


def whole(value: Any, name: str, owner: str = "", least: int = 1, most: int | None = None) -> int:
    """Return a whole number within bounds.

    Parameters
    ----------
    value
        What was given.
    name, owner
        The argument and what it is an argument of, for messages.
    least, most
        The bounds, both included; None for no upper one.

    Raises
    ------
    DTypeError
        For what is not a whole number.
    OptionError
        For one outside.
    """
    start = f"{owner}: " if owner else ""
    if isinstance(value, bool | np.bool):
        raise DTypeError(f"{start}{name}={value!r}; give an integer")
    try:
        number = operator.index(value)
    except TypeError:
        raise DTypeError(f"{start}{name}={value!r}; give an integer") from None
    if number < least or (most is not None and number > most):
        bounds = f"{least} or more" if most is None else f"{least} to {most}"
        raise OptionError(f"{start}{name}={number}; give {bounds}")
    return number
