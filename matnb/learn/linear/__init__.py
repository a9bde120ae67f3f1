"""Models that are a linear function of rows."""
