"""Minima of losses: methods for all rows, and for batches."""
