"""Polls workers when a run stalls, and aborts what can never finish."""

from __future__ import annotations

import asyncio
import concurrent.futures
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from distributed import Client

from matnb.backend.cluster.connection import BROKEN
from matnb.backend.cluster.dask_cluster import DaskCluster
from matnb.backend.cluster.greetings import APART_TODO, Greeting, apart_text, greetings, pairs_apart
from matnb.errors import ClusterError

# A run that has not ended by then is asked about, and again as often: a task may well take longer.
QUIET_SECONDS = 30.0
_AGAIN_SECONDS = 5.0  # after an answer that is no good: one alone may be of a moment
_SCHEDULER_SECONDS = 10.0
_STILL_SECONDS = 30.0  # in which no worker does anything
_PAUSED_SECONDS = 300.0  # the same where one is paused, and writes blocks to disk


@dataclass(frozen=True)
class _Answer:
    # Whether the scheduler answers, and what each worker said that does.
    from_scheduler: bool
    found: Mapping[str, Greeting]

    @property
    def apart(self) -> dict[tuple[str, str], str]:
        return pairs_apart(self.found)


class Inquiry:
    """Polls the workers about one run while a thread waits for it; a context manager.

    What was asked and not answered when the wait ends is asked no more.

    Parameters
    ----------
    cluster
        Of others: those that matnb starts are in this process or on this machine.
    owners
        The workers that the run needs.
    has_tasks
        Tells whether tasks are waited for, and not blocks that are on their way to here or from here.
    """

    def __init__(
        self, cluster: DaskCluster, owners: Collection[int], has_tasks: Callable[[], bool] = lambda: False
    ) -> None:
        self._cluster, self._owners, self._has_tasks = cluster, owners, has_tasks
        self._next = time.monotonic() + QUIET_SECONDS
        self._asking: concurrent.futures.Future[_Answer] | None = None
        self._before = _Answer(True, {})
        self._still_since: float | None = None
        self._num_done = -1

    def __enter__(self) -> Inquiry:
        return self

    def __exit__(self, *_: object) -> None:
        if self._asking is not None:
            self._asking.cancel()

    def look(self) -> None:
        """Ask, where it is time; to be called again and again.

        Raises
        ------
        ClusterError
            When what is waited for can never come: workers do not reach each other, none of them does
            anything, or the scheduler does not answer. Each is looked at twice.
        """
        if self._cluster.owned or time.monotonic() < self._next:
            return
        if self._asking is None:
            addresses = [self._cluster.workers[owner].address for owner in sorted(self._owners)]
            loop = self._cluster.client.loop.asyncio_loop
            self._asking = asyncio.run_coroutine_threadsafe(_asked(self._cluster.client, addresses), loop)
        if not self._asking.done():
            return
        try:
            answer = self._asking.result()
        except (*BROKEN, AttributeError):  # the connection has broken, which others notice
            answer = _Answer(True, {})
        before, self._before, self._asking = self._before, answer, None
        self._judge(before, answer)
        is_bad = not answer.from_scheduler or answer.apart or self._still_since is not None
        self._next = time.monotonic() + (_AGAIN_SECONDS if is_bad else QUIET_SECONDS)

    def _judge(self, before: _Answer, now: _Answer) -> None:
        where = self._cluster.description
        if not before.from_scheduler and not now.from_scheduler:
            raise ClusterError(
                f"the scheduler of {where} does not answer, though the connection is there: it is stopped "
                "or out of memory; look into its log, start it again, and run this again"
            )
        if apart := {pair: why for pair, why in now.apart.items() if pair in before.apart}:
            raise ClusterError(f"{where}: {apart_text(apart)}; {APART_TODO}")
        self._look_whether_still(now)
        is_paused = any(one.status == "paused" for one in now.found.values())
        most = _PAUSED_SECONDS if is_paused else _STILL_SECONDS
        if self._still_since is not None and time.monotonic() - self._still_since > most:
            doing = "; ".join(self._doing(address, one) for address, one in now.found.items())
            raise ClusterError(
                f"{where}: the run was given up, since no worker does anything: {doing}. Run it again; if "
                "that does not help, start the workers again"
            )

    def _look_whether_still(self, now: _Answer) -> None:
        # A worker that does not answer may be busy: then nothing follows from what the others do.
        num_done = sum(one.num_done for one in now.found.values())
        is_still = (
            self._has_tasks()
            and len(now.found) == len(set(self._owners)) > 0
            and not any(one.num_running for one in now.found.values())
            and num_done == self._num_done
        )
        self._num_done = num_done
        if not is_still:
            self._still_since = None
        elif self._still_since is None:
            self._still_since = time.monotonic()

    def _doing(self, address: str, greeting: Greeting) -> str:
        number = {each.address: number for number, each in enumerate(self._cluster.workers)}[address]
        if greeting.status == "paused":
            return f"worker {number} is paused, as its memory is nearly full"
        return f"worker {number} is {greeting.status} and has no task"


async def _asked(client: Client, addresses: list[str]) -> _Answer:
    try:
        await asyncio.wait_for(client.scheduler.identity(n_workers=0), _SCHEDULER_SECONDS)
    except TimeoutError:
        return _Answer(False, {})
    return _Answer(True, await greetings(client, addresses))
