"""``%distmat stamp`` and ``mn.stamp()``: what results depend on, the same each time."""

from __future__ import annotations

import hashlib
import json
import subprocess

import numpy as np
import pytest
from cells import fail, run

import matnb as mn
from matnb.errors import OptionError, WriteError
from matnb.session import files


@pytest.fixture(autouse=True)
def _clean(monkeypatch):
    monkeypatch.setattr("matnb.lazy.random._seeds", {})
    files.loaded.forget()
    yield
    files.loaded.forget()
    mn.stop()


def git(folder, *words):
    options = ["-c", "user.name=A", "-c", "user.email=a@b.c", "-c", "init.defaultBranch=main"]
    done = subprocess.run(["git", *options, *words], cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def test_it_has_the_hash_of_every_file_that_was_loaded_and_tells_of_changes(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("a.npy", np.arange(5.0))
    np.save("b.npy", np.arange(6.0))
    content = (tmp_path / "a.npy").read_bytes()
    mn.load("a.npy")
    mn.load("b.npy")
    (one, two) = mn.stamp().files
    assert (one.path, one.size, one.sha256) == ("a.npy", len(content), hashlib.sha256(content).hexdigest())
    assert two.path == "b.npy"
    np.save("b.npy", np.arange(7.0))
    assert mn.stamp().files[1].problem == "has changed since it was loaded"
    (tmp_path / "b.npy").unlink()
    assert mn.stamp().files[1].problem == "is not there any more"
    assert mn.stamp().files[1].sha256 == two.sha256
    assert "b.npy, 176 B, sha256 " in mn.stamp().text
    assert "is not there any more" in mn.stamp().text


def test_it_has_every_file_of_a_graph(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "g.e").write_text("1 2\n2 3\n")
    (tmp_path / "g.v").write_text("1\n2\n3\n")
    mn.load("g.e")
    assert [one.path for one in mn.stamp().files if one.path.startswith("g.")] == ["g.e", "g.v"]


def test_it_has_the_commit_and_tells_of_changes(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert mn.stamp().commit == ""
    assert "no repository" in mn.stamp().text
    git(tmp_path, "init")
    (tmp_path / "book.ipynb").write_text("{}")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-m", "begin")
    head = git(tmp_path, "rev-parse", "HEAD")
    assert mn.stamp().commit == head
    (tmp_path / "new.txt").write_text("not of the repository")
    assert mn.stamp().commit == head
    (tmp_path / "book.ipynb").write_text("{ }")
    assert mn.stamp().commit == f"{head}, changed"


def test_it_has_seeds_cluster_and_settings():
    mn.random.default_rng(7)
    mn.random.rmat(3, seed=11)
    mn.random.default_rng(7)
    assert mn.stamp().seeds == (7, 11)
    assert mn.stamp().cluster == "none"
    assert mn.active_session() is None
    mn.start(workers=2, threads=1, memo="1GB", rebalance="off")
    made = mn.stamp()
    assert made.cluster == "2 workers x 1 thread, in this process"
    assert made.settings == {"engine": "auto", "rebalance": "off", "memo": "1 GB"}
    assert made.versions["numpy"] == np.__version__
    assert made.blas
    assert all("thread" in one for one in made.blas)


def test_seeds_that_were_not_noted_are_counted(monkeypatch):
    monkeypatch.setattr(mn.random, "_MOST_SEEDS", len(mn.random.seeds_taken()) + 1)
    monkeypatch.setattr(mn.random, "_num_forgotten", 0)
    for seed in (2**40, 2**40 + 1, 2**40, 2**40 + 2):
        mn.random.default_rng(seed)
    assert mn.stamp().num_seeds_forgotten == 2
    assert "then 2 that were not noted" in mn.stamp().text


def test_it_is_the_same_each_time_unless_the_time_is_wanted(monkeypatch):
    mn.start(workers=1, threads=1)
    assert mn.stamp() == mn.stamp()
    assert mn.stamp().json == mn.stamp().json
    assert mn.stamp().time == ""
    timed = mn.stamp(with_time=True)
    assert timed.time.startswith("20")
    assert timed.time in timed.text


def test_a_notebook_shows_saves_and_prints_it(shell, capsys, tmp_path):
    (text,) = run(shell, "%distmat stamp")
    (output,) = shell.display_pub.outputs
    assert text == mn.stamp().text
    assert "matnb" in output["data"]["text/html"]
    capsys.readouterr()
    run(shell, "%distmat stamp --json")
    assert json.loads(capsys.readouterr().out)["versions"]["numpy"] == np.__version__
    for ending in ("json", "html", "txt"):
        run(shell, f"path = {str(tmp_path / f'stamp.{ending}')!r}\n%distmat stamp --save {{path}}")
    assert json.loads((tmp_path / "stamp.json").read_text()) == json.loads(mn.stamp().json)
    assert (tmp_path / "stamp.txt").read_text() == f"{mn.stamp().text}\n"
    error, _ = fail(shell, capsys, "%distmat stamp --save stamp.pdf")
    assert isinstance(error, OptionError)
    with pytest.raises(WriteError):
        mn.stamp().save(tmp_path / "missing" / "stamp.json")


def test_names_of_files_are_escaped(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("<script>x.npy", np.arange(3.0))
    mn.load("<script>x.npy")
    assert "<script>" not in mn.stamp().html
    assert "&lt;script&gt;x.npy" in mn.stamp().html
