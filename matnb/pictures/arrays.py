"""An array as a user sees it: its few values, a line of text, a block map; nothing is computed for it."""

from __future__ import annotations

import builtins
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
import numpy.typing as npt

from matnb.pictures.escaping import escaped
from matnb.pictures.facts import ArrayFacts
from matnb.pictures.quantities import bytes_text, count_text, plural_text, shape_text, share_text
from matnb.pictures.svg_style import color_of

TIMES = "\N{MULTIPLICATION SIGN}"
_LONGEST_EXPRESSION = 200  # characters
_CELL_STYLE = "text-align:left;padding:1px 12px 1px 0;border:none;background:transparent;vertical-align:top"
_VALUE_STYLE = (
    "margin:0 0 8px;padding:0;border:none;background:transparent;overflow-x:auto;font-family:monospace;"
    "line-height:1.35"
)
_NAME_STYLE = f"{_CELL_STYLE};opacity:.7;font-weight:normal;white-space:nowrap"


def array_text(facts: ArrayFacts) -> str:
    """Return values that are known, then a line: shape, dtype, kind, and where it is or how it is made."""
    if facts.value and not facts.shape:
        return f"{facts.value}  (DistArray scalar {facts.dtype})"
    line = _facts_line(facts)
    return f"{facts.value}\n{line}" if facts.value else line


def _facts_line(facts: ArrayFacts) -> str:
    words = [f"DistArray {shape_text(facts.shape)} {facts.dtype}, {_kind(facts)}"]
    if facts.nnz is not None and facts.sparse:
        words.append(f"{plural_text(facts.nnz, 'entry')} ({share_text(_density(facts))})")
    words += [f"{value} NaN" if name == "NaN" else f"{name} {value}" for name, value in facts.statistics]
    if facts.num_bytes is not None:
        words.append(bytes_text(facts.num_bytes))
    elif facts.expected_bytes is not None and not facts.value:
        words.append(f"about {bytes_text(facts.expected_bytes)}")
    words.append(_blocks(facts) if facts.stored else _state(facts))
    if facts.why_not:
        words.append(facts.why_not)
    is_told = facts.expression and not (
        facts.is_given or facts.error or facts.in_cell
    )  # who runs a line knows it
    if not facts.stored and not facts.value and is_told:
        words[-1] += f": {_shortened(facts.expression)}"
    return f"{', '.join(words)}{_way(facts)}"


def _state(facts: ArrayFacts) -> str:
    if facts.is_given:
        return "given"
    if facts.value:
        return "its value remembered"
    return (
        "of the body of a loop or branch"
        if facts.is_open
        else f"not computed{': ' * bool(facts.error)}{facts.error}"
    )


def _way(facts: ArrayFacts) -> str:
    # How to get the values.
    if facts.stored or facts.value or facts.is_given or facts.is_open or facts.error:
        return ""
    return f"; {way_text(facts.in_cell)}"


def way_text(in_cell: bool) -> str:
    """Return how the values of an array are seen that are not cheap, in a ``%%distmat`` cell or elsewhere."""
    if in_cell:
        return "print(x.compute()) shows it"
    # IPython has this while it runs something: elsewhere there are no cells.
    return f"{'run it in a %%distmat cell or ' * hasattr(builtins, 'get_ipython')}call .compute()"


def array_html(facts: ArrayFacts) -> str:
    """Return what is known as HTML of at most 20 kB: few values above, a block map beside a table."""
    size = "13px" if facts.shape else "22px"  # a scalar's value is all there is to see
    return shown_html(facts.value, size, block_map(facts), _table(facts))


def shown_html(value: str, size: str, drawing: str, table: Sequence[tuple[str, str]]) -> str:
    """Return what is known of an array as HTML: its values above, if any, and a drawing beside a table.

    Parameters
    ----------
    value, size
        Text, which is escaped here, and the size of its letters.
    drawing, table
        HTML, and rows of names and HTML.
    """
    rows = "".join(
        f'<tr style="background:transparent"><th style="{_NAME_STYLE}">{name}</th>'
        f'<td style="{_CELL_STYLE}">{shown}</td></tr>'
        for name, shown in table
    )
    above = f'<pre style="{_VALUE_STYLE};font-size:{size}">{escaped(value)}</pre>' if value else ""
    # The width keeps a table with a long line beside the drawing, instead of below it.
    return (
        f"<div>{above}"
        '<div style="display:flex;flex-wrap:wrap;gap:12px 24px;align-items:center;margin:6px 0">'
        f'{drawing}<div style="flex:1 1 260px;min-width:0">'
        f'<table style="border-collapse:collapse;border:none;margin:0;font-size:13px">{rows}</table></div>'
        "</div></div>"
    )


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
        rows.append(("layout", owner_legend(facts) or "no worker"))
    if facts.expected_bytes is not None and not facts.value:
        rows.append(("bytes", f"about {bytes_text(facts.expected_bytes)}"))
    rows += [(name, escaped(value)) for name, value in facts.statistics]
    if facts.why_not:
        rows.append(("values", escaped(facts.why_not)))
    if not facts.stored:
        rows.append(("state", escaped(f"{_state(facts)}{_way(facts)}")))
        if facts.expression and not facts.is_given:
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
    owners = sorted(set(facts.owners))
    where = f"worker {owners[0]}" if len(owners) == 1 else plural_text(max(1, len(owners)), "worker")
    return f"{plural_text(count, 'block')} on {where}"


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


# The block map: an array's blocks as SVG, density by shade, owner by color, cuts to scale.

MAX_CELLS = 64  # along each axis
MAX_BYTES = 16_000  # leaves room for the table in the 20 kB a picture may take
_SHADES = tuple(round(0.22 + 0.78 * step / 6, 2) for step in range(7))
_DETAILS = (64, 48, 32, 24, 16)  # cells along an axis, tried in turn until the picture is small enough
_LONG_SIDE, _SHORT_SIDE, _STRIP = 440, 72, 56  # of the drawing, in units of half a pixel
_ELEMENT = 16  # of an element at most
_MOST_TITLED, _HOVER_CELLS, _MOST_LINES = 80, 7, 33


def shade_levels(cells: Cells) -> Counts:
    """Return each cell's shade: 0 for no entry, else 1 to 7 by the logarithm of its density.

    The scale spans at least a factor of ten, so that nearly equal blocks look nearly equal.
    """
    density = cells.density
    stored = density > 0
    levels = np.zeros(density.shape, dtype=np.int64)
    if stored.any():
        most = density.max()
        least = min(density[stored].min(), most / 10)
        place = np.log(density[stored] / least) / np.log(most / least)
        levels[stored] = 1 + np.rint(place * (len(_SHADES) - 1)).astype(np.int64)
    return levels


def block_map(facts: ArrayFacts) -> str:
    """Return the map as one ``<svg>`` of at most 16 kB, or an empty text for an array that has none."""
    for limit in _DETAILS:
        cells = gather(facts, min(limit, MAX_CELLS))
        if cells is None:
            return ""
        drawing = _draw(facts, cells)
        if len(drawing.encode()) <= MAX_BYTES:
            break
    return drawing


def _draw(facts: ArrayFacts, cells: Cells) -> str:
    width, height = _size(facts)
    x, y = _places(cells, width, height)
    label = f"Block map of {shape_text(facts.shape)}: {plural_text(int(cells.blocks.sum()), 'block')}"
    parts = [
        f'<svg role="img" aria-label="{escaped(label)}" '
        f'width="{width // 2 + 2}" height="{height // 2 + 2}" viewBox="-2 -2 {width + 4} {height + 4}" '
        'style="flex:none;max-width:100%" shape-rendering="crispEdges">',
        *_fills(cells, x, y),
        *_lines(x, y, width, height),
    ]
    if cells.entries.size <= _MOST_TITLED:
        parts += _titles(facts, cells, x, y)
    else:  # too many to say something of each, so hovering tells of larger parts
        parts += _titles(facts, *_larger_parts(facts, width, height))
    return "".join([*parts, "</svg>"])


def _size(facts: ArrayFacts) -> tuple[int, int]:
    longest = min(_LONG_SIDE, max(_SHORT_SIDE, _ELEMENT * max(facts.shape)))  # few elements are a small map
    if len(facts.shape) == 1:
        return longest, min(_STRIP, longest // 2)
    rows, columns = facts.shape
    scale = longest / max(rows, columns)
    return max(_SHORT_SIDE, round(columns * scale)), max(_SHORT_SIDE, round(rows * scale))


def _fills(cells: Cells, x: list[int], y: list[int]) -> Iterator[str]:
    # Neighbors in a row that look the same are one rectangle, and all rectangles that look the same one path.
    levels, owners = shade_levels(cells).tolist(), cells.owners.tolist()
    paths: dict[tuple[str, int], list[str]] = {}
    for row, (row_levels, row_owners) in enumerate(zip(levels, owners, strict=True)):
        top, tall = y[row], max(1, y[row + 1] - y[row])
        start = 0
        for column in range(1, len(row_levels) + 1):
            look = (row_levels[start], row_owners[start])
            if column < len(row_levels) and (row_levels[column], row_owners[column]) == look:
                continue
            if look[0]:
                wide = max(1, x[column] - x[start])
                path = paths.setdefault((color_of(look[1]), look[0]), [])
                path.append(f"M{x[start]} {top}h{wide}v{tall}h-{wide}z")
            start = column
    for (color, level), path in sorted(paths.items()):
        yield f'<path fill="{color}" fill-opacity="{_SHADES[level - 1]}" d="{"".join(path)}"/>'


def _lines(x: list[int], y: list[int], width: int, height: int) -> Iterator[str]:
    frame = f'<rect width="{width}" height="{height}" fill="none" stroke="currentColor" stroke-width="2"/>'
    lines = [f"M{at} 0v{height}" for at in x[1:-1]] if len(x) <= _MOST_LINES else []
    lines += [f"M0 {at}h{width}" for at in y[1:-1]] if len(y) <= _MOST_LINES else []
    if lines:
        yield f'<path stroke="currentColor" stroke-opacity=".45" d="{"".join(lines)}"/>'
    yield frame


def _larger_parts(facts: ArrayFacts, width: int, height: int) -> tuple[Cells, list[int], list[int]]:
    parts = gather(facts, _HOVER_CELLS)
    assert parts is not None  # the finer map exists
    return parts, *_places(parts, width, height)


def _places(cells: Cells, width: int, height: int) -> tuple[list[int], list[int]]:
    # Where cells begin and end, across and down.
    x = np.rint(cells.column_cuts * (width / cells.column_cuts[-1])).astype(int).tolist()
    y = np.rint(cells.row_cuts * (height / cells.row_cuts[-1])).astype(int).tolist()
    return x, y


def _titles(facts: ArrayFacts, cells: Cells, x: list[int], y: list[int]) -> Iterator[str]:
    yield '<g fill="none" pointer-events="all">'
    density = cells.density
    for row, column in np.ndindex(cells.entries.shape):
        corner = f'x="{x[column]}" y="{y[row]}"'
        size = f'width="{max(1, x[column + 1] - x[column])}" height="{max(1, y[row + 1] - y[row])}"'
        axes = [(row, cells.row_cuts, "rows"), (column, cells.column_cuts, "columns")]
        if len(facts.shape) == 1:
            axes = [(column, cells.column_cuts, "elements")]
        place = ", ".join(f"{name} {cuts[i]}:{cuts[i + 1]}" for i, cuts, name in axes)
        blocks, owner = int(cells.blocks[row, column]), int(cells.owners[row, column])
        held = f"worker {owner}" if blocks == 1 else f"{count_text(blocks)} blocks, most on worker {owner}"
        entries = plural_text(int(cells.entries[row, column]), "entry")
        stored = f"{entries}, {share_text(float(density[row, column]))}"
        yield f"<rect {corner} {size}><title>{place}; {stored}; {held}</title></rect>"
    yield "</g>"


def owner_legend(facts: ArrayFacts) -> str:
    """Return swatches that name the owners' colors, at most eight, as HTML."""
    owners = sorted(set(facts.owners))
    shown = [swatch(color_of(owner), 1.0) + f"worker {owner}" for owner in owners[:8]]
    if len(owners) > len(shown):
        shown.append(f"and {len(owners) - len(shown)} more, colors repeating")
    return " &nbsp; ".join(shown)


def density_legend(facts: ArrayFacts) -> str:
    """Return the shades between the least and the greatest density as HTML, empty when all are alike."""
    cells = gather(facts, MAX_CELLS)
    if cells is None or not cells.entries.any():
        return ""
    stored = cells.density[cells.entries > 0]
    levels = shade_levels(cells)
    lightest = int(levels[levels > 0].min())
    if lightest == len(_SHADES):
        return ""
    shades = "".join(swatch("currentColor", shade, margin=0) for shade in _SHADES[lightest - 1 :])
    return f"{share_text(stored.min())} {shades} {share_text(stored.max())}"


def swatch(color: str, opacity: float, margin: int = 4) -> str:
    """Return a small square of a color, for a legend."""
    return (
        f'<span style="display:inline-block;width:.8em;height:.8em;margin-right:{margin}px;'
        f'vertical-align:-.05em;background:{color};opacity:{opacity:g}"></span>'
    )


# The blocks of an array gathered into at most so many cells, so that a map of many blocks stays small.

Counts = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Cells:
    """A grid of cells, each of one block or of several neighbors; a 1-D array is a single row.

    Parameters
    ----------
    row_cuts, column_cuts
        Where the cells are cut, in elements.
    entries, owners, blocks
        Of every cell: stored entries, the owner of most of them, how many blocks it gathers.
    """

    row_cuts: Counts
    column_cuts: Counts
    entries: Counts
    owners: Counts
    blocks: Counts

    @property
    def density(self) -> npt.NDArray[np.float64]:
        """Share of each cell's elements that are stored."""
        areas = np.outer(np.diff(self.row_cuts), np.diff(self.column_cuts))
        density: npt.NDArray[np.float64] = self.entries / areas
        return density


def gather(facts: ArrayFacts, limit: int) -> Cells | None:
    """Return at most ``limit`` cells along each axis, or None for an array that has no map.

    A map is of a 1-D or 2-D array with elements whose cuts are known.
    """
    if facts.cuts is None or len(facts.cuts) not in (1, 2) or 0 in facts.shape:
        return None
    cuts = [np.asarray(axis, dtype=np.int64) for axis in facts.cuts]
    if len(cuts) == 1:
        cuts.insert(0, np.array([0, 1]))
    shape = (cuts[0].size - 1, cuts[1].size - 1)
    area = np.outer(np.diff(cuts[0]), np.diff(cuts[1]))
    entries = np.asarray(facts.block_nnz, dtype=np.int64).reshape(shape) if facts.block_nnz else area
    owners = np.asarray(facts.owners, dtype=np.int64).reshape(shape) if facts.owners else np.zeros_like(area)
    row_starts, column_starts = _starts(shape[0], limit), _starts(shape[1], limit)
    return Cells(
        row_cuts=np.append(cuts[0][row_starts], cuts[0][-1]),
        column_cuts=np.append(cuts[1][column_starts], cuts[1][-1]),
        entries=_sums(entries, row_starts, column_starts),
        owners=_owners_of_most(owners, entries, row_starts, column_starts),
        blocks=_sums(np.ones_like(area), row_starts, column_starts),
    )


def _starts(count: int, limit: int) -> Counts:
    # As many blocks in every cell, not as many elements: the finely cut part is the interesting one.
    cells = min(count, limit)
    return np.arange(cells) * count // cells


def _sums(values: Counts, row_starts: Counts, column_starts: Counts) -> Counts:
    return np.add.reduceat(np.add.reduceat(values, row_starts, axis=0), column_starts, axis=1)


def _owners_of_most(owners: Counts, entries: Counts, row_starts: Counts, column_starts: Counts) -> Counts:
    shape = (row_starts.size, column_starts.size)
    if shape == owners.shape:
        return owners
    row_cells = np.searchsorted(row_starts, np.arange(owners.shape[0]), side="right") - 1
    column_cells = np.searchsorted(column_starts, np.arange(owners.shape[1]), side="right") - 1
    cells = row_cells[:, None] * shape[1] + column_cells[None, :]
    names, ranks = np.unique(owners, return_inverse=True)
    pairs, places = np.unique(cells.ravel() * names.size + ranks.ravel(), return_inverse=True)
    # One more for each block, so that a cell of empty blocks goes to the owner of most of them.
    weights = np.bincount(places, weights=entries.ravel() + 1.0)
    cell, owner = np.divmod(pairs, names.size)
    order = np.lexsort((owner, -weights, cell))
    first = order[np.unique(cell[order], return_index=True)[1]]
    return np.reshape(names[owner[first]], shape)
