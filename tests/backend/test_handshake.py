"""Versions that do not work together are found, named and explained before anything else is sent."""

from __future__ import annotations

from collections.abc import Iterator

import distributed.versions
import pytest
from distributed import Client, LocalCluster

from matnb.backend.cluster import handshake
from matnb.backend.cluster.dask_cluster import connect
from matnb.errors import VersionMismatchError

HERE = {"python": "3.12.3", "matnb": "0.1.0", "dask": "2026.8.0", "distributed": "2026.8.0",
        "numpy": "2.4.6", "scipy": "1.17.1", "numba": "0.68.1"}  # fmt: skip
ALL = {
    name: None if name == "matnb" else places
    for name, places in [*handshake._PLACES.items(), ("matnb", None)]
}


@pytest.fixture(scope="module")
def foreign() -> Iterator[LocalCluster]:
    with LocalCluster(n_workers=3, threads_per_worker=1, processes=False, dashboard_address=":0") as theirs:
        yield theirs


def compare(**elsewhere: str | None) -> None:
    handshake._compare(HERE, {"the scheduler": HERE, "worker tcp://a:1": {**HERE, **elsewhere}}, ALL)


@pytest.mark.parametrize(
    ("name", "version"), [("python", "3.12.9.final.0"), ("numpy", "2.4.0"), ("numba", "0.68.0rc1")]
)
def test_a_patch_release_may_differ(name: str, version: str):
    compare(**{name: version})


@pytest.mark.parametrize(
    ("name", "version"),
    [("python", "3.11.3"), ("matnb", "0.1.1"), ("dask", "2026.8.1"), ("distributed", "2026.7.0"),
     ("numpy", "2.3.6"), ("scipy", "1.16.1"), ("numba", "0.67.1"), ("matnb", None)],
)  # fmt: skip
def test_a_difference_is_named_with_its_place(name: str, version: str | None):
    with pytest.raises(VersionMismatchError) as raised:
        compare(**{name: version})
    found = version or "not installed"
    assert f"{name} is {found} on worker tcp://a:1, {HERE[name]} here" in str(raised.value)


def test_many_workers_are_counted():
    old = {**HERE, "numpy": "1.26.4"}
    with pytest.raises(VersionMismatchError) as raised:
        handshake._compare(HERE, {f"worker {number}": old for number in range(9)}, ALL)
    assert "numpy is 1.26.4 on worker 0, worker 1 and 7 more, 2.4.6 here" in str(raised.value)
    assert "Install numpy 2.4 there" in str(raised.value)


def test_equal_versions_pass(foreign: LocalCluster):
    with connect(foreign) as cluster:
        assert cluster.alive() == (0, 1, 2)


def test_a_matnb_that_is_not_installed_but_importable_is_found(
    foreign: LocalCluster, monkeypatch: pytest.MonkeyPatch
):
    listed = distributed.versions._version_cached
    monkeypatch.setattr(
        distributed.versions, "_version_cached", lambda name: None if name == "matnb" else listed(name)
    )
    with connect(foreign) as cluster:
        assert cluster.client.get_versions(packages=["matnb"])["scheduler"]["packages"]["matnb"] is None


def test_dask_does_not_warn_of_what_we_let_pass(foreign: LocalCluster, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(
        "distributed.versions.error_message", lambda *_: {"warning": "toolz differs", "error": ""}
    )
    with pytest.warns(match="toolz differs"), Client(foreign, set_as_default=False):
        pass  # or this test would show nothing
    with connect(foreign) as cluster:
        assert cluster.alive() == (0, 1, 2)


@pytest.mark.parametrize("name", ["python", "distributed", "matnb"])
def test_connect_refuses_and_leaves(foreign: LocalCluster, monkeypatch: pytest.MonkeyPatch, name: str):
    versions = handshake.local_versions()
    monkeypatch.setattr(handshake, "local_versions", lambda: {**versions, name: "99.9"})
    with pytest.raises(
        VersionMismatchError, match=rf"{name} is .* on the scheduler, worker .* and 2 more, 99\.9 here"
    ):
        connect(foreign)


@pytest.mark.cluster
def test_a_worker_without_matnb_is_named():
    def hide_matnb() -> None:
        import sys
        from importlib.metadata import PackageNotFoundError

        import distributed.versions

        def version(name: str) -> str:
            if name == "matnb":
                raise PackageNotFoundError(name)
            return find(name)

        find, distributed.versions.version = distributed.versions.version, version
        distributed.versions._version_cached.cache_clear()
        for name in [each for each in sys.modules if each.split(".")[0] == "matnb"]:
            del sys.modules[name]
        sys.modules["matnb"] = None

    with (
        LocalCluster(n_workers=1, threads_per_worker=1, processes=True, dashboard_address=":0") as theirs,
        Client(theirs, set_as_default=False) as client,
    ):
        with connect(theirs) as cluster:
            worker = cluster.workers[0].address
        client.run(hide_matnb)
        with pytest.raises(VersionMismatchError, match=rf"matnb is not installed on worker {worker}"):
            connect(theirs)
