"""A session that starts again by itself is told in one line; where somebody else's ended, none does."""

from __future__ import annotations

import atexit
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from cells import fail
from cli_cluster import CliCluster
from distributed import Client, LocalCluster
from IPython.core.displaypub import CapturingDisplayPublisher
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

import matnb as mn
from matnb.errors import ClusterError
from matnb.session import active_session, planning

TOLD = (
    "matnb was stopped; it starts again with 1 worker x 2 threads, in this process: mn.start(...) chooses "
    "otherwise\n"
)
MAGICS = ("", "%%distmat\n")
CLOSED: dict[str, Callable[[mn.session.Session], object]] = {
    "stop": lambda session: mn.stop(),
    "close": lambda session: session.close(),
    "the end of with": lambda session: session.__exit__(None, None, None),
    "two stops": lambda session: (mn.stop(), mn.stop()),
}


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InteractiveShell]:
    config = Config()
    config.HistoryManager.enabled = False
    config.InteractiveShell.colors = "nocolor"
    main, hook = sys.modules["__main__"], sys.excepthook
    shell = InteractiveShell(config=config, ipython_dir=str(tmp_path_factory.mktemp("ipython")))
    shell.display_pub = CapturingDisplayPublisher()
    shell.run_cell("%load_ext matnb\nimport matnb as mn\nx = mn.arange(4.0)").raise_error()
    yield shell
    mn.unload_ipython_extension(shell)
    shell.atexit_operations()
    atexit.unregister(shell.atexit_operations)
    sys.modules["__main__"], sys.excepthook = main, hook
    mn.stop()


@pytest.fixture(autouse=True)
def _two_threads(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("MATNB_WORKERS", "1")
    monkeypatch.setenv("MATNB_THREADS", "2")
    yield
    mn.stop()


@pytest.mark.parametrize("magic", MAGICS)
@pytest.mark.parametrize("end", CLOSED)
def test_a_cell_tells_each_start_once(
    shell: InteractiveShell, capfd: pytest.CaptureFixture[str], end: str, magic: str
) -> None:
    for turn in range(2):
        CLOSED[end](mn.start(workers=1, threads=1))
        capfd.readouterr()
        shell.run_cell(f"{magic}y = float((x + {turn}).sum())").raise_error()
        assert capfd.readouterr().err == TOLD
        shell.run_cell(f"{magic}y = float((x + {turn + 10}).sum())").raise_error()
        assert not capfd.readouterr().err


def test_who_looks_at_what_is_stopped_starts_nothing(
    shell: InteractiveShell, capfd: pytest.CaptureFixture[str]
) -> None:
    mn.start(workers=1, threads=1)
    mn.stop()
    shell.run_cell("x\nprint(x, repr(x))\nx").raise_error()
    assert not capfd.readouterr().err
    assert active_session() is None


def test_a_script_tells_it_of_every_start_but_the_first(tmp_path: Path) -> None:
    path = tmp_path / "script.py"
    path.write_text(
        "import sys\nimport matnb as mn\n"
        "def said(word):\n    print('#', word, file=sys.stderr)\n"
        "x = mn.arange(4.0)\n"
        "float(x.sum())\nsaid('the first')\n"
        "mn.start(workers=1, threads=1)\nfloat(x.sum())\nsaid('an explicit one')\n"
        "mn.stop()\nmn.start(workers=1, threads=1)\nfloat(x.sum())\nsaid('one after a stop')\n"
        "for turn in range(2):\n    mn.stop()\n    float(x.sum())\n    float((x + 1).sum())\n"
        "said('two in a loop')\n"
        "with mn.start(workers=1, threads=1):\n    float(x.sum())\n"
        "(x + 2).compute()\nsaid('after with')\n"
    )
    variables = {**os.environ, "MATNB_WORKERS": "1", "MATNB_THREADS": "2"}
    done = subprocess.run([sys.executable, path], capture_output=True, text=True, check=True, env=variables)
    expected = (
        "# the first\n# an explicit one\n# one after a stop\n"
        f"{TOLD}{TOLD}# two in a loop\n{TOLD}# after with\n"
    )
    assert done.stderr == expected


def test_one_that_cannot_be_told_starts_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    mn.start(workers=1, threads=1)
    mn.stop()
    monkeypatch.setattr(sys, "stderr", None)  # as where no window is
    assert float(mn.arange(4.0).sum()) == 6
    mn.stop()


# What ends under a session of somebody else's, which has not been told of it.

ENDS: dict[str, Callable[[LocalCluster, Client], object]] = {
    "cluster and client are closed": lambda cluster, client: (client.close(), cluster.close()),
    "its workers are gone": lambda cluster, client: [
        cluster.sync(one.close) for one in cluster.workers.values()
    ],
    "matnb is stopped": lambda cluster, client: mn.stop(),
    "all are": lambda cluster, client: (client.close(), cluster.close(), mn.stop()),
}


@pytest.fixture
def connected() -> Iterator[tuple[LocalCluster, Client]]:
    options = {"n_workers": 1, "threads_per_worker": 1, "processes": False, "dashboard_address": ":0"}
    with LocalCluster(**options) as cluster, Client(cluster) as client:
        mn.connect(client, timeout_seconds=0.3)
        assert float(mn.arange(4.0).sum()) == 6
        yield cluster, client


def refuses(shell: InteractiveShell, capsys: pytest.CaptureFixture[str]) -> None:
    for magic in MAGICS:
        error, text = fail(shell, capsys, f"{magic}y = float((x + 1).sum())")
        assert isinstance(error, ClusterError)
        assert "mn.connect" in text or "start workers on the cluster" in text
        assert "starts again" not in text
    session = active_session()
    assert session is None or not session.cluster.owned


@pytest.mark.cluster
@pytest.mark.parametrize("end", ENDS)
def test_where_somebody_elses_cluster_ended_nothing_is_computed_here(
    shell: InteractiveShell,
    capsys: pytest.CaptureFixture[str],
    connected: tuple[LocalCluster, Client],
    end: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(planning, "_RESTART_SECONDS", 0.2)
    ENDS[end](*connected)
    refuses(shell, capsys)


@pytest.mark.cluster
def test_where_the_scheduler_was_killed_too(
    shell: InteractiveShell, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    with CliCluster(tmp_path) as cluster:
        cluster.start_scheduler()
        cluster.start_worker("a")
        mn.connect(cluster.address, timeout_seconds=30)
        session = active_session()
        assert session is not None
        assert float(mn.arange(4.0).sum()) == 6
        session.cluster.patience_seconds = 0.3
        cluster.scheduler.kill()
        refuses(shell, capsys)
        mn.stop()


@pytest.mark.cluster
def test_a_client_that_is_closed_ends_nothing(
    shell: InteractiveShell, capfd: pytest.CaptureFixture[str], connected: tuple[LocalCluster, Client]
) -> None:
    connected[1].close()
    for magic in MAGICS:
        shell.run_cell(f"{magic}y = float((x + 1).sum())").raise_error()
    session = active_session()
    assert session is not None
    assert not session.cluster.owned
    assert not capfd.readouterr().err
