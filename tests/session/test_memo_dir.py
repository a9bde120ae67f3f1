"""Results on disk: another process computes only what changed, and takes nothing damaged or foreign."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from watching import runs

import matnb as mn
from matnb.errors import OptionError
from matnb.magics.summary import status_text

REPORT = Path(__file__).with_name("memo_report.py")


def report(folder: Path, matrix: Path, offset: float) -> subprocess.Popen[str]:
    environ = {name: value for name, value in os.environ.items() if not name.startswith("MATNB_")}
    environ["PYTHONPATH"] = os.pathsep.join([str(REPORT.parents[2]), environ.get("PYTHONPATH", "")])
    command = [sys.executable, "-W", "error", str(REPORT), str(folder), str(matrix), str(offset)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environ)


def told(process: subprocess.Popen[str]) -> dict[str, tuple[object, int]]:
    text, _ = process.communicate(timeout=120)
    assert process.returncode == 0
    return {name: (value, tasks) for name, (value, tasks) in json.loads(text).items()}


@pytest.mark.slow
def test_a_report_that_is_run_again_computes_only_what_changed(tmp_path: Path) -> None:
    matrix = tmp_path / "a.npz"
    sp.save_npz(matrix, sp.random_array((500, 500), density=0.05, format="csr", rng=0))
    # Two at once, into a folder that neither has made.
    both = [report(tmp_path / "memo", matrix, 1.0) for _ in range(2)]
    first, same = map(told, both)
    values = {name: value for name, (value, _) in first.items()}
    assert values == {name: value for name, (value, _) in same.items()}
    other = told(report(tmp_path / "memo", matrix, 2.0))
    assert {name for name, (_, tasks) in other.items() if tasks} == {"loop"}
    assert {name for name, (value, _) in other.items() if value != values[name]} == {"loop"}
    sp.save_npz(matrix, sp.random_array((500, 500), density=0.05, format="csr", rng=1))
    changed = told(report(tmp_path / "memo", matrix, 2.0))
    assert {name for name, (_, tasks) in changed.items() if tasks} == {"number", "sparse", "array", "operand"}
    assert changed["number"][0] != values["number"]


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path / "memo"
    mn.stop()


def work() -> tuple[float, np.ndarray]:
    x = mn.asarray(np.arange(30_000.0), blocks=2)
    return float((x * x).sum()), np.sqrt(x + 2).compute()


def again(folder: Path) -> int:
    """Return the tasks that the same work takes in a new session."""
    expected = np.arange(30_000.0)
    with mn.start(workers=2, threads=1, memo_dir=folder) as session:
        seen = runs(session)
        total, roots = work()
        assert total == (expected**2).sum()
        np.testing.assert_array_equal(roots, np.sqrt(expected + 2))
        return sum(run.num_tasks for run in seen)


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[100] ^= 1
    path.write_bytes(data)


def replace_by_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def swap(path: Path) -> None:
    one, other = sorted(path.parent.iterdir())
    data = one.read_bytes()
    one.write_bytes(other.read_bytes())
    other.write_bytes(data)


@pytest.mark.parametrize(("damage", "num_warnings"), [(cut, 1), (flip, 1), (replace_by_folder, 1), (swap, 2)])
def test_a_damaged_file_is_told_of_and_its_result_computed_again(
    folder: Path, damage: Callable[[Path], None], num_warnings: int
) -> None:
    assert again(folder) > 0
    assert again(folder) == 0
    files = sorted(folder.iterdir())
    assert len(files) == 2
    damage(files[0])
    with pytest.warns(UserWarning, match="is not used and will be computed again") as warned:
        assert again(folder) > 0
    assert len(warned) == num_warnings
    if damage is not replace_by_folder:
        assert again(folder) == 0  # it was written anew


def test_it_is_listed_and_cleared_with_the_files(folder: Path) -> None:
    again(folder)
    (folder / "mine.txt").write_text("stays")
    with mn.start(memo_dir=folder) as session:
        assert "of files in" in status_text(session.status())
        assert (session.status().memo_dir, session.status().file_bytes > 0) == (str(folder), True)
        assert [(one.where, one.hits) for one in mn.memo.entries()] == [("disk", 0)] * 2
        assert {one.expression.split("(")[0] for one in mn.memo.entries()} == {"sum", "sqrt"}
        work()
        assert {(one.where, one.hits) for one in mn.memo.entries() if not one.has_handle} == {
            ("workers", 1),
            ("value", 1),
        }
        mn.memo.clear()
        assert [one.where for one in mn.memo.entries()] == ["disk"] * 2
        mn.memo.clear(disk=True)
        assert (mn.memo.entries(), session.status().file_bytes) == ((), 0)
    assert [path.name for path in folder.iterdir()] == ["mine.txt"]


def test_a_folder_that_goes_away_does_not_stop_a_run(folder: Path) -> None:
    with mn.start(memo_dir=folder):
        folder.rmdir()
        with pytest.warns(UserWarning, match="no longer written to"):
            total, _ = work()
        assert total > 0


def test_where_it_cannot_write_it_says_so_before_anything_starts(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with mn.start() as session:
        with pytest.raises(OptionError, match="memo_dir="):
            mn.start(memo_dir=tmp_path / "file")
        assert mn.active_session() is session
    mn.stop()


def test_it_writes_nothing_when_it_is_off_and_no_sources(folder: Path) -> None:
    with mn.start(memo="off", memo_dir=folder):
        work()
    assert not folder.exists()
    with mn.start(memo_dir=folder):
        x = mn.asarray(np.arange(30_000.0))
        x.compute()
        mn.arange(30_000.0)[3:].compute()
        mn.random.default_rng(0).random(3).compute()
    assert list(folder.iterdir()) == []
