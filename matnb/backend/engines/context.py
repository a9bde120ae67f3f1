"""What the engines of a session share: the cluster, the names of runs, and the blocks on its workers."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Sequence
from contextlib import AbstractContextManager, nullcontext

from threadpoolctl import ThreadpoolController

from matnb.backend.cluster.dask_cluster import DaskCluster
from matnb.backend.engines.blocks import WorkerBlocks
from matnb.backend.engines.futures import Answers
from matnb.backend.engines.telemetry import Telemetry
from matnb.backend.tasks import worker
from matnb.events import TaskTimed
from matnb.program import operators as op
from matnb.program.plan import Plan


class EngineContext:
    """What the engines of a session share.

    Parameters
    ----------
    cluster
        Where to run.
    prefix
        Put before every name, so that two sessions on one cluster do not meet.
    telemetry
        Is told what tasks took while somebody looks; or None.

    Attributes
    ----------
    blocks
        Those on the workers.
    answers
        Waits for workers.
    """

    def __init__(
        self,
        cluster: DaskCluster,
        prefix: str,
        telemetry: Telemetry | None = None,
    ) -> None:
        self.cluster = cluster
        self._prefix, self._telemetry, self._numbers = prefix, telemetry, itertools.count()
        self._blas = ThreadpoolController() if cluster.in_process else None
        self.answers = Answers(cluster)
        self.blocks = WorkerBlocks(cluster, prefix, self._numbers)

    def begin(self, owners: Collection[int]) -> worker.RunId:
        """Return the name of a run on some workers, which are there."""
        run_id = worker.begin_run(self._prefix, next(self._numbers))
        self.answers.check_alive(owners)
        return run_id

    def began(self, run_id: worker.RunId) -> None:
        """Tell observers that a run is about to submit tasks."""
        if self._telemetry is not None:
            self._telemetry.began(str(run_id))

    def ended(self, timed: Sequence[TaskTimed]) -> None:
        """Tell observers how long the tasks of the run took."""
        if self._telemetry is not None:
            self._telemetry.ended(tuple(timed))

    def shared_blas(self, plan: Plan) -> AbstractContextManager[object]:
        """Have each product of a plan on one core, where several may be made at a time."""
        multiply = op.Multiply | op.Run  # and others that may
        products = sum(any(isinstance(step.operator, multiply) for step in task.steps) for task in plan.tasks)
        return shared_blas(self._blas, products, self.cluster)


def owners_of(plan: Plan) -> set[int]:
    """Return the workers that take part in a plan."""
    owners = {task.owner for task in plan.tasks} | {one.owner for one in plan.shipments}
    for array in plan.reused.values():
        owners.update(array.layout.owners)
    return owners


def staying(plan: Plan) -> list[int]:
    """Return the slots of the blocks that a plan leaves on the workers."""
    return [key for array in plan.outputs.values() for key in array.keys]


def shared_blas(
    blas: ThreadpoolController | None, products: int, cluster: DaskCluster
) -> AbstractContextManager[object]:
    """Have each product of a run on one core, where several may be made at a time."""
    # Products side by side, each on all cores, take twice as long as one after the other.
    if blas is None or products < 2 or sum(one.threads for one in cluster.workers) < 2:
        return nullcontext()
    limited: AbstractContextManager[object] = blas.limit(limits=1, user_api="blas")
    return limited
