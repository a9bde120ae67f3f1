"""Twenty iterations of PageRank by iterate, against the best that others write, in one and two processes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import dask.array as da
import numpy as np
import scipy.sparse as sp
from harness.comparison import OURS, Bench, Claim, Comparison, Contender, Times, timed
from harness.dask_peer import Scheduler, product, schedulers, sparse_rows
from harness.graphblas_loops import PageRank
from harness.inputs import THREADS, rmat
from harness.loops import LoopWatch, bytes_touched, sampled_memory
from harness.sessions import PublicCall, public
from harness.threads import by_threads, graphblas_threads

import matnb as mn

ITERATIONS = 20
DAMPING = 0.85
PER_ITERATION = f"{ITERATIONS} iterations; a call's whole time is {ITERATIONS} times an iteration's"
# What matnb may take for each second of the best way in GraphBLAS or SciPy, and of dask.array, by scale.
TARGETS = {20: ("GraphBLAS", 0.7, 1 / 12), 16: ("SciPy", 1.5, 1 / 30)}
SMALL_SCALES = {20: 11, 16: 10}  # of a trial
PROCESSES_TARGET = 1.8
VECTORS, SHARE_OF_MATRIX = 5, 0.1  # what a run may add to memory


@dataclass(frozen=True)
class Graph:
    """The input of one size, as every contender needs it."""

    scale: int
    incoming: sp.csr_array
    degrees: np.ndarray

    @classmethod
    def of(cls, scale: int) -> Graph:
        """Make the graph; called where a session is current."""
        graph = rmat(scale)
        return cls(scale, sp.csr_array(graph.T), np.diff(graph.indptr))

    @property
    def share(self) -> np.ndarray:
        """The damping over the out-degree of each vertex, or 0."""
        return np.where(self.degrees > 0, DAMPING / np.maximum(self.degrees, 1), 0.0)

    @property
    def dangling(self) -> np.ndarray:
        """1 where no edge goes out."""
        return (self.degrees == 0).astype(float)

    def start(self, number: int) -> np.ndarray:
        """Return equal ranks, which differ between rounds by less than results are compared with."""
        return np.full(2**self.scale, (1 + number * 1e-15) / 2**self.scale)

    def jump(self, lost: Any) -> Any:
        """Return what each vertex gets besides what comes over edges."""
        return (lost * DAMPING + (1 - DAMPING)) / 2**self.scale


def ours(graph: Graph) -> tuple[Contender, PublicCall]:
    """Return matnb's public call, everything included, on a stored graph."""
    incoming = mn.random.rmat(scale=graph.scale, seed=1).T.persist()
    share, dangling = (mn.asarray(one).persist() for one in (graph.share, graph.dangling))

    def step(rank: mn.DistArray) -> Any:
        return incoming @ (rank * share) + graph.jump((rank * dangling).sum())

    def run(rank: mn.DistArray) -> np.ndarray:
        final, _ = mn.iterate(step, rank, max_iterations=ITERATIONS)
        return final.compute()

    return public(run, lambda number: mn.asarray(graph.start(number)).persist())


def scipy_loops(graph: Graph, judged: bool) -> list[Contender]:
    """Return the loop with SciPy in two writings: shares apart, and in the matrix."""
    share, dangling = graph.share, graph.dangling
    scaled = sp.csr_array(graph.incoming, dtype=float, copy=True)
    scaled.data = share[scaled.indices]

    def apart(rank: np.ndarray) -> np.ndarray:
        for _ in range(ITERATIONS):
            new = graph.incoming @ (rank * share)
            new += graph.jump(rank @ dangling)
            rank = new
        return rank

    def inside(rank: np.ndarray) -> np.ndarray:
        for _ in range(ITERATIONS):
            new = scaled @ rank
            new += graph.jump(rank @ dangling)
            rank = new
        return rank

    return [
        Contender("SciPy, 1 thread", apart, graph.start, judged=judged),
        Contender("SciPy, shares in the matrix, 1 thread", inside, graph.start, judged=judged),
    ]


def graphblas_loops(graph: Graph, judged: bool) -> list[Contender]:
    """Return GraphBLAS in all writings."""
    peer = PageRank(graph.incoming, graph.degrees, DAMPING, ITERATIONS)
    writings: dict[str, Callable[[np.ndarray], np.ndarray]] = {
        "as LAGraph": peer.lagraph,
        "lost by a product": peer.lost_by_product,
        "lost by a sparse product": peer.lost_by_sparse_product,
        "shares in the matrix": peer.scaled,
    }
    return [
        one
        for name, run in writings.items()
        for one in by_threads(
            Contender(f"GraphBLAS, {name}", run, graph.start, judged=judged), graphblas_threads
        )
    ]


def dask_loop(graph: Graph, scheduler: Scheduler) -> Contender:
    """Return the same loop over dask.array, with SciPy blocks and the vectors there already."""
    rows = sparse_rows(graph.incoming, scheduler)
    cuts = rows.chunks[:1]
    share, dangling = (
        scheduler.persist(da.from_array(one, chunks=cuts)) for one in (graph.share, graph.dangling)
    )

    def run(rank: da.Array) -> np.ndarray:
        for _ in range(ITERATIONS):
            lost = graph.jump((rank * dangling).sum())
            rank = product(rows, (rank * share).rechunk(-1)) + lost
        return np.asarray(scheduler.compute(rank))

    def start(number: int) -> da.Array:
        return scheduler.persist(da.from_array(graph.start(number), chunks=cuts))

    return Contender(scheduler.name, run, start, judged=False)


def added_memory(contender: Contender, graph: Graph) -> str:
    """Run once more while memory is sampled, and say how much more was held than is allowed."""
    given = contender.prepare(-1)
    with sampled_memory() as memory:
        contender.run(given)
    matrix = graph.incoming.indices.nbytes + graph.incoming.indptr.nbytes
    allowed = VECTORS * 8 * 2**graph.scale + SHARE_OF_MATRIX * matrix
    outcome = "holds" if memory.added_bytes <= allowed else "missed"
    return (
        f"{memory.added_bytes / 1e6:.1f} MB added by a run, sampled; allowed are {VECTORS} vectors and "
        f"{SHARE_OF_MATRIX:.0%} of the matrix's pattern, {allowed / 1e6:.1f} MB: {outcome}"
    )


def compare(bench: Bench, full_scale: int, dask_schedulers: Sequence[Scheduler]) -> None:
    judged, target, dask_target = TARGETS[full_scale]
    scale = bench.sized(full_scale, SMALL_SCALES[full_scale])
    graph = Graph.of(scale)
    watch = LoopWatch()
    mine, call = ours(graph)
    peers = [
        *scipy_loops(graph, judged == "SciPy"),
        *graphblas_loops(graph, judged == "GraphBLAS"),
        *(dask_loop(graph, one) for one in dask_schedulers),
    ]
    work = f"R-MAT 2^{scale}, {graph.incoming.nnz:,} entries, A.T stored, {PER_ITERATION}"
    found = bench.compare(
        Claim(f"PageRank by iterate, 2^{scale}", work, target),
        [mine, *peers],
        lambda: (*call.notes(), *watch.notes(ITERATIONS), added_memory(mine, graph)),
    )
    names = [one.name for one in dask_schedulers if one.name in found.seconds]
    if not names:  # matnb was timed alone
        return
    seconds, cpu = (
        {name: part[name] for name in (OURS, *names)} for part in (found.seconds, found.cpu_seconds)
    )
    claim = Claim(f"PageRank by iterate against dask.array, 2^{scale}", work, dask_target)
    bench.publish(Comparison(claim, seconds, names, cpu_seconds=cpu))


def seconds_in(bench: Bench, scale: int, processes: int) -> tuple[Times, np.ndarray, Sequence[str]]:
    """Return times, ranks and notes of a session of so many processes, with two threads in all."""
    with mn.start(workers=processes, threads=THREADS // processes, processes=processes > 1):
        graph = Graph.of(scale)
        watch = LoopWatch()
        mine, call = ours(graph)
        layout = mn.random.rmat(scale=scale, seed=1).T.layout
        assert layout is not None  # the contender has stored it
        ranks = mine.run(mine.prepare(0))
        times = timed([mine], bench.rounds)
        touched = bytes_touched(graph.incoming, layout)
        return times, ranks, (*call.notes(), *watch.notes(ITERATIONS, touched))


def compare_processes(bench: Bench, scale: int) -> None:
    one, expected, _ = seconds_in(bench, scale, 1)
    two, found, notes = seconds_in(bench, scale, 2)
    if not np.array_equal(expected, found):
        raise SystemExit("one and two processes give different bits: nothing is recorded")
    peer = "matnb, 1 process x 2 threads"
    work = f"R-MAT 2^{scale}, A.T stored, 2 processes x 1 thread; {PER_ITERATION}; timed one after the other"
    claim = Claim(f"PageRank by iterate, 2 processes, 2^{scale}", work, PROCESSES_TARGET)
    wall, cpu = (
        {OURS: mine[OURS], peer: other[OURS]} for mine, other in ((two.wall, one.wall), (two.cpu, one.cpu))
    )
    bench.publish(Comparison(claim, wall, [peer], notes, cpu))


def main() -> None:
    bench = Bench(__doc__)
    with mn.start(threads=THREADS), schedulers() as both:
        for scale in TARGETS:
            compare(bench, scale, both)
    compare_processes(bench, bench.sized(max(TARGETS), min(SMALL_SCALES.values())))


if __name__ == "__main__":
    main()
