"""What ``x[...]`` reads and assigns, by kinds of index."""
