"""Dense arrays of files that one worker reads in one go, by a function: the simplest source."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
import numpy.typing as npt

from matnb.blocks.formats import Block, Dense
from matnb.blocks.grid import Region
from matnb.errors import MatnbError
from matnb.io.files import File
from matnb.io.source import Piece, PlainContext, PlainSource, SourceFacts
from matnb.registration import name_and_place


@dataclass(frozen=True)
class WholeFile(PlainSource):
    """The array of a file that is read in one go.

    Attributes
    ----------
    kind
        Of the file, as its reader is registered.
    file
        Where it is.
    shape, dtype
        Of the array, as the header tells.
    read
        A function of a module, since it travels by its name: returns the array, given the open file and
        ``options``.
    options
        What changes the result.
    """

    kind: str
    file: File
    shape: tuple[int, ...]
    dtype: np.dtype
    read: Callable[..., npt.NDArray[np.generic]]
    options: tuple[str | int, ...] = ()

    def identity(self) -> tuple[str | int, ...]:
        """Return what tells the result from any other."""
        return (self.kind, *self.file.identity, *self.options)

    def estimated_entries(self) -> int:
        """Return how many elements there are."""
        return prod(self.shape)

    def pieces(self, count: int) -> tuple[Piece, ...]:
        """Return one piece, the file."""
        return (Piece(0, 0, 1),)

    def parsing_bytes(self, piece: Piece, num_pieces: int) -> tuple[int, int]:
        """Return what the array takes, and as much while it is read."""
        size = prod(self.shape) * self.dtype.itemsize
        return size, size

    def parse(self, piece: Piece) -> npt.NDArray[np.generic]:
        """Return the array."""
        with self.file.open() as stream:
            try:
                found = np.asarray(self.read(stream, *self.options), self.dtype)
            except (MatnbError, MemoryError):
                raise
            except ValueError as error:
                raise self.file.error(str(error)) from error
            except Exception as error:  # whatever another package raises
                which = f"what reads files of kind {self.kind!r}, {name_and_place(self.read)},"
                raise self.file.error(f"{which} raised {type(error).__name__}: {error}") from error
        if found.shape != self.shape:
            raise self.file.error(f"holds an array of shape {found.shape}; its header says {self.shape}")
        return found

    def summary(self, parsed: npt.NDArray[np.generic]) -> None:
        """Return nothing: the header says all."""

    def merge(self, summaries: Sequence[None]) -> PlainContext:
        """Return what is known of the array."""
        return PlainContext(SourceFacts(self.shape, self.dtype, sparse=False, nnz=prod(self.shape)))

    def part(
        self, parsed: npt.NDArray[np.generic], context: PlainContext, region: Region
    ) -> npt.NDArray[np.generic]:
        """Return the elements of a region."""
        return parsed[tuple(slice(*span) for span in region)]

    def assemble(
        self, parts: Sequence[npt.NDArray[np.generic]], context: PlainContext, region: Region
    ) -> Block:
        """Return the block of a region."""
        return Dense(np.array(parts[0], order="C"))
