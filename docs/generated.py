"""Lists in the reference that are written from the code: NumPy's names, options of magics and commands."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from references import page_of

if TYPE_CHECKING:
    from sphinx.application import Sphinx
    from sphinx.config import Config

FOLDER = Path(__file__).resolve().parent / "api" / "generated"  # which git ignores


def setup(app: Sphinx) -> dict[str, bool]:
    """Have the lists written before any page is read."""
    app.connect("config-inited", _write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _write(app: Sphinx, config: Config) -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, text in {
        "numpy_names.txt": numpy_names(),
        "magics.txt": magics(),
        "command_line.txt": command_line(),
    }.items():
        target = FOLDER / name
        if (
            not target.is_file() or target.read_text(encoding="utf-8") != text
        ):  # so that a page is not built again
            target.write_text(text, encoding="utf-8")


def numpy_names() -> str:
    """Return a list, by kind, of the functions that matnb has under NumPy's names, each with NumPy's page."""
    import matnb as mn
    from matnb.lazy import special
    from matnb.lazy.functions.namespace import recorded_in

    ufuncs = [name for name, one in vars(np).items() if isinstance(one, np.ufunc)]
    kinds: Mapping[str, list[str]] = {
        "Ufuncs": [f"numpy.{name}" for name in ufuncs if hasattr(mn, name)],
        "Functions": [f"numpy.{name}" for name in recorded_in(np)],
        "`mn.linalg`": [f"numpy.linalg.{name}" for name in recorded_in(np.linalg)],
        "`mn.special`": [f"scipy.special.{name}" for name in dir(special)],
    }
    return "\n".join(_listed(kind, names) for kind, names in kinds.items())


def _listed(kind: str, names: list[str]) -> str:
    shown = [
        f"[`{name.rpartition('.')[2]}`]({page})"
        if (page := page_of(name))
        else f"`{name.rpartition('.')[2]}`"
        for name in sorted(names)
    ]
    return f"## {kind}\n\n{' '.join(shown)}\n"


def magics() -> str:
    """Return the help of ``%%distmat`` and of each command of ``%distmat``."""
    from matnb.magics.options import CELL, COMMANDS

    return "\n".join(
        [
            _help("`%%distmat`", CELL.format_help()),
            *(_help(f"`%distmat {name}`", parser.format_help()) for name, parser in COMMANDS.items()),
        ]
    )


def command_line() -> str:
    """Return the help of each command of ``matnb``."""
    from matnb.cli import main

    return "\n".join(_help(f"`matnb {name}`", "".join(_said(main, name))) for name in ("report", "compile"))


def _said(main: object, command: str) -> Iterator[str]:
    heard = io.StringIO()
    with contextlib.redirect_stdout(heard), contextlib.suppress(SystemExit):
        main([command, "--help"])
    yield heard.getvalue()


def _help(title: str, text: str) -> str:
    return f"## {title}\n\n```text\n{text.strip()}\n```\n"
