"""Readers, writers and generators, in parallel by byte range."""
