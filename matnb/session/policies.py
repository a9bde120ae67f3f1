"""Who decides whether arrays are re-cut: what ``rebalance=`` asks for, as policies."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from matnb.balance.policy import Policy, Replayed, policy_named
from matnb.balance.trace import Trace
from matnb.config import POLICY_NAMES, is_trace_path
from matnb.errors import OptionError


@dataclass(frozen=True)
class Rebalancing:
    """A setting of ``rebalance=``.

    Attributes
    ----------
    name
        In a word: one of ``POLICY_NAMES``, "replay", or what a user's own policy is called.
    policy
        Gives a policy for a group of arrays, which may keep what it learns of them.
    """

    name: str
    policy: Callable[[], Policy]

    @property
    def is_off(self) -> bool:
        """Whether nothing is ever re-cut unless a user asks for it."""
        return self.name == "off"

    @property
    def reads_times(self) -> bool:
        """Whether measured times are looked at."""
        return self.name not in ("off", "entries")


def rebalancing_from(value: object) -> Rebalancing:
    """Return what a user asked for: a name, the path of a trace, a trace, or a policy.

    Raises
    ------
    OptionError
        When it is none of these, or the trace cannot be read or is none.
    """
    if isinstance(value, Trace):
        replayed = Replayed(value)  # one for all groups: it knows what it has repeated
        return Rebalancing("replay", lambda: replayed)
    if isinstance(value, os.PathLike) or (isinstance(value, str) and is_trace_path(value)):
        return rebalancing_from(_read(os.fspath(value)))
    if isinstance(value, str) and value.strip().lower() in POLICY_NAMES:
        name = value.strip().lower()
        return Rebalancing(name, lambda: policy_named(name))
    called = getattr(value, "name", None)
    if callable(getattr(value, "decide", None)) and isinstance(called, str) and not isinstance(value, type):
        return Rebalancing(called, lambda: value)  # type: ignore[arg-type,return-value]  # it is like a policy
    raise OptionError(
        f"rebalance={value!r}: choose one of {', '.join(map(repr, POLICY_NAMES))}, or give the path of a "
        "trace (.json), a trace, or an object with name and decide(situation)"
    )


def _read(path: str | bytes) -> Trace:
    name = os.fsdecode(path)
    try:
        return Trace.from_json(Path(name).read_text(encoding="utf-8-sig"), name="the trace")
    except (OSError, ValueError) as error:  # a path with a null byte, what is no UTF-8 and what is no trace
        match error:
            case OSError():
                reason = f"it cannot be read: {error.strerror}"
            case UnicodeDecodeError():
                reason = "it is no text in UTF-8"
            case _:
                reason = str(error)
        raise OptionError(
            f"rebalance={name!r}: {reason}; give the .json file that `mn.history().save(...)` or "
            "`%distmat history --save` wrote"
        ) from None
