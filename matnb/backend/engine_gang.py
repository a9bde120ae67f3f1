"""Runs a program as a gang: one long Dask task on each worker, whose members exchange blocks directly."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

from distributed import Future
from distributed.protocol import pickle
from threadpoolctl import ThreadpoolController

from matnb.backend.answers import BROKEN, Answers
from matnb.backend.checkpoints import DUE_SECONDS
from matnb.backend.cluster import Cluster
from matnb.backend.engine_dask import Outcome, RunCancelled, TaskFailed
from matnb.backend.gang import GangPlugin, MemberReport, Perform, shared_programs
from matnb.backend.gathering import Gathering, graph_of, owners_of, state_of
from matnb.backend.performer import perform
from matnb.backend.recovery import Resume, holders, newest_whole
from matnb.backend.turns import Turn
from matnb.events import TaskTimed
from matnb.pictures.quantities import plural_text
from matnb.plan.program import Program, batches

_ANSWER_SECONDS = 5.0
_END_SECONDS = 1.0  # members look every 50 ms whether they should go on; a kernel is not interrupted
_POLL_SECONDS = 0.005
_BEAT_SECONDS = 0.25


class GangUnavailable(Exception):  # noqa: N818  not an error: another engine runs the program
    """A gang could not be formed, or broke for a reason that is not the program's."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True)
class GangOutcome:
    """What a gang left.

    Attributes
    ----------
    futures
        The blocks of the results, by register, on the workers that own these; they have no history.
    counts
        Entries and bytes of each.
    timed
        One record a task: seconds over all iterations.
    iterations
        Of the outermost loop.
    sent_bytes
        Bytes of arrays from one member to another.
    allocated
        New arrays of 64 KiB or more, over all members, by iteration of the outermost loop.
    """

    futures: Mapping[str, Future]
    counts: Mapping[str, tuple[int, int]]
    timed: tuple[TaskTimed, ...]
    seconds: float
    iterations: int
    sent_bytes: int
    allocated: tuple[int, ...]
    num_members: int


class GangEngine:
    """Runs programs on a cluster, one at a time.

    Parameters
    ----------
    cluster
        Where to run.
    prefix
        Put before every name, so that two sessions on one cluster do not meet.
    in_process
        Whether the workers are threads of this process, which share its BLAS and its programs.
    performer
        What runs a member's part.
    """

    def __init__(self, cluster: Cluster, prefix: str, in_process: bool, performer: Perform = perform) -> None:
        self._cluster, self._client, self._prefix = cluster, cluster.client, prefix
        self._in_process, self._performer = in_process, performer
        self._blas = ThreadpoolController() if in_process else None
        self._answers = Answers(cluster)
        self._epochs = itertools.count(1)
        self._plugin = f"{prefix}gang"
        self._is_installed = self._is_listening = False
        self._last: Gathering | None = None
        self._progress: tuple[int, float] | None = None
        self._running = threading.Lock()

    @property
    def epoch(self) -> int:
        """The number of the last gathering, 0 before the first."""
        return 0 if self._last is None else self._last.epoch

    def run(
        self,
        program: Program,
        given: Mapping[str, Future],
        resume: Resume | None = None,
        told: Callable[[int, float], None] | None = None,
    ) -> GangOutcome:
        """Run a program and return when all members are done.

        Parameters
        ----------
        given
            A future for each name in ``program.given``, on the worker that is named there.
        resume
            Says the number of the first iteration.
        told
            Is called now and then with the number of the iteration and the seconds that one takes.

        Raises
        ------
        GangUnavailable
            When no gang came together, or it broke; nothing is left behind.
        OwnersLost
            When a worker died; :meth:`recover` then finds the newest state.
        TaskFailed
            When a task raised.
        RunCancelled
            On an interrupt.
        """
        with self._running:
            begin = time.perf_counter()
            owners = owners_of(program)
            self._answers.check_alive(owners)
            self._install()
            if told is not None:
                self._listen()
            addresses = {owner: self._cluster.workers[owner].address for owner in sorted(owners)}
            state = state_of(program) if len(owners) > 1 else frozenset()
            self._last = Gathering(self._prefix, next(self._epochs), addresses, state)
            self._progress = None
            members: dict[int, Future] = {}
            try:
                with self._turn(self._last), self._shared_blas(program), self._shared(program) as shipped:
                    first = 0 if resume is None else resume.iteration
                    members = self._submit(self._last, program, shipped, given, first, told is not None)
                    reports = self._wait(members, told, first)
                    self._check(self._last, members, program, reports)
            except (GangUnavailable, TaskFailed):
                raise  # all is given up already
            except KeyboardInterrupt:
                words = f"cancelled {plural_text(len(members), 'task')}"
                self._give_up(self._last, members, program, "interrupted")
                raise RunCancelled(words, Outcome({}, {}, {}, (), 0.0)) from None
            except BaseException:
                self._give_up(self._last, members, program, "a worker was lost", forget=False)
                raise
            seconds = time.perf_counter() - begin
            if state and seconds >= DUE_SECONDS:  # what was kept on the way
                self._tell(self._alive(self._last), "abort", epoch=self._last.epoch, reason="", forget=True)
            return self._outcome(self._last, reports, seconds)

    def recover(self, epoch: int) -> Resume | None:
        """Return the newest state of a loop that lost a worker, if the others have all of it.

        The workers forget what they kept of it.
        """
        last = self._last
        if last is None or last.epoch != epoch or not last.state:
            return None
        left = {last.addresses[owner]: owner for owner in self._cluster.alive() if owner in last.addresses}
        kept = self._tell(left, "kept", epoch=epoch)
        newest = newest_whole(kept, last.state)
        places: dict[str, dict[str, str]] = {address: {} for address in left}
        held = {} if newest is None else holders(kept, newest, last.state)
        for name, address in held.items():
            places[address][name] = last.key(f"kept-{name}")
        client = self._client.id
        restored = self._tell(left, "restore", epoch=epoch, iteration=newest or 0, keys=places, client=client)
        self._last = Gathering(last.prefix, epoch, last.addresses, frozenset())
        futures = {name: self._future(places[address][name]) for name, address in held.items()}
        if newest is None or len(restored) < len(left):
            return None  # what others have restored goes with the futures
        return Resume(newest, futures, {name: left[address] for name, address in held.items()})

    def close(self) -> None:
        """Leave nothing on the workers."""
        try:
            if self._is_installed and self._client.status == "running":
                self._client.unregister_worker_plugin(self._plugin)
        except BROKEN:  # it has gone with the cluster
            pass
        self._is_installed = False

    # before

    def _install(self) -> None:
        if self._is_installed:
            return
        try:
            self._client.register_plugin(GangPlugin(self._plugin), self._plugin)
        except (RuntimeError, *BROKEN) as error:
            raise GangUnavailable(f"the workers could not be made ready: {error}") from error
        self._is_installed = True

    def _listen(self) -> None:
        if self._is_listening:
            return
        self._cluster.listen(self._handle_event)
        self._is_listening = True

    def _handle_event(self, event: tuple[float, Any]) -> None:
        message = event[1]
        if not isinstance(message, dict) or message.get("gang") != self._plugin:
            return
        if message["epoch"] == self.epoch:  # news of a loop before may come late
            iteration, seconds = message["progress"]
            self._progress = iteration, seconds

    @contextmanager
    def _turn(self, gathering: Gathering) -> Iterator[None]:
        if len(gathering.addresses) == 1:
            yield
            return
        name = gathering.key("turn")
        turn = Turn(self._client, name, list(gathering.addresses.values()))
        try:
            has_turn = turn.wait()
        except BROKEN as error:
            raise GangUnavailable(f"the scheduler gave no turn: {error}") from error
        if not has_turn:
            raise GangUnavailable("another session's loop has the workers")
        try:
            yield
        finally:
            turn.end()

    def _shared_blas(self, program: Program) -> AbstractContextManager[object]:
        # As in the Dask engine: products side by side, each on all cores, would only be in each other's way.
        products = max(
            (sum(task.kind == "product" for task in batch.tasks) for batch in batches(program.actions)),
            default=0,
        )
        threads = sum(one.threads for one in self._cluster.workers)
        if self._blas is None or products < 2 or threads < 2:
            return nullcontext()
        limited: AbstractContextManager[object] = self._blas.limit(limits=1, user_api="blas")
        return limited

    @contextmanager
    def _shared(self, program: Program) -> Iterator[bytes | str]:
        if not self._in_process:
            yield pickle.dumps(program)
            return
        name = f"{self._plugin}{self.epoch}"
        shared_programs[name] = program
        try:
            yield name
        finally:
            del shared_programs[name]

    def _submit(
        self,
        gathering: Gathering,
        program: Program,
        shipped: bytes | str,
        given: Mapping[str, Future],
        first: int,
        tells: bool,
    ) -> dict[int, Future]:
        graph, keys = graph_of(
            gathering, program, shipped, {name: future.key for name, future in given.items()},
            self._plugin, self._client.id, self._performer, first, tells,
        )  # fmt: skip
        sent = self._client.get(graph, list(keys.values()), sync=False, retries=0)
        return dict(zip(keys, sent, strict=True))

    # while it runs, and after

    def _wait(
        self, members: Mapping[int, Future], told: Callable[[int, float], None] | None, first: int
    ) -> list[MemberReport | None]:
        known, when = (first, 0.0), time.monotonic()

        def tell() -> None:
            # Told again where there is no news, so that a person sees that it runs.
            nonlocal known, when
            news, self._progress = self._progress, None
            if told is not None and (news is not None or time.monotonic() - when >= _BEAT_SECONDS):
                known, when = news or known, time.monotonic()
                told(*known)

        reports: list[MemberReport | None] = self._answers.gather(
            list(members.values()), list(members), lambda report: not report.is_whole, tell
        )
        return reports

    def _check(
        self,
        gathering: Gathering,
        members: dict[int, Future],
        program: Program,
        reports: Sequence[MemberReport | None],
    ) -> None:
        if all(report is not None and report.is_whole for report in reports):
            return
        ended = self._give_up(gathering, members, program, "another member gave up", forget=False)
        known = [report for report in (*reports, *ended) if report is not None]
        for report in sorted(known, key=lambda one: one.owner):
            if report.failed is not None:
                self._tell(self._alive(gathering), "abort", epoch=gathering.epoch, reason="", forget=True)
                raise TaskFailed(report.failed)
        reason = next(report.aborted for report in known if report.aborted is not None)
        # A broken connection may be the first news of a worker's death, which this then raises.
        self._answers.broken(ConnectionError(reason), gathering.addresses)
        self._tell(self._alive(gathering), "abort", epoch=gathering.epoch, reason=reason, forget=True)
        raise GangUnavailable(reason)

    def _outcome(
        self, gathering: Gathering, reports: Sequence[MemberReport | None], seconds: float
    ) -> GangOutcome:
        whole = [report for report in reports if report is not None]
        counts = {name: count for report in whole for name, count in report.counts.items()}
        steps = itertools.zip_longest(*(report.allocated for report in whole), fillvalue=0)
        return GangOutcome(
            {name: self._future(gathering.key(name)) for name in counts},
            counts,
            tuple(one for report in whole for one in report.timed),
            seconds,
            max(report.iterations for report in whole),
            sum(report.sent_bytes for report in whole),
            tuple(sum(step) for step in steps),
            len(whole),
        )

    def _give_up(
        self,
        gathering: Gathering,
        members: dict[int, Future],
        program: Program,
        reason: str,
        forget: bool = True,
    ) -> list[MemberReport]:
        # Ends all members, takes their last words, and releases what some of them published.
        if not members:
            return []
        self._tell(self._alive(gathering), "abort", epoch=gathering.epoch, reason=reason, forget=forget)
        reports: list[MemberReport] = []
        waiting = dict(members)
        end = time.monotonic() + _END_SECONDS
        while waiting and time.monotonic() < end:
            alive = self._cluster.alive()
            for owner, future in list(waiting.items()):
                if owner not in alive or future.status != "pending":
                    del waiting[owner]
            time.sleep(_POLL_SECONDS)
        finished = [future for future in members.values() if future.status == "finished"]
        try:
            reports = self._answers.gather(finished, ()) if finished else []
        except Exception:  # words that are lost with their worker
            reports = []
        self._answers.cancel(list(members.values()))
        members.clear()
        for name in program.results:
            self._future(gathering.key(name)).release()
        return reports

    def _tell(self, addresses: Collection[str], what: str, **parameters: object) -> dict[str, Any]:
        if not addresses:
            return {}
        message = {"op": f"{self._plugin}-{what}", **parameters}
        try:
            return dict(
                self._client.sync(
                    self._client.scheduler.broadcast,
                    msg=message,
                    workers=list(addresses),
                    on_error="ignore",
                    callback_timeout=_ANSWER_SECONDS,
                )
            )
        except (KeyboardInterrupt, *BROKEN):  # a second interrupt, or nobody there to be told
            return {}

    def _alive(self, gathering: Gathering) -> list[str]:
        alive = self._cluster.alive()
        return [address for owner, address in gathering.addresses.items() if owner in alive]

    def _future(self, key: str) -> Future:
        future = Future(key, self._client)
        self._client.futures[key].finish()  # as the client does for what it scatters
        return future
