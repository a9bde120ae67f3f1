"""What a package needs to add operations, passes, containers, readers, estimators and listeners to matnb.

A package is loaded with matnb where its entry point is in the group ``matnb.families``::

    [project.entry-points."matnb.families"]
    toy = "matnb_toy"

Its modules import from here, and from ``matnb`` what users see; everything else may change. See the guide
"Extending matnb", whose examples are run.
"""

from __future__ import annotations

from importlib.metadata import entry_points

from matnb.blocks.formats import Block, Csr, Dense, Empty, csr_block, to_numpy, to_scipy
from matnb.blocks.grid import Grid, Region
from matnb.blocks.kernels.compiled import compiled
from matnb.blocks.layout import Layout
from matnb.errors import offered, warn
from matnb.events import TaskTimed
from matnb.expr.nodes import Expr
from matnb.expr.traverse import ExprGraph, Rewritten, Uses, rewrite
from matnb.io.files import File
from matnb.io.source import Piece, PlainSource, Source, SourceFacts, reader
from matnb.io.whole import WholeFile
from matnb.lazy.array import DistArray, wrap
from matnb.lazy.handles import expression_of
from matnb.lazy.loop import converging
from matnb.lazy.registry import METHODS, SPARSE_METHODS, implements, writes
from matnb.lazy.tree import flatten, register_container, unflatten
from matnb.ops.reference import Value, dense
from matnb.ops.registry import lowers, means
from matnb.passes import register_pass
from matnb.pictures.facts import HistorySection
from matnb.program.kinds import Kind, Role
from matnb.program.operators import Run
from matnb.program.plan import Plan, Workers
from matnb.program.writer import PlanWriter, TaskWriter
from matnb.session.run_listeners import RunListener, on_run

__all__ = [
    "METHODS",
    "SPARSE_METHODS",
    "Block",
    "Csr",
    "Dense",
    "DistArray",
    "Empty",
    "Expr",
    "ExprGraph",
    "File",
    "Grid",
    "HistorySection",
    "Kind",
    "Layout",
    "Piece",
    "PlainSource",
    "Plan",
    "PlanWriter",
    "Region",
    "Rewritten",
    "Role",
    "Run",
    "RunListener",
    "Source",
    "SourceFacts",
    "TaskTimed",
    "TaskWriter",
    "Uses",
    "Value",
    "WholeFile",
    "Workers",
    "compiled",
    "converging",
    "csr_block",
    "dense",
    "expression_of",
    "flatten",
    "implements",
    "lowers",
    "means",
    "offered",
    "on_run",
    "reader",
    "register_container",
    "register_pass",
    "rewrite",
    "to_numpy",
    "to_scipy",
    "unflatten",
    "warn",
    "wrap",
    "writes",
]

__getattr__, __dir__ = offered(__name__, __all__)


def load_families() -> None:
    """Import the packages that are installed as families; one that cannot be imported is a warning."""
    for entry in entry_points(group="matnb.families"):
        try:
            entry.load()
        except Exception as error:  # whatever a stranger's module raises, matnb works without it
            warn(f"the family {entry.name!r} ({entry.value}) is left out: {type(error).__name__}: {error}")
