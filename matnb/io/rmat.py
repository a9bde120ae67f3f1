"""R-MAT graphs (Chakrabarti, Zhan, Faloutsos, SDM 2004), the same whatever pieces they are drawn in."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from matnb.blocks.formats import Block
from matnb.blocks.grid import Region
from matnb.errors import OptionError
from matnb.io.entries import Entries, block_of, entries_in, joined
from matnb.io.source import ROW_ENTRIES, Piece, PlainContext, PlainSource, SourceFacts, split_range

_FLOAT = np.dtype(np.float64)
_BATCH = 1 << 16  # edges drawn at once; a multiple of 4, Philox's numbers a step
_PERMUTATION_ROUNDS = 4
_SMALLEST_PIECE = 1 << 10
LARGEST_SCALE = 31


@dataclass(frozen=True)
class Rmat(PlainSource):
    """A random graph of ``2**scale`` vertices with skewed degrees, as a pattern-only sparse matrix.

    Each of ``edge_factor * 2**scale`` edges falls ``scale`` times into a quarter of what is left of the
    matrix, with probabilities a (upper left), b (upper right), c (lower left) and 1 - a - b - c. Edge number
    e is a function of the parameters and e alone. Duplicates are merged, self-loops kept.

    Parameters
    ----------
    scale
        0 to 31.
    edge_factor
        Edges drawn for each vertex.
    a, b, c
        Probabilities, in all at most 1.
    seed
        Any whole number from 0 on.
    permute
        Give the vertices other numbers, so that large degrees are not at small numbers.

    Raises
    ------
    OptionError
        For a parameter out of its range.
    """

    scale: int
    edge_factor: int = 16
    a: float = 0.57
    b: float = 0.19
    c: float = 0.19
    seed: int = 0
    permute: bool = False

    def __post_init__(self) -> None:
        for name, largest in (("scale", LARGEST_SCALE), ("edge_factor", 2**31), ("seed", 2**64 - 1)):
            value = getattr(self, name)
            if (
                isinstance(value, bool)
                or not isinstance(value, int | np.integer)
                or not 0 <= value <= largest
            ):
                raise OptionError(f"rmat: {name}={value!r}: give an integer from 0 to {largest}")
            object.__setattr__(self, name, int(value))
        for name in ("a", "b", "c"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
                raise OptionError(f"rmat: {name}={value!r}: give a probability, from 0 to 1")
            object.__setattr__(self, name, float(value))
        if self.a + self.b + self.c > 1 + 1e-12:
            raise OptionError(f"rmat: a + b + c = {self.a + self.b + self.c}: give at most 1")
        if not isinstance(self.permute, bool | np.bool_):
            raise OptionError(f"rmat: permute={self.permute!r}: give True or False")
        object.__setattr__(self, "permute", bool(self.permute))

    def __repr__(self) -> str:
        return f"Rmat(scale={self.scale}, edge_factor={self.edge_factor}, seed={self.seed})"

    @property
    def num_drawn(self) -> int:
        """Edges drawn, duplicates too."""
        return self.edge_factor << self.scale

    def identity(self) -> tuple[str | int, ...]:
        """Return what tells the graph from any other."""
        probabilities = (value.hex() for value in (self.a, self.b, self.c))
        return ("rmat", self.scale, self.edge_factor, *probabilities, self.seed, int(self.permute))

    def estimated_entries(self) -> int:
        """Return how many entries there are at most."""
        return self.num_drawn

    def row_cuts(self, count: int, transposed: bool = False) -> tuple[int, ...] | None:
        """Return cuts of the rows, or of the columns, in parts of about equal work."""
        if self.permute:
            return None
        upper = self.a + (self.c if transposed else self.b)  # in this half an edge is with this probability
        rows = range(1 << self.scale)
        whole = self.num_drawn + ROW_ENTRIES * len(rows)

        def work_above(row: int) -> float:
            return self.num_drawn * self._share_above(row, upper) + ROW_ENTRIES * row

        inner = (bisect_left(rows, number * whole / count, key=work_above) for number in range(1, count))
        return (0, *inner, len(rows))

    def _share_above(self, row: int, upper: float) -> float:
        # Of the edges: those of each half that lies above the row as a whole.
        share, part = 0.0, 1.0
        for level in reversed(range(self.scale)):
            if row >> level & 1:
                share += part * upper
                part *= 1 - upper
            else:
                part *= upper
        return share

    def pieces(self, count: int) -> tuple[Piece, ...]:
        """Return ranges of edge numbers."""
        return split_range(0, self.num_drawn, count, _SMALLEST_PIECE)

    def parse(self, piece: Piece) -> Entries:
        """Draw the edges of a piece."""
        batches = []
        for start in range(piece.start - piece.start % 4, piece.stop, _BATCH):
            stop = min(start + _BATCH, piece.stop)
            rows, columns = self._draw(start, stop - start)
            skipped = max(0, piece.start - start)  # numbers come in fours
            batches.append(Entries(rows[skipped:], columns[skipped:], None))
        return joined(batches, None)

    def _draw(self, start: int, num_edges: int) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
        # Two levels share a 64-bit number, of which each takes 32 bits.
        below = [
            min(2**32, round(total * 2**32)) for total in (self.a, self.a + self.b, self.a + self.b + self.c)
        ]
        rows: npt.NDArray[np.uint32] = np.zeros(num_edges, np.uint32)
        columns: npt.NDArray[np.uint32] = np.zeros(num_edges, np.uint32)
        for level in range(self.scale):
            if level % 2 == 0:
                generator = np.random.Philox(key=np.array([self.seed, level // 2], np.uint64))
                numbers = generator.advance(start // 4).random_raw(num_edges)
                draw = numbers & np.uint64(0xFFFFFFFF)
            else:
                draw = numbers >> np.uint64(32)
            lower = draw >= below[1]
            right = (draw >= below[0]) ^ lower | (draw >= below[2])
            for bits, bit in ((rows, lower), (columns, right)):
                bits <<= np.uint32(1)
                bits |= bit
        if self.permute:
            rows, columns = self._renumbered(rows), self._renumbered(columns)
        return rows.view(np.int32), columns.view(np.int32)

    def _renumbered(self, vertices: npt.NDArray[np.uint32]) -> npt.NDArray[np.uint32]:
        # Rounds of steps that are each a bijection of `scale` bits: multiply by an odd number, add, shift and
        # xor. So no worker has to hold the permutation.
        if self.scale < 2:
            return vertices
        constants = np.random.Philox(key=np.array([self.seed, 2**63], np.uint64)).random_raw(
            2 * _PERMUTATION_ROUNDS
        )
        mask, numbers = np.uint64(2**self.scale - 1), vertices.astype(np.uint64)
        for factor, shift in constants.reshape(-1, 2):
            numbers = (numbers * (factor | np.uint64(1)) + shift) & mask
            numbers ^= numbers >> np.uint64((self.scale + 1) // 2)
        return numbers.astype(np.uint32)

    def summary(self, parsed: Entries) -> int:
        """Return the number of edges drawn."""
        return parsed.rows.size

    def merge(self, summaries: Sequence[int]) -> PlainContext:
        """Return what is known of the graph."""
        length = 2**self.scale
        return PlainContext(
            SourceFacts((length, length), _FLOAT, sparse=True, pattern=True, nnz=sum(summaries))
        )

    def part(self, parsed: Entries, context: PlainContext, region: Region) -> Entries:
        """Return the edges that lie in a region, with local positions."""
        return entries_in(parsed, region)

    def assemble(self, parts: Sequence[Entries], context: PlainContext, region: Region) -> Block:
        """Return the block of a region."""
        return block_of(parts, region, _FLOAT, "merge")
