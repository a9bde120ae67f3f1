"""Families of operations: their nodes, what they mean, and the tasks they become."""
