"""The names of the Python array API standard, version 2024.12, by the sections of its specification."""

from __future__ import annotations

STANDARD = {
    "Array object: attributes": "dtype device mT ndim shape size T",
    "Array object: methods": (
        "__abs__ __add__ __and__ __array_namespace__ __bool__ __complex__ __dlpack__ __dlpack_device__ "
        "__eq__ __float__ __floordiv__ __ge__ __getitem__ __gt__ __index__ __int__ __invert__ __le__ "
        "__lshift__ __lt__ __matmul__ __mod__ __mul__ __ne__ __neg__ __or__ __pos__ __pow__ __rshift__ "
        "__setitem__ __sub__ __truediv__ __xor__ to_device __radd__ __rsub__ __rmul__ __rtruediv__ "
        "__rfloordiv__ __rmod__ __rpow__ __rmatmul__ __rand__ __ror__ __rxor__ __rlshift__ __rrshift__ "
        "__iadd__ __isub__ __imul__ __itruediv__ __ifloordiv__ __imod__ __ipow__ __imatmul__ __iand__ "
        "__ior__ __ixor__ __ilshift__ __irshift__"
    ),
    "Constants": "e inf nan newaxis pi",
    "Data types": (
        "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64 complex64 complex128"
    ),
    "Data type functions": "astype can_cast finfo iinfo isdtype result_type",
    "Creation functions": (
        "arange asarray empty empty_like eye from_dlpack full full_like linspace meshgrid ones ones_like "
        "tril triu zeros zeros_like"
    ),
    "Elementwise functions": (
        "abs acos acosh add asin asinh atan atan2 atanh bitwise_and bitwise_invert bitwise_left_shift "
        "bitwise_or bitwise_right_shift bitwise_xor ceil clip conj copysign cos cosh divide equal exp "
        "expm1 floor floor_divide greater greater_equal hypot imag isfinite isinf isnan less less_equal "
        "log log10 log1p log2 logaddexp logical_and logical_not logical_or logical_xor maximum minimum "
        "multiply negative nextafter not_equal positive pow real reciprocal remainder round sign signbit "
        "sin sinh sqrt square subtract tan tanh trunc"
    ),
    "Indexing functions": "take take_along_axis",
    "Linear algebra functions": "matmul matrix_transpose tensordot vecdot",
    "Manipulation functions": (
        "broadcast_arrays broadcast_to concat expand_dims flip moveaxis permute_dims repeat reshape roll "
        "squeeze stack tile unstack"
    ),
    "Searching functions": "argmax argmin count_nonzero nonzero searchsorted where",
    "Set functions": "unique_all unique_counts unique_inverse unique_values",
    "Sorting functions": "argsort sort",
    "Statistical functions": "cumulative_prod cumulative_sum max mean min prod std sum var",
    "Utility functions": "all any diff",
    "Inspection": "__array_namespace_info__ __array_api_version__",
    "Linear algebra extension (optional)": (
        "linalg.cholesky linalg.cross linalg.det linalg.diagonal linalg.eigh linalg.eigvalsh linalg.inv "
        "linalg.matmul linalg.matrix_norm linalg.matrix_power linalg.matrix_rank linalg.matrix_transpose "
        "linalg.outer linalg.pinv linalg.qr linalg.slogdet linalg.solve linalg.svd linalg.svdvals "
        "linalg.tensordot linalg.trace linalg.vecdot linalg.vector_norm"
    ),
    "Fourier transform extension (optional)": (
        "fft.fft fft.ifft fft.fftn fft.ifftn fft.rfft fft.irfft fft.rfftn fft.irfftn fft.hfft fft.ihfft "
        "fft.fftfreq fft.rfftfreq fft.fftshift fft.ifftshift"
    ),
}

# What people who use NumPy in notebooks type daily.
DAILY = {
    "Reductions": (
        "sum prod mean var std min max argmin argmax any all count_nonzero ptp nansum nanprod nanmean "
        "nanvar nanstd nanmin nanmax nanargmin nanargmax nancumsum nancumprod average cov corrcoef "
        "trapezoid convolve correlate"
    ),
    "Scans and differences": "cumulative_sum cumulative_prod cumsum cumprod diff ediff1d gradient",
    "Choosing": "clip where nonzero argwhere flatnonzero take take_along_axis compress extract choose select",
    "Order and sets": (
        "sort argsort partition argpartition searchsorted unique isin intersect1d union1d setdiff1d setxor1d"
    ),
    "Counting": (
        "bincount histogram histogram2d histogramdd histogram_bin_edges digitize quantile median "
        "percentile nanquantile nanmedian nanpercentile"
    ),
    "Shapes": (
        "concatenate stack vstack hstack dstack column_stack split array_split vsplit hsplit reshape "
        "ravel squeeze expand_dims broadcast_to broadcast_arrays roll flip fliplr flipud rot90 tile "
        "repeat pad transpose swapaxes moveaxis rollaxis atleast_1d atleast_2d atleast_3d append insert "
        "delete block sliding_window_view may_share_memory shares_memory"
    ),
    "Matrices": (
        "tril triu diag diagonal diagflat trace kron outer inner dot vdot matmul tensordot einsum cross "
        "linalg.lstsq linalg.norm"
    ),
    "Elementwise": (
        "round nan_to_num isclose allclose array_equal array_equiv real imag angle sinc i0 fix interp "
        "piecewise isposinf isneginf"
    ),
    "Assigning": "copyto put put_along_axis putmask place fill_diagonal",
    "A person's own functions": "apply_along_axis apply_over_axes",
    "Making arrays": (
        "array copy identity logspace geomspace fromfunction indices tri vander fromiter frombuffer loadtxt"
    ),
    "matnb's own": (
        "reduce groupby map_blocks reduce_blocks splits foreach scatter_reduce replicated "
        "linalg.segment_solves "
        "topk "
        "dynamic_slice dynamic_update_slice associative_scan rolling special.softmax "
        "special.log_softmax special.logsumexp special.expit special.logit special.log_expit special.xlogy "
        "special.entr special.psi special.gammaln special.erf special.erfinv "
        "DistArray.eliminate_zeros DistArray.prune DistArray.pattern "
        "DistArray.select DistArray.count_nonzero coo_array semiring spy plot table"
    ),
    "Files": "load save",
}
# Algorithms on whole arrays: of a graph's adjacency matrix, and of linear algebra under SciPy's names.
LIBRARY = {
    "Graphs: distances and searches": (
        "graph.bfs graph.sssp graph.all_pairs_shortest_path_length graph.floyd_warshall "
        "graph.minimum_spanning_forest"
    ),
    "Graphs: centralities": (
        "graph.degree graph.degree_centrality graph.closeness graph.harmonic graph.betweenness "
        "graph.edge_betweenness graph.eigenvector_centrality graph.katz graph.hits graph.pagerank"
    ),
    "Graphs: components and communities": (
        "graph.connected_components graph.strongly_connected_components graph.label_propagation "
        "graph.louvain graph.leiden graph.markov_clustering graph.modularity graph.core_number "
        "graph.k_core graph.k_truss graph.maximal_independent_set"
    ),
    "Graphs: triangles and neighbors": (
        "graph.triangles graph.triangle_count graph.triangle_estimate graph.clustering "
        "graph.average_clustering graph.transitivity graph.common_neighbors graph.jaccard graph.laplacian"
    ),
    "Linear algebra: solvers": (
        "linalg.cg linalg.minres linalg.gmres linalg.bicgstab linalg.lsqr linalg.lsmr linalg.expm_multiply "
        "linalg.solve_triangular"
    ),
    "Linear algebra: some eigenvalues and singular values": "linalg.eigsh linalg.lobpcg linalg.svds",
    "Learning: clusters, neighbors and components": (
        "learn.KMeans learn.MiniBatchKMeans learn.NearestNeighbors learn.SpectralEmbedding learn.PCA "
        "learn.IncrementalPCA learn.TruncatedSVD"
    ),
    "Learning: linear models": (
        "learn.LinearRegression learn.Ridge learn.Lasso learn.ElasticNet learn.LogisticRegression "
        "learn.PoissonRegressor learn.SGDClassifier learn.SGDRegressor learn.GLM learn.minimize"
    ),
    "Learning: ratings, parts and topics": (
        "learn.ALS learn.ItemSimilarity learn.NMF learn.MiniBatchNMF learn.LatentDirichletAllocation"
    ),
    "Learning: learners in batches": (
        "learn.Learner learn.models.FactorizationMachine learn.models.MatrixFactorization learn.SGD "
        "learn.AdaGrad learn.Adam learn.Average learn.LBFGS learn.ConjugateGradient learn.Newton "
        "learn.L1 learn.L2 learn.ElasticNetPenalty learn.NonNegative learn.MaxNorm learn.CosineSimilarity "
        "learn.Correlation learn.Entropy learn.Perplexity learn.Top"
    ),
    "Nested arrays": (
        "nested.unflatten nested.from_offsets nested.from_lists nested.from_rows nested.from_keys "
        "nested.merge nested.from_arrow nested.from_awkward nested.load nested.unique "
        "nested.unique_counts nested.topk scan"
    ),
    "Sources of batches": "sources.memory sources.files sources.calls sources.blended sources.joined",
}
