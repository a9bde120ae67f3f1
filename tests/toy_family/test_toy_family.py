"""A package from outside adds an operation, a pass, a container, a reader, an estimator and a listener."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent

USES = """
import sys
import numpy as np
import matnb as mn
import matnb_toy as toy

processes = sys.argv[1] == "processes"
ways = {"engine": "interpret"} if sys.argv[1] == "interpret" else {"workers": 2, "processes": processes}
mn.start(**ways)
x = np.random.default_rng(0).normal(size=(40, 3)) * 3
X = mn.asarray(x, blocks=(4, 1))

# the operation, and the pass
twice = toy.clamp(toy.clamp(X, 2.0), 1.5)
np.testing.assert_array_equal(twice.compute(), np.clip(x, -1.5, 1.5))
np.testing.assert_array_equal(toy.clamp(twice + 1, 2).compute(), np.clip(np.clip(x, -1.5, 1.5) + 1, -2, 2))
if sys.argv[1] != "interpret":
    told = str(toy.clamp(toy.clamp(X, 2.5), 0.5).explain())
    assert "clamp to 0.5" in told and "2.5" not in told.split("plan", 1)[-1], told

# the container, in a loop and in a branch
start = toy.Interval(mn.zeros(3), mn.ones(3), "m")
end, _ = mn.iterate(
    lambda one: toy.Interval(one.low - 1, toy.clamp(one.high * 2, 10), one.unit), start, max_iterations=5
)
assert isinstance(end, toy.Interval) and end.unit == "m"
assert end.low.compute().tolist() == [-5] * 3 and end.high.compute().tolist() == [10] * 3
chosen = mn.cond(X.sum() < np.inf, lambda: start, lambda: toy.Interval(mn.ones(3), mn.ones(3), "m"))
assert chosen.low.compute().tolist() == [0] * 3
try:
    mn.cond(X.sum() > 0, lambda: start, lambda: toy.Interval(mn.ones(3), mn.ones(3), "km"))
except mn.errors.ShapeError as error:
    assert "Interval m" in str(error) and "Interval km" in str(error)
else:
    raise AssertionError("other units are another structure")

# the reader
with open("a.grid", "w") as file:
    file.write("2 3\\n1 2 3\\n4 5 6\\n")
assert mn.load("a.grid").compute().tolist() == [[1, 2, 3], [4, 5, 6]]
assert float(mn.load("a.grid", scale=2).sum()) == 42
with open("b.grid", "w") as file:
    file.write("2 3\\n1 2 3\\n")
for path, words in (("b.grid", "holds an array of shape (1, 3)"), ("a.grit", "a.grit")):
    try:
        mn.load(path)
    except mn.errors.MatnbError as error:
        assert words in str(error), error
    else:
        raise AssertionError(path)

# the estimator
model = toy.Midrange().fit(x)
np.testing.assert_allclose(model.middle_, (x.min(0) + x.max(0)) / 2)
np.testing.assert_allclose(model.transform(X).compute(), np.clip(x - model.middle_, -1, 1))

# the listener
if sys.argv[1] != "interpret":
    assert "tasks" in str(mn.history()).splitlines()[-2:][0], str(mn.history())
    assert "clamped elements" in mn.history()._repr_mimebundle_()["text/html"]
print("all of it works")
"""

CELL = """
import nbformat
from nbclient import NotebookClient
cells = ["%load_ext matnb\\nimport matnb as mn, matnb_toy as toy\\nmn.start(workers=1, processes=False)",
         "%%distmat\\nend = toy.Interval(mn.ones(3) * 2, mn.ones(3) * 5, 'm')\\nend",
         "print(end.high.compute().tolist(), end.unit)"]
book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(one) for one in cells])
NotebookClient(book, timeout=120).execute()
print(book.cells[2].outputs[0]["text"])
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install the package into a folder of its own, as pip installs any."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--no-deps"]
    subprocess.run([*command, "--target", str(folder), str(HERE)], check=True, cwd=folder)
    return folder


def run(code: str, folder: Path, cwd: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run code in a new process that finds the installed package."""
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    return subprocess.run(
        [sys.executable, "-c", code, *arguments], cwd=cwd, env=environment, capture_output=True, text=True
    )


@pytest.mark.parametrize("engine", ["interpret", "threads", "processes"])
def test_it_adds_all_that_there_is_to_add(installed: Path, tmp_path: Path, engine: str):
    ran = run(USES, installed, tmp_path, engine)
    assert ran.returncode == 0, ran.stderr
    assert "all of it works" in ran.stdout
    assert not ran.stderr


def test_its_container_is_a_cells_result(installed: Path, tmp_path: Path):
    ran = run(CELL, installed, tmp_path)
    assert ran.returncode == 0, ran.stderr
    assert "[5.0, 5.0, 5.0] m" in ran.stdout


def test_it_keeps_the_contracts_of_what_it_adds(installed: Path, tmp_path: Path):
    command = ["-m", "pytest", "-q", "-c", os.devnull, "-p", "no:cacheprovider", "--rootdir", str(tmp_path)]
    environment = {**os.environ, "PYTHONPATH": str(installed)}
    ran = subprocess.run(
        [sys.executable, *command, str(HERE / "contracts.py")], cwd=tmp_path, env=environment,
        capture_output=True, text=True,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stdout
    assert "31 passed" in ran.stdout, ran.stdout


def test_the_guide_s_examples_run(tmp_path: Path):
    guide = HERE.parents[1] / "docs" / "guides" / "extending.md"
    blocks = re.findall(r"```python\n(.*?)```", guide.read_text(), re.DOTALL)
    (tmp_path / "guide.py").write_text("\n".join(blocks))
    ran = subprocess.run([sys.executable, "guide.py"], cwd=tmp_path, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    printed = ran.stdout.split("\n")
    assert printed[:2] == ["[0. 1. 2. 2. 2.]", "[8. 8. 8.] m"]
    assert printed[-2] == "[2. 5.]"


def test_a_family_that_cannot_be_imported_is_told_and_left_out(installed: Path, tmp_path: Path):
    broken = tmp_path / "broken-1.0.dist-info"
    broken.mkdir()
    (broken / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 1.0\n")
    (broken / "entry_points.txt").write_text("[matnb.families]\nbroken = no_such_module\n")
    ran = run("import matnb as mn; print(float(mn.ones(3).sum()))", tmp_path, tmp_path)
    assert ran.stdout.strip() == "3.0"
    assert "the family 'broken' (no_such_module) is left out: ModuleNotFoundError" in ran.stderr
