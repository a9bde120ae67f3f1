"""What NetworkX and igraph call what a graph or ``mn.graph`` has under another name."""

from __future__ import annotations

import sys
from inspect import signature

from matnb.errors import ways
from matnb.lazy.foreign_names import INSTEAD

# What graphs of NetworkX and igraph have, as attributes or as functions, and what gives the same here. An id
# is no row: where vertices have labels, it is looked for among these.
_OF_GRAPHS = ways(
    {
        "nodes": "A.labels, or np.arange(len(A)) where A.labels is None",
        "edges edge_list get_edgelist out_edges": (
            "[A.labels[rows] for rows in np.nonzero(A)], or np.nonzero(A) where A.labels is None"
        ),
        "degrees": "mn.graph.degree(A)",
        "in_degree in_degrees indegree": 'mn.graph.degree(A, "in")',
        "out_degree out_degrees outdegree": 'mn.graph.degree(A, "out")',
        "neighbors successors": (
            "A.labels[np.nonzero(A[A.labels == v])[1]], or np.nonzero(A[v])[0] where A.labels is None"
        ),
        "predecessors": (
            "A.labels[np.nonzero(A[:, A.labels == v])[0]], or np.nonzero(A[:, v])[0] where A.labels is None"
        ),
        "number_of_nodes order vcount num_nodes num_vertices n_nodes n_vertices": "len(A)",
        "number_of_edges ecount num_edges n_edges": "A.nnz, in which a pair counts twice if A is symmetric",
        "has_edge": (
            "A[A.labels == u][:, A.labels == v].nnz > 0, or A[u, v] != 0 where A.labels is None"
        ),
        "subgraph induced_subgraph": (
            "keep = np.isin(A.labels, ids); A[keep][:, keep], or A[rows][:, rows] where A.labels is None"
        ),
        "add_edge add_edges_from add_weighted_edges_from": (
            "A[i, j] = 1 of rows: i = np.nonzero(A.labels == u)[0][0], or i = u where A.labels is None"
        ),
        "remove_edge": (
            "A[i, j] = 0 of rows: i = np.nonzero(A.labels == u)[0][0], or i = u where A.labels is None"
        ),
        "add_node add_nodes_from": "mn.asarray(G), of a graph G that has the vertex",
        "is_directed": "(A != A.T).any()", "reverse": "A.T", "to_directed": "A, which has both directions",
        "to_undirected symmetrize symmetric make_symmetric as_undirected": (
            "np.maximum(A, A.T), or directed=False when an edge list is loaded"
        ),
        "remove_self_loops remove_selfloops remove_loops drop_self_loops without_self_loops": (
            'A - mn.diag(mn.diag(A)), or self_loops="drop" when an edge list is loaded'
        ),
        "from_edges from_edgelist from_edge_list": "mn.asarray(nx.DiGraph(edges))",
    }
)  # fmt: skip
INSTEAD.update(_OF_GRAPHS | ways({"degree": "mn.graph.degree(A)"}))
# What NetworkX has under other names, and what gives the same here.
INSTEAD_OF_FUNCTIONS = _OF_GRAPHS | ways(
    {
        "betweenness_centrality": "mn.graph.betweenness(A, normalized=True)",
        "edge_betweenness_centrality": (
            "mn.graph.edge_betweenness(A), with directed=False where A has both directions of each edge"
        ),
        "closeness_centrality": "mn.graph.closeness(A)",
        "harmonic_centrality": "mn.graph.harmonic(A)",
        "katz_centrality katz_centrality_numpy": "mn.graph.katz(A).values",
        "eigenvector_centrality_numpy": "mn.graph.eigenvector_centrality(A).values",
        "number_connected_components number_weakly_connected_components":
            "mn.graph.connected_components(A).number",
        "is_connected is_weakly_connected": "mn.graph.connected_components(A).number == 1",
        "weakly_connected_components node_connected_component": "mn.graph.connected_components(A).labels",
        "largest_component largest_connected_component giant_component": (
            "c = mn.graph.connected_components(A).labels; keep = c == np.argmax(np.bincount(c)); "
            "A[keep][:, keep]"
        ),
        "number_strongly_connected_components": "mn.graph.strongly_connected_components(A).number",
        "is_strongly_connected": "mn.graph.strongly_connected_components(A).number == 1",
        "shortest_path_length single_source_shortest_path_length":
            "mn.graph.bfs(A, source).levels, or mn.graph.sssp(A, source) where edges have lengths",
        "shortest_path single_source_shortest_path bfs_tree bfs_edges bfs_predecessors":
            "mn.graph.bfs(A, source).parents: the row before each one on its path, whose id A.labels has; "
            "where edges have lengths mn.graph.sssp(A, source, predecessors=True) has it",
        "dijkstra bellman_ford johnson shortest_paths": "mn.graph.sssp(A, source)",
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
        "size": "A.nnz, in which a pair counts twice if A is symmetric",
        "isolates": (
            'A.labels[mn.graph.degree(A, "both") == 0], or np.nonzero(mn.graph.degree(A, "both") == 0)[0] '
            "where A.labels is None"
        ),
        "in_degree_centrality": 'mn.graph.degree_centrality(A, "in")',
        "out_degree_centrality": 'mn.graph.degree_centrality(A, "out")',
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
        "ego egonet ego_network": "nx.ego_graph(mn.graph.to_networkx(A), v)",
        "girvan_newman edge_betweenness_partition": (
            "mn.graph.louvain(A).labels, or, of a small graph, "
            "nx.community.girvan_newman(mn.graph.to_networkx(A))"
        ),
        "normalized_laplacian normalized_laplacian_matrix": (
            "mn.graph.laplacian(A, normed=True), in which self-loops do not count"
        ),
        "spectral_embedding": 'mn.linalg.eigsh(mn.graph.laplacian(A, normed=True), k=k, which="SA")[1]',
        "coloring": "nx.greedy_color(mn.graph.to_networkx(A))",
        "assortativity": "nx.degree_assortativity_coefficient(mn.graph.to_networkx(A))",
    }
)  # fmt: skip


def of_vertices(field: str) -> dict[str, str]:
    """Return what to write instead of names that dictionaries of NetworkX and Series of pandas have.

    Parameters
    ----------
    field
        That of a result which has a value for each vertex.
    """
    series = f"pd.Series(result.{field}, index=A.labels)"
    return ways(
        {
            "top topk nlargest head sort_values most_common sorted": f"{series}.nlargest(10)",
            "items keys values get to_dict": f"{series}.to_dict()",
            "to_pandas to_frame to_series": series,
        }
    )


OF_GROUPS = of_vertices("labels") | ways(
    {"largest largest_component": INSTEAD_OF_FUNCTIONS["largest_component"].removeprefix("write ")}
)


def instead_of_function(name: str) -> str:
    """Return what to write instead of a function: here, or with NetworkX, where somebody has loaded it."""
    function = getattr(sys.modules.get("networkx"), name, None)
    if function is None and callable(getattr(sys.modules.get("scipy.sparse.csgraph"), name, None)):
        return INSTEAD_OF_FUNCTIONS.get(name) or f"compute it there: csgraph.{name}(A.to_scipy())"
    if name in INSTEAD_OF_FUNCTIONS or not callable(function):
        return INSTEAD_OF_FUNCTIONS.get(name, "")
    try:
        parameters = list(signature(function).parameters.values())[1:]
    except ValueError:
        parameters = []
    others = [
        one.name.strip("_") for one in parameters
        if one.default is one.empty and one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)
    ]  # fmt: skip
    return f"compute it there: nx.{name}({', '.join(['mn.graph.to_networkx(A)', *others])})"
