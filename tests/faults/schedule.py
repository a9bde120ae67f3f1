"""One schedule: a session, some programs, faults at named points, and what became of it."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import random
import signal
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import leaks

import matnb as mn
from faults import points
from faults.programs import PROGRAMS, Programs, wrong
from matnb.backend.engines import engine_gang
from matnb.backend.gang import checkpoints
from matnb.errors import CellCancelled, MatnbError, SessionEnded, WorkerLostError
from matnb.magics.summary import status_text

QUIET_SECONDS = 30.0  # after which all workers are there again, or the status says that some are not
MOST_SECONDS = 180.0  # after which they are there: a busy machine takes a minute to start a process
STOP_SECONDS = 90.0
PATIENCE_SECONDS = 10.0  # for what a session leaves to end by itself
_STARTING = ("a worker process starts", "a worker process has started")
_ASKING = ("workers are asked", "workers have answered")
_IN_PROCESS = (
    "tasks are done", "tasks are handed over", "tasks are waited for", "tasks were done",
    "a loop is handed over",
)  # fmt: skip
_STOPPING = ("the session stops", "the cluster closes")


@dataclass(frozen=True)
class Fault:
    """What strikes, where, and when: in which cell, and the how manieth time that the point is reached."""

    what: str
    where: str
    cell: int
    number: int
    rank: int
    seconds: float


@dataclass(frozen=True)
class Schedule:
    """What is drawn for a number; the same for the same seed."""

    seed: int
    only: int
    options: dict[str, Any]
    cells: tuple[str, ...]
    faults: tuple[Fault, ...]


@dataclass
class Outcome:
    """What became of a schedule: each of the lists is empty where nothing was wrong."""

    only: int
    wrong: list[str] = field(default_factory=list)
    untold: list[str] = field(default_factory=list)  # errors that do not say what was lost
    leaked: list[str] = field(default_factory=list)
    short: list[str] = field(default_factory=list)  # workers that did not come back
    hung: list[str] = field(default_factory=list)
    told: list[str] = field(default_factory=list)  # errors that say that data was lost
    cancelled: int = 0
    raised: int = 0
    struck: int = 0
    cells: int = 0
    seconds: float = 0.0

    @property
    def is_bad(self) -> bool:
        """Whether anything was wrong."""
        return bool(self.wrong or self.untold or self.leaked or self.short or self.hung)


def drawn(seed: int, only: int, processes: bool | None = None) -> Schedule:
    """Return the schedule of a number."""
    chance = random.Random(f"{seed}/{only}")
    has_processes = chance.random() < 0.3  # they take ten times as long
    if processes is not None:
        has_processes = processes
    options: dict[str, Any] = {"processes": has_processes, "threads": chance.choice([1, 2])}
    options["workers"] = chance.choice([1, 2, 2, 2]) if has_processes else chance.choice([1, 2, 3])
    if has_processes:
        options["memory_limit"] = 10**9
    options["rebalance"] = chance.choice(["auto", "entries", "off"])
    options["engine"] = "dask" if not has_processes and only % 4 == 3 else "auto"
    cells = tuple(chance.choice(list(PROGRAMS)) for _ in range(chance.choice([2, 3, 4])))
    faults = tuple(_fault(chance, cells, has_processes) for _ in range(chance.choice([1, 1, 2])))
    return Schedule(seed, only, options, cells, faults)


def _fault(chance: random.Random, cells: tuple[str, ...], has_processes: bool) -> Fault:
    place = chance.randrange(len(cells))
    is_loop = cells[place] in ("loop", "until", "replicated", "rebalancing")
    rank, seconds = chance.randrange(3), chance.choice([1.0, 3.0, 8.0])
    if chance.random() < 0.08:
        return Fault("raise", points.RAISING, place, chance.choice([1, 2, 5]), rank, seconds)
    if chance.random() < 0.5:
        loops = [name for name in points.WORKER_POINTS if "member" in name or "state" in name]
        loops += ["a task of a loop begins"]
        names = loops if is_loop and chance.random() < 0.8 else [
            name for name in points.WORKER_POINTS if name not in loops
        ]  # fmt: skip
        what = chance.choice(
            points.WORKER_FAULTS if has_processes else ("disconnect", "break the lines", "close")
        )
        where = chance.choice(names)
        is_frequent = where in ("a task of a loop begins", "a member sends", "a state is kept")
        number = chance.choice([1, 2, 9, 30] if is_frequent else [1, 1, 2])
        return Fault(what, where, place, number, rank, seconds)
    names = [
        name
        for name in points.DRIVER_POINTS
        if name not in (_IN_PROCESS if has_processes else (*_STARTING, *_ASKING))
    ]
    what = chance.choice(
        points.DRIVER_FAULTS if has_processes else ("disconnect", "close", "interrupt", "cancel")
    )
    where = chance.choice(names)
    if where in (*_STARTING, *_STOPPING) and what in ("interrupt", "cancel"):
        what = "kill" if has_processes else "disconnect"  # who stops a session does not interrupt that
    return Fault(what, where, place, chance.choice([1, 1, 2]), rank, seconds)


class Performance:
    """Performs one schedule in this process.

    Parameters
    ----------
    schedule
        What to do.
    tell
        Is called with what is done now.
    """

    def __init__(self, schedule: Schedule, tell: Callable[[str], None]) -> None:
        self.schedule, self._tell = schedule, tell
        self.outcome = Outcome(schedule.only)
        self._may_cancel = self._may_raise = False
        self._marks: list[Path] = []
        self._session: mn.session.Session | None = None

    def run(self) -> Outcome:
        """Perform it, and return what became of it."""
        begin, before = time.monotonic(), leaks.belongings()
        with tempfile.TemporaryDirectory(prefix="faults-") as folder:
            self._folder = Path(folder)
            with contextlib.ExitStack() as later:
                starting = [one for one in self.schedule.faults if one.where in _STARTING]
                for fault in starting:
                    later.enter_context(self._at_driver(fault))
                self._start_and_run()
            self.outcome.struck += sum(mark.exists() for mark in self._marks)
        self._tell("leaks")
        self.outcome.leaked += leaks.leaks_since(before, PATIENCE_SECONDS)
        self.outcome.seconds = time.monotonic() - begin
        return self.outcome

    def _start_and_run(self) -> None:
        programs = Programs(self.schedule.only, self._folder)
        try:
            self._tell("start")
            self._session = mn.start(**self.schedule.options)
            session = self._session
            with contextlib.suppress(OSError):  # a worker that a fault took as all had started
                session.cluster.client.run(points.keep_states_often)
            for number, name in enumerate(self.schedule.cells):
                self._tell(f"cell {number} ({name})")
                with contextlib.ExitStack() as stack:
                    for fault in self.schedule.faults:
                        if fault.cell == number and fault.where not in (*_STARTING, *_STOPPING):
                            self._put(fault, stack)
                    self._cell(f"cell {number} ({name})", lambda name=name: programs.run(name))
                self._may_cancel = self._may_raise = False
            self._tell("quiet")
            self._wait_for_workers(session)
            self._tell("the cell after it all")
            self._cell("the cell after it all", programs.memo)
        except MatnbError as error:
            self.outcome.untold.append(f"start: {_words(error)}")
        self._tell("stop")
        with contextlib.ExitStack() as stack:
            for fault in self.schedule.faults:
                if fault.where in _STOPPING:
                    stack.enter_context(self._at_driver(fault))
            begin = time.monotonic()
            try:
                mn.stop()
            except BaseException as error:
                self.outcome.untold.append(f"stop raised {_words(error)}")
            if time.monotonic() - begin > STOP_SECONDS:
                self.outcome.hung.append(f"stop took {time.monotonic() - begin:.0f} s")

    def _cell(self, what: str, run: Callable[[], dict[str, tuple[Any, Any]]]) -> None:
        self.outcome.cells += 1
        try:
            answers = run()
        except CellCancelled as error:
            if self._may_cancel:
                self.outcome.cancelled += 1
            else:
                self.outcome.untold.append(f"{what}: {_words(error)}")
        except (WorkerLostError, SessionEnded) as error:
            self.outcome.told.append(f"{what}: {_words(error)}")
        except MatnbError as error:
            if self._may_raise and points.INJECTED in str(error):
                self.outcome.raised += 1
            else:
                self.outcome.untold.append(f"{what}: {_words(error)}")
        except BaseException as error:
            self.outcome.untold.append(f"{what}: {_words(error)}")
        else:
            self.outcome.wrong += [f"{what}: {name}" for name in wrong(answers)]

    def _wait_for_workers(self, session: mn.session.Session) -> None:
        asked, begin = self.schedule.options["workers"], time.monotonic()
        while True:
            status = session.status()
            if status.num_workers == asked:
                return
            waited = time.monotonic() - begin
            if waited > MOST_SECONDS or (waited > QUIET_SECONDS and not status.workers_text):
                break
            time.sleep(0.1)
        self.outcome.short.append(f"{status.num_workers} of {asked}: {status_text(status)}")

    # faults

    def _put(self, fault: Fault, stack: contextlib.ExitStack) -> None:
        if fault.where in points.DRIVER_POINTS:
            stack.enter_context(self._at_driver(fault))
            return
        session = self._session
        assert session is not None
        if fault.what == "raise":
            self._may_raise = True
        session.cluster.refresh_if_changed()
        addresses = [session.cluster.workers[number].address for number in session.cluster.alive()]
        if not addresses:
            return
        address = addresses[fault.rank % len(addresses)]
        mark = self._mark()
        client = session.cluster.client
        with contextlib.suppress(OSError, KeyError):  # a worker that an earlier fault took
            client.run(points.keep_states_often)
            put = (fault.where, fault.number, fault.what, fault.seconds, str(mark))
            client.run(points.install, *put, workers=[address])
        stack.callback(self._uninstall)

    def _uninstall(self) -> None:
        assert self._session is not None
        points.uninstall()  # of workers in this process
        with contextlib.suppress(Exception):
            self._session.cluster.client.run(points.uninstall, on_error="ignore")

    @contextlib.contextmanager
    def _at_driver(self, fault: Fault) -> Iterator[None]:
        if fault.what in ("interrupt", "cancel"):
            self._may_cancel = True
        mark = self._mark()

        def strike() -> None:
            mark.touch()
            match fault.what:
                case "interrupt":
                    os.kill(os.getpid(), signal.SIGINT)
                case "cancel":
                    session = self._session
                    assert session is not None
                    threading.Thread(target=session.cancel).start()
                case _ if fault.where in _STARTING:
                    self._strike_starting(fault)
                case _ if self._session is not None:
                    points.strike_worker(self._session, fault.what, fault.rank, fault.seconds)

        with points.striking(points.DRIVER_POINTS[fault.where], fault.number, strike):
            yield

    def _strike_starting(self, fault: Fault) -> None:
        # Once there is a process, which is a moment after the nanny was asked to start one.
        def later() -> None:
            from matnb.backend.cluster.servers import LocalNanny

            end = time.monotonic() + 5
            while time.monotonic() < end:
                for one in list(LocalNanny._instances):
                    if one.process is not None and one.pid is not None:
                        points.strike_server(one, fault.what, fault.seconds)
                        return
                time.sleep(0.02)

        threading.Thread(target=later, name="asyncio_0 fault").start()

    def _mark(self) -> Path:
        mark = self._folder / f"mark-{len(self._marks)}"
        self._marks.append(mark)
        return mark


def _words(error: BaseException) -> str:
    where = traceback.extract_tb(error.__traceback__)
    last = f" at {Path(where[-1].filename).name}:{where[-1].lineno}" if where else ""
    return f"{type(error).__name__}: {str(error)[:300]}{last}"


def perform(seed: int, numbers: list[int], processes: bool | None, out: str) -> None:
    """Perform schedules in this process, one after the other; a line of JSON in ``out`` tells each step."""
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    checkpoints.DUE_SECONDS = engine_gang.DUE_SECONDS = points._OFTEN_SECONDS
    signal.signal(signal.SIGINT, signal.default_int_handler)
    mn.stop()
    with open(out, "a", buffering=1) as file:
        for number in numbers:

            def tell(what: str, number: int = number) -> None:
                print(json.dumps({"only": number, "now": what}), file=file)

            schedule = drawn(seed, number, processes)
            outcome = Performance(schedule, tell).run()
            print(json.dumps({"only": number, "outcome": asdict(outcome)}), file=file)
