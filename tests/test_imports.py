"""What ``import matnb`` brings with it: counted, and not what the first cell may never need."""

from __future__ import annotations

import json
import subprocess
import sys
from functools import cache

COUNT = """
import json, sys
import numpy, scipy.sparse, distributed
before = set(sys.modules)
import matnb
print(json.dumps(sorted(set(sys.modules) - before)))
"""
# Each takes between a tenth of a second and two.
HEAVY = (
    "IPython", "ipykernel", "ipywidgets", "matplotlib", "nbclient", "nbformat", "networkx", "numba.cuda",
    "pandas", "polars", "pyarrow", "pytest", "scipy.optimize", "scipy.stats", "sklearn", "tqdm",
    "matnb.cli", "matnb.magics", "matnb.testing", "matnb.widgets",
)  # fmt: skip
MOST_MODULES = 895  # beside those of NumPy, scipy.sparse and distributed; two thirds are matnb's own


@cache
def imported() -> list[str]:
    done = subprocess.run([sys.executable, "-c", COUNT], capture_output=True, text=True, check=True)
    return list(json.loads(done.stdout))


def test_the_import_brings_nothing_heavy():
    assert [one for one in imported() if one.startswith(HEAVY)] == []


def test_the_number_of_modules_has_a_limit():
    assert len(imported()) <= MOST_MODULES
