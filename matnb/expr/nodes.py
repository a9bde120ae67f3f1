"""Expressions: immutable, interned nodes that say what a user means; they hold no data of any size."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from math import prod
from typing import ClassVar, NoReturn

import numpy as np

from matnb.blocks.creation import Arange, Creation, Eye, Full, Linspace, Window
from matnb.blocks.formats import check_lengths
from matnb.blocks.grid import Grid
from matnb.blocks.kernels.elementwise.elementwise import zero_preserving
from matnb.blocks.semiring import ANNIHILATORS, semiring_named
from matnb.errors import ShapeError
from matnb.expr.interning import InterningType, node_fields
from matnb.io.source import Source
from matnb.registration import is_foreign

Shape = tuple[int, ...]
Key = tuple[int | slice | None, ...]
_dtype_text = cache(str)  # NumPy takes some microseconds to name a dtype


@dataclass(frozen=True, eq=False)
class Expr(metaclass=InterningType):
    """A node: an operation, its parameters and its operands.

    Attributes
    ----------
    shape, dtype, sparse
        Of the array it stands for; ``sparse`` says whether absent elements are left out.
    operands
        The expressions it is made from.
    digest
        Sixteen bytes that name it by operation, parameters and operands.
    free
        The recordings of bodies whose variables it is made from.
    digest_varies
        Whether its digest is another one in each run of a program: it is made from what a file holds, whose
        times the digest follows from, or from an array that is named at random.
    is_made_anew
        Whether it is made by a function that may give something else each time, or reads what cannot be
        followed.
    plain
        Of a class: whether parameters that compare equal are the same, as text and dtypes are, unlike 0.0 and
        -0.0, or 1 and True.
    is_source
        Whether it comes from outside or from parameters, so that it can be made in any cuts.
    is_cheap
        Whether remaking it is cheaper than reading it, so that every reader makes its own.
    is_foreign
        Of a class: whether it is of another package, so that what its functions return is checked.
    is_call
        Of a class: whether it calls a user's function for parts of arrays, once for all results that live.
        Errors in it say on which worker.
    """

    shape: ClassVar[Shape]
    dtype: ClassVar[np.dtype]
    sparse: ClassVar[bool]
    operands: ClassVar[tuple[Expr, ...]]
    digest: ClassVar[bytes]
    free: ClassVar[frozenset[int]] = frozenset()
    digest_varies: ClassVar[bool] = False
    is_made_anew: ClassVar[bool] = False
    plain: ClassVar[bool] = False
    is_source: ClassVar[bool] = False
    is_cheap: ClassVar[bool] = False
    is_foreign: ClassVar[bool] = False
    is_call: ClassVar[bool] = False

    def __init_subclass__(cls) -> None:
        """Note whether a kind of node is of another package."""
        cls.is_foreign = is_foreign(cls)

    def __post_init__(self) -> None:
        """Set what follows from the fields."""
        raise NotImplementedError

    def settle(self, shape: Shape, dtype: np.dtype, sparse: bool, *operands: Expr) -> None:
        """Set what follows from the fields, once, as ``__post_init__`` of each kind of node does.

        Parameters
        ----------
        shape, dtype, sparse
            Of the array.
        *operands
            The fields that are expressions, in their order, and last those of a tuple of them.
        """
        if sparse:
            check_lengths(shape)
        own = self.__dict__
        own["shape"], own["dtype"], own["sparse"], own["operands"] = shape, dtype, sparse, operands
        for operand in operands:
            if operand.free:
                own["free"] = self.free | operand.free
            if operand.digest_varies:
                own["digest_varies"] = True
            if operand.is_made_anew:
                own["is_made_anew"] = True

    @property
    def made_by(self) -> Expr | None:
        """The call of which it is one of the results; None where it is none."""
        return None

    @property
    def tie(self) -> tuple[str, tuple[Expr, ...]] | None:
        """Why operands keep their cuts while it, or a result of it, lives, and which; None where none do."""
        return None

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements, absent ones included."""
        return prod(self.shape)

    def with_operands(self, *operands: Expr) -> Expr:
        """Return the same operation on other operands."""
        if operands == self.operands:  # nodes are equal where they are the same
            return self
        if len(operands) != len(self.operands):
            raise ValueError(f"{len(operands)} operands for a node of {len(self.operands)}")
        form = node_fields(type(self))
        values = list(map(self.__dict__.__getitem__, form.names))
        for place, operand in zip(form.operands, operands, strict=False):
            values[place] = operand
        if form.inputs is not None:
            values[form.inputs] = operands[len(form.operands) :]
        return type(self)(*values)

    def estimated_entries(self, of: Mapping[Expr, float], row: float) -> float:
        """Return about how many elements a sparse array stores, from those that its operands do.

        Parameters
        ----------
        of
            The operands'.
        row
            What is taken for a row where nothing is known.
        """
        return self._entries(of, row)

    def _entries(self, of: Mapping[Expr, float], row: float) -> float:
        # Those of all sparse operands, unless a kind of node says otherwise.
        sparse = [of[one] for one in self.operands if one.sparse]
        return sum(sparse) if sparse else row * self.shape[0]

    def describe(self, operands: Sequence[str]) -> str:
        """Return the expression as one line, with its operands by the names given."""
        return self._text(operands)

    def form_text(self) -> str:
        """Return its form in a few words; of what is no array, what it is."""
        return f"{self.shape} {_dtype_text(self.dtype)}{' sparse' if self.sparse else ''}"

    def _text(self, operands: Sequence[str]) -> str:
        # What a kind of node has of its own where its name and parameters would not read well.
        named = ((name, self.__dict__[name]) for name in node_fields(type(self)).parameter_names)
        plain = ((name, value) for name, value in named if isinstance(value, str | int | tuple))
        shown = [f"{name}={value}" for name, value in plain if value != ()]
        return f"{type(self).__name__.lower()}({', '.join([*operands, *shown])})"

    def __reduce__(self) -> NoReturn:
        raise TypeError("an expression is not pickled: workers receive plans and blocks")

    def __repr__(self) -> str:
        return f"{type(self).__name__}{self.shape} {self.dtype}"


@dataclass(frozen=True, eq=False, repr=False)
class Literal(Expr):
    """A small dense constant, distinguished by dtype, shape and bytes."""

    is_source: ClassVar[bool] = True
    is_cheap: ClassVar[bool] = True
    content: bytes
    lengths: Shape
    element: np.dtype

    def __post_init__(self) -> None:
        self.settle(self.lengths, self.element, False)

    @property
    def value(self) -> np.ndarray[Shape, np.dtype]:
        """The constant as a read-only array."""
        return np.frombuffer(self.content, self.element).reshape(self.lengths)

    def _text(self, operands: Sequence[str]) -> str:
        return f"constant {self.value}" if self.size == 1 else f"constant {self.shape}"


@dataclass(frozen=True, eq=False, repr=False)
class Data(Expr):
    """An array the user gave, named by the digest of its content; ``client_data`` has the copy."""

    is_source: ClassVar[bool] = True
    content: bytes
    lengths: Shape
    element: np.dtype
    is_sparse: bool

    def __post_init__(self) -> None:
        self.settle(self.lengths, self.element, self.is_sparse)

    def _text(self, operands: Sequence[str]) -> str:
        return "given array"


@dataclass(frozen=True, eq=False, repr=False)
class Create(Expr):
    """An array made from parameters alone: constants, ranges, the identity, random numbers."""

    is_source: ClassVar[bool] = True
    creation: Creation

    def __post_init__(self) -> None:
        self.settle(self.creation.shape, self.creation.dtype, self.creation.sparse)
        made = self.creation.whole if isinstance(self.creation, Window) else self.creation
        self.__dict__["is_cheap"] = isinstance(made, Full | Eye | Arange | Linspace)

    def _entries(self, of: Mapping[Expr, float], row: float) -> float:
        return min(self.shape)

    def _text(self, operands: Sequence[str]) -> str:
        if isinstance(self.creation, Window):
            rows = ", ".join(f"{start}:{stop}" for start, stop in self.creation.region)
            return f"{type(self.creation.whole).__name__.lower()}[{rows}]"
        return type(self.creation).__name__.lower()


@dataclass(frozen=True, eq=False, repr=False)
class Load(Expr):
    """An array read from a source; ``field`` is "matrix", or "labels" for its vertices' original ids.

    ``transpose`` is a user's wish: "keep" its transpose, make "none", or "auto".
    """

    is_source: ClassVar[bool] = True
    source: Source
    field: str
    lengths: Shape
    element: np.dtype
    is_sparse: bool
    transpose: str = "auto"

    def __post_init__(self) -> None:
        self.settle(self.lengths, self.element, self.is_sparse)
        self.__dict__["digest_varies"] = hasattr(self.source, "file")

    def _entries(self, of: Mapping[Expr, float], row: float) -> float:
        return self.source.estimated_entries()

    def _text(self, operands: Sequence[str]) -> str:
        return f"{self.source!r}" if self.field == "matrix" else f"{self.field} of {self.source!r}"


@dataclass(frozen=True, eq=False, repr=False)
class Elementwise(Expr):
    """A ufunc of NumPy or ``scipy.special``, or one of where, clip and astype, on operands that broadcast.

    ``input_dtypes`` are those of the ufunc's loop; ``output`` picks one of several results.
    """

    plain: ClassVar[bool] = True
    name: str
    inputs: tuple[Expr, ...]
    input_dtypes: tuple[np.dtype, ...]
    element: np.dtype
    output: int = 0

    def __post_init__(self) -> None:
        shape, sparse = self.inputs[0].shape, False
        for operand in self.inputs:
            sparse = sparse or operand.sparse
            if operand.shape != shape and operand.shape:
                way = _way_of_graphs(self.inputs)
                shape = broadcast_shapes(*(one.shape for one in self.inputs), name=self.name, way=way)
        self.settle(shape, self.element, sparse and self._stays_sparse(shape), *self.inputs)

    def _stays_sparse(self, shape: Shape) -> bool:
        # An absent element is a zero that is not stored, so the result may leave it out only where f(0) = 0.
        # A product with an absent element is absent whatever meets it, as in GraphBLAS.
        absent = [operand.sparse for operand in self.inputs]
        if self.element == np.float16:
            return False  # no sparse format holds half precision
        if any(one.sparse and one.shape != shape for one in self.inputs):
            return False  # a sparse row or column stretched over a matrix is dense
        if any(absent[position] for position in ANNIHILATORS.get(self.name, ())):
            return True
        scalars: list[np.generic | None] = []
        for operand in self.inputs:
            if operand.sparse:
                scalars.append(None)
            elif isinstance(operand, Literal) and operand.size == 1:
                scalars.append(operand.value.flat[0])
            else:
                return False
        return zero_preserving(self.name, self.input_dtypes, scalars)

    @property
    def drops_zeros(self) -> bool:
        """Whether it stores no entry that is 0, as SciPy's: comparisons, choices, sums of two arrays."""
        if not self.sparse or self.name == "astype":
            return False
        is_sum = self.name in ("add", "subtract") and all(one.sparse for one in self.inputs)
        return is_sum or self.element == np.bool_ or self.name in ("maximum", "minimum", "where")

    def _entries(self, of: Mapping[Expr, float], row: float) -> float:
        counts = {place: of[one] for place, one in enumerate(self.inputs) if one.sparse}
        meet = [count for place, count in counts.items() if place in ANNIHILATORS.get(self.name, ())]
        return min(meet) if meet else sum(counts.values())

    def _text(self, operands: Sequence[str]) -> str:
        dtype = f", {self.dtype}" if self.name == "astype" else ""
        return f"{self.name}({', '.join(operands)}{dtype})"


@dataclass(frozen=True, eq=False, repr=False)
class OnEntries(Elementwise):
    """A function of entries that its sparse operands store, all of them the same: what is absent stays so.

    Passes make it of functions whose other elements nobody reads.
    """

    def _stays_sparse(self, shape: Shape) -> bool:
        return True

    @property
    def drops_zeros(self) -> bool:
        """Not even of comparisons, so that each value is at hand for the next function."""
        return False

    def _text(self, operands: Sequence[str]) -> str:
        return f"{super()._text(operands)} of entries"


@dataclass(frozen=True, eq=False, repr=False)
class MatMul(Expr):
    """A matrix product over a semiring, with the shape rules of ``numpy.matmul``."""

    plain: ClassVar[bool] = True
    left: Expr
    right: Expr
    semiring: str = "plus_times"

    def __post_init__(self) -> None:
        shape, dtype = _product_of(self.left, self.right, self.semiring)
        self.settle(shape, dtype, self.left.sparse and self.right.sparse, self.left, self.right)

    def _entries(self, of: Mapping[Expr, float], row: float) -> float:
        return _product_entries(self.left, self.right, of)

    def _text(self, operands: Sequence[str]) -> str:
        if self.semiring == "plus_times":
            return " @ ".join(operands)
        return f"matmul({', '.join(operands)}, {self.semiring})"


@dataclass(frozen=True, eq=False, repr=False)
class MaskedMatMul(Expr):
    """A matrix product of which only the elements are made where a mask is true.

    A sparse mask makes the result sparse, unless it is taken as its ``complement``. Elsewhere a sparse result
    stores nothing, and a dense one has the identity of the addition.
    """

    left: Expr
    right: Expr
    mask: Expr
    semiring: str
    complement: bool

    def __post_init__(self) -> None:
        shape, dtype = _product_of(self.left, self.right, self.semiring)
        if self.mask.shape != shape:
            raise ShapeError(
                f"a mask of shape {self.mask.shape} for a product of shape {shape}: they must be equal"
            )
        inside = self.mask.sparse and not self.complement
        sparse = inside or (self.left.sparse and self.right.sparse)
        self.settle(shape, dtype, sparse, self.left, self.right, self.mask)

    def _entries(self, of: Mapping[Expr, float], row: float) -> float:
        if self.mask.sparse and not self.complement:
            return of[self.mask]
        return _product_entries(self.left, self.right, of)

    def _text(self, operands: Sequence[str]) -> str:
        left, right, mask = operands
        inverted = "~" if self.complement else ""
        return f"matmul({left}, {right}, {self.semiring}, mask={inverted}{mask})"


@dataclass(frozen=True, eq=False, repr=False)
class Transpose(Expr):
    """Axes in another order."""

    plain: ClassVar[bool] = True
    operand: Expr
    axes: tuple[int, ...]

    def __post_init__(self) -> None:
        if sorted(self.axes) != list(range(self.operand.ndim)):
            raise ShapeError(
                f"axes {self.axes} are not a permutation of the array's {self.operand.ndim} axes"
            )
        shape = tuple(self.operand.shape[axis] for axis in self.axes)
        self.settle(shape, self.operand.dtype, self.operand.sparse, self.operand)

    def _text(self, operands: Sequence[str]) -> str:
        (operand,) = operands
        if self.axes == tuple(reversed(range(self.ndim))):
            return f"transpose({operand})" if operand == "..." else f"{operand}.T"
        return f"transpose({operand}, {self.axes})"


@dataclass(frozen=True, eq=False, repr=False)
class Reduce(Expr):
    """A reduction over some axes: sum, prod, min, max, any, all, or the number of stored entries.

    Or, of a real array over all axes, the "deviation": the sum of squared distances from the mean.
    """

    plain: ClassVar[bool] = True
    operand: Expr
    operation: str
    axes: tuple[int, ...]
    keepdims: bool
    element: np.dtype

    def __post_init__(self) -> None:
        given = self.operand.shape
        if self.operation in ("min", "max") and any(given[axis] == 0 for axis in self.axes):
            raise ShapeError(f"{self.operation} of an array of shape {given} over an axis without elements")
        kept = [(1 if axis in self.axes else length) for axis, length in enumerate(given)]
        if not self.keepdims:
            kept = [length for axis, length in enumerate(given) if axis not in self.axes]
        self.settle(tuple(kept), self.element, False, self.operand)

    def _text(self, operands: Sequence[str]) -> str:
        over = ""
        if len(self.axes) < self.operand.ndim:
            over = f", axis={self.axes[0] if len(self.axes) == 1 else self.axes}"
        return f"{self.operation}({operands[0]}{over})"


@dataclass(frozen=True, eq=False, repr=False)
class Index(Expr):
    """Basic indexing by a normalized key: an entry an axis, slices with bounds, None for a new axis."""

    operand: Expr
    key: Key

    def __post_init__(self) -> None:
        shape, axis, drops = [], 0, False
        for part in self.key:
            if part is None:
                shape.append(1)
                drops = True
                continue
            if isinstance(part, slice):
                shape.append(len(range(*part.indices(self.operand.shape[axis]))))
            else:
                drops = True
            axis += 1
        self.settle(tuple(shape), self.operand.dtype, self.operand.sparse and not drops, self.operand)

    def _entries(self, of: Mapping[Expr, float], row: float) -> float:
        return entries_of_part(self, self.operand, of)

    def _text(self, operands: Sequence[str]) -> str:
        return f"{operands[0]}[{', '.join(map(key_text, self.key))}]"


@dataclass(frozen=True, eq=False, repr=False)
class Broadcast(Expr):
    """An array stretched to a shape, dense."""

    operand: Expr
    lengths: Shape

    def __post_init__(self) -> None:
        if broadcast_shapes(self.operand.shape, self.lengths, name="broadcast_to") != self.lengths:
            raise ShapeError(f"shape {self.operand.shape} cannot be broadcast to {self.lengths}")
        self.settle(self.lengths, self.operand.dtype, False, self.operand)

    def _text(self, operands: Sequence[str]) -> str:
        return f"broadcast({operands[0]})"


@dataclass(frozen=True, eq=False, repr=False)
class Regrid(Expr):
    """The same array, with its blocks cut where the user asked: ``cuts`` are those of a Grid.

    ``ranks`` says for each block, in order, which worker has it; without any it follows from the cuts.
    """

    operand: Expr
    cuts: tuple[tuple[int, ...], ...]
    ranks: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if Grid(self.cuts).shape != self.operand.shape:
            raise ShapeError(f"cuts {self.cuts} do not fit an array of shape {self.operand.shape}")
        self.settle(self.operand.shape, self.operand.dtype, self.operand.sparse, self.operand)

    def _text(self, operands: Sequence[str]) -> str:
        blocks = " x ".join(str(len(axis) - 1) for axis in self.cuts)
        return f"regrid({operands[0]}) to {blocks} blocks"


def entries_of_part(node: Expr, operand: Expr, of: Mapping[Expr, float]) -> float:
    """Return about how many elements some of the elements of an array store: as many as all on average."""
    return max(1.0, of[operand] * node.size / max(1, operand.size))


def _product_entries(left: Expr, right: Expr, of: Mapping[Expr, float]) -> float:
    # Each entry of the left meets an average row of the right.
    return of[left] * of[right] / max(1, right.shape[0])


def _product_of(left: Expr, right: Expr, semiring: str) -> tuple[Shape, np.dtype]:
    # Shape and dtype of a matrix product.
    a, b = left.shape, right.shape
    if not a or not b:
        raise ShapeError("a matrix product needs arrays of at least one axis, not a scalar; use * instead")
    inner = b[-2] if len(b) > 1 else b[0]
    if a[-1] != inner:
        raise ShapeError(
            f"cannot multiply shapes {a} and {b}: the last axis of the left ({a[-1]}) must equal "
            f"the {'next-to-last' if len(b) > 1 else 'only'} axis of the right ({inner})"
            f"{_way_of_graphs((left, right))}"
        )
    batch = broadcast_shapes(a[:-2], b[:-2], name="matmul") if len(a) > 2 or len(b) > 2 else ()
    shape = (*batch, *(a[-2:-1] if len(a) > 1 else ()), *(b[-1:] if len(b) > 1 else ()))
    dtype = _product_dtype(semiring, left.dtype, right.dtype)
    if (left.sparse and len(b) > 2) or (right.sparse and len(a) > 2):
        raise ShapeError(f"a sparse matrix meets vectors and matrices only, not shapes {a} and {b}")
    return shape, dtype


@cache
def _product_dtype(semiring: str, left: np.dtype, right: np.dtype) -> np.dtype:
    return semiring_named(semiring).result_dtype(left, right)


def _way_of_graphs(operands: Sequence[Expr]) -> str:
    # Of square sparse matrices of several sizes, which may be a graph at several times.
    sizes = {one.shape for one in operands if one.sparse and one.ndim == 2 and one.shape[0] == one.shape[1]}
    way = "; graphs of different vertices are loaded with relabel=False, num_vertices=n, the same n for all"
    return way if len(sizes) > 1 else ""


def broadcast_shapes(*shapes: Shape, name: str, way: str = "") -> Shape:
    """Return the common shape; ``way`` is what to do where there is none.

    Raises
    ------
    ShapeError
        When there is none, naming the operation and the shapes.
    """
    distinct = {shape for shape in shapes if shape}
    if len(distinct) <= 1:
        return distinct.pop() if distinct else ()  # most often; NumPy's own takes long
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        listed = " and ".join(map(str, shapes))
        raise ShapeError(
            f"{name}: shapes {listed} do not broadcast: counted from the last axis, "
            f"lengths must be equal or one of them 1{way}"
        ) from None


def key_text(part: int | slice | None) -> str:
    """Return an entry of an index as a user writes it."""
    if isinstance(part, slice):
        stop = "" if part.stop is None else part.stop
        return f"{part.start}:{stop}" + (f":{part.step}" if part.step != 1 else "")
    return str(part)
