"""Results are used again only if all that a function reads is the same; workers call the edited version."""

from __future__ import annotations

import hashlib
import importlib
import itertools
import os
import subprocess
import sys
import types
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from IPython.core.interactiveshell import InteractiveShell
from magics.conftest import bare_shell, shell

import matnb as mn
from laws.function_reads import NOT_FOLLOWED, READS, files_of
from matnb.lazy.portable import named_by

HEAD = "import functools, dataclasses, enum\nimport numpy as np\n"
__all__ = ["bare_shell", "shell"]  # fixtures
X = np.ones((4, 1))


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder whose modules are a user's, and are forgotten afterwards."""
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # edits come within the resolution of times
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")  # the same for worker processes, which import them too
    known = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - known:
        if getattr(sys.modules[name], "__file__", None) and str(tmp_path) in str(sys.modules[name].__file__):
            del sys.modules[name]


_EDITS = itertools.count()


def write(folder: Path, texts: dict[str, str], number: int, blank: str = "") -> None:
    for name, text in texts.items():
        path = folder / f"{name}.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text(HEAD + blank + text.replace("NUMBER", str(number)) + "\n")
        # Bytecode that a worker process left counts as that of the edit unless whole seconds differ.
        seconds = 1_700_000_000 + next(_EDITS)
        os.utime(path, (seconds, seconds))


def loaded(texts: dict[str, str]) -> types.ModuleType:
    """Import the modules as autoreload does: those that were edited, in their order."""
    importlib.invalidate_caches()
    for name in texts:
        module_name = name.removesuffix("/__init__").replace("/", ".")
        if module_name in sys.modules:
            importlib.reload(sys.modules[module_name])
        else:
            importlib.import_module(module_name)
    return sys.modules["mod"]


TWO_WORKERS = pytest.mark.session("two workers")


@TWO_WORKERS
@pytest.mark.parametrize("read", READS)
def test_what_was_edited_is_computed_again(read: str, files: Path, session: mn.session.Session) -> None:
    texts = files_of(READS[read])
    write(files, texts, 2)
    mod, x = loaded(texts), mn.asarray(X)
    first = mn.reduce_blocks(mod.total, x, combine=np.add)
    kept = mn.reduce_blocks(mod.total, mn.asarray(2 * X), combine=np.add)
    assert float(first) == 8
    name = named_by(mod.total)
    assert not name.reason
    write(files, texts, 2, blank="# the same further down\n\n")
    assert named_by(loaded(texts).total).code == name.code, "what is the same is found again"
    write(files, texts, 3)
    mod = loaded(texts)
    assert float(mn.reduce_blocks(mod.total, x, combine=np.add)) == 12
    assert float(kept) == 16, "what was recorded before is what it was then"
    write(files, texts, 2)
    assert mn.reduce_blocks(loaded(texts).total, x, combine=np.add).expression is first.expression


@TWO_WORKERS
def test_what_was_changed_in_memory_is_computed_again(files: Path, session: mn.session.Session) -> None:
    texts = {
        "other": "class Rate:\n    rate = NUMBER\ndef helper(x): return x * Rate.rate",
        "mod": "import other\nTABLE = {1: 1}\ndef total(x): return (other.helper(x) * TABLE[1]).sum()",
    }
    write(files, texts, 2)
    mod, x = loaded(texts), mn.asarray(X)
    other = sys.modules["other"]

    def total() -> mn.DistArray:
        return mn.reduce_blocks(mod.total, x, combine=np.add)  # type: ignore[return-value]  # of one result

    first, late = total(), mn.reduce_blocks(mod.total, mn.asarray(2 * X), combine=np.add)
    assert float(first) == 8
    other.Rate.rate = 3
    assert float(total()) == 12
    assert float(late) == 16
    assert other.Rate.rate == 3, "what came with a function is not written into the user's own"
    mod.TABLE[1] = 2
    assert float(total()) == 24
    other.helper = lambda x: x
    assert float(total()) == 8
    assert total().expression is not first.expression


def made_by(fn: Callable[..., object]) -> dict[str, Callable[[], object]]:
    """Everything that takes a user's function, by its name; each gives arrays."""
    x, A = mn.asarray(X), mn.asarray(np.eye(4))
    return {
        "map_blocks": lambda: mn.map_blocks(lambda one: one * fn(one), x, pure=True),
        "reduce_blocks": lambda: mn.reduce_blocks(fn, x, combine=np.add),
        "combine": lambda: mn.reduce_blocks(np.sum, x, combine=lambda one, two: one + two + 0 * fn(X)),
        "replicated": lambda: mn.replicated(fn, A),
        "foreach": lambda: mn.foreach(fn, mn.splits(x)),
        "scan": lambda: mn.scan(x[:, 0], lambda u, a: u + a * fn(X), 0.0, update=np.add),
        "combine of scan": lambda: mn.scan(x[:, 0], np.add, 0.0, update=lambda u, v: u + v + 0 * fn(X)),
        "associative_scan": lambda: mn.associative_scan(
            lambda a, b: np.minimum(np.maximum(a, b), fn(X)), 10 * x
        ),
        "vectorize": lambda: np.vectorize(lambda one: one * fn(X))(x),
        "iterate": lambda: mn.iterate(lambda s: s + mn.replicated(fn, A), mn.zeros(()), max_iterations=2)[0],
        "nested": lambda: (
            mn.nested.from_lists([[1.0, 2.0], [3.0]])
            .scan(lambda u, a: u + a * fn(X), identity=0.0, update=lambda u, v: u + v)
            .values
        ),
        "combine of nested": lambda: (
            mn.nested.from_lists([[1.0, 2.0], [3.0]])
            .scan(np.add, identity=0.0, update=lambda u, v: u + v + 0 * fn(X))
            .values
        ),
    }


@TWO_WORKERS
@pytest.mark.parametrize("caller", made_by(np.sum))
def test_every_way_in_follows_what_a_function_reads(
    caller: str, files: Path, session: mn.session.Session
) -> None:
    texts = files_of(READS["a global of a helper in another module"])
    expected, recorded = {}, {}
    for number in (2, 3):
        write(files, texts, number)
        made = made_by(loaded(texts).total)[caller]()
        array = made[0] if isinstance(made, tuple) else made
        expected[number], recorded[number] = np.asarray(array), getattr(array, "expression", None)
    if caller != "vectorize":  # which NumPy calls with the values
        assert recorded[2] is not recorded[3]
    if not caller.startswith("combine"):  # parts may be alone
        assert not np.array_equal(expected[2], expected[3])
    write(files, texts, 2)
    made = made_by(loaded(texts).total)[caller]()
    np.testing.assert_array_equal(np.asarray(made[0] if isinstance(made, tuple) else made), expected[2])


@TWO_WORKERS
def test_selected_entries_follow_what_a_function_reads(files: Path, session: mn.session.Session) -> None:
    texts = {"mod": "LEAST = NUMBER\ndef total(row, column, value): return value >= LEAST"}
    A = mn.asarray(sp.csr_array(np.arange(9.0).reshape(3, 3) + 0.5))
    for number in (2, 5, 2):
        write(files, texts, number)
        assert A.select(loaded(texts).total).nnz == 9 - number


@TWO_WORKERS
@pytest.mark.parametrize("read", NOT_FOLLOWED)
def test_what_cannot_be_followed_is_not_remembered_and_explain_says_so(
    read: str, files: Path, session: mn.session.Session
) -> None:
    texts = files_of(NOT_FOLLOWED[read])
    x = mn.asarray(X)
    for number in (2, 3):
        (files / "rate.txt").write_text(str(number))
        write(files, texts, number)
        mod = loaded(texts)
        made = mn.reduce_blocks(mod.total, x, combine=np.add)
        assert "not remembered: total reads" in str(made.explain())
        assert float(made) == number * 4
        assert mn.reduce_blocks(mod.total, x, combine=np.add).expression is not made.expression
    assert named_by(mod.total).reason


@pytest.mark.cluster
def test_a_worker_process_calls_the_edited_version(files: Path) -> None:
    several = (
        "a helper in another module", "a module it imports itself by another name", "a class attribute",
        "a module of its own package, imported inside", "a lock",
    )  # fmt: skip
    x = mn.asarray(X)
    with mn.start(workers=1, threads=1, processes=True):
        for number in (2, 3):
            for read in several:
                texts = files_of(READS.get(read) or NOT_FOLLOWED[read])
                write(files, texts, number)
                made = mn.reduce_blocks(loaded(texts).total, x, combine=np.add)
                assert float(made) == number * 4, read
        # What cannot be sent is the worker's own, and so is the class that its methods are of.
        held = files_of(NOT_FOLLOWED["a method beside a lock"])["mod"]
        texts = {"held": held, "mod": "from held import total"}
        for number in (2, 3):
            write(files, texts, number)
            made = mn.reduce_blocks(loaded(texts).total, x, combine=np.add)
            if number == 2:
                assert float(made) == 8
                continue
            with pytest.raises(mn.errors.OptionError, match=r"held\.OWN cannot be sent .* another version"):
                float(made)


@pytest.mark.slow
def test_names_are_the_same_in_another_process(files: Path) -> None:
    script = (
        "import sys, hashlib, importlib\nfrom matnb.lazy.portable import named_by\n"
        "for name in sys.argv[1:]:\n"
        "    print(hashlib.sha256(named_by(importlib.import_module(name).total).code).hexdigest())\n"
    )
    names, expected = [], []
    for place, (read, text) in enumerate(READS.items()):
        texts = files_of(text)
        if len(texts) == 1 and read not in ("a compiled helper", "a frame and a pattern"):  # slow to import
            names.append(f"mod{place}")
            write(files, {names[-1]: texts["mod"]}, 2)
            importlib.invalidate_caches()
            code = named_by(importlib.import_module(names[-1]).total).code
            expected.append(hashlib.sha256(code).hexdigest())
    found = subprocess.run(
        [sys.executable, "-c", script, *names], cwd=files, capture_output=True, text=True, check=True,
        env={**os.environ, "PYTHONHASHSEED": "1", "PYTHONPATH": os.pathsep.join([str(files), *sys.path])},
    ).stdout.split()  # fmt: skip
    assert found == expected


def test_files_of_results_are_found_by_what_functions_read(files: Path, tmp_path: Path) -> None:
    texts = files_of(READS["a global of a helper in another module"])
    folder = tmp_path / "results"

    def total(number: int, read: dict[str, str]) -> float:
        write(files, read, number)
        with mn.start(workers=1, threads=1, memo_dir=folder):
            x = mn.asarray(X)
            return float(mn.reduce_blocks(loaded(read).total, x, combine=np.add))

    def num_files() -> int:
        return sum(path.suffix != "" or path.is_file() for path in folder.rglob("*"))

    assert total(2, texts) == 8
    first = num_files()
    assert total(3, texts) == 12
    second = num_files()
    assert second > first
    assert total(2, texts) == 8
    assert num_files() == second, "the first result is used again"
    assert total(4, files_of(NOT_FOLLOWED["a lock"])) == 16
    assert num_files() == second, "what cannot be found again is not written"


def test_what_autoreload_finds_edited_is_computed_again(files: Path, shell: InteractiveShell) -> None:
    texts = files_of(READS["a helper in another module"])
    write(files, texts, 2)
    cell = "%%distmat\nvalue = float(mn.reduce_blocks(total, mn.ones((4, 1)), combine=np.add))"
    shell.run_cell("%load_ext autoreload\n%autoreload 2\nfrom mod import total\nimport other").raise_error()
    for number in (2, 3):
        write(files, texts, number)
        for name in texts:  # edits are found by whole seconds
            os.utime(files / f"{name}.py", (number * 1000, 2_000_000_000 + number * 1000))
        shell.run_cell(cell).raise_error()
        assert shell.user_ns["value"] == number * 4
