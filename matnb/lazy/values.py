"""What a handle gives where its values are asked for, or what is known of them."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from matnb.blocks.formats import Dense, NumericArray, to_gcxs, to_numpy, to_scipy
from matnb.errors import DTypeError, NotScalarError, OptionError, ShapeError
from matnb.lazy import reductions
from matnb.lazy.element_reads import value_of
from matnb.lazy.evaluator import evaluator, shown
from matnb.lazy.foreign_names import (
    asks,
    is_scipys_operand,
    raise_what_is_hidden,
    refuse_dense,
    refuse_inverses,
    refuse_lost_edges,
    refuse_networkx,
    refuse_outputs,
    tell_dense,
)
from matnb.lazy.handles import Handle, live_nodes, noted
from matnb.lazy.limits import check_limit, converted_bytes, list_bytes
from matnb.lazy.registry import recorded
from matnb.pictures.arrays import array_text
from matnb.pictures.facts import ArrayFacts

if TYPE_CHECKING:
    from sparse import GCXS


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


class Values(Handle):
    """What a handle gives where its values are asked for; the array API standard's namespace and device."""

    __slots__ = ()

    @property
    def nnz(self) -> int:
        """Number of stored entries; counted on the workers when it is not known yet."""
        known = evaluator().facts(self._expression).nnz
        if known is not None:
            return known
        return int(Values(noted(reductions.reduce(self._expression, "stored"))))

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

    def compute(self) -> Result | GCXS:
        """Compute the array and return it: NumPy's array, or scalar when 0-d; ``sparse.GCXS`` when sparse.

        What is ``sparse.GCXS`` has ``todense()`` and ``to_scipy_sparse()``; :meth:`toarray` and
        :meth:`to_scipy` of the DistArray give the same at once.

        Raises
        ------
        TooLargeError
            When the result exceeds the session's ``compute_limit``.
        """
        block = value_of(self._expression, live_nodes)
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
        number: bool | int | float | complex = to_numpy(value_of(self._expression, live_nodes)).item()
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
        return to_numpy(value_of(self._expression, live_nodes))

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
        if is_small and int(recorded(np.count_nonzero)(self)) < self.nnz:
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
