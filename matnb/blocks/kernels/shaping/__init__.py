"""Blocks read and written at places, and in another shape."""
