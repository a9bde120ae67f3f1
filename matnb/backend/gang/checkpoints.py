"""Checkpoints of a loop's state: two workers hold each copy, so the loop survives the loss of one."""

from __future__ import annotations

import threading
import time
from collections.abc import Collection, Mapping

from matnb.backend.gang.mailbox import GangMailbox
from matnb.blocks.formats import Block, freeze
from matnb.expr.client_data import copied
from matnb.program.plan import Slot

DUE_SECONDS = 2.0
_NUM_GENERATIONS = 2  # the newest may have reached only some of the members when one is lost


class Checkpoints:
    """The blocks of a loop's states that one worker keeps: its own and its neighbor's.

    A loop that paused goes on in another epoch; what was kept at the pause stays until there is newer.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._generations: dict[tuple[int, int], dict[Slot, Block]] = {}

    def add(self, epoch: int, iteration: int, blocks: Mapping[Slot, Block]) -> None:
        """Keep blocks of an iteration, and forget all but the newest generations."""
        with self._lock:
            self._generations.setdefault((epoch, iteration), {}).update(blocks)
            for old in sorted(self._generations)[:-_NUM_GENERATIONS]:
                del self._generations[old]

    def keep_only(self, epochs: Collection[int]) -> None:
        """Forget what other epochs left."""
        with self._lock:
            self._generations = {one: kept for one, kept in self._generations.items() if one[0] in epochs}

    def inventory(self, epoch: int) -> dict[int, tuple[Slot, ...]]:
        """Return the names of an epoch's checkpoints, by iteration."""
        with self._lock:
            found = self._generations.items()
            return {iteration: tuple(blocks) for (of, iteration), blocks in found if of == epoch}

    def blocks(self, epoch: int, iteration: int) -> Mapping[Slot, Block]:
        """Return the blocks in an iteration's checkpoint."""
        with self._lock:
            return dict(self._generations.get((epoch, iteration), {}))


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

    def save(self, iteration: int, registers: Mapping[Slot, Block]) -> None:
        """Copy this member's blocks of the state and send them to the next member."""
        self._last = time.monotonic()
        copies = {name: freeze(copied(block)) for name, block in registers.items()}
        self._checkpoints.add(self._mailbox.epoch, iteration, copies)
        self._mailbox.keep_at(self._next, iteration, copies)
