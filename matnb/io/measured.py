"""Values that tell how much memory their arrays take: Dask asks Python, which does not count it."""

from __future__ import annotations

import numpy as np


class ReaderValue:
    """What a reader keeps on a worker: a dataclass of arrays, other such values, and what is small."""

    def __sizeof__(self) -> int:
        return object.__sizeof__(self) + sum(map(_held_bytes, vars(self).values()))


def _held_bytes(value: object) -> int:
    if isinstance(value, np.ndarray):
        return value.nbytes
    return value.__sizeof__() if isinstance(value, ReaderValue) else 0
