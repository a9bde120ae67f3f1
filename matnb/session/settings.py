"""The settings a session starts with: the environment, then this process's, then its arguments."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from matnb.balance.policy import Policy, Replay, policy_named
from matnb.balance.trace import Trace
from matnb.config import (
    POLICY_NAMES,
    Config,
    config_from_environment,
    is_trace_path,
    memo_fields,
    parse_bytes,
    parse_grid,
)
from matnb.errors import OptionError, suggestion

OPTIONS = (
    "workers", "threads", "processes", "security", "memory_limit", "memo", "memo_dir", "compute_limit",
    "engine", "rebalance", "node_grid",
)  # fmt: skip
_set: dict[str, object] = {}  # of this process, by option; kept until it is cleared


def set_default(option: str, value: object) -> None:
    """Let sessions that start from now on begin with a setting; None leaves it to the environment.

    So does "auto", except of "engine" and "rebalance", of which it is a value.

    Parameters
    ----------
    option
        One of ``OPTIONS``, which :func:`matnb.start` takes.

    Raises
    ------
    OptionError
        For a value that is not allowed; nothing changes then.
    """
    if option not in OPTIONS:
        raise OptionError(f"no setting {option!r}; {suggestion(option, OPTIONS)}")
    _replaced(Config(), {option: value})
    _set[option] = value


def clear_defaults() -> None:
    """Go by the environment again."""
    _set.clear()


def config_with(given: Mapping[str, object]) -> Config:
    """Return the settings of a session that starts now.

    Parameters
    ----------
    given
        By option; None stands for what is set. So does "auto", except of "engine" and "rebalance", of which
        it is a value.

    Raises
    ------
    OptionError
        For a value that is not allowed, and for a bad variable of the environment.
    """
    return _replaced(_replaced(config_from_environment(), _set), given)


def _replaced(config: Config, values: Mapping[str, object]) -> Config:
    fields: dict[str, object] = {}
    for option, value in values.items():
        if value is not None and (value != "auto" or option in ("engine", "rebalance")):
            fields |= _fields(option, value)
    return replace(config, **fields)  # type: ignore[arg-type]  # the names are Config's, and it checks values


def _fields(option: str, value: object) -> dict[str, object]:
    match option, value:
        case "memory_limit" | "compute_limit", str() | int() | float():
            return {f"{option}_bytes": parse_bytes(value, option)}
        case "memo", str() | int():
            return dict(memo_fields(value))
        case "memo_dir", str() | os.PathLike():
            return {option: os.fspath(value)}
        case "node_grid", str():
            return {option: parse_grid(value)}
        case "node_grid", Sequence() if all(isinstance(one, int) for one in value):
            return {option: tuple(value)}
        case "processes" | "security", bool():
            return {option: value}
        case "workers" | "threads" | "engine" | "rebalance", _:
            return {option: value}
    raise OptionError(f"{option}={value!r}: give {_KINDS[option]}")


_KINDS = {
    "memory_limit": "bytes, as in 2e9 or '2GB'",
    "compute_limit": "bytes, as in 2e9 or '2GB'",
    "memo": "'off', or bytes, as in '4GB'",
    "memo_dir": "the path of a folder",
    "processes": "True or False",
    "node_grid": "'auto', or a number of machines for each axis, as in (4, 4)",
    "security": "True or False",
}


# Who decides whether arrays are repartitioned: what ``rebalance=`` asks for, as policies.


@dataclass(frozen=True)
class RebalanceSetting:
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
        """Whether nothing is ever repartitioned unless a user asks for it."""
        return self.name == "off"

    @property
    def reads_times(self) -> bool:
        """Whether measured times are looked at."""
        return self.name not in ("off", "entries")


def rebalancing_from(value: object) -> RebalanceSetting:
    """Return what a user asked for: a name, the path of a trace, a trace, or a policy.

    Raises
    ------
    OptionError
        When it is none of these, or the trace cannot be read or is none.
    """
    if isinstance(value, Trace):
        replayed = Replay(value)  # one for all groups: it knows what it has repeated
        return RebalanceSetting("replay", lambda: replayed)
    if isinstance(value, os.PathLike) or (isinstance(value, str) and is_trace_path(value)):
        return rebalancing_from(_read(os.fspath(value)))
    if isinstance(value, str) and value.strip().lower() in POLICY_NAMES:
        name = value.strip().lower()
        return RebalanceSetting(name, lambda: policy_named(name))
    called = getattr(value, "name", None)
    if callable(getattr(value, "decide", None)) and isinstance(called, str) and not isinstance(value, type):
        return RebalanceSetting(called, lambda: value)  # type: ignore[arg-type,return-value]  # it is like a policy
    others = "give a trace, the path of one (.json), an object with name and decide(situation), or one of"
    raise OptionError(f"rebalance={value!r}: {suggestion(value, POLICY_NAMES, others)}")


def _read(path: str | bytes) -> Trace:
    name = os.fsdecode(path)
    try:
        return Trace.from_json(Path(name).read_text(encoding="utf-8-sig"), name="the trace")
    except (
        OSError,
        ValueError,
    ) as error:  # a path with a null byte, neither UTF-8 nor a trace
        match error:
            case OSError():
                reason = f"it cannot be read: {error.strerror}"
            case UnicodeDecodeError():
                reason = "it is not UTF-8 text"
            case _:
                reason = str(error)
        raise OptionError(
            f"rebalance={name!r}: {reason}; give the .json file that `mn.history().save(...)` or "
            "`%distmat history --save` wrote"
        ) from None
