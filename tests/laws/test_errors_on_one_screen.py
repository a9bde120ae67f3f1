"""Whatever is wrong with a call of matnb's, a user sees one screen: where, what, and what to do."""

from __future__ import annotations

import atexit
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest
from cells import fail
from IPython.core.displaypub import CapturingDisplayPublisher
from IPython.core.interactiveshell import InteractiveShell
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from traitlets.config import Config
from wrong_calls import WORLD, of_estimators, of_modules, of_objects

import matnb as mn
from matnb.errors import MatnbError, MissingAttributeError

MOST_LINES = 8
# Said by Python itself of classes without arguments.
PYTHONS_OWN = ("ItemSimilarity() takes no arguments", "NamespaceInfo() takes no arguments")
SAMPLE = (
    "mn.load('gone.csv')", "mn.save(x, '/nowhere/x.npy')", "mn.start(wrokers=2)",
    "mn.connect('tcp://127.0.0.1:1', timeout_seconds=0.2)",
    "mn.compute(x, scheduler='threads')", "mn.visualize(x, stage='no')", "mn.repartition(x, -1)",
    "mn.align(x)",
    "mn.nested.load('gone.parquet')", "mn.opnes(3)", "x.smu()", "t['fair']", "t.desribe()", "x + mn.ones(4)",
    "x @ mn.ones(4)", "x[7]", "mn.graph.pagerank(A, alpha=0.85)", "mn.learn.KMeans(k=3)", "x.sum(axes=0)",
    "mn.iterate(lambda x: x @ mn.ones((7, 7)), x, max_iterations=2)", "mn.learn.KMeans(2).predict(M)",
)  # fmt: skip
OPENING = (
    "import matnb as mn\nx, A, M, t = mn.ones(3), mn.eye(3), mn.ones((3, 2)), mn.table({'fare': [1.0]})\n"
)


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InteractiveShell]:
    config = Config()
    config.HistoryManager.enabled = False
    config.InteractiveShell.colors = "nocolor"
    main, hook = sys.modules["__main__"], sys.excepthook
    shell = InteractiveShell(config=config, ipython_dir=str(tmp_path_factory.mktemp("ipython")))
    shell.display_pub = CapturingDisplayPublisher()
    mn.start(workers=1, threads=1, processes=False)
    shell.run_cell("%load_ext matnb").raise_error()
    shell.run_cell(WORLD).raise_error()
    yield shell
    mn.unload_ipython_extension(shell)
    shell.atexit_operations()
    atexit.unregister(shell.atexit_operations)
    sys.modules["__main__"], sys.excepthook = main, hook
    mn.stop()


def shown(
    shell: InteractiveShell, world: dict[str, Any], call: str
) -> tuple[BaseException | None, list[str]]:
    """Run a line as a plain cell does, and return the error and the lines that IPython shows of it."""
    name = shell.compile.cache(call, 0)
    try:
        eval(compile(call, name, "eval"), dict(world))
    except Exception as error:
        render = getattr(error, "_render_traceback_", None)
        if render is not None:
            return error, "\n".join(render()).splitlines()
        trace = error.__traceback__.tb_next if error.__traceback__ else None
        rows = shell.InteractiveTB.structured_traceback(type(error), error, trace)
        return error, "\n".join(rows).splitlines()
    return None, []


@pytest.mark.filterwarnings("ignore")
def test_every_wrong_call_is_a_screen_that_says_where_and_what(shell: InteractiveShell) -> None:
    world = shell.user_ns
    calls = [*of_modules(), *of_objects(world), *of_estimators()]
    assert len(calls) > 3000
    wrong, num_shown = [], 0
    for call in calls:
        error, rows = shown(shell, world, call)
        if error is None:
            continue
        num_shown += 1
        is_ours = isinstance(error, MatnbError | MissingAttributeError)
        last = [row for row in rows if not row.startswith("(%tb")][-1]
        if not is_ours and str(error) not in PYTHONS_OWN:
            wrong.append(f"{call}: {type(error).__name__}: {error}")
        elif len(rows) > MOST_LINES or not last.startswith(f"{type(error).__name__}: ") or not str(error):
            wrong.append(f"{call}: {len(rows)} lines, the last {last!r}")
        elif is_ours and not any(row.startswith("----> 1 ") for row in rows):
            wrong.append(f"{call}: does not say where: {rows}")
    assert not wrong, "\n".join([f"{len(wrong)} of {num_shown}", *wrong[:40]])
    assert num_shown > 3000


@pytest.mark.parametrize("magic", ["", "%%distmat\n"])
def test_ipython_shows_it_so(shell: InteractiveShell, capsys: pytest.CaptureFixture[str], magic: str) -> None:
    for call in SAMPLE:
        error, text = fail(shell, capsys, f"{magic}y = 1\n{call}\nz = 2\n")
        rows = text.strip().splitlines()
        assert len(rows) <= MOST_LINES, text
        assert isinstance(error, MatnbError | MissingAttributeError), text
        assert f"----> {3 if magic else 2} {call}" in text
        assert f"{type(error).__name__}: {error}" in rows


def test_awaiting_and_threads_in_a_cell_show_it_so(
    shell: InteractiveShell, capsys: pytest.CaptureFixture[str]
) -> None:
    for call in ("await asyncio.to_thread(mn.load, 'gone.csv')", "pool.submit(mn.load, 'gone.csv').result()"):
        around = "with futures.ThreadPoolExecutor(1) as pool:"
        cell = f"import asyncio, concurrent.futures as futures\n{around}\n    {call}\n"
        _, text = fail(shell, capsys, cell)
        rows = text.strip().splitlines()
        assert len(rows) <= MOST_LINES, text
        assert f"----> 3     {call}" in rows
        assert "MissingFileError: gone.csv: No such file or directory" in rows


def test_a_module_of_the_users_own_is_shown_beside_the_cell(
    shell: InteractiveShell,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "own_steps.py").write_text(
        "import matnb as mn\n\ndef outer():\n    return inner()\n\n"
        "def inner():\n    return mn.load('gone.csv')\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "own_steps", raising=False)
    _, text = fail(shell, capsys, "import own_steps\nown_steps.outer()")
    rows = text.strip().splitlines()
    assert len(rows) <= MOST_LINES, text
    assert "----> 7     return mn.load('gone.csv')" in rows
    assert "----> 2 own_steps.outer()" in rows


def run_script(folder: Path, text: str) -> list[str]:
    """Return the lines that a script writes where errors go."""
    path = folder / "script.py"
    path.write_text(text)
    variables = {**os.environ, "MATNB_WORKERS": "1"}
    done = subprocess.run([sys.executable, path], capture_output=True, text=True, check=False, env=variables)
    return done.stderr.splitlines()


def test_in_scripts_logs_threads_and_coroutines(tmp_path: Path) -> None:
    tried = "".join(f"try:\n    {call}\nexcept Exception as error:\n    log(error)\n" for call in SAMPLE)
    script = (
        f"{OPENING}import sys, asyncio, threading, traceback\n"
        "def log(error):\n"
        "    rows = ''.join(traceback.format_exception(error)).splitlines()\n"
        "    print('#', len(rows), error, file=sys.stderr)\n"
        f"{tried}"
        "def wrong():\n    mn.load('gone.csv')\n"
        "async def awaited():\n    await asyncio.to_thread(wrong)\n"
        "thread = threading.Thread(target=wrong)\nthread.start()\nthread.join()\n"
        "print('#thread', file=sys.stderr)\n"
        "asyncio.run(awaited())\n"
    )
    rows = run_script(tmp_path, script)
    logged = [row.split(" ", 2) for row in rows if row.startswith("# ")]
    assert len(logged) == len(SAMPLE)
    for (_, count, text), call in zip(logged, SAMPLE, strict=True):
        assert int(count) <= MOST_LINES, f"{call}: {count} lines: {text}"
    after = rows[len(rows) - 1 - next(n for n, row in enumerate(reversed(rows)) if row.startswith("# ")) :][
        1:
    ]
    in_thread, awaited = after[: after.index("#thread")], after[after.index("#thread") + 1 :]
    for found in (in_thread, awaited):
        assert len(found) <= MOST_LINES, "\n".join(found)
        assert "    mn.load('gone.csv')" in found
        assert found[-1] == "matnb.errors.MissingFileError: gone.csv: No such file or directory"


@pytest.mark.notebook
def test_nbclient_shows_it_so(tmp_path: Path) -> None:
    cells = [nbformat.v4.new_code_cell(OPENING), nbformat.v4.new_code_cell("mn.load('gone.csv')")]
    client = NotebookClient(
        nbformat.v4.new_notebook(cells=cells), resources={"metadata": {"path": str(tmp_path)}}
    )
    with pytest.raises(CellExecutionError):
        client.execute()
    shown = "\n".join(cells[1].outputs[0]["traceback"]).splitlines()
    assert len(shown) <= MOST_LINES, "\n".join(shown)
    assert "gone.csv: No such file or directory" in shown[-1]


INTERRUPTED = {
    "compute": """
        x = mn.random.default_rng(0).normal(size=(500, 500))
        print("now", flush=True)
        while True:
            x = x @ x / 500
            x.persist()
        """,
    "load": """
        with open("many.csv", "w") as file:
            file.write("a,b\\n" + "1,2.5\\n" * 200_000)
        print("now", flush=True)
        while True:
            mn.load("many.csv")["b"].sum().compute()
        """,
}


@pytest.mark.parametrize("name", [*INTERRUPTED, "import"])
def test_an_interrupt_of_a_script_is_three_lines_at_most(tmp_path: Path, name: str) -> None:
    if name == "import":
        text = (
            "import sys\nimport numpy\nprint('now', flush=True)\nimport matnb\nimport time\ntime.sleep(60)\n"
        )
    else:
        text = f"import matnb as mn\n{textwrap.dedent(INTERRUPTED[name])}"
    path = tmp_path / "script.py"
    path.write_text(text)
    variables = {**os.environ, "MATNB_WORKERS": "1"}
    process = subprocess.Popen(
        [sys.executable, path], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path,
        env=variables,
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stdout.readline() == "now\n"
    time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    rows = said.splitlines()
    assert 1 <= len(rows) <= 3, said
    assert rows[0].startswith(f"interrupted at {path}, line ")
    assert rows[-1].startswith(("CellCancelled: ", "KeyboardInterrupt"))
    assert process.returncode == -signal.SIGINT  # by which a shell ends its loop


def test_a_script_shows_the_line_of_a_users_function_that_failed(tmp_path: Path) -> None:
    path = tmp_path / "script.py"
    path.write_text(
        textwrap.dedent("""
        import matnb as mn
        def helper(b):
            return b * {"a": 1}["b"]
        def f(b):
            return helper(b + 1)
        x = mn.ones((1000, 10))
        print(float(mn.map_blocks(f, x, shape=x.shape, dtype=x.dtype).sum()))
        """)
    )
    done = subprocess.run([sys.executable, path], capture_output=True, text=True, check=False)
    assert len(done.stderr.splitlines()) <= 8
    assert (
        f'File "{path}", line 4, in a function that matnb called\n    return b * {{"a": 1}}["b"]'
        in done.stderr
    )
    assert "KernelError: f raised KeyError: 'b'" in done.stderr
