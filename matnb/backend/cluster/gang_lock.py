"""The lock on workers for a gang: two gangs with half of the workers each would deadlock."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
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
        self._has_turn = self._is_over = False

    def wait(self) -> bool:
        """Wait for the turn; False when it did not come in time."""
        has_turn = False
        try:
            # A session whose process died does not give its turn back.
            has_turn = self._ask(_LOCK_SECONDS) or (
                self._client.sync(_dead_released, self._client, callback_timeout=_ANSWER_SECONDS)
                and self._ask(_POLL_SECONDS)
            )
        finally:
            if not has_turn:
                self.end()
        return has_turn

    def end(self) -> None:
        """Let others have their turn, also one that comes yet; nobody waits for the scheduler's word."""
        asyncio.run_coroutine_threadsafe(self._leave(), self._client.loop.asyncio_loop)

    def _ask(self, seconds: float) -> bool:
        asking = asyncio.run_coroutine_threadsafe(self._acquire(seconds), self._client.loop.asyncio_loop)
        end = time.monotonic() + seconds + _ANSWER_SECONDS
        while time.monotonic() < end:
            self._check()
            with contextlib.suppress(concurrent.futures.TimeoutError):
                return asking.result(_POLL_SECONDS)
        return False

    # On the event loop alone, so that one of the two gives back a turn that comes while it is given up.

    async def _acquire(self, seconds: float) -> bool:
        # A request that waits cannot be taken back (the scheduler would trip over it), so who no longer
        # wants the turn gives it back when it comes.
        self._has_turn = await self._client.scheduler.multi_lock_acquire(
            locks=self._locks, id=self._name, timeout=seconds, num_locks=len(self._locks)
        )
        if self._is_over:
            await self._leave()
        return self._has_turn

    async def _leave(self) -> None:
        self._is_over = True
        has_turn, self._has_turn = self._has_turn, False
        if has_turn:
            await self._release()

    async def _release(self) -> None:
        try:
            await self._client.scheduler.multi_lock_release(id=self._name)
        except OSError:  # the locks have gone with the scheduler
            return


async def _dead_released(client: Client) -> bool:
    return bool(await client.run_on_scheduler(_release_dead))


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
