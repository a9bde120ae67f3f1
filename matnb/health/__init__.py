"""How everything is, here and on the cluster: what each process says of itself, and what to change."""
