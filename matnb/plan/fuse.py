"""Which expressions become arrays of their own, and which are computed inside the task that uses them."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass

from matnb.expr.nodes import Broadcast, Create, Elementwise, Expr, Literal, Reduce, Regrid
from matnb.expr.traverse import consumers
from matnb.ops.access import Draw
from matnb.plan.grouping import Groups
from matnb.program.matching import Wiring


@dataclass(frozen=True)
class Stages:
    """Which expressions are apart from those that read them.

    Attributes
    ----------
    apart
        They become arrays on the workers, or shares of one.
    ending
        Reductions among them whose shares are put together by the one task that reads the value.
    """

    apart: set[Expr]
    ending: set[Expr]


def materialized(
    order: Sequence[Expr],
    roots: Iterable[Expr],
    wiring: Wiring,
    stored: Container[Expr],
    groups: Groups,
) -> Stages:
    """Return the expressions that become arrays on the workers.

    Parameters
    ----------
    order
        Every expression, operands before users.
    roots
        Those whose blocks are wanted afterwards.
    wiring
        What they are made from.
    stored
        Those whose blocks are there already; they are not among the result.
    groups
        Reductions that are made in one pass.
    """
    wanted = set(roots)
    ending: set[Expr] = set()
    users = consumers(order, stored, wiring.operands)
    homes: dict[Expr, set[Expr]] = {}
    with_product: set[Expr] = set()
    result: set[Expr] = set()
    for node in reversed(order):
        if node in stored:
            continue
        readers = users[node]
        if node.is_cheap:
            readers = [user for user in readers if not isinstance(user, Regrid)]
        if node not in wanted and node.is_source and all(isinstance(user, Regrid) for user in readers):
            continue  # made in the cuts that were asked for, and in no others
        read_whole = any(not wiring.fuses_operands(user) for user in readers)
        can_fuse = isinstance(node, Elementwise | Broadcast | Create | Literal | Draw)
        if node in wiring.products and node not in wanted:
            # A product is cut in its own way, so a stage holds one, and everything there has its shape.
            can_fuse = all(
                head not in with_product and _domain(head).shape == node.shape for head in homes.get(node, ())
            )
            can_fuse = can_fuse and not wiring.products[node].pushed
        # A chain that two arrays are made from is an array itself, or it would be computed twice.
        shared = len(homes.get(node, ())) > 1 and not node.is_cheap
        if node in wanted or read_whole or not can_fuse or shared:
            result.add(node)
            home: set[Expr] = {groups[node][0]} if isinstance(node, Reduce) and node in groups else {node}
            if node not in wanted and not read_whole and _ends_inside(node, homes.get(node, set())):
                ending.add(node)
        else:
            home = homes[node]
            if node in wiring.products:
                with_product |= home
        if wiring.fuses_operands(node):
            for operand in node.operands:
                homes.setdefault(operand, set()).update(home)
    return Stages(result, ending)


def _ends_inside(node: Expr, homes: set[Expr]) -> bool:
    # A number that one task alone reads; several would each read all the shares.
    if not isinstance(node, Reduce) or node.shape or not node.operand.shape or len(homes) != 1:
        return False
    (head,) = homes
    return not isinstance(head, Reduce) and not head.shape


def _domain(head: Expr) -> Expr:
    # What a stage goes through block by block.
    return head.operand if isinstance(head, Reduce) else head


def fused_below(root: Expr, apart: Container[Expr], wiring: Wiring) -> tuple[list[Expr], list[Expr]]:
    """Return what is computed inside a stage, operands first, and the arrays that it reads block by block.

    Parameters
    ----------
    root
        The expression that the stage makes.
    apart
        Expressions that are arrays of their own.
    wiring
        What they are made from. What a product inside the stage reads is not listed.
    """
    inside: list[Expr] = []
    read: list[Expr] = []
    seen: set[Expr] = set()
    stack: list[tuple[Expr, bool]] = [(root, False)]
    while stack:
        node, ready = stack.pop()
        if ready:
            inside.append(node)
        elif node not in seen:
            seen.add(node)
            if node is not root and node in apart and not node.is_cheap:
                read.append(node)
            else:
                stack.append((node, True))
                if wiring.fuses_operands(node):
                    stack.extend((operand, False) for operand in reversed(node.operands))
    return inside, read
