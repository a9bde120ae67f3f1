"""Sources: ordered, restartable series of batches from memory, from files or from calls."""

from matnb.errors import offered
from matnb.sources.batches import BatchSource, Minibatch, SourceBatch, Split
from matnb.sources.combined import blended, joined
from matnb.sources.from_files import files
from matnb.sources.from_memory import calls, memory

__all__ = [
    "BatchSource",
    "Minibatch",
    "SourceBatch",
    "Split",
    "blended",
    "calls",
    "files",
    "joined",
    "memory",
]
__getattr__, __dir__ = offered(__name__, __all__)
