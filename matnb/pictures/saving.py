"""What is shown, written to a file in the form that its ending names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from os import PathLike, fspath
from pathlib import Path

from matnb.errors import OptionError, WriteError


def save_as(path: str | PathLike[str], kinds: Mapping[str, Callable[[], str]], what: str) -> None:
    """Write a file, which ends with a line's end.

    Parameters
    ----------
    path
        Where to.
    kinds
        What gives the content, by the endings there are.
    what
        Is written, in a word.

    Raises
    ------
    OptionError
        For an unknown file suffix.
    WriteError
        Where the system does not let it be written.
    """
    ending = Path(path).suffix.lower()
    if ending not in kinds:
        *others, last = kinds
        raise OptionError(f"a {what} is saved as {', '.join(others)} or {last}, not as {fspath(path)!r}")
    content = kinds[ending]().removesuffix("\n")
    try:
        Path(path).write_text(f"{content}\n", encoding="utf-8")
    except OSError as error:
        found = WriteError(f"{fspath(path)}: the {what} was not written: {error.strerror or error}")
        found.errno = error.errno
        raise found from error
