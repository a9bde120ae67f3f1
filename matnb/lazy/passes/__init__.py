"""The passes in the order they run; each is a pure function from named expressions to named expressions."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass

from matnb.lazy.expr import Expr
from matnb.lazy.passes.identities import drop_identities

Roots = Mapping[str, Expr]
Pass = Callable[[Roots, Container[Expr]], dict[str, Expr]]


@dataclass(frozen=True)
class Listed:
    """A pass and why it stands where it does."""

    name: str
    run: Pass
    reason: str


PASSES: tuple[Listed, ...] = (
    Listed(
        "identities", drop_identities, "first, so that what does nothing hides no pattern from later passes"
    ),
)


def optimize(roots: Roots, known: Container[Expr] = ()) -> dict[str, Expr]:
    """Run every pass; names, shapes, dtypes and formats of the roots stay."""
    for _, after in stages(roots, known):
        roots = after
    return dict(roots)


def stages(roots: Roots, known: Container[Expr] = ()) -> list[tuple[str, dict[str, Expr]]]:
    """Return the roots after each pass, by the pass's name.

    Expressions in ``known`` have values already and are left alone.
    """
    result = []
    for listed in PASSES:
        after = listed.run(roots, known)
        for name, root in roots.items():
            new = after[name]
            assert (new.shape, new.dtype, new.sparse) == (root.shape, root.dtype, root.sparse), listed.name
        roots = after
        result.append((listed.name, after))
    return result
