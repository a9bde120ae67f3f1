"""What the README's cells take on a machine where matnb never ran: no machine code, a fresh process."""

from __future__ import annotations

import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from harness.comparison import OURS, Bench, Claim, Comparison
from harness.statistics import duration

README = Path(__file__).parents[1] / "README.md"
CELL_SECONDS, ALL_SECONDS = 2.0, 8.0
ASKED = ["%%distmat\nrank", "trips.describe()"]  # what its text names, and its loop gives
RUN = """
import contextlib, io, json, resource, sys, time
from IPython.core.interactiveshell import InteractiveShell
shell, taken = InteractiveShell.instance(), []
for cell in json.load(sys.stdin):
    begin, work = time.perf_counter(), time.process_time()
    with contextlib.redirect_stdout(io.StringIO()) as shown:
        done = shell.run_cell(cell)
    taken.append((time.perf_counter() - begin, time.process_time() - work))
    if not done.success:
        sys.exit(shown.getvalue())
shell.run_cell("mn.stop()")
print(json.dumps(taken))
"""


def readme_cells() -> list[str]:
    """Return the README's cells; what is of one computation stays one."""
    return re.findall(r"^```python\n(.*?)^```", README.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def write_trips(path: Path, rows: int = 20_000) -> None:
    """Write a table with the columns that the README names."""
    import numpy as np
    import pandas as pd

    draws = np.random.default_rng(0)
    seconds = pd.to_timedelta(draws.integers(0, 30 * 86400, rows), unit="s")
    pd.DataFrame(
        {
            "pickup": pd.Timestamp("2024-01-01") + seconds,
            "zone": draws.choice(["Harlem", "SoHo", "Astoria", "Midtown"], rows),
            "distance": draws.exponential(3, rows).round(2),
            "passengers": np.where(draws.random(rows) < 0.02, np.nan, draws.integers(1, 6, rows)),
            "fare": (draws.exponential(12, rows) - 0.5).round(2),
            "tip": draws.exponential(2, rows).round(2),
        }
    ).to_csv(path, index=False)


def fresh_process(folder: Path) -> list[tuple[float, float]]:
    """Run the cells in a fresh Python without machine code; return seconds and processor seconds of each."""
    with tempfile.TemporaryDirectory() as codes:
        done = subprocess.run(
            [sys.executable, "-c", RUN],
            input=json.dumps([*readme_cells(), *ASKED]),
            check=True,
            capture_output=True,
            text=True,
            cwd=folder,
            env={
                **os.environ,
                "NUMBA_CACHE_DIR": codes,
                "MATNB_COMPILE": "off",
                "PYTHONPATH": str(README.parent),
            },
        )
    return [tuple(one) for one in json.loads(done.stdout.splitlines()[-1])]


def main() -> None:
    bench = Bench(__doc__)
    with tempfile.TemporaryDirectory() as folder:
        write_trips(Path(folder, "trips.csv"))
        runs = [fresh_process(Path(folder)) for _ in range(min(bench.rounds, 5))]
    cells = [
        tuple(statistics.median(run[place][kind] for run in runs) for kind in (0, 1))
        for place in range(len(runs[0]))
    ]
    each = ", ".join(f"{duration(wall)} ({duration(work)} of a processor)" for wall, work in cells)
    note = f"the cells in their order, imports in the first: {each}"
    slowest = {OURS: [max(wall for wall, _ in run) for run in runs], "the limit": [CELL_SECONDS] * len(runs)}
    claim = Claim("slowest cell of the README, no machine code", "a table of 20,000 rows, R-MAT 2^14", 1.0)
    bench.publish(Comparison(claim, slowest, ["the limit"], [note]))
    whole = {OURS: [sum(wall for wall, _ in run) for run in runs], "the limit": [ALL_SECONDS] * len(runs)}
    claim = Claim("all cells of the README, no machine code", "the same", 1.0)
    bench.publish(Comparison(claim, whole, ["the limit"], []))


if __name__ == "__main__":
    main()
