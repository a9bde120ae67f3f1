"""NumPy's functions, each called as a user would, against NumPy."""
