"""What a client that is killed leaves on a cluster of others: nothing, a little later."""

from __future__ import annotations

import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest
from cell_process import CellProcess
from cli_cluster import CliCluster
from distributed import Client, LocalCluster
from waiting import wait_until

CODE = textwrap.dedent(
    """
    import sys
    import numpy as np
    import matnb as mn

    session = mn.connect(sys.argv[1])
    session.subscribe(lambda event: None, samples=True)
    a = mn.asarray(np.arange(40_000.0), blocks=4)
    x, _ = mn.iterate(lambda x: x * 0.5 + a, mn.ones(40_000), max_iterations=20)
    x.persist()
    print("there", flush=True)
    x, _ = mn.iterate(lambda x: x * 0.5 + a, mn.ones(40_000), max_iterations=10**8)
    x.persist()
    """
)


def left(client: Client) -> dict[str, object]:
    """Return all that tells of matnb on a cluster."""

    def on_worker(dask_worker):
        return [name for name in (*dask_worker.plugins, *dask_worker.handlers) if "matnb" in name]

    def on_scheduler(dask_scheduler):
        locks = dask_scheduler.extensions["multi_locks"].locks
        return [
            *(name for name in (*dask_scheduler.plugins, *dask_scheduler.worker_plugins) if "matnb" in name),
            *(key for key in dask_scheduler.tasks if "matnb" in str(key)),
            *(holder for name, holders in locks.items() for holder in holders if "matnb" in name),
        ]

    found = client.run(on_worker) | {"the scheduler": client.run_on_scheduler(on_scheduler)}
    return {place: names for place, names in found.items() if names}


@pytest.mark.cluster
def test_a_killed_client_leaves_nothing_on_a_cluster_of_others() -> None:
    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, processes=False, protocol="tcp", dashboard_address=":0"
        ) as cluster,
        Client(cluster) as client,
    ):
        child = subprocess.Popen(
            [sys.executable, "-c", CODE, cluster.scheduler_address], stdout=subprocess.PIPE, text=True
        )
        with child:
            assert child.stdout is not None
            assert child.stdout.readline() == "there\n"
            wait_until(lambda: any("gang-line" in name for names in left(client).values() for name in names))
            time.sleep(0.5)  # into the loop without an end
            child.send_signal(signal.SIGKILL)
        wait_until(lambda: not left(client), seconds=30)
        cluster.scale(3)  # and none to those that come
        client.wait_for_workers(3)
        assert not left(client)


@pytest.mark.slow
@pytest.mark.cluster
def test_a_client_that_is_killed_while_it_ships_an_array_leaves_no_block(tmp_path: Path) -> None:
    def clients_of_matnb(dask_scheduler):
        return sum("Matnb" in name for name in dask_scheduler.clients)

    def blocks_come(dask_worker):
        return sum("matnb" in str(story) for story in dask_worker.state.stimulus_log)

    def blocks_there(dask_worker):
        return sum("matnb" in str(key) for key in dask_worker.data)

    with CliCluster(tmp_path) as cluster:
        cluster.start_scheduler()
        cluster.start_worker("one")
        with Client(cluster.address, set_as_default=False) as client:
            client.wait_for_workers(1)
            with CellProcess() as cells:
                connected = cells.run(f"mn.connect({cluster.address!r}, timeout_seconds=30)")
                assert not connected.error, connected
                # The block is at the scheduler, and comes to the worker when its owner is gone.
                cluster.workers["one"].send_signal(signal.SIGSTOP)
                cells.send("mn.asarray(np.ones(400_000), blocks=1).persist()")
                time.sleep(2)
                cells.process.kill()
                cells.process.wait()
            wait_until(lambda: client.run_on_scheduler(clients_of_matnb) == 0)
            cluster.workers["one"].send_signal(signal.SIGCONT)
            wait_until(lambda: sum(client.run(blocks_come).values()) > 0)
            wait_until(lambda: sum(client.run(blocks_there).values()) == 0)
            assert client.run_on_scheduler(clients_of_matnb) == 0
