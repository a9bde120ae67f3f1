"""Clustering by centers, and what it is made of."""
