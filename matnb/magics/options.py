"""The options of ``%distmat COMMAND`` and ``%%distmat``: a parser each, which gives help and completion."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Mapping
from keyword import iskeyword
from types import MappingProxyType
from typing import NoReturn

from IPython.core.error import UsageError

from matnb.config import ENGINES, POLICY_NAMES
from matnb.errors import meant, suggestion
from matnb.pictures.escaping import LONGEST_LINE, LONGEST_NAME, shortened
from matnb.session.inspect import stage_names


class OptionParser(argparse.ArgumentParser):
    """An argparse parser that ends with one line instead of the process."""

    def error(self, message: str) -> NoReturn:
        """Raise what IPython shows as a single line."""
        raise UsageError(f"{self.prog}: {message}")

    settings: tuple[str, ...] = ()  # words of its argument that can be completed
    words: Mapping[str, tuple[str, ...]] = MappingProxyType({})  # and of its options' values
    takes_arrays = False  # whether its arguments are names of arrays

    @property
    def flags(self) -> list[str]:
        """The option names, in the order they were added."""
        return [action.option_strings[0] for action in self._actions if action.option_strings]

    @property
    def takes_value(self) -> list[str]:
        """The names of options after which a value is written."""
        return [
            action.option_strings[0]
            for action in self._actions
            if action.option_strings and action.nargs is None
        ]


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
    parser.add_argument(
        "--no-security",
        action="store_false",
        dest="security",
        default=None,
        help="let worker processes listen on ports, through which any user of this machine can run code",
    )
    parser.add_argument("--memory-limit", metavar="SIZE", help="memory of each worker, such as 4GB")
    parser.add_argument("--memo", metavar="SIZE", help="memory for results kept between runs, or off")
    parser.add_argument("--memo-dir", metavar="FOLDER", help="keep results in files for other processes")
    parser.add_argument(
        "--engine",
        metavar="NAME",
        help="how to run cells: auto, gang, dask, or interpret (NumPy and SciPy, without workers)",
    )
    parser.add_argument(
        "--rebalance",
        metavar="SETTING",
        help="how arrays are repartitioned: auto, entries, presto, off, or a trace file",
    )
    grid = "how workers lie beside the axes of arrays, such as 4x4; auto goes by their lengths"
    parser.add_argument("--node-grid", metavar="GRID", help=grid)
    limit = "largest result that is brought into this process, such as 2GB"
    parser.add_argument("--compute-limit", metavar="SIZE", help=limit)
    parser.words = {
        "--engine": ENGINES,
        "--rebalance": POLICY_NAMES,
        "--memo": ("off",),
        "--node-grid": ("auto",),
    }
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
    drawn = "draw the plan, what was recorded and what each pass made of it, to go through with a click"
    parser.add_argument("--picture", action="store_true", help=drawn)
    parser.words = {"--stage": tuple(stage_names())}
    parser.takes_arrays = True
    return parser


def _simulate() -> OptionParser:
    parser = _parser(
        "%distmat simulate",
        "Show what it would take to make arrays on a cluster that need not exist; those of the last cell by "
        "default. Nothing runs, and all figures are simulated.",
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="variables that hold a DistArray")
    for option, what in (
        ("--nodes", "number of machines"),
        ("--workers", "workers on each machine"),
        ("--threads", "threads of each worker"),
        ("--iterations", "of loops that end by a condition"),
    ):
        parser.add_argument(option, metavar="N", type=int, help=what)
    parser.add_argument("--memory", metavar="SIZE", help="of each machine, such as 512GB")
    parser.add_argument("--bandwidth", metavar="RATE", help="of each machine's link, such as 20Gbps")
    parser.add_argument("--latency", metavar="TIME", help="of a message between machines, such as 50us")
    parser.takes_arrays = True
    return parser


def _memo() -> OptionParser:
    parser = _parser("%distmat memo", "Show the results that are remembered, with their uses and bytes.")
    parser.add_argument("--clear", action="store_true", help="forget results that no variable refers to")
    parser.add_argument("--disk", action="store_true", help="with --clear: also delete the files")
    return parser


def _history() -> OptionParser:
    parser = _parser("%distmat history", "Show what was decided about where arrays are cut, and why.")
    save = "write it to a .json file, which a session can repeat, to .svg or .txt"
    parser.add_argument("--save", metavar="FILE", help=save)
    return parser


def _rebalance() -> OptionParser:
    parser = _parser(
        "%distmat rebalance", "Show or set how arrays are repartitioned, or repartition them now."
    )
    words = (
        "now: repartition what is stored; auto: by measured times; entries: by counts alone; presto: by the "
        "rule of the Presto paper; off; or the .json file of a history, to repeat it"
    )
    parser.add_argument("setting", nargs="?", metavar="SETTING", help=words)
    parser.settings = ("now", "auto", "entries", "presto", "off")
    return parser


def _stamp() -> OptionParser:
    words = (
        "Show what results depend on. These are versions, BLAS, seeds, cluster, the commit of the folder, "
        "and the hashes of the files that were loaded."
    )
    parser = _parser("%distmat stamp", words)
    parser.add_argument("--json", action="store_true", help="show it as JSON")
    parser.add_argument("--time", action="store_true", help="include the time of day")
    parser.add_argument("--save", metavar="FILE", help="write it to a .json, .html or .txt file")
    return parser


def _cell() -> OptionParser:
    parser = _parser("%%distmat", "Record a cell and compute its results in one run.")
    parser.add_argument("--lazy", action="store_true", help="record only; compute when a value is asked for")
    keep = "also compute and keep this array, even if the cell consumes it or it is large; may repeat"
    parser.add_argument("--keep", metavar="NAME", action="append", default=[], help=keep)
    nowait = (
        "record the cell now and compute its results in the background, after those of earlier such cells. "
        "The value is a handle: h.result(), await h, h.cancel(), h.done. An interrupt does not end it. A "
        "value that the cell itself asks for is waited for, and cells that compute wait until it has ended, "
        "since the workers do one cell at a time. In a report the cell itself waits until then"
    )
    parser.add_argument("--nowait", action="store_true", help=nowait)
    out = "give the last value, or with --nowait the handle, this name instead of showing it"
    parser.add_argument("--out", metavar="NAME", help=out)
    group = parser.add_mutually_exclusive_group()
    memo = "remember results even if the session does not"
    group.add_argument("--memo", dest="remembers", action="store_true", default=None, help=memo)
    no_memo = (
        "compute everything in this cell even if it is remembered, and remember none of it; variables of "
        "earlier cells are still used"
    )
    group.add_argument("--no-memo", dest="remembers", action="store_false", default=None, help=no_memo)
    engine = (
        "how to run this cell: auto, gang, dask, or interpret: computed by NumPy and SciPy in this process, "
        "for comparison, and not kept"
    )
    parser.add_argument("--engine", metavar="NAME", help=engine)
    explain = "after the value, show how the results were computed; with --lazy how they would be"
    parser.add_argument("--explain", action="store_true", help=explain)
    parser.words = {"--engine": ENGINES}
    return parser


COMMANDS: dict[str, OptionParser] = {
    "start": _start(),
    "connect": _connect(),
    "status": _parser("%distmat status", "Show the workers, their memory and what is stored on them."),
    "explain": _explain(),
    "simulate": _simulate(),
    "memo": _memo(),
    "history": _history(),
    "rebalance": _rebalance(),
    "monitor": _parser("%distmat monitor", "Show what each worker does, while cells run."),
    "stamp": _stamp(),
    "doctor": _parser(
        "%distmat doctor",
        "Say whether all is well here and on the cluster, and what to change. Looked at are versions, "
        "threads, BLAS, memory, disk, ports and TLS.",
    ),
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
        wrong = f"unknown command {shortened(words[0], LONGEST_NAME)!r}" if words else "a command is missing"
        raise UsageError(f"%distmat: {wrong}; {suggestion(words[0] if words else None, COMMANDS, shown=str)}")
    return words[0], _parse(COMMANDS[words[0]], words[1:], namespace)


def parse_cell_line(line: str, namespace: Mapping[str, object]) -> argparse.Namespace:
    """Return the options of ``%%distmat``; errors as :func:`parse_line`."""
    chosen = _parse(CELL, _split(line), namespace)
    if chosen.out is not None and (not chosen.out.isidentifier() or iskeyword(chosen.out)):
        raise UsageError(
            f"%%distmat: --out {shortened(chosen.out, LONGEST_NAME)}: that is not a valid Python name"
        )
    others = {
        "--lazy": chosen.lazy,
        "--explain": chosen.explain,
        "--engine interpret": chosen.engine == "interpret",
    }
    for other, is_there in others.items():
        if chosen.nowait and is_there:
            raise UsageError(f"%%distmat: --nowait cannot be combined with {other}")
    return chosen


def help_text() -> str:
    """Return what ``%distmat?`` shows: every command and every option."""
    width = max(map(len, COMMANDS))
    commands = [f"  %distmat {name.ljust(width)}  {_first_sentence(one)}" for name, one in COMMANDS.items()]
    overview = [
        "commands:",
        *commands,
        "",
        "%distmat COMMAND --help tells of one. Settings: %config DistMat",
        "",
    ]
    return "\n".join([CELL.format_help(), *overview, *(one.format_help() for one in COMMANDS.values())])


def help_asked(line: str, is_cell: bool) -> str | None:
    """Return the help that a line asks for with ``--help``, or None."""
    words = line.split()
    if "--help" not in words and "-h" not in words:
        return None
    if is_cell:
        return CELL.format_help()
    return COMMANDS[words[0]].format_help() if words[0] in COMMANDS else help_text()


def _first_sentence(parser: OptionParser) -> str:
    return (parser.description or "").partition(". ")[0].removesuffix(".")


def _split(line: str) -> list[str]:
    try:
        return shlex.split(line)
    except ValueError as error:
        raise UsageError(f"%distmat: {error} in {shortened(line, LONGEST_LINE)!r}") from None


def _parse(parser: OptionParser, words: list[str], namespace: Mapping[str, object]) -> argparse.Namespace:
    # {name} is filled in after splitting and in values only, so a variable cannot add an option.
    filled = [word if word.startswith("-") else _filled(parser, word, namespace) for word in words]
    chosen, unknown = parser.parse_known_args(filled)
    if unknown:
        takes = suggestion(unknown[0], parser.flags, "it takes", str)
        kind = "option" if unknown[0].startswith("-") else "argument"
        raise UsageError(f"{parser.prog}: unknown {kind} {shortened(unknown[0], LONGEST_NAME)!r}; {takes}")
    return chosen


def _filled(parser: OptionParser, value: str, namespace: Mapping[str, object]) -> str:
    shown = shortened(value, LONGEST_NAME)
    try:
        return value.format_map(namespace)
    except KeyError as error:
        wanted = str(error.args[0])
        near = meant(wanted, (name for name in namespace if not name.startswith("_")), before="; ")
        raise UsageError(
            f"{parser.prog}: no variable {shortened(wanted, LONGEST_NAME)} for {shown!r}{near}"
        ) from None
    except (ValueError, IndexError, AttributeError) as error:
        raise UsageError(
            f"{parser.prog}: cannot fill in {shown!r}: {shortened(str(error), LONGEST_LINE)}"
        ) from None
