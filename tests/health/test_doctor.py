"""The doctor says what is so, what is wrong and what to change, with any cluster and with none."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from distributed import LocalCluster

import matnb as mn
from matnb.config import Config
from matnb.health.doctor import Circumstances, Diagnosis, diagnosis
from matnb.health.node_info import ProcessInfo
from matnb.pictures.findings import Finding

VERSIONS = {
    "python": "3.12.1",
    "numpy": "2.2.0",
    "dask": "2026.1.0",
    "distributed": "2026.1.0",
    "scipy": "1.15.0",
    "numba": "0.61.0",
    "matnb": "0.1.0",
}
HERE = ProcessInfo("here", VERSIONS, num_cores=4, machine_bytes=16 * 10**9, free_bytes=10**11)
SCHEDULER = ProcessInfo(
    "the scheduler", VERSIONS, "one", "tls://one:8786", num_cores=8, listening=("tls://0.0.0.0:8786",)
)
WORKER = ProcessInfo(
    "worker 0",
    VERSIONS,
    "two",
    "tls://two:4000",
    num_cores=8,
    num_threads=8,
    blas_threads=1,
    memory_limit_bytes=16 * 10**9,
    memory_bytes=10**9,
    machine_bytes=32 * 10**9,
    folder="/tmp",
    free_bytes=10**11,
    listening=("tls://[::]:4000",),
)
WELL = Circumstances((HERE, SCHEDULER, WORKER), Config(), "the Dask cluster at tls://one:8786", owned=False)


@pytest.fixture(autouse=True)
def _stopped() -> Iterator[None]:
    yield
    mn.stop()


def told(found: Diagnosis, topic: str) -> list[Finding]:
    return [one for one in found.findings if one.topic == topic]


def with_worker(**changes: object) -> Circumstances:
    return replace(WELL, places=(HERE, SCHEDULER, replace(WORKER, **changes)))


def test_a_cluster_that_is_well_gets_no_advice():
    found = diagnosis(WELL)
    assert {one.verdict for one in found.findings} == {"ok"}
    assert found.is_well
    assert str(found).endswith("\nall is well")
    assert {one.topic for one in found.findings} == {
        "cluster", "versions", "threads", "BLAS", "memory", "disk", "ports", "notebook",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("seen", "topic", "verdict", "found", "todo"),
    [
        (
            with_worker(versions={**VERSIONS, "numpy": "2.1.0"}),
            "versions",
            "wrong",
            "numpy is 2.1.0 on worker 0, 2.2.0 here",
            "install numpy 2.2 there, or their versions here",
        ),
        (
            with_worker(versions={**VERSIONS, "matnb": None}),
            "versions",
            "wrong",
            "matnb is not installed on worker 0, 0.1.0 here",
            "install matnb 0.1.0 there",
        ),
        (
            with_worker(num_threads=16),
            "threads",
            "advice",
            "16 kernels at a time on 8 cores on two",
            "here 8",
        ),
        (
            with_worker(blas_threads=8),
            "BLAS",
            "advice",
            "8 threads in each kernel on worker 0",
            "OMP_NUM_THREADS=1",
        ),
        (with_worker(memory_limit_bytes=0), "memory", "advice", "no limit on worker 0", "memory limit"),
        (
            with_worker(memory_limit_bytes=64 * 10**9),
            "memory",
            "advice",
            "the limits of workers on two are 64 GB, the machine has 32 GB",
            "less",
        ),
        (
            with_worker(memory_bytes=15 * 10**9),
            "memory",
            "advice",
            "nearly full on worker 0",
            "mn.memo.clear()",
        ),
        (
            with_worker(memory_limit_bytes=10**9, memory_bytes=1),
            "memory",
            "advice",
            "more than all workers",
            "memo=",
        ),
        (
            with_worker(spills=True),
            "memory",
            "advice",
            "blocks may be written to disk on worker 0",
            "memory.target",
        ),
        (
            with_worker(free_bytes=10**8),
            "disk",
            "advice",
            "less than 1 GB free in the folder of worker 0",
            "/tmp",
        ),
        (
            with_worker(listening=("tcp://[::]:4000", "http://127.0.0.1:4001")),
            "ports",
            "advice",
            "neither secret nor checked (tcp, not TLS): worker 0 at tcp://[::]:4000",
            "tls://",
        ),
        (
            with_worker(listening=("tls://[::]:4000", "http://0.0.0.0:4001")),
            "ports",
            "advice",
            "web pages, which ask for no password, are open to others: worker 0 at http://0.0.0.0:4001",
            "--dashboard-address 127.0.0.1:0",
        ),
        (
            with_worker(listening=None),
            "ports",
            "advice",
            "the system does not tell on which addresses worker 0 can be reached",
            "--host 127.0.0.1",
        ),
        (replace(WELL, has_widgets=False), "notebook", "advice", "ipywidgets is missing", "pip install"),
        (replace(WELL, num_silent=1), "cluster", "wrong", "1 worker did not answer in time", "hang"),
        (
            replace(WELL, places=(HERE,), problem="nothing at tls://one"),
            "cluster",
            "wrong",
            "nothing at tls://one",
            "start its scheduler and workers again, or mn.connect(...)",
        ),
        (
            replace(WELL, places=(HERE,), problem="nobody there", owned=True),
            "cluster",
            "wrong",
            "nobody there",
            "mn.stop(), then mn.start()",
        ),
        (replace(WELL, num_gone=2), "cluster", "advice", "2 workers gone", "logs"),
        (replace(WELL, places=(HERE, SCHEDULER)), "cluster", "wrong", "0 workers answered", "start"),
        (
            replace(WELL, config=Config(memo_dir="/results"), folder_free_bytes=10**9),
            "disk",
            "advice",
            "/results may take 4 GB, more than is free there",
            "memo_dir=",
        ),
        (
            replace(WELL, owned=True, places=(HERE, SCHEDULER, replace(WORKER, num_threads=1))),
            "threads",
            "advice",
            "1 kernel at a time on 8 cores",
            "mn.start(workers=1, threads=8)",
        ),
    ],
)
def test_what_is_the_matter_is_said_with_what_to_do(seen, topic, verdict, found, todo):
    ill = [one for one in diagnosis(seen).findings if one.verdict != "ok"]
    assert [(one.topic, one.verdict) for one in ill] == [(topic, verdict)]
    assert found in ill[0].found
    assert todo in ill[0].todo


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.0.1", "[::1]", "[::ffff:127.0.0.1]"])
def test_what_listens_on_the_loopback_is_on_this_machine_alone(host: str):
    listening = (f"tcp://{host}:4000", f"http://{host}:4001")
    seen = replace(WELL, places=(HERE, *(replace(one, listening=listening) for one in (SCHEDULER, WORKER))))
    (one,) = told(diagnosis(seen), "ports")
    assert one.found.startswith("open on this machine alone (loopback)")


def test_measured_numbers_are_left_out_where_they_are_not_wanted():
    found = diagnosis(WELL)
    assert "1 GB used by the fullest" in str(found)
    for text in found.bundle(measured=False).values():
        assert "used by" not in text


def test_what_others_named_is_escaped():
    found = diagnosis(replace(WELL, description="<script>", config=Config(memo_dir="<b>")))
    assert "<script>" not in found.bundle()["text/html"]
    assert "&lt;script&gt;" in found.bundle()["text/html"]


def test_workers_in_this_process_share_its_memory():
    one = replace(WORKER, in_process=True, memory_limit_bytes=10**9, memory_bytes=2 * 10**9)
    ten = tuple(replace(one, name=f"worker {number}") for number in range(10))
    seen = replace(WELL, places=(HERE, SCHEDULER, *ten), config=Config(memo_bytes=10**9))
    assert not [one for one in told(diagnosis(seen), "memory") if "full on" in one.found]
    fuller = tuple(replace(one, memory_bytes=9 * 10**9) for one in ten)
    seen = replace(seen, places=(HERE, SCHEDULER, *fuller))
    assert [one for one in told(diagnosis(seen), "memory") if "full on" in one.found]


def test_without_a_session_none_is_started():
    found = mn.doctor()
    assert mn.active_session() is None
    assert found.is_well
    assert told(found, "cluster")[0].found == "no session is running; the first result starts one"


def test_the_embedded_cluster_opens_no_port_and_its_versions_agree():
    mn.start(workers=2, threads=1)
    found = mn.doctor()
    assert found.is_well
    assert "2 workers answered" in told(found, "cluster")[0].found
    assert told(found, "ports")[0].found == "none is open; nothing is sent anywhere"
    assert told(found, "versions")[0].found.endswith("the same here, on the scheduler and on the workers")


@pytest.mark.cluster
def test_a_cluster_of_others_is_looked_into_and_left_as_it_was():
    with LocalCluster(
        n_workers=2,
        threads_per_worker=4,
        processes=False,
        protocol="tcp",
        dashboard_address="127.0.0.1:0",
        memory_limit="1GB",
    ) as theirs:
        mn.connect(theirs)
        found = mn.doctor()
        assert found.is_well
        assert "blocks may be written to disk on worker 0, worker 1" in [
            one.found for one in told(found, "memory")
        ]
        assert [one.verdict for one in told(found, "ports")] == ["ok"]  # it listens on the loopback
        assert theirs.scheduler.tasks == {}


@pytest.mark.slow
def test_a_cluster_that_is_gone_is_wrong():
    theirs = LocalCluster(
        n_workers=1, threads_per_worker=1, processes=False, protocol="tcp", dashboard_address=":0"
    )
    with theirs:
        mn.connect(theirs)
    found = mn.doctor()
    assert not found.is_well
    (one,) = told(found, "cluster")
    assert "does not answer" in one.found
    assert "start its scheduler" in one.todo
    assert "mn.connect(...)" in one.todo
    assert "not known" in told(found, "ports")[0].found
