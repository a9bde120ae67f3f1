"""How it runs: tasks over registers, grouped in stages, and what writes them."""
