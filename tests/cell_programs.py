"""Random cells of up to sixty operations, with sharing and mutation, alike on NumPy arrays and DistArrays."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import scipy.sparse as sp

import matnb as mn

# Values stay small whole numbers, halves and quarters, so that most results are exact in any order.
LARGEST = 2.0**20
LENGTHS = (1, 2, 3, 5)
UNARY = ("negative", "absolute", "sign", "floor", "square", "logical_not", "positive")
BINARY = (
    "add",
    "subtract",
    "multiply",
    "maximum",
    "minimum",
    "less",
    "greater_equal",
    "not_equal",
    "add",
    "multiply",
)
NUMBERS = (0, 1, -1, 2, 0.5, 1.0, 0.0)
REDUCTIONS = ("sum", "max", "min", "mean", "std", "any", "all")
DTYPES = ("float64", "float64", "int64", "float32", "bool")


@dataclass
class Pair:
    """One name of the cell: a handle, and the NumPy array it stands for."""

    mine: mn.DistArray
    theirs: np.ndarray


@dataclass
class Cell:
    """A cell that was run so far: its values, and its lines for a user."""

    pairs: list[Pair] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        return "\n".join(self.lines)


def random_cell(seed: int, num_operations: int) -> Cell:
    """Run a cell; the same seed with fewer operations gives the beginning of the same cell."""
    writer = _Writer(random.Random(seed))
    for _ in range(num_operations):
        writer.step()
    return writer.cell


class _Writer:
    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._rows, self._columns = rng.choice(LENGTHS), rng.choice(LENGTHS)
        self.cell = Cell()
        for _ in range(3):
            self._input()

    def step(self) -> None:
        """Write one more line, unless NumPy refuses it or it leaves the range of values."""
        kinds: list[Callable[[], None]] = [
            self._input, self._unary, self._binary, self._binary, self._binary, self._number, self._number,
            self._reduction, self._product, self._product, self._transpose, self._index, self._where,
            self._astype, self._sampled, self._stretch,
            self._assign_slice, self._assign_mask, self._in_place, self._out, self._fill, self._copy,
        ]  # fmt: skip
        self._rng.choice(kinds)()

    # values

    def _input(self) -> None:
        shape = self._rng.choice(
            [(self._rows, self._columns), (self._columns, self._rows), (self._columns,), (self._rows,)]
        )
        dtype = np.dtype(self._rng.choice(DTYPES))
        values = np.random.default_rng(self._rng.randrange(2**31)).integers(-2, 3, shape).astype(dtype)
        sparse = len(shape) == 2 and self._rng.random() < 0.4
        cuts = None if self._rng.random() < 0.5 else [self._rng.choice([1, 2]) for _ in shape]
        mine = mn.asarray(sp.csr_array(values) if sparse else values, blocks=cuts)
        self._add(mine, values, f"{'sparse' if sparse else 'dense'} {dtype} {shape} cut {cuts}")

    def _add(self, mine: mn.DistArray, theirs: object, text: str) -> None:
        values = np.array(theirs)
        assert mine.shape == values.shape, f"{self.cell.text}\n{text}"
        assert mine.dtype == values.dtype, f"{self.cell.text}\n{text}"
        if _is_tame(values):
            self.cell.lines.append(f"x{len(self.cell.pairs)} = {text}")
            self.cell.pairs.append(Pair(mine, values))

    def _pick(self, accept: Callable[[Pair], bool] = lambda pair: True) -> tuple[int, Pair] | None:
        places = [place for place, pair in enumerate(self.cell.pairs) if accept(pair)]
        if not places:
            return None
        # Young ones more often, so that expressions grow deep.
        place = places[max(self._rng.randrange(len(places)), self._rng.randrange(len(places)))]
        return place, self.cell.pairs[place]

    def _apply(self, function: Callable[..., object], *picked: tuple[int, Pair], text: str) -> None:
        with np.errstate(all="ignore"):
            try:
                theirs = function(*(pair.theirs for _, pair in picked))
            except (TypeError, ValueError):  # NumPy refuses it
                return
        names = ", ".join(f"x{place}" for place, _ in picked)
        self._add(function(*(pair.mine for _, pair in picked)), theirs, f"{text}({names})")

    def _unary(self) -> None:
        name, one = self._rng.choice(UNARY), self._pick()
        if one is not None:
            self._apply(getattr(np, name), one, text=name)

    def _binary(self) -> None:
        name, one = self._rng.choice(BINARY), self._pick()
        if one is None:
            return
        other = self._pick(lambda pair: _meets(pair.theirs, one[1].theirs))
        if other is not None:
            self._apply(getattr(np, name), one, other, text=name)

    def _number(self) -> None:
        name, number, one = self._rng.choice(BINARY), self._rng.choice(NUMBERS), self._pick()
        if one is None:
            return
        function = getattr(np, name)
        if self._rng.random() < 0.3:
            self._apply(lambda x: function(number, x), one, text=f"{name} {number} and")
        else:
            self._apply(lambda x: function(x, number), one, text=f"{name} {number} to")

    def _reduction(self) -> None:
        name = self._rng.choice(REDUCTIONS)
        one = self._pick(lambda pair: pair.theirs.ndim > 0 and pair.theirs.size > 0)
        if one is not None:
            axis = self._rng.choice([None, None, *range(one[1].theirs.ndim)])
            keep = self._rng.random() < 0.4
            self._apply(
                lambda x: getattr(x, name)(axis=axis, keepdims=keep), one, text=f"{name} {axis} {keep}"
            )

    def _product(self) -> None:
        one = self._pick(lambda pair: pair.theirs.ndim in (1, 2))
        if one is None:
            return
        other = self._pick(
            lambda pair: 0 < pair.theirs.ndim <= 2 and pair.theirs.shape[0] == one[1].theirs.shape[-1]
        )
        if other is not None:
            self._apply(np.matmul, one, other, text="matmul")

    def _sampled(self) -> None:
        one = self._pick(lambda pair: pair.theirs.ndim == 2)
        mask = self._pick(lambda pair: pair.mine.sparse)
        if one is None or mask is None or one[1].theirs.shape[0] != mask[1].theirs.shape[0]:
            return
        columns = mask[1].theirs.shape[1]
        other = self._pick(lambda pair: pair.theirs.shape == (one[1].theirs.shape[1], columns))
        if other is not None:
            self._apply(lambda x, y, z: ((x @ y) * z).sum(), one, other, mask, text="sum of sampled")

    def _transpose(self) -> None:
        one = self._pick()
        if one is not None:
            self._apply(np.transpose, one, text="transpose")

    def _index(self) -> None:
        one = self._pick(lambda pair: pair.theirs.ndim > 0)
        if one is None:
            return
        key = tuple(self._part(length) for length in one[1].theirs.shape)
        self._apply(lambda x: x[key], one, text=f"at {key} of")

    def _part(self, length: int) -> slice | int:
        if not length:
            return slice(None)
        if self._rng.random() < 0.3:
            return self._rng.randrange(-length, length)
        bounds = [self._rng.choice([None, self._rng.randrange(-length, length + 1)]) for _ in range(2)]
        return slice(*bounds, self._rng.choice([None, None, 1, 2, -1]))

    def _where(self) -> None:
        one = self._pick()
        if one is None:
            return
        mask = self._pick(lambda pair: pair.theirs.shape == one[1].theirs.shape)
        if mask is not None:
            self._apply(lambda x, y: np.where(x, y, 1), mask, one, text="where")

    def _astype(self) -> None:
        dtype, one = np.dtype(self._rng.choice(DTYPES)), self._pick()
        if one is not None:
            self._apply(lambda x: x.astype(dtype), one, text=f"astype {dtype}")

    def _stretch(self) -> None:
        one = self._pick(lambda pair: pair.theirs.ndim == 1)
        if one is not None:
            self._apply(lambda x: x[:, None] + x, one, text="outer sum")

    # mutation

    def _target(self, accept: Callable[[Pair], bool] = lambda pair: True) -> tuple[int, Pair] | None:
        return self._pick(lambda pair: not pair.mine.sparse and pair.theirs.ndim > 0 and accept(pair))

    def _change(self, place: int, change: Callable[[object], None], text: str) -> None:
        pair = self.cell.pairs[place]
        changed = pair.theirs.copy()
        with np.errstate(all="ignore"):
            try:
                change(changed)
            except (TypeError, ValueError):  # NumPy refuses it
                return
        if _is_tame(changed):
            self.cell.lines.append(f"x{place}{text}")
            change(pair.mine)
            pair.theirs = changed

    def _assign_slice(self) -> None:
        target = self._target()
        if target is None:
            return
        key = tuple(self._part(length) for length in target[1].theirs.shape)
        shape = target[1].theirs[key].shape
        value = self._pick(
            lambda pair: pair.theirs.shape in ((), shape) and pair.theirs.dtype == target[1].theirs.dtype
        )
        if value is None or self._rng.random() < 0.4:
            number = target[1].theirs.dtype.type(self._rng.choice((0, 1, 2)))
            self._change(target[0], lambda x: x.__setitem__(key, number), f"[{key}] = {number}")
        else:
            pair = value[1]
            mine, theirs = pair.mine, pair.theirs
            self._change(
                target[0],
                lambda x: x.__setitem__(key, mine if isinstance(x, mn.DistArray) else theirs),
                f"[{key}] = x{value[0]}",
            )

    def _assign_mask(self) -> None:
        target = self._target()
        if target is None:
            return
        limit = target[1].theirs.dtype.type(self._rng.choice((0, 1)))
        number = target[1].theirs.dtype.type(self._rng.choice((0, 1, 3)))

        def change(x: object) -> None:
            x[x > limit] = number

        self._change(target[0], change, f"[x > {limit}] = {number}")

    def _in_place(self) -> None:
        target = self._target()
        if target is None:
            return
        shape = target[1].theirs.shape
        value = self._pick(lambda pair: not pair.mine.sparse and _stretches(pair.theirs, shape))
        if value is None:
            return
        name, pair = self._rng.choice(("__iadd__", "__imul__")), value[1]
        mine, theirs = pair.mine, pair.theirs.copy()

        def change(x: object) -> None:
            getattr(x, name)(mine if isinstance(x, mn.DistArray) else theirs)

        self._change(target[0], change, f".{name}(x{value[0]})")

    def _out(self) -> None:
        target = self._target(lambda pair: pair.theirs.dtype == np.float64)
        if target is None:
            return
        value = self._pick(lambda pair: pair.theirs.shape == target[1].theirs.shape and not pair.mine.sparse)
        if value is None or value[1].theirs.dtype == bool:
            return
        mine, theirs = value[1].mine, value[1].theirs.copy()

        def change(x: object) -> None:
            other = mine if isinstance(x, mn.DistArray) else theirs
            np.add(x, other, out=x)

        self._change(target[0], change, f" = add(x{target[0]}, x{value[0]}), out=")

    def _fill(self) -> None:
        target = self._target()
        if target is not None and self._rng.random() < 0.3:
            number = target[1].theirs.dtype.type(1)
            self._change(target[0], lambda x: x.fill(number), f".fill({number})")

    def _copy(self) -> None:
        one = self._pick()
        if one is not None:
            self._apply(lambda x: x.copy(), one, text="copy")


def _is_tame(values: np.ndarray) -> bool:
    few = values.size <= 64
    return bool(few and np.isfinite(values).all() and (np.abs(values.astype(float)) <= LARGEST).all())


def _stretches(one: np.ndarray, shape: tuple[int, ...]) -> bool:
    try:
        return np.broadcast_shapes(one.shape, shape) == shape
    except ValueError:
        return False


def _meets(one: np.ndarray, other: np.ndarray) -> bool:
    try:
        np.broadcast_shapes(one.shape, other.shape)
    except ValueError:
        return False
    return True
