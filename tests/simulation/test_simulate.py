"""Plans on a cluster that is described: bytes, order, memory and seconds of the virtual clock."""

from __future__ import annotations

from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from plan_runner import multiplies

import matnb as mn
from matnb.backend.cluster.dask_cluster import WorkerInfo
from matnb.errors import LoopBodyError, OptionError
from matnb.expr.control import Loop
from matnb.expr.traverse import topological
from matnb.plan.looping import plan_control
from matnb.plan.lower import lower
from matnb.program.kinds import MAP
from matnb.program.place import default_layout
from matnb.program.plan import Plan, StoredArray, Task
from matnb.program.regions import region_size
from matnb.simulation.clock import (
    FLOPS_PER_SECOND,
    SPARSE_ENTRY_SECONDS,
    Cluster,
    SimulatedRun,
    Simulator,
    run_control,
    run_plan,
    seconds_of,
)
from matnb.simulation.simulate import cluster_of, simulated


def normal(*shape: int, seed: int = 0) -> mn.DistArray:
    return mn.random.default_rng(seed).normal(size=shape)


EXPRESSIONS = {
    "functions": lambda n: np.exp(normal(n, n)) + 1,
    "tall product": lambda n: normal(n * 40, 64).T @ normal(n * 40, 64, seed=1),
    "squares": lambda n: normal(n, n) @ normal(n, n, seed=1),
    "chain": lambda n: (normal(n, n) @ normal(n, n, seed=1)).sum(axis=0),
    "other cuts": lambda n: normal(n, n) + normal(n, n, seed=1).T,
    "column sums": lambda n: normal(n * 8, n).sum(axis=0),
}
clusters = st.builds(
    Cluster,
    nodes=st.integers(1, 5),
    workers=st.integers(1, 4),
    threads=st.integers(1, 2),
    bandwidth=st.sampled_from(["1Gbps", "10Gbps", 1e9]),
    latency=st.sampled_from(["50us", 0.0, "1ms"]),
)
cases = st.tuples(st.sampled_from(sorted(EXPRESSIONS)), st.integers(200, 900), clusters)


def ran(name: str, n: int, cluster: Cluster) -> tuple[Plan, SimulatedRun]:
    workers = cluster.laid_over()
    plan = lower([EXPRESSIONS[name](n).expression], [], {}, workers)
    return plan, run_plan(plan, Simulator(cluster, workers))


@settings(max_examples=40, deadline=None)
@given(cases)
def test_bytes_are_those_that_the_plan_moves(case):
    plan, run = ran(*case)
    assert sum(run.traffic.values()) + sum(run.near.values()) == plan.moved_bytes
    assert all(one != other for one, other in run.traffic)
    found = simulated([EXPRESSIONS[case[0]](case[1]).expression], case[2], case[2].laid_over())
    assert sum(found.sent_bytes) == sum(found.received_bytes) == sum(map(sum, found.traffic))


@settings(max_examples=40, deadline=None)
@given(cases)
def test_no_task_runs_before_its_inputs_or_on_a_thread_that_there_is_not(case):
    plan, run = ran(*case)
    assert len(run.spans) == len(plan.tasks)
    when = {one.slot: one for one in run.spans}
    for task in plan.tasks:
        before = [when[key].end_seconds for key in task.inputs if key in when]
        assert when[task.key].start_seconds >= max(before, default=0.0)
    cluster = case[2]
    for worker in {one.worker for one in run.spans}:
        own = [one for one in run.spans if one.worker == worker]
        for one in own:
            at_once = sum(two.start_seconds <= one.start_seconds < two.end_seconds for two in own)
            assert at_once <= cluster.threads
    busy = sum(run.busy.values())
    assert run.seconds * cluster.num_workers * cluster.threads >= busy * (1 - 1e-12)
    assert run.seconds >= longest_path(plan, run) * (1 - 1e-9)


def longest_path(plan: Plan, run: SimulatedRun) -> float:
    """Return the seconds of the longest chain of tasks, each with the time of one of its kind at least."""
    least: dict[str, float] = {}
    for one in run.spans:
        took = one.end_seconds - one.start_seconds
        least[one.kind] = min(least.get(one.kind, took), took)
    ends: dict[int, float] = {}
    for task in plan.tasks:
        ends[task.key] = max((ends.get(key, 0.0) for key in task.inputs), default=0.0) + least[task.kind.name]
    return max(ends.values())


@settings(max_examples=25, deadline=None)
@given(cases)
def test_a_machine_holds_at_least_what_stays_on_it(case):
    plan, run = ran(*case)
    machines = dict(zip(case[2].laid_over().numbers, case[2].laid_over().machines, strict=True))
    staying: dict[int, int] = {}
    for array in plan.outputs.values():
        for key, owner in zip(array.keys, array.layout.owners, strict=True):
            staying[machines[owner]] = staying.get(machines[owner], 0) + plan.sizes[key]
    assert all(run.peaks[machine] >= size for machine, size in staying.items())


@settings(max_examples=15, deadline=None)
@given(cases)
def test_equal_plans_take_equally_long(case):
    assert ran(*case)[1] == ran(*case)[1]


def chain(length: int) -> list[Task]:
    """Return tasks of which each reads the one before, on another machine."""
    return [Task(key, (), (key - 1,) if key else (), key % 2, MAP) for key in range(length)]


@pytest.mark.parametrize(("bandwidth", "wanted"), [(1e6, 9.0), (2e6, 4.5)])
def test_a_chain_takes_its_transfers_one_after_the_other(bandwidth, wanted):
    cluster = Cluster(nodes=2, bandwidth=bandwidth, latency=0.5)
    simulator = Simulator(cluster, cluster.laid_over(), sizes=dict.fromkeys(range(10), 10**6))
    run = simulator.run(chain(10), dict.fromkeys(range(10), 0.25))
    assert run.seconds == pytest.approx(10 * 0.25 + 9 * 0.5 + wanted)
    assert run.traffic == {(0, 1): 5 * 10**6, (1, 0): 4 * 10**6}


def test_what_leaves_a_machine_shares_its_link_and_comes_once():
    cluster = Cluster(nodes=3, bandwidth=1e6, latency=0.0)
    simulator = Simulator(cluster, cluster.laid_over(), sizes={0: 10**6})
    readers = [Task(key, (), (0,), key % 3, MAP) for key in (1, 2, 4, 5)]
    run = simulator.run([Task(0, (), (), 0, MAP), *readers], {})
    assert run.seconds == pytest.approx(2.0)  # to two machines, one after the other
    assert run.traffic == {(0, 1): 10**6, (0, 2): 10**6}
    assert run.peaks[1] == 10**6


def test_a_copy_that_later_batches_read_is_held_once_and_as_long():
    cluster = Cluster(nodes=2)
    simulator = Simulator(cluster, cluster.laid_over(), {0: 0}, dict.fromkeys(range(4), 10), keeps=True)
    simulator.sizes[0] = 10**6
    simulator.put(0, 0)
    runs = [simulator.run([Task(key, (), (0,), 1, MAP)], {}) for key in (1, 2, 3)]
    assert [run.traffic for run in runs] == [{(0, 1): 10**6}, {}, {}]
    assert [run.peaks for run in runs] == [{0: 10**6, 1: 10**6 + 10}] * 3
    assert simulator.held == {0: 10**6, 1: 10**6}
    simulator.end_iteration({0}, {0})
    assert simulator.held == {0: 10**6, 1: 0}


@settings(max_examples=30, deadline=None)
@given(cases)
def test_no_machine_holds_less_than_nothing_and_each_holds_what_stays(case):
    cluster, plan = case[2], ran(*case)[0]
    simulator = Simulator(cluster, cluster.laid_over())
    run = run_plan(plan, simulator)
    assert min(simulator.held.values()) >= 0
    assert sum(simulator.held.values()) == sum(
        plan.sizes[key] for array in plan.outputs.values() for key in array.keys
    )
    assert all(run.peaks[machine] >= size for machine, size in simulator.held.items())


def test_a_loop_holds_no_more_in_later_iterations():
    a, x = normal(2000, 2000), normal(2000)

    def peak_of(count: int) -> int:
        y, _ = mn.iterate(lambda v: a @ v / 100, x, max_iterations=count)
        return max(mn.simulate(y, cluster=Cluster(nodes=4)).peak_bytes)

    assert peak_of(1) == peak_of(2) == peak_of(10)  # of which two iterations are simulated


def test_what_a_loop_is_given_is_there_while_it_runs():
    a, x = normal(2000, 2000), normal(2000)
    y, _ = mn.iterate(lambda v: a @ v / 100, x, max_iterations=3)
    workers = Cluster(nodes=4).laid_over()
    loop = next(one for one in topological([y.expression]) if isinstance(one, Loop))
    stored = {}
    for number, one in enumerate(loop.inputs):
        layout = default_layout(one, one.size * 8, workers)
        keys = tuple((number, block) for block in range(layout.grid.num_blocks))
        sizes = tuple(region_size(region) for region in layout.grid.regions())
        stored[one] = StoredArray(layout, keys, sizes, tuple(8 * size for size in sizes))
    run = run_control(plan_control(loop, stored, workers, [loop]), Simulator(Cluster(nodes=4), workers))
    assert all(run.peaks[node] >= 2000 * 2000 * 8 / 4 for node in range(4))


def test_slow_machines_take_longer():
    tasks = [Task(key, (), (), key, MAP) for key in range(2)]
    cluster = Cluster(nodes=2, speeds=(1.0, 0.25))
    run = Simulator(cluster, cluster.laid_over()).run(tasks, {0: 1.0, 1: 1.0})
    assert run.seconds == 4.0
    assert run.busy == {0: 1.0, 1: 4.0}


def test_tall_products_send_a_partial_result_of_each_machine_but_one():
    x = normal(10**6, 256)
    found = mn.simulate(x.T @ x, cluster=mn.Cluster(nodes=16, workers=32, bandwidth="20Gbps"))
    assert sum(found.sent_bytes) == 15 * 256 * 256 * 8
    assert "simulated on 16 nodes of 32 workers" in repr(found)
    assert "7.86 MB between nodes" in repr(found)
    ElementTree.fromstring(found.svg)
    assert found.svg.count("idle ") >= 16


def test_iterations_of_a_loop_cost_alike_and_what_stays_travels_once():
    a, x = normal(3000, 3000), normal(3000)

    def bytes_of(count: int) -> int:
        y, _ = mn.iterate(lambda v: a @ v / 100, x, max_iterations=count)
        return sum(mn.simulate(y, cluster=Cluster(nodes=4)).sent_bytes)

    one, two, ten = bytes_of(1), bytes_of(2), bytes_of(10)
    assert ten - two == 8 * (two - one) > 0
    assert two - one < 3000 * 3000  # no part of the matrix


def test_iterations_may_be_given():
    x = normal(3000)
    a = normal(3000, 3000)
    y, _ = mn.iterate(lambda v: a @ v, x, until=lambda old, new: abs(new - old).max() < 1e-9)
    cluster = Cluster(nodes=4)
    few, many = (sum(mn.simulate(y, cluster=cluster, iterations=n).sent_bytes) for n in (2, 20))
    assert many > 5 * few / 2


def test_nothing_runs_for_what_no_machine_here_could_hold():
    huge = normal(10**6, 10**5)
    found = mn.simulate(huge.sum(axis=0), cluster=Cluster(nodes=64, workers=32, memory="1TB"))
    assert sum(found.sent_bytes) > 0
    assert mn.active_session() is None


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"nodes": 0}, "nodes=0"),
        ({"workers": 2.5}, "workers=2.5"),
        ({"threads": True}, "threads=True"),
        ({"memory": 0}, "needs memory"),
        ({"memory": "much"}, "memory"),
        ({"bandwidth": 0}, "bandwidth=0"),
        ({"bandwidth": -1.0}, "bandwidth"),
        ({"bandwidth": "20 apples"}, "bandwidth"),
        ({"latency": "-1us"}, "latency"),
        ({"latency": None}, "latency"),
        ({"nodes": 2, "speeds": [1.0]}, "1 speeds for 2 nodes"),
        ({"speeds": [0.0]}, "above 0"),
        ({"speeds": [float("inf")]}, "above 0"),
        ({"speeds": ["a"]}, "above 0"),
        ({"speeds": 5}, "a number for each node"),
        ({"memory": None}, "needs memory"),
        ({"bandwidth": float("inf")}, "bandwidth=inf"),
    ],
)
def test_a_cluster_that_cannot_be_is_refused(options, words):
    with pytest.raises(OptionError, match=words):
        Cluster(**options)


def test_bad_calls_are_refused():
    x = normal(10)
    for call in (
        lambda: mn.simulate(),
        lambda: mn.simulate(x, cluster="sixteen"),
        lambda: mn.simulate(x, cluster=Cluster(), iterations=0),
        lambda: mn.simulate(x, cluster=Cluster(), iterations=True),
    ):
        with pytest.raises(OptionError, match="simulate"):
            call()

    def body(v: mn.DistArray) -> mn.DistArray:
        mn.simulate(v, cluster=Cluster())
        return v

    with pytest.raises(LoopBodyError):
        mn.iterate(body, x, max_iterations=2)


def test_hosts_may_have_unequal_numbers_of_workers():
    there = [WorkerInfo(f"tcp://{number}", host, 2, 10**9) for number, host in enumerate("aba")]
    cluster, workers = cluster_of(there, None)
    assert (cluster.nodes, cluster.workers, cluster.threads) == (2, 2, 2)
    assert (workers.numbers, workers.machines) == ((0, 1, 2), (0, 0, 1))


def product_seconds(array: mn.DistArray, cluster: Cluster) -> float:
    """Return the seconds of the tasks that make a product, beyond what Dask takes for each."""
    workers = cluster.laid_over()
    plan = lower([array.expression], [], {}, workers)
    seconds = seconds_of(plan.tasks, plan.stages, plan.work, plan.sizes, 0.0)
    return sum(seconds[task.key] for task in plan.tasks if multiplies(task))


@pytest.mark.parametrize("nodes", [1, 4])
def test_a_product_with_the_own_transpose_is_half_the_operations(nodes):
    x, y = normal(20_000, 512), normal(20_000, 512, seed=1)
    whole, half = (product_seconds(one, Cluster(nodes=nodes)) for one in (x.T @ y, x.T @ x))
    assert whole == pytest.approx(2 * 20_000 * 512**2 / FLOPS_PER_SECOND, rel=0.01)
    assert half == pytest.approx(whole / 2, rel=0.01)


@pytest.mark.parametrize("nodes", [1, 4])
def test_a_sparse_product_takes_as_long_as_it_has_entries(nodes):
    A = mn.asarray(sp.random_array((3000, 3000), density=0.01, rng=np.random.default_rng(0), format="csr"))
    product = A @ A
    (entries,) = (
        stage.estimated_nnz
        for stage in lower([product.expression], [], {}, Cluster(nodes=nodes).laid_over()).stages
        if stage.kind.name == "product"
    )
    assert entries > 1_000_000  # about 900 a row meet, in 3000 columns
    least = entries * SPARSE_ENTRY_SECONDS
    assert product_seconds(product, Cluster(nodes=nodes)) >= least * (1 - 1e-6)
    found = mn.simulate(product, cluster=Cluster(nodes=nodes))
    assert found.makespan_seconds >= least / nodes


def test_ways_of_placing_can_be_compared():
    a, b = normal(4000, 4000), normal(4000, 4000, seed=1)
    cluster = Cluster(nodes=9)
    sent = {
        way: sum(
            simulated([(a @ b).expression], cluster, replace(cluster.laid_over(), placing=way)).sent_bytes
        )
        for way in ("loads", "owners", "turns")
    }
    assert sent["loads"] <= min(sent.values())
    assert sent["loads"] == 2 * 2 * 4000 * 4000 * 8


def test_more_memory_than_a_node_has_is_said() -> None:
    array = mn.ones((1000, 1000)) + 1.0
    few = mn.simulate(array, cluster=mn.Cluster(2, memory=1_000))
    assert repr(few).endswith("; more than the 1 kB that a node has")
    assert "more than" not in repr(mn.simulate(array, cluster=mn.Cluster(2, memory="1GB")))


def test_numbers_of_numpy_describe_a_cluster() -> None:
    given = mn.Cluster(np.int64(2), speeds=np.array([1.0, 0.5]), latency="5\u00b5s")  # type: ignore[arg-type]  # what users have
    assert given.nodes == 2
    assert type(given.nodes) is int
    assert given.delay("latency") == pytest.approx(5e-6)
