"""What a call takes: the growth of this process while it runs, and what was projected before it ran.

``python -m laws.sampling [--power-law] SIZES NUMBER...`` samples those of the memory cases at sizes joined by
commas, in a process of their own, and writes a line of JSON for each.
"""

from __future__ import annotations

import ctypes
import gc
import json
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import scipy.sparse as sp

import matnb as mn
from laws.memory_cases import CASES, MemoryCase, graph, power_law
from matnb.blocks.kernels.compiled import compile_always
from matnb.errors import TooLargeError
from matnb.events import Event, RunStarted

SIZES = (16 * 2**20, 64 * 2**20)  # of a vector
LIMIT = "2.8GB"
_WARM_BYTES = 2**18
_TESTS = Path(__file__).parents[1]
_PROC = Path("/proc/self")
MIB = 2**20
_PAUSE_SECONDS = 0.03
_STEADY = 4  # pauses in which the process did not shrink


@dataclass(frozen=True)
class Sample:
    """Bytes: what a call was projected to take at most, and by how much the process grew."""

    projected: int
    sampled: int

    @property
    def ratio(self) -> float:
        """How much of what is projected there was; infinity where nothing was."""
        return self.projected / self.sampled if self.sampled else float("inf")


@dataclass(frozen=True)
class Samples:
    """What a case takes at each size; and where it reads a graph, of one with a steeper power law.

    ``power_law`` is None where that is refused before it runs.
    """

    sizes: tuple[Sample, ...]
    reads_graph: bool = False
    power_law: Sample | None = None

    @property
    def every(self) -> tuple[Sample, ...]:
        """All samples."""
        return (*self.sizes, *([] if self.power_law is None else [self.power_law]))


def sampled_apart(
    numbers: Sequence[int], sizes: Sequence[int] = SIZES, power_law: bool = False
) -> dict[int, Samples]:
    """Return for cases, by their numbers, what each takes at each of the sizes, in another process.

    Parameters
    ----------
    power_law
        Whether what reads a graph is also sampled on one of a steeper power law, at the last size.
    """
    settings = {
        "PYTHONPATH": os.pathsep.join((str(_TESTS.parent), str(_TESTS))),
        # What is freed goes back to the system at once.
        "MALLOC_MMAP_THRESHOLD_": "65536",
        "MALLOC_ARENA_MAX": "2",
    }
    done = subprocess.run(
        [
            *(sys.executable, "-m", "laws.sampling", *(["--power-law"] if power_law else [])),
            *(",".join(map(str, sizes)), *map(str, numbers)),
        ],
        env={**os.environ, **settings},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"sampling ended with {done.returncode}: {done.stderr[-4000:]}")
    lines = map(json.loads, done.stdout.splitlines())
    return {
        line["case"]: Samples(
            tuple(Sample(*pair) for pair in line["samples"]),
            "power_law" in line,
            Sample(*line["power_law"]) if line.get("power_law") else None,
        )
        for line in lines
    }


def main(sizes: Sequence[int], numbers: Sequence[int], with_power_law: bool) -> None:
    """Sample cases at some sizes, and write what each takes."""
    warnings.simplefilter("ignore")  # of values that do not matter here, such as logarithms of negative ones
    compile_always()  # so that the first, small call starts Numba and compiles, and what is sampled does not
    cases = [(number, CASES[number]) for number in numbers]
    with mn.start(workers=1, threads=2, memory_limit=LIMIT, memo="off") as session:
        for number, case in cases:
            pairs = []
            for size in (_WARM_BYTES, *sizes):  # the first so that kernels are compiled
                given = tuple(_given(maker, int(size * case.share)) for maker in case.makers)
                sample = sampled(session, partial(case.call, *given))
                pairs.append((sample.projected, sample.sampled))
            line = {"case": number, "samples": pairs[1:]}
            if with_power_law and graph in case.makers:
                line["power_law"] = _of_power_law(session, case, sizes[-1])
            print(json.dumps(line), flush=True)
    mn.stop()


def _of_power_law(session: mn.session.Session, case: MemoryCase, size: int) -> tuple[int, int] | None:
    # What a case takes where few rows and columns have most entries; None where it is refused.
    makers = (power_law if maker is graph else maker for maker in case.makers)
    given = tuple(_given(maker, int(size * case.share)) for maker in makers)
    try:
        sample = sampled(session, partial(case.call, *given))
    except TooLargeError:
        return None
    return sample.projected, sample.sampled


@lru_cache(maxsize=8)
def _given(maker: Callable[[int], Any], size: int) -> Any:
    return maker(size)


def sampled(session: mn.session.Session, call: Callable[[], Any]) -> Sample:
    """Return what a call takes.

    It returns arrays or tuples of them. Those on the workers are made and kept there; what came into this
    process was asked for, so it counts as projected. What is projected of runs is the most of any of them, on
    top of what was stored meanwhile.
    """
    _settle()
    begin = _stored_bytes()
    projections = [0]

    def listen(event: Event) -> None:
        if isinstance(event, RunStarted):
            projections.append(event.projected_bytes + _stored_bytes() - begin)

    (_PROC / "clear_refs").write_text("5")  # the high-water mark begins anew
    before = _status("VmRSS")
    unsubscribe = session.subscribe(listen)
    made = call()
    kept = [one for one in _each(made) if isinstance(one, mn.DistArray)]
    if kept:
        session.persist([one._expression for one in kept])
    grown = _status("VmHWM") - before
    unsubscribe()
    return Sample(max(projections) + sum(map(_brought_bytes, _each(made))), max(0, grown))


def _each(made: Any) -> Iterable[Any]:
    if isinstance(made, tuple | list):
        for one in made:
            yield from _each(one)
    else:
        yield made


def _brought_bytes(made: Any) -> int:
    if isinstance(made, sp.csr_array):
        return made.data.nbytes + made.indices.nbytes + made.indptr.nbytes
    return 0 if isinstance(made, mn.DistArray) else getattr(made, "nbytes", 0)


def _stored_bytes() -> int:
    return sum(one.num_bytes for one in mn.memo.entries())


def _settle() -> None:
    # What went is gone: workers let go of blocks a little later, and C's allocator returns what it has free
    # to the system, so that what is taken again counts.
    mn.memo.clear()
    gc.collect()
    least, steady = _status("VmRSS"), 0
    while steady < _STEADY:
        time.sleep(_PAUSE_SECONDS)
        ctypes.CDLL(None).malloc_trim(0)
        now = _status("VmRSS")
        steady = steady + 1 if now > least - MIB else 0
        least = min(least, now)


def _status(name: str) -> int:
    for line in (_PROC / "status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) * 1024
    raise LookupError(name)


if __name__ == "__main__":
    given = [one for one in sys.argv[1:] if one != "--power-law"]
    main(
        *([int(one) for one in each] for each in (given[0].split(","), given[1:])), "--power-law" in sys.argv
    )
