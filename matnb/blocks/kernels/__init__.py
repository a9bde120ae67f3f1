"""Kernels on single blocks, one file a family, registered by operation and formats."""
