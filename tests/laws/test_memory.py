"""What a run takes is at most what it was projected to take; ``docs/memory.md`` says how much that is.

``python tests/laws/test_memory.py`` writes the page anew; with names of cases, their rows alone.
"""

from __future__ import annotations

import platform
import re
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import scipy
from test_coverage import OPERATORS, found, names

from laws.memory_cases import CASES
from laws.sampling import LIMIT, MIB, SIZES, Samples, sampled_apart

PAGE = Path(__file__).parents[2] / "docs" / "memory.md"
# The law is for arrays of any size; at these it is held more strictly than by the 64 MB that it allows.
TOLERANCE = 40 * MIB
LARGER = SIZES[-1:]  # what is within it of the other size, which the page shows, says little
# What is run in each `make test`: one of each way in which memory is taken.
FAST = (
    "add", "random", "normal", "astype", "sort", "concatenate", "cumsum", "linalg.inv", "sparse @ sparse",
    "sparse + sparse", "loop, sparse sums", "compute", "i0",
)  # fmt: skip
# Why a name of docs/coverage.md has no case; that of an operator is its function's.
WITHOUT = {
    "attributes": "told by the handle",
    "Constants": "a number",
    "Graphs: ": "written on what has its case",
    "Linear algebra: ": "written on what has its case",
    "Learning: ": "written on what has its case",
    "Nested arrays": "tests/nested/test_travel.py bounds what each task has",
    "Sources of batches": "a batch is an array that is there",
    "Data types": "no array",
    "Data type functions": "no array",
    "Inspection": "no array",
    "Fourier transform extension (optional)": "not there",
}
ALONE = {
    "__array_namespace__": "no array",
    "__dlpack__": "np.asarray has its case",
    "__dlpack_device__": "no array",
    "to_device": "the array itself",
    "may_share_memory": "no array",
    "shares_memory": "no array",
    "fromiter": "made by NumPy in this process and given as by asarray",
    "frombuffer": "made by NumPy in this process and given as by asarray",
    "loadtxt": "made by NumPy in this process and given as by asarray",
    "semiring": "no array",
    "DistArray.count_nonzero": "np.count_nonzero has its case",
    "load": "readers have a law of their own",
    "save": "readers have a law of their own",
    "splits": "no array",
    "spy": "a picture: what it counts runs as an expression of its own",
    "plot": "a picture: what it looks for runs as expressions of its own",
    "table": "columns, each of which comes as by asarray",
}


def test_every_operation_has_a_case_or_a_reason() -> None:
    cases = {case.name for case in CASES}
    assert len(cases) == len(CASES), "names are used once"
    alike = {id(found(case)) for case in cases if re.fullmatch(r"[\w.]+", case) and _is_name(case)}
    lacking = [
        name
        for section, name in names()
        if name not in cases
        and name not in ALONE
        and not any(words in section for words in WITHOUT if name != "astype")
        and id(found(name)) not in alike
        and name not in OPERATORS - {"__getitem__", "__setitem__"}
        and name not in ("T", "mT")
    ]
    assert not lacking
    assert not cases.intersection(ALONE)


def _is_name(case: str) -> bool:
    return any(case == name for _, name in names())


def test_what_runs_take_is_projected() -> None:
    check(sampled_apart([number for number, case in enumerate(CASES) if case.name in FAST], LARGER))


@pytest.mark.slow
def test_what_every_operation_takes_is_projected_and_on_the_page() -> None:
    check(all_sampled(LARGER))
    written = re.findall(r"^\| `(.+?)` \|", PAGE.read_text(), re.MULTILINE)
    assert written == [case.name for case in CASES], "run python tests/laws/test_memory.py"


def check(samples: dict[int, Samples]) -> None:
    """Check the law."""
    over = [
        f"{CASES[number].name}: projected {one.projected / MIB:.0f} MiB, sampled {one.sampled / MIB:.0f} MiB"
        for number, each in samples.items()
        for one in each.every
        if one.sampled > one.projected + TOLERANCE
    ]
    assert not over, "\n".join(over)


def all_sampled(sizes: Sequence[int] = SIZES, numbers: Sequence[int] = ()) -> dict[int, Samples]:
    """Return the samples of all cases, or of some; a process does some, so that none becomes old."""
    every: dict[int, Samples] = {}
    wanted = numbers or range(len(CASES))
    parts = [wanted[begin : begin + 60] for begin in range(0, len(wanted), 60)]
    with ThreadPoolExecutor(2) as pool:
        for each in pool.map(partial(sampled_apart, sizes=sizes, power_law=True), parts):
            every |= each
    return every


def page(samples: dict[int, Samples], before: str = "") -> str:
    """Return the page, with the rows of another one where there are no samples."""
    rows = dict(re.findall(r"^(\| `(?:.+?)` )(\|.*)$", before, re.MULTILINE))
    sizes = " and ".join(f"{size // MIB} MiB" for size in SIZES)
    versions = f"Python {platform.python_version()}, NumPy {np.__version__}, SciPy {scipy.__version__}"
    lines = [
        "# Memory of operations: projected and sampled",
        "",
        *INTRODUCTION.format(sizes=sizes, limit=LIMIT).strip().splitlines(),
        "",
        f"{time.strftime('%Y-%m-%d')}; {platform.system()} {platform.machine()}; {versions}. MiB.",
        "",
        *REASONS.strip().splitlines(),
        "",
        "| operation | projected | sampled | projected, larger | sampled, larger | ratio "
        "| projected, power law | sampled, power law |",
        "|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for number, case in enumerate(CASES):
        if number not in samples:
            row = rows.get(f"| `{case.name}` ", "| | | | | | | |")
            lines.append(f"| `{case.name}` {row}")
            continue
        small, large = samples[number].sizes
        ratio = f"{large.ratio:.2f}" if large.sampled > 4 * MIB else ""
        figures = [f"{one / MIB:.0f}" for each in (small, large) for one in (each.projected, each.sampled)]
        law = _power_law_figures(samples[number])
        lines.append(f"| `{case.name}` | {' | '.join(figures)} | {ratio} | {law} |")
    return "\n".join(lines) + "\n"


def _power_law_figures(samples: Samples) -> str:
    if not samples.reads_graph:
        return " | "
    one = samples.power_law
    return "refused |" if one is None else f"{one.projected / MIB:.0f} | {one.sampled / MIB:.0f}"


INTRODUCTION = """
Written by `python tests/laws/test_memory.py`; the slow tests check that the sampled memory exceeds the
projected by at most 40 MiB. A plan that does not fit beside the stored arrays is refused before its
first task. Each operation was called on arrays of {sizes}, or on smaller ones where its result is larger
or it takes long, on one worker of two threads with a limit of {limit}. *Projected* is the largest
projection among the runs of the call, beyond what was stored before; *sampled* is the peak growth of the
resident memory of the process. Values brought into this process count as projected: `compute_limit`
bounds them. The ratio is projected to sampled at the larger size; it is left out where almost no memory
was taken: shared blocks, or tiles.

*Power law* is of what reads a graph, at the larger size, where half of the entries lie in a hundredth of the
rows and columns; all else takes what it takes, whatever the values. What may be large of sparse arrays is
counted before it runs, by the numbers of entries in rows and columns: products; and slices, listed rows or
columns, masks, repeated parts and Kronecker products that may exceed 32 MiB, so that small ones cost no
other run. A count is remembered with its expression.
"""
REASONS = """
Ratios above 3 have these reasons. Reductions and scans with small results are projected as if each
thread kept a temporary array between the steps of a chain, while compiled passes keep only tiles.
Indexing and assignment by index arrays are projected with a copy of every index array. LAPACK's
functions are projected with the largest workspace that any of them needs, five copies of arrays of up to
64 MB. Concatenated and reshaped arrays are projected as copies, although unchanged blocks are shared.
Slices of sparse arrays are projected with the temporaries of a whole block.

Not bounded before they run: the sparse state of a loop that grows by products, or after the first
iteration (an upper bound of the entries of its products and sums is counted before they are computed,
and refused then); what such a loop chooses of a sparse array in each iteration, which is projected at the
average row; and memory used by a user-defined function (`map_blocks`, `foreach`,
`replicated`), of which only arguments and results count.
"""


if __name__ == "__main__":
    # Names of cases sample these alone, and leave the other rows as they are.
    made = all_sampled(numbers=[number for number, case in enumerate(CASES) if case.name in sys.argv[1:]])
    PAGE.write_text(page(made, PAGE.read_text() if len(sys.argv) > 1 else ""))
    check(made)
