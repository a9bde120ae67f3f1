"""Waits for futures: notices lost workers, reports broken connections, cancels in time."""

from __future__ import annotations

import asyncio
import concurrent.futures
import time
from collections.abc import Callable, Collection, Coroutine, Mapping, Sequence
from typing import Any, TypeVar

from distributed import Client, Future
from distributed.protocol.pickle import dumps

from matnb.backend.cluster.connection import BROKEN
from matnb.backend.cluster.dask_cluster import DaskCluster
from matnb.backend.engines.inquiry import Inquiry
from matnb.backend.kept import BlockRef, LocalBlock
from matnb.errors import ClusterError

_T = TypeVar("_T")
POLL_SECONDS = 0.05  # how soon a loss is noticed; a result is noticed at once
_SHORT_SECONDS = 0.002
_NEWS_SECONDS = 2.0  # news of a loss may come after the tasks that it cost
_CANCEL_SECONDS = 1.0  # an interrupt waits this long for the scheduler's word, then leaves


class OwnersLost(Exception):  # noqa: N818  not an error yet: the run is laid out anew
    """Workers that a run needs are gone."""

    def __init__(self, owners: Sequence[int]) -> None:
        super().__init__(f"workers {tuple(owners)} are gone")
        self.owners = tuple(owners)


class Answers:
    """Waits for the values of futures on a cluster."""

    def __init__(self, cluster: DaskCluster) -> None:
        self._cluster, self._client = cluster, cluster.client
        self._unanswered: concurrent.futures.Future[Any] | None = None  # what somebody has not waited for

    def gather(
        self,
        futures: Sequence[Future],
        owners: Collection[int],
        enough: Callable[[Any], bool] | None = None,
        meanwhile: Callable[[], None] | None = None,
    ) -> list[Any]:
        """Return the values of futures.

        Parameters
        ----------
        owners
            The workers without which the values will not come.
        enough
            Tells of a value that the others no longer matter: None stands for those that are not there yet.
        meanwhile
            Is called again and again while the values are waited for.

        Raises
        ------
        OwnersLost
            When one of them is gone.
        ClusterError
            When the connection broke.
        """
        if not futures:
            return []
        asked = list(futures)

        def has_tasks() -> bool:
            return any(future.status == "pending" for future in asked)

        return self.waited_for(_gathered(self._client, asked, enough), owners, meanwhile, has_tasks)

    def ask(self, work: Callable[..., Any], parameters: Mapping[int, tuple[object, ...]]) -> list[Any]:
        """Have workers do something at once, without a task of Dask's, and return what each gives.

        That is None where it raised.

        Parameters
        ----------
        work
            A coroutine's function of a module, called on each worker's event loop with its parameters, and
            with the worker as ``dask_worker``.
        parameters
            By worker.

        Raises
        ------
        OwnersLost, ClusterError
            As :meth:`gather` does.
        """
        addressed = {self._cluster.workers[owner].address: own for owner, own in parameters.items()}
        return self.waited_for(_asked(self._client, work, addressed), parameters)

    def ask_shortly(
        self,
        work: Callable[..., Any],
        parameters: tuple[object, ...],
        owners: Collection[int],
        seconds: float,
    ) -> list[Any] | None:
        """Have workers do something on their event loops; None unless all have answered within some seconds.

        It raises nothing and looks after no loss: whoever asks can do without. While workers have not
        answered what was asked before, they are not asked again.
        """
        if self._unanswered is not None and not self._unanswered.done():
            return None
        try:
            addresses = [self._cluster.workers[owner].address for owner in owners]
            asking = asyncio.run_coroutine_threadsafe(
                _answered(self._client, work, parameters, addresses), self._client.loop.asyncio_loop
            )
        except (LookupError, RuntimeError, AttributeError):  # the client has closed
            return None
        asking.add_done_callback(_forget_outcome)
        self._unanswered = asking
        try:
            answers = list(asking.result(timeout=seconds).values())
        except (*BROKEN, concurrent.futures.TimeoutError, LookupError, RuntimeError, ValueError, TypeError):
            return None  # a client that closes meanwhile raises any of these
        return answers if len(answers) == len(addresses) else None

    def waited_for(
        self,
        coroutine: Coroutine[Any, Any, _T],
        owners: Collection[int],
        meanwhile: Callable[[], None] | None = None,
        has_tasks: Callable[[], bool] = lambda: False,
    ) -> _T:
        """Return what a coroutine gives on the client's event loop.

        Where it takes long the workers are asked whether it can still come to its end.

        Raises
        ------
        OwnersLost, ClusterError
            As :meth:`gather` does.
        """
        waiting = asyncio.run_coroutine_threadsafe(coroutine, self._client.loop.asyncio_loop)
        try:
            with Inquiry(self._cluster, owners, has_tasks) as inquiry:
                while True:
                    try:
                        return waiting.result(timeout=POLL_SECONDS)
                    except concurrent.futures.TimeoutError as error:
                        if waiting.done():  # a connection's own time was out, not ours
                            raise self.broken(error, owners) from error
                        self.check_alive(owners)
                        inquiry.look()
                        if meanwhile is not None:
                            meanwhile()
                    except BROKEN as error:
                        raise self.broken(error, owners) from error
        except BaseException:
            # Dask's waiting tasks end by themselves when their names are cancelled; nobody asks how.
            waiting.add_done_callback(_forget_outcome)
            raise

    def future(self, key: str) -> Future:
        """Return a future of a value that is on a worker already."""
        future = Future(key, self._client)
        future._state.finish()  # as the client does for what it scatters
        return future

    def bring(self, kept: Sequence[BlockRef], owners: Collection[int]) -> list[Any]:
        """Return values wherever they are kept: blocks in this process as they are, which nobody writes to.

        Raises
        ------
        OwnersLost, ClusterError
            As :meth:`gather` does.
        """
        far = [one for one in kept if not isinstance(one, LocalBlock)]
        fetched = iter(self.gather(far, owners))
        return [one.block if isinstance(one, LocalBlock) else next(fetched) for one in kept]

    def finished(self, futures: Sequence[Future], owners: Collection[int]) -> None:
        """Wait until values are there."""
        with Inquiry(self._cluster, owners, lambda: True) as inquiry:
            while any(future.status == "pending" for future in futures):
                self.check_alive(owners)
                inquiry.look()
                time.sleep(_SHORT_SECONDS)
        self._check_coming(futures, owners)

    def _check_coming(self, futures: Sequence[Future], owners: Collection[int]) -> None:
        bad = [future for future in futures if future.status not in ("pending", "finished")]
        self.gather(bad, owners)  # raises why

    def broken(self, error: BaseException, owners: Collection[int]) -> ClusterError:
        """Return the error for a broken connection, or raise OwnersLost if a worker's loss was the cause."""
        # If a worker's loss was the cause, this raises OwnersLost as soon as it is known.
        end = time.monotonic() + _NEWS_SECONDS
        while time.monotonic() < end:
            self.check_alive(owners)
            time.sleep(POLL_SECONDS)
        return ClusterError(
            f"{self._cluster.description}: the connection was lost while a run was under way "
            f"({type(error).__name__}: {error}); mn.stop() and connect again"
        )

    def check_alive(self, owners: Collection[int]) -> None:
        """Raise OwnersLost if a worker is gone, and CellCancelled if another thread wants an end."""
        self._cluster.stopping.check()
        gone = set(owners) - set(self._cluster.alive())
        if gone:
            raise OwnersLost(sorted(gone))

    def tell(self, function: Callable[..., None], *arguments: object) -> None:
        """Call a function on every worker, waiting for nothing."""
        telling = asyncio.run_coroutine_threadsafe(
            _called(self._client, function, arguments), self._client.loop.asyncio_loop
        )
        telling.add_done_callback(_forget_outcome)

    def send(self, message: dict[str, object], addresses: Collection[str]) -> None:
        """Have the scheduler send workers a message, waiting for nothing."""
        sending = asyncio.run_coroutine_threadsafe(
            _sent(self._client, message, list(addresses)), self._client.loop.asyncio_loop
        )
        sending.add_done_callback(_forget_outcome)

    def cancel(self, futures: Sequence[Future]) -> None:
        """Cancel names, waiting a little for the scheduler's word."""
        cancelling = asyncio.run_coroutine_threadsafe(
            _cancelled(self._client, list(futures)), self._client.loop.asyncio_loop
        )
        try:
            cancelling.result(timeout=_CANCEL_SECONDS)
        except (KeyboardInterrupt, *BROKEN):
            cancelling.cancel()


def _forget_outcome(waiting: concurrent.futures.Future[Any] | asyncio.Future[Any]) -> None:
    if not waiting.cancelled():
        waiting.exception()


async def _gathered(client: Client, futures: list[Future], enough: Callable[[Any], bool] | None) -> list[Any]:
    if enough is None or len(futures) == 1:
        return list(await client.gather(futures, asynchronous=True))
    asking = [asyncio.create_task(_gathered(client, [future], None)) for future in futures]
    try:
        for answered in asyncio.as_completed(asking):
            if enough((await answered)[0]):
                break
        return [task.result()[0] if task.done() else None for task in asking]
    finally:
        for task in asking:  # they end with their futures; cancelled, they would leave tasks of Dask's behind
            task.add_done_callback(_forget_outcome)


async def _asked(
    client: Client, work: Callable[..., Any], parameters: Mapping[str, tuple[object, ...]]
) -> list[Any]:
    # By the way that Client.run takes, but from here to the worker and not by the scheduler.
    function, nothing = dumps(work), dumps({})

    async def one(address: str, own: tuple[object, ...]) -> Any:
        answer = await client.rpc(address).run(function=function, args=dumps(own), kwargs=nothing, wait=True)
        return answer["result"] if answer["status"] == "OK" else None

    return await asyncio.gather(*(one(*each) for each in parameters.items()))


async def _called(client: Client, function: Callable[..., None], arguments: tuple[object, ...]) -> None:
    await client.run(function, *arguments, on_error="ignore")


async def _answered(
    client: Client, function: Callable[..., Any], arguments: tuple[object, ...], addresses: list[str]
) -> dict[str, Any]:
    return dict(await client.run(function, *arguments, workers=addresses, on_error="ignore"))


async def _sent(client: Client, message: dict[str, object], addresses: list[str]) -> None:
    await client.scheduler.broadcast(msg=message, workers=addresses, on_error="ignore")


async def _cancelled(client: Client, futures: list[Future]) -> None:
    await client.cancel(futures, asynchronous=True, force=True)
