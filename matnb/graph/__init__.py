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

import sys
from inspect import signature

from matnb.errors import offered, ways
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
# What NetworkX has under other names, and what gives the same here.
_INSTEAD = ways(
    {
        "betweenness_centrality": "mn.graph.betweenness(A, normalized=True)",
        "edge_betweenness_centrality": "mn.graph.edge_betweenness(A)",
        "closeness_centrality": "mn.graph.closeness(A)",
        "harmonic_centrality": "mn.graph.harmonic(A)",
        "katz_centrality katz_centrality_numpy": "mn.graph.katz(A).values",
        "eigenvector_centrality_numpy": "mn.graph.eigenvector_centrality(A).values",
        "number_connected_components number_weakly_connected_components":
            "mn.graph.connected_components(A).number",
        "is_connected is_weakly_connected": "mn.graph.connected_components(A).number == 1",
        "weakly_connected_components node_connected_component": "mn.graph.connected_components(A).labels",
        "number_strongly_connected_components": "mn.graph.strongly_connected_components(A).number",
        "is_strongly_connected": "mn.graph.strongly_connected_components(A).number == 1",
        "shortest_path_length single_source_shortest_path_length":
            "mn.graph.bfs(A, source).levels, or mn.graph.sssp(A, source) where edges have lengths",
        "shortest_path single_source_shortest_path bfs_tree bfs_edges bfs_predecessors":
            "mn.graph.bfs(A, source).parents: the vertex before each one on its path",
        "dijkstra_path single_source_dijkstra bellman_ford_path":
            "mn.graph.sssp(A, source, predecessors=True)",
        "dijkstra_path_length single_source_dijkstra_path_length bellman_ford_path_length":
            "mn.graph.sssp(A, source)",
        "floyd_warshall_numpy all_pairs_dijkstra_path_length": "mn.graph.floyd_warshall(A)",
        "diameter": (
            "D.max() of D = mn.graph.all_pairs_shortest_path_length(A), where D.min() is 0: no path is "
            "missing"
        ),
        "eccentricity": (
            "D.max(axis=1) of D = mn.graph.all_pairs_shortest_path_length(A), where D.min() is 0: no path "
            "is missing"
        ),
        "average_shortest_path_length": (
            "D[D > 0].mean() of D = mn.graph.all_pairs_shortest_path_length(A): of pairs with a path, all of "
            "them where D.min() is 0"
        ),
        "density": "A.nnz / (len(A) * (len(A) - 1))",
        "community louvain_communities greedy_modularity_communities": "mn.graph.louvain(A).labels",
        "label_propagation_communities asyn_lpa_communities": "mn.graph.label_propagation(A)",
        "minimum_spanning_tree minimum_spanning_edges": "mn.graph.minimum_spanning_forest(A)",
        "laplacian_matrix": "mn.graph.laplacian(A)", "jaccard_coefficient": "mn.graph.jaccard(A)",
        "adjacency_matrix to_scipy_sparse_array": "A.to_scipy()",
        "number_of_nodes order": "len(A)",
        "number_of_edges size": "A.nnz, in which a pair counts twice if A is symmetric",
        "nodes": "np.arange(len(A)), or A.labels", "edges": "np.nonzero(A)",
        "neighbors successors": "np.nonzero(A[v])[0]", "isolates": "np.nonzero(mn.graph.degree(A) == 0)[0]",
        "Graph DiGraph from_networkx": "mn.asarray(G)",
        "from_pandas_edgelist": "mn.asarray(nx.from_pandas_edgelist(frame))",
        "from_numpy_array from_scipy_sparse_array": "mn.asarray(A)",
        "read_edgelist read_weighted_edgelist": 'mn.load(path, kind="edges")',
        "read_gml read_graphml read_gexf read_adjlist":
            "mn.asarray(nx.read_gml(path)), with NetworkX's reader",
        "draw draw_networkx": "nx.draw(mn.graph.to_networkx(A)), or mn.spy(A)",
        "leiden leiden_communities": "mn.graph.louvain(A).labels",
        "random_walk": "mn.diag(1 / A.sum(axis=1)) @ A: the probabilities of a step",
        "simrank": "nx.simrank_similarity(mn.graph.to_networkx(A))",
        "adamic_adar": "nx.adamic_adar_index(mn.graph.to_networkx(A))",
        "link_prediction": "mn.graph.jaccard(A), or nx.adamic_adar_index(mn.graph.to_networkx(A))",
        "coloring": "nx.greedy_color(mn.graph.to_networkx(A))",
        "assortativity": "nx.degree_assortativity_coefficient(mn.graph.to_networkx(A))",
    }
)  # fmt: skip


def _instead_of(name: str) -> str:
    # What to write: here, or with NetworkX, where somebody has loaded it.
    function = getattr(sys.modules.get("networkx"), name, None)
    if name in _INSTEAD or not callable(function):
        return _INSTEAD.get(name, "")
    try:
        parameters = list(signature(function).parameters.values())[1:]
    except ValueError:
        parameters = []
    others = [
        one.name.strip("_") for one in parameters
        if one.default is one.empty and one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)
    ]  # fmt: skip
    return f"compute it there: nx.{name}({', '.join(['mn.graph.to_networkx(A)', *others])})"


__getattr__, __dir__ = offered(__name__, __all__, _instead_of)
