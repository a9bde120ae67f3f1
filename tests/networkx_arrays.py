"""What NetworkX says of vertices and edges, as arrays."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np


def in_order(values: Mapping[int, float]) -> np.ndarray:
    return np.array([values[vertex] for vertex in range(len(values))])


def in_matrix(values: Mapping[tuple[int, int], float], num_vertices: int, symmetric: bool) -> np.ndarray:
    made = np.zeros((num_vertices, num_vertices))
    for (begin, end), value in values.items():
        made[begin, end] = value
        if symmetric:
            made[end, begin] = value
    return made
