"""Every listed pass keeps meaning, shapes, dtypes, formats and names; what the rules do, written by hand."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from programs import programs

import matnb as mn
from matnb.lazy.expr import Broadcast, Data, Expr, Index, Regrid, Transpose
from matnb.lazy.interpret import interpret
from matnb.lazy.passes import PASSES, Listed, optimize, stages
from matnb.lazy.passes.identities import drop_identities, identity
from matnb.lazy.traverse import topological
from matnb.lazy.ufuncs import astype, call, literal

FLOAT = np.dtype(np.float64)
A = Data(b"a", (2, 3, 4), FLOAT, False)
S = Data(b"s", (3, 4), FLOAT, True)
FULL = slice(None)


def roots_of(data: st.DataObject) -> dict[str, Expr]:
    """Draw a program whose values also went through operations that may change nothing."""
    values = [pair.mine for pair in data.draw(programs(mn.asarray))]
    roots = {}
    for number, value in enumerate(values):
        wrapped = value
        for kind in data.draw(st.lists(st.sampled_from("tasbir"), max_size=3)):
            axes = tuple(data.draw(st.permutations(range(wrapped.ndim))))
            match kind:
                case "t":
                    wrapped = wrapped.transpose(axes).transpose(axes) if axes else wrapped
                case "a":
                    wrapped = wrapped.astype(wrapped.dtype)
                case "s":
                    wrapped = wrapped[...]
                case "b":
                    wrapped = np.broadcast_to(wrapped, wrapped.shape)
                case "i":
                    wrapped = wrapped[::-1][::-1] if wrapped.ndim else wrapped
                case "r":
                    wrapped = mn.asarray(mn.asarray(wrapped, blocks=2), blocks=3)
        roots[f"r{number}"] = value.expression
        roots[f"w{number}"] = wrapped.expression
    return roots


def bits(node: Expr) -> tuple[object, ...]:
    """Everything a value is: its elements and, if sparse, where it has entries."""
    found = interpret(node)
    if not sp.issparse(found):
        return found.dtype, found.shape, found.tobytes()
    found.sort_indices()
    return found.dtype, found.shape, found.data.tobytes(), tuple(found.indices), tuple(found.indptr)


@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@pytest.mark.parametrize("listed", PASSES, ids=lambda listed: listed.name)
@given(data=st.data())
def test_a_pass_keeps_what_a_program_means(listed: Listed, data: st.DataObject):
    roots = roots_of(data)
    after = listed.run(roots, ())
    assert list(after) == list(roots)
    for name, root in roots.items():
        new = after[name]
        assert (new.shape, new.dtype, new.sparse) == (root.shape, root.dtype, root.sparse)
        assert bits(new) == bits(root)


@settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow])
@pytest.mark.parametrize("listed", PASSES, ids=lambda listed: listed.name)
@given(data=st.data())
def test_a_pass_is_pure_and_idempotent(listed: Listed, data: st.DataObject):
    roots = roots_of(data)
    before = dict(roots)
    after = listed.run(roots, ())
    assert roots == before
    assert listed.run(after, ()) == after
    assert listed.run(roots, ()) == after


@settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow])
@pytest.mark.parametrize("listed", PASSES, ids=lambda listed: listed.name)
@given(data=st.data())
def test_a_pass_leaves_what_is_known_alone(listed: Listed, data: st.DataObject):
    roots = roots_of(data)
    order = topological(roots.values())
    known = {order[place] for place in data.draw(st.sets(st.integers(0, len(order) - 1), max_size=3))}
    after = listed.run(roots, known)
    for name, root in roots.items():
        if root in known:
            assert after[name] is root
    # What only known values were made from may be gone.
    gone = set(order) - set(topological(roots.values(), known))
    assert not gone & set(topological(after.values(), known))


def test_all_passes_run_in_their_order():
    roots = {"x": Transpose(Transpose(A, (1, 2, 0)), (2, 0, 1))}
    assert [name for name, _ in stages(roots)] == [listed.name for listed in PASSES]
    assert stages(roots)[-1][1] == optimize(roots) == {"x": A}
    assert all(listed.reason for listed in PASSES)


def test_a_pass_that_changes_a_dtype_is_caught(monkeypatch: pytest.MonkeyPatch):
    wrong = Listed("wrong", lambda roots, known: dict.fromkeys(roots, S), "to be caught")
    monkeypatch.setattr("matnb.lazy.passes.PASSES", (wrong,))
    with pytest.raises(AssertionError, match="wrong"):
        optimize({"x": A})


# identities, by hand


def test_transposes():
    assert identity(Transpose(A, (0, 1, 2))) is A
    assert identity(Transpose(Transpose(A, (1, 2, 0)), (0, 2, 1))) is Transpose(A, (1, 0, 2))
    assert identity(Transpose(Transpose(A, (1, 2, 0)), (1, 2, 0))) is Transpose(A, (2, 0, 1))
    assert identity(Transpose(A, (1, 0, 2))) is None
    twice = {"x": Transpose(Transpose(S, (1, 0)), (1, 0))}
    assert drop_identities(twice) == {"x": S}
    chain: Expr = A
    for _ in range(3):
        chain = Transpose(chain, (1, 2, 0))
    assert drop_identities({"x": chain}) == {"x": A}


def test_conversions():
    same = call(np.add, (astype(astype(A, np.float32), np.float32), 1.0))[0]
    assert drop_identities({"x": same}) == {"x": same}  # the conversion to float32 changes the values
    assert astype(A, FLOAT) is A
    narrow = astype(A, np.float32)
    there_and_back = astype(narrow, np.float64)
    assert drop_identities({"x": there_and_back}) == {"x": there_and_back}


def test_a_conversion_becomes_one_to_the_same_dtype():
    stretched = Broadcast(literal(np.ones((2, 2))), (2, 2))
    inner = Transpose(Transpose(stretched, (1, 0)), (1, 0))
    assert drop_identities({"x": inner}) == {"x": literal(np.ones((2, 2)))}


def test_stretches():
    assert identity(Broadcast(A, (2, 3, 4))) is A
    assert identity(Broadcast(A, (1, 2, 3, 4))) is None
    assert identity(Broadcast(S, (3, 4))) is None  # it makes a sparse array dense


def test_full_slices():
    full = (slice(0, 3, 1), slice(0, 4, 1))
    assert identity(Index(S, full)) is S
    assert identity(Index(S, (slice(0, 2, 1), slice(0, 4, 1)))) is None
    assert identity(Index(S, (slice(2, None, -1), slice(0, 4, 1)))) is None
    assert identity(Index(S, (*full, None))) is None
    assert identity(Index(S, (0, slice(0, 4, 1)))) is None
    one = Data(b"one", (1,), FLOAT, False)
    assert identity(Index(one, (0,))) is None
    assert identity(Index(literal(2.0), ())) is literal(2.0)


def test_cuts_that_are_cut_again():
    halves, thirds = ((0, 2, 3), (0, 4)), ((0, 1, 2, 3), (0, 4))
    assert identity(Regrid(Regrid(S, halves), thirds)) is Regrid(S, thirds)
    assert identity(Regrid(S, halves)) is None
    between = Regrid(Transpose(Regrid(Transpose(S, (1, 0)), ((0, 4), (0, 3))), (1, 0)), halves)
    assert drop_identities({"x": between}) == {"x": between}  # the inner cuts say where the transpose is made
    stored = Regrid(S, thirds)
    again = {"x": Regrid(stored, halves)}
    assert drop_identities(again, {stored}) == again  # its blocks are there, those of S may not be
