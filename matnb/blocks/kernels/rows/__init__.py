"""Rows of tall matrices: distances, extremes, descent, and small systems."""
