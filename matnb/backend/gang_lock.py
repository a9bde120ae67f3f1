"""Who may run a gang on which workers: two gangs that each hold half of the workers would wait for ever."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from distributed import Client

_LOCK_SECONDS = 10.0  # then the Dask engine runs the loop beside the other one
_ANSWER_SECONDS = 5.0
_POLL_SECONDS = 0.05
_LOCK = "matnb-gang-"  # what the names of the locks begin with


class Turn:
    """The scheduler's ``MultiLock`` over workers, which says whose it is, and which a user can interrupt.

    Parameters
    ----------
    client
        Whose turn it is.
    name
        No other turn has it.
    addresses
        The workers.
    check
        Called again and again while the turn is waited for; what it raises ends that.
    """

    def __init__(
        self, client: Client, name: str, addresses: Sequence[str], check: Callable[[], None] = lambda: None
    ) -> None:
        self._client, self._check = client, check
        self._name = f"{client.id} {name}"  # a client's name has no space
        self._locks = [f"{_LOCK}{address}" for address in addresses]

    def wait(self) -> bool:
        """Wait for the turn; False when it did not come in time."""
        if self._ask(_LOCK_SECONDS):
            return True
        # A session whose process died does not give its turn back.
        if not self._client.run_on_scheduler(_release_dead):
            return False
        return self._ask(_POLL_SECONDS)

    def end(self) -> None:
        """Let others have their turn; nobody waits for the scheduler's word."""
        asyncio.run_coroutine_threadsafe(self._release(), self._client.loop.asyncio_loop)

    def _ask(self, seconds: float) -> bool:
        given_up = threading.Event()
        asking = asyncio.run_coroutine_threadsafe(
            self._acquire(seconds, given_up), self._client.loop.asyncio_loop
        )
        end = time.monotonic() + seconds + _ANSWER_SECONDS
        try:
            while time.monotonic() < end:
                self._check()
                with contextlib.suppress(concurrent.futures.TimeoutError):
                    return asking.result(_POLL_SECONDS)
        except BaseException:
            given_up.set()
            raise
        given_up.set()
        return False

    async def _acquire(self, seconds: float, given_up: threading.Event) -> bool:
        # A request that waits cannot be taken back (the scheduler would trip over it), so who no longer
        # wants the turn gives it back when it comes.
        has_turn = await self._client.scheduler.multi_lock_acquire(
            locks=self._locks, id=self._name, timeout=seconds, num_locks=len(self._locks)
        )
        if has_turn and given_up.is_set():
            await self._release()
            return False
        return bool(has_turn)

    async def _release(self) -> None:
        try:
            await self._client.scheduler.multi_lock_release(id=self._name)
        except OSError:  # the locks have gone with the scheduler
            return


def _release_dead(dask_scheduler: Any) -> bool:
    """Take turns from clients that are gone; on the scheduler."""
    return release_turns(dask_scheduler, lambda client: client not in dask_scheduler.clients)


def release_turns(scheduler: Any, is_gone: Callable[[str], bool]) -> bool:
    """Take turns from clients that are gone, on the scheduler; return whether there were any."""
    extension = scheduler.extensions["multi_locks"]
    turns = [name for name in extension.locks if name.startswith(_LOCK)]
    holders = {extension.locks[name][0] for name in turns if extension.locks[name]}
    dead = [holder for holder in holders if is_gone(holder.split(" ")[0])]
    for holder in dead:
        extension.release(holder)
    return bool(dead)
