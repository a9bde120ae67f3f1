"""One block at a time: formats, cuts, semirings and kernels; knows nothing of laziness or Dask."""
