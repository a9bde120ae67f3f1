"""Where arrays should be cut: costs from measured times, cuts from costs, and when moving pays; no I/O."""
