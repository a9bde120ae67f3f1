"""Algorithms on graphs, written on DistArray and iterate; ``A[i, j]`` is the edge from i to j.

A stored entry is an edge, whatever its value, which is the edge's weight where an algorithm takes weights.
What takes all its iterations without converging gives what the last one came to, with a
:class:`matnb.errors.ConvergenceWarning` when it is computed.

Vertices are rows. ``A.labels`` has the ids that they have in a file, or the names in a NetworkX graph; it is
None where these are 0 to n - 1, the numbers of the rows. Results whose axes are vertices have the labels of
the graph. An argument that names vertices, as ``source``, ``sources`` and the keys of ``personalization``,
takes labels where the graph has some, and else numbers of rows; where no label is a number, a whole number is
that of a row, too. ``A.labels[row]`` is the label of a row, and ``A.without_labels()`` the same graph, whose
vertices are named by rows.
"""

from matnb.errors import offered
from matnb.graph import other_names as _other_names
from matnb.graph import vertex_labels as _vertex_labels  # noqa: F401  A.labels follows what is made of A
from matnb.graph.betweenness import betweenness
from matnb.graph.bfs import bfs
from matnb.graph.closeness import closeness, harmonic
from matnb.graph.clustering import average_clustering, clustering, transitivity
from matnb.graph.communities import label_propagation, modularity
from matnb.graph.components import Components, connected_components
from matnb.graph.cores import core_number, k_core
from matnb.graph.degrees import degree, degree_centrality, laplacian
from matnb.graph.distances import all_pairs_shortest_path_length
from matnb.graph.edge_betweenness import edge_betweenness
from matnb.graph.eigenvector import Centrality, eigenvector_centrality, katz
from matnb.graph.floyd_warshall import floyd_warshall
from matnb.graph.hits import HubsAuthorities, hits
from matnb.graph.independent_set import maximal_independent_set
from matnb.graph.louvain import Communities, louvain
from matnb.graph.markov import Clusters, markov_clustering
from matnb.graph.networkx_graphs import to_networkx
from matnb.graph.pagerank import Ranking, pagerank
from matnb.graph.searches import BreadthFirst
from matnb.graph.similarity import common_neighbors, jaccard
from matnb.graph.spanning_forest import minimum_spanning_forest
from matnb.graph.sssp import ShortestPaths, sssp
from matnb.graph.strong_components import strongly_connected_components
from matnb.graph.triangles import triangle_count, triangle_estimate, triangles
from matnb.graph.trusses import k_truss

__all__ = [
    "BreadthFirst",
    "Centrality",
    "Clusters",
    "Communities",
    "Components",
    "HubsAuthorities",
    "Ranking",
    "ShortestPaths",
    "all_pairs_shortest_path_length",
    "average_clustering",
    "betweenness",
    "bfs",
    "closeness",
    "clustering",
    "common_neighbors",
    "connected_components",
    "core_number",
    "degree",
    "degree_centrality",
    "edge_betweenness",
    "eigenvector_centrality",
    "floyd_warshall",
    "harmonic",
    "hits",
    "jaccard",
    "k_core",
    "k_truss",
    "katz",
    "label_propagation",
    "laplacian",
    "louvain",
    "markov_clustering",
    "maximal_independent_set",
    "minimum_spanning_forest",
    "modularity",
    "pagerank",
    "sssp",
    "strongly_connected_components",
    "to_networkx",
    "transitivity",
    "triangle_count",
    "triangle_estimate",
    "triangles",
]
_INSTEAD, _instead_of = _other_names.INSTEAD_OF_FUNCTIONS, _other_names.instead_of_function
__getattr__, __dir__ = offered(__name__, __all__, _instead_of)
