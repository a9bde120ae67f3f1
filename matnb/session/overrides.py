"""Settings that one cell overrides: its engine, and whether results are memoized."""

from __future__ import annotations

from collections.abc import Collection, Iterator, MutableMapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from matnb.config import ENGINES, Config
from matnb.errors import OptionError, suggestion
from matnb.expr.nodes import Expr
from matnb.lazy.handles import live_expressions
from matnb.lazy.recording import Recording, active_recording
from matnb.ops.reference import Value


class HiddenArrays:
    """The arrays that a cell does not find: those it writes itself, and those without a name.

    Parameters
    ----------
    named
        What handles stood for when it began.

    Attributes
    ----------
    record
        Of the cell, once its code has ended.
    """

    def __init__(self, named: Collection[Expr]) -> None:
        self._visible = {node.digest for node in named}
        self._made: set[bytes] = set()
        self._written: set[bytes] = set()
        self._num_seen = 0
        self.record: Recording | None = None

    def added(self, node: Expr) -> None:
        """Note that an array was put on the workers meanwhile."""
        self._made.add(node.digest)

    def __contains__(self, node: object) -> bool:
        assert isinstance(node, Expr)
        if node.digest in self._made:
            return False
        record = self.record or active_recording()
        if record is not None and len(record.written) > self._num_seen:
            self._written.update(one.digest for one in record.written[self._num_seen :])
            self._num_seen = len(record.written)
        return node.digest not in self._visible or node.digest in self._written


@dataclass(frozen=True)
class Choices:
    """What a cell chose; None where it goes by its session."""

    engine: str | None = None
    remembers: bool | None = None
    hidden: HiddenArrays | None = None  # where it remembers nothing
    values: MutableMapping[Expr, Value] = field(default_factory=dict)  # that it had interpreted


# Of the thread that runs the cell, so that another thread's runs do not take part.
_chosen: ContextVar[Choices | None] = ContextVar("matnb_choices", default=None)
_NOTHING = Choices()


def chosen() -> Choices:
    """Return what the cell that is running chose."""
    return _chosen.get() or _NOTHING


def engine_of(config: Config) -> str:
    """Return the engine for the current request."""
    return chosen().engine or config.engine


def remembers(config: Config) -> bool:
    """Return whether the current run reads from and writes to the memo."""
    wish = chosen().remembers
    return config.remembers if wish is None else wish


def hiding() -> HiddenArrays | None:
    """Return the arrays that are hidden from the current run; None where there are none."""
    return chosen().hidden


@contextmanager
def choosing(engine: str | None = None, remembers: bool | None = None) -> Iterator[None]:
    """Let what runs inside go by other choices than its session's.

    Where nothing is remembered, what the cell itself writes is computed, though its value may be known, and
    what earlier cells gave names is read.

    Raises
    ------
    OptionError
        For an engine that there is not.
    """
    if engine is not None and engine not in ENGINES:
        raise OptionError(f"engine={engine!r}: {suggestion(engine, ENGINES, 'choose one of')}")
    hidden = HiddenArrays(live_expressions()) if remembers is False else None
    token = _chosen.set(Choices(engine, remembers, hidden))
    try:
        yield
    finally:
        _chosen.reset(token)


def note_written(record: Recording) -> None:
    """Let what a cell recorded be what it writes itself, once its code has ended."""
    hidden = hiding()
    if hidden is not None:
        hidden.record = record
