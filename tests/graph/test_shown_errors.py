"""What is shown of a result says what is wrong with the data it is made of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import matnb as mn
from matnb.errors import OptionError

pytestmark = pytest.mark.session("one thread")

SAID = "a weight is -1.0; weights must be 0 or more"


@pytest.fixture
def negative() -> Any:
    return mn.asarray(sp.csr_array(np.array([[0.0, 1.0, 0.0], [3.0, 0.0, -1.0], [0.0, 0.0, 0.0]]))) * 1.0


def test_an_array_says_the_error_of_its_data(negative: Any) -> None:
    for far in (mn.graph.sssp(negative, 0), mn.graph.sssp(negative, 0) + 1):
        with pytest.raises(OptionError, match=SAID):
            far.compute()
        for text in (str(far), repr(far), far._repr_mimebundle_()["text/html"]):
            assert f"not computed: sssp: {SAID}" in text
            assert ".compute()" not in text


@pytest.mark.parametrize(
    "made",
    [mn.graph.louvain, mn.graph.hits, lambda A: mn.graph.sssp(A, 0, predecessors=True)],
    ids=["louvain", "hits", "sssp"],
)
def test_a_result_of_several_values_says_it_too(negative: Any, made: Callable[[Any], Any]) -> None:
    result = made(negative)
    with pytest.raises(OptionError) as error:
        result[0].compute()
    sentence = str(error.value).partition("\n")[0]
    for text in result._repr_mimebundle_().values():
        assert f"numbers not computed: {sentence}" in text


def test_what_is_well_says_nothing() -> None:
    A = mn.asarray(sp.csr_array(np.array([[0.0, 1.0], [3.0, 0.0]]))) * 1.0
    assert "not computed" not in repr(mn.graph.sssp(A, 0))
    assert "not computed" not in repr(mn.graph.louvain(A))
