"""Bytes that the simulator says travel, beside what Dask's workers and the members of loops counted.

Four worker processes are on two machines, as far as their addresses say: 127.0.0.1 and 127.0.0.2. Dask logs
the keys and sizes of each transfer; the workers are given the sizes of blocks, which Dask would guess.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias

import dask
import numpy as np
import pytest
import scipy.sparse as sp
from dask.sizeof import sizeof
from distributed import Client, Nanny, Scheduler, SpecCluster
from distributed.comm import get_address_host

import matnb as mn
from matnb.blocks.formats import Dense
from matnb.events import Event, LoopFinished

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.skipif(sys.platform != "linux", reason="127.0.0.2 is no address of the machine"),
]
HOSTS = ("127.0.0.1", "127.0.0.2")
WORKERS_OF_EACH = 2
RELAYED_BYTES = 64 * 1024  # from here on a value comes once to a machine, for all of its workers
Traffic: TypeAlias = Counter[tuple[str, str]]  # bytes from host to host, between workers of one host too


class Transfer(NamedTuple):
    """A value that one worker had from another."""

    key: str
    source: str
    target: str
    num_bytes: int


def size_blocks() -> None:
    sizeof.register(Dense, lambda block: block.values.nbytes)


def forget_transfers(dask_worker: Any) -> None:
    dask_worker.transfer_incoming_log.clear()


def incoming(dask_worker: Any) -> list[tuple[str, str, int]]:
    return [
        (key, one["who"], size)
        for one in dask_worker.transfer_incoming_log
        for key, size in one["keys"].items()
    ]


class Network:
    """What the workers of a session count.

    Attributes
    ----------
    loop_bytes
        What members of loops sent each other in the last run; Dask has no part in that.
    """

    def __init__(self, client: Client) -> None:
        self._client = client
        self.loop_bytes = 0
        client.run(size_blocks)

    def listen(self, event: Event) -> None:
        if isinstance(event, LoopFinished):
            self.loop_bytes += event.sent_bytes

    def counted(self, run: Callable[[], object]) -> list[Transfer]:
        """Return what Dask's workers had from each other while something ran."""
        self._client.run(forget_transfers)
        self.loop_bytes = 0
        run()
        logs = self._client.run(incoming)
        return [
            Transfer(key, source, target, size) for target, log in logs.items() for key, source, size in log
        ]


@pytest.fixture(scope="module")
def network() -> Iterator[Network]:
    options = {"nthreads": 1, "memory_limit": 0, "dashboard_address": None}
    workers = {
        number: {"cls": Nanny, "options": {**options, "host": HOSTS[number // WORKERS_OF_EACH]}}
        for number in range(len(HOSTS) * WORKERS_OF_EACH)
    }
    scheduler = {"cls": Scheduler, "options": {"host": HOSTS[0], "dashboard_address": ":0"}}
    # Dask's memory manager drops copies now and then, and what is read again travels a second time.
    still = dask.config.set({"distributed.scheduler.active-memory-manager.start": False})
    with still, SpecCluster(workers=workers, scheduler=scheduler) as cluster, Client(cluster) as client:
        found = Network(client)
        with mn.connect(cluster, rebalance="off") as session:
            session.subscribe(found.listen)
            yield found
        mn.stop()


def owners_of(transfers: Sequence[Transfer]) -> dict[str, str]:
    """Return who made each value: of those who gave it, the one that had it from nobody."""
    had = {(one.key, one.target) for one in transfers}
    return {one.key: one.source for one in transfers if (one.key, one.source) not in had}


def by_hosts(transfers: Sequence[Transfer]) -> Traffic:
    """Return the traffic as if all was had from its owner; Dask takes a copy where the owner is busy."""
    owners, found = owners_of(transfers), Traffic()
    for one in transfers:
        found[get_address_host(owners[one.key]), get_address_host(one.target)] += one.num_bytes
    return found


def relays(transfers: Sequence[Transfer]) -> Counter[tuple[str, str]]:
    """Return how many workers of each other machine had each larger value from its owner's."""
    owners = owners_of(transfers)
    return Counter(
        (one.key, get_address_host(one.target))
        for one in transfers
        if one.num_bytes >= RELAYED_BYTES
        and get_address_host(owners[one.key]) != get_address_host(one.target)
    )


def simulated(array: mn.DistArray) -> Traffic:
    found = mn.simulate(array)
    assert len(found.traffic) == len(HOSTS)
    traffic = Counter(
        {
            (one, other): size
            for one, row in zip(HOSTS, found.traffic, strict=True)
            for other, size in zip(HOSTS, row, strict=True)
        }
    )
    return traffic + Counter({(one, one): size for one, size in zip(HOSTS, found.near_bytes, strict=True)})


# Programs are drawn: normal numbers in arrays of a few shapes, cut as is usual or as was drawn.

LENGTHS = (120, 300, 700)
PRODUCTS: dict[str, tuple[str, Callable[..., Any]]] = {  # the axes of each array, and what is made of them
    "X + Y": ("nm,nm", lambda xp, X, Y: X + Y),
    "X * 2 + Y.T": ("nm,mn", lambda xp, X, Y: X * 2 + Y.T),
    "X @ Y": ("nk,km", lambda xp, X, Y: X @ Y),
    "X.T @ Y": ("kn,km", lambda xp, X, Y: X.T @ Y),
    "X @ Y.T": ("nk,mk", lambda xp, X, Y: X @ Y.T),
    "X.T @ X": ("nm", lambda xp, X: X.T @ X),
    "X @ (Y @ v)": ("nk,km,m", lambda xp, X, Y, v: X @ (Y @ v)),
    "X - X.mean(0)": ("nm", lambda xp, X: X - X.mean(axis=0)),
    "einsum": ("anb,nbc", lambda xp, X, Y: xp.einsum("iab,abj->ij", X, Y)),
    "slices": ("nm,nm", lambda xp, X, Y: X[7:, :-5] + Y[:-7, 5:]),
}
ENDINGS: dict[str, Callable[[Any, Any], Any]] = {
    "": lambda xp, Z: Z,
    "exp, sum(0)": lambda xp, Z: xp.exp(Z / 1000).sum(axis=0),
    "squares, sum(-1)": lambda xp, Z: (Z * Z).sum(axis=-1),
    "max": lambda xp, Z: Z.max(),
}


class Given(NamedTuple):
    """An array that is drawn."""

    seed: int
    shape: tuple[int, ...]
    blocks: list[int] | None

    def array(self) -> mn.DistArray:
        return mn.random.default_rng(self.seed).normal(size=self.shape, blocks=self.blocks)


class Program(NamedTuple):
    """What is done with some arrays, in NumPy's words; another number, another program."""

    words: str
    given: Sequence[Given]
    run: Callable[..., Any]


def drawn(number: int) -> Program:
    rng = np.random.default_rng(number)
    lengths = {"a": 40, "b": 8, "c": 30, **{axis: int(rng.choice(LENGTHS)) for axis in "nkm"}}
    words = list(PRODUCTS)[number % len(PRODUCTS)]
    ending = list(ENDINGS)[int(rng.integers(len(ENDINGS)))]
    axes, product = PRODUCTS[words]
    given = []
    for one in axes.split(","):
        blocks = None if rng.random() < 0.4 else [int(rng.integers(1, 7)) for _ in one]
        given.append(Given(int(rng.integers(2**31)), tuple(lengths[axis] for axis in one), blocks))
    return Program(f"{words} {ending}", given, lambda xp, *arrays: ENDINGS[ending](xp, product(xp, *arrays)))


NUMBERS = [*range(10), *(pytest.param(number, marks=pytest.mark.slow) for number in range(10, 40))]


@pytest.mark.parametrize("number", NUMBERS)
def test_bytes_of_drawn_programs_are_those_that_were_counted(network: Network, number: int) -> None:
    program = drawn(number)
    # No name is left on what is given, which would stay on the workers and be made by tasks of its own.
    result = program.run(mn, *(one.array() for one in program.given))
    wanted = simulated(result)
    found = network.counted(result.persist)
    counted = by_hosts(found)
    assert sum(one.num_bytes for one in found) == sum(wanted.values()), program
    assert counted == wanted, program
    assert max(Counter((one.key, one.target) for one in found).values(), default=1) == 1
    assert max(relays(found).values(), default=1) == 1
    values = program.run(np, *(one.array().compute() for one in program.given))
    np.testing.assert_allclose(result.compute(), values, rtol=1e-9, atol=1e-9)


def test_most_programs_send_something(network: Network) -> None:
    programs = map(drawn, range(40))
    results = [one.run(mn, *(each.array() for each in one.given)) for one in programs]
    assert sum(sum(simulated(one).values()) > 10**4 for one in results) >= 30


# Loops: what their members send each other, and what Dask's workers had sent before.


def normal(seed: int, *shape: int, blocks: list[int] | None = None) -> mn.DistArray:
    return mn.random.default_rng(seed).normal(size=shape, blocks=blocks)


def ranks(n: int, iterations: int) -> mn.DistArray:
    """Return ranks of the nodes of a dense graph, cut by rows."""
    links = normal(1, n, n, blocks=[4, 1])
    found, _ = mn.iterate(
        lambda x: 0.85 * (links @ x) / n + 0.15 / n, mn.full(n, 1 / n), max_iterations=iterations
    )
    return found


def powers(n: int, iterations: int) -> mn.DistArray:
    """Return a vector multiplied by a symmetric matrix and divided by its length, again and again."""
    A = normal(2, n, n)
    both = A + A.T
    found, _ = mn.iterate(
        lambda x: (y := both @ x) / np.sqrt((y * y).sum()), mn.full(n, 1.0), max_iterations=iterations
    )
    return found


def descended(n: int, iterations: int) -> mn.DistArray:
    """Return weights of least squares after steps along the gradient."""
    X, y = normal(3, 20 * n, n), normal(4, 20 * n)
    found, _ = mn.iterate(lambda w: w - X.T @ (X @ w - y) / (40 * n), mn.zeros(n), max_iterations=iterations)
    return found


def contracted(n: int, iterations: int) -> mn.DistArray:
    """Return what a contraction makes; its condition never ends it."""
    A = normal(5, n, n) / n
    found, _ = mn.iterate(
        lambda x: A @ x / 2 + 1,
        mn.zeros(n),
        until=lambda old, new: abs(new - old).max() < 0.0,
        max_iterations=iterations,
    )
    return found


def squared(n: int, iterations: int) -> mn.DistArray:
    """Return a power of a matrix."""
    found, _ = mn.iterate(lambda A: A @ A * 0.5, normal(6, n, n) / n, max_iterations=iterations)
    return found


def mixed(n: int, iterations: int) -> mn.DistArray:
    """Return rows multiplied by a matrix in one block, which stays: it travels once."""
    M = normal(7, n, n, blocks=[1, 1]) / n
    found, _ = mn.iterate(lambda X: X @ M + 1, normal(8, 4 * n, n), max_iterations=iterations)
    return found


@pytest.mark.parametrize("iterations", [1, 2, 7])
@pytest.mark.parametrize("loop", [ranks, powers, descended, contracted, squared, mixed])
def test_bytes_of_loops_are_those_that_members_counted(
    network: Network, loop: Callable[[int, int], mn.DistArray], iterations: int
) -> None:
    result = loop(500 + iterations, iterations)
    wanted = simulated(result)
    by_dask = sum(one.num_bytes for one in network.counted(result.persist))
    assert network.loop_bytes > 0
    assert (by_dask > 0) == (loop is powers)
    assert by_dask + network.loop_bytes == sum(wanted.values())


@pytest.mark.parametrize(("step", "each"), [(1, 1), (3, 1), (3, 2)])
def test_bytes_of_sparse_loops_are_counted_or_more_than_that(network: Network, step: int, each: int) -> None:
    # Of a vector, members are sent the elements that their blocks touch, if these are few; simulated are as
    # many as a block has entries, which here are all in columns of their own, or two in each.
    n = 4_000
    columns = np.arange(0, n, step)
    columns = np.repeat(columns, each)
    rows = np.random.default_rng(step).integers(0, n // 8, columns.size) * 2 + np.arange(columns.size) % each
    where = np.concatenate([rows + part * n // 4 for part in range(4)]), np.tile(columns, 4)
    graph = sp.csr_array((np.full(where[0].size, 0.5), where), shape=(n, n))
    A = mn.asarray(graph, blocks=[[part * n // 4 for part in range(5)], None])
    result, _ = mn.iterate(lambda x: A @ x * 0.5 + 1, mn.full(n, 1.0), max_iterations=4)
    wanted = sum(simulated(result).values())
    by_dask = sum(one.num_bytes for one in network.counted(result.persist))
    assert network.loop_bytes > 0
    if each == 1:
        assert by_dask + network.loop_bytes == wanted
    else:
        assert by_dask + network.loop_bytes < 0.6 * wanted
