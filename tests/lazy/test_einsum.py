"""``einsum`` of random subscripts against NumPy's, and what it is made of."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import matnb as mn
from matnb.expr.nodes import Elementwise, MatMul, Reduce
from matnb.expr.traverse import topological
from matnb.ops.contracting import Contract

LETTERS = "ijklm"

pytestmark = pytest.mark.session("two threads")


@st.composite
def calls(draw):
    """Return subscripts, arrays, and handles on them: sparse, cut, or as they are."""
    lengths = {letter: draw(st.integers(0, 4)) for letter in LETTERS}
    count = draw(st.integers(1, 4))
    terms = [draw(st.text(LETTERS, max_size=3)) for _ in range(count)]
    used = sorted(set("".join(terms)))
    output = "".join(draw(st.permutations([one for one in used if draw(st.booleans())])))
    text = ",".join(terms) + draw(st.sampled_from(["", "->" + output]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    dtypes = draw(st.lists(st.sampled_from(["f8", "f4", "i4", "?", "c16"]), min_size=count, max_size=count))
    arrays, handles = [], []
    for term, dtype in zip(terms, dtypes, strict=True):
        stretched = {one for one in LETTERS if draw(st.integers(0, 9)) == 0}
        shape = [1 if one in stretched else lengths[one] for one in term]
        array = rng.integers(-2, 3, shape).astype(dtype)
        arrays.append(array)
        way = draw(st.sampled_from(["plain", "cut", "sparse"]))
        if way == "sparse" and array.ndim == 2 and dtype != "c16":
            handles.append(mn.asarray(sp.csr_array(array)))
        elif way == "cut" and array.ndim:
            handles.append(mn.asarray(array, blocks=[2 if length > 1 else None for length in shape]))
        else:
            handles.append(mn.asarray(array))
    return text, arrays, handles


@settings(max_examples=25, deadline=None)
@given(calls())
def test_random_subscripts_mean_what_numpy_means(call):
    text, arrays, handles = call
    try:
        theirs = np.einsum(text, *arrays)
    except ValueError:
        with pytest.raises(ValueError, match="einsum"):
            mn.einsum(text, *handles)
        return
    mine = mn.einsum(text, *handles)
    assert (mine.shape, mine.dtype) == (theirs.shape, theirs.dtype)
    found = mine.to_scipy().toarray() if mine.sparse else mine.compute()
    np.testing.assert_array_equal(found, theirs)


def kinds(array):
    """Return the kinds of nodes that are not data, operands first."""
    return [type(one) for one in topological([array.expression]) if one.operands]


def test_products_of_matrices_and_of_elements_are_recorded_as_such():
    A, B = mn.ones((4, 3)), mn.ones((3, 5))
    S = mn.asarray(sp.csr_array(np.eye(4)))
    assert kinds(mn.einsum("ij,jk->ik", A, B)) == [MatMul]
    assert kinds(mn.einsum("ij,ij->i", A, A)) == [Elementwise, Reduce]
    assert mn.einsum("ij,jk->ik", S, S).sparse
    assert mn.einsum("ij,ij->ij", S, mn.ones((4, 4))).sparse
    assert kinds(mn.einsum("ijk,jr,kr->ir", mn.ones((9, 8, 7)), mn.ones((8, 2)), mn.ones((7, 2)))) == [
        Contract
    ]


def test_a_large_sparse_array_does_not_become_dense_in_silence():
    S = mn.asarray(sp.csr_array((10_000, 10_000)))
    with pytest.raises(mn.errors.UnsupportedError, match="stays sparse"):
        mn.einsum("ij,ijk->ik", S, mn.ones((10_000, 10_000, 2)))
    assert mn.einsum("ij,jk->ik", S, mn.ones((10_000, 2))).shape == (10_000, 2)


def test_decompositions_of_large_matrices_are_refused_with_the_nearest_way():
    with pytest.raises(mn.errors.TooLargeError, match=r"mn\.linalg\.svds"):
        mn.linalg.svd(mn.ones((4000, 4000)))
