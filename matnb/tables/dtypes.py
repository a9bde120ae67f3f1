"""Types of columns by the names that NumPy and pandas have for them."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from matnb.errors import DTypeError

_PANDAS_INTEGERS = re.compile(r"U?Int(8|16|32|64)")


def is_nullable(dtype: Any) -> bool:
    """Tell whether a dtype is one of pandas' for numbers of which some are missing, such as "Int64"."""
    text = str(dtype)
    return bool(_PANDAS_INTEGERS.fullmatch(text)) or text in ("Float32", "Float64", "boolean")


def numbers_dtype(dtype: Any) -> np.dtype:
    """Return NumPy's dtype of numbers for one of NumPy's or pandas', such as "Int64"."""
    if is_nullable(dtype):
        return np.dtype(str(dtype).lower().replace("boolean", "bool"))
    return np.dtype(dtype)  # type: ignore[no-any-return]  # operators of arrays give Any


def kind_of_dtype(dtype: Any) -> str:
    """Return the kind of a dtype of NumPy's or pandas': "text", or a letter of NumPy's.

    Raises
    ------
    DTypeError
        For what is no dtype.
    """
    if dtype is str or str(dtype) in ("str", "string", "category", "object", "text"):
        return "text"
    try:
        return "M" if str(dtype) == "datetime" else numbers_dtype(dtype).kind
    except TypeError:
        raise DTypeError(
            f'astype({dtype!r}): give a dtype such as float, int, str or "datetime64[s]"'
        ) from None
