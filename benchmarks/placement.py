"""Where tasks run: bytes that travel and seconds, beside dask.array, and on simulated machines.

The first table is of four worker processes, started once for matnb and once for dask.array, which work in
turn on the same values: bytes are what the workers wrote to each other by their own logs, and for matnb also
what the members of its loops sent each other. The second one is of machines that are not here: what the
simulator says of each expression, beside what it must be. Simulated figures measure no machine.
"""

from __future__ import annotations

import itertools
import math
import statistics
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import dask
import dask.array as da
import numpy as np
from distributed import Client, LocalCluster, wait
from harness.comparison import OURS, Bench, Claim, Contender
from harness.inputs import THREADS
from harness.record import RESULTS
from harness.sessions import public
from harness.statistics import duration

import matnb as mn
from matnb.events import Event, LoopFinished
from matnb.pictures.quantities import bytes_text
from matnb.program import place
from matnb.simulation.simulate import simulated as simulated_on

WORKERS = 4
WORKER_THREADS = max(1, min(2, THREADS // WORKERS))
ROWS, COLUMNS, SMALL_ROWS, SMALL_COLUMNS = 400_000, 64, 4_000, 16
SIDE, SMALL_SIDE = 4_000, 200  # of square matrices
LENGTHS, SMALL_LENGTHS = (2_000, 100, 60), (40, 20, 12)  # of a tensor's axes
WIDTH = 16  # of the thin factor of a chain
DASK = "dask.array"
TOLERANCE = 1e-7  # sums are taken in other orders

NODES, NODE_WORKERS = 16, 32


# Four worker processes, matnb's and dask.array's in turn.


class Traffic:
    """Counts the bytes that the workers of one cluster wrote to each other, by what was done.

    Parameters
    ----------
    client
        Of the cluster.
    """

    def __init__(self, client: Client) -> None:
        self._client = client
        self._by_loops = 0
        self.taken: dict[str, list[int]] = defaultdict(list)

    def listen(self, event: Event) -> None:
        """Take what the members of a loop sent each other, which no log of Dask's has."""
        if isinstance(event, LoopFinished):
            self._by_loops += event.sent_bytes

    def begin(self) -> None:
        """Forget what travelled until now."""
        self._client.run(_forget_transfers)
        self._by_loops = 0

    def end(self, name: str) -> None:
        """Note what travelled since it began."""
        workers = list(self._client.scheduler_info(n_workers=-1)["workers"])
        found = self._client.run(_sent_bytes, workers)
        self.taken[name].append(sum(found.values()) + self._by_loops)

    def median(self, name: str) -> float:
        """Return the bytes of a usual round, without the first, which checks values."""
        return statistics.median(self.taken[name][1:] or self.taken[name])


def _forget_transfers(dask_worker: Any) -> None:
    dask_worker.transfer_outgoing_log.clear()


def _sent_bytes(workers: list[str], dask_worker: Any) -> int:
    # As they were written: the log of what comes in has the sizes that Dask guesses of objects, and it takes
    # matnb's blocks for small ones.
    return sum(one["compressed"] for one in dask_worker.transfer_outgoing_log if one["who"] in workers)


@dataclass(frozen=True)
class Work:
    """One expression, written alike for matnb and for dask.array.

    Attributes
    ----------
    name, words
        For the tables.
    given
        Makes the values that are stored before.
    blocks
        Into how many blocks each value is cut along each axis.
    run
        Takes the module of functions and the stored arrays, and returns the lazy result.
    """

    name: str
    words: str
    given: Callable[[Bench, np.random.Generator], Sequence[np.ndarray]]
    blocks: Sequence[tuple[int, ...]]
    run: Callable[..., Any]


def _tall(bench: Bench, rng: np.random.Generator) -> np.ndarray:
    return rng.random((bench.sized(ROWS, SMALL_ROWS), bench.sized(COLUMNS, SMALL_COLUMNS)))


def _squares(bench: Bench, rng: np.random.Generator) -> list[np.ndarray]:
    side = bench.sized(SIDE, SMALL_SIDE)
    return [rng.random((side, side)) for _ in range(2)]


def _tensors(bench: Bench, rng: np.random.Generator) -> list[np.ndarray]:
    a, b, c = SMALL_LENGTHS if bench.is_small else LENGTHS
    return [rng.random((a, b, c)), rng.random((b, c, WIDTH))]


def _regression(bench: Bench, rng: np.random.Generator) -> list[np.ndarray]:
    X = _tall(bench, rng) - 0.5
    w = rng.random(X.shape[1])
    return [X, (X @ w > 0).astype(float), w]


def newton(xp: Any, X: Any, y: Any, w: Any) -> Any:
    """Return the gradient and the Hessian of logistic regression at ``w``, side by side."""
    p = 1 / (1 + xp.exp(-(X @ w)))
    gradient = X.T @ (p - y)
    hessian = X.T @ (X * (p * (1 - p))[:, None])
    return xp.concatenate([hessian, gradient[:, None]], axis=1)


def chain(xp: Any, X: Any, W: Any) -> Any:
    """Return the sums of the columns of X times its Gram matrix times a thin factor."""
    return (X @ ((X.T @ X) @ W)).sum(axis=0)


WORKS = (
    Work("gram", "X.T @ X", lambda bench, rng: [_tall(bench, rng)], [(8, 1)], lambda xp, X: X.T @ X),
    Work("sum of two cuts", "X + Y, rows and columns", _squares, [(8, 1), (1, 8)], lambda xp, X, Y: X + Y),
    Work(
        "tensordot",
        "tensordot over two axes",
        _tensors,
        [(8, 1, 1), (4, 1, 1)],
        lambda xp, T, S: xp.tensordot(T, S, axes=([1, 2], [0, 1])),
    ),
    Work("newton", "a Newton step of logistic regression", _regression, [(8, 1), (8,), (1,)], newton),
    Work(
        "chain",
        "X @ ((X.T @ X) @ W)",
        lambda bench, rng: [X := _tall(bench, rng), rng.random((X.shape[1], WIDTH))],
        [(8, 1), (1, 1)],
        chain,
    ),
)


@contextmanager
def dask_client() -> Iterator[Client]:
    """Give a client of as many worker processes as matnb has."""
    with (
        warnings.catch_warnings(),
        LocalCluster(
            n_workers=WORKERS,
            threads_per_worker=WORKER_THREADS,
            processes=True,
            memory_limit=0,
            dashboard_address=None,
        ) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        warnings.filterwarnings("ignore", message="Sending large graph", category=UserWarning)
        yield client


def _stored_by_dask(client: Client, values: np.ndarray, counts: tuple[int, ...]) -> da.Array:
    # The chunks are on the workers, where Dask has put them, before anything is timed.
    chunks = tuple(-(-length // count) for length, count in zip(values.shape, counts, strict=True))
    return _persisted(client, da.from_array(values, chunks=chunks))


def _persisted(client: Client, made: da.Array) -> da.Array:
    (kept,) = dask.persist(made, scheduler=client)
    with client.as_current():
        wait(kept)
    return kept


def compared(bench: Bench, work: Work, ours: Traffic, client: Client, theirs: Traffic) -> None:
    """Time one expression in turn, and note what travelled in each round."""
    begun = {OURS: False, DASK: False}

    def prepare(name: str, traffic: Traffic, store: Callable[..., Any], number: int) -> list[Any]:
        # Workers keep what they received as long as it is needed, so each round has arrays of its own.
        if begun[name]:
            traffic.end(work.name)
        begun[name] = True
        values = work.given(bench, np.random.default_rng(number))
        stored = [store(one, cut) for one, cut in zip(values, work.blocks, strict=True)]
        traffic.begin()
        return stored

    contender, _ = public(
        lambda stored: work.run(mn, *stored).persist(),
        partial(prepare, OURS, ours, lambda values, cut: mn.asarray(values, blocks=list(cut)).persist()),
        lambda made: np.asarray(made.compute()),
    )
    peer = Contender(
        DASK,
        lambda stored: _persisted(client, work.run(da, *stored)),
        partial(prepare, DASK, theirs, partial(_stored_by_dask, client)),
        lambda made: made.compute(scheduler=client),
        tolerance=TOLERANCE,
    )

    def notes() -> list[str]:
        ours.end(work.name)
        theirs.end(work.name)
        mine, other = ours.median(work.name), theirs.median(work.name)
        ratio = f", ratio {mine / other:.2f}" if other else ""
        return [f"bytes between workers: {bytes_text(round(mine))}, {DASK} {bytes_text(round(other))}{ratio}"]

    given = work.given(bench, np.random.default_rng(0))
    shapes = ", ".join(" x ".join(map(str, one.shape)) for one in given)
    del given
    claim = Claim(
        f"placement: {work.name}",
        f"{work.words}, of {shapes}, over {WORKERS} processes of {WORKER_THREADS} threads",
    )
    found = bench.compare(claim, [contender, peer], notes)
    TABLE.append(
        (work.words, found.seconds, found.cpu_seconds, ours.median(work.name), theirs.median(work.name))
    )


Seconds = Mapping[str, Sequence[float]]
TABLE: list[tuple[str, Seconds, Seconds, float, float]] = []


def measured_table() -> str:
    """Return what was found as a table: bytes, wall and processor seconds of both, and their ratios."""
    head = f"{'on 4 worker processes':<40}{'bytes':>12}{DASK:>12}{'ratio':>7}"
    lines = [head + f"{'seconds':>12}{DASK:>12}{'ratio':>7}{'CPU':>12}{DASK:>12}{'ratio':>7}"]
    for words, seconds, cpu, mine, other in TABLE:
        line = (
            f"{words:<40}{bytes_text(round(mine)):>12}{bytes_text(round(other)):>12}{_ratio(mine, other):>7}"
        )
        for times in (seconds, cpu):
            pair = [statistics.median(times[name]) for name in (OURS, DASK) if name in times]
            if len(pair) == 2:
                line += f"{duration(pair[0]):>12}{duration(pair[1]):>12}{_ratio(*pair):>7}"
        lines.append(line)
    return "\n".join(lines)


def _ratio(one: float, other: float) -> str:
    return f"{one / other:.2f}" if other else "-"


# Sixteen machines that are simulated.


@dataclass(frozen=True)
class Simulated:
    """An expression on simulated machines.

    Attributes
    ----------
    words
        For the table.
    makes
        Returns the lazy result; nothing is computed.
    must
        What its bytes are held against, in words.
    reference, most
        The bytes between machines, all together, that it is held against, and how many times as many it may
        send.
    """

    words: str
    makes: Callable[[], mn.DistArray]
    must: str
    reference: float
    most: float = 1.0


@dataclass
class Predictions:
    """Asks the simulator, and collects rows of a table."""

    cluster: Any
    lines: list[str] = field(default_factory=list)

    def of(self, expression: mn.DistArray, **options: Any) -> Any:
        """Return what the simulator says of an expression, with other options of the workers."""
        workers = replace(self.cluster.laid_over(), **options)
        return simulated_on([expression.expression], self.cluster, workers)

    def row(self, one: Simulated) -> None:
        """Add a row."""
        found = self.of(one.makes())
        sent, peak = _total(found.sent_bytes), _largest(found.peak_bytes)
        self.line(
            one.words, sent, peak, found.makespan_seconds, _verdict(sent, one.reference, one.most, one.must)
        )

    def line(self, words: str, sent: float, peak: float | None, seconds: float | None, must: str) -> None:
        """Add a line: bytes that are sent, the peak of a machine, seconds, and what they are held against."""
        shown = (
            "-" if peak is None else bytes_text(round(peak)),
            "-" if seconds is None else duration(seconds),
        )
        self.lines.append(f"{words:<44}{bytes_text(round(sent)):>11}{shown[0]:>11}{shown[1]:>11}  {must}")


def _verdict(value: float, reference: float, most: float, words: str) -> str:
    # The ratio as it is, which 1.10 for 1.101 would hide.
    ratio = f"{value / reference:.3f}" if reference else "-"
    held = "kept" if value <= most * reference else "MISSED"
    return f"{ratio} of {bytes_text(round(reference))}, {words}; at most {most:g}: {held}"


def _parts(found: Any) -> list[float]:
    return list(found.values()) if isinstance(found, Mapping) else list(np.atleast_1d(found))


def _total(found: Any) -> float:
    return float(sum(_parts(found)))


def _largest(found: Any) -> float:
    return float(max(_parts(found)))


def _random(shape: tuple[int, ...], seed: int = 0, blocks: Any = "auto") -> mn.DistArray:
    return mn.random.default_rng(seed).random(shape, blocks=blocks)


@contextmanager
def _dealt_out() -> Iterator[None]:
    # Blocks dealt to machines in turn, as NumS does, and to the workers of each: what matnb does not do.
    kept = place.spread

    def dealt(count: int, workers: Sequence[int]) -> tuple[int, ...]:
        each = len(workers) // NODES
        return tuple(workers[at % NODES * each + at // NODES % each] for at in range(count))

    place.spread = dealt
    try:
        yield
    finally:
        place.spread = kept


def _tall_products(rows: int, width: int) -> Simulated:
    # Each machine's share is added in a tree: one block less than there are machines travels.
    return Simulated(
        "X.T @ Y, tall and row-cut",
        lambda: _random((rows, width)).T @ _random((rows, width), 1),
        f"{NODES - 1} blocks of {width} x {width}",
        (NODES - 1) * width * width * 8,
    )


def _newton_rows(asked: Predictions, rows: int, width: int) -> None:
    def step() -> mn.DistArray:
        X, y = _random((rows, width)), _random((rows,), 1)
        return newton(mn, X, y, mn.zeros(width))

    with _dealt_out():
        dealt = asked.of(step())
    words = f"logistic Newton, {bytes_text(rows * width * 8)}"
    asked.row(Simulated(words, step, "blocks dealt out in turn", _total(dealt.sent_bytes), 0.5))
    # No machine can hold less than its share of X, so two even ways of dealing blocks out have like peaks.
    peak, other = _largest(asked.of(step()).peak_bytes), _largest(dealt.peak_bytes)
    share = bytes_text(rows * width * 8 // NODES)
    must = _verdict(peak, other, 0.3, f"the peak of those (a machine's share of X is {share})")
    asked.lines.append(f"{f'{words}, peak':<44}{'':>11}{bytes_text(round(peak)):>11}{'':>11}  {must}")


def _square_product(side: int) -> Simulated:
    # Appendix A.5 of NumS: each of k machines has a block of side**2 / k elements of each operand, and reads
    # the others of its row of the one and of its column of the other.
    root = math.isqrt(NODES)
    bound = 2 * (root - 1) * side * side * 8
    return Simulated(
        "matmul, square",
        lambda: _random((side, side)) @ _random((side, side), 1),
        "the bound of appendix A",
        bound,
        1.2,
    )


def tensor_grids() -> Iterator[tuple[int, int, int]]:
    """Give every grid of the machines over three axes."""
    sizes = [one for one in range(1, NODES + 1) if NODES % one == 0]
    for a, b in itertools.product(sizes, sizes):
        if NODES % (a * b) == 0:
            yield a, b, NODES // (a * b)


def mttkrp(side: int, rank: int) -> mn.DistArray:
    """Return the product of a tensor and two factors that alternating least squares needs for the third."""
    tensor = _random((side, side, side))
    return mn.einsum("ijk,jf,kf->if", tensor, _random((side, rank), 1), _random((side, rank), 2))


def ranked(scale: int, blocks: Any, transposed: bool, iterations: int) -> mn.DistArray:
    """Return iterations of PageRank over a generated graph, or over the graph with its links turned round.

    That other one has its matrix as it was cut, where a transpose is cut in rows whatever was asked for.
    """
    graph = mn.random.rmat(scale=scale, seed=1, blocks=blocks)
    links = graph.T if transposed else graph
    share = 1 / np.maximum(graph.sum(axis=1 if transposed else 0), 1)
    size = graph.shape[0]
    found, _ = mn.iterate(
        lambda rank: 0.85 * (links @ (rank * share)) + 0.15 / size,
        mn.full(size, 1 / size),
        max_iterations=iterations,
    )
    return found


def _ranking_rows(asked: Predictions, scale: int) -> None:
    # An iteration is what ten more of them add: what it takes to generate the graph is no part of it.
    vector, across = 2**scale * 8, math.isqrt(NODES)
    tall, wide = NODES, NODE_WORKERS  # a block for each worker
    cuts: dict[str, tuple[Any, bool]] = {
        "as matnb cuts it": ("auto", False),
        f"grid {tall} x {wide}": ((tall, wide), False),
        f"rows {NODES} x 1": ((NODES, 1), False),  # a block for each machine
        f"grid {across} x {across}": ((across, across), False),
        f"graph.T of rows {NODES} x 1": ((NODES, 1), True),
    }
    sent: dict[str, float] = {}
    for words, (blocks, transposed) in cuts.items():
        few, many = (asked.of(ranked(scale, blocks, transposed, count)) for count in (10, 20))
        sent[words] = (_total(many.sent_bytes) - _total(few.sent_bytes)) / 10
        seconds = (many.makespan_seconds - few.makespan_seconds) / 10
        must = f"{sent[words] / vector:.2f} vectors of {bytes_text(vector)} an iteration"
        asked.line(f"PageRank 2^{scale}, {words}", sent[words], None, seconds, must)
    # Nothing chooses: a matrix keeps the cuts that it has, which are rows unless others were asked for.
    own, grid = (sent[words] for words in list(cuts)[:2])
    must = _verdict(own, min(own, grid), 1.0, "the fewer of the first two")
    asked.line(f"PageRank 2^{scale}, rows or grid", own, None, None, must)


def simulated(bench: Bench) -> str:
    """Return the table of simulated machines."""
    shrink = 2**10 if bench.is_small else 1
    asked = Predictions(
        mn.Cluster(
            nodes=NODES, workers=NODE_WORKERS, memory="512GB", bandwidth="20Gbps", latency="50us", speeds=None
        )
    )
    side = bench.sized(2**16, 2**10)
    asked.row(
        Simulated(
            "X + Y, equal grids", lambda: _random((side, side)) + _random((side, side), 1), "nothing", 0
        )
    )
    asked.row(_tall_products(2**29 // shrink, 64))
    _newton_rows(asked, 2**26 // shrink, 256)
    product = _square_product(side)
    asked.row(product)
    for way, words in (("owners", "where the largest operand is"), ("turns", "on all workers in turn")):
        found = asked.of(product.makes(), placing=way)
        sent, peak = _total(found.sent_bytes), _largest(found.peak_bytes)
        must = f"{sent / product.reference:.3f} of the bound; parts {words}, for information"
        asked.line(f"matmul, square, by {way}", sent, peak, found.makespan_seconds, must)
    long, rank = bench.sized(8_000, 80), 100  # 8,000 cubed is 4 TB
    tried = {grid: _total(asked.of(mttkrp(long, rank), node_grid=grid).sent_bytes) for grid in tensor_grids()}
    best = min(tried, key=tried.__getitem__)
    words = f"the best of {len(tried)} grids, {best}"
    asked.row(
        Simulated(f"MTTKRP, {bytes_text(long**3 * 8)}", lambda: mttkrp(long, rank), words, tried[best], 1.1)
    )
    _ranking_rows(asked, bench.sized(26, 12))
    head = f"{'on 16 x 32, simulated':<44}{'sent':>11}{'peak':>11}{'makespan':>11}  bytes are, and must be"
    return "\n".join([head, *asked.lines])


def main() -> None:
    bench = Bench(__doc__)
    with (
        dask_client() as client,
        mn.start(workers=WORKERS, threads=WORKER_THREADS, processes=True) as session,
    ):
        ours, theirs = Traffic(session.cluster.client), Traffic(client)
        session.subscribe(ours.listen)
        for work in WORKS:
            compared(bench, work, ours, client, theirs)
    mn.stop()
    print(measured_table(), flush=True)
    table = simulated(bench)
    print(table, flush=True)
    if not bench.is_small:
        RESULTS.with_name("simulated_placement.txt").write_text(f"{table}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
