"""Algorithms on graphs, written on DistArray and iterate; ``A[i, j]`` is the edge from i to j.

A stored entry is an edge, whatever its value, which is the edge's weight where an algorithm takes weights.
Vertices are rows; ``A.labels`` tells the original ids of a relabelled graph.
"""

from matnb.graph.betweenness import betweenness
from matnb.graph.bfs import BreadthFirst, bfs
from matnb.graph.components import Components, connected_components
from matnb.graph.pagerank import Ranking, pagerank
from matnb.graph.sssp import sssp

__all__ = [
    "BreadthFirst",
    "Components",
    "Ranking",
    "betweenness",
    "bfs",
    "connected_components",
    "pagerank",
    "sssp",
]
