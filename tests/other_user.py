"""What another user of this machine can do: a program that gives up root, and then tries."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

NOBODY = 65534
PROJECT = Path(__file__).parents[1]
needs_root = pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can become another user"
)
# Imports come first: another user may not be able to read where Python is installed.
_PROGRAM = """\
import asyncio, json, os, socket, sys, encodings.idna
import distributed, matnb.backend.cluster.private_sockets
from distributed import Client
from distributed.comm import connect, listen

given = json.loads(sys.argv[1])

def outcome(work):
    try:
        return f"had {{work()!r}}"
    except (OSError, RuntimeError) as error:
        return type(error).__name__

async def opened(address):
    return (await connect(address, timeout=1)).peer_address

os.setgroups([])
os.setresgid({nobody}, {nobody}, {nobody})
os.setresuid({nobody}, {nobody}, {nobody})
{body}
"""


def as_nobody(body: str, given: str) -> str:
    """Return what a program prints that runs as another user.

    Parameters
    ----------
    body
        Its lines; ``outcome`` tells how a call ends, ``opened`` opens a connection of Dask's.
    given
        JSON, which is ``given`` there.
    """
    program = _PROGRAM.format(nobody=NOBODY, body=textwrap.dedent(body))
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join([str(PROJECT), os.environ.get("PYTHONPATH", "")])}
    done = subprocess.run(
        [sys.executable, "-c", program, given],
        capture_output=True, text=True, timeout=60, check=False, env=environ, cwd="/",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout
