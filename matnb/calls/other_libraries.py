"""Names that another library has and matnb does not: what to write with that library's own function."""

from __future__ import annotations

import sys

# What a library is called in code, what it takes of matnb's, and its modules whose names people type.
_LIBRARIES = (
    ("pandas", "t.to_pandas()"),
    ("scipy.sparse", "A.to_scipy()"),
    ("dask.array", "x.compute()"),
    ("distributed", ""),
    ("dask", ""),
)


def own_of_another(name: str) -> str:
    """Return what to say of a name that a library has which is loaded, or nothing.

    A name that is only like it would be another thing.

    Examples
    --------
    >>> import scipy.sparse
    >>> own_of_another("kronsum")
    'it is scipy.sparse.kronsum, of what A.to_scipy() gives'
    >>> own_of_another("kronsums")
    ''
    """
    for module, way in _LIBRARIES:
        if name.startswith("_") or not callable(getattr(sys.modules.get(module), name, None)):
            continue
        if not way:
            return f"it is {module}.{name}, which knows nothing of matnb's arrays"
        return f"it is {module}.{name}, of what {way} gives"
    return ""
