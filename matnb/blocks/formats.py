"""The formats of one block: Dense, Csr (patterns store no values), Empty; zero-copy conversions; casts."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
import sparse

from matnb.blocks.foreign import array_of
from matnb.errors import DTypeError, MatnbError, ShapeError, TooLargeError

SPARSE_DTYPES = tuple(  # of compiled loops
    map(np.dtype, ("float64", "float32", "int64", "int32", "bool", "complex128", "complex64"))
)
MAX_ENTRIES = 2**31 - 1  # row pointers are 32-bit; a larger block is cut finer
# From how many on arrays are aligned, and to what. Smaller ones the allocator gives again as they are; with
# a few bytes more it gave memory back to the system and asked for it anew in each run: 200 page faults.
_ALIGNED_BYTES, _LINE = 2**22, 64
LARGEST_LENGTH = 2**31 - 1  # rows or columns of a sparse array: one block may have them all
NumericArray: TypeAlias = np.ndarray[tuple[int, ...], np.dtype[np.generic]]
IndexArray: TypeAlias = npt.NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class Dense:
    """A block that stores every element, N-D, as one NumPy array."""

    values: NumericArray

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take what was pickled."""
        self.__dict__.update(_aligned(state))

    @property
    def shape(self) -> tuple[int, ...]:
        """Lengths."""
        return self.values.shape

    @property
    def dtype(self) -> np.dtype:
        """Type of the elements."""
        return self.values.dtype

    @property
    def nnz(self) -> int:
        """Number of stored entries: all of them."""
        return self.values.size

    @property
    def nbytes(self) -> int:
        """Memory held."""
        return self.values.nbytes


@dataclass(frozen=True, eq=False)
class Csr:
    """A two-dimensional block stored by rows, columns sorted within a row and none twice.

    Parameters
    ----------
    shape
        Rows and columns of the block.
    pointers
        int32, ``rows + 1``: where each row starts.
    columns
        int32, local column of each stored entry.
    values
        The entries, or None for a pattern-only block, whose stored entries are all 1.
    dtype
        Type of the entries; what a pattern-only block's ones are read as.
    """

    shape: tuple[int, int]
    pointers: IndexArray
    columns: IndexArray
    values: NumericArray | None
    dtype: np.dtype

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take what was pickled."""
        self.__dict__.update(_aligned(state))

    @property
    def nnz(self) -> int:
        """Number of stored entries, stored zeros included."""
        return self.columns.size

    @property
    def nbytes(self) -> int:
        """Memory held."""
        held = self.pointers.nbytes + self.columns.nbytes
        return held if self.values is None else held + self.values.nbytes

    @property
    def entries(self) -> NumericArray:
        """The values, made anew (all ones) for a pattern-only block."""
        return np.ones(self.nnz, self.dtype) if self.values is None else self.values


@dataclass(frozen=True, eq=False)
class Empty:
    """A sparse block without a stored entry."""

    shape: tuple[int, int]
    dtype: np.dtype

    nnz = 0
    nbytes = 0


Block: TypeAlias = Dense | Csr | Empty
SparseBlock: TypeAlias = Csr | Empty


def is_sparse(block: Block) -> bool:
    """Tell whether absent elements of the block are not stored."""
    return not isinstance(block, Dense)


def uninitialized(shape: tuple[int, ...], dtype: np.dtype) -> NumericArray:
    """Return an array in C order with any elements; a large one begins where a line of the cache does.

    NumPy asks the system for huge pages, and begins 16 bytes after a line: then eight doubles of a row lie
    across two lines, and loops that read rows here and there wait for both.
    """
    size = prod(shape) * dtype.itemsize
    if size < _ALIGNED_BYTES:
        return np.empty(shape, dtype)
    memory = np.empty(size + _LINE, np.uint8)
    return np.ndarray(shape, dtype, memory, -memory.ctypes.data % _LINE)


def _aligned(state: dict[str, Any]) -> dict[str, Any]:
    # What came in a message may begin at any byte. There NumPy goes around BLAS, which adds in another
    # order, and for a compiled loop it is another type.
    found = dict(state)
    for name, value in state.items():
        if isinstance(value, np.ndarray) and not value.flags.aligned:
            found[name] = value.copy(order="K")
            found[name].flags.writeable = value.flags.writeable
    return found


def freeze(block: Block) -> Block:
    """Make the arrays of a block read-only, as they must be before others see it, and return it."""
    match block:
        case Dense(values):
            values.flags.writeable = False
        case Csr(_, pointers, columns, values, _):
            for array in (pointers, columns, values):
                if array is not None:
                    array.flags.writeable = False
    return block


def check_lengths(shape: tuple[int, ...]) -> None:
    """Refuse a sparse array with more rows or columns than 32-bit indices can name.

    Every sparse array is asked when it is recorded, however it is made, so that no kernel meets a longer one.

    Raises
    ------
    TooLargeError
        Naming the shape and the limit.
    """
    if max(shape) > LARGEST_LENGTH:
        raise TooLargeError(
            f"a sparse array of shape {shape}: it can have at most {LARGEST_LENGTH:,} rows and columns; keep "
            "its parts as arrays of their own, or leave out rows and columns without an entry"
        )


def narrow(indices: np.ndarray[tuple[int], np.dtype[np.integer]]) -> IndexArray:
    """Return 32-bit indices: the same memory where they are, a checked copy where SciPy widened them.

    Raises
    ------
    TooLargeError
        When an index needs more than 31 bits.
    """
    if indices.dtype == np.int32:
        return indices  # type: ignore[return-value]  # the dtype was just compared
    if indices.size and int(indices.max()) > MAX_ENTRIES:
        raise TooLargeError(f"a block with an index of {int(indices.max())}: cut the array into more blocks")
    return indices.astype(np.int32)


def csr_block(matrix: sp.csr_array | sp.csr_matrix, pattern: bool = False) -> SparseBlock:
    """Return a SciPy CSR matrix as a block; arrays are shared where index types agree and columns are sorted.

    Parameters
    ----------
    matrix
        Two-dimensional; duplicates are summed and columns sorted, in a copy.
    pattern
        Forget the values, so that every stored entry is 1.
    """
    rows, columns = matrix.shape
    if not matrix.has_canonical_format:
        matrix = matrix.copy()
        matrix.sum_duplicates()
    if matrix.nnz == 0:
        return Empty((rows, columns), matrix.dtype)
    values = None if pattern else matrix.data[: matrix.nnz]
    pointers, indices = narrow(matrix.indptr[:]), narrow(matrix.indices[: matrix.nnz])
    return Csr((rows, columns), pointers, indices, values, matrix.dtype)


def to_scipy(block: SparseBlock) -> sp.csr_array:
    """Return a sparse block as SciPy's CSR array, sharing its memory; a pattern-only block gets its ones."""
    if isinstance(block, Empty):
        nothing: sp.csr_array = sp.csr_array(block.shape, dtype=block.dtype)
        return nothing
    parts = (block.entries, block.columns, block.pointers)
    matrix = sp.csr_array(parts, shape=block.shape, copy=False)  # type: ignore[type-var]  # stubs: numbers
    matrix.has_canonical_format = True
    return matrix


def to_numpy(block: Block) -> NumericArray:
    """Return the elements as a NumPy array: the block's own memory if Dense, else a new array with zeros."""
    if isinstance(block, Dense):
        return block.values
    # Not by SciPy, which adds the entries to zeros, so that -0.0 loses its sign, and has no float16.
    elements: NumericArray = np.zeros(block.shape, block.dtype)
    if isinstance(block, Csr):
        rows = np.repeat(np.arange(block.shape[0]), np.diff(block.pointers))
        elements[rows, block.columns] = 1 if block.values is None else block.values
    return elements


def to_gcxs(block: SparseBlock) -> sparse.GCXS:
    """Return a sparse block as ``sparse.GCXS`` compressed by rows, sharing its memory."""
    if isinstance(block, Empty):
        pointers = np.zeros(block.shape[0] + 1, np.int32)
        parts = (np.empty(0, block.dtype), np.empty(0, np.int32), pointers)
    else:
        parts = (block.entries, block.columns, block.pointers)
    # Not by its constructor: that compiles a check of what is well formed here already, 4 s in each process,
    # and an interrupt meanwhile leaves Numba without types that it was about to register. What the attributes
    # are called is its own affair: hence the upper bound on its version.
    array = sparse.GCXS.__new__(sparse.GCXS)
    array.data, array.indices, array.indptr = parts
    array.shape, array._compressed_axes, array.fill_value = block.shape, (0,), block.dtype.type(0)
    return array


def block_from(data: object) -> Block:
    """Return an array, or what stands for one, as one block, sharing memory where layouts agree.

    Elements of another byte order than this machine's are converted, in a copy. A sparse array of ones, as of
    an unweighted graph, becomes a pattern-only block.

    Raises
    ------
    DTypeError
        For an object, string or record dtype, for masked elements, and for anything other than an array.
    ShapeError
        For a sparse array that is malformed, not two-dimensional, or has a fill value other than 0.
    TooLargeError
        For a sparse array of 2**31 or more rows or columns.
    """
    data = array_of(data)
    if isinstance(data, sparse.SparseArray):
        data = _scipy_from(data)
    if isinstance(data, sp.sparray | sp.spmatrix):
        # The stubs give these attributes to each format, and none to what they have in common.
        _check_axes(data.ndim)  # type: ignore[union-attr]  # see above
        check_lengths(data.shape)  # type: ignore[union-attr]  # see above
        check_scipy(data)
        native = _native(data.dtype)  # type: ignore[union-attr]  # see above
        matrix = data.tocsr()  # type: ignore[union-attr]  # see above
        if matrix is not data:  # what holds nothing to check may have given what is malformed
            check_scipy(matrix)
        matrix = matrix if matrix.dtype == native else matrix.astype(native)
        return csr_block(matrix, pattern=matrix.has_canonical_format and all_ones(matrix.data))
    try:
        values = np.asarray(data)
    except MatnbError:  # of an array of ours that is in a list
        raise
    except ValueError as error:  # lists of unequal lengths
        raise ShapeError(f"this {type(data).__name__} cannot be converted to an array: {error}") from None
    except (TypeError, RuntimeError) as error:  # of another library's array that does not come by itself
        raise DTypeError(f"this {type(data).__name__} cannot be converted to an array: {error}") from None
    # A view, so that freezing the block does not make the array of its owner read-only.
    return Dense(values.astype(_native(values.dtype), copy=False).view())


def all_ones(values: NumericArray) -> bool:
    """Tell whether every value is exactly 1; mostly the first few tell."""
    return bool((values[:64] == 1).all() and (values == 1).all())


def _scipy_from(array: sparse.SparseArray) -> sp.sparray:
    _check_axes(array.ndim)
    check_lengths(array.shape)
    if array.fill_value != 0:
        raise ShapeError(
            f"a sparse array has fill value {array.fill_value!r}: only a fill value of 0 is supported"
        )
    if isinstance(array, sparse.DOK):
        array = array.to_coo()
    check_sparse(array)
    if isinstance(array, sparse.GCXS) and tuple(array.compressed_axes) == (0,):
        return sp.csr_array((array.data, array.indices, array.indptr), shape=array.shape, copy=False)
    other: sp.sparray = array.to_scipy_sparse()
    return other


def _check_axes(ndim: int) -> None:
    if ndim != 2:
        raise ShapeError(f"a sparse array of {ndim} axes: sparse arrays here have two; use a dense one")


_WAYS = {
    "O": "; x.astype(float) makes floats of Python's own numbers",
    "M": "; x.astype(np.int64) counts its units since 1970",
    "m": "; x.astype(np.int64) counts its units",
    "S": "; x.astype(float) reads numbers in text, mn.load those of a file",
    "U": "; x.astype(float) reads numbers in text, mn.load those of a file",
    "V": "; a record's fields are arrays: x['name']",
}


def _native(dtype: np.dtype) -> np.dtype:
    if dtype.kind not in "biufc":
        raise DTypeError(f"elements have dtype {dtype}: give numbers or booleans{_WAYS.get(dtype.kind, '')}")
    return dtype.newbyteorder("=")


def sparse_bytes(rows: int, nnz: int, dtype: np.dtype, pattern: bool = False) -> int:
    """Return the bytes that a Csr block of these counts holds."""
    return 4 * (rows + 1) + nnz * (4 + (0 if pattern else dtype.itemsize))


def dense_bytes(shape: tuple[int, ...], dtype: np.dtype) -> int:
    """Return the bytes that a Dense block of this shape holds."""
    return prod(shape) * dtype.itemsize


# Whether the parts of a sparse array from outside fit together; kernels trust them to stay in memory.

_Indices = npt.NDArray[np.integer]


def check_scipy(matrix: sp.sparray | sp.spmatrix) -> None:
    """Check a SciPy array that is compressed (CSR, CSC, BSR) or of coordinates; others hold nothing to trust.

    Raises
    ------
    ShapeError
        Saying which part is wrong.
    """
    rows, columns = matrix.shape  # type: ignore[union-attr]  # the stubs give it to each format only
    match matrix:
        case sp.csr_array() | sp.csr_matrix():
            check_compressed(matrix.indptr, matrix.indices, len(matrix.data), rows, columns)
        case sp.csc_array() | sp.csc_matrix():
            check_compressed(matrix.indptr, matrix.indices, len(matrix.data), columns, rows)
        case sp.bsr_array() | sp.bsr_matrix():
            tall, wide = matrix.blocksize
            check_compressed(matrix.indptr, matrix.indices, len(matrix.data), rows // tall, columns // wide)
        case sp.coo_array() | sp.coo_matrix():
            check_coordinates(matrix.coords, len(matrix.data), (rows, columns))


def check_sparse(array: sparse.SparseArray) -> None:
    """Check a two-dimensional array of the ``sparse`` package; errors as :func:`check_scipy`."""
    if isinstance(array, sparse.COO):
        check_coordinates(tuple(array.coords), len(array.data), array.shape)
    elif isinstance(array, sparse.GCXS):
        (major,) = array.compressed_axes
        lengths = array.shape[major], array.shape[1 - major]
        check_compressed(array.indptr, array.indices, len(array.data), *lengths)


def check_compressed(
    pointers: _Indices, indices: _Indices, num_entries: int, num_major: int, num_minor: int
) -> None:
    """Check the parts of a matrix that is stored row by row, or column by column.

    Entries behind those that the last pointer ends at are allowed, as SciPy allows them.
    """
    if len(pointers) != num_major + 1:
        raise _malformed(f"{len(pointers)} pointers where {num_major + 1} are needed")
    if len(indices) != num_entries:
        raise _malformed(f"{len(indices)} indices and {num_entries} entries")
    if pointers[0] != 0:
        raise _malformed(f"pointers start at {pointers[0]} instead of 0")
    falls = np.flatnonzero(pointers[1:] < pointers[:-1])
    if falls.size:
        place = int(falls[0])
        raise _malformed(
            f"pointer {place + 1} is {pointers[place + 1]}, less than {pointers[place]} before it"
        )
    if pointers[-1] > num_entries:
        raise _malformed(f"pointers end at {pointers[-1]} but there are {num_entries} entries")
    _check_range(indices[: int(pointers[-1])], num_minor)


def check_coordinates(coordinates: tuple[_Indices, ...], num_entries: int, shape: tuple[int, ...]) -> None:
    """Check the parts of an array that is stored as coordinates."""
    for indices, length in zip(coordinates, shape, strict=True):
        if len(indices) != num_entries:
            raise _malformed(f"{len(indices)} indices and {num_entries} entries")
        _check_range(indices, length)


def _check_range(indices: _Indices, length: int) -> None:
    if not indices.size:
        return
    for index in (indices.min(), indices.max()):
        if not 0 <= index < length:
            raise _malformed(f"an index of {index} along an axis of length {length}")


def _malformed(reason: str) -> ShapeError:
    return ShapeError(f"the sparse array is malformed: {reason}; build it again")


def cast(values: NumericArray, dtype: np.dtype, copy: bool = False) -> NumericArray:
    """Return the values as ``dtype``: the same array where it is that already, unless ``copy``.

    What NumPy warns of (a lost imaginary part, an overflow, NaN to integer) happens without a warning.
    """
    if not copy and values.dtype == dtype:
        return values
    if values.dtype.kind == "c" and dtype.kind not in "cb":
        values = values.real  # what astype does too, but there with a warning that errstate does not govern
    with np.errstate(all="ignore"):
        return values.astype(dtype, copy=copy)


def entries_as(block: Csr, dtype: np.dtype) -> NumericArray:
    """Return the entries of a block as ``dtype``: its own where they are that already, ones of a pattern."""
    return np.ones(block.nnz, dtype) if block.values is None else cast(block.values, dtype)


def signed(places: NumericArray) -> npt.NDArray[np.int32] | npt.NDArray[np.int64]:
    """Return whole numbers of any dtype as signed ones: beyond 63 bits no array has a place, nor then."""
    if places.dtype == np.int32:
        return places.view(np.int32)
    if places.dtype == np.uint64:
        places = np.minimum(places, np.uint64(np.iinfo(np.int64).max))
    return places.astype(np.int64, copy=False)
