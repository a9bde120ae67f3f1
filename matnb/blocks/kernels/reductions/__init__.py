"""Reductions, scans, windows and counts."""
