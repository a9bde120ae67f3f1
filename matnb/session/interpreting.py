"""Values by NumPy and SciPy in this process, for who sets ``engine="interpret"``."""

from __future__ import annotations

from collections.abc import Callable, Container, MutableMapping
from weakref import WeakKeyDictionary

import scipy.sparse as sp

from matnb.backend.cancellation import Stopping
from matnb.backend.store import Store
from matnb.blocks.formats import Block, Dense, to_scipy
from matnb.config import Config
from matnb.expr.memo_keys import is_small
from matnb.expr.nodes import Data, Expr, Load
from matnb.expr.traverse import topological
from matnb.ops.interpret import block_of, interpret
from matnb.ops.registry import Value
from matnb.program.memory import estimate_bytes
from matnb.session.overrides import chosen, engine_of


class Interpreter:
    """Gives values without workers.

    Parameters
    ----------
    config, store
        Of the session.
    bring
        Returns what is on the workers.
    stopping
        Who is asked to end what runs; looked at between two operations.
    """

    def __init__(
        self, config: Config, store: Store, bring: Callable[[Expr], Block], stopping: Stopping
    ) -> None:
        self._config, self._store, self._bring, self._stopping = config, store, bring, stopping
        self._values: WeakKeyDictionary[Expr, Value] = WeakKeyDictionary()

    @property
    def is_used(self) -> bool:
        """Whether values are to be found so now."""
        return engine_of(self._config) == "interpret"

    @property
    def known(self) -> Container[Expr]:
        """The expressions whose values are known."""
        return self._found

    @property
    def _found(self) -> MutableMapping[Expr, Value]:
        # Those of a cell that alone wants it so go with the cell.
        return self._values if self._config.engine == "interpret" else chosen().values

    def value(self, node: Expr, check: Callable[[Expr, int], None]) -> Block:
        """Return the value of an expression, with memory of its own, unless ``check`` refuses its entries."""
        value = self.make(node)
        check(node, value.nnz if sp.issparse(value) else value.size)
        return block_of(value)

    def small(self, node: Expr) -> Dense | None:
        """Return the value of a small dense array if it was found already, to be shown."""
        value = self._found.get(node)
        if value is None or node.sparse or not is_small(node, estimate_bytes(node, node.size)):
            return None
        block = block_of(value)
        return block if isinstance(block, Dense) else None

    def make(self, node: Expr) -> Value:
        """Find the value of an expression and keep it."""
        known = self._found
        if self._config.engine != "interpret":  # then only the workers may have what others are made from
            for leaf in topological([node], known):
                if isinstance(leaf, Data | Load) and leaf not in known and leaf in self._store:
                    block = self._bring(leaf)
                    known[leaf] = block.values if isinstance(block, Dense) else to_scipy(block)
        with self._stopping.scope(), self._stopping.heeding():
            return interpret(node, known, self._stopping.check)
