"""Values of very many labels: each goes to the worker that combines a range of labels."""

from __future__ import annotations

from matnb.blocks.kernels.routing import labels_within, reduced_within, values_within
from matnb.blocks.layout import Layout
from matnb.ops.nodes.access import Scatter
from matnb.program.operators import Run
from matnb.program.regions import rows_region
from matnb.program.writer import PlanWriter, TaskWriter

_CHOSEN_BYTES = 12  # a label: whether it is in a range, and what it is there


def write_routed(node: Scatter, domain: Layout, layout: Layout, writer: PlanWriter, base: str) -> list[str]:
    """Write the tasks that combine values by label, each range of labels by one; return their keys.

    Parameters
    ----------
    domain
        How values and labels are taken, by rows.
    layout
        Of the result; its first axis alone is cut.
    """
    keys = []
    for number, (region, owner) in enumerate(zip(layout.grid.regions(), layout.owners, strict=True)):
        task = TaskWriter()
        within, pairs, parts = region[0], [], []
        for sender, ((rows,), where) in enumerate(zip(domain.grid.regions(), domain.owners, strict=True)):
            if where == owner:
                pairs.append(writer.read(task, node.values, rows_region(node.values.shape, rows), owner))
                pairs.append(writer.read(task, node.labels, (rows,), owner))
                parts.append(rows[0])
                continue
            parts.append(-1)
            chosen, sent = TaskWriter(), TaskWriter()
            chosen.take(_CHOSEN_BYTES * (rows[1] - rows[0]))
            sent.take(_CHOSEN_BYTES * (rows[1] - rows[0]))
            labels = writer.read(chosen, node.labels, (rows,), where)
            chosen.do(Run(labels_within, (within, node.length, rows[0])), labels)
            values = writer.read(sent, node.values, rows_region(node.values.shape, rows), where)
            sent.do(Run(values_within, (within,)), values, writer.read(sent, node.labels, (rows,), where))
            for name, sending, array in (("values", sent, node.values), ("labels", chosen, node.labels)):
                key = f"{base}-{name}-{sender}-to-{number}"
                size = writer.bytes_of(array, rows_region(array.shape, rows)) // layout.grid.num_blocks
                pairs.append(task.read(writer.add(sending.task(key, where, "send"), size)))
        run = Run(reduced_within, (tuple(parts), within, node.length, node.monoid, node.dtype))
        task.take(3 * (writer.bytes_of(node.values) + writer.bytes_of(node.labels)) // layout.grid.num_blocks)
        task.do(run, *pairs)
        keys.append(
            writer.add(task.task(f"{base}-{number}", owner, "scatter"), writer.bytes_of(node, region))
        )
    return keys
