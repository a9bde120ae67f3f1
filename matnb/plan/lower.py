"""Lowers expressions to a plan: which arrays are materialized, how they are cut, and their tasks."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from matnb.blocks.kernels.reductions.reductions import is_multiplied_in_order
from matnb.blocks.layout import Layout
from matnb.expr.nodes import (
    Broadcast,
    Create,
    Elementwise,
    Expr,
    Index,
    Literal,
    Reduce,
    Regrid,
)
from matnb.expr.traverse import consumers, topological
from matnb.ops.indexing import Put
from matnb.ops.maps import Draw, framed, lower_map
from matnb.ops.products import lower_product, product_cuts, product_layout
from matnb.ops.reducing import lower_reductions, lower_running_product
from matnb.ops.registry import lowers
from matnb.ops.slicing import is_cut_out, is_window, sliced_layout
from matnb.plan.estimate import estimate_entries
from matnb.plan.grouping import Groups, reduction_groups
from matnb.plan.work import works_of
from matnb.program.matching import Choice, Wiring, match_products
from matnb.program.place import default_layout, most_block_bytes
from matnb.program.plan import Plan, StoredArray, Workers
from matnb.program.writer import PlanWriter, Slots


def lower(
    roots: Sequence[Expr],
    keep: Sequence[Expr],
    stored: Mapping[Expr, StoredArray],
    workers: Workers,
    slots: Slots | None = None,
    scatters: Choice = lambda transpose, right: False,
    steady: Container[Expr] = (),
    counted: Mapping[Expr, int] | None = None,
) -> Plan:
    """Return the plan that makes the arrays of ``roots``.

    Parameters
    ----------
    roots
        Expressions whose blocks are wanted.
    keep
        Expressions whose blocks stay as well if they are computed on the way.
    stored
        Arrays that are on the workers already.
    workers
        What the plan is laid out over.
    slots
        Where the plan is a part of a program, or goes on where another ended: then ``stored`` is in these.
    scatters
        Decides for a sparse transpose and the dense array it meets whether to do without the transpose.
    steady
        Stored arrays that stay the same in the loop whose body this is.
    counted
        At most how many entries products of sparse arrays store, where that was counted.
    """
    if slots is None:
        slots = Slots()
        stored = {node: slots.of(array) for node, array in stored.items()}
    order = topological(roots, stored)
    wiring = match_products(order, set(roots), stored, scatters)
    order = topological(roots, stored, wiring.operands)
    reached = set(order)
    wanted = list(dict.fromkeys([*roots, *(node for node in keep if node in reached)]))
    groups = reduction_groups(order, wiring, stored)
    if groups:  # each comes after all that it reads
        together: dict[Expr, tuple[Expr, ...]] = {
            node: tuple(one.operand for one in group) for node, group in groups.items()
        }
        order = topological(roots, stored, lambda node: together.get(node) or wiring.operands(node))
    stages = materialized(order, wanted, wiring, stored, groups)
    apart = stages.apart
    entries = estimate_entries(roots, stored, counted)
    writer = PlanWriter(stored, entries, wiring.products, workers, slots, steady)
    lowering = _PlanLowerer(writer, workers, wiring, apart | set(stored), stages.ending, groups)
    for node in order:
        if node in apart:
            lowering.lower(node)
    scattered = (
        one.right if one.pushed else one.left
        for one in wiring.products.values()
        if one.transposed and (one.pushed or one.left.sparse)
    )
    plan = writer.plan(wanted)
    return replace(plan, scattered=tuple(scattered), work=works_of(plan.stages, entries))


class _PlanLowerer:
    # Writes one array of a plan after the other, operands first.

    def __init__(
        self,
        writer: PlanWriter,
        workers: Workers,
        wiring: Wiring,
        apart: set[Expr],
        ending: set[Expr],
        groups: Groups,
    ) -> None:
        self._writer, self._workers, self._wiring, self._apart = writer, workers, wiring, apart
        self._ending, self._groups = ending, groups

    def lower(self, node: Expr) -> None:
        writer, workers = self._writer, self._workers
        match node:
            case _ if node in writer.products:
                lower_product(node, writer.products[node], writer, workers)
            case Elementwise() | Broadcast() | Create() | Literal() | Draw():
                inside, layout = self._stage((node,), node)
                lower_map(node, inside, layout, writer)
            case Put() if (inner := framed(node)) is not None and inner not in self._apart:
                inside, layout = self._stage((node,), node)
                lower_map(node, inside, layout, writer)
            case Reduce() if node in writer.registers:
                pass  # made with another one
            case Reduce():
                members = self._groups.get(node, (node,))
                inside, layout = self._stage(members, node.operand)
                if self._goes_on(node, layout):
                    if node.operand not in writer.registers:
                        lower_map(node.operand, [one for one in inside if one is not node], layout, writer)
                        self._apart.add(node.operand)
                    lower_running_product(node, writer)
                    return
                lower_reductions(members, inside, layout, writer, self._ending)
            case _:
                lowers.of(node)(node, writer, workers)

    def _goes_on(self, node: Reduce, layout: Layout) -> bool:
        is_cut = any(layout.grid.counts[axis] > 1 for axis in node.axes)
        return is_cut and node.operand.size > 0 and is_multiplied_in_order(node.operation, node.dtype)

    def _stage(self, nodes: Sequence[Expr], domain: Expr) -> tuple[list[Expr], Layout]:
        # What a stage computes inside and how it is cut. A product whose inner axis is cut is summed over
        # several tasks, so it becomes an array of its own.
        found = [fused_below(node, self._apart, self._wiring) for node in nodes]
        inside = list(dict.fromkeys(one for some, _ in found for one in some))
        read = list(dict.fromkeys(one for _, some in found for one in some))
        products = [one for one in inside if one in self._writer.products]
        if not products:
            return inside, chosen_layout(domain, read, self._writer, self._workers, inside)
        (made,) = products
        product = self._writer.products[made]
        cuts = product_cuts(made, product, self._writer, self._workers)
        if cuts.is_local:
            return inside, product_layout(made, product, cuts, self._writer)
        lower_product(made, product, self._writer, self._workers)
        self._apart.add(made)
        return self._stage(nodes, domain)


def chosen_layout(
    domain: Expr, read: Sequence[Expr], writer: PlanWriter, workers: Workers, inside: Sequence[Expr] = ()
) -> Layout:
    """Return the layout of a stage: that of its heaviest operand of the same shape, or the default.

    By default what is made ``inside`` counts, too, where it is large: floats of which truth values are made.
    """
    alike = [node for node in read if node.shape == domain.shape]
    if alike:
        heaviest = max(alike, key=writer.bytes_of)
        if is_cut_out(heaviest, writer):
            return sliced_layout(heaviest, writer.registers[heaviest.operand].layout)
        return writer.registers[heaviest].layout
    num_bytes = writer.bytes_of(domain)
    widest = max((writer.bytes_of(one) for one in inside if one.shape == domain.shape), default=0)
    if widest > max(num_bytes, most_block_bytes(workers) * workers.slots):
        num_bytes = widest
    return default_layout(domain, num_bytes, workers)


# Which expressions become arrays of their own, and which are computed inside the task that uses them.


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
        read_whole = any(not _is_written_by(user, node, result, wiring) for user in readers)
        can_fuse = isinstance(node, Elementwise | Broadcast | Create | Literal | Draw)
        if node in wiring.products and node not in wanted:
            # A product is cut in its own way, so a stage holds one, and everything there has its shape.
            can_fuse = all(
                head not in with_product and _domain(head).shape == node.shape for head in homes.get(node, ())
            )
            can_fuse = can_fuse and not wiring.products[node].pushed
        if (
            isinstance(node, Index)
            and is_window(node)
            and readers
            and all(_reads_windows(user, wiring) for user in readers)
        ):
            can_fuse = True  # cut out by the tasks that read it
        if framed(node) is not None and readers and all(_reads_windows(user, wiring) for user in readers):
            can_fuse = all(user.shape == node.shape for user in readers)  # a piece of what these make
        # A chain that two arrays are made from is an array itself, or it would be computed twice.
        shared = len(homes.get(node, ())) > 1 and not node.is_cheap and not isinstance(node, Index)
        if node in wanted or read_whole or not can_fuse or shared:
            result.add(node)
            home: set[Expr] = {groups[node][0]} if isinstance(node, Reduce) and node in groups else {node}
            if node not in wanted and not read_whole and _ends_inside(node, homes.get(node, set())):
                ending.add(node)
        else:
            home = homes[node]
            if node in wiring.products:
                with_product |= home
        for operand in node.operands:
            if _is_written_by(node, operand, result, wiring):
                homes.setdefault(operand, set()).update(home)
    return Stages(result, ending)


def _ends_inside(node: Expr, homes: set[Expr]) -> bool:
    # A number that one task alone reads; several would each read all the shares.
    if not isinstance(node, Reduce) or node.shape or not node.operand.shape or len(homes) != 1:
        return False
    (head,) = homes
    return not isinstance(head, Reduce) and not head.shape


def _is_written_by(user: Expr, node: Expr, apart: Container[Expr], wiring: Wiring) -> bool:
    # Whether the task that makes an array block by block can make its operand too.
    if framed(user) is node:
        return isinstance(user, Put) or user not in apart
    return wiring.fuses_operands(user)


def _reads_windows(user: Expr, wiring: Wiring) -> bool:
    return isinstance(user, Elementwise) and not user.sparse and wiring.fuses_operands(user)


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
            elif isinstance(node, Index) and node is not root:
                read.append(node)  # a window, cut out by the stage
            else:
                stack.append((node, True))
                if wiring.fuses_operands(node) or framed(node) is not None:
                    stack.extend((operand, False) for operand in reversed(node.operands))
    return inside, read
