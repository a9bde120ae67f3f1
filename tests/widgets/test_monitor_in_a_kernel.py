"""The load monitor in a real kernel: live while a cell runs, frozen when it ends, counts in a report."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from distributed import Client, LocalCluster
from kernels import book_of, client_of, texts
from waiting import wait_until
from watched_kernel import VIEW, WatchedKernel

pytestmark = pytest.mark.notebook

SETUP = """
import numpy as np
import matnb as mn
from matnb.widgets import monitor as monitors
monitors.CLOSE_SECONDS = 2.0  # so that nobody waits for long
A = mn.random.rmat(scale=12, edge_factor=16, seed=0).persist()
x0 = mn.ones(2**12)
"""
ITERATE = """
x, _ = mn.iterate(lambda x: A @ x / {divisor}, x0, max_iterations={most})
x = x.persist()
"""
UNTIL_SEEN = """
import pathlib
seen, turn = pathlib.Path("seen"), 0
while not seen.exists():
    turn += 1
    x = mn.iterate(lambda x: A @ x / ({divisor} + turn / 1000), x0, max_iterations=1000)[0].persist()
"""
ENDLESS = "%%distmat\nx, _ = mn.iterate(lambda x: A @ x / 1000, x0, max_iterations=10**8)\nx"


@pytest.fixture
def kernel(tmp_path: Path) -> Iterator[WatchedKernel]:
    """Return a kernel with a matrix in it."""
    with WatchedKernel(tmp_path) as found:
        found.run(SETUP)
        assert found.errors == []
        yield found


def iterate(divisor: int, most: int) -> str:
    return ITERATE.format(divisor=divisor, most=most)


def run_until_seen(kernel: WatchedKernel, folder: Path, code: str) -> None:
    """Run a cell until five changes of its picture came, on a machine of any speed."""
    sent, wanted = kernel.begin(code), len(kernel.changes) + 5
    deadline = time.monotonic() + 60
    while len(kernel.changes) < wanted and time.monotonic() < deadline:
        kernel.take_for(0.2)
    (folder / "seen").touch()
    kernel.end(sent)
    (folder / "seen").unlink()
    assert len(kernel.changes) >= wanted


def pictures(kernel: WatchedKernel) -> list[dict[str, str]]:
    return [data for data in kernel.outputs.values() if "worker" in data.get("text/plain", "")]


def wait_for_closed(kernel: WatchedKernel) -> None:
    # Not at once: a page that was loaded again may ask for the widgets first.
    assert kernel.opened != []
    kernel.wait_for_closed()
    assert kernel.still_open == []
    kernel.take_for(0.5)


@pytest.mark.slow
def test_it_changes_while_a_cell_runs_and_a_picture_stays(kernel: WatchedKernel, tmp_path: Path) -> None:
    run_until_seen(kernel, tmp_path, f"mn.monitor(buttons=True)\n{UNTIL_SEEN.format(divisor=1000)}")
    (one,) = pictures(kernel)
    assert sorted(one) == ["text/html", "text/plain"]
    assert "product" in one["text/plain"]
    assert len(kernel.opened) >= 5
    wait_for_closed(kernel)
    run_until_seen(kernel, tmp_path, f"{UNTIL_SEEN.format(divisor=1001)}\nprint('done')")  # another cell
    (again,) = pictures(kernel)
    assert again != one
    wait_for_closed(kernel)
    assert kernel.text == "done\n"
    assert kernel.errors == []
    kernel.run("mn.monitor().close()\nimport threading\nprint([one.name for one in threading.enumerate()])")
    assert "matnb-monitor" not in kernel.text


def test_cancel_stops_the_cell_within_two_seconds_and_the_next_one_runs(kernel: WatchedKernel) -> None:
    kernel.run("%load_ext matnb\nmn.monitor(buttons=True)")
    sent = kernel.begin(ENDLESS)
    kernel.take_for(4)
    (button,) = (name for name, state in kernel.models.items() if state.get("description") == "Cancel")
    begin = time.monotonic()
    kernel.send(button, {"method": "custom", "content": {"event": "click"}}, kernel.new_subshell())
    kernel.end(sent)
    assert time.monotonic() - begin < 2
    assert kernel.errors == ["CellCancelled"]
    wait_for_closed(kernel)
    assert len(pictures(kernel)) == 1
    kernel.run("print(float(mn.ones(10).sum()))")
    assert kernel.text.endswith("10.0\n")


def test_an_interrupt_leaves_a_picture(kernel: WatchedKernel) -> None:
    kernel.run("%load_ext matnb\nmn.monitor(buttons=True)")
    sent = kernel.begin(ENDLESS)
    kernel.take_for(3)
    assert kernel.still_open != []
    kernel.interrupt()
    kernel.end(sent)
    assert kernel.errors == ["CellCancelled"]
    wait_for_closed(kernel)
    assert VIEW not in str(kernel.outputs)


STAYS = """
import ipywidgets
from matnb.widgets.output_area import LiveDisplay
shown = LiveDisplay(lambda: {"text/plain": "a picture"}, lambda: ipywidgets.HTML("now"))
"""


def test_what_stays_is_frozen_when_the_kernel_exits(kernel: WatchedKernel) -> None:
    kernel.run(STAYS)
    assert VIEW in str(kernel.outputs)
    kernel.client.shutdown()
    kernel.take_for(3)
    assert kernel.outputs.popitem()[1] == {"text/plain": "a picture"}
    assert kernel.closed == []  # a page whose kernel is restarted knows none of them any more


def test_unloading_closes_it(kernel: WatchedKernel) -> None:
    kernel.run("%load_ext matnb\nmn.monitor(buttons=True)")
    kernel.run("%unload_ext matnb\nfrom matnb.widgets import monitor\nprint(monitor._monitor)")
    assert kernel.text == "None\n"


@pytest.mark.parametrize("stored", [True, False])
def test_a_report_is_the_same_every_time_and_has_no_widget(tmp_path: Path, stored: bool) -> None:
    def outputs() -> tuple[list[object], list[str]]:
        second = f"%load_ext matnb\n%distmat monitor\n{iterate(1000, 2000)}"
        book = book_of(f"{SETUP}\nmn.monitor()", second, "mn.monitor()")
        client = client_of(book, tmp_path)
        client.store_widget_state = stored
        client.execute()
        assert "widgets" not in book.metadata
        return [cell["outputs"] for cell in book.cells], texts(book)

    found, lines = outputs()
    assert outputs()[0] == found
    assert VIEW not in str(found)
    assert "execute_result" not in str(found)
    assert len(lines) == 3
    assert all(line.startswith("load monitor: 1 worker, ") for line in lines)
    assert "1 loop of 2,000 iterations" in lines[1]


FOREIGN = """
import numpy as np
import time
import matnb as mn
from matnb.widgets import monitor as monitors
monitors.CLOSE_SECONDS = 2.0
session = mn.connect("{address}")
mn.monitor(buttons=True)
"""
TURNS = """
a, turn, begin = mn.asarray(np.eye(300), blocks=2), 0, time.monotonic()
while turn == 0 or time.monotonic() - begin < 4:  # longer than what shows no buttons yet
    turn += 1
    x = mn.iterate(lambda x: a @ x / ({by} + turn), mn.ones(300), max_iterations=300)[0].persist()
"""


@pytest.mark.cluster
@pytest.mark.slow
def test_two_notebooks_on_one_cluster_each_have_their_own(tmp_path: Path) -> None:
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0") as cluster,
        Client(cluster) as client,
        WatchedKernel(tmp_path) as first,
        WatchedKernel(tmp_path) as second,
    ):
        before = client.run(lambda dask_worker: sorted(dask_worker.plugins))
        for kernel in (first, second):
            kernel.run(FOREIGN.format(address=cluster.scheduler_address))
        for number in range(2):
            sent = [kernel.begin(TURNS.format(by=number + 2)) for kernel in (first, second)]
            for kernel, one in zip((first, second), sent, strict=True):
                kernel.end(one)
        for kernel in (first, second):
            wait_for_closed(kernel)
            assert kernel.errors == []
            (one,) = pictures(kernel)
            assert "\n2 workers, " in one["text/plain"]
            assert "after iteration 300" in one["text/plain"]
        first.run("mn.stop()")
        second.run(TURNS.format(by=5))
        assert "the session was stopped" in pictures(first)[0]["text/plain"]
        assert "stopped" not in pictures(second)[0]["text/plain"]
        second.run("mn.stop()")
        assert second.errors == []
        wait_until(lambda: client.run(lambda dask_worker: sorted(dask_worker.plugins)) == before)
