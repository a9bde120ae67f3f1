"""Programs that start worker processes without a main guard, in the ways that they are run."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from nbconvert import PythonExporter

PROJECT = Path(__file__).parents[1]
PROGRAM = """import matnb as mn

def shifted(block):
    return block + OFFSET

OFFSET = 2.0
print("begun")
mn.start(workers=2, threads=1, processes=True)
x = mn.asarray([1.0, 2.0, 3.0, 4.0], blocks=2)
print(float(mn.map_blocks(shifted, x).sum()))
print("ended")
"""
CELL = "%%distmat --out total\nx.sum() * 2"
AFTER = "print(float(total))"


def ran(folder: Path, *arguments: str, given: str = "") -> subprocess.CompletedProcess[str]:
    (folder / "t").mkdir()
    environment = {
        **os.environ, "PYTHONPATH": str(PROJECT), "TMPDIR": str(folder / "t"), "IPYTHONDIR": str(folder / "i")
    }  # fmt: skip
    return subprocess.run(
        [sys.executable, *arguments], input=given, capture_output=True, text=True, timeout=120, check=False,
        env=environment, cwd=folder,
    )  # fmt: skip


def converted(folder: Path, *sources: str) -> str:
    """Write a notebook as `jupyter nbconvert --to script` does, and return the script's name."""
    cells = [nbformat.v4.new_code_cell(source) for source in sources]
    text, _ = PythonExporter().from_notebook_node(nbformat.v4.new_notebook(cells=cells))
    (folder / "converted.py").write_text(text)
    return "converted.py"


@pytest.mark.cluster
@pytest.mark.parametrize("way", ["file", "standard input", "converted notebook"])
def test_worker_processes_need_no_main_guard(tmp_path: Path, way: str) -> None:
    if way == "standard input":
        done = ran(tmp_path, "-", given=PROGRAM)
    elif way == "file":
        (tmp_path / "program.py").write_text(PROGRAM)
        done = ran(tmp_path, "program.py")
    else:
        done = ran(tmp_path, converted(tmp_path, *PROGRAM.split("\n\n")))
    assert (done.returncode, done.stdout, done.stderr) == (0, "begun\n18.0\nended\n", "")


@pytest.mark.cluster
def test_a_converted_notebook_with_magics_runs_in_ipython(tmp_path: Path) -> None:
    script = converted(tmp_path, "%load_ext matnb", PROGRAM, CELL, AFTER)
    done = ran(tmp_path, "-m", "IPython", "--quick", "--colors=NoColor", script)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("begun\n18.0\nended\n")
    assert done.stdout.endswith("20.0\n")
