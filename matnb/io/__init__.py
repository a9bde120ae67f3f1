"""Readers, writers and generators, in parallel by byte range."""

from matnb.io import arrow_files, delimited, edges, matrixmarket, metis, npy, npz, pairs

__all__ = [
    "arrow_files",
    "delimited",
    "edges",
    "matrixmarket",
    "metis",
    "npy",
    "npz",
    "pairs",
]  # loading them registers their kinds of files
