"""The only room that imports Dask."""
