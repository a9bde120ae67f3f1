"""Readers, writers and generators, in parallel by byte range."""

from matnb.io import edges, matrixmarket

__all__ = ["edges", "matrixmarket"]  # loading them registers their kinds of files
