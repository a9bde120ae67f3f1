"""NumPy's linear algebra of each matrix of a stack; an error says at which of them it was."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from matnb.blocks.formats import NumericArray
from matnb.errors import SingularError

Options = tuple[tuple[str, object], ...]


def decomposed(
    name: str, arrays: Sequence[NumericArray], options: Options, start: int = 0
) -> tuple[NumericArray, ...]:
    """Return what ``numpy.linalg`` has under a name, of stacks, as a tuple of one or several arrays.

    Parameters
    ----------
    start
        Which matrix of the whole stack the first one is.

    Raises
    ------
    SingularError
        When a matrix is singular or not positive definite, or its decomposition does not converge.
    """
    function = getattr(np.linalg, name)
    try:
        found = function(*arrays, **dict(options))
    except np.linalg.LinAlgError as error:
        axes = [1 if one.ndim == 1 else 2 for one in arrays]
        batch = np.broadcast_shapes(
            *(one.shape[: one.ndim - own] for one, own in zip(arrays, axes, strict=True))
        )
        stacks = [
            np.broadcast_to(one, (*batch, *one.shape[one.ndim - own :]))
            for one, own in zip(arrays, axes, strict=True)
        ]
        for index in np.ndindex(batch):
            try:
                function(*(one[index] for one in stacks), **dict(options))
            except np.linalg.LinAlgError:
                place = ", ".join(map(str, (index[0] + start, *index[1:])))
                raise SingularError(f"{name}: {error} at [{place}] of the stack") from None
        raise SingularError(f"{name}: {error} in the stack from [{start}] on") from None
    return tuple(found) if isinstance(found, tuple) else (np.asarray(found),)
