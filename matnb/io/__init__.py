"""Readers, writers and generators, in parallel by byte range."""

from matnb.io import edges, matrixmarket, metis, npy, npz, parquet, table

__all__ = [
    "edges",
    "matrixmarket",
    "metis",
    "npy",
    "npz",
    "parquet",
    "table",
]  # loading them registers their kinds of files
