"""The contract of a container: it comes apart and goes together again, and through loops and branches."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from matnb.errors import MatnbError
from matnb.lazy.array import DistArray
from matnb.lazy.creation import asarray
from matnb.lazy.handles import expression_of
from matnb.lazy.loop import cond, iterate
from matnb.lazy.tree import LEAF, flatten, unflatten
from matnb.ops.interpret import interpret
from matnb.testing.expectations import expect, expect_error, expect_same


class ContainerTests:
    """Tests of a type that is registered by ``register_container``; a subclass gives the methods below."""

    def values(self) -> Iterable[Any]:
        """Return some values of the type, whose parts are DistArrays."""
        raise NotImplementedError(f"{type(self).__name__}: write values(self), a list of containers")

    def others(self) -> Iterable[tuple[Any, Any]]:
        """Return pairs of values that may not take each other's place; none where any may."""
        return ()

    def test_it_comes_apart_and_goes_together_again(self) -> None:
        """Leaves and structure make an equal value of the same type, alone and inside of others."""
        for value in self._values():
            for tree in (value, {"a": [value, 1.0], "b": (value,)}):
                leaves, structure = flatten(tree)
                again = unflatten(structure, leaves)
                same, other = flatten(again)
                expect(type(again) is type(tree), f"{type(tree).__name__} became {type(again).__name__}")
                expect(other == structure, f"the structure {structure} became {other}")
                expect(
                    len(same) == len(leaves) and all(map(_is_one, same, leaves)),
                    f"{structure}: unflatten changes the leaves, or their order",
                )

    def test_its_structure_can_be_compared_hashed_and_read(self) -> None:
        """Structures are hashable, equal for the same value, and a path is written for each leaf."""
        for value in self._values():
            (leaves, one), (_, other) = flatten(value), flatten(value)
            expect(one == other, f"{one}: two structures of one value differ: give them __eq__")
            expect(hash(one) == hash(other), f"{one}: equal structures have two hashes")
            expect("object at 0x" not in str(one), f"{one}: write a __str__ of the structure, for errors")
            paths = list(one.paths("x"))
            expect(
                len(paths) == len(set(paths)) == len(leaves),
                f"{one}: paths {paths} for {len(leaves)} leaves: give paths= one for each child",
            )

    def test_others_cannot_take_its_place(self) -> None:
        """Values that may not take each other's place have other structures, and branches refuse them."""
        for one, other in self.others():
            expect(flatten(one)[1] != flatten(other)[1], f"{one!r} and {other!r} have one structure")
            with expect_error(MatnbError, f"a branch takes {one!r} or {other!r}"):
                cond(asarray(True), lambda: one, lambda: other)  # noqa: B023  called at once

    def test_it_goes_through_loops_and_branches(self) -> None:
        """A loop over it and a branch return one of the same structure, with its elements."""
        for value in self._values():
            leaves, structure = flatten(value)
            chosen = cond(asarray(False), lambda: value, lambda: value)  # noqa: B023  called at once
            looped, _ = iterate(lambda state: state, value, max_iterations=2)
            for found in (chosen, looped):
                same, other = flatten(found)
                expect(other == structure, f"{structure} came out as {other}")
                for leaf, one in zip(same, leaves, strict=True):
                    expect_same(_value(leaf), _value(one), 0.0, str(structure))

    def _values(self) -> list[Any]:
        values = list(self.values())
        expect(values, f"{type(self).__name__}.values() gives nothing: return a list of containers")
        for value in values:
            name = type(value).__name__
            expect(flatten(value)[1] != LEAF, f"{name} is no container: call register_container({name}, ...)")
        return values


def _is_one(one: object, other: object) -> bool:
    if isinstance(one, DistArray) and isinstance(other, DistArray):
        return one.expression is other.expression
    return one is other


def _value(leaf: object) -> Any:
    return interpret(expression_of(leaf if isinstance(leaf, DistArray) else asarray(leaf)))
