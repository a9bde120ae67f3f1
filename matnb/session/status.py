"""What a session is now, in a few numbers."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Status:
    """What a session is now.

    Attributes
    ----------
    stored_bytes, num_arrays
        Of the arrays on the workers; ``memo_bytes`` is their limit.
    num_values
        Small values remembered in this process.
    num_remembered, remembered_bytes
        Of the arrays, those without a handle.
    remembers
        Whether anything is, without a handle.
    memo_dir, file_bytes
        The folder with files of results, if there is one, and what they take.
    """

    description: str
    num_workers: int
    num_threads: int
    stored_bytes: int
    memo_bytes: int
    num_arrays: int
    engine: str
    num_values: int = 0
    num_remembered: int = 0
    remembered_bytes: int = 0
    remembers: bool = True
    memo_dir: str = ""
    file_bytes: int = 0
