"""Kinds of tasks and stages, which lowerings give them: what they do, and how they are shown."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from enum import Enum

from matnb.errors import OptionError


class Role(Enum):
    """What a task of a kind is to the block of an array that it makes, or leads to."""

    COMPUTES = "computes elements, or something on the way to them"
    MULTIPLIES = "computes a product, by BLAS where it is dense, or a part of one that is as large"
    REDUCES = "computes a reduction, or a share of one"
    CALLS = "calls a user's function"
    SPLITS = "makes one of several parts that are as large as the block"
    JOINS = "puts such parts together"
    LAYS_OUT = "moves elements, and computes none"
    REPARTITIONS = "lays out an array as a user asked for it"
    MOVES = "brings a value to another worker as it is"
    LOADS = "reads a file"
    SENDS = "is given elements that are in this process"


# What a user calls the work of tasks: a few words for many kinds.
PRODUCTS, ELEMENTWISE, REDUCTIONS, EXCHANGE, READING = "product", "elementwise", "reduce", "exchange", "read"
SORTING, PICKING, JOINING, FUNCTIONS, OTHER = "sort", "pick and put", "cut and join", "your function", "other"

_SHOWN = {
    Role.MULTIPLIES: PRODUCTS,
    Role.REDUCES: REDUCTIONS,
    Role.CALLS: FUNCTIONS,
    Role.SPLITS: PICKING,
    Role.LAYS_OUT: EXCHANGE,
    Role.REPARTITIONS: EXCHANGE,
    Role.MOVES: EXCHANGE,
    Role.LOADS: READING,
    Role.SENDS: READING,
}
_shown_by_name: dict[str, tuple[str, str]] = {}  # and the module of the first such kind


@dataclass(frozen=True)
class Kind:
    """A kind of tasks and stages.

    Attributes
    ----------
    name
        By which seconds are measured.
    role
        What such a task is to its block.
    follows_cuts
        Whether the last bits of floats follow where arrays are cut: where a task goes on from block to block,
        or leaves blocks to a user's function. What operators and nodes do is not repeated here.
    shown
        What a user calls such work; where it is not given, it follows from the role, or is the name.
    """

    name: str
    role: Role = Role.COMPUTES
    follows_cuts: bool = False
    shown: str = ""

    def __post_init__(self) -> None:
        shown = self.shown or _SHOWN.get(self.role, self.name)
        module = str(sys._getframe(2).f_globals.get("__name__"))  # that calls what calls this
        known, where = _shown_by_name.setdefault(self.name, (shown, module))
        if known != shown and where != module:
            raise OptionError(
                f"Kind({self.name!r}, shown={shown!r}): {where} shows tasks of this name as {known!r}; "
                "give a kind of your own another name"
            )
        _shown_by_name[self.name] = shown, where

    def __str__(self) -> str:
        return self.name

    @property
    def lays_out(self) -> bool:
        """Whether it moves elements, and computes none."""
        return self.role in (Role.LAYS_OUT, Role.REPARTITIONS, Role.MOVES)


def shown_kind(name: str) -> str:
    """Return what a user calls the work of a kind of this name."""
    return _shown_by_name.get(name, (name, ""))[0]


# Those of several lowerings.
ACCUMULATE = Kind("accumulate", Role.JOINS, shown=PRODUCTS)
CALL = Kind("call", Role.CALLS, follows_cuts=True)
COMBINE = Kind("combine", Role.JOINS, shown=REDUCTIONS)
COUNT = Kind("count", shown=REDUCTIONS)
CUT = Kind("cut", Role.LAYS_OUT)
GATHER = Kind("gather", Role.LAYS_OUT)
JOIN = Kind("join", shown=JOINING)
MAP = Kind("map", shown=ELEMENTWISE)
MERGE = Kind("merge", shown=SORTING)
MOVE = Kind("move", Role.MOVES)
PART = Kind("part", Role.SPLITS)
PICK = Kind("pick", shown=PICKING)
PRODUCT = Kind("product", Role.MULTIPLIES)
PRODUCT_AT_ENTRIES = Kind("product", Role.MULTIPLIES, follows_cuts=True)
PUT = Kind("put", shown=PICKING)
READ = Kind("read", shown=PICKING)
REDUCE = Kind("reduce", Role.REDUCES)
SCAN = Kind("scan", follows_cuts=True, shown=REDUCTIONS)
SCATTER = Kind("scatter", shown=EXCHANGE)
SEARCH = Kind("search", shown=SORTING)
SEND = Kind("send", shown=EXCHANGE)
SOLVE = Kind("solve", shown=PRODUCTS)
SORT = Kind("sort", shown=SORTING)
TRANSPOSE = Kind("transpose", Role.LAYS_OUT)
