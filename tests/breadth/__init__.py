"""NumPy's functions, each called as a person would, against NumPy."""
