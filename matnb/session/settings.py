"""What a session starts with: the environment, over it what this process has set, over that what is given."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace

from matnb.config import Config, config_from_environment, memo_fields, parse_bytes
from matnb.errors import OptionError

OPTIONS = (
    "workers", "threads", "processes", "security", "memory_limit", "memo", "memo_dir", "compute_limit",
    "engine", "rebalance",
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
        raise OptionError(f"no setting {option!r}; there are {', '.join(OPTIONS)}")
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
    "security": "True or False",
}
