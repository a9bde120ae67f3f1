"""Where compiled code is kept, also for a package that is read-only, and how first calls are told apart."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest

from matnb.blocks.kernels import compiled as machine_code
from matnb.blocks.kernels.compiled import compiled, num_specializations

PROJECT = Path(__file__).parents[2]
LOOP = """
from matnb.blocks.kernels.compiled import compiled

@compiled
def doubled(number):
    return 2 * number
"""


@pytest.fixture
def cache_folder(tmp_path, monkeypatch):
    folder = tmp_path / "user"
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder))
    return folder


def loop_of(folder: Path, name: str):
    """Return a loop of a module in a folder."""
    folder.mkdir()
    path = folder / f"{name}.py"
    path.write_text(LOOP)
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.doubled


def refuse_writing_below(folder: Path, monkeypatch) -> None:
    """Pretend that a folder is read-only where Numba tries whether it is (root may write everywhere)."""
    allowed = tempfile.TemporaryFile

    def attempt(*args, dir=None, **options):
        if dir is not None and Path(dir).is_relative_to(folder):
            raise OSError("read-only file system")
        return allowed(*args, dir=dir, **options)

    monkeypatch.setattr(tempfile, "TemporaryFile", attempt)


def test_machine_code_is_kept_beside_the_file(tmp_path, cache_folder):
    loop = loop_of(tmp_path / "package", "kept_beside")
    assert loop(3) == 6
    assert list((tmp_path / "package" / "__pycache__").glob("*doubled*.nbc"))
    assert not cache_folder.exists()


@pytest.mark.skipif(sys.platform != "linux", reason="the user's cache folder has another name")
def test_a_read_only_package_is_cached_for_the_user(tmp_path, cache_folder, monkeypatch):
    refuse_writing_below(tmp_path / "package", monkeypatch)
    loop = loop_of(tmp_path / "package", "kept_for_the_user")
    assert loop(3) == 6
    assert list(cache_folder.rglob("*doubled*.nbc"))


def test_where_nothing_can_be_written_loops_compile_all_the_same(tmp_path, cache_folder, monkeypatch):
    refuse_writing_below(tmp_path, monkeypatch)
    loop = loop_of(tmp_path / "package", "kept_nowhere")
    assert loop(3) == 6
    assert not list(tmp_path.rglob("*.nbc"))


def test_a_call_that_made_or_read_machine_code_is_told_apart(tmp_path, cache_folder):
    loop = loop_of(tmp_path / "package", "counted")
    counts = [num_specializations()]
    for number in (3, 3, 3.5, 3.5):
        loop(number)
        counts.append(num_specializations())
    assert np.diff(counts).tolist() == [1, 0, 1, 0]


def test_a_file_that_holds_the_code_of_other_dtypes_is_not_believed(tmp_path, cache_folder):
    # as two processes leave it that make the two codes at one time
    loop = loop_of(tmp_path / "package", "swapped")
    assert (loop(3), loop(2.5)) == (6, 5.0)
    one, other = sorted((tmp_path / "package" / "__pycache__").glob("*.nbc"))
    one.rename(tmp_path / "one")
    other.rename(one)
    (tmp_path / "one").rename(other)
    again = compiled(loop.py_func)
    assert (again(3), again(2.5)) == (6, 5.0)
    assert sum(again.stats.cache_hits.values()) == 0


def test_code_is_made_anew_when_a_loop_of_another_file_changes(tmp_path):
    (tmp_path / "inner.py").write_text(LOOP)
    (tmp_path / "outer.py").write_text(
        LOOP.replace("doubled", "more").replace("return 2 * number", "return doubled(number) + 1")
        + "\nprint(more(3), more.stats.cache_hits)\n"
    )
    outer = (tmp_path / "outer.py").read_text()
    (tmp_path / "outer.py").write_text("from inner import doubled\n" + outer)

    def run() -> list[str]:
        found = subprocess.run(
            [sys.executable, "outer.py"],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(PROJECT)},
            capture_output=True,
            text=True,
            check=True,
        )
        return found.stdout.split()[:2]

    assert [run()[0], run()[0]] == ["7", "7"]
    (tmp_path / "inner.py").write_text(LOOP.replace("2 * number", "9 * number"))
    assert run()[0] == "28"


def test_a_family_s_code_is_made_anew_when_a_loop_of_the_core_changes(tmp_path, monkeypatch):
    core, family = tmp_path / "kernels", tmp_path / "family"
    core.mkdir()
    family.mkdir()
    (core / "inner.py").write_text(LOOP)
    (family / "outer.py").write_text("from matnb.blocks.kernels.inner import doubled\n")
    monkeypatch.setattr(machine_code, "__file__", str(core / "compiled.py"))
    stamp = machine_code._stamp_of.__wrapped__
    before = stamp(family / "outer.py")
    assert stamp(family / "outer.py") == before
    (core / "inner.py").write_text(LOOP.replace("2 * number", "9 * number"))
    assert stamp(family / "outer.py") != before


def test_code_stays_when_a_file_that_the_loop_does_not_import_changes(tmp_path):
    (tmp_path / "alone.py").write_text(LOOP + "\nprint(doubled(3), sum(doubled.stats.cache_hits.values()))\n")

    def run() -> str:
        environment = {**os.environ, "PYTHONPATH": str(PROJECT)}
        command = [sys.executable, "alone.py"]
        return subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True).stdout

    (tmp_path / "other.py").write_text(LOOP)
    assert run().split() == ["6", "0"]
    (tmp_path / "other.py").write_text(LOOP.replace("2 * number", "9 * number"))
    assert run().split() == ["6", "1"]
