"""What SciPy's functions of matrices refuse of a large sparse array names what to give them instead."""

from __future__ import annotations

import contextlib
import inspect
import io
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse as sp
import scipy.sparse.csgraph
import scipy.sparse.linalg

import matnb as mn

N = 40
S = sp.random_array((N, N), density=0.1, rng=0).tocsr() + 10 * sp.eye_array(N, format="csr")
S = (S + S.T).tocsr()
MODULES = scipy.sparse.linalg, scipy.sparse.csgraph, scipy.linalg
FUNCTIONS = {
    f"{module.__name__}.{name}": function
    for module in MODULES
    for name, function in vars(module).items()
    if name in module.__all__ and callable(function) and not inspect.isclass(function)
}  # fmt: skip
# They look at the class alone, so nothing of ours is asked; their sentence says that it is to be sparse.
BY_CLASS = {
    "linalg.inv", "linalg.norm", "csgraph.csgraph_to_dense", "csgraph.csgraph_to_masked",
    "csgraph.maximum_bipartite_matching", "csgraph.min_weight_full_bipartite_matching",
    "csgraph.reverse_cuthill_mckee", "csgraph.structural_rank",
}  # fmt: skip


pytestmark = pytest.mark.session("interpreter", compute_limit=5_000)  # below a dense array of 40 x 40


def called(function: Callable[..., Any], A: Any, *more: Any) -> Exception | None:
    """What a function raises."""
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        try:
            function(A, *more)
        except Exception as error:  # whatever it raises is looked at
            return error
    return None


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_large_sparse_array(name: str) -> None:
    for more in ((), (np.ones(N),)):
        dense_or_sparse = S if "sparse" in name else S.toarray()
        if called(FUNCTIONS[name], dense_or_sparse, *more) is not None:
            continue
        error = called(FUNCTIONS[name], mn.asarray(S), *more)
        told = str(error)
        assert "unrecognized" not in told
        assert "DistArray 40 x 40" not in told
        if name.removeprefix("scipy.sparse.") in BY_CLASS:
            assert "sparse" in told
        elif isinstance(error, mn.errors.TooLargeError):
            assert "x.to_scipy()" in told or "x.compute()" in told or "mn.save" in told
        else:
            ours = mn.errors.MatnbError, mn.errors.MissingAttributeError
            assert error is None or isinstance(error, ours), error


def test_what_factorizes_names_to_scipy() -> None:
    for name in ("spsolve", "splu", "spilu", "factorized"):
        more = [np.ones(N)] * (name == "spsolve")
        with pytest.raises(mn.errors.TooLargeError, match=r"x\.to_scipy\(\) keeps it sparse"):
            getattr(scipy.sparse.linalg, name)(mn.asarray(S), *more)
    A = mn.asarray(S)
    expected = scipy.sparse.linalg.spsolve(S.tocsc(), np.ones(N))
    np.testing.assert_allclose(scipy.sparse.linalg.spsolve(A.to_scipy(), np.ones(N)), expected)


def test_a_text_beside_an_error_is_a_text() -> None:
    A = mn.asarray(S)
    try:
        np.asarray(A)
    except mn.errors.TooLargeError:
        assert "40 x 40" in f"{A}"
