"""Peak memory of a plan on each worker, from the sizes of its tasks alone."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from heapq import nlargest

from matnb.blocks.formats import dense_bytes, sparse_bytes
from matnb.expr.nodes import Expr
from matnb.program.plan import Slot, Task


def peaks(
    tasks: Sequence[Task],
    sizes: Mapping[Slot, int],
    owners: Mapping[Slot, int],
    shipped: Collection[Slot],
    staying: Collection[Slot],
    threads: int,
) -> dict[int, int]:
    """Return each worker's peak memory for a plan, on top of the memory in use.

    Tasks are taken depth first, as Dask runs them. A value goes with its last reader, and so does the copy
    that another worker reads; ``staying`` values and what is shipped stay. Tasks that run beside another are
    counted with the largest values and temporaries of the worker's tasks.

    Parameters
    ----------
    tasks
        In an order in which inputs come before their users.
    sizes, owners
        Bytes and worker of every value, those that are there already among them; constants have neither.
    shipped, staying
        Slots of what is sent before the first task, and of what is kept after the last.
    threads
        Tasks that a worker runs at a time.
    """
    tasks = depth_first(tasks)
    last: dict[Slot, int] = {}
    for number, task in enumerate(tasks):
        for key in task.inputs:
            last[key] = number
    leaving: dict[int, list[Slot]] = {}
    for key, number in last.items():
        leaving.setdefault(number, []).append(key)
    held: dict[int, int] = {}
    for key in shipped:
        held[owners[key]] = held.get(owners[key], 0) + sizes[key]
    most = dict(held)
    made = {task.key for task in tasks}
    copies: dict[Slot, set[int]] = {}
    beside: dict[int, list[int]] = {}
    for number, task in enumerate(tasks):
        here = task.owner
        grown = sizes[task.key]
        for key in task.inputs:
            if owners.get(key, here) != here and here not in copies.setdefault(key, set()):
                copies[key].add(here)
                grown += sizes.get(key, 0)
        held[here] = held.get(here, 0) + grown
        most[here] = max(most.get(here, 0), held[here] + task.working_bytes)
        beside.setdefault(here, []).append(sizes[task.key] + task.working_bytes)
        for key in leaving.get(number, ()):
            for owner in copies.pop(key, ()):
                held[owner] -= sizes.get(key, 0)
            if key in made and key not in staying:
                held[owners[key]] -= sizes[key]
    return {owner: peak + sum(nlargest(threads - 1, beside.get(owner, ()))) for owner, peak in most.items()}


def depth_first(tasks: Sequence[Task]) -> list[Task]:
    """Return tasks in an order in which what one result needs comes before what the next one needs.

    An order by stages would hold whole arrays.
    """
    by_key = {task.key: task for task in tasks}
    read = {key for task in tasks for key in task.inputs}
    order: list[Task] = []
    seen: set[Slot] = set()
    stack = [(task, False) for task in reversed(tasks) if task.key not in read]
    while stack:
        task, ready = stack.pop()
        if ready:
            order.append(task)
        elif task.key not in seen:
            seen.add(task.key)
            stack.append((task, True))
            stack.extend((by_key[key], False) for key in reversed(task.inputs) if key in by_key)
    return order


def estimate_bytes(node: Expr, entries: int) -> int:
    """Return the bytes that an expression with this many stored entries holds."""
    if node.sparse:
        return sparse_bytes(node.shape[0], entries, node.dtype)
    return dense_bytes(node.shape, node.dtype)
