"""Functions element by element, in chains and tiles."""
