"""``mn.simulate``: plans laid out over a described cluster; and what is cheap enough to be shown unasked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from matnb.backend.cluster.dask_cluster import WorkerInfo
from matnb.blocks.kernels.calls import Function
from matnb.errors import OptionError
from matnb.expr.control import Cond, Loop, results_of
from matnb.expr.nodes import Expr, Load, Transpose
from matnb.expr.traverse import topological
from matnb.lazy.array import DistArray
from matnb.lazy.creation import asarray
from matnb.passes import traced
from matnb.plan.estimate import estimate_entries
from matnb.plan.looping import plan_control, starts_inside
from matnb.plan.lower import lower
from matnb.plan.transposes import scatters
from matnb.program.memory import estimate_bytes
from matnb.program.plan import Plan, StoredArray, Workers
from matnb.program.writer import Slots
from matnb.session.current import check_closed, current_session
from matnb.session.run import missing_results
from matnb.session.run_listeners import CHEAP
from matnb.simulation.clock import (
    NOTHING,
    Cluster,
    Simulation,
    Simulator,
    run_control,
    run_plan,
    simulation_of,
)

# What is computed though somebody only looks at it.
_CHEAP_SECONDS, _CHEAP_BYTES, _CHEAP_NODES = 0.3, 1_000_000, 300
_OWN, _BY_VALUE = (b"matnb.graph.", b"matnb.linalg."), b"matnb.blocks.kernels.rebuilding"  # in pickles
# Likewise, of numbers that are not many: cubic at worst.
_DENSE = (b"numpy.linalg", b"scipy.linalg", b"matnb.lazy.functions.", b"matnb.tables.", b"matnb.learn.")
_DENSE_SIZE = 100_000  # elements that these take in a moment


def is_cheap(
    node: Expr,
    known: Mapping[Expr, StoredArray],
    there: Sequence[WorkerInfo],
    node_grid: tuple[int, ...] | None,
) -> bool:
    """Tell whether an array is small, and takes no time to speak of by the estimates for its plan.

    What a user's functions take nobody knows, and files are not read to show something.

    Parameters
    ----------
    known
        The arrays below it that are there.
    there, node_grid
        The workers, and how they are arranged.
    """
    if not node.sparse and estimate_bytes(node, node.size) > _CHEAP_BYTES:
        return False
    order = topological([node], known)
    inside = [one for control in order if isinstance(control, Loop | Cond) for one in results_of(control)]
    every = [*order, *topological(inside)]
    if len(every) > _CHEAP_NODES or any(
        (isinstance(one, Load) and one not in known)
        or _is_users(getattr(one, "function", None), one.operands)
        for one in every
    ):
        return False
    if node.sparse and estimate_bytes(node, estimate_entries([node], known)[node]) > _CHEAP_BYTES:
        return False
    cluster, workers = cluster_of(there, node_grid)
    return simulated([node], cluster, workers, known=known).makespan_seconds < _CHEAP_SECONDS


CHEAP.append(is_cheap)


def _is_users(function: object, operands: Sequence[Expr]) -> bool:
    # What graph algorithms and solvers call on the workers is sent by its name, and works on few numbers.
    if not isinstance(function, Function):
        return False
    is_few = sum(one.size for one in operands) <= _DENSE_SIZE
    own = (*_OWN, *_DENSE) if is_few else _OWN
    return _BY_VALUE in function.pickled or not any(family in function.pickled for family in own)


def simulated(
    roots: Sequence[Expr],
    cluster: Cluster,
    workers: Workers,
    iterations: int | None = None,
    known: Mapping[Expr, StoredArray] = MappingProxyType({}),
) -> Simulation:
    """Return what it would take to make arrays on a described cluster, on which only what is known is yet.

    Raises
    ------
    OptionError
        For a number of iterations below 1.
    """
    if iterations is not None and (
        not isinstance(iterations, int) or isinstance(iterations, bool) or iterations < 1
    ):
        raise OptionError(f"simulate(iterations={iterations!r}): give a whole number of at least 1")
    run, made = NOTHING, dict(known)
    order = topological(roots, known)
    for node in order:
        if not isinstance(node, Loop | Cond) or not (wanted := missing_results(node, order, made)):
            continue
        inputs = {str(place): one for place, one in enumerate(node.inputs) if not starts_inside(one)}
        plan, after = _plan(inputs, made, workers)
        run = run.then(run_plan(plan, Simulator(cluster, workers)))
        there = {**made, **plan.outputs}
        stored = {one: there[after[name]] for name, one in inputs.items()}
        control = plan_control(node, stored, workers, wanted)
        entries = estimate_entries(control.inputs, {})
        run = run.then(run_control(control, Simulator(cluster, workers), iterations, entries))
        made.update(control.outputs)
    plan, _ = _plan({str(place): one for place, one in enumerate(roots)}, made, workers)
    return simulation_of(run.then(run_plan(plan, Simulator(cluster, workers))), cluster)


def cluster_of(there: Sequence[WorkerInfo], node_grid: tuple[int, ...] | None) -> tuple[Cluster, Workers]:
    """Return the description of workers that are there, and these; links are as a Cluster has them."""
    hosts = Counter(one.host for one in there)
    memory = sum(one.memory_limit_bytes for one in there) // len(hosts)
    threads = min(one.threads for one in there)
    cluster = Cluster(len(hosts), max(hosts.values()), threads, memory or Cluster.memory)
    machines = tuple(sorted(list(hosts).index(one.host) for one in there))
    return cluster, Workers(tuple(range(len(there))), threads, memory * len(hosts), machines, node_grid)


def _plan(
    roots: Mapping[str, Expr], made: Mapping[Expr, StoredArray], workers: Workers
) -> tuple[Plan, Mapping[str, Expr]]:
    # The plan for named expressions, and what the passes made of them.
    after, _ = traced(roots, made)
    known = {node: made[node] for node in topological(after.values(), made) if node in made}
    entries = estimate_entries(after.values(), known)
    wanted = [one for one in after.values() if one not in known]

    def chooses(transpose: Transpose, right: Expr) -> bool:
        width = 1 if right.ndim == 1 else right.shape[1]
        return scatters(transpose.operand, entries[transpose.operand], workers.slots, width, 0)

    slots = Slots()
    stored = {node: slots.of(array) for node, array in known.items()}
    return lower(wanted, (), stored, workers, slots, scatters=chooses), after


def simulate(*arrays: object, cluster: Cluster | None = None, iterations: int | None = None) -> Simulation:
    """Return what it would take to make arrays on a cluster that is described; nothing runs.

    The figures are simulated: bytes follow from the plan, seconds from rates of one core and of links, which
    no cluster keeps exactly. Counts of stored entries that only a run finds are guesses, and so are the bytes
    of what has them.

    Parameters
    ----------
    *arrays
        DistArrays, or what :func:`matnb.asarray` takes. They are made from their sources, whatever is stored.
    cluster
        A :class:`matnb.Cluster`; by default the workers of the session in use, with links as ``Cluster`` has
        them.
    iterations
        Of loops that end by a condition; by default as many as are written down, at most 10 where a condition
        ends them before.

    Returns
    -------
    Simulation
        ``makespan_seconds``; ``sent_bytes``, ``received_bytes`` and ``peak_bytes`` of each machine;
        ``traffic`` from each to each. It displays itself as a picture.

    Raises
    ------
    OptionError
        For no array, for anything other than a Cluster, and for fewer than 1 iterations.

    Examples
    --------
    >>> import matnb as mn
    >>> X = mn.random.default_rng(0).random((1_000_000, 256))
    >>> found = mn.simulate(X.T @ X, cluster=mn.Cluster(nodes=4, workers=8))
    >>> sum(found.sent_bytes) == 3 * 256 * 256 * 8  # a partial result of each machine but one
    True
    """
    handles = [one if isinstance(one, DistArray) else asarray(one) for one in arrays]
    if not handles:
        raise OptionError("simulate: give at least one array")
    for handle in handles:
        check_closed(handle.expression)
    if cluster is not None and not isinstance(cluster, Cluster):
        raise OptionError(f"simulate(cluster={type(cluster).__name__}): describe one with mn.Cluster(...)")
    nodes = [handle.expression for handle in handles]
    if cluster is not None:
        return simulated(nodes, cluster, cluster.laid_over(), iterations)
    session = current_session()
    there = [session.cluster.workers[number] for number in session.cluster.alive()]
    return simulated(nodes, *cluster_of(there, session.config.node_grid), iterations)
