"""Elements in order: sorted, ranked, distinct, grouped."""
