"""Copies of a loop's state, kept on two workers each, so that a loop goes on after one of them is lost."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping

from matnb.backend.mailbox import GangMailbox
from matnb.blocks.formats import Block, freeze
from matnb.lazy.holdings import copied

DUE_SECONDS = 2.0
_NUM_GENERATIONS = 2  # the newest may have reached only some of the members when one is lost


class Checkpoints:
    """The blocks of one epoch's state that one worker keeps: its own and its neighbor's."""

    def __init__(self, epoch: int) -> None:
        self.epoch = epoch
        self._lock = threading.Lock()
        self._generations: dict[int, dict[str, Block]] = {}

    def add(self, iteration: int, blocks: Mapping[str, Block]) -> None:
        """Keep blocks of an iteration, and forget all but the newest generations."""
        with self._lock:
            self._generations.setdefault(iteration, {}).update(blocks)
            for old in sorted(self._generations)[:-_NUM_GENERATIONS]:
                del self._generations[old]

    def inventory(self) -> dict[int, tuple[str, ...]]:
        """Return the names of what is kept, by iteration."""
        with self._lock:
            return {iteration: tuple(blocks) for iteration, blocks in self._generations.items()}

    def blocks(self, iteration: int) -> Mapping[str, Block]:
        """Return what is kept of an iteration."""
        with self._lock:
            return dict(self._generations.get(iteration, {}))


class RingKeeper:
    """Keeps a member's blocks here and on the next member."""

    def __init__(self, checkpoints: Checkpoints, mailbox: GangMailbox) -> None:
        self._checkpoints, self._mailbox = checkpoints, mailbox
        members = mailbox.members
        self._next = members[(members.index(mailbox.owner) + 1) % len(members)]
        self._last = time.monotonic()

    def is_due(self) -> bool:
        """Tell whether the last copies are old."""
        return time.monotonic() - self._last >= DUE_SECONDS

    def save(self, iteration: int, registers: Mapping[str, Block]) -> None:
        """Copy this member's blocks of the state and send them to the next member."""
        self._last = time.monotonic()
        copies = {name: freeze(copied(block)) for name, block in registers.items()}
        self._checkpoints.add(iteration, copies)
        self._mailbox.keep_at(self._next, iteration, copies)
