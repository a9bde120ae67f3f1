"""The pass that reduces functions of the values of segments as they are made, a tile at a time."""

from __future__ import annotations

from matnb.blocks.kernels.elementwise.elementwise import Link
from matnb.expr.nodes import Expr
from matnb.expr.traverse import ExprGraph, Rewritten, Uses, rewrite
from matnb.nested.kernels.segment_folds import SegmentFold
from matnb.nested.segments import OPERATIONS, SegmentPlaces, SegmentReduce, SegmentSpread
from matnb.ops.indexing import Pick
from matnb.passes import register_pass
from matnb.passes.row_chains import chain_of, made_for

_MOST_BYTES = 64 * 2**20  # of a vector that each worker is given whole


def fold_segments(graph: ExprGraph) -> Rewritten:
    """Reduce functions of the values of segments, and what places pick for them, without making either."""
    if SegmentReduce not in graph.kinds:
        return Rewritten(graph, {})
    return rewrite(graph, _Folder(Uses(graph)).folded, downward=True)


class _Folder:
    # The rule, which asks who else reads what is made on the way.

    def __init__(self, uses: Uses) -> None:
        self._uses = uses

    def folded(self, node: Expr) -> Expr | None:
        # the sum in each segment of f(v, x[i]) = the sum of tiles of f(v, x[i])
        match node:
            case SegmentReduce(head, _, _, operation, element, fold=None) if operation in OPERATIONS:
                pass
            case _:
                return None
        if head in self._uses.kept or not self._uses.is_alone(head) or element.kind == "c":
            return None
        # What stays the same in a loop is made once, before it.
        functions = [one for one in made_for(head, self._uses, lambda _: False) if one.free == head.free]
        inputs: tuple[Expr, ...] = (head,)
        links: tuple[Link, ...] = ()
        if functions:
            first = next(one for function in functions for one in function.operands if one not in functions)
            others, links = chain_of(head, first, functions)
            inputs = (first, *others)
        return self._reduced(node, inputs, links)

    def _reduced(self, node: SegmentReduce, inputs: tuple[Expr, ...], links: tuple[Link, ...]) -> Expr | None:
        kinds = [self._kind(one, node) for one in inputs]
        reads = [_read_by(kind, one) for kind, one in zip(kinds, inputs, strict=True)]
        every = list(dict.fromkeys(one for read in reads for one in read))
        # What has all values comes first, since by it the work is cut; places after what they do not pick.
        every.sort(key=lambda one: (one[1] != "values", [one] not in reads))
        is_made = bool(links) or kinds[0] in ("picked", "placed", "segments")
        if None in kinds or not is_made or every[0][1] != "values":
            return None
        operands = tuple(
            (str(kind), tuple(every.index(one) for one in read))
            for kind, read in zip(kinds, reads, strict=True)
        )
        fold = SegmentFold(operands, links, node.values.dtype, tuple(span for _, span in every))
        (values, _), *others = every
        rest = tuple(one for one, _ in others)
        return SegmentReduce(values, node.offsets, node.knots, node.operation, node.element, rest, fold)

    def _kind(self, one: Expr, node: SegmentReduce) -> str | None:
        # How a function of the values reads an operand: see SegmentFold.
        head = node.values
        match one:
            case Pick(_, (SegmentPlaces(offsets),), 0) if offsets is node.offsets and self._is_picked(
                one, head
            ):
                return "placed"
            case Pick(_, _, 0) if self._is_picked(one, head):
                return "picked"
            case SegmentSpread(_, offsets) if offsets is node.offsets and self._is_inside(one, head):
                return "segments"
        if not one.shape:
            return "number"
        return "values" if one.shape == head.shape and not one.sparse else None

    def _is_inside(self, one: Expr, head: Expr) -> bool:
        # Made for this alone, and in each iteration of a loop anew.
        return (one is head or self._uses.is_alone(one)) and one.free == head.free

    def _is_picked(self, one: Pick, head: Expr) -> bool:
        x = one.operand
        is_vector = x.ndim == 1 and not x.sparse and one.is_listed
        return is_vector and x.size * x.dtype.itemsize <= _MOST_BYTES and self._is_inside(one, head)


def _read_by(kind: str | None, one: Expr) -> list[tuple[Expr, str]]:
    # What a function reads for an operand, and of which extent.
    match kind, one:
        case "placed", Pick(x):
            return [(x, "whole")]
        case "picked", Pick(x, (places,)):
            return [(x, "whole"), (places, "values")]
        case "segments", SegmentSpread(numbers):
            return [(numbers, "segments")]
    return [(one, "values" if kind == "values" else "whole")]


register_pass(
    "segment folds",
    fold_segments,
    after="quotients",
    because="likewise, and after what changes functions of values",
)
