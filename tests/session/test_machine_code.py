"""The process that makes machine code ahead: when it is started, what it leaves, and when it ends."""

from __future__ import annotations

import importlib
import json
import os
import signal
import subprocess
import sys
import time
from contextlib import nullcontext
from pathlib import Path

import psutil
import pytest

from matnb.blocks.kernels import compiled
from matnb.cli import compiling
from matnb.session import machine_code

PROJECT = Path(__file__).parents[2]
sys.path.append(str(PROJECT / "benchmarks"))
readme = importlib.import_module("readme_cells")
PRODUCT = "from matnb.cli import compiling; compiling.CELLS = (compiling._product,); "
AT_KEYBOARD = "import sys, time; sys.ps1 = '>>> '; import matnb, psutil; "
CHILD = "print(*[one.pid for one in psutil.Process().children()], flush=True); "


def command(code: str) -> list[str]:
    return [sys.executable, "-c", code]


@pytest.fixture
def environment(tmp_path):
    """Return the variables of a process on a machine without machine code."""
    without = {name: text for name, text in os.environ.items() if not name.startswith("MATNB_")}
    return {**without, "NUMBA_CACHE_DIR": str(tmp_path / "codes"), "PYTHONPATH": str(PROJECT)}


@pytest.fixture
def started(tmp_path, monkeypatch):
    """Return what is started where a user is at the keyboard and no code is there."""
    commands: list[list[str]] = []

    def start(given, **_):
        commands.append(given)
        raise OSError("no memory")

    monkeypatch.setattr(compiled, "code_folder", lambda: tmp_path)
    monkeypatch.setattr(sys, "ps1", ">>> ", raising=False)
    monkeypatch.setenv("MATNB_COMPILE", "auto")
    monkeypatch.setattr(subprocess, "Popen", start)
    return commands


def test_it_is_started_where_code_is_missing_and_not_again_when_that_is_made(started):
    assert machine_code.compile_ahead("matnb.cli.compiling") is None
    assert len(started) == 1
    with machine_code.making() as is_mine:
        assert is_mine
        assert not machine_code.is_made()
        with machine_code.making() as is_also_mine:
            assert not is_also_mine
    assert machine_code.is_made()
    machine_code.compile_ahead("matnb.cli.compiling")
    assert len(started) == 1


def test_it_is_not_started_for_scripts_nor_when_switched_off(started, monkeypatch):
    monkeypatch.setenv("MATNB_COMPILE", "off")
    machine_code.compile_ahead("matnb.cli.compiling")
    monkeypatch.setenv("MATNB_COMPILE", "auto")
    monkeypatch.delattr(sys, "ps1")
    machine_code.compile_ahead("matnb.cli.compiling")
    assert started == []


def test_other_loops_are_made_anew(started, tmp_path, monkeypatch):
    with machine_code.making():
        pass
    (tmp_path / "compiled.py").write_text("another loop")
    monkeypatch.setattr(compiled, "__file__", str(tmp_path / "compiled.py"))
    assert not machine_code.is_made()


def test_what_it_made_a_later_process_does_not_make_again(environment):
    code = PRODUCT + "import os; compiling.compile_for(os.getppid()); "
    code += "from matnb.blocks.kernels.products.dense_product_loops import plus_times as loop; "
    code += "print(sum(loop.stats.cache_hits.values()), sum(loop.stats.cache_misses.values()))"
    counts = [subprocess.check_output(command(code), env=environment, text=True).split() for _ in range(2)]
    assert counts == [["0", "1"], ["1", "0"]]


def test_each_cell_is_told(monkeypatch):
    told: list[object] = []
    monkeypatch.setattr(compiling, "making", lambda: nullcontext(True))
    monkeypatch.setattr(compiling, "CELLS", (lambda: told.append("one"), lambda: told.append("other")))
    assert compiling.compile_commonest(lambda number, of: told.append((number, of)))
    assert told == [(1, 2), "one", (2, 2), "other"]


@pytest.mark.slow
def test_what_the_readme_computes_is_compiled_ahead(environment, tmp_path):
    subprocess.run([sys.executable, "-m", "matnb", "compile"], env=environment, check=True)
    readme.write_trips(tmp_path / "trips.csv")
    count = "from matnb.blocks.kernels.compiled import compiled_so_far; print(compiled_so_far())"
    found = subprocess.run(
        command(f"{readme.RUN}\n{count}"),
        input=json.dumps([*readme.readme_cells(), *readme.ASKED]),
        env={**environment, "MATNB_COMPILE": "off"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert found.stdout.splitlines()[-1] == "(0, False)"


def is_gone(number: int, seconds: float = 120) -> bool:
    for _ in range(int(seconds / 0.1)):
        if not psutil.pid_exists(number) or psutil.Process(number).status() == psutil.STATUS_ZOMBIE:
            return True
        time.sleep(0.1)
    return False


def test_a_program_that_ends_at_once_leaves_no_process(environment):
    found = subprocess.check_output(command(AT_KEYBOARD + CHILD), env=environment, text=True)
    (number,) = map(int, found.split())
    assert not psutil.pid_exists(number)


def test_it_ends_when_the_program_is_killed(environment):
    code = command(AT_KEYBOARD + CHILD + "time.sleep(1000)")
    with subprocess.Popen(code, env=environment, stdout=subprocess.PIPE, text=True) as program:
        (number,) = map(int, program.stdout.readline().split())
        program.send_signal(signal.SIGKILL)
    assert is_gone(number)
