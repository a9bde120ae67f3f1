"""How uneven loads are."""

from __future__ import annotations

from collections.abc import Mapping


def imbalance(loads: Mapping[int, float]) -> float:
    """Return the largest of the workers' loads over the mean; 1.0 where there is none."""
    mean = sum(loads.values()) / max(1, len(loads))
    return max(loads.values()) / mean if mean > 0 else 1.0
