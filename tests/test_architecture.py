"""The rules of the house, held from the syntax tree: who may import whom, and what a file may be and do."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path, PurePosixPath

import pytest
from counts import PROJECT, name_of, only_importers
from house import (
    ALGORITHM_LIMIT,
    ALGORITHMS,
    ALGORITHMS_KNOW,
    BESIDE,
    CALLS,
    CLASS_LIMIT,
    COMPILED,
    CORE_CODE_LINES,
    ENVIRONMENT,
    FACES,
    FAMILIES,
    FOREIGN_TO_NODES,
    FRONT_DOOR,
    FUNCTION_LIMIT,
    IN_COMMON,
    KEPT_IN,
    LATE,
    LINE_LIMIT,
    LONG_FUNCTIONS,
    MANY_PARAMETERS,
    MAY_PRINT,
    MOST_PARAMETERS,
    NODES,
    OF_WORKERS,
    ONE_IMPORTER,
    OPS,
    OVER_LIMIT,
    ROOMS,
    SPLITTERS,
    TAKES_NAMES_APART,
    VAGUE_NAMES,
)


def _is_docstring(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


@dataclass(frozen=True)
class Source:
    """One Python file: its path from the project's root, its text and its syntax tree."""

    path: PurePosixPath
    text: str
    tree: ast.Module

    @property
    def room(self) -> str | None:
        """The room the file belongs to; None for the front door."""
        return None if self.path == FRONT_DOOR else PurePosixPath(self.path.parts[1]).stem

    @cached_property
    def code_lines(self) -> frozenset[int]:
        """The numbers of its lines of code."""
        lines = enumerate(self.text.splitlines(), 1)
        code = {number for number, line in lines if line.strip() and not line.lstrip().startswith("#")}
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import | ast.ImportFrom) or _is_docstring(node):
                code -= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
        return frozenset(code)

    def num_code_lines(self, node: ast.stmt) -> int:
        """Return how many lines of code a class or function has, decorators left out."""
        return len(self.code_lines.intersection(range(node.lineno, (node.end_lineno or node.lineno) + 1)))

    def at(self, line: int, complaint: str) -> str:
        return f"{self.path}:{line}: {complaint}"


@dataclass(frozen=True)
class Import:
    """One imported dotted name, and whether it waits inside a function."""

    name: str
    line: int
    late: bool

    @property
    def library(self) -> str:
        return self.name.split(".")[0]

    @property
    def room(self) -> str | None:
        """The room of matnb it comes from; None for another library, and for what the front door offers."""
        parts = self.name.split(".")
        return parts[1] if parts[0] == "matnb" and len(parts) > 1 and parts[1] in ROOMS else None


def parse(path: str | PurePosixPath, text: str) -> Source:
    return Source(PurePosixPath(path), text, ast.parse(text))


def imports(source: Source) -> Iterator[Import]:
    """Yield every import: in functions, for type checkers, by ``import_module("...")`` too."""
    waiting: list[tuple[ast.AST, bool]] = [(source.tree, False)]
    while waiting:
        node, late = waiting.pop()
        late = late or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        waiting += [(inner, late) for inner in ast.iter_child_nodes(node)]
        match node:
            case ast.Import():
                yield from (Import(alias.name, node.lineno, late) for alias in node.names)
            case ast.ImportFrom(module=module, level=level):
                near = source.path.parts[: len(source.path.parts) - level] if level else ()
                start = ".".join([*near, *([module] if module else [])])
                yield from (Import(f"{start}.{alias.name}", node.lineno, late) for alias in node.names)
            case ast.Call(
                func=ast.Name(id="import_module" | "__import__") | ast.Attribute(attr="import_module"),
                args=[ast.Constant(value=str(name)), *_],
            ):
                yield Import(name, node.lineno, late)


def belongs_to_a_room(source: Source) -> list[str]:
    if source.room is None or source.room in ROOMS:
        return []
    return [source.at(1, f"{source.room!r} is not a room; rooms are {', '.join(ROOMS)}")]


def imports_only_to_the_left(source: Source) -> list[str]:
    complaints = []
    for found in imports(source):
        if found.library != "matnb":
            continue
        if source.room is None:
            if found.room in LATE and not found.late:
                complaints.append(source.at(found.line, f"{found.name} must be imported inside a function"))
        elif found.room is None:
            complaints.append(source.at(found.line, f"{found.name} comes from the front door, name its room"))
        elif source.room in ROOMS and ROOMS.index(found.room) > ROOMS.index(source.room):
            complaints.append(source.at(found.line, f"{source.room} imports {found.name}, to its right"))
    return complaints


def the_core_knows_no_family(source: Source) -> list[str]:
    if source.room is None or source.room in (*FAMILIES, *FACES):
        return []
    return [
        source.at(found.line, f"{found.name} is of a family: register what it does, as matnb.extend says")
        for found in imports(source)
        if found.room in FAMILIES
    ]


def knows_only_its_libraries(source: Source) -> list[str]:
    complaints = []
    for found in imports(source):
        rooms = KEPT_IN.get(found.library)
        at_the_door = source.room is None and found.library in LATE and found.late
        if rooms is not None and source.room not in rooms and not at_the_door:
            complaints.append(
                source.at(found.line, f"{found.name}: only {' and '.join(rooms)} may import it")
            )
    return complaints


def reads_no_environment(source: Source) -> list[str]:
    if source.room == "config":
        return []
    lines = [
        n.lineno for n in ast.walk(source.tree) if isinstance(n, ast.Attribute) and n.attr in ENVIRONMENT
    ]
    lines += [found.line for found in imports(source) if found.name in {f"os.{name}" for name in ENVIRONMENT}]
    return [source.at(line, "only config.py reads the environment") for line in lines]


def prints_nothing(source: Source) -> list[str]:
    if source.room in MAY_PRINT:
        return []
    return [
        source.at(node.lineno, f"only {' and '.join(MAY_PRINT)} print")
        for node in ast.walk(source.tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"
    ]


def keeps_nodes_bare(source: Source) -> list[str]:
    if source.path != NODES:
        return []
    complaints = [
        source.at(found.line, f"the file of the nodes imports {found.name}")
        for found in imports(source)
        if any(f"{found.name}.".startswith(f"{foreign}.") for foreign in FOREIGN_TO_NODES)
    ]
    for node in ast.walk(source.tree):
        match node:
            case ast.Attribute(value=ast.Name(id="np" | "numpy"), attr="random"):
                complaints.append(source.at(node.lineno, "the file of the nodes draws random numbers"))
    return complaints


def compares_with_others(source: Source) -> list[str]:
    if OPS not in source.path.parents:
        return []
    of_workers = {
        found.name.rsplit(".", 1)[1]: found.name
        for found in imports(source)
        if found.name.startswith(OF_WORKERS) and not found.name.startswith(CALLS)
    }
    functions = {node.name: node for node in source.tree.body if isinstance(node, ast.FunctionDef)}
    waiting = [
        node
        for node in source.tree.body
        if isinstance(node, ast.FunctionDef)
        and any(isinstance(one, ast.Call) and ast.unparse(one.func) == "means" for one in node.decorator_list)
    ]
    complaints, seen = [], set(map(id, waiting))
    while waiting:
        for node in ast.walk(waiting.pop()):
            if not isinstance(node, ast.Name):
                continue
            if node.id in of_workers:
                complaints.append(
                    source.at(node.lineno, f"a meaning uses what the workers use, {of_workers[node.id]}")
                )
            elif node.id in functions and id(functions[node.id]) not in seen:
                seen.add(id(functions[node.id]))
                waiting.append(functions[node.id])
    return complaints


def starts_with_a_docstring(source: Source) -> list[str]:
    if ast.get_docstring(source.tree):
        return []
    return [source.at(1, "the first statement must be a docstring: a sentence saying what the file holds")]


def is_short(source: Source) -> list[str]:
    count, limit = len(source.code_lines), OVER_LIMIT.get(str(source.path), LINE_LIMIT)
    return [source.at(1, f"{count} lines of code; over {limit}, split by idea")] if count > limit else []


def is_compiled(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Tell whether a function is a compiled loop."""
    return any(isinstance(one, ast.Name) and one.id in COMPILED for one in node.decorator_list)


def has_short_parts(source: Source) -> list[str]:
    complaints = []
    for node in ast.walk(source.tree):
        place = f"{source.path}: {getattr(node, 'name', '')}"
        if isinstance(node, ast.ClassDef):
            count = source.num_code_lines(node)
            if count > OVER_LIMIT.get(place, CLASS_LIMIT):
                complaints.append(
                    source.at(node.lineno, f"{node.name} has {count} lines of code, over {CLASS_LIMIT}")
                )
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) or is_compiled(node):
            continue
        count = source.num_code_lines(node)
        if count > FUNCTION_LIMIT and place not in LONG_FUNCTIONS:
            complaints.append(
                source.at(node.lineno, f"{node.name} has {count} lines of code, over {FUNCTION_LIMIT}")
            )
        given = [one.arg for one in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
        count = len([one for one in given if one not in ("self", "cls")])
        if count > MOST_PARAMETERS and place not in MANY_PARAMETERS:
            complaints.append(
                source.at(node.lineno, f"{node.name} takes {count} parameters, over {MOST_PARAMETERS}")
            )
    return complaints


def takes_no_name_apart(source: Source) -> list[str]:
    if source.room not in ("program", "plan", "backend", "session") or str(source.path) in TAKES_NAMES_APART:
        return []
    return [
        source.at(
            node.lineno, f".{node.func.attr}(): nobody takes a name apart; carry what it says in a field"
        )
        for node in ast.walk(source.tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in SPLITTERS
    ]


def has_a_telling_name(source: Source) -> list[str]:
    names = [PurePosixPath(part).stem for part in source.path.parts]
    vague = [
        name for name in names if name in VAGUE_NAMES or name.endswith(tuple(f"_{v}" for v in VAGUE_NAMES))
    ]
    return [source.at(1, f"{name!r} does not say what it holds") for name in vague]


def reads_as_the_mathematics(source: Source) -> list[str]:
    if source.room not in ALGORITHMS or str(source.path) in IN_COMMON:
        return []
    count = len(source.code_lines)
    complaints = []
    if count > ALGORITHM_LIMIT:
        complaints.append(source.at(1, f"{count} lines of code; an algorithm has {ALGORITHM_LIMIT} at most"))
    complaints += [
        source.at(found.line, f"{found.name}: algorithms know {', '.join(ALGORITHMS_KNOW)} alone")
        for found in imports(source)
        if found.room is not None and found.room not in ALGORITHMS_KNOW and not found.name.startswith(BESIDE)
    ]
    return complaints + [
        source.at(node.lineno, "a loop of Python's; rows, vertices and batches are gone through by iterate")
        for node in ast.walk(source.tree)
        if isinstance(node, ast.While | ast.For | ast.AsyncFor) and not _repeats(node)
    ]


def _repeats(node: ast.While | ast.For | ast.AsyncFor) -> bool:
    # A number of repetitions that a caller gives or a constant is, not one that an array has.
    match getattr(node, "iter", None):
        case ast.Call(func=ast.Name(id="range"), args=[count]):
            names = {one.id for one in ast.walk(count) if isinstance(one, ast.Name)}
            looks = any(isinstance(one, ast.Attribute | ast.Subscript | ast.Call) for one in ast.walk(count))
            return not looks and not names & {"n", "m", "num_vertices", "batch"}
    return False


Rule = Callable[[Source], list[str]]
Sources = Callable[..., list[Source]]

# Each rule with files that break it, and files that come close and do not.
OF_MATNB: list[tuple[Rule, list[tuple[str, str]], list[tuple[str, str]]]] = [
    (
        belongs_to_a_room,
        [("matnb/tools.py", ""), ("matnb/tools/cutting.py", "")],
        [("matnb/__init__.py", ""), ("matnb/session.py", ""), ("matnb/passes/fuse.py", "")],
    ),
    (
        imports_only_to_the_left,
        [
            ("matnb/errors.py", "import matnb.config"),
            ("matnb/blocks/grid.py", "from matnb.expr.nodes import Expr"),
            ("matnb/blocks/grid.py", "from matnb import lazy"),
            ("matnb/plan/lower.py", "def f():\n    from matnb.backend import store"),
            ("matnb/plan/lower.py", "if TYPE_CHECKING:\n    import matnb.session"),
            ("matnb/lazy/array.py", "from ..session import current_session"),
            ("matnb/passes/fuse.py", "from ..plan import lower"),
            ("matnb/graph/pagerank.py", "import importlib\nimportlib.import_module('matnb.cli')"),
            ("matnb/graph/pagerank.py", "import matnb as mn"),
            ("matnb/graph/pagerank.py", "from matnb import load"),
            ("matnb/linalg/norm.py", "from matnb.graph import degree"),
            ("matnb/__init__.py", "from matnb.magics import load"),
        ],
        [
            (
                "matnb/lazy/array.py",
                "import numpy\nfrom matnb.blocks.grid import Grid\nfrom matnb import errors",
            ),
            ("matnb/passes/fuse.py", "from ..expr import Expr\nfrom matnb.expr import traverse"),
            ("matnb/graph/triangles.py", "from matnb.linalg import eigsh"),
            (
                "matnb/__init__.py",
                "from matnb.session import start\ndef f(shell):\n    from matnb.magics import load",
            ),
        ],
    ),
    (
        the_core_knows_no_family,
        [
            ("matnb/session/files.py", "from matnb.tables.table import Table"),
            ("matnb/plan/lower.py", "def f():\n    from matnb.nested import segments"),
        ],
        [
            ("matnb/magics/cell.py", "from matnb.nested import NestedArray"),
            ("matnb/__init__.py", "from matnb.tables.table import Table"),
            ("matnb/nested/array.py", "from matnb.tables.table import Table"),
        ],
    ),
    (
        knows_only_its_libraries,
        [
            ("matnb/session.py", "import dask"),
            ("matnb/plan/lower.py", "import dask.array as da"),
            ("matnb/widgets/feed.py", "def f():\n    from distributed import Client"),
            ("matnb/backend/cluster/dask_cluster.py", "from IPython.display import display"),
            ("matnb/cli.py", "__import__('ipywidgets')"),
            ("matnb/__init__.py", "import IPython"),
            ("matnb/__init__.py", "def f():\n    import distributed"),
        ],
        [
            ("matnb/backend/graph.py", "import dask, distributed\nfrom dask.utils import format_bytes"),
            ("matnb/magics/distmat.py", "from IPython.core.magic import magics_class\nimport ipywidgets"),
            ("matnb/__init__.py", "def load_ipython_extension(shell):\n    import IPython"),
            ("matnb/io/edges.py", "import dask_like, distributedness"),
        ],
    ),
    (
        reads_no_environment,
        [
            ("matnb/session.py", "import os\nx = os.environ['HOME']"),
            ("matnb/cli.py", "import os\nx = os.getenv('HOME')"),
            ("matnb/cli.py", "from os import environ"),
        ],
        [("matnb/config.py", "import os\nx = os.environ"), ("matnb/cli.py", "import os\nx = os.getpid()")],
    ),
    (
        compares_with_others,
        [
            (
                "matnb/ops/uniques.py",
                "from matnb.blocks.kernels.sorting.uniques import distinct\n"
                "@means(Unique)\ndef _(node):\n    distinct(1)",
            ),
            (
                "matnb/ops/uniques.py",
                "from matnb.program.operators import Run\n"
                "@means(Unique)\ndef _(node):\n    f()\ndef f():\n    return Run",
            ),
        ],
        [
            (
                "matnb/ops/mapping.py",
                "from matnb.blocks.kernels.calls import call\n@means(MapBlocks)\ndef _(node):\n    call(1)",
            ),
            (
                "matnb/ops/uniques.py",
                "from matnb.blocks.kernels.sorting.uniques import distinct\n"
                "@lowers(Unique)\ndef _(node):\n    distinct(1)",
            ),
        ],
    ),
    (
        reads_as_the_mathematics,
        [
            ("matnb/graph/pagerank.py", "x = 1\n" * (ALGORITHM_LIMIT + 1)),
            ("matnb/graph/pagerank.py", "from matnb.session import start"),
            ("matnb/linalg/cg.py", "from matnb.blocks.kernels.calls import call"),
            ("matnb/graph/pagerank.py", "def f(A):\n    for i in range(A.shape[0]):\n        g(i)"),
            ("matnb/graph/pagerank.py", "def f(n):\n    for i in range(n):\n        g(i)"),
            ("matnb/graph/bfs.py", "def f(batches):\n    for sources in batches:\n        g(sources)"),
            ("matnb/graph/bfs.py", "def f(x):\n    while x.any():\n        x = g(x)"),
        ],
        [
            ("matnb/graph/pagerank.py", "x = 1\n" * ALGORITHM_LIMIT),
            ("matnb/graph/arguments.py", "from matnb.blocks.foreign import is_graph"),
            ("matnb/graph/markov.py", "def f(power):\n    for _ in range(power - 1):\n        g()"),
            (
                "matnb/graph/markov.py",
                "from matnb.linalg.eigsh import eigsh\nimport matnb.errors",
            ),
            ("matnb/io/text.py", "for line in lines:\n    pass"),
        ],
    ),
    (
        prints_nothing,
        [("matnb/session.py", "def f():\n    print('x')")],
        [
            ("matnb/cli.py", "print('x')"),
            ("matnb/magics/summary.py", "print('x')"),
            ("matnb/io/text.py", "p.print()"),
        ],
    ),
    (
        has_short_parts,
        [
            ("matnb/io/text.py", "class A:\n" + "    x = 1\n" * CLASS_LIMIT),
            ("matnb/io/text.py", "def f():\n" + "    x = 1\n" * FUNCTION_LIMIT),
            ("matnb/io/text.py", "class A:\n    def f(self, a, b, c, d, e, f, g, *, h, i): pass"),
        ],
        [
            ("matnb/io/text.py", "class A:\n" + "    x = 1\n" * (CLASS_LIMIT - 1)),
            ("matnb/io/text.py", "def f():\n    '''F.\n" + "\n" * FUNCTION_LIMIT + "    '''\n    x = 1"),
            ("matnb/io/text.py", "class A:\n    def f(self, a, b, c, d, e, f, g, h): pass"),
            ("matnb/blocks/kernels/sum_loops.py", "@compiled\ndef f(a, b, c, d, e, f, g, h, i, j): pass"),
        ],
    ),
    (
        takes_no_name_apart,
        [
            ("matnb/plan/lower.py", "key.split('-')"),
            ("matnb/session/session.py", "name.removeprefix('before-')"),
        ],
        [("matnb/io/text.py", "line.split()"), ("matnb/plan/lower.py", "split(key)")],
    ),
    (
        keeps_nodes_bare,
        [
            ("matnb/expr/nodes.py", "import numpy.random"),
            ("matnb/expr/nodes.py", "from numpy.random import Philox"),
            ("matnb/expr/nodes.py", "from numpy import random"),
            ("matnb/expr/nodes.py", "import numpy as np\nx = np.random.default_rng()"),
            ("matnb/expr/nodes.py", "def f():\n    import dask.array"),
        ],
        [
            ("matnb/expr/nodes.py", "import numpy as np\nx = np.dtype(int)\nclass Random: random = 1"),
            ("matnb/ops/interpret.py", "from numpy import random"),
        ],
    ),
]
OF_ALL: list[tuple[Rule, list[tuple[str, str]], list[tuple[str, str]]]] = [
    (
        starts_with_a_docstring,
        [
            ("matnb/io/text.py", ""),
            ("matnb/io/text.py", "import os\n'''Late.'''"),
            ("tests/test_x.py", "# Why.\nx = 1"),
        ],
        [("matnb/io/text.py", "#!/usr/bin/env python\n'''Text.'''\nimport os")],
    ),
    (
        is_short,
        [("matnb/io/text.py", "x = 1\n" * (LINE_LIMIT + 1))],
        [("matnb/io/text.py", "x = 1\n" * LINE_LIMIT)],
    ),
    (
        has_a_telling_name,
        [
            ("matnb/utils.py", ""),
            ("matnb/io/helpers/text.py", ""),
            ("matnb/io/text_utils.py", ""),
            ("tests/base.py", ""),
        ],
        [("matnb/passes/common_subexpressions.py", ""), ("matnb/database.py", "")],
    ),
]
RULES = [*OF_MATNB, *OF_ALL]


@pytest.fixture(scope="module")
def sources() -> Sources:
    """Return what reads all Python files of some folders, each once for all rules."""

    @cache
    def source(path: Path) -> Source:
        return parse(path.relative_to(PROJECT).as_posix(), path.read_text(encoding="utf-8"))

    return lambda *folders: [
        source(path) for folder in folders for path in sorted((PROJECT / folder).rglob("*.py"))
    ]


@pytest.mark.parametrize("rule", [rule for rule, _, _ in OF_MATNB])
def test_matnb_keeps(sources: Sources, rule: Rule):
    assert [complaint for source in sources("matnb") for complaint in rule(source)] == []


@pytest.mark.parametrize("rule", [rule for rule, _, _ in OF_ALL])
def test_every_file_keeps(sources: Sources, rule: Rule):
    files = sources("matnb", "tests", "benchmarks")
    assert [complaint for source in files for complaint in rule(source)] == []


def core_code_lines(files: Iterable[Source]) -> int:
    """Return the lines of code in the rooms that are no families."""
    return sum(len(source.code_lines) for source in files if source.room not in (*FAMILIES, *FACES))


def test_the_core_does_not_grow(sources: Sources):
    assert core_code_lines(sources("matnb")) <= CORE_CODE_LINES
    core = parse("matnb/passes/order.py", "'Order.'\nimport os\n\n# why\nx = 1\ny = (\n1,)\n")
    assert core_code_lines([core, parse("matnb/graph/bfs.py", "x = 1\n")]) == 3


def test_the_map_of_rooms_is_true():
    text = (PROJECT / "CONTRIBUTING.md").read_text()
    rooms, told = (
        text[text.index("## The rooms") : text.index("## The life")],
        set(ROOMS) - {"version", "__main__"},
    )
    order = re.findall(r"\w+", "".join(re.findall(r"^    .*$", rooms, re.MULTILINE)))
    assert order == [one for one in ROOMS if one != "__main__"]
    assert set(re.findall(r"`(\w+)`", "".join(re.findall(r"^(\|[^|]*\|)", rooms, re.MULTILINE)))) == told


def test_exceptions_of_the_rules_are_there(sources: Sources):
    functions = {
        f"{source.path}: {node.name}"
        for source in sources("matnb")
        for node in ast.walk(source.tree)
        if isinstance(node, ast.FunctionDef)
    }
    assert {*LONG_FUNCTIONS, *MANY_PARAMETERS} <= functions
    files = {str(source.path) for source in sources("matnb", "tests")}
    assert files >= {one.split(":")[0] for one in OVER_LIMIT}
    assert {str(source.path) for source in sources("matnb")} >= TAKES_NAMES_APART


def names_used_again(files: Iterable[Source]) -> list[str]:
    """Return the classes whose names another class has."""
    places: dict[str, list[str]] = {}
    for source in files:
        for node in ast.walk(source.tree):
            if isinstance(node, ast.ClassDef):
                places.setdefault(node.name, []).append(source.at(node.lineno, node.name))
    return [place for found in places.values() if len(found) > 1 for place in found]


def with_one_importer(files: Iterable[Source]) -> set[str]:
    """Return the paths of the files that exactly one other imports."""
    paths = {name_of(PROJECT / source.path): source for source in files}
    return {str(paths[name].path) for name in only_importers({name: one.tree for name, one in paths.items()})}


def test_what_one_file_imports_is_part_of_it(sources: Sources):
    files = sources("matnb")
    alone = with_one_importer(files)
    assert sorted(alone - ONE_IMPORTER.keys()) == [], "join it to that file, or list it with the reason"
    assert sorted(ONE_IMPORTER.keys() - alone) == [], "no longer so: take it off the list"
    assert len(ONE_IMPORTER) <= len(files) / 10
    reader = parse("matnb/io/text.py", "from matnb.io import lines, words\nfrom matnb.errors import Wrong")
    other = parse("matnb/io/table.py", "from matnb.io.words import split")
    face = parse("matnb/io/__init__.py", "from matnb.io import text, table")
    given = [parse(f"matnb/{name}.py", "") for name in ("io/lines", "io/words", "errors")]
    assert with_one_importer([reader, other, face, *given]) == {"matnb/io/lines.py", "matnb/errors.py"}
    loops = parse("matnb/blocks/kernels/loops.py", "")
    used = parse("matnb/ops/sums.py", "from matnb.blocks.kernels.loops import add")
    assert with_one_importer([loops, used]) == set()


def test_a_class_has_its_name_alone(sources: Sources):
    assert names_used_again(sources("matnb")) == []
    twins = [parse(f"matnb/{room}/parts.py", "class Part:\n    pass") for room in ("io", "plan")]
    assert names_used_again(twins) == ["matnb/io/parts.py:1: Part", "matnb/plan/parts.py:1: Part"]


def test_the_files_that_the_rules_name_are_there(sources: Sources):
    paths = {source.path for source in sources("matnb")}
    assert {FRONT_DOOR, NODES, PurePosixPath("matnb/config.py")} <= paths


@pytest.mark.parametrize(("rule", "path", "text"), [(rule, *file) for rule, bad, _ in RULES for file in bad])
def test_rule_sees(rule: Rule, path: str, text: str):
    assert len(rule(parse(path, text))) == 1


@pytest.mark.parametrize(
    ("rule", "path", "text"), [(rule, *file) for rule, _, good in RULES for file in good]
)
def test_rule_forgives(rule: Rule, path: str, text: str):
    assert rule(parse(path, text)) == []
