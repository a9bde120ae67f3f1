"""What the user writes: handles and functions that record expressions; no Dask."""
