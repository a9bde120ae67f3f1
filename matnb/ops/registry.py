"""What nodes of a kind mean, and which tasks they become: a decorator for each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeAlias, TypeVar

from matnb.errors import OptionError, UnsupportedError
from matnb.expr.nodes import Expr
from matnb.ops.reference import Value
from matnb.program.plan import Workers
from matnb.program.writer import PlanWriter
from matnb.registration import Registry

# Of a node of the registered kind: its value from those of its operands, and what writes its tasks, when its
# operands are arrays in registers.
Meaning: TypeAlias = Callable[[Any, Sequence[Value]], Value]
Lowering: TypeAlias = Callable[[Any, PlanWriter, Workers], None]
_Rule = TypeVar("_Rule", bound=Callable[..., Any])


class Rules(Generic[_Rule]):
    """A rule for each kind of node; called with kinds, it gives the decorator that registers theirs.

    Parameters
    ----------
    name, decorator
        What a rule is called, and what registers one, in errors.
    """

    def __init__(self, name: str, decorator: str) -> None:
        self._name, self._decorator = name, decorator
        self._rules: Registry[type[Expr], _Rule] = Registry(f"the {name} of")

    def __call__(self, *kinds: type[Expr]) -> Callable[[_Rule], _Rule]:
        """Register a rule for some kinds of nodes."""

        def register(rule: _Rule) -> _Rule:
            for kind in kinds:
                if not (isinstance(kind, type) and issubclass(kind, Expr)):
                    raise OptionError(f"@{self._decorator}: {kind!r} is no subclass of Expr")
                self._rules[kind] = rule
            return rule

        return register

    @property
    def kinds(self) -> frozenset[type[Expr]]:
        """The kinds that have a rule."""
        return frozenset(self._rules)

    def of(self, node: Expr) -> _Rule:
        """Return the rule for a node.

        Raises
        ------
        UnsupportedError
            When there is none.
        """
        if type(node) not in self._rules:
            name, way = type(node).__name__, self._decorator
            raise UnsupportedError(f"{name} has no {self._name}: write a function under @{way}({name})")
        return self._rules[type(node)]


means: Rules[Meaning] = Rules("meaning", "means")
lowers: Rules[Lowering] = Rules("lowering", "lowers")
