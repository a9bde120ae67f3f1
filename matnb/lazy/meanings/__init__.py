"""What nodes mean in plain NumPy and SciPy, by family; importing a family registers it."""

from matnb.lazy.meanings import joining  # noqa: F401  registers its nodes
from matnb.lazy.meanings.registry import meaning_of

__all__ = ["meaning_of"]
