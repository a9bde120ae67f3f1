"""Runs a program as a gang: one long Dask task per worker; its members exchange blocks directly.

A worker alone in this process takes its part without such a task.
"""

from __future__ import annotations

import contextlib
import itertools
import threading
import time
import traceback
from array import array
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from distributed import Future
from distributed.protocol import pickle
from threadpoolctl import ThreadpoolController

from matnb.backend.cluster.connection import BROKEN, CLOSING_ERRORS
from matnb.backend.cluster.dask_cluster import DaskCluster
from matnb.backend.cluster.gang_lock import Turn
from matnb.backend.engines.context import shared_blas
from matnb.backend.engines.futures import POLL_SECONDS, Answers, OwnersLost
from matnb.backend.engines.gang_graph import Gathering, graph_of, owners_of, state_of
from matnb.backend.engines.protocol import Progress, Watch
from matnb.backend.engines.recovery import KeptStates, Resume
from matnb.backend.engines.results import Outcome, RunCancelled, outcome_of
from matnb.backend.engines.telemetry import Telemetry, gang_name
from matnb.backend.gang.checkpoints import DUE_SECONDS
from matnb.backend.gang.member_life import (
    GangPlugin,
    LoneMember,
    Perform,
    drivers_here,
    shared_programs,
)
from matnb.backend.gang.performer import perform
from matnb.backend.kept import BlockRef, LocalBlock
from matnb.backend.tasks.worker import Report, TaskFailed, TaskFailure, portable
from matnb.pictures.quantities import plural_text
from matnb.program.kinds import Role
from matnb.program.plan import Slot
from matnb.program.program import Iterate, Program, batches

_ANSWER_SECONDS = 5.0
_END_SECONDS = 1.0  # members look every 50 ms whether they should go on; a kernel is not interrupted
_POLL_SECONDS = 0.005


class GangUnavailable(Exception):  # noqa: N818  not an error: another engine runs the program
    """A gang could not be formed, or broke for a reason that is not the program's."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class GangEngine:
    """Runs programs on a cluster, one at a time.

    Parameters
    ----------
    cluster
        Where to run.
    prefix
        Put before every name, so that two sessions on one cluster do not meet.
    performer
        What runs a member's part.
    telemetry
        Is told what tasks take while somebody looks; or None.
    """

    def __init__(
        self,
        cluster: DaskCluster,
        prefix: str,
        performer: Perform = perform,
        telemetry: Telemetry | None = None,
    ) -> None:
        self._cluster, self._client, self._prefix = cluster, cluster.client, prefix
        self._telemetry = telemetry
        self._performer = performer
        self._blas = ThreadpoolController() if cluster.in_process else None  # which its workers share
        self._answers = Answers(cluster)
        self._epochs = itertools.count(1)
        self._plugin = f"{prefix}gang"
        self._is_installed = self._is_listening = False
        self._last: Gathering | None = None
        self._following: GangProgress | None = None
        self._kept = KeptStates(cluster, self._tell, self._answers.future)
        self._running = threading.Lock()

    @property
    def epoch(self) -> int:
        """The number of the last gathering, 0 before the first."""
        return 0 if self._last is None else self._last.epoch

    def is_alone(self, owners: Collection[int]) -> bool:
        """Return whether a program of these workers runs on one of them, in this process."""
        return self._cluster.in_process and len(owners) == 1

    def run(
        self,
        program: Program,
        given: Mapping[Slot, BlockRef],
        fetch: Sequence[Slot] = (),
        hold: Sequence[Slot] = (),
        resume: Resume | None = None,
        on_progress: Progress | None = None,
        watch: Watch | None = None,
    ) -> Outcome:
        """Run a program, as :meth:`~matnb.backend.engines.protocol.Engine.run` says.

        A watch may want a pause of a program that :meth:`can_pause`. The state is then kept on the workers
        until the program goes on from it and ends, or :meth:`forget`. After a loss :meth:`recover` finds the
        newest state.

        Raises
        ------
        GangUnavailable
            When no gang came together, or it broke; nothing is left behind.
        """
        program = program.holding(hold)
        with self._running:
            owners = owners_of(program)
            self._answers.check_alive(owners)
            run = self._run_alone if self.is_alone(owners) else self._run_together
            outcome = run(program, given, resume, on_progress, watch)
        return outcome.with_fetched(fetch, self._answers.bring, self._cluster.alive())

    def _run_together(
        self,
        program: Program,
        given: Mapping[Slot, BlockRef],
        resume: Resume | None,
        on_progress: Progress | None,
        watch: Watch | None,
    ) -> Outcome:
        begin = time.perf_counter()
        owners = owners_of(program)
        self._install()
        if on_progress is not None or watch is not None:
            self._listen()
        addresses = {owner: self._cluster.workers[owner].address for owner in sorted(owners)}
        state = state_of(program) if len(owners) > 1 else frozenset()
        continues = self._kept.go_on(resume)
        self._last = Gathering(self._prefix, next(self._epochs), addresses, state, continues)
        first = 0 if resume is None else resume.iteration
        following = GangProgress(program, self._last.epoch, first, on_progress, watch, self._ask_pause)
        self._following = following
        if self._cluster.in_process:
            drivers_here[self._plugin] = following.hear
        members: dict[int, Future] = {}
        if self._telemetry is not None:
            self._telemetry.began(gang_name(self._prefix, self._last.epoch))
        try:
            with (
                turn_of(self._last, self._cluster),
                shared_blas(self._blas, most_products(program), self._cluster),
                self._shared(program) as shipped,
            ):
                self._kept.add(self._last)
                members = self._submit(
                    self._last, program, shipped, given, first, on_progress is not None, watch is not None,
                    following.pause_at,
                )  # fmt: skip
                reports = self._check(self._last, members, program, self._wait(members, following))
        except (GangUnavailable, TaskFailed):
            raise  # all is given up already
        except KeyboardInterrupt:
            words = f"cancelled {plural_text(len(members), 'task')}"
            with self._cluster.stopping.undisturbed():
                self._give_up(self._last, members, program, "interrupted")
            raise RunCancelled(words, Outcome()) from None
        except BaseException:
            self._give_up(self._last, members, program, "a worker was lost", forget=False)
            raise
        finally:
            self._following = None
            drivers_here.pop(self._plugin, None)
        seconds = time.perf_counter() - begin
        last, future = self._last, self._answers.future
        outcome = outcome_of(program, last.epoch, reports, seconds, lambda name: future(last.key(name)))
        if self._telemetry is not None:
            self._telemetry.ended(outcome.timed)
        if outcome.paused is None:
            if continues or seconds >= DUE_SECONDS:  # what was kept on the way
                self._kept.forget()
            self._kept.go_on(None)
        return outcome

    def _run_alone(
        self,
        program: Program,
        given: Mapping[Slot, BlockRef],
        resume: Resume | None,
        on_progress: Progress | None,
        watch: Watch | None,
    ) -> Outcome:
        # The only member's part, without a gathering.
        begin = time.perf_counter()
        (owner,) = owners_of(program)
        first, epoch = 0 if resume is None else resume.iteration, next(self._epochs)
        self._last = None
        self._kept.go_on(None)
        following = GangProgress(program, epoch, first, on_progress, watch, lambda: member.ask_pause())
        member = LoneMember(epoch, owner, following.hear, following.pause_at)
        blocks = dict(
            zip(given, self._answers.bring(list(given.values()), self._cluster.alive()), strict=True)
        )
        if self._telemetry is not None:
            self._telemetry.began(gang_name(self._prefix, epoch), member.seconds_so_far)
        try:
            with shared_blas(self._blas, most_products(program), self._cluster):
                self._cluster.submit(
                    owner, member.perform, self._performer, program, blocks,
                    self._cluster.workers[owner].threads, first, on_progress is not None, watch is not None,
                )  # fmt: skip
                del blocks
                done = member.wait(POLL_SECONDS, lambda: self._answers.check_alive([owner]), following.look)
        except KeyboardInterrupt:
            with self._cluster.stopping.undisturbed():
                member.give_up(_END_SECONDS)
            raise RunCancelled("cancelled 1 task", Outcome()) from None
        except TaskFailed as error:
            raise TaskFailed(error.failed) from None
        except OwnersLost:
            member.mailbox.abort("a worker was lost")
            raise
        except Exception as error:
            trace = "".join(traceback.format_exception(error))
            raise TaskFailed(TaskFailure(None, portable(error), trace)) from None
        outcome = outcome_of(
            program, epoch, [done], time.perf_counter() - begin,
            lambda key: LocalBlock(f"{self._prefix}g{epoch}-{key}", done.values[key]),
        )  # fmt: skip
        if self._telemetry is not None:
            self._telemetry.ended(outcome.timed)
        return outcome

    def can_pause(self, program: Program) -> bool:
        """Tell whether a program can pause between two iterations of its outermost loop."""
        return bool(state_of(program))

    def recover(self, epoch: int) -> Resume | None:
        """Return the newest state of a loop that lost a worker, if the others have all of it.

        The workers forget what they kept of it, from before its pauses too.
        """
        if self._last is None or self._last.epoch != epoch:
            return None
        return self._kept.recover()

    def forget(self) -> None:
        """Let go of the states of a loop that paused and does not go on."""
        self._kept.forget()

    def close(self) -> None:
        """Leave nothing on the workers."""
        is_left = self._is_installed and self._client.status == "running"
        self._is_installed = False
        if is_left:
            # A worker that does not answer now learns of it when it does.
            with contextlib.suppress(*CLOSING_ERRORS):
                gang = f"{self._prefix}gang"
                self._client.sync(self._cluster.uninstalled, gang, callback_timeout=_ANSWER_SECONDS)

    # before

    def _install(self) -> None:
        self._plugin = self._cluster.name_now(f"{self._prefix}gang")
        if self._is_installed:
            return
        try:
            installing = self._cluster.installed(GangPlugin, f"{self._prefix}gang")
            self._answers.waited_for(installing, self._cluster.alive())
        except RuntimeError as error:
            raise GangUnavailable(f"the workers could not be prepared: {error}") from error
        self._is_installed = True

    def _listen(self) -> None:
        if self._is_listening or self._cluster.in_process:
            return
        self._cluster.listen(self._handle_event)
        self._is_listening = True

    def _handle_event(self, event: tuple[float, Any]) -> None:
        message = event[1]
        if not isinstance(message, dict) or message.get("gang") != self._plugin:
            return
        following = self._following  # which the driver's thread ends meanwhile
        if following is not None:
            following.hear(message)

    @contextmanager
    def _shared(self, program: Program) -> Iterator[bytes | str]:
        if not self._cluster.in_process:
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
        given: Mapping[Slot, BlockRef],
        first: int,
        tells: bool,
        watches: bool,
        pause_at: int | None,
    ) -> dict[int, Future]:
        graph, keys = graph_of(
            gathering, program, shipped, given, self._plugin, self._client.id, self._performer, first,
            tells, watches, pause_at,
        )  # fmt: skip
        try:
            sent = self._client.get(graph, list(keys.values()), sync=False, retries=0)
        except BROKEN as error:  # a client that has closed
            raise self._answers.broken(error, gathering.addresses) from error
        return dict(zip(keys, sent, strict=True))

    # while it runs, and after

    def _wait(self, members: Mapping[int, Future], following: GangProgress) -> list[Report | None]:
        reports: list[Report | None] = self._answers.gather(
            list(members.values()), list(members), lambda report: not report.is_whole, following.look
        )
        return reports

    def _check(
        self,
        gathering: Gathering,
        members: dict[int, Future],
        program: Program,
        reports: Sequence[Report | None],
    ) -> list[Report]:
        # The reports, where all members did what they were asked to.
        if len(whole := [one for one in reports if one is not None and one.is_whole]) == len(reports):
            return whole
        ended = self._give_up(gathering, members, program, "another member gave up", forget=False)
        known = [report for report in (*reports, *ended) if report is not None]
        for report in sorted(known, key=lambda one: one.owner):
            if report.failed is not None:
                self._tell(self._alive(gathering), "abort", epoch=gathering.epoch, reason="", forget=True)
                raise TaskFailed(report.failed)
        reason = next(report.aborted for report in known if report.aborted is not None)
        # A broken connection may be the first news of a worker's death, which this then raises.
        self._answers.broken(ConnectionError(reason), gathering.addresses)
        # What is kept of a pause before may still be needed.
        forget = not gathering.continues
        self._tell(self._alive(gathering), "abort", epoch=gathering.epoch, reason=reason, forget=forget)
        raise GangUnavailable(reason)

    def _give_up(
        self,
        gathering: Gathering,
        members: dict[int, Future],
        program: Program,
        reason: str,
        forget: bool = True,
    ) -> list[Report]:
        # Ends all members, takes their last words, and releases what some of them published.
        if not members:
            return []
        self._tell(self._alive(gathering), "abort", epoch=gathering.epoch, reason=reason, forget=forget)
        reports: list[Report] = []
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
        for name in {*program.results, *state_of(program)}:
            self._answers.future(gathering.key(name)).release()
        return reports

    def _ask_pause(self) -> None:
        # The first member's word counts for all; nobody waits for it here.
        if self._last is not None:
            leader = self._last.addresses[min(self._last.addresses)]
            self._answers.send({"op": f"{self._plugin}-pause", "epoch": self._last.epoch}, [leader])

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


@contextmanager
def turn_of(gathering: Gathering, cluster: DaskCluster) -> Iterator[None]:
    """Have the workers of a gathering to itself; one alone needs no turn."""
    if len(gathering.addresses) == 1:
        yield
        return
    addresses = list(gathering.addresses.values())
    turn = Turn(cluster.client, gathering.key("turn"), addresses, cluster.stopping.check)
    try:
        try:
            has_turn = turn.wait()
        except BROKEN as error:
            raise GangUnavailable(f"the scheduler did not grant the workers: {error}") from error
        if not has_turn:
            raise GangUnavailable("another session's loop is using the workers")
        yield
    finally:  # an interrupt may come between waiting and having
        turn.end()


def most_products(program: Program) -> int:
    """Return how many products there are at most between two places where control may turn."""
    multiplies = (
        [task.kind.role is Role.MULTIPLIES for task in batch.tasks] for batch in batches(program.actions)
    )
    return max(map(sum, multiplies), default=0)


# What the driver hears of a gang while it runs, whom it tells, and when it asks for a pause.

_BEAT_SECONDS = 0.25


class GangProgress:
    """Follows one gathering.

    Parameters
    ----------
    program, epoch, first
        What runs, in which gathering, and the number of its first iteration.
    on_progress
        Called now and then with the number of iterations and the seconds that one takes.
    watch
        Hears what tasks take, and may want a pause.
    ask
        Asks the gang for a pause.

    Attributes
    ----------
    wants_pause
        Whether it was asked for.
    pause_at
        The gang is to pause once so many iterations are done, from the start; None for no such number.
    """

    def __init__(
        self,
        program: Program,
        epoch: int,
        first: int,
        on_progress: Progress | None,
        watch: Watch | None,
        ask: Callable[[], None],
    ) -> None:
        self._epoch, self._on_progress, self._watch, self._ask = epoch, on_progress, watch, ask
        self._tasks = {} if watch is None else tasks_by_owner(program)
        self._leader = min(self._tasks, default=0)
        self._news: deque[Mapping[str, Any]] = deque()
        self._known, self._when = (first, 0.0), time.monotonic()
        self.wants_pause = watch is not None and watch.wants_pause()
        self.pause_at = first + 1 if self.wants_pause else None if watch is None else watch.pause_at

    def hear(self, message: Mapping[str, Any]) -> None:
        """Take what a member tells, from any thread; news of a gathering before may come late."""
        if message["epoch"] == self._epoch:
            self._news.append(message)

    def look(self) -> None:
        """Hand on what was heard since, and ask for a pause where one is wanted; by the driver's thread."""
        progress = None
        while self._news:
            message = self._news.popleft()
            progress = message.get("progress", progress)
            if "measured" in message:
                self._measured(*message["measured"])
        # Told again where there is no news, so that a user sees that it runs.
        if self._on_progress is not None and (
            progress is not None or time.monotonic() - self._when >= _BEAT_SECONDS
        ):
            self._known, self._when = progress or self._known, time.monotonic()
            self._on_progress(*self._known)
        if self._watch is not None and not self.wants_pause and self._watch.wants_pause():
            self.wants_pause = True
            self._ask()

    def _measured(
        self, owner: int, iteration: int, num_iterations: int, clock_seconds: float, packed: bytes
    ) -> None:
        if self._watch is None:
            return
        seconds = array("d")
        seconds.frombytes(packed)
        by_key = dict(zip(self._tasks.get(owner, ()), seconds, strict=True))
        self._watch.measured(owner, iteration, num_iterations, by_key)
        if owner == self._leader:
            self._watch.advanced(iteration, clock_seconds)


def tasks_by_owner(program: Program) -> dict[int, tuple[Slot, ...]]:
    """Return the keys of each worker's tasks of the outermost loop's body, in the program's order."""
    found: dict[int, list[Slot]] = {}
    for loop in [one for one in program.actions if isinstance(one, Iterate)][:1]:
        for batch in batches(loop.body):
            for task in batch.tasks:
                found.setdefault(task.owner, []).append(task.key)
    return {owner: tuple(keys) for owner, keys in found.items()}
