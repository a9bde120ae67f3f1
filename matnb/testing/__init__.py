"""Contracts of operations, containers, readers and estimators as classes of tests, to be subclassed."""

from __future__ import annotations

from typing import Any

import numpy as np

from matnb.errors import offered
from matnb.testing.containers import ContainerTests
from matnb.testing.estimators import EstimatorTests
from matnb.testing.ops import OpTests
from matnb.testing.sources import ExampleFile, SourceTests

__all__ = ["ContainerTests", "EstimatorTests", "ExampleFile", "OpTests", "SourceTests"]

_missing, __dir__ = offered(__name__, __all__)


def __getattr__(name: str) -> Any:
    # mn.testing is NumPy's until this is imported: its names stay.
    return getattr(np.testing, name) if name in np.testing.__all__ else _missing(name)
