"""What pictures are drawn from: numbers and words only, never an array or an expression."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Look = Literal["given", "work", "known", "control"]
Change = Literal["", "new", "gone"]


@dataclass(frozen=True)
class ArrayFacts:
    """Facts of one array.

    Parameters
    ----------
    shape, dtype, sparse
        As of the array; ``dtype`` by its NumPy name.
    pattern
        True when only the pattern is stored and every entry is 1.
    stored
        True when its blocks are on the workers; then the fields below are known.
    nnz, num_bytes
        Stored entries and bytes over all blocks, or None.
    cuts
        For each axis the increasing positions (0, ..., length), or None while the array is lazy.
    owners, block_nnz
        Of every block, last axis fastest.
    expression
        One line that says how the array is made.
    value
        The elements as text, or those at the corners, or the first entries, where they are there.
    why_not
        Why no values are shown that are there.
    error
        What was raised where it was computed to be shown.
    is_given
        Whether a user gave the array, so that this process has it.
    is_open
        Whether it depends on the variables of a loop or branch, so that it has no value of its own.
    expected_bytes
        Of what is not computed, or None.
    statistics
        Of the elements, such as ("min", "0.5"), as far as they are remembered.
    in_cell
        Whether it is looked at by a ``%%distmat`` cell that still runs.
    """

    shape: tuple[int, ...]
    dtype: str
    sparse: bool
    pattern: bool = False
    stored: bool = False
    nnz: int | None = None
    num_bytes: int | None = None
    cuts: tuple[tuple[int, ...], ...] | None = None
    owners: tuple[int, ...] = ()
    block_nnz: tuple[int, ...] = ()
    expression: str = ""
    value: str = ""
    why_not: str = ""
    error: str = ""
    is_given: bool = False
    is_open: bool = False
    expected_bytes: int | None = None
    statistics: tuple[tuple[str, str], ...] = ()
    in_cell: bool = False


@dataclass(frozen=True)
class StripFacts:
    """How rows, or another axis, are cut, and what the parts take.

    Parameters
    ----------
    cuts, owners
        Where the blocks begin and end, and which worker owns each.
    block_loads
        Of each block; empty where only those of the workers are known.
    loads
        Of each worker, by number.
    axis
        The axis that is cut.
    """

    cuts: tuple[int, ...]
    owners: tuple[int, ...]
    block_loads: tuple[float, ...]
    loads: tuple[tuple[int, float], ...]
    axis: int = 0


@dataclass(frozen=True)
class GainFacts:
    """What repartitioning gained.

    Parameters
    ----------
    loads
        Of each worker afterwards, by number; empty where no iteration followed.
    saving_seconds
        What an iteration took less; NaN where that is not known.
    cost_seconds, moved_bytes
        What it took.
    """

    loads: tuple[tuple[int, float], ...]
    saving_seconds: float
    cost_seconds: float
    moved_bytes: int


@dataclass(frozen=True)
class DecisionFacts:
    """Facts of a decision to repartition arrays, or to keep them as they are.

    Parameters
    ----------
    name, policy, acts, reason, iteration, strategy
        As of the decision.
    num_repeats
        How often it was taken in a row.
    before, after
        The cuts; loads measured before, and predicted. Of a decision to keep, both are alike.
    by_entries
        Whether loads are entries; else they are seconds of an iteration.
    saving_seconds, num_remaining, cost_seconds, moved_bytes
        As predicted.
    gained
        What was measured afterwards, or None.
    """

    name: str
    policy: str
    acts: bool
    reason: str
    iteration: int
    strategy: str
    before: StripFacts
    after: StripFacts
    by_entries: bool = False
    num_repeats: int = 1
    saving_seconds: float = 0.0
    num_remaining: float = 0.0
    cost_seconds: float = 0.0
    moved_bytes: int = 0
    gained: GainFacts | None = None


@dataclass(frozen=True)
class HistorySection:
    """A part of the history that is not of repartitions, such as how nested arrays were cut.

    Parameters
    ----------
    title
        Of its table.
    what
        What there is one of, in a word or two.
    legend
        What the columns of the table are.
    head, rows
        Of the table, the oldest first.
    sentences
        The same as the rows, each in a sentence.
    """

    title: str
    what: str
    legend: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    sentences: tuple[str, ...]


@dataclass(frozen=True)
class NestedFacts:
    """Facts of a nested array.

    Parameters
    ----------
    values
        Of its flat values.
    segments, places
        Some segments by number, and the places among the values where they begin; both ascend, from 0 to how
        many there are.
    longest, histogram
        The length of the longest segment; how many have no value, 1, 2 to 3, 4 to 7, and so on.
    strategy, reason
        How the values are cut, and why.
    cuts
        Where.
    is_sparse
        Whether values have positions with gaps between them.
    """

    values: ArrayFacts
    segments: tuple[int, ...]
    places: tuple[int, ...]
    longest: int
    histogram: tuple[int, ...]
    strategy: str
    reason: str = ""
    cuts: tuple[int, ...] = ()
    is_sparse: bool = False


@dataclass(frozen=True)
class HistoryFacts:
    """Facts of balancing.

    Parameters
    ----------
    decisions
        The oldest first.
    setting
        What a user chose, such as "auto".
    num_dropped
        Older ones that were not kept.
    measured
        Whether measured seconds, and what was decided by them, may be told.
    sections
        Of families.
    """

    decisions: tuple[DecisionFacts, ...]
    setting: str = "auto"
    num_dropped: int = 0
    measured: bool = True
    sections: tuple[HistorySection, ...] = ()


@dataclass(frozen=True)
class NodeFacts:
    """One box.

    Parameters
    ----------
    name
        What it is called elsewhere in the picture, such as "e3".
    what
        What it computes, in a few words.
    details
        More lines: shape and dtype, bytes, where.
    operands
        Places in the panel of what it is made from, all before its own.
    look
        "given" for what comes from outside, "known" for values that are there, "control" for loops and
        branches, else "work".
    is_shared, is_result
        Whether several read it, and whether it was asked for.
    function
        Its name, where it may be told together with its neighbors of a chain.
    weight
        What it takes, in the picture's unit, for the path that takes longest; 0 is nothing.
    moved
        Those of its operands of which something goes from one worker to another.
    change
        Of expressions, whether the passes made it, "new", or put others in its place, "gone".
    is_slowest
        Whether it is on the path that takes longest.
    """

    name: str
    what: str
    details: tuple[str, ...] = ()
    operands: tuple[int, ...] = ()
    look: Look = "work"
    is_shared: bool = False
    is_result: bool = False
    function: str = ""
    weight: float = 0.0
    moved: tuple[int, ...] = ()
    change: Change = ""
    is_slowest: bool = False


@dataclass(frozen=True)
class PanelFacts:
    """A graph of its own, as what one iteration computes; one with a title is framed.

    Parameters
    ----------
    title, nodes
        What it is, and its boxes.
    notes
        Remarks on the whole graph, a line each.
    """

    title: str
    nodes: tuple[NodeFacts, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class GraphFacts:
    """What a picture shows.

    Parameters
    ----------
    title, panels
        What it is, and its graphs.
    unit
        Of the weights: "measured seconds" or "estimated bytes"; empty where no path is marked.
    """

    title: str
    panels: tuple[PanelFacts, ...]
    unit: str = ""
