"""Results of several values, as of graph algorithms and solvers: the figures looked for first are shown."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from matnb.expr.control import Loop
from matnb.expr.nodes import Expr, Literal
from matnb.lazy.array import DistArray
from matnb.lazy.creation import asarray, zeros
from matnb.lazy.evaluator import evaluator, looking_only, shown
from matnb.lazy.functions.grouping import scatter_reduce
from matnb.lazy.functions.ordering import topk
from matnb.pictures.escaping import escaped
from matnb.pictures.quantities import count_text, plural_text, shape_text
from matnb.pictures.svg_style import color_of
from matnb.tables.showing import looked, short_text

_SHOWN = 5  # of the largest
_BINS = 8  # of distances
_BAR, _LINE = 120, 18  # the longest bar, and the height of a row, in pixels
_SMALL = 1000  # elements that are brought here
_CELL = "padding:0 10px 0 0;border:none;background:transparent;white-space:pre;text-align:left"
_NUMBER = (
    "padding:0 10px 0 0;border:none;background:transparent;text-align:right;font-variant-numeric:tabular-nums"
)

_Kind = TypeVar("_Kind", bound=type)


@dataclass(frozen=True)
class ResultPart:
    """A few numbers of a result, each with a name: the largest ranks, the sizes of communities.

    Attributes
    ----------
    title
        What they are.
    rows
        Names, and numbers that are drawn as bars.
    """

    title: str
    rows: tuple[tuple[str, float], ...]


def shows(noun: str = "", **kinds: str) -> Callable[[_Kind], _Kind]:
    """Return a decorator of a class of results, a named tuple, that says how its fields are shown.

    Parameters
    ----------
    noun
        What its vectors have an element for, in the plural.
    **kinds
        By field: "largest", "sizes" of the groups that labels make, "distances", "spectrum" of few numbers,
        or a key of ``_NUMBERS``. Others are shown as they show themselves, behind their names.
    """

    def decorated(kind: _Kind) -> _Kind:
        made: Any = kind
        made.__repr__ = lambda self: ResultView(self, noun, kinds).text()
        made._repr_mimebundle_ = lambda self, include=None, exclude=None: ResultView(
            self, noun, kinds
        ).bundle()
        return kind

    return decorated


class ResultView:
    """A result as a user sees it; what is not there is computed only if that takes little.

    Parameters
    ----------
    result
        A named tuple, or a sequence with ``_fields`` whose values may not be recorded yet.
    noun, kinds
        As of :func:`shows`.
    """

    def __init__(self, result: Any, noun: str, kinds: dict[str, str]) -> None:
        self._noun, self._kinds = noun, kinds
        self._name = type(result).__name__
        names: tuple[str, ...] = result._fields
        # Fields may be recorded when they are used first; to look at a result records none.
        there = dict(zip(names, result, strict=True)) if isinstance(result, tuple) else vars(result)
        self._fields: dict[str, Any] = {name: there.get(name) for name in names}
        self._parts: list[ResultPart] = []
        self._facts: list[str] = []
        wanted = {name: self._wanted(name) for name in kinds if isinstance(self._fields[name], DistArray)}
        arrays = [one for few in wanted.values() for one in few]
        first = f"result.{next(iter(kinds), '')}"
        self._note = "" if arrays or not kinds else f"made when it is used first, as in {first}"
        if arrays:
            # Computes what is cheap, below a loop too.
            raised = [shown(self._fields[name].expression).error for name in wanted]
            self._note = next((f"numbers not computed: {one}" for one in raised if one), "") or looked(
                arrays, lambda: self._look(wanted), "numbers", f"{first}.compute() does it"
            )

    def _wanted(self, name: str) -> list[DistArray]:
        # The few numbers that are shown of a field.
        field: Any = self._fields[name]
        match self._kinds[name]:
            case "largest" if field.ndim == 1 and field.shape[0]:
                values, places = topk(field, min(_SHOWN, field.shape[0]))
                return [values, places, *self._named(field, places)]
            case "sizes" if field.shape[0]:
                n = field.shape[0]
                sizes = scatter_reduce(zeros(n, np.int64) + 1, field, n)
                values, places = topk(sizes, min(_SHOWN, n))
                return [values, places, asarray((sizes > 0).sum()), *self._named(field, places)]
            case "distances" if field.ndim == 1 and field.shape[0]:
                return _distances(field)
            case "spectrum" if field.size <= _SMALL:
                return [field]
            case kind if kind in _NUMBERS:
                return [field]
        return []

    def _named(self, field: DistArray, places: DistArray) -> list[DistArray]:
        names = field.labels
        return [names[places]] if isinstance(names, DistArray) else []

    def _look(self, wanted: dict[str, list[DistArray]]) -> None:
        evaluator().persist([one.expression for few in wanted.values() for one in few])
        for name, few in wanted.items():
            if few:
                self._add(name, [np.asarray(one) for one in few])

    def _add(self, name: str, found: Sequence[npt.NDArray[Any]]) -> None:
        field: Any = self._fields[name]
        match self._kinds[name]:
            case "largest":
                rows = zip(self._called(field, found[1], found[2:]), found[0].tolist(), strict=True)
                self._parts.append(ResultPart(f"largest {name}", tuple(rows)))
            case "sizes":
                sizes, places, count = found[:3]
                called = self._called(field, places, found[3:])
                if field.labels is None:
                    called = [str(place) for place in places.tolist()]
                else:  # the number is the one that picks the group
                    pairs = zip(places.tolist(), called, strict=True)
                    called = [f"{place} (vertex {name})" for place, name in pairs]
                named = zip(called, sizes.tolist(), strict=True)
                self._parts.append(
                    ResultPart(f"largest groups of {name}", tuple(one for one in named if one[1]))
                )
                self._facts.append(f"{plural_text(int(count), 'group')}")
            case "distances":
                self._facts += _reached(found)
                self._parts.append(ResultPart(name, tuple(_bins(found))))
            case "spectrum":
                first = [one.real for one in np.ravel(found[0])[: 2 * _SHOWN].tolist()]
                numbered = ((f"{name}[{place}]", value) for place, value in enumerate(first))
                self._parts.append(ResultPart(name, tuple(numbered)))
            case "iterations":
                self._facts.append(_ended(field.expression, int(found[0])))
            case kind:
                self._facts.append(_NUMBERS[kind](name, found[0].item()))

    def _called(
        self, field: DistArray, places: npt.NDArray[np.int64], named: Sequence[npt.NDArray[Any]]
    ) -> list[str]:
        if named:
            return [short_text(str(one)) for one in named[0].tolist()]
        names = field.labels
        if names is None:
            row = "row " if self._noun == "vertices" else ""
            return [f"{row}{place}" for place in places.tolist()]
        every = names if isinstance(names, np.ndarray) else list(names)
        return [short_text(str(every[place])) for place in places.tolist()]

    def _head(self) -> str:
        counts = {one.shape[0] for one in self._fields.values() if isinstance(one, DistArray) and one.ndim}
        of = f" of {count_text(max(counts))} {self._noun}" if self._noun and counts else ""
        return "; ".join([f"{self._name}{of}", *filter(None, self._facts)])

    def _others(self) -> Iterator[tuple[str, Any]]:
        for name, one in self._fields.items():
            if self._kinds.get(name) not in _NUMBERS and one is not None:
                yield name, one

    def text(self) -> str:
        """Return its numbers as text, then what each field is."""
        lines = [self._head()]
        for part in self._parts:
            lines.append(part.title)
            rows = [(name, _number_text(value)) for name, value in part.rows]
            widths = [max((len(row[place]) for row in rows), default=0) for place in (0, 1)]
            lines += [f"  {name:<{widths[0]}}  {value:>{widths[1]}}" for name, value in rows]
        if self._kinds:
            lines.append(f"fields: {', '.join(self._field_texts())}")
        else:
            for name, one in self._others():
                lines += [f"{name}:", *(f"  {line}" for line in repr(one).splitlines())]
        return "\n".join([*lines, *([self._note] if self._note else [])])

    def _field_texts(self) -> list[str]:
        return [
            f"{name} ({shape_text(one.shape)} {one.dtype})" if isinstance(one, DistArray) else name
            for name, one in self._fields.items()
        ]

    def bundle(self) -> dict[str, str]:
        """Return it as text and as HTML, with bars beside the numbers."""
        parts = "".join(_part_html(part) for part in self._parts)
        with looking_only() if self._note else nullcontext():  # what is said not to be computed is not
            shown = "".join(_field_html(name, one, bool(self._kinds)) for name, one in self._others())
        note = f'<div style="opacity:.7">{escaped(self._note)}</div>' if self._note else ""
        html = (
            f'<div><div style="margin:0 0 4px">{escaped(self._head())}</div>'
            f'<div style="display:flex;flex-wrap:wrap;gap:4px 32px">{parts}</div>{shown}{note}</div>'
        )
        return {"text/plain": self.text(), "text/html": html}


def _part_html(part: ResultPart) -> str:
    longest = max((abs(value) for _, value in part.rows if np.isfinite(value)), default=0.0) or 1.0
    rows = []
    for name, value in part.rows:
        width = round(_BAR * abs(value) / longest) if np.isfinite(value) else 0
        bar = (
            f'<svg width="{_BAR}" height="{_LINE - 8}" aria-hidden="true" style="vertical-align:middle">'
            f'<rect width="{max(1, width)}" height="{_LINE - 8}" fill="{color_of(int(value < 0))}"/></svg>'
        )
        rows.append(
            f'<tr style="background:transparent"><td style="{_CELL}">{escaped(name)}</td>'
            f'<td style="{_NUMBER}">{escaped(_number_text(value))}</td><td style="{_CELL}">{bar}</td></tr>'
        )
    return (
        f'<div><div style="opacity:.7">{escaped(part.title)}</div>'
        f'<table style="border-collapse:collapse;border:none;margin:0">{"".join(rows)}</table></div>'
    )


def _field_html(name: str, field: Any, is_closed: bool) -> str:
    bundle = field._repr_mimebundle_() if hasattr(field, "_repr_mimebundle_") else {}
    html = bundle.get("text/html") or f"<pre>{escaped(repr(field))}</pre>"
    state = "" if is_closed else ' open="open"'
    return (
        f'<details{state} style="margin:4px 0"><summary style="cursor:pointer;opacity:.8">{escaped(name)}'
        f'</summary><div style="margin:4px 0 4px 14px">{html}</div></details>'
    )


def _number_text(value: float) -> str:
    return count_text(value) if isinstance(value, int) else f"{value:.6g}"


def _info_text(name: str, info: int) -> str:
    return f"stopped at its limit of {plural_text(info, 'iteration')}" if info else "converged"


def _istop_text(name: str, istop: int) -> str:
    reasons = {0: "x is 0", 1: "converged: A x is close to b", 2: "converged to a least-squares solution"}
    return reasons.get(istop, "stopped at its limit of iterations")


# Kinds of fields that are one number, and how each is written.
_NUMBERS: dict[str, Callable[[str, Any], str]] = {
    "iterations": lambda name, taken: plural_text(taken, "iteration"),
    "number": lambda name, value: f"{name} {_number_text(value)}",
    "converged": lambda name, is_it: "converged" if is_it else "not converged",
    "info": _info_text,
    "istop": _istop_text,
}


def _ended(loop: Expr, taken: int) -> str:
    limit = loop.limit if isinstance(loop, Loop) else None
    most = int(limit.value) if isinstance(limit, Literal) else None
    counted = plural_text(taken, "iteration")
    if most is None or loop.body.until is None:  # type: ignore[attr-defined]  # a loop
        return counted
    return f"converged after {counted}" if taken < most else f"stopped at its limit of {counted}"


def _distances(field: DistArray) -> list[DistArray]:
    # How many are reached, the farthest of them, and how many are within each of some equal distances.
    is_whole = field.dtype.kind in "iu"
    reached: Any = field >= 0 if is_whole else np.isfinite(field)
    far: Any = np.where(reached, field, 0).max()
    width = np.ceil((far + 1) / _BINS).astype(np.int64) if is_whole else far / _BINS
    ends = [width * (number + 1) for number in range(_BINS)]
    within = [(reached & ((field < end) if is_whole else (field <= end))).sum() for end in ends]
    return [asarray(one) for one in (reached.sum(), field.shape[0], far, width, *within)]


def _reached(found: Sequence[npt.NDArray[Any]]) -> list[str]:
    count, n, far = found[0].item(), found[1].item(), found[2].item()
    return [f"{count_text(count)} of {count_text(n)} reached", f"the farthest at {_number_text(far)}"]


def _bins(found: Sequence[npt.NDArray[Any]]) -> Iterator[tuple[str, float]]:
    count, far, width = found[0].item(), found[2].item(), found[3].item()
    is_whole, before = isinstance(width, int), 0
    for number, one in enumerate(found[4:]):
        within = one.item()
        begin, end = number * width, (number + 1) * width
        name = f"{_number_text(begin)} to {_number_text(end - 1 if is_whole else end)}"
        yield (_number_text(begin) if is_whole and width == 1 else name), within - before
        before = within
        if within == count and end > far:
            return
