"""The values of handles: what computes, and what tells how it will be computed."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from matnb.blocks.formats import Dense, NumericArray, to_gcxs, to_numpy, to_scipy
from matnb.errors import DTypeError, NotScalarError, ShapeError
from matnb.lazy.evaluator import evaluator
from matnb.lazy.known import Known
from matnb.lazy.limits import check_limit, converted_bytes, list_bytes
from matnb.lazy.registry import recorded
from matnb.pictures.facts import ArrayFacts

if TYPE_CHECKING:
    from sparse import GCXS

# SciPy's sparse arrays ask NumPy for a right operand as an array, and leave the operator to what gives none.
_SCIPYS_OPERATORS = frozenset(
    f"__{name}__" for name in ("matmul", "mul", "truediv", "eq", "ne", "lt", "le", "gt", "ge")
)
_FRAMES_TO_OPERATOR = 4  # from the operator to what asks, as in __mul__, multiply and what broadcasts there
Result = np.ndarray | np.generic  # what NumPy code receives
CPU = 1, 0  # the kind of device and its number, as DLPack counts


class Values(Known):
    """What a handle gives where its values are asked for."""

    __slots__ = ()

    def compute(self) -> Result | GCXS:
        """Compute the array and return it: NumPy's array, or scalar when 0-d; ``sparse.GCXS`` when sparse.

        Raises
        ------
        TooLargeError
            When the result exceeds the session's ``compute_limit``.
        """
        block = evaluator().value(self._expression)
        if not isinstance(block, Dense):
            return to_gcxs(block)
        return block.values if block.shape else block.values[()]

    def to_scipy(self) -> sp.csr_array:
        """Compute a sparse array and return it as SciPy's CSR array."""
        if not self.sparse:
            raise DTypeError("a dense array; use compute(), or scipy.sparse.csr_array(x.compute())")
        block = evaluator().value(self._expression)
        assert not isinstance(block, Dense)
        return to_scipy(block)

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
            Only "recorded", the name of a pass, or "plan".
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
             e0  full                                         (4,) float64  = value
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
            raise ShapeError(f"an array of shape {self.shape} is no linear operator: give a matrix")
        matrix: Any = recorded(np.transpose)(self) if transposed else self
        return np.asarray((matrix @ operand).compute())

    def item(self) -> bool | int | float | complex:
        """Return the only element as a Python number.

        Raises
        ------
        NotScalarError
            When there are more, or none.
        """
        if self.size != 1:
            raise NotScalarError(f"an array of shape {self.shape} holds {self.size} elements, not one")
        number: bool | int | float | complex = to_numpy(evaluator().value(self._expression)).item()
        return number

    def __float__(self) -> float:
        return float(self.item())  # type: ignore[arg-type]  # a complex number raises, as it should

    def __int__(self) -> int:
        return int(self.item())  # type: ignore[arg-type]  # a complex number raises, as it should

    def __complex__(self) -> complex:
        return complex(self.item())

    def __index__(self) -> int:
        if self.dtype.kind not in "iu":
            raise DTypeError(f"an array of dtype {self.dtype} is no index")
        return int(self)

    def __bool__(self) -> bool:
        if self.size != 1:
            raise NotScalarError(
                f"the truth of an array of shape {self.shape} is ambiguous; use .any() or .all()"
            )
        return bool(self.item())

    def __str__(self) -> str:
        # As in an f-string: a number is told, an array described.
        return repr(self) if self.shape or self._expression.free else str(self.item())

    def __format__(self, spec: str) -> str:
        return format(self.item(), spec) if spec or not self.shape else repr(self)

    def __round__(self, num_digits: int | None = None) -> float:
        return round(self.item(), num_digits)  # type: ignore[arg-type]  # as Python rounds it

    def _elements(self, size: int, *form: object) -> NumericArray:
        # All elements, absent ones too, where `size` bytes of a form may come here: asked before computing.
        limit = evaluator().limit(self._expression)
        if size > limit:  # the words take longer to make than a remembered number to find
            check_limit(limit, self._expression, size, " ".join(map(str, form)))
        return to_numpy(evaluator().value(self._expression))

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
        return bool((self == value).any())  # type: ignore[attr-defined]  # handles compare elementwise

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> np.ndarray:
        if copy is False:
            raise DTypeError(
                "np.asarray(..., copy=False): the blocks are on the workers, so a copy is needed"
            )
        if _is_scipys_operand():
            return np.empty((), object)  # by which SciPy tells that the operator is for this array to define
        wanted = None if dtype is None else np.dtype(dtype)
        size = converted_bytes(self._expression, wanted)
        values = self._elements(size, "a dense array of", self.dtype if wanted is None else wanted)
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


def _is_scipys_operand() -> bool:
    # Whether the array is asked for by an operator of SciPy's sparse arrays, `S @ x`, and by nothing else of
    # theirs: what called np.asanyarray is its frame, or one that it called.
    frame = sys._getframe(2)
    for _ in range(_FRAMES_TO_OPERATOR):
        if not str(frame.f_globals.get("__name__")).startswith("scipy.sparse._"):
            return False
        if frame.f_code.co_name in _SCIPYS_OPERATORS:
            return True
        if frame.f_back is None:
            return False
        frame = frame.f_back
    return False
