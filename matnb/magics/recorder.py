"""A cell's code compiled with its positions, run under a recording, and the Program of roots it leaves."""

from __future__ import annotations

import ast
import inspect
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import CodeType

from matnb.errors import CellSyntaxError, OptionError, UnsupportedError
from matnb.expr.nodes import Expr
from matnb.lazy.array import DistArray
from matnb.lazy.recording import Recording, recording
from matnb.pictures.escaping import LONGEST_NAME, shortened

VALUE = "_"  # the root of the last value, under the name IPython gives to it


@dataclass(frozen=True)
class CellCode:
    """A cell's statements and, apart, its last expression; either may be missing."""

    filename: str
    statements: CodeType
    value: CodeType | None


@dataclass(frozen=True)
class CellRoots:
    """The named roots of one cell: what its end computes."""

    roots: Mapping[str, Expr]


@dataclass(frozen=True)
class RecordedCell:
    """What running a cell's code left: its last value, what it recorded, and its roots."""

    value: object
    record: Recording
    program: CellRoots


def compile_cell(source: str, filename: str, flags: int = 0) -> CellCode:
    """Compile a cell so that its last expression can be evaluated for its value.

    Parameters
    ----------
    source
        Python code; its first line is line 1 of ``filename``.
    filename
        Name under which the code's frames are found again.
    flags
        Compiler flags, such as those of ``from __future__`` imports in earlier cells.

    Raises
    ------
    CellSyntaxError
        Caused by the SyntaxError, which has the position in ``filename``.
    UnsupportedError
        For an ``await`` that is not inside of a function.
    """
    try:
        return _compiled(source, filename, flags)
    except SyntaxError as error:
        if _awaits(source, flags):
            words = "await is not recorded: await in a plain cell, and use here what it gave"
            refused = UnsupportedError(words)
            refused.lines = () if error.lineno is None else (error.lineno,)
            raise refused from None
        raise CellSyntaxError(f"{error.msg} (line {error.lineno})") from error


def _compiled(source: str, filename: str, flags: int) -> CellCode:
    tree = compile(source, filename, "exec", flags | ast.PyCF_ONLY_AST, dont_inherit=True)
    assert isinstance(tree, ast.Module)
    value = None
    if tree.body and isinstance(last := tree.body[-1], ast.Expr):
        del tree.body[-1]
        value = compile(ast.Expression(last.value), filename, "eval", flags, dont_inherit=True)
    return CellCode(filename, compile(tree, filename, "exec", flags, dont_inherit=True), value)


def _awaits(source: str, flags: int) -> bool:
    # Whether the code is in order but for awaiting outside of any function, as plain cells may.
    try:
        code = compile(source, "", "exec", flags | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
    except SyntaxError:
        return False
    return bool(code.co_flags & inspect.CO_COROUTINE)


def run_cell(
    code: CellCode, namespace: dict[str, object], keep: Sequence[str] = (), out: str | None = None
) -> RecordedCell:
    """Run a cell's code in a namespace, recording its operations, and find its roots.

    Parameters
    ----------
    keep
        Names that are roots, too.
    out
        A name that the last value is given, instead of being a root of its own.

    Raises
    ------
    OptionError
        When ``keep`` names something that is no DistArray after the cell, and when there is no last value for
        ``out``.
    """
    if out is not None and code.value is None:
        raise OptionError(f"--out {out}: the cell's last line is no expression, so there is no value to name")
    # References that keep nothing alive: what the cell lets go of can be freed while it runs.
    before = {name: (weakref.ref(handle), handle.expression.digest) for name, handle in _handles(namespace)}
    with recording(code.filename) as record:
        exec(code.statements, namespace)
        value = eval(code.value, namespace) if code.value is not None else None
    if out is not None:
        namespace[out] = value
    assigned = {
        name: handle.expression
        for name, handle in _handles(namespace)
        if name not in before
        or before[name][0]() is not handle
        or before[name][1] != handle.expression.digest
    }
    record.names.update(assigned)
    roots = {name: handle.expression for name, handle in last_values(value, out or VALUE)}
    consumed = _consumed(record)
    roots |= {name: node for name, node in assigned.items() if node not in consumed and name not in roots}
    for name in keep:
        handle = namespace.get(name)
        if not isinstance(handle, DistArray):
            known = ", ".join(shortened(one, LONGEST_NAME) for one in sorted(assigned)) or "none"
            wrong = f"--keep {shortened(name, LONGEST_NAME)}: no DistArray of that name"
            raise OptionError(f"{wrong}; assigned in this cell: {known}")
        roots[name] = handle.expression
    return RecordedCell(value, record, CellRoots(roots))


def _handles(namespace: Mapping[str, object]) -> list[tuple[str, DistArray]]:
    return [(name, value) for name, value in namespace.items() if isinstance(value, DistArray)]


def last_values(value: object, name: str = VALUE) -> list[tuple[str, DistArray]]:
    """Return the arrays that a cell's last value is or holds, each with what it is called.

    Looked into are tuples, lists and dicts, also those inside of them.
    """
    found: dict[str, DistArray] = {}
    _collect(value, name, found, ())
    return list(found.items())


def _collect(value: object, name: str, found: dict[str, DistArray], around: tuple[object, ...]) -> None:
    if isinstance(value, DistArray):
        found[name if name not in found else f"{name}#{len(found)}"] = value
    elif any(value is one for one in around):  # a list may hold itself
        return
    elif isinstance(value, tuple | list):
        for place, one in enumerate(value):
            _collect(one, f"{name}[{place}]", found, (*around, value))
    elif isinstance(value, dict):
        for place, (key, one) in enumerate(value.items()):
            called = shortened(repr(key), LONGEST_NAME) if isinstance(key, str | int) else f"#{place}"
            _collect(one, f"{name}[{called}]", found, (*around, value))


def _consumed(record: Recording) -> set[Expr]:
    # One operation may build several nodes (a mean is a sum and a quotient) and only the last is recorded, so
    # what it consumes lies below; the walk ends at nodes that are recorded or known to be consumed already.
    consumed: set[Expr] = set()
    waiting = list(record.lines)
    while waiting:
        for operand in waiting.pop().operands:
            if operand not in consumed:
                consumed.add(operand)
                waiting.append(operand)
    return consumed
