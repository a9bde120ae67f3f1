"""Contracts of operations, containers, readers and estimators as classes of tests, to be subclassed."""

from __future__ import annotations

from matnb.errors import offered
from matnb.testing.containers import ContainerTests
from matnb.testing.estimators import EstimatorTests
from matnb.testing.ops import OpTests
from matnb.testing.sources import ExampleFile, SourceTests

__all__ = ["ContainerTests", "EstimatorTests", "ExampleFile", "OpTests", "SourceTests"]

__getattr__, __dir__ = offered(__name__, __all__)
