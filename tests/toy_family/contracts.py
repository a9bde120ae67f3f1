"""The contracts of what the toy family adds, as its author would test them."""

from __future__ import annotations

from typing import Any

import matnb_toy as toy
import numpy as np

import matnb as mn
from matnb.testing import ContainerTests, EstimatorTests, ExampleFile, OpTests, SourceTests


class TestClamp(OpTests):
    def record(self, x: Any) -> mn.DistArray:
        return toy.clamp(x, 1.5)

    def expected(self, x: Any) -> np.ndarray:
        return np.asarray(np.clip(x, -1.5, 1.5))

    def operands(self) -> list[tuple[np.ndarray, ...]]:
        x = np.random.default_rng(0).normal(size=(20, 3)) * 3
        return [(x,), (x[:0],), (x[0],), (x[0, 0],), (x.astype(np.float32),)]


class TestClampTwice(TestClamp):
    def record(self, x: Any) -> mn.DistArray:
        return toy.clamp(toy.clamp(x, 2.5), 1.5)


class TestInterval(ContainerTests):
    def values(self) -> list[toy.Interval]:
        return [toy.Interval(mn.zeros(3), mn.ones(3), "m"), toy.Interval(mn.zeros(()), mn.ones((2, 2)), "km")]

    def others(self) -> list[tuple[toy.Interval, toy.Interval]]:
        return [(toy.Interval(mn.zeros(3), mn.ones(3), "m"), toy.Interval(mn.zeros(3), mn.ones(3), "km"))]


class TestGrid(SourceTests):
    kind = "grid"

    def files(self) -> list[ExampleFile]:
        return [
            ExampleFile("a.grid", b"2 3\n1 2 3\n4 5 6\n", np.array([[1.0, 2, 3], [4, 5, 6]])),
            ExampleFile("b.grid", b"1 2\n1 2\n", np.array([[10.0, 20]]), {"scale": 10}),
        ]

    def bad_files(self) -> list[tuple[str, bytes, str]]:
        return [
            ("bad.grid", b"2 x\n1 2\n", "line 1: the first line has to be two whole numbers"),
            ("short.grid", b"2 2\n1 2\n", "its header says (2, 2)"),
            ("word.grid", b"1 2\n1 two\n", "two"),
        ]


class TestMidrange(EstimatorTests):
    def make(self) -> toy.Midrange:
        return toy.Midrange()

    def data(self) -> tuple[np.ndarray, None]:
        return np.random.default_rng(1).normal(size=(30, 4)), None
