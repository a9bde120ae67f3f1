"""The first message to each worker: which others it can reach, and what it is doing."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from distributed import Client
from distributed.comm import get_address_host_port

from matnb.backend.cluster.asking import answers_of

_GREET_SECONDS = 4.0  # of packets that are dropped, two more are sent within this
GREETINGS_SECONDS = _GREET_SECONDS + 3.0  # until all have answered, or never do
_MOST_GREETED = 64  # by each worker
_MOST_NAMED = 3
_SCHEMES = ("tcp://", "tls://", "ws://", "wss://")  # others are no network's


@dataclass(frozen=True)
class Greeting:
    """What a worker found of others, and does itself.

    Attributes
    ----------
    unreached
        Why there is no way to each address to which there is none.
    status
        Dask's word for how it is.
    num_running
        Tasks it does now, and blocks that come to it, anybody's.
    num_done
        Tasks it has ended so far.
    """

    unreached: Mapping[str, str]
    status: str
    num_running: int
    num_done: int


async def greet(addresses: Sequence[str], dask_worker: Any) -> Greeting:
    """Open a connection to each address and close it; on a worker.

    The system answers for a process, however busy that is, so who does not answer is out of reach.
    """
    reasons = await asyncio.gather(*map(_reason, addresses))
    state = dask_worker.state
    return Greeting(
        {address: why for address, why in zip(addresses, reasons, strict=True) if why},
        dask_worker.status.name,
        state.executing_count + len(state.long_running) + state.transfer_incoming_count,
        state.executed_count,
    )


async def _reason(address: str) -> str:
    # Why there is no way to an address; nothing if there is one.
    if not address.startswith(_SCHEMES):
        return ""
    host, port = get_address_host_port(address)
    try:
        _, writer = await asyncio.wait_for(asyncio.open_connection(host, port), _GREET_SECONDS)
    except TimeoutError:
        return "no answer"
    except OSError as error:
        # Below zero are numbers for names that nobody knows.
        if error.errno is not None and error.errno > 0:
            return os.strerror(error.errno)
        return error.strerror or str(error)
    writer.close()
    return ""


async def greetings(client: Client, addresses: Sequence[str]) -> dict[str, Greeting]:
    """Have workers greet each other, and return what each found; workers that time out are missing."""

    async def asked(place: int) -> list[Greeting]:
        address, others = addresses[place], [*addresses[place + 1 :], *addresses[:place]]
        return await answers_of(client, address, GREETINGS_SECONDS, greet, others[:_MOST_GREETED])

    answered = await asyncio.gather(*map(asked, range(len(addresses))))
    return {
        address: one
        for address, ones in zip(addresses, answered, strict=True)
        for one in ones
        if isinstance(one, Greeting)
    }


def pairs_apart(found: Mapping[str, Greeting]) -> dict[tuple[str, str], str]:
    """Return why there is no way from one worker to another, by both addresses; of those that answered.

    A worker that is gone is reached by nobody, and answers nobody.
    """
    return {
        (one, other): why
        for one, greeting in found.items()
        for other, why in greeting.unreached.items()
        if other in found
    }


def apart_text(pairs: Mapping[tuple[str, str], str]) -> str:
    """Return a sentence about workers that do not reach each other."""
    named = [f"from {one} to {other} ({why})" for (one, other), why in list(pairs.items())[:_MOST_NAMED]]
    more = f" and {len(pairs) - len(named)} more" if len(pairs) > len(named) else ""
    return f"workers do not reach each other: there is no way {', '.join(named)}{more}"


APART_TODO = (
    "let a firewall pass the ports of the workers, or give them an address that the others reach "
    "(--interface, --contact-address, --worker-port of dask worker)"
)
