"""Nodes by family: what NumPy's functions record where no node of ``expr`` or ``access`` says it."""
