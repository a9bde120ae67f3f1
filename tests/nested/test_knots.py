"""Knots in expressions: equal ones name equal expressions, and are written out once."""

from __future__ import annotations

import pickle

import pytest

import matnb as mn
from matnb.expr import digest
from matnb.nested.segments import Knots, SegmentOrder


def test_equal_knots_are_one_in_digests_and_hashes():
    one, same, other = Knots((0, 2, 3), (0, 5, 9)), Knots((0, 2, 3), (0, 5, 9)), Knots((0, 5, 9), (0, 2, 3))
    assert one == same
    assert hash(one) == hash(same)
    assert one.digest == same.digest == pickle.loads(pickle.dumps(one)).digest
    assert one != other
    assert one.digest != other.digest


def test_knots_are_written_out_once_for_all_operations(monkeypatch: pytest.MonkeyPatch):
    knots = Knots(tuple(range(101)), tuple(range(0, 1001, 10)))
    values, offsets = (mn.ones(one).expression for one in (1000, 101))
    made = [SegmentOrder(values, offsets, knots, "values")]
    written: list[object] = []
    encode = digest._encode

    def watched(value: object) -> bytes:
        written.append(value)
        return encode(value)

    monkeypatch.setattr(digest, "_encode", watched)
    made += [SegmentOrder(values, offsets, knots, wanted) for wanted in ("places", "ranks")]
    assert len(set(made)) == 3
    assert 0 < len(written) < 50
