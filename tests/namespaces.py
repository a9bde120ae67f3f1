"""A network of its own, of machines that are network namespaces behind a bridge; only root can make one."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from types import TracebackType

import pytest


class Network:
    """Machines at 10.77.0.1 and so on, which reach each other and nothing else; gone at the end.

    Parameters
    ----------
    names
        Of the machines.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self.hub = f"matnb{os.getpid()}hub"
        self.spaces = {name: f"matnb{os.getpid()}{name}" for name in names}
        self.addresses = {name: f"10.77.0.{number}" for number, name in enumerate(names, 1)}

    def inside(self, name: str) -> list[str]:
        """Return the command that runs another one on a machine."""
        return ["ip", "netns", "exec", self.spaces[name]]

    def cut(self, name: str) -> None:
        """Take the cable out: what is sent from or to a machine is lost."""
        _ip("-n", self.hub, "link", "set", name, "down")

    def join(self, name: str) -> None:
        """Put the cable back."""
        _ip("-n", self.hub, "link", "set", name, "up")

    def part(self, names: Sequence[str], are_apart: bool = True) -> None:
        """Let nothing pass between some machines, as a firewall does that drops it, or all again."""
        for name in names:
            isolated = "on" if are_apart else "off"
            _ip("-n", self.hub, "link", "set", name, "type", "bridge_slave", "isolated", isolated)

    def __enter__(self) -> Network:
        try:
            _ip("netns", "add", self.hub)
            _ip("-n", self.hub, "link", "add", "bridge", "type", "bridge")
            _ip("-n", self.hub, "link", "set", "bridge", "up")
            for name, space in self.spaces.items():
                self._add(name, space)
            for space in self.spaces.values():  # else one that is out of reach would be noticed at once
                for name, other in self.spaces.items():
                    if other != space:
                        neighbor = [self.addresses[name], "lladdr", _hardware(name, self), "dev", "wire"]
                        _ip("-n", space, "neigh", "replace", *neighbor, "nud", "permanent")
        except BaseException:
            self._remove()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._remove()

    def _add(self, name: str, space: str) -> None:
        _ip("netns", "add", space)
        peer = ["type", "veth", "peer", "name", "wire", "address", _hardware(name, self), "netns", space]
        _ip("-n", self.hub, "link", "add", name, *peer)
        _ip("-n", self.hub, "link", "set", name, "master", "bridge", "up")
        _ip("-n", space, "addr", "add", f"{self.addresses[name]}/24", "dev", "wire")
        for device in ("lo", "wire"):
            _ip("-n", space, "link", "set", device, "up")

    def _remove(self) -> None:
        for space in (*self.spaces.values(), self.hub):
            subprocess.run(["ip", "netns", "del", space], check=False, capture_output=True)


def _hardware(name: str, network: Network) -> str:
    return f"02:00:0a:4d:00:{int(network.addresses[name].split('.')[-1]):02x}"


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True)


def skip_without_networks() -> None:
    """Skip the test that runs where no network can be made."""
    if shutil.which("ip") is None:
        pytest.skip("there is no ip command (iproute2), with which machines are made of network namespaces")
    if os.geteuid() != 0:
        pytest.skip("only root can make network namespaces")
    space = f"matnb{os.getpid()}probe"
    found = subprocess.run(["ip", "netns", "add", space], check=False, capture_output=True, text=True)
    if found.returncode:
        pytest.skip(f"no network namespace can be made here: {found.stderr.strip()}")
    subprocess.run(["ip", "netns", "del", space], check=True, capture_output=True)
