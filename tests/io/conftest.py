"""Small pieces and chunks, so that small files are cut as large ones are; and files written on the spot."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from matnb.io import delimited, lines, npy

WriteFile = Callable[[str, bytes | str], Path]


@pytest.fixture
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a piece be a byte long."""
    monkeypatch.setattr(lines, "SMALLEST_PIECE", 1)
    monkeypatch.setattr(npy, "SMALLEST_PIECE_BYTES", 1)


@pytest.fixture
def small_chunks(small_pieces: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Read 16 bytes at a time too."""
    monkeypatch.setattr(lines, "CHUNK_BYTES", 16)
    monkeypatch.setattr(delimited, "CHUNK_BYTES", 16)


@pytest.fixture
def write_file(tmp_path: Path) -> WriteFile:
    """Return a function that writes a file of a name and returns its path."""

    def written(name: str, content: bytes | str) -> Path:
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return written
