"""The options of ``%distmat COMMAND`` and ``%%distmat``: a parser each, which gives help and completion."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Mapping
from typing import NoReturn

from IPython.core.error import UsageError

from matnb.session.looking import stage_names


class OptionParser(argparse.ArgumentParser):
    """An argparse parser that ends with one line instead of the process."""

    def error(self, message: str) -> NoReturn:
        """Raise what IPython shows as a single line."""
        raise UsageError(f"{self.prog}: {message}")

    settings: tuple[str, ...] = ()  # words of its argument that can be completed

    @property
    def flags(self) -> list[str]:
        """The option names, in the order they were added."""
        return [action.option_strings[0] for action in self._actions if action.option_strings]


def _parser(prog: str, description: str) -> OptionParser:
    return OptionParser(prog=prog, description=description, add_help=False, allow_abbrev=False)


def _start() -> OptionParser:
    parser = _parser("%distmat start", "Start workers on this machine.")
    parser.add_argument("--workers", metavar="N", type=int, help="number of Dask workers")
    parser.add_argument("--threads", metavar="N", type=int, help="threads of each worker; default: all cores")
    # Not False where it is left out, so that the environment may say it.
    parser.add_argument(
        "--processes", action="store_true", default=None, help="give each worker a process of its own"
    )
    parser.add_argument("--memory-limit", metavar="SIZE", help="memory of each worker, such as 4GB")
    parser.add_argument("--memo", metavar="SIZE", help="memory for results kept between runs, or off")
    parser.add_argument("--memo-dir", metavar="FOLDER", help="keep results in files for other processes")
    parser.add_argument(
        "--rebalance", metavar="SETTING", help="who re-cuts arrays: auto, entries, presto, off, or a trace"
    )
    return parser


def _connect() -> OptionParser:
    secured = "One that asks for certificates: mn.connect(ADDRESS, security=distributed.Security(...))."
    parser = _parser("%distmat connect", f"Connect to a Dask cluster that is running. {secured}")
    parser.add_argument(
        "address", nargs="?", metavar="ADDRESS", help="of the scheduler, such as tcp://host:8786"
    )
    parser.add_argument(
        "--scheduler-file", metavar="FILE", help="written by `dask scheduler --scheduler-file`"
    )
    return parser


def _explain() -> OptionParser:
    parser = _parser("%distmat explain", "Show how arrays are computed; those of the last cell by default.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="variables that hold a DistArray")
    stage = f"tell of one stage only: {', '.join(stage_names())}"
    parser.add_argument("--stage", metavar="STAGE", help=stage)
    return parser


def _memo() -> OptionParser:
    parser = _parser("%distmat memo", "Show the results that are remembered, with their uses and bytes.")
    parser.add_argument("--clear", action="store_true", help="forget those for which there is no name")
    parser.add_argument("--disk", action="store_true", help="with --clear: remove the files, too")
    return parser


def _history() -> OptionParser:
    parser = _parser("%distmat history", "Show what was decided about where arrays are cut, and why.")
    save = "write it to a .json file, which a session can repeat, to .svg or .txt"
    parser.add_argument("--save", metavar="FILE", help=save)
    return parser


def _rebalance() -> OptionParser:
    parser = _parser("%distmat rebalance", "Show or set how arrays are re-cut, or have it done.")
    words = (
        "now: re-cut what is stored; auto: by measured times; entries: by counts alone; presto: by the rule "
        "of the Presto paper; off; or the .json file of a history, to repeat it"
    )
    parser.add_argument("setting", nargs="?", metavar="SETTING", help=words)
    parser.settings = ("now", "auto", "entries", "presto", "off")
    return parser


def _cell() -> OptionParser:
    parser = _parser("%%distmat", "Record a cell and compute its results in one run.")
    parser.add_argument("--lazy", action="store_true", help="record only; compute when a value is asked for")
    keep = "also compute and keep this array, even if the cell consumes it or it is large; may repeat"
    parser.add_argument("--keep", metavar="NAME", action="append", default=[], help=keep)
    return parser


COMMANDS: dict[str, OptionParser] = {
    "start": _start(),
    "connect": _connect(),
    "status": _parser("%distmat status", "Show the workers, their memory and what is stored on them."),
    "explain": _explain(),
    "memo": _memo(),
    "history": _history(),
    "rebalance": _rebalance(),
    "stop": _parser("%distmat stop", "Stop what was started here, or leave the cluster that was connected."),
}
CELL = _cell()


def parse_line(line: str, namespace: Mapping[str, object]) -> tuple[str, argparse.Namespace]:
    """Return the command of ``%distmat`` and its options.

    Raises
    ------
    UsageError
        For an unknown command or option; the one line says what exists.
    """
    words = _split(line)
    if not words or words[0] not in COMMANDS:
        wrong = f"unknown command {words[0]!r}" if words else "a command is missing"
        raise UsageError(f"%distmat: {wrong}; there are {', '.join(COMMANDS)}")
    return words[0], _parse(COMMANDS[words[0]], words[1:], namespace)


def parse_cell_line(line: str, namespace: Mapping[str, object]) -> argparse.Namespace:
    """Return the options of ``%%distmat``; errors as :func:`parse_line`."""
    return _parse(CELL, _split(line), namespace)


def help_text() -> str:
    """Return what ``%distmat?`` shows: every command and every option."""
    return "\n".join(parser.format_help() for parser in (CELL, *COMMANDS.values()))


def _split(line: str) -> list[str]:
    try:
        return shlex.split(line)
    except ValueError as error:
        raise UsageError(f"%distmat: {error} in {line!r}") from None


def _parse(parser: OptionParser, words: list[str], namespace: Mapping[str, object]) -> argparse.Namespace:
    # {name} is filled in after splitting and in values only, so a variable cannot add an option.
    filled = [word if word.startswith("-") else _filled(parser, word, namespace) for word in words]
    chosen, unknown = parser.parse_known_args(filled)
    if unknown:
        takes = f"it takes {', '.join(parser.flags)}" if parser.flags else "it takes none"
        kind = "option" if unknown[0].startswith("-") else "argument"
        raise UsageError(f"{parser.prog}: unknown {kind} {unknown[0]!r}; {takes}")
    return chosen


def _filled(parser: OptionParser, value: str, namespace: Mapping[str, object]) -> str:
    try:
        return value.format_map(namespace)
    except KeyError as error:
        raise UsageError(f"{parser.prog}: no variable {error.args[0]} for {value!r}") from None
    except (ValueError, IndexError, AttributeError) as error:
        raise UsageError(f"{parser.prog}: cannot fill in {value!r}: {error}") from None
