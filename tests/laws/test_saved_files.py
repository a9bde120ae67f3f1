"""Saving and loading are inverse: every type that a file can hold comes back, or saving refuses."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import scipy.io
import scipy.sparse as sp
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays_of
from reading import read_whole

import matnb as mn
from matnb.blocks.formats import Block, Csr, Dense, Empty
from matnb.blocks.grid import Grid
from matnb.errors import UnsupportedError
from matnb.io.source import open_source
from matnb.io.write import write

SMALL = settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture])
TEXTS = st.one_of(
    st.sampled_from(
        ["02134", "NA", "None", "true", "", "1", "1.5", "2020-01-01", "nan", "a\nb", 'q"q', ",", " x "]
    ),
    st.text(st.characters(exclude_categories=("Cs",)), max_size=5),
)
MOMENTS = st.datetimes(datetime.datetime(1700, 1, 1), datetime.datetime(2200, 1, 1))
VALUES: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "text": (pa.string(), TEXTS),
    "int8": (pa.int8(), st.integers(-128, 127)),
    "int64": (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    "uint64": (pa.uint64(), st.integers(0, 2**64 - 1)),
    "float": (pa.float64(), st.floats(allow_nan=False)),
    "float32": (pa.float32(), st.floats(width=32, allow_nan=False)),
    "bool": (pa.bool_(), st.booleans()),
    "day": (pa.date32(), st.dates(datetime.date(1, 1, 1), datetime.date(9999, 12, 31))),
    "second": (pa.timestamp("s"), MOMENTS.map(lambda one: one.replace(microsecond=0))),
    "micro": (pa.timestamp("us"), st.datetimes(datetime.datetime(1, 1, 1))),
    "nano": (pa.timestamp("ns"), MOMENTS),
    "length": (pa.duration("us"), st.timedeltas(datetime.timedelta(-(10**8)), datetime.timedelta(10**8))),
    "fine length": (pa.duration("ns"), st.timedeltas(datetime.timedelta(-99), datetime.timedelta(99))),
}


pytestmark = pytest.mark.session("two threads")


@st.composite
def tables(draw: st.DrawFn) -> pa.Table:
    """Return an Arrow table of some columns, of which each has a value, and names as any text may be one."""
    named = TEXTS.filter(lambda text: "\0" not in text)  # which Arrow cuts names off at
    names = draw(st.lists(named, min_size=1, max_size=4, unique=True))
    num_rows = draw(st.integers(1, 6))
    columns = {}
    for name in names:
        kind, values = VALUES[draw(st.sampled_from(sorted(VALUES)))]
        found = draw(st.lists(st.one_of(st.none(), values), min_size=num_rows, max_size=num_rows))
        found[draw(st.integers(0, num_rows - 1))] = draw(values)
        columns[name] = pa.array(found, kind)
    return pa.table(columns)


def texts_of(column: Any) -> list[Any]:
    """Return the values of a column, times as texts of nanoseconds, whatever the unit they come back in."""
    if pa.types.is_temporal(column.type) and not pa.types.is_duration(column.type):
        values = (
            column.to_numpy()
            if isinstance(column, pa.ChunkedArray)
            else column.to_numpy(zero_copy_only=False)
        )
        return [_moment(one) for one in values.astype(str)]
    return column.to_pylist()


def _moment(text: str) -> str | None:
    if text == "NaT":
        return None
    day, _, clock = text.partition("T")
    whole, _, part = (clock or "00:00:00").partition(".")
    return f"{day} {whole}.{part.ljust(9, '0')}"


@pytest.mark.parametrize("suffix", ["csv", "parquet", "arrow", "feather"])
@SMALL
@given(table=tables())
def test_tables_come_back(suffix: str, table: pa.Table, tmp_path: Path) -> None:
    path = tmp_path / f"a.{suffix}"
    mn.save(mn.table(table), path)
    found = mn.load(path)
    assert found.columns == tuple(table.column_names)
    back = found.to_arrow()
    for name in table.column_names:
        column, again = table.column(name), back.column(name)
        expected, values = texts_of(column), texts_of(again)
        if suffix == "csv" and pa.types.is_float32(column.type):  # written in the fewest digits
            values = [None if one is None else np.float32(one).item() for one in values]
        assert values == expected
        signs = (
            [None if one is None else np.signbit(one) for one in values]
            if pa.types.is_floating(column.type)
            else []
        )
        assert signs == ([np.signbit(one) if one is not None else None for one in expected] if signs else [])
        if suffix != "csv" and (suffix, column.type) != ("parquet", pa.timestamp("s")):  # which has none
            assert found.dtypes[name] == mn.table(table).dtypes[name]


def test_what_csv_cannot_hold_is_refused_with_a_way(tmp_path: Path) -> None:
    for column, way in (
        (pa.array([-(10**6)], pa.date32()), r"years? 0.*parquet"),
        (pa.array([10**12], pa.timestamp("s")), r"after 9999.*parquet"),
        (pa.array([-(10**13)], pa.duration("s")), r"durations beyond 64 bits.*parquet"),
    ):
        with pytest.raises(UnsupportedError, match=way):
            mn.save(mn.table({"d": column}), tmp_path / "a.csv")
        assert list(tmp_path.iterdir()) == []
        mn.save(mn.table({"d": column}), tmp_path / "a.feather")
        back = mn.load(tmp_path / "a.feather").to_arrow().column("d")
        assert (
            back.cast(pa.int64() if column.type != pa.date32() else pa.int32()).to_pylist()
            == column.cast(pa.int64() if column.type != pa.date32() else pa.int32()).to_pylist()
        )
        (tmp_path / "a.feather").unlink()


def test_rows_without_a_value_in_a_table_of_one_column(tmp_path: Path) -> None:
    for values in ([None, "", "NA"], [1, None, 2], [None, 0.5], [True, None]):
        mn.save(mn.table({"x": pa.array(values)}), tmp_path / "a.csv")
        assert mn.load(tmp_path / "a.csv").to_arrow().column("x").to_pylist() == values


def blocks_of(array: np.ndarray, grid: Grid, sparse: bool) -> Any:
    """Return what fetches the blocks of an array."""
    regions = list(grid.regions())

    def fetch(number: int) -> Block:
        part = array[tuple(slice(*span) for span in regions[number])]
        if not sparse:
            return Dense(np.ascontiguousarray(part))
        made = sp.csr_array(part)
        if not made.nnz:
            return Empty(part.shape, array.dtype)
        return Csr(
            part.shape, made.indptr.astype(np.int32), made.indices.astype(np.int32), made.data, array.dtype
        )

    return fetch


DTYPES = st.sampled_from(["?", "i1", "u1", "i4", "u4", "i8", "u8", "f4", "f8", "c8", "c16"])


@st.composite
def matrices(draw: st.DrawFn) -> tuple[np.ndarray, Grid]:
    """Return a matrix of any dtype, half of it zeros, and cuts of it."""
    shape = draw(st.tuples(st.integers(1, 7), st.integers(1, 7)))
    dtype = np.dtype(draw(DTYPES))
    options = {"allow_nan": False, "allow_infinity": False} if dtype.kind in "fc" else {}
    values = draw(arrays_of.arrays(dtype, shape, elements=arrays_of.from_dtype(dtype, **options)))
    values[draw(arrays_of.arrays(bool, shape))] = 0
    cuts = [
        tuple(sorted({0, length, *draw(st.lists(st.integers(1, length), max_size=2))})) for length in shape
    ]
    return values, Grid(tuple(cuts))


@SMALL
@given(
    drawn=matrices(),
    sparse=st.booleans(),
    suffix=st.sampled_from([".npy", ".npz", ".mtx"]),
    num_pieces=st.integers(1, 4),
)
def test_arrays_come_back(
    drawn: tuple[np.ndarray, Grid], sparse: bool, suffix: str, num_pieces: int, tmp_path: Path
) -> None:
    array, grid = drawn
    path = tmp_path / f"a{suffix}"
    if sparse and suffix == ".npy":
        return
    write(path, grid, array.dtype, sparse, blocks_of(array, grid, sparse))
    found, back = read_whole(open_source(path), num_pieces, 2)
    assert np.array_equal(back, array)
    if suffix != ".mtx":
        assert found.dtype == array.dtype
    if suffix == ".npz" and sparse:
        outside = sp.load_npz(path)
        assert (type(outside), outside.dtype) == (sp.csr_array, array.dtype)
        assert np.array_equal(outside.toarray(), array)
    if suffix == ".mtx":
        outside = scipy.io.mmread(path)
        assert np.array_equal(outside.toarray() if sparse else outside, array)


@SMALL
@given(
    values=arrays_of.arrays(np.uint64, st.tuples(st.integers(1, 5), st.integers(1, 5))), sparse=st.booleans()
)
def test_unsigned_integers_that_scipy_writes(values: np.ndarray, sparse: bool, tmp_path: Path) -> None:
    path = tmp_path / "a.mtx"
    scipy.io.mmwrite(path, sp.coo_array(values) if sparse else values)
    found, back = read_whole(open_source(path), 3, 2)
    assert found.dtype == np.uint64
    assert np.array_equal(back, values)


@pytest.mark.parametrize("number", ["-1", "18446744073709551616", "1.5", "x"])
def test_what_no_unsigned_integer_is_names_its_line(tmp_path: Path, number: str) -> None:
    path = tmp_path / "a.mtx"
    path.write_text(f"%%MatrixMarket matrix array unsigned-integer general\n2 1\n3\n{number}\n")
    with pytest.raises(mn.errors.FileFormatError, match="line 4"):
        read_whole(open_source(path))


def test_a_flipped_bit_of_a_saved_sparse_array_is_told(tmp_path: Path) -> None:
    array = np.where(np.random.default_rng(3).random((40, 30)) < 0.3, 1.5, 0)
    path = tmp_path / "a.npz"
    write(
        path,
        Grid(((0, 20, 40), (0, 30))),
        array.dtype,
        True,
        blocks_of(array, Grid(((0, 20, 40), (0, 30))), True),
    )
    data = bytearray(path.read_bytes())
    place = data.rfind(np.float64(1.5).tobytes())
    data[place] ^= 1
    path.write_bytes(bytes(data))
    with pytest.raises(mn.errors.FileFormatError, match=r"checksum|CRC"):
        read_whole(open_source(path), 2)
