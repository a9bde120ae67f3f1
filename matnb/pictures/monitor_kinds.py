"""What a user calls the work of the workers: a few words for the many kinds of tasks."""

from __future__ import annotations

PRODUCT, ELEMENTWISE, REDUCE, EXCHANGE, READ = "product", "elementwise", "reduce", "exchange", "read"
SORT, PICK, JOIN, FUNCTION, OTHER = "sort", "pick and put", "cut and join", "your function", "other"

_TASKS = {
    PRODUCT: ("product", "accumulate", "sampled", "convolve"),
    ELEMENTWISE: ("map", "interpolate"),
    REDUCE: (
        "reduce", "shares", "combine", "count", "extent", "edges", "scan", "carry", "total", "differences",
        "quantile", "group", "lanes", "argmax", "argmin",
    ),
    EXCHANGE: (
        "gather", "send", "scatter", "move", "regrid", "re-cut", "cut", "share", "transpose", "profile",
    ),
    READ: ("load", "parse", "facts", "data"),
    SORT: ("sort", "merge", "rank", "search", "distinct"),
    PICK: ("pick", "put", "select", "slice", "places", "part", "read"),
    JOIN: ("join", "concatenate", "pad", "repeat", "reshape", "diagonal", "triangle", "windows"),
    FUNCTION: ("call",),
}  # fmt: skip
_WORDS = {task: word for word, tasks in _TASKS.items() for task in tasks}


def word_of(kind: str) -> str:
    """Return the word for a kind of task; a kind that is not known is its own."""
    return _WORDS.get(kind.split(" ", 1)[0], kind)
