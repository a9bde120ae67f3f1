"""The plan of the house, which test_architecture.py holds: rooms, limits, and what is excepted from rules."""

from __future__ import annotations

from pathlib import PurePosixPath

# Imports go only to the left.
ROOMS = (
    "version", "location", "errors", "config", "events", "registration", "blocks", "pictures", "io",
    "expr", "program", "ops", "passes", "plan", "lazy", "balance", "backend", "session", "extend", "presto",
    "simulation", "tables", "linalg", "graph", "sources", "learn", "nested", "testing", "calls", "health",
    "widgets", "magics", "cli", "__main__",
)  # fmt: skip
# Libraries that only the named rooms know.
KEPT_IN = {
    "dask": ("backend",),
    "distributed": ("backend",),
    "IPython": ("widgets", "magics"),
    "ipywidgets": ("widgets", "magics"),
    "pytest": ("testing",),
}
FRONT_DOOR = PurePosixPath("matnb/__init__.py")
# `import matnb` must not load IPython, so the front door imports these only inside its entry points.
LATE = ("widgets", "magics", "cli", "IPython", "ipywidgets")
ENVIRONMENT = ("environ", "environb", "getenv", "getenvb", "putenv", "unsetenv")
MAY_PRINT = ("magics", "cli")
# Lines of code: without docstrings, comments, blank lines and imports.
LINE_LIMIT = 500
CLASS_LIMIT = 300
FUNCTION_LIMIT = 60
MOST_PARAMETERS = 8
# But for compiled loops, which take arrays one by one, since Numba knows no classes of ours; and these:
COMPILED = ("compiled", "inlined")
LONG_FUNCTIONS = {
    "matnb/cli/execution.py: execute": "one notebook from its first cell to its last",
}
MANY_PARAMETERS = {
    "matnb/backend/engines/gang_graph.py: graph_of": "all that members need",
    "matnb/backend/gang/performer.py: perform": "all that a member needs",
    "matnb/io/delimited.py: open_table": "a user's options",
    "matnb/io/edges.py: open_edges": "a user's options",
    "matnb/learn/learner.py: __init__": "a user's options",
    "matnb/learn/linear/sgd_classifier.py: __init__": "scikit-learn's",
    "matnb/learn/linear/sgd_regressor.py: __init__": "scikit-learn's",
    "matnb/lazy/creation.py: eye": "NumPy's, and blocks",
    "matnb/lazy/creation.py: linspace": "NumPy's, and blocks",
    "matnb/lazy/functions/reductions.py: spread": "NumPy's",
    "matnb/learn/optimize/minimize.py: minimize": "what SciPy's takes, and what some methods need",
    "matnb/lazy/loop.py: iterate": "a user's options",
    "matnb/learn/decomposition/latent_dirichlet_allocation.py: __init__": "scikit-learn's",
    "matnb/learn/decomposition/nmf.py: __init__": "scikit-learn's",
    "matnb/learn/cluster/mini_batch_kmeans.py: __init__": "scikit-learn's",
    "matnb/learn/decomposition/mini_batch_nmf.py: __init__": "scikit-learn's",
    "matnb/linalg/eigsh.py: eigsh": "SciPy's, and a seed",
    "matnb/blocks/kernels/vector_loops.py: _take": "a compiled loop's, written out",
    "matnb/blocks/kernels/vector_loops.py: add": "a compiled loop's, written out",
    "matnb/ops/products.py: write_product": "a region of a product, and whose it is",
    "matnb/session/current.py: start": "a user's options",
    "matnb/tables/joining.py: merge": "pandas'",
}
# Where texts are taken apart that are not keys of tasks.
TAKES_NAMES_APART = {
    "matnb/backend/cluster/dask_cluster.py", "matnb/backend/cluster/gang_lock.py",
    "matnb/backend/cluster/handshake.py",
    "matnb/plan/explain_plans.py", "matnb/session/stamp.py",
}  # fmt: skip
# Files that exactly one other imports, and why they are no part of it; a tenth of all at most.
LARGE = "with the file that imports it, it would have over 500 lines of code"
SHORT = "with the file that imports it, it would be no short algorithm"
ANOTHER_ROOM = "its room is left of the one that uses it"
ONE_IMPORTER = {
    "matnb/backend/engines/engine_processes.py": ANOTHER_ROOM,
    "matnb/backend/engines/engine_threads.py": ANOTHER_ROOM,
    "matnb/backend/engines/few_values.py": ANOTHER_ROOM,
    "matnb/backend/engines/inquiry.py": "what is asked of workers, apart from what is waited for",
    "matnb/backend/gang/lines.py": "one connection; the mailbox is all of them",
    "matnb/backend/gang/packing.py": "buffers, whoever sends them",
    "matnb/backend/cluster/servers.py": LARGE,
    "matnb/backend/tasks/small_passes.py": LARGE,
    "matnb/blocks/kernels/products/dense_product_loops.py": LARGE,
    "matnb/blocks/kernels/elementwise/digamma.py": "one function's approximation, whatever applies functions",
    "matnb/blocks/kernels/products/frontier.py": ANOTHER_ROOM,
    "matnb/blocks/kernels/profiles.py": ANOTHER_ROOM,
    "matnb/blocks/kernels/rebuilding.py": ANOTHER_ROOM,
    "matnb/blocks/kernels/products/sampled_products.py": ANOTHER_ROOM,
    "matnb/blocks/kernels/elementwise/small_chains.py": ANOTHER_ROOM,
    "matnb/calls/arguments.py": "tables of words, whatever refuses an argument",
    "matnb/health/node_info.py": "what runs on each process, apart from what is thought of it",
    "matnb/io/rmat.py": ANOTHER_ROOM,
    "matnb/lazy/code_reads.py": "what code says of itself, whatever becomes of it",
    "matnb/lazy/functions/row_descent.py": ANOTHER_ROOM,
    "matnb/lazy/operators.py": LARGE,
    "matnb/learn/decomposition/topic_batches.py": SHORT,
    "matnb/learn/decomposition/topic_model.py": SHORT,
    "matnb/learn/cluster/batched_centers.py": SHORT,
    "matnb/learn/cluster/starts.py": "where to begin, of whatever learns centers",
    "matnb/learn/decomposition/factor_batches.py": SHORT,
    "matnb/learn/decomposition/factor_steps.py": SHORT,
    "matnb/learn/pass_training.py": "what whole passes lead to; training.py is what each batch does",
    "matnb/linalg/triplets.py": SHORT,
    "matnb/io/whole.py": "what readers of other packages make; no reader of the core does",
    "matnb/magics/cell.py": LARGE,
    "matnb/magics/options.py": LARGE,
    "matnb/nested/pictures.py": "how an array is drawn, apart from what it is",
    "matnb/presto/calls.py": "what is called, apart from how it is asked for",
    "matnb/simulation/pictures.py": "how a simulation is drawn, apart from what it is",
    "matnb/presto/pictures.py": "how parts are told, apart from what they are",
    "matnb/nested/restructuring.py": "what other structures are made of; the array has them",
    "matnb/nested/orders.py": "how segments are sorted, of any length; arrays say only what is wanted",
    "matnb/ops/tall.py": "one tall matrix by slabs; ops/solving.py is of many small ones",
    "matnb/pictures/values.py": ANOTHER_ROOM,
    "matnb/program/check.py": ANOTHER_ROOM,
    "matnb/plan/hoisting.py": "an idea of its own: what a loop need not do again",
    "matnb/plan/grouping.py": "an idea of its own: what is made in one pass",
    "matnb/session/run_log.py": LARGE,
    "matnb/session/stored_layouts.py": LARGE,
    "matnb/tables/column_orders.py": LARGE,
    "matnb/tables/conversions.py": LARGE,
    "matnb/tables/drawing.py": LARGE,
    "matnb/tables/frame.py": LARGE,
    "matnb/tables/joining.py": LARGE,
    "matnb/tables/group_keys.py": LARGE,
    "matnb/tables/sorting.py": LARGE,
    "matnb/tables/values.py": LARGE,
    "matnb/tables/group_rows.py": "rows, and values for each; its importer computes one for each group",
    "matnb/tables/places.py": "which rows are meant; its importer is what is done with all",
    "matnb/widgets/busy_history.py": "rings of numbers, which change; the state beside them is frozen",
    "matnb/widgets/views.py": ANOTHER_ROOM,
    "matnb/widgets/monitor_state.py": LARGE,
}
# Circles of files, imports inside functions counted and those for type checkers alone not: none may come, and
# these may only become smaller.
CIRCLES: tuple[frozenset[str], ...] = ()
# Where one file imports another of its room inside a function, and why.
LATE_IN_ROOM: dict[str, str] = {}
SPLITTERS = ("split", "rsplit", "partition", "rpartition", "removeprefix", "removesuffix")
# Families are built on the core; nobody has to know them to work on it. The limit on the lines of code of all
# other rooms is a ratchet, which falls with what leaves the core.
FAMILIES = ("graph", "linalg", "learn", "sources", "nested", "tables", "presto", "simulation")
FACES = ("testing", "calls", "health", "widgets", "magics", "cli")
CORE_CODE_LINES = 58_681
# What was over a limit when limits began to count lines of code: each may only become shorter.
OVER_LIMIT = {
    "matnb/backend/tasks/executor.py": 542,
    "matnb/backend/gang/member.py: MemberRegisters": 323,
    "matnb/blocks/kernels/products/dense_product_loops.py": 524,
    "matnb/blocks/kernels/products/sampled_products.py": 573,
    "matnb/blocks/kernels/elementwise/tiles.py": 520,
    "matnb/pictures/graph.py": 552,
    "tests/backend/test_executor.py": 520,
}
# Algorithms read as the mathematics: each is short, is written on arrays alone, and never goes through one.
ALGORITHMS = ("graph", "linalg", "learn")
ALGORITHM_LIMIT = 120
ALGORITHMS_KNOW = ("lazy", "graph", "linalg", "sources", "learn", "errors")
# Not algorithms, but what all of them have in common; their loops are over arguments.
IN_COMMON = (
    "matnb/graph/arguments.py", "matnb/graph/other_names.py", "matnb/graph/vertex_labels.py",
    "matnb/learn/arguments.py", "matnb/learn/estimator.py",
    "matnb/learn/learner.py", "matnb/learn/mixins.py", "matnb/learn/named_arguments.py",
    "matnb/learn/optimize/optimizers.py", "matnb/learn/optimize/pass_optimizers.py",
    "matnb/learn/pass_training.py",
    "matnb/learn/regularizers.py", "matnb/learn/linear/stochastic.py", "matnb/learn/training.py",
)  # fmt: skip
BESIDE = ("matnb.blocks.foreign", "matnb.tables.results")  # what a user's graph is, and how results are shown
VAGUE_NAMES = ("util", "utils", "helper", "helpers", "common", "base", "manager")
NODES = PurePosixPath("matnb/expr/nodes.py")
# What nodes mean is what the workers' kernels are compared with, so it is made without them and without any
# plan; only a user's function is called as they call it.
OPS = PurePosixPath("matnb/ops")
OF_WORKERS = ("matnb.blocks.kernels", "matnb.program")
CALLS = "matnb.blocks.kernels.calls"
# A node holds no data, draws no numbers and knows no cluster.
FOREIGN_TO_NODES = ("numpy.random", "random", "dask", "distributed")
