"""Products of blocks over semirings: dense, sparse, of graphs with vectors, under masks."""
