"""The contract of a reader: any pieces and cuts give the same array, and bad files say what is wrong."""

from __future__ import annotations

import os
import pickle
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

from matnb.blocks.grid import Grid
from matnb.errors import MatnbError
from matnb.io.source import Source, open_source
from matnb.ops.creation import read_blocks
from matnb.testing.expectations import array_of, expect, expect_same


@dataclass(frozen=True)
class ExampleFile:
    """A file, and the array in it.

    Attributes
    ----------
    name, content
        Its name, with the suffix of its kind, and its bytes.
    array
        What is in it: NumPy's array, or SciPy's sparse one.
    options
        Of the reader.
    """

    name: str
    content: bytes
    array: Any
    options: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))


class SourceTests:
    """Tests of a reader; a subclass gives the methods below. Files are written in a temporary folder."""

    kind: str

    def files(self) -> Iterable[ExampleFile]:
        """Return good files."""
        raise NotImplementedError(f"{type(self).__name__}: write files(self), a list of ExampleFile")

    def bad_files(self) -> Iterable[tuple[str, bytes, str]]:
        """Return files that cannot be read: name, content, and words that the error has to say."""
        return ()

    def test_its_suffix_tells_its_kind(self) -> None:
        """A file is opened by its suffix as it is by ``kind=``."""
        for example, path in self._files():
            one = open_source(path, **example.options)
            expect(
                one.identity() == open_source(path, kind=self.kind, **example.options).identity(),
                f"{path.name} is not opened as {self.kind!r}: give the suffix to @reader",
            )

    def test_any_pieces_and_cuts_give_the_array(self) -> None:
        """Read in one piece and in several, and cut in any way, it is the array in the file."""
        for example, path in self._files():
            source = open_source(path, **example.options)
            for count in (1, 2, 3, 7):
                for cuts in _cuts(example.array.shape):
                    where = f"{path.name} in {count} pieces, cuts {cuts}"
                    expect_same(_read(source, count, cuts, where), example.array, 0.0, where)

    def test_a_source_is_a_value(self) -> None:
        """Opened twice it is equal, and has one identity; it is hashed and pickled."""
        for example, path in self._files():
            one, other = (open_source(path, **example.options) for _ in range(2))
            expect(one == other and hash(one) == hash(other), f"{path.name}: opened twice, sources differ")
            expect(one.identity() == other.identity(), f"{path.name}: opened twice, identities differ")
            expect(pickle.loads(pickle.dumps(one)) == one, f"{path.name}: a pickled source is another one")
            expect(one.estimated_entries() >= 0, f"{path.name}: estimated_entries is below 0")

    def test_its_identity_changes_with_the_file(self) -> None:
        """A file that was written again has another identity, with the same content, too."""
        for example, path in self._files():
            before = open_source(path, **example.options).identity()
            path.write_bytes(example.content)
            os.utime(path, ns=(0, 10**9))
            after = open_source(path, **example.options).identity()
            expect(before != after, f"{path.name}: the identity leaves out the file: add *file.identity")

    def test_a_file_that_ends_early_is_read_or_refused(self) -> None:
        """Of the beginning of a file an array is made, or an error of matnb's is raised that names it."""
        for example, path in self._files():
            for size in sorted({*range(min(64, len(example.content))), len(example.content) - 1}):
                path.write_bytes(example.content[:size])
                _read_or_refuse(path, example.options, f"{path.name} cut to {size} bytes")

    def test_bad_files_say_what_is_wrong(self) -> None:
        """A bad file is refused with an error that names it, and says the words."""
        with _folder() as folder:
            for name, content, words in self.bad_files():
                path = folder / name
                path.write_bytes(content)
                text = _read_or_refuse(path, {}, name)
                expect(text, f"{name} is read, though it is bad: {content[:80]!r}")
                expect(words in text, f"{name}: the error does not say {words!r}: {text}")

    def _files(self) -> Iterator[tuple[ExampleFile, Path]]:
        examples = list(self.files())
        expect(examples, f"{type(self).__name__}.files() gives nothing: return a list of ExampleFile")
        with _folder() as folder:
            for example in examples:
                path = folder / example.name
                path.write_bytes(example.content)
                yield example, path


@contextmanager
def _folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="matnb-testing-") as folder:
        yield Path(folder)


def _cuts(shape: tuple[int, ...]) -> Iterator[tuple[tuple[int, ...], ...]]:
    for parts in (1, 2, 3):
        inner = ({length * one // parts for one in range(1, parts)} - {0, length} for length in shape)
        yield tuple((0, *sorted(cuts), length) for cuts, length in zip(inner, shape, strict=True))


def _read(source: Source, count: int, cuts: tuple[tuple[int, ...], ...], where: str) -> Any:
    grid = Grid(cuts)
    found, blocks = read_blocks(source.reading(), count, grid)
    return array_of(blocks, grid, found.dtype, found.sparse, where)


def _read_or_refuse(path: Path, options: Mapping[str, Any], where: str) -> str:
    # What the error says; empty where there is none.
    try:
        source = open_source(path, **options).reading()
        read_blocks(source, 2)
    except MatnbError as error:
        expect(path.name in str(error), f"{where}: the error does not name the file: {error}")
        return str(error)
    except Exception as error:  # whatever a reader raises is what is tested
        raise AssertionError(f"{where}: raises {error!r}: raise file.error(reason, line)") from error
    return ""
