"""Linear algebra on whole arrays, written on DistArray and iterate."""

from matnb.lazy.functions.linear import norm
from matnb.linalg.eigsh import Eigenpairs, eigsh

__all__ = ["Eigenpairs", "eigsh", "norm"]
