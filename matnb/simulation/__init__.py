"""``mn.simulate``: what a computation would take on a described cluster, by a clock of its own."""
