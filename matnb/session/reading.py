"""A source read through on the workers, and its arrays left there."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from matnb.backend.engine_dask import DaskEngine, Outcome, RunCancelled, TaskFailed
from matnb.backend.store import Store
from matnb.errors import CellCancelled
from matnb.io.source import Found, Source
from matnb.lazy.expr import Expr
from matnb.plan.lower import lower
from matnb.plan.sources import reading_plan
from matnb.session.failures import cell_error
from matnb.session.running import Runner


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
    with runner.telling(plan) as tell:
        try:
            outcome = engine.run(plan, (told,), keys)
            found: Found = outcome.fetched[told]
            wanted = name(found)
            stored = store.find(wanted)
            missing = [node for node in wanted if node not in stored]
            present = {task.key: task.owner for task in plan.tasks}
            blocks = lower(missing, (), stored, runner.planner.workers(), present)
            runner.planner.check_memory(blocks)
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
    return found, wanted
