"""DistArray, the user's handle on an expression; operators and NumPy's protocols build new expressions."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import wraps
from types import EllipsisType, MethodType, ModuleType
from typing import TYPE_CHECKING, Any, Literal, NoReturn, Self
from weakref import ref

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from matnb.blocks.formats import Block, Dense, NumericArray, block_from, to_gcxs, to_numpy, to_scipy
from matnb.blocks.layout import Layout
from matnb.errors import DTypeError, NotScalarError, OptionError, ShapeError, UnsupportedError, no_attribute
from matnb.expr.client_data import given
from matnb.expr.nodes import Data, Expr
from matnb.lazy import lost_writes, reductions, small_parts, ufuncs
from matnb.lazy.element_reads import chunks_of, note_iteration, value_of
from matnb.lazy.evaluator import evaluator, shown
from matnb.lazy.foreign_names import (
    as_numpy,
    asks,
    instead_of,
    is_in_matplotlib,
    is_scipys_operand,
    raise_what_is_hidden,
    refuse_dask,
    refuse_dense,
    refuse_dense_parts,
    refuse_inverses,
    refuse_lost_edges,
    refuse_networkx,
    refuse_outputs,
    refuse_pickling,
    tell_dense,
)
from matnb.lazy.labels import LABEL_FINDERS, NOTED_LABELS, check_labels
from matnb.lazy.limits import check_incoming, check_limit, converted_bytes, list_bytes
from matnb.lazy.operators import Operators
from matnb.lazy.recording import active_recording
from matnb.lazy.registry import METHODS, SPARSE_METHODS, recorded
from matnb.ops.pattern import Pattern
from matnb.ops.selecting import Prune, Select, SelectBy
from matnb.pictures.arrays import array_html, array_text
from matnb.pictures.facts import ArrayFacts

if TYPE_CHECKING:
    from sparse import GCXS


class Known:
    """Attributes of handles, and the array API standard's on namespace and device."""

    __slots__ = ()

    _expression: Expr

    def _recorded(self, node: Expr) -> Any:
        raise NotImplementedError

    @property
    def shape(self) -> tuple[int, ...]:
        """Lengths of the axes."""
        shape = self._expression.shape
        if self._expression.sparse:
            refuse_dense_parts(shape)
        return shape

    @shape.setter
    def shape(self, shape: object) -> None:
        raise UnsupportedError(
            f"x.shape = {shape!r} would change an array in place, which DistArrays do not support: use x = "
            f"x.reshape({shape!r})"
        )

    @property
    def dtype(self) -> np.dtype:
        """Type of the elements."""
        return self._expression.dtype

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return self._expression.ndim

    @property
    def size(self) -> int:
        """Number of elements, absent ones included."""
        return self._expression.size

    @property
    def sparse(self) -> bool:
        """True when absent elements are not stored."""
        return self._expression.sparse

    @property
    def nnz(self) -> int:
        """Number of stored entries; counted on the workers when it is not known yet."""
        known = evaluator().facts(self._expression).nnz
        if known is not None:
            return known
        return int(self._recorded(reductions.reduce(self._expression, "stored")))

    @property
    def layout(self) -> Layout | None:
        """Cuts and owners of the blocks, or None while nothing is computed."""
        return evaluator().layout(self._expression)

    @property
    def itemsize(self) -> int:
        """Bytes of an element."""
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """Bytes of all elements, as a dense array would take; absent ones included."""
        return self.size * self.itemsize

    @property
    def mT(self) -> Any:
        """The matrices of the last two axes transposed."""
        return recorded(np.matrix_transpose)(self)

    @property
    def device(self) -> str:
        """The standard's name of where arrays are: "cpu", the memory of the workers."""
        return "cpu"

    def to_device(self, device: str, /, stream: None = None) -> Self:
        """Return the array, which is on the only device there is.

        Raises
        ------
        OptionError
            For another device.
        """
        if device != "cpu":
            raise OptionError(f"device={device!r}: arrays are on the workers of the cluster, device 'cpu'")
        return self

    def __array_namespace__(self, /, *, api_version: str | None = None) -> ModuleType:
        """Return ``matnb``, the array API standard's namespace for the array."""
        if api_version not in (None, "2021.12", "2022.12", "2023.12", "2024.12"):
            raise OptionError(f"api_version={api_version!r}: matnb is at 2024.12")
        return sys.modules[__name__.partition(".")[0]]


def _method(name: str) -> Callable[..., Any]:
    function = getattr(np, name)
    call = function if isinstance(function, np.ufunc) else None

    @wraps(getattr(np.ndarray, name))
    def method(self: Methods, *args: object, **kwargs: object) -> object:
        return (call or recorded(function))(self, *args, **kwargs)

    method.__doc__ = f"``numpy.{name}`` of this array."
    return method


class Methods:
    """The methods of ``numpy.ndarray`` that call the function of their name."""

    __slots__ = ()

    _expression: Expr

    # Each is NumPy's function of that name with the array first.

    argmax = _method("argmax")
    argmin = _method("argmin")
    argpartition = _method("argpartition")
    argsort = _method("argsort")
    choose = _method("choose")
    clip = _method("clip")
    conj = _method("conj")
    conjugate = _method("conjugate")
    cumprod = _method("cumprod")
    cumsum = _method("cumsum")
    diagonal = _method("diagonal")
    dot = _method("dot")
    nonzero = _method("nonzero")
    put = _method("put")
    ravel = _method("ravel")
    repeat = _method("repeat")
    round = _method("round")
    searchsorted = _method("searchsorted")
    squeeze = _method("squeeze")
    swapaxes = _method("swapaxes")
    take = _method("take")
    trace = _method("trace")

    def __setitem__(self, key: Any, value: Any) -> None:
        raise NotImplementedError

    @property
    def real(self) -> Any:
        """The real parts."""
        return recorded(np.real)(self)

    @real.setter
    def real(self, value: Any) -> None:
        self[...] = value + 1j * self.imag if self._expression.dtype.kind == "c" else value

    @property
    def imag(self) -> Any:
        """The imaginary parts."""
        return recorded(np.imag)(self)

    @imag.setter
    def imag(self, value: Any) -> None:
        if self._expression.dtype.kind != "c":
            raise DTypeError(
                f"x.imag = ... on {self._expression.dtype}, which has no imaginary part: x = x + 1j * ..."
            )
        self[...] = self.real + 1j * value

    def reshape(self, *shape: Any, order: str | None = "C", copy: bool | None = None) -> Any:
        """Return the elements, last axis fastest, in another shape; -1 is what the others leave."""
        lengths = shape[0] if len(shape) == 1 else shape
        return recorded(np.reshape)(self, lengths, order=order, copy=copy)

    def flatten(self, order: str = "C") -> Any:
        """Return the elements along one axis, last axis fastest."""
        return lost_writes.owned(recorded(np.ravel)(self, order=order))

    def resize(self, *shape: Any, refcheck: bool = True) -> None:
        """Raise, since blocks are never resized where they are."""
        lengths = shape[0] if len(shape) == 1 else shape
        raise UnsupportedError(
            f"x.resize({lengths!r}) would change an array in place: use x = np.resize(x, {lengths!r}), or "
            "np.pad"
        )

    def compress(self, condition: Any, axis: int | None = None, out: Any = None) -> Any:
        """Return the parts along an axis where a condition is true."""
        return recorded(np.compress)(condition, self, axis=axis, out=out)

    def sort(
        self, axis: int = -1, kind: str | None = None, order: None = None, *, stable: bool | None = None
    ) -> None:
        """Sort along an axis; the handle changes, as by an assignment."""
        self[...] = recorded(np.sort)(self, axis=axis, stable=stable)

    def partition(self, kth: Any, axis: int = -1, kind: str = "introselect", order: None = None) -> None:
        """Put what a sort would have at ``kth`` there, less before, more behind; the handle changes."""
        self[...] = recorded(np.partition)(self, kth, axis=axis)


class _OfSparse:
    # A method that dense arrays lack: libraries ask by its name whether an array is sparse, as plt.spy does.

    def __init__(self, method: Callable[..., Any]) -> None:
        self._method = method
        self.__doc__ = method.__doc__

    def __get__(self, handle: Values | None, owner: type) -> Any:
        if handle is not None and not handle.sparse:
            raise AttributeError  # __getattr__ says what to write
        return self._method if handle is None else self._method.__get__(handle)


Result = np.ndarray | np.generic  # what NumPy code receives
CPU = 1, 0  # the kind of device and its number, as DLPack counts


class Values(Known):
    """What a handle gives where its values are asked for."""

    __slots__ = ()

    def compute(self) -> Result | GCXS:
        """Compute the array and return it: NumPy's array, or scalar when 0-d; ``sparse.GCXS`` when sparse.

        What is ``sparse.GCXS`` has ``todense()`` and ``to_scipy_sparse()``; :meth:`toarray` and
        :meth:`to_scipy` of the DistArray give the same at once.

        Raises
        ------
        TooLargeError
            When the result exceeds the session's ``compute_limit``.
        """
        block = value_of(self._expression, _live_nodes)
        if not isinstance(block, Dense):
            return to_gcxs(block)
        return block.values if block.shape else block.values[()]

    def to_scipy(self) -> sp.csr_array:
        """Compute a sparse array and return it as SciPy's CSR array."""
        if not self.sparse:
            raise DTypeError("the array is dense; use x.compute(), or scipy.sparse.csr_array(x.compute())")
        block = evaluator().value(self._expression)
        assert not isinstance(block, Dense)
        return to_scipy(block)

    @_OfSparse
    def tocsr(self, copy: bool = False) -> sp.csr_array:
        """Compute a sparse array and return it as SciPy's CSR array; dense arrays have no such method.

        Raises
        ------
        TooLargeError
            When its entries exceed the session's ``compute_limit``; so do :meth:`tocsc` and :meth:`tocoo`.
        """
        return self.to_scipy()

    @_OfSparse
    def tocsc(self, copy: bool = False) -> sp.csc_array:
        """Compute a sparse array and return it as SciPy's CSC array; dense arrays have no such method."""
        return self.to_scipy().tocsc()

    @_OfSparse
    def tocoo(self, copy: bool = True) -> sp.coo_array:
        """Compute a sparse array and return it as SciPy's COO array; dense arrays have no such method."""
        return self.to_scipy().tocoo(copy=False)

    def to_numpy(self, dtype: npt.DTypeLike | None = None, copy: bool = False) -> np.ndarray:
        """Compute the array and return all elements as a NumPy array of its own, as pandas' method does.

        Absent elements of a sparse array are zeros; :meth:`tocoo` keeps it sparse.

        Parameters
        ----------
        dtype
            Of the result, converted as ``astype`` does; by default that of the array.
        copy
            For pandas' sake: it is always a copy.

        Raises
        ------
        TooLargeError
            When all elements exceed the session's ``compute_limit``.

        Examples
        --------
        >>> import matnb as mn
        >>> mn.arange(3.0).to_numpy()
        array([0., 1., 2.])
        """
        return self.__array__(dtype)

    def toarray(self, order: Literal["C", "F"] | None = None, out: np.ndarray | None = None) -> np.ndarray:
        """Compute the array and return all elements as a NumPy array, or in ``out``, as SciPy's method does.

        Raises
        ------
        TooLargeError
            When all elements exceed the session's ``compute_limit``.
        """
        values = np.asarray(self.__array__(), order=order)
        if out is None:
            return values
        out[...] = values
        return out

    todense = toarray

    def persist(self) -> Self:
        """Compute the array, keep its blocks on the workers, and return this handle."""
        evaluator().persist([self._expression])
        return self

    def explain(self, stage: str | None = None, measured: bool = False) -> str:
        """Return how the array is computed: recorded, after each pass, and the plan; nothing is computed.

        Of what is there already, and of stages that ran before, what was made is told beside the estimates.

        Parameters
        ----------
        stage
            Only "recorded", the name of a pass, "plan", or "place", which says how workers were chosen.
        measured
            Whether seconds of the last run are told, too; the text depends on time then.

        Raises
        ------
        OptionError
            For a stage that there is not; the message names them.

        Examples
        --------
        >>> import matnb as mn
        >>> x = mn.ones(4)
        >>> print((x * 1).explain(stage="identities"))
        after identities
             e0  full                                          (4,) float64, about 32 B, = value
        """
        return evaluator().explain({"value": self._expression}, stage, measured)

    def facts(self) -> ArrayFacts:
        """Return what is known of the array, computing nothing."""
        return evaluator().facts(self._expression)

    # What scipy.sparse.linalg asks of a matrix: NumPy's arrays in and out, and products on the workers.

    def matvec(self, x: npt.ArrayLike) -> np.ndarray:
        """Compute ``A @ x`` for a NumPy vector of shape (n,) or (n, 1), as SciPy's solvers ask.

        Raises
        ------
        ShapeError
            When the shapes do not fit.
        TooLargeError
            When the product exceeds the session's ``compute_limit``.
        """
        return self._product(np.asarray(x), False)

    def rmatvec(self, x: npt.ArrayLike) -> np.ndarray:
        """Compute the product of the conjugate transpose with a NumPy vector of shape (m,) or (m, 1)."""
        vector = np.asarray(x)
        if self.dtype.kind != "c":
            return self._product(vector, True)
        return self._product(vector.conj(), True).conj()  # the conjugate of the transpose with that of x

    def matmat(self, X: npt.ArrayLike) -> np.ndarray:
        """Compute ``A @ X`` for a NumPy matrix of shape (n, k)."""
        return self.matvec(X)

    def rmatmat(self, X: npt.ArrayLike) -> np.ndarray:
        """Compute the product of the conjugate transpose with a NumPy matrix of shape (m, k)."""
        return self.rmatvec(X)

    def _product(self, operand: np.ndarray, transposed: bool) -> np.ndarray:
        if len(self.shape) != 2:
            raise ShapeError(f"an array of shape {self.shape} is not a linear operator: give a matrix")
        refuse_inverses()
        matrix: Any = recorded(np.transpose)(self) if transposed else self
        return np.asarray((matrix @ operand).compute())

    def item(self, *place: int) -> bool | int | float | complex:
        """Return the only element, or the one at a place, as a Python number.

        Parameters
        ----------
        place
            Its number among all, last axis fastest, or one for each axis.

        Raises
        ------
        NotScalarError
            When there are more, or none.
        """
        if place:
            chosen: Any = self if len(place) > 1 else recorded(np.ravel)(self)
            return chosen[place].item()  # type: ignore[no-any-return]  # of one
        if self.size != 1:
            raise NotScalarError(
                f"an array of shape {self.shape} has {self.size} elements; only an array with one "
                "element can be converted to a scalar"
            )
        number: bool | int | float | complex = to_numpy(value_of(self._expression, _live_nodes)).item()
        return number

    def __float__(self) -> float:
        return float(self.item())  # type: ignore[arg-type]  # a complex number raises, as it should

    def __int__(self) -> int:
        return int(self.item())  # type: ignore[arg-type]  # a complex number raises, as it should

    def __complex__(self) -> complex:
        return complex(self.item())

    def __index__(self) -> int:
        if self.ndim or self.dtype.kind not in "iu":  # of one element, too: what asks takes its values then
            raise DTypeError(
                f"an array of shape {self.shape} and dtype {self.dtype} cannot be used as an index"
            )
        return int(self)

    def __bool__(self) -> bool:
        if self.size != 1:
            raise NotScalarError(
                f"the truth value of an array of shape {self.shape} is ambiguous; use .any() or .all(), "
                "and brackets around comparisons: (x > 1) & (y > 1)"
            )
        return bool(self.item())

    def __str__(self) -> str:
        # As NumPy writes it where values are there, or cheap to compute; a number in any case.
        if not self.shape and not self._expression.free:
            return str(self.compute())
        facts = shown(self._expression, starts=True)
        return facts.value if facts.value and not facts.sparse else array_text(facts)

    def __format__(self, spec: str) -> str:
        raise_what_is_hidden()
        if spec and self.shape and self.size != 1:
            raise NotScalarError(
                f"the format {spec!r} is for one number, and an array of shape {self.shape} has {self.size}: "
                f"np.array2string(x.to_numpy(), precision=3) writes all"
            )
        return format(self.compute() if not self.shape else self.item(), spec) if spec else str(self)

    def __round__(self, num_digits: int | None = None) -> Any:
        if self.size != 1:
            return self.round(num_digits or 0)  # type: ignore[attr-defined]  # lazily, as a handle has it
        return round(self.item(), num_digits)  # type: ignore[arg-type]  # as Python rounds it

    def _elements(self, size: int, *form: object) -> NumericArray:
        # All elements, absent ones too, where `size` bytes of a form may come here: asked before computing.
        limit = evaluator().limit(self._expression)
        if size > limit:  # the words take longer to make than a remembered number to find
            check_limit(limit, self._expression, size, " ".join(map(str, form)))
        return to_numpy(value_of(self._expression, _live_nodes))

    def tolist(self) -> Any:
        """Compute the array and return it as nested lists of Python's numbers, or one number.

        Raises
        ------
        TooLargeError
            When the lists, which take some 40 bytes an element, exceed the session's ``compute_limit``.
        """
        return self._elements(list_bytes(self._expression), "lists of Python's numbers").tolist()

    def tobytes(self, order: str = "C") -> bytes:
        """Compute the array and return the bytes of its elements, last axis fastest.

        Raises
        ------
        TooLargeError
            When they exceed the session's ``compute_limit``.
        """
        return self._elements(self.nbytes, "bytes of all elements").tobytes(order)  # type: ignore[arg-type]  # or it raises

    def __bytes__(self) -> bytes:
        return self.tobytes()

    def __contains__(self, value: object) -> bool:
        if self.ndim == 2:
            refuse_networkx()
        return bool((self == value).any())  # type: ignore[attr-defined]  # handles compare elementwise

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> np.ndarray:
        if copy is False:
            raise DTypeError(
                "np.asarray(..., copy=False): the blocks are on the workers, so a copy is needed"
            )
        refuse_outputs()
        if is_scipys_operand():
            return np.empty((), object)  # by which SciPy tells that the operator is for this array to define
        wanted = None if dtype is None else np.dtype(dtype)
        if wanted is not None and wanted.kind == "O" and asks("scipy.sparse._construct"):  # sp.vstack
            (listed := np.empty((), object))[()] = self
            return listed
        if self.sparse and self.ndim == 2 and asks("sklearn"):
            refuse_dense(self.shape, converted_bytes(self._expression, wanted))
        size = converted_bytes(self._expression, wanted)
        is_small = (
            self.sparse and asks("scipy.sparse.csgraph") and size <= evaluator().limit(self._expression)
        )
        if is_small and int(recorded(np.count_nonzero)(self)) < self.nnz:  # type: ignore[call-overload]
            refuse_lost_edges()
        values = self._elements(size, "a dense array of", self.dtype if wanted is None else wanted)
        if self.sparse and asks("scipy.sparse"):
            tell_dense(self.shape, size)
        return values if wanted is None else values.astype(wanted, copy=False)

    def __dlpack__(
        self,
        *,
        stream: None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> object:
        """Compute the array and return it as DLPack's capsule.

        Raises
        ------
        DTypeError
            For ``copy=False``: the blocks are on the workers, so a copy is needed.
        TooLargeError
            When all elements exceed the session's ``compute_limit``.
        """
        values = self.__array__(copy=copy).copy()  # of its own, as DLPack of old knows no read-only memory
        return values.__dlpack__(stream=stream, max_version=max_version, dl_device=dl_device)

    def __dlpack_device__(self) -> tuple[int, int]:
        """Return DLPack's name of the device."""
        return CPU


# The handles by their ids: they compare elementwise, and a weak table of Python's costs much more.
_live: dict[int, ref[DistArray]] = {}
_live_nodes: dict[int, Expr] = {}  # what each stands for


def live_expressions() -> set[Expr]:
    """Return the expressions that some handle stands for now."""
    found = set(_live_nodes.copy().values())
    noted = (NOTED_LABELS.get(one) for one in found) if NOTED_LABELS else ()
    return found.union(one for one in noted if isinstance(one, Expr))


def renew(new: Mapping[Expr, Expr]) -> None:
    """Let every handle stand for what its expression became: another of the same meaning."""
    for handle in _live.copy().values():
        one = handle()
        if one is not None and one._expression in new:
            one._expression = _live_nodes[id(one)] = new[one._expression]


def wrap(node: Expr) -> DistArray:
    """Return a handle on an expression that was just built, and note it in the cell's recording."""
    check_labels(node)
    record = active_recording()
    if record is not None:
        record.note(node)
    return DistArray(node)


def expression_of(value: object) -> Expr:
    """Return the expression of a handle, or of an array or number as a constant."""
    if isinstance(value, DistArray):
        return value.expression
    if hasattr(value, "__matnb_array__"):  # a table, or a column that is not a plain array
        made: DistArray = value.__matnb_array__()
        return made.expression
    check_incoming(value)
    return expression_of_block(block_from(value))


def operand_of(value: object) -> ufuncs.Operand:
    """Return a Python number as it is, since it takes on a dtype; of anything else the expression."""
    if isinstance(value, str | bytes):
        raise DTypeError(f"{value!r} is text, and this array holds numbers: give a number")
    return value if ufuncs.is_weak(value) else expression_of(value)


def handle_of(value: object) -> DistArray:
    """Return a handle itself, or one on an array or number as a constant.

    What NumPy's functions make of handles are handles, though their stubs promise NumPy's arrays.
    """
    return value if isinstance(value, DistArray) else DistArray(expression_of(value))


def expression_of_block(block: Block, names: bytes = b"") -> Expr:
    """Return the expression of a user's data: copied, or sent to the workers at once when it is large.

    Data whose rows have other ``names`` is another expression.
    """
    node, ship_now = given(block, names)
    if ship_now:
        assert isinstance(node, Data)
        evaluator().ship(node, block)
    return node


def leads(kind: type) -> bool:
    """Tell whether values of a type are asked first what NumPy's functions make of them and a handle."""
    return getattr(kind, "__matnb_leads__", False) is True


class DistArray(Methods, Operators, Values):
    """A lazy array, sparse or dense, split into blocks on the workers and computed when a value is asked for.

    It supports NumPy's operators, ufuncs, functions and indexing, including indexing by integer and boolean
    DistArrays. Nothing is computed until ``compute()``, ``float()``, ``np.asarray()``, ``persist()`` or the
    end of a ``%%distmat`` cell. Assigning to elements changes this array but no slice taken from it before:
    slices are not views. An element that a sparse array does not store counts as zero, and its product with
    anything, even infinity, is not stored either.

    Examples
    --------
    >>> import matnb as mn
    >>> x = mn.arange(6.0)
    >>> float((x * x).sum())
    55.0
    """

    __slots__ = ("__weakref__", "_expression")
    __array_priority__ = 1000

    def __init__(self, expression: Expr, labels: Expr | None = None) -> None:
        self._expression = expression
        _live[id(self)], _live_nodes[id(self)] = ref(self), expression
        if labels is not None:
            NOTED_LABELS[expression] = labels

    def __del__(self) -> None:
        _live.pop(id(self), None)
        _live_nodes.pop(id(self), None)
        lost_writes.views.pop(id(self), None)
        if id(self) in lost_writes.noted:
            lost_writes.forget(self)

    def _recorded(self, node: Expr) -> DistArray:
        return wrap(node)

    def _changed_to(self, node: Expr) -> DistArray:
        # A scalar has no elements to change: `s += 1` makes another one, as with NumPy's scalars.
        if not self.shape:
            return wrap(node)
        if node.dtype is self.dtype and node.shape == self.shape:
            self._become(node)  # most often
        else:
            from matnb.lazy.ufunc_calls import into  # which makes handles

            into(self, (node,))
        return self

    @property
    def expression(self) -> Expr:
        """The expression that computes this array."""
        return self._expression

    @property
    def labels(self) -> Any:
        """Labels of the first axis, or None: ids of vertices as a DistArray, a graph's names as NumPy's.

        They follow slices, picked rows and columns, transposes, products, sums along an axis and functions
        element by element, and results of ``mn.graph`` have them. Ids that are 0 to n - 1 are the numbers of
        the rows, and there are no labels. ``without_labels()`` gives an array that has none.
        """
        found = (find(self._expression) for find in LABEL_FINDERS)
        return next((one for one in found if one is not None), None)

    @labels.setter
    def labels(self, labels: object) -> None:
        raise UnsupportedError(
            "labels come with what a matrix is made of: an edge list, a NetworkX graph or a pivot. Keep "
            "others in an array, and use names[places]"
        )

    @property
    def T(self) -> DistArray:
        """Axes in reverse order."""
        return self.transpose()

    def transpose(self, *axes: int | Sequence[int] | None) -> DistArray:
        """Return the array with its axes permuted; by default in reverse order."""
        order = axes[0] if len(axes) == 1 and not isinstance(axes[0], int | np.integer) else axes
        return recorded(np.transpose)(self, order or None)  # type: ignore[return-value]  # what it gives

    def astype(
        self,
        dtype: npt.DTypeLike,
        order: str = "K",
        casting: str = "unsafe",
        subok: bool = True,
        copy: bool = True,
    ) -> DistArray:
        """Return the array converted to a dtype, following NumPy's rules for ``astype``."""
        if (made := METHODS["astype"](self, dtype) if "astype" in METHODS else None) is not None:
            return made  # type: ignore[return-value]  # of a table's column, to which NumPy's rules are unsafe
        return lost_writes.owned(wrap(ufuncs.astype(self._expression, dtype, casting)))

    def eliminate_zeros(self) -> DistArray:
        """Return a copy without stored zeros; unlike SciPy's method, it does not change this array.

        The values stay the same; ``nnz`` is then the number of nonzero elements. Stored zeros matter in some
        semirings: over ``min_plus`` one is an edge of weight 0, and in a pattern it is an edge. A dense array
        is returned unchanged.
        """
        return self.prune(0.0)

    def prune(self, threshold: float) -> DistArray:
        """Return the array without elements whose magnitude is at most a threshold; NaN is kept.

        Parameters
        ----------
        threshold
            Elements whose absolute value is greater are kept, compared as NumPy compares an array with a
            number. With 0 this is :meth:`eliminate_zeros`.

        Returns
        -------
        DistArray
            Of the same shape and dtype. A sparse array loses the entries; a dense one has zeros in their
            place.

        Raises
        ------
        OptionError
            For a threshold that is negative or not a number.

        Examples
        --------
        >>> import matnb as mn
        >>> import scipy.sparse as sp
        >>> A = mn.asarray(sp.csr_array([[0.5, 0.0], [0.25, -2.0]]))
        >>> A.prune(0.4).nnz
        2
        """
        limit = float(threshold) if isinstance(threshold, int | float | np.integer | np.floating) else np.nan
        if not limit >= 0:
            raise OptionError(f"threshold={threshold!r}: give 0 or more")
        if self.sparse:
            return wrap(Prune(self._expression, limit))
        if not limit:
            return self.copy()
        is_small = np.abs(self) <= limit if self.dtype.kind == "c" else (self <= limit) & (self >= -limit)
        return recorded(np.where)(is_small, self.dtype.type(0), self)  # type: ignore[return-value]  # a handle

    def select(self, condition: Any) -> DistArray:
        """Return a sparse array with only the entries where a condition is true, as GraphBLAS's ``select``.

        Parameters
        ----------
        condition
            Booleans of this shape, sparse or dense; elements that are not stored count as False. Or a
            function of three NumPy arrays, the row and column numbers (int64) and the values of some entries,
            that returns a boolean for each. It is called on the workers with the entries of each block, and
            its result must depend on its arguments alone.

        Returns
        -------
        DistArray
            Sparse, of the same shape and dtype; stored zeros are entries like any other.

        Raises
        ------
        DTypeError
            For a dense array: ``np.where(condition, x, 0)``; and for anything other than a boolean.
        ShapeError
            For booleans of another shape.
        OptionError
            For a function that cannot be sent to workers.
        KernelError
            When the function raises on a worker.

        Examples
        --------
        >>> import numpy as np, scipy.sparse as sp, matnb as mn
        >>> A = mn.asarray(sp.csr_array([[1.0, 2.0], [3.0, 4.0]]))
        >>> np.asarray(A.select(lambda row, column, value: (row != column) & (value > 2)))
        array([[0., 0.],
               [3., 0.]])
        >>> A.select(A > 2).nnz
        2
        """
        if not self.sparse:
            raise DTypeError("select works on sparse arrays; for a dense one use np.where(condition, x, 0)")
        if callable(condition):
            from matnb.lazy.functions.portable import portable  # which makes handles

            name = getattr(condition, "__name__", type(condition).__name__)
            return wrap(SelectBy(self._expression, portable(condition, name, "select")))
        mask = expression_of(condition)
        if mask.dtype.kind != "b":
            raise DTypeError(f"select: the condition has dtype {mask.dtype}; give booleans, such as A > 0")
        return wrap(Select(self._expression, mask))

    def count_nonzero(self, axis: int | Sequence[int] | None = None, keepdims: bool = False) -> DistArray:
        """Return the number of nonzero elements, in total or along axes, int64; stored zeros do not count."""
        return recorded(np.count_nonzero)(self, axis, keepdims=keepdims)  # type: ignore[return-value]  # a handle

    def pattern(self, dtype: npt.DTypeLike = bool) -> DistArray:
        """Return the sparsity pattern: a 1 for each stored entry, whatever its value, including stored zeros.

        A pattern takes no memory for values. ``matmul(A, eye(n), semiring="plus_pair")`` is rewritten to it.

        Raises
        ------
        DTypeError
            For a dense array, which stores every element: ``x != 0`` tells which are not 0; and for anything
            other than a dtype of numbers or booleans.

        Examples
        --------
        >>> import scipy.sparse as sp, matnb as mn
        >>> A = mn.asarray(sp.csr_array([[0.0, -2.0], [0.5, 0.0]]))
        >>> np.asarray(A.pattern(int))
        array([[0, 1],
               [1, 0]])
        """
        return wrap(Pattern(self._expression, ufuncs.number_dtype(dtype)))

    def copy(self, order: str = "C") -> DistArray:
        """Return an array with the same values; later assignments to either do not affect the other."""
        return lost_writes.owned(DistArray(self._expression))

    def __getitem__(self, key: Any) -> DistArray:
        from matnb.lazy.indexing.getitem import read  # which makes handles

        if is_in_matplotlib():
            return self.to_numpy()[as_numpy(key)]  # type: ignore[no-any-return]  # which takes it for NumPy's
        found = read(self._expression, key)
        if all(isinstance(one, EllipsisType | slice) for one in (key if type(key) is tuple else (key,))):
            return lost_writes.view(found, self)
        return found

    def __setitem__(self, key: object, value: object) -> None:
        from matnb.lazy.indexing.getitem import written

        self._become(small_parts.written(written(self._expression, key, value), self._expression, key))

    def fill(self, value: object) -> None:
        """Set every element to one value, converted as in an assignment.

        Raises
        ------
        ShapeError
            For several values.
        """
        if isinstance(value, list | tuple) or np.ndim(value):  # type: ignore[arg-type]  # or it raises
            raise ShapeError("fill: give one number; to assign an array, use x[...] = values")
        self[...] = value

    def _become(self, version: Expr) -> None:
        # The handle gets a new version; whoever read the old one keeps it.
        check_labels(version)
        record = active_recording()
        if record is not None:
            record.note(version)
        lost_writes.note_write(self, self._expression, _live_nodes)
        self._expression = _live_nodes[id(self)] = version

    def __copy__(self) -> DistArray:
        return self.copy()

    def __deepcopy__(self, memo: object) -> DistArray:
        return self.copy()

    def __reduce__(self) -> NoReturn:
        refuse_pickling()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # libraries ask for protocols that there are not
            refuse_dask(name, "a DistArray")
            if name == "_adj":
                refuse_networkx()
            raise AttributeError(f"DistArray has no attribute {name!r}")
        is_sparse = self.sparse
        methods = SPARSE_METHODS if is_sparse else METHODS
        if name in methods:
            return MethodType(methods[name], self)
        for_networkx = asks("networkx")
        if name == "format" and is_sparse and for_networkx:
            return "distributed"  # by which it takes what tocoo() gives
        raise no_attribute(
            "DistArray",
            name,
            lambda: dir(self),
            lambda: instead_of("adj" if for_networkx else name, is_sparse),
        )

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *(SPARSE_METHODS if self.sparse else METHODS)]

    def __len__(self) -> int:
        if not self.shape:
            raise NotScalarError("a 0-d array has no length")
        return self.shape[0]

    def __iter__(self) -> Iterator[Any]:
        # Of one axis its elements, as NumPy's numbers, in chunks; of more axes rows, each a DistArray.
        if not self.shape:
            raise NotScalarError("a 0-d array cannot be iterated over")
        node = self._expression
        if is_in_matplotlib():
            return iter(self.to_numpy())
        if self.ndim == 2:
            refuse_networkx()
        if self.ndim == 1 and not node.free:
            return itertools.chain.from_iterable(chunks_of(node))
        note_iteration(node)
        return map(DistArray(node).__getitem__, range(self.shape[0]))

    def __reversed__(self) -> Iterator[Any]:
        return iter(self[::-1])

    # NumPy's protocols

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: object, **options: object) -> object:
        from matnb.lazy.ufunc_calls import called  # which makes handles

        if is_in_matplotlib():
            return getattr(ufunc, method)(*as_numpy(inputs), **as_numpy(options))
        if any(map(leads, map(type, inputs))):
            return NotImplemented  # a nested array, a table or a column with a mask takes others with it
        return called(ufunc, method, inputs, options)

    def __array_function__(
        self,
        function: Callable[..., object],
        types: Sequence[type],
        args: Sequence[object],
        kwargs: Mapping[str, object],
    ) -> object:
        if is_in_matplotlib():
            return function(*as_numpy(args), **as_numpy(kwargs))
        return NotImplemented if any(map(leads, types)) else recorded(function)(*args, **kwargs)

    def __repr__(self) -> str:
        is_read = hasattr(sys, "ps1")  # by somebody at a prompt
        return array_text(shown(self._expression, starts=is_read))

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        facts = shown(self._expression, starts=True)
        return {"text/plain": array_text(facts), "text/html": array_html(facts)}
