"""A source read through on the workers, and its arrays left there."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from matnb.backend.engine_dask import DaskEngine, Outcome, RunCancelled, TaskFailed
from matnb.backend.store import Store
from matnb.errors import CellCancelled, TooLargeError
from matnb.expr.nodes import Expr
from matnb.io.source import Found, Source
from matnb.ops.creation import reading_plan
from matnb.plan.lower import lower
from matnb.program.plan import Plan
from matnb.session.failures import cell_error
from matnb.session.running import Runner


def _with_pieces(
    source: Source, blocks: Plan, reading: Plan, outcome: Outcome, found: Found
) -> dict[int, int]:
    # What making the blocks takes on each worker, beside the pieces that were read, which are there still.
    peaks = dict(blocks.peaks)
    owners = {task.key: task.owner for task in reading.tasks}
    for one in outcome.timed:
        if one.key in owners:
            peaks[owners[one.key]] = peaks.get(owners[one.key], 0) + one.output_bytes
    share = source.placing_bytes(found) // max(1, len(set(owners.values())))
    return {owner: peak + share for owner, peak in peaks.items()}


@contextmanager
def _naming(source: Source) -> Iterator[None]:
    # Tells which file it is that does not fit.
    try:
        yield
    except TooLargeError as error:
        raise TooLargeError(f"{source!r} is not read: {error}") from None


def read_source(
    source: Source, name: Callable[[Found], Sequence[Expr]], engine: DaskEngine, store: Store, runner: Runner
) -> tuple[Found, Sequence[Expr]]:
    """Read a source and return what is known of it and the expressions of the arrays it gives.

    Parameters
    ----------
    source
        What to read.
    name
        Gives these expressions, once shape and dtype are known.
    engine, store, runner
        Of the session.

    Raises
    ------
    OwnersLost
        When a worker was lost.
    CellCancelled
        On an interrupt.
    """
    plan, keys, told = reading_plan(source, runner.planner.workers())
    outcome: Outcome | None = None
    with _naming(source):
        runner.planner.check_memory(plan)
    with runner.telling(plan) as tell:
        try:
            outcome = engine.run(plan, (told,), keys)
            found: Found = outcome.fetched[told]
            wanted = name(found)
            stored = store.find(wanted)
            missing = [node for node in wanted if node not in stored]
            present = {task.key: task.owner for task in plan.tasks}
            blocks = lower(missing, (), stored, runner.planner.workers(), present)
            with _naming(source):
                peaks = _with_pieces(source, blocks, plan, outcome, found)
                runner.planner.check_peaks(peaks, blocks.reused)
            made = engine.run(blocks)
            timed = (*outcome.timed, *made.timed)
            seconds = outcome.seconds + made.seconds
        except TaskFailed as error:
            raise cell_error(error.failed, plan.stages, None) from None
        except RunCancelled as error:
            raise CellCancelled(str(error)) from None
        finally:
            outcome = None  # the pieces go from the workers, though an error's traceback keeps this frame
        runner.keep(made, blocks, sum(one.seconds for one in timed))
        tell(timed, seconds)
    if found.edges is not None:
        found = replace(found, nnz=sum(store.find(wanted[:1])[wanted[0]].block_nnz))  # merged ones once
    return found, wanted
