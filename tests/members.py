"""Members of a gang as threads of one process, with mailboxes that copy what they carry."""

from __future__ import annotations

import copy
import pickle
import queue
import threading
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from matnb.backend.gang.mailbox import Aborted
from matnb.backend.gang.performer import perform
from matnb.backend.tasks.worker import Report, TaskFailed
from matnb.blocks.formats import Block, Csr, Dense, freeze
from matnb.program.program import Program

Tag = tuple[int, str]


class Post:
    """Between members: a thread for each carries what is sent to it, copied and read-only."""

    def __init__(self, members: tuple[int, ...]) -> None:
        self.members = members
        self.reason: str | None = None
        self.carried: list[tuple[int, int, Tag, object]] = []
        self.boxes = {member: Box(self, member) for member in members}

    def __enter__(self) -> Post:
        for box in self.boxes.values():
            box.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        for box in self.boxes.values():
            box.queue.put(None)
            box.thread.join()


class Box:
    """One member's mailbox."""

    def __init__(self, post: Post, owner: int) -> None:
        self.owner = owner
        self.members = post.members
        self.queue: queue.Queue[Any] = queue.Queue()
        self.thread = threading.Thread(target=self._carry, daemon=True)
        self._post = post
        self._arrived: Callable[[int, Tag, object], None] | None = None
        self._subscribed = threading.Event()

    def post(self, target: int, tag: Tag, value: object, sent: Callable[[], None] | None = None) -> None:
        assert target != self.owner
        self._post.carried.append((self.owner, target, tag, value))
        self._post.boxes[target].queue.put((self.owner, tag, value, sent))

    def subscribe(self, arrived: Callable[[int, Tag, object], None]) -> None:
        self._arrived = arrived
        self._subscribed.set()

    def check(self) -> None:
        if self._post.reason is not None:
            raise Aborted(self._post.reason)

    def _carry(self) -> None:
        while (item := self.queue.get()) is not None:
            source, tag, value, sent = item
            copied = _received(value)
            if sent is not None:
                sent()
            self._subscribed.wait(5)
            if self._arrived is not None:
                self._arrived(source, tag, copied)


def _received(value: object) -> object:
    if isinstance(value, np.ndarray):
        value = value.copy()
        value.flags.writeable = False
        return value
    if isinstance(value, Dense):
        return freeze(Dense(value.values.copy()))
    if isinstance(value, Csr):
        return freeze(copy.deepcopy(value))
    return pickle.loads(pickle.dumps(value))


def perform_all(
    program: Program,
    given: Mapping[str, Block],
    members: tuple[int, ...],
    num_threads: int = 2,
    keepers: Mapping[int, Any] | None = None,
    **options: Any,
) -> dict[int, Report]:
    """Run a program on all members, and return what each leaves; raises what the first to fail raised."""
    found: dict[int, Report] = {}
    failures: list[BaseException] = []
    with Post(members) as post:

        def run(member: int) -> None:
            mine = {name: block for name, block in given.items() if program.given[name] == member}
            keeper = None if keepers is None else keepers[member]
            try:
                found[member] = perform(program, mine, post.boxes[member], num_threads, keeper, **options)
            except BaseException as error:
                failures.append(error)
                post.reason = post.reason or f"{member}: {error}"

        threads = [threading.Thread(target=run, args=(member,)) for member in members]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    if failures:
        raise next((one for one in failures if isinstance(one, TaskFailed)), failures[0])
    return found


def results_of(found: Mapping[int, Report]) -> dict[str, Block]:
    """Return the results of all members."""
    return {name: block for one in found.values() for name, block in one.values.items()}
