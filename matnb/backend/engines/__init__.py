"""Engines: what runs a plan or a program on the workers, and waits for it."""
