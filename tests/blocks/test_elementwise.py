"""Elementwise functions against NumPy on every format, and the patterns of their sparse results."""

from __future__ import annotations

import contextlib
import itertools

import numpy as np
import pytest
import strategies
from block_checks import array_of, arrays_in, assert_same, assert_shares_nothing, mask_of, stored
from hypothesis import given, settings
from hypothesis import strategies as st

from matnb.blocks.formats import Csr, Dense, Empty
from matnb.blocks.kernels.elementwise.elementwise import apply, zero_preserving
from matnb.blocks.semiring import ANNIHILATORS
from matnb.errors import ShapeError, UnsupportedError

DENSE, SPARSE = strategies.DENSE_DTYPES, strategies.SPARSE_DTYPES
FLOAT, TRUTH = np.dtype(float), np.dtype(bool)
UFUNCS = sorted(
    {
        getattr(np, name).__name__  # once, where it has several names
        for name in dir(np)
        if isinstance(getattr(np, name), np.ufunc) and getattr(np, name).signature is None and name != "isnat"
    }
)
ONE_OPERAND = [name for name in UFUNCS if getattr(np, name).nin == 1]
TWO_OPERANDS = [name for name in UFUNCS if getattr(np, name).nin == 2]
PATTERN = Csr((2, 3), np.array([0, 2, 3], np.int32), np.array([0, 2, 1], np.int32), None, FLOAT)


def loop_of(name, dtypes):
    """Return input and output dtypes of the ufunc's loop."""
    ufunc = getattr(np, name)
    found = ufunc.resolve_dtypes((*dtypes, *[None] * ufunc.nout))
    return found[: ufunc.nin], found[ufunc.nin :]


def dtypes_of(name, *among):
    """Return the combinations of dtypes, one of each of ``among``, that the ufunc has a loop for."""
    found = []
    for dtypes in itertools.product(*among):
        with contextlib.suppress(TypeError):
            loop_of(name, dtypes)
            found.append(dtypes)
    return found


KEEP_ZERO = [
    (name, dtype)
    for name in ONE_OPERAND
    for (dtype,) in dtypes_of(name, SPARSE)
    if zero_preserving(name, loop_of(name, [dtype])[0], [None])
]


def outputs_of(name, arrays):
    """Return what NumPy gives, or the error it raises."""
    with np.errstate(all="ignore"):
        try:
            found = getattr(np, name)(*arrays)
        except (TypeError, ValueError) as error:
            return error
    return found if isinstance(found, tuple) else (found,)


def check_against_numpy(name, operands):
    inputs, outputs = loop_of(name, [operand.dtype for operand in operands])
    expected = outputs_of(name, [array_of(operand) for operand in operands])
    for output, dtype in enumerate(outputs):
        if isinstance(expected, Exception):
            with pytest.raises(type(expected)):
                apply(name, operands, inputs, dtype, output, False)
        else:
            found = apply(name, operands, inputs, dtype, output, False)
            assert isinstance(found, Dense)
            assert_same(found, np.shape(expected[output]), dtype, expected[output])
            assert_shares_nothing(found, *operands)


@pytest.mark.parametrize("name", ONE_OPERAND)
@settings(max_examples=15)
@given(data=st.data())
def test_ufuncs_of_one_operand(name, data):
    (dtype,) = data.draw(st.sampled_from(dtypes_of(name, DENSE)))
    dense = strategies.dense_blocks(data.draw(strategies.shapes()), dtype)
    check_against_numpy(name, [data.draw(dense)])


@pytest.mark.parametrize("name", TWO_OPERANDS)
@settings(max_examples=15)
@given(data=st.data())
def test_ufuncs_of_two_operands_that_broadcast(name, data):
    shape = data.draw(strategies.shapes(longest=3))
    stretched = tuple(1 if data.draw(st.booleans()) else length for length in shape)
    shorter = stretched[data.draw(st.integers(0, len(shape))) :]
    dtypes = data.draw(st.sampled_from(dtypes_of(name, DENSE, DENSE)))
    sides = data.draw(st.permutations([shape, shorter]))
    blocks = [strategies.dense_blocks(side, dtype) for side, dtype in zip(sides, dtypes, strict=True)]
    check_against_numpy(name, [data.draw(block) for block in blocks])


@given(st.sampled_from(ONE_OPERAND), st.data())
def test_sparse_operands_of_a_dense_result_count_as_zero_where_they_are_absent(name, data):
    shape = data.draw(strategies.matrix_shapes())
    (dtype,) = data.draw(st.sampled_from(dtypes_of(name, SPARSE)))
    check_against_numpy(name, [data.draw(strategies.sparse_blocks(shape, dtype))])


@given(st.sampled_from(TWO_OPERANDS), st.data())
def test_a_sparse_and_another_operand_give_a_dense_result(name, data):
    rows, columns = data.draw(strategies.matrix_shapes(3))
    other_shape = data.draw(
        st.sampled_from([(), (1,), (columns,), (1, columns), (rows, 1), (rows, columns), (2, rows, columns)])
    )
    one, two = data.draw(st.sampled_from(dtypes_of(name, SPARSE, SPARSE)))
    other = strategies.dense_blocks(other_shape, two)
    if len(other_shape) == 2:
        other |= strategies.sparse_blocks(other_shape, two)
    operands = [data.draw(strategies.sparse_blocks((rows, columns), one)), data.draw(other)]
    if (two, one) in dtypes_of(name, SPARSE, SPARSE) and data.draw(st.booleans()):
        operands.reverse()
    check_against_numpy(name, operands)


def check_sparse(name, operands, mask):
    """Check a sparse result: NumPy's values where ``mask`` is set, and nothing stored elsewhere."""
    inputs, outputs = loop_of(name, [operand.dtype for operand in operands])
    expected = outputs_of(name, [array_of(operand) for operand in operands])
    assert not isinstance(expected, Exception)
    for output, dtype in enumerate(outputs):
        found = apply(name, operands, inputs, dtype, output, True)
        assert not isinstance(found, Dense)
        np.testing.assert_array_equal(mask_of(found), mask)
        assert_same(found, mask.shape, dtype, np.where(mask, expected[output], dtype.type(0)))
        values = getattr(found, "values", None)
        if values is not None:
            assert_shares_nothing(Dense(values), *operands)


@given(st.sampled_from(KEEP_ZERO), st.data())
def test_the_sparse_result_of_one_operand_has_its_pattern(case, data):
    name, dtype = case
    block = data.draw(strategies.sparse_blocks(data.draw(strategies.matrix_shapes()), dtype))
    check_sparse(name, [block], mask_of(block))


@given(
    st.sampled_from(["multiply", "divide", "floor_divide", "remainder", "logical_and", "bitwise_and"]),
    st.data(),
)
def test_an_annihilating_operand_is_absent_in_the_result_whatever_it_meets(name, data):
    rows, columns = data.draw(strategies.matrix_shapes())
    one, two = data.draw(st.sampled_from(dtypes_of(name, SPARSE, DENSE)))
    block = data.draw(strategies.sparse_blocks((rows, columns), one))
    shape = data.draw(st.sampled_from([(), (1,), (columns,), (1, columns), (rows, 1), (rows, columns)]))
    operands = [block, data.draw(strategies.dense_blocks(shape, two))]
    if ANNIHILATORS[name] == {0, 1} and data.draw(st.booleans()):
        operands.reverse()
    check_sparse(name, operands, mask_of(block))


@st.composite
def two_sparse_operands(draw, name):
    shape = draw(strategies.matrix_shapes())
    dtypes = draw(st.sampled_from(dtypes_of(name, SPARSE, SPARSE)))
    return [draw(strategies.sparse_blocks(shape, dtype)) for dtype in dtypes]


@given(st.sampled_from(["multiply", "logical_and", "bitwise_and"]), st.data())
def test_products_of_two_sparse_operands_are_stored_where_both_are(name, data):
    one, other = data.draw(two_sparse_operands(name))
    check_sparse(name, [one, other], mask_of(one) & mask_of(other))


@given(st.sampled_from(["divide", "floor_divide", "remainder", "left_shift"]), st.data())
def test_quotients_of_two_sparse_operands_are_stored_where_the_first_is(name, data):
    one, other = data.draw(two_sparse_operands(name))
    check_sparse(name, [one, other], mask_of(one))


@given(
    st.sampled_from(["add", "subtract", "maximum", "logical_or", "hypot", "not_equal", "divmod"]), st.data()
)
def test_other_results_of_two_sparse_operands_are_stored_where_either_is(name, data):
    one, other = data.draw(two_sparse_operands(name))
    check_sparse(name, [one, other], mask_of(one) | mask_of(other))


@given(st.data())
def test_where_takes_each_element_from_one_of_two(data):
    shape = data.draw(strategies.matrix_shapes())
    blocks = [
        data.draw(strategies.matrix_blocks(shape, dtype)) for dtype in (FLOAT, FLOAT, np.dtype("int32"))
    ]
    expected = np.where(array_of(blocks[0]), array_of(blocks[1]), array_of(blocks[2]))
    found = apply("where", blocks, (TRUTH, FLOAT, FLOAT), FLOAT, 0, False)
    assert_same(found, shape, FLOAT, expected)
    sparse = [data.draw(strategies.sparse_blocks(shape, FLOAT)) for _ in range(2)]
    found = apply("where", [*sparse, Dense(np.zeros(()))], (TRUTH, FLOAT, FLOAT), FLOAT, 0, True)
    assert_same(found, shape, FLOAT, np.where(array_of(sparse[0]), array_of(sparse[1]), 0))
    np.testing.assert_array_equal(mask_of(found), mask_of(sparse[0]) | mask_of(sparse[1]))


@given(st.data(), strategies.dense_dtypes(), strategies.sparse_dtypes())
def test_astype_follows_numpy_and_keeps_the_pattern(data, source, target):
    block = data.draw(strategies.dense_blocks(data.draw(strategies.shapes()), source))
    with np.errstate(all="ignore"):
        real = block.values.real if source.kind == "c" and target.kind != "b" else block.values
        expected = real.astype(target)
    found = apply("astype", [block], (source,), target, 0, False)
    assert_same(found, block.shape, target, expected)
    assert_shares_nothing(found, block)
    if source.kind != "c":
        matrix = data.draw(strategies.sparse_blocks(data.draw(strategies.matrix_shapes()), source))
        with np.errstate(all="ignore"):
            expected = array_of(matrix).astype(target)
        found = apply("astype", [matrix], (source,), target, 0, True)
        assert_same(found, matrix.shape, target, expected)
        np.testing.assert_array_equal(mask_of(found), mask_of(matrix))


def test_a_complex_number_loses_its_imaginary_part_in_silence():
    found = apply("astype", [Dense(np.array([1 + 2j]))], (np.dtype(complex),), FLOAT, 0, False)
    assert_same(found, (1,), FLOAT, np.array([1.0]))


def test_ones_stay_a_pattern_and_share_it():
    scalar = Dense(np.ones(()))
    for name, operands in [
        ("multiply", [PATTERN, PATTERN]),
        ("multiply", [PATTERN, scalar]),
        ("sqrt", [PATTERN]),
    ]:
        found = apply(name, operands, (FLOAT,) * len(operands), FLOAT, 0, True)
        assert isinstance(found, Csr)
        assert found.values is None
        assert stored(found) == stored(PATTERN)
    found = apply("astype", [PATTERN], (FLOAT,), np.dtype("int32"), 0, True)
    assert found.values is None
    assert found.dtype == np.dtype("int32")
    assert np.shares_memory(arrays_in(found)[1], PATTERN.columns)


def test_ones_that_change_become_values():
    found = apply("multiply", [PATTERN, Dense(np.array(2.0))], (FLOAT, FLOAT), FLOAT, 0, True)
    assert set(stored(found).values()) == {2.0}
    found = apply("add", [PATTERN, PATTERN], (FLOAT, FLOAT), FLOAT, 0, True)
    assert set(stored(found).values()) == {2.0}


def test_stored_zeros_are_kept():
    zero = Csr((1, 1), np.array([0, 1], np.int32), np.array([0], np.int32), np.zeros(1), FLOAT)
    assert apply("multiply", [zero, zero], (FLOAT, FLOAT), FLOAT, 0, True).nnz == 1
    assert apply("sin", [zero], (FLOAT,), FLOAT, 0, True).nnz == 1


def test_operands_are_cast_to_the_loop_before_they_are_computed_with():
    byte = Dense(np.array([200], np.uint8))
    assert_same(
        apply("add", [byte, byte], (np.dtype("uint8"),) * 2, np.dtype("int64"), 0, False),
        (1,), np.dtype("int64"), np.array([144]),
    )  # fmt: skip
    assert_same(
        apply("add", [byte, byte], (np.dtype("int64"),) * 2, np.dtype("int64"), 0, False),
        (1,), np.dtype("int64"), np.array([400]),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("name", "dtypes", "scalars", "preserved"),
    [
        ("sqrt", "d", [None], True),
        ("negative", "d", [None], True),
        ("exp", "d", [None], False),
        ("log", "d", [None], False),
        ("divide", "dd", [None, None], False),
        ("divide", "dd", [None, np.float64(2)], True),
        ("divide", "dd", [None, np.float64(0)], False),
        ("multiply", "dd", [None, np.float64("inf")], False),
        ("floor_divide", "ll", [None, np.int64(3)], True),
        ("power", "dd", [None, np.float64(2)], True),
        ("power", "dd", [None, np.float64(0)], False),
        ("power", "ll", [None, np.int64(-1)], False),
        ("greater", "dd", [None, np.float64(0)], True),
        ("greater_equal", "dd", [None, np.float64(0)], False),
        ("divmod", "dd", [None, np.float64(3)], True),
        ("frexp", "d", [None], True),
        ("logical_not", "?", [None], False),
        ("add", "dd", [None, None], True),
        ("add", "dd", [None, np.float64(1)], False),
        ("where", "?dd", [None, np.float64(1), np.float64(0)], True),
        ("where", "?dd", [None, None, np.float64(1)], False),
        ("astype", "d", [None], True),
        ("bitwise_and", "dd", [None, None], False),
        ("matmul", "dd", [None, None], False),
    ],
)
def test_which_functions_keep_absent_elements_absent(name, dtypes, scalars, preserved):
    assert zero_preserving(name, tuple(map(np.dtype, dtypes)), scalars) is preserved


@pytest.mark.parametrize("name", ["matmul", "vecdot", "ndarray", "no_such_function"])
def test_a_name_that_is_not_elementwise_is_refused(name):
    with pytest.raises(UnsupportedError, match=f"no elementwise function '{name}'; known: .*astype"):
        apply(name, [Dense(np.ones(2))] * 2, (FLOAT, FLOAT), FLOAT, 0, False)


def test_shapes_that_do_not_fit_are_refused():
    with pytest.raises(ShapeError, match="do not broadcast"):
        apply("add", [Dense(np.ones(2)), Dense(np.ones(3))], (FLOAT, FLOAT), FLOAT, 0, False)
    with pytest.raises(ShapeError, match="must have that shape"):
        apply("multiply", [Empty((1, 3), FLOAT), PATTERN], (FLOAT, FLOAT), FLOAT, 0, True)
    with pytest.raises(ShapeError, match="must have that shape"):
        apply("sqrt", [Dense(np.ones((2, 3)))], (FLOAT,), FLOAT, 0, True)
