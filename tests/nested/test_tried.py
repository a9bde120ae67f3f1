"""What users try first on nested arrays, in scripts: it is right, or one error says what to write."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import awkward as ak
import numpy as np
import pytest
import scipy.sparse as sp

import matnb as mn
from matnb.errors import (
    DTypeError,
    IndexingError,
    LoopBodyError,
    LostWriteWarning,
    NotScalarError,
    ShapeError,
    UnsupportedError,
)

LISTS = [[3.0, 1.0], [], [2.0], [5.0, 4.0]]

pytestmark = pytest.mark.session("two threads")


def four() -> mn.nested.NestedArray:
    return mn.nested.from_lists(LISTS)


def test_segments_are_taken_again_after_the_same_ones_were_computed() -> None:
    # The passes make of the second selection what the first one stored, so that there is nothing to plan.
    values = mn.asarray(np.arange(5006.0))
    counts = [1, 0, 5000, 2, 0, 3]
    mn.nested.unflatten(values, counts, strategy="uniform")[::-1].values.compute()
    again = mn.nested.unflatten(values, counts, strategy="segmented")[::-1]
    assert again.tolist()[:2] == [[5003.0, 5004.0, 5005.0], []]


# Assigning to elements.


def test_what_is_assigned_to_another_handle_changes_no_nested_array() -> None:
    values, counts = mn.asarray([1.0, 2.0, 3.0]), mn.asarray([1, 0, 2])
    nested = mn.nested.unflatten(values, counts)
    rows = mn.nested.from_rows(sp.csr_array(np.array([[0.0, 2.0], [3.0, 4.0]])))
    for handle in (values, counts, nested.values, nested.flatten(), nested.offsets, nested.counts):
        handle[1] = 7
        assert nested.tolist() == [[1.0], [], [2.0, 3.0]]
        assert nested.sum().tolist() == [1.0, 0.0, 5.0]
    with pytest.warns(LostWriteWarning):
        rows.positions[0] = 9
    assert rows.positions.tolist() == [1, 0, 1]
    assert rows.astype(int).positions.tolist() == [1, 0, 1]


# Truth.


@pytest.mark.parametrize("deep", [False, True])
def test_a_comparison_has_no_truth_value(deep: bool) -> None:
    one, other = (mn.nested.from_lists([[1], [2, 3]]), mn.nested.from_lists([[1], [2, 4]]))
    if deep:
        one, other = mn.nested.unflatten(one, [2]), mn.nested.unflatten(other, [2])
    with pytest.raises(NotScalarError, match=r"N\.values\.all\(\)"):
        assert one == other


def test_in_looks_through_all_values() -> None:
    assert 4 in four()
    assert 7 not in four()
    assert 4 in mn.nested.unflatten(four(), [2, 2])


# NumPy's functions.


@pytest.mark.parametrize(
    "name", ["sum", "prod", "min", "max", "any", "all", "argmin", "argmax", "mean", "var", "std"]
)
def test_numpys_reductions_go_along_segments(name: str) -> None:
    lists = [[3.0, 1.0], [2.0], [5.0, 4.0]]
    want = [getattr(np, name)(one) for one in lists]
    function: Callable[..., Any] = getattr(np, name)
    nested = mn.nested.from_lists(lists)
    assert function(nested, axis=-1).tolist() == want
    assert function(mn.nested.unflatten(nested, [1, 2]), axis=-1).tolist() == [want[:1], want[1:]]
    for axis in (None, 0):
        with pytest.raises(UnsupportedError, match=rf"N\.{name}\(\).*np\.{name}\(N\.values\)"):
            function(nested, axis=axis)
    with pytest.raises(UnsupportedError, match="keepdims"):
        np.sum(nested, axis=-1, keepdims=True)  # type: ignore[call-overload]


def test_numpys_orders_go_along_segments() -> None:
    nested: Any = four()
    assert np.sort(nested).tolist() == [[1.0, 3.0], [], [2.0], [4.0, 5.0]]
    assert np.argsort(nested, -1).tolist() == [[1, 0], [], [0], [1, 0]]
    assert np.cumsum(nested, axis=1).tolist() == [[3.0, 4.0], [], [2.0], [5.0, 9.0]]
    assert np.std(mn.nested.from_lists([[3.0, 1.0]]), axis=1, ddof=1).tolist() == [np.std([3, 1], ddof=1)]  # type: ignore[call-overload]


@pytest.mark.parametrize(
    "call",
    [
        lambda nested: np.median(nested, axis=-1),
        lambda nested: np.concatenate([nested, nested]),
        lambda nested: np.where(nested > 2),
        lambda nested: np.nan_to_num(nested, copy=False),
        lambda nested: np.nan_to_num(nested, False),
        lambda nested: np.clip(nested, 0, 1, out=nested.values),
        lambda nested: np.isin(nested, nested),
        lambda nested: mn.where(nested > 2, nested, 0),
        lambda nested: np.asarray(nested),
        lambda nested: np.asarray(mn.nested.unflatten(nested, [2, 2])),
        mn.asarray,
        lambda nested: nested @ nested,
        lambda nested: nested @ np.ones(4),
        lambda nested: np.add(nested, 1, out=np.zeros(5)),
    ],
)
def test_what_nested_arrays_do_not_do_is_refused_with_what_to_write(call: Callable[[Any], object]) -> None:
    with pytest.raises(UnsupportedError, match=r"of a nested array.* N[ ,\[]|N\.values|\(N \* M\)\.sum"):
        call(four())


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("shape", "write N.num_segments or N.counts"),
        ("compute", r"write N\.values\.compute\(\) or N\.tolist"),
        ("cumsun", "did you mean 'cumsum'"),
    ],
)
def test_what_other_arrays_have_is_missing_with_what_to_write(name: str, says: str) -> None:
    for nested in (four(), mn.nested.unflatten(four(), [2, 2])):
        with pytest.raises(AttributeError, match=says):
            getattr(nested, name)
        assert not hasattr(nested, "_repr_png_")


def test_lists_of_lists_beside_a_nested_array_are_refused_with_the_way() -> None:
    for nested in (four(), mn.nested.unflatten(four(), [2, 2])):
        with pytest.raises(ShapeError, match=r"equal: lists in a list: .*mn\.nested\.from_lists"):
            _ = nested == LISTS


def test_operators_in_place_are_refused() -> None:
    nested: Any = four()
    with pytest.raises(UnsupportedError, match=r"write N = N \+ M"):
        nested += 1


# Values selected within segments.


@pytest.mark.parametrize("strategy", ["segmented", "uniform"])
def test_a_nested_mask_selects_values_of_each_segment(strategy: str) -> None:
    rng = np.random.default_rng(0)
    counts = rng.integers(0, 5, 300)
    values = rng.random(counts.sum())
    nested = mn.nested.unflatten(mn.asarray(values), counts, strategy=strategy)
    array = ak.unflatten(values, counts)
    assert nested[nested > 0.5].tolist() == array[array > 0.5].tolist()
    assert nested[nested > 2].tolist() == [[]] * 300


def test_a_nested_mask_keeps_positions() -> None:
    rows = mn.nested.from_rows(sp.csr_array(np.array([[0.0, 2, 1], [0, 0, 0], [4, 0, 3]])))
    chosen = rows[rows < 4]
    assert chosen.tolist() == [[2.0, 1.0], [], [3.0]]
    assert chosen.positions.tolist() == [1, 2, 2]


def test_nested_indices_that_are_no_masks_are_refused() -> None:
    nested = four()
    with pytest.raises(ShapeError, match=r"N\[mask\]: segment 0 has length 2 in one and 1"):
        nested[mn.nested.from_lists([[True], [], [True], [True]])]
    for other in (nested, mn.nested.unflatten(nested > 2, [2, 2])):
        with pytest.raises(IndexingError, match="as N > 0"):
            nested[other]
    with pytest.raises(LoopBodyError, match="depends on the state of a loop"):
        mn.iterate(lambda x: nested[nested.with_values(x) > 1].sum(), nested.values, max_iterations=2)


# Loops and other levels.


def test_outermost_segments_are_indexed_as_lists_are() -> None:
    lists = [[[1, 2], []], [], [[3]], [[4, 5], [6], []]]
    inner = mn.nested.from_lists([segment for outer in lists for segment in outer])
    nested, array = mn.nested.unflatten(inner, [2, 0, 1, 3]), ak.Array(lists)
    keys = (0, 1, -1, slice(1, 3), slice(None, None, -1), slice(0, 0), [3, 0, 0], [True, False, True, False])
    for key in keys:
        assert nested[key].tolist() == array[key].tolist()
    assert [outer.tolist() for outer in nested] == lists  # type: ignore[attr-defined]  # by __getitem__
    assert nested[3, -2].tolist() == [6]
    assert nested[nested.sum() > 3].tolist() == array[ak.sum(array, axis=-1) > 3].tolist()
    assert nested[nested > 2].tolist() == array[array > 2].tolist()
    assert mn.nested.unflatten(nested, [3, 1])[1].tolist() == lists[3:]
    for key in (4, (0, 2), nested):
        with pytest.raises(IndexingError):
            nested[key]


@pytest.mark.parametrize("function", [mn.nested.unique, mn.nested.unique_counts, mn.nested.topk])
def test_functions_of_one_level_refuse_others(function: Callable[..., object]) -> None:
    arguments = (1,) if function is mn.nested.topk else ()
    for given in ([[1, 2]], mn.nested.unflatten(four(), [2, 2])):
        with pytest.raises(DTypeError, match="no nested array of one level"):
            function(given, *arguments)
