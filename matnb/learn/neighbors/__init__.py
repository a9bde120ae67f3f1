"""Which rows are near to others."""
