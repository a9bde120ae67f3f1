"""An array as a user sees it: its few values, a line of text, a block map; nothing is computed for it."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from math import prod

from matnb.pictures.blockmap import block_map, density_legend, owner_legend
from matnb.pictures.escaping import escaped
from matnb.pictures.facts import ArrayFacts
from matnb.pictures.quantities import bytes_text, count_text, plural_text, shape_text, share_text

TIMES = "\N{MULTIPLICATION SIGN}"
_LONGEST_EXPRESSION = 200  # characters
_MOST_COLUMNS = 100  # of a table, that are named
_CELL = "text-align:left;padding:1px 12px 1px 0;border:none;background:transparent;vertical-align:top"
_VALUE = "margin:0 0 8px;padding:0;border:none;background:transparent;overflow-x:auto;font-family:monospace"
_NAME = f"{_CELL};opacity:.7;font-weight:normal;white-space:nowrap"


def array_text(facts: ArrayFacts) -> str:
    """Return values that are known, then a line: shape, dtype, kind, and where it is or how it is made."""
    if facts.value and not facts.shape:
        return f"{facts.value}  (DistArray scalar {facts.dtype})"
    line = _facts_line(facts)
    return f"{facts.value}\n{line}" if facts.value else line


def _facts_line(facts: ArrayFacts) -> str:
    words = [f"DistArray {shape_text(facts.shape)} {facts.dtype}, {_kind(facts)}"]
    if facts.stored:
        if facts.nnz is not None and facts.sparse:
            words.append(f"{plural_text(facts.nnz, 'entry')} ({share_text(_density(facts))})")
        if facts.num_bytes is not None:
            words.append(bytes_text(facts.num_bytes))
        words.append(_blocks(facts))
    elif facts.value:
        words.append("its value remembered")
    else:
        words.append(f"not computed: {_shortened(facts.expression)}" if facts.expression else "not computed")
    return ", ".join(words)


def columns_text(facts: ArrayFacts, dtypes: Mapping[str, str]) -> str:
    """Return the names of columns and what they hold, then the line of the array that they are of."""
    return f"columns {', '.join(_columns(dtypes))} of\n{array_text(facts)}"


def array_html(facts: ArrayFacts, dtypes: Mapping[str, str] | None = None) -> str:
    """Return what is known as HTML of at most 20 kB: few values above, a block map beside a table.

    ``dtypes`` has those of named columns, where the array has such.
    """
    named = [("columns", escaped(", ".join(_columns(dtypes))))] if dtypes else []
    rows = "".join(
        f'<tr style="background:transparent"><th style="{_NAME}">{name}</th>'
        f'<td style="{_CELL}">{value}</td></tr>'
        for name, value in [*named, *_table(facts)]
    )
    # The width keeps a table with a long line beside the map, instead of below it.
    table = (
        '<div style="flex:1 1 260px;min-width:0">'
        f'<table style="border-collapse:collapse;border:none;margin:0;font-size:13px">{rows}</table></div>'
    )
    value = ""
    if facts.value:
        size = "15px" if facts.shape else "22px"  # a scalar's value is all there is to see
        value = f'<pre style="{_VALUE};font-size:{size}">{escaped(facts.value)}</pre>'
    return (
        f"<div>{value}"
        '<div style="display:flex;flex-wrap:wrap;gap:12px 24px;align-items:center;margin:6px 0">'
        f"{block_map(facts)}{table}</div></div>"
    )


def _columns(dtypes: Mapping[str, str]) -> list[str]:
    first = itertools.islice(dtypes.items(), _MOST_COLUMNS)
    told = [f"{_shortened(name)} ({dtype})" for name, dtype in first]
    return [*told, f"{len(dtypes) - _MOST_COLUMNS:,} more"] if len(dtypes) > _MOST_COLUMNS else told


def _table(facts: ArrayFacts) -> list[tuple[str, str]]:
    rows = [
        ("shape", shape_text(facts.shape, TIMES)),
        ("dtype", f"{escaped(facts.dtype)}, {_kind(facts)}"),
    ]
    if facts.nnz is not None and facts.sparse:
        rows.append(("nnz", count_text(facts.nnz)))
        rows.append(("density", density_legend(facts) or share_text(_density(facts))))
    if facts.num_bytes is not None:
        rows.append(("bytes", bytes_text(facts.num_bytes)))
    if facts.cuts is not None:
        rows.append(("blocks", _grid(facts.cuts)))
        rows.append(("layout", owner_legend(facts) or "no owner"))
    if not facts.stored:
        rows.append(("state", "its value remembered" if facts.value else "not computed"))
        if facts.expression:
            rows.append(("made by", f"<code>{escaped(_shortened(facts.expression))}</code>"))
    return rows


def _kind(facts: ArrayFacts) -> str:
    if not facts.sparse:
        return "dense"
    return "sparse, pattern only" if facts.pattern else "sparse"


def _density(facts: ArrayFacts) -> float:
    return (facts.nnz or 0) / max(1, prod(facts.shape))


def _blocks(facts: ArrayFacts) -> str:
    count = prod(len(cuts) - 1 for cuts in facts.cuts or ())
    return f"{plural_text(count, 'block')} on {plural_text(max(1, len(set(facts.owners))), 'owner')}"


def _grid(cuts: tuple[tuple[int, ...], ...]) -> str:
    counts = [len(axis) - 1 for axis in cuts]
    words = count_text(prod(counts))
    if len(counts) > 1:
        words += f" ({shape_text(counts, TIMES)})"
    lengths = {b - a for axis in cuts if len(axis) > 2 for a, b in itertools.pairwise(axis)}
    if lengths and max(lengths) - min(lengths) > 1:
        words += f", {min(lengths)} to {max(lengths)} long"
    return words


def _shortened(expression: str) -> str:
    line = " ".join(expression.split())
    return line if len(line) <= _LONGEST_EXPRESSION else line[: _LONGEST_EXPRESSION - 3] + "..."
