"""A node that calls a person's function block by block, or lane by lane."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from matnb.blocks.kernels.calls import Function
from matnb.errors import ShapeError
from matnb.expr.nodes import Expr, Shape, broadcast_shapes


@dataclass(frozen=True, eq=False, repr=False)
class MapBlocks(Expr):
    """What a person's function gives for each block of the first array, and what meets it of others.

    The result is cut as that array where it has its shape; else blocks have all of its axes but the first,
    and so has the result. With ``along``, the function is called on each lane along an axis instead, and the
    axes of what it gives stand in the place of that one.

    ``token`` tells calls apart that are equal in all else; nothing of a function that is pure.
    """

    inputs: tuple[Expr, ...]
    function: Function
    lengths: Shape
    element: np.dtype
    is_sparse: bool
    along: int | None
    token: bytes

    def __post_init__(self) -> None:
        first = self.inputs[0].shape
        for one in self.inputs[1:]:
            if broadcast_shapes(first, one.shape, name=self.function.name) != first:
                raise ShapeError(
                    f"map_blocks: an array of shape {one.shape} beside the first, of shape {first}: blocks "
                    "are those of the first, so give the larger one first"
                )
        if self.along is None and self.lengths[:1] != first[:1]:
            raise ShapeError(
                f"map_blocks: a result of shape {self.lengths} from an array of shape {first}: each block "
                "gives as many rows as it has, so that first axes are equal; reduce with np.sum(x, axis=0) "
                "and the like, or call mn.replicated on a small array"
            )
        self._settle(self.lengths, self.element, self.is_sparse, *self.inputs)
        if self.token:
            self.__dict__["is_made_anew"] = True
