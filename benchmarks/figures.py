"""Figures 13 to 17 of the Presto paper, redrawn from runs on this machine into docs/figures."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from harness.inputs import rmat
from harness.paper_figures import FIGURES, document, saved
from harness.rebalancing import FreshCuts, Run, RunWatch, equal_rows, rebalanced_by, symmetric

import matnb as mn

SCALE, SMALL = 20, 12
MOST_LANCZOS = 17  # at 20 three runs took more than ten minutes
COLUMNS = 8
ITERATIONS = 50
DAMPING = 0.85
ROUNDS = 3
FOLDER = Path(__file__).parents[1] / "docs" / "figures"

Loop = Callable[[mn.DistArray], mn.DistArray]


def told(run: Run) -> dict[str, Any]:
    """Return a run as plain data."""
    steps = [
        {
            "iteration": one.iteration,
            "before": list(one.before.cuts),
            "after": list(one.after.cuts),
            "owners_before": list(one.before.owners),
            "owners_after": list(one.after.owners),
        }
        for one in run.decisions
    ]
    fields = {name: value for name, value in vars(run).items() if name != "decisions"}
    return {**fields, "decisions": steps}


def recorded(fresh: FreshCuts, loop: Loop, settings: Sequence[str], rounds: int) -> dict[str, Any]:
    """Run a loop under each setting in turn, then as it is over the cuts to which "auto" came."""
    watch = RunWatch()
    found: dict[str, list[dict[str, Any]]] = {one: [] for one in (*settings, "settled")}
    for _ in range(rounds):
        for setting in settings:
            mn.memo.clear()
            A = fresh()
            found[setting].append(told(once(watch, A, loop, setting)))
            if setting == "auto":
                mn.memo.clear()
                found["settled"].append(told(once(watch, A, loop, "off")))
    return dict(found)


def once(watch: RunWatch, A: mn.DistArray, loop: Loop, setting: str) -> Run:
    """Run a loop under a setting."""
    with rebalanced_by(setting), watch.watched() as run:
        loop(A).persist()
    return run


def ranks(length: int, degrees: np.ndarray) -> Loop:
    """Return PageRank from several starts at once."""
    share = mn.asarray(DAMPING / np.maximum(degrees, 1))[:, None].persist()
    start = mn.asarray(np.full((length, COLUMNS), 1 / length)).persist()

    def loop(A: mn.DistArray) -> mn.DistArray:
        final, _ = mn.iterate(
            lambda x: A @ (x * share) + (1 - DAMPING) / length, start, max_iterations=ITERATIONS
        )
        return final

    return loop


def story(scale: int, rounds: int) -> dict[str, Any]:
    """Run all that the figures tell of, so often."""
    length = 2**scale
    cuts = equal_rows(length)
    graph = rmat(scale)
    with mn.start(workers=2, threads=1, processes=True, rebalance="off"):
        matrix = mn.random.rmat(scale=scale, seed=1).persist()
        loop = ranks(length, np.bincount(graph.indices, minlength=length))
        pagerank = recorded(FreshCuts(matrix, cuts), loop, ("off", "auto", "presto"), rounds)
    lanczos_scale = min(scale, MOST_LANCZOS)
    both = symmetric(rmat(lanczos_scale))
    with mn.start(workers=2, threads=1, processes=True, rebalance="off"):
        matrix = mn.asarray(both).persist()
        cuts = equal_rows(2**lanczos_scale)
        lanczos = recorded(
            FreshCuts(matrix, cuts), lambda A: mn.linalg.eigsh(A).values, ("off", "auto"), rounds
        )
    return {
        "scale": scale,
        "lanczos_scale": lanczos_scale,
        "columns": COLUMNS,
        "iterations": ITERATIONS,
        "entries": int(graph.nnz),
        "entries_before": entries_before(graph.indptr, pagerank),
        "pagerank": pagerank,
        "lanczos": lanczos,
    }


def entries_before(pointers: np.ndarray, runs: dict[str, Any]) -> dict[str, float]:
    """Return the part of all entries before every cut that occurs."""
    steps = [step for kind in runs.values() for run in kind for step in run["decisions"]]
    cuts = {cut for step in steps for cut in (*step["before"], *step["after"])}
    return {str(cut): float(pointers[cut] / pointers[-1]) for cut in sorted(cuts)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=int, default=SCALE, help="of the graph: 2^scale vertices")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="how often each is run")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="where the figures go")
    parser.add_argument("--draw", action="store_true", help="draw again what was recorded there")
    parser.add_argument("--busy", action="store_true", help="draw nothing: others use the machine")
    given = parser.parse_args()
    if given.busy:
        print("the machine is not idle: the figures stay as they are")
        return
    if given.scale != SCALE and given.folder == FOLDER:
        parser.error("a trial at another scale is not for docs/figures: give --folder")
    given.folder.mkdir(parents=True, exist_ok=True)
    record = given.folder / "runs.json"
    if not given.draw:
        story(SMALL, 1)  # compiles
        record.write_text(json.dumps(story(given.scale, given.rounds)) + "\n", encoding="utf-8")
    read = json.loads(record.read_text(encoding="utf-8"))
    for name, draw in FIGURES.items():
        saved(draw(read), given.folder / f"{name}.svg")
    (given.folder / "README.md").write_text(document(read), encoding="utf-8")
    print(f"wrote {given.folder}")


if __name__ == "__main__":
    main()
