"""After any fault of a network and a quiet minute the next cell is right, or says what is the matter."""

from __future__ import annotations

import ast
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from cell_process import Answer, CellProcess
from cli_cluster import CliCluster
from namespaces import Network, skip_without_networks

pytestmark = [pytest.mark.slow, pytest.mark.cluster]

LIMIT_SECONDS = 60
CONNECT = "session = mn.connect({address!r}, timeout_seconds=30)\nlen(session.cluster.alive())"
BEFORE = """
a = mn.asarray(np.arange(300_000.0), blocks=4).persist()
b = (mn.asarray(np.arange(40_000.0), blocks=4) * 2).persist()
x, _ = mn.iterate(lambda x: x * 0.5 + b, mn.ones(40_000), max_iterations=20)
float(x.sum())
"""
CELL = """
x, _ = mn.iterate(lambda x: x * 0.5 + b, mn.ones(40_000), max_iterations={number})
float((a[:-1] * a[1:] + {number}).sum()), float((b + {number}).sum()), float(x.sum())
"""


def right_value(number: int) -> tuple[float, ...]:
    a, b, x = np.arange(300_000.0), np.arange(40_000.0) * 2, np.ones(40_000)
    for _ in range(number):
        x = x * 0.5 + b
    return float((a[:-1] * a[1:] + number).sum()), float((b + number).sum()), float(x.sum())


@pytest.fixture(scope="module")
def network() -> Iterator[Network]:
    skip_without_networks()
    with Network(["scheduler", "one", "two", "client"]) as network:
        yield network


class Lab:
    """A cluster on a network, and a client."""

    def __init__(self, network: Network, folder: Path) -> None:
        self.network, self.cluster = network, CliCluster(folder, network.addresses["scheduler"], 8786)
        self.cells: CellProcess | None = None

    def start(self) -> None:
        self.cluster.start_scheduler(self.network.inside("scheduler"))
        for name in ("one", "two"):
            self.start_worker(name)
        self.cells = CellProcess(self.network.inside("client"))

    def start_worker(self, name: str) -> None:
        inside = self.network.inside(name)
        self.cluster.start_worker(name, self.network.addresses[name], 8788, inside)

    def restart_ended(self) -> None:
        """Start the workers again that have ended, as whoever supervises them does."""
        for name, worker in list(self.cluster.workers.items()):
            if worker.poll() is not None:
                self.start_worker(name)

    def run(self, code: str, seconds: float = LIMIT_SECONDS) -> Answer:
        assert self.cells is not None
        return self.cells.run(code, seconds)

    def cell(self, number: int) -> Answer:
        """Run a cell that no other has run, with exchanges, reductions and a loop; see that it is right."""
        found = self.run(CELL.format(number=number))
        print(found)
        if not found.error:
            assert ast.literal_eval(found.value) == pytest.approx(right_value(number), rel=1e-12)
        return found

    def connect(self) -> Answer:
        found = self.run(CONNECT.format(address=self.cluster.address))
        while found.value == "1":
            found = self.run("session.cluster.refresh()\nlen(session.cluster.alive())")
        return found


@pytest.fixture
def lab(network: Network, tmp_path: Path) -> Iterator[Lab]:
    lab = Lab(network, tmp_path)
    with lab.cluster:
        try:
            lab.start()
            yield lab
        finally:
            if lab.cells is not None:
                lab.cells.__exit__(None, None, None)
            for name in network.spaces:
                network.join(name)
            network.part(("one", "two"), are_apart=False)


def test_a_scheduler_that_was_away_for_50_seconds(lab: Lab) -> None:
    assert lab.connect().value == "2"
    assert not lab.run(BEFORE).error
    assert not lab.cell(3).error
    lab.network.cut("scheduler")
    time.sleep(50)
    lab.network.join("scheduler")
    lab.restart_ended()
    found = lab.cell(4)  # right, or told
    assert not found.error or (found.ours and "workers" in found.words), found
    lab.restart_ended()
    assert not lab.cell(5).error


def test_a_client_that_slept_for_40_seconds(lab: Lab) -> None:
    assert lab.connect().value == "2"
    assert not lab.run(BEFORE).error
    assert not lab.cell(3).error
    assert lab.cells is not None
    lab.network.cut("client")
    lab.cells.process.send_signal(signal.SIGSTOP)
    time.sleep(40)
    lab.cells.process.send_signal(signal.SIGCONT)
    lab.network.join("client")
    assert not lab.cell(4).error
    assert not lab.cell(5).error


def test_workers_that_do_not_reach_each_other_are_named_at_connect_and_later(lab: Lab) -> None:
    assert lab.connect().value == "2"
    assert not lab.run(BEFORE).error
    lab.network.part(("one", "two"))
    found = lab.run("float((a[:-1] * a[1:])[::-1].sum())")
    assert found.ours, found
    assert "do not reach each other" in found.words
    assert "10.77.0.2:8788 to tcp://10.77.0.3:8788" in found.words
    diagnosis = lab.run("str(mn.doctor())")
    assert "do not reach each other" in diagnosis.value
    found = lab.run(CONNECT.format(address=lab.cluster.address))
    assert "do not reach each other" in found.words, found
    lab.network.part(("one", "two"), are_apart=False)
    assert lab.connect().value == "2"
    assert not lab.run(BEFORE).error
    assert not lab.cell(6).error
