"""Kernels of nested arrays: loops over segments of unequal length."""
