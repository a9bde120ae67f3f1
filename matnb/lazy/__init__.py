"""What the user means: handles, expressions, passes; no Dask."""
