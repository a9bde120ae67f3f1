"""What the house comes to, room by room: ``python -m tests.counts`` prints it."""

from __future__ import annotations

import ast
from collections import Counter, defaultdict
from pathlib import Path
from statistics import median

PROJECT = Path(__file__).parents[1]


def name_of(path: Path) -> str:
    """Return the dotted name of a module."""
    parts = path.relative_to(PROJECT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def room_of(name: str) -> str:
    """Return the room that a module belongs to: the folder or file right under ``matnb/``."""
    parts = name.split(".")
    return parts[1] if len(parts) > 1 else "front door"


def imported(tree: ast.AST, names: set[str]) -> set[str]:
    """Return the modules of the house that a module imports, at its top or later."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            inner = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= inner & names
            if node.module in names and inner - names:
                found.add(node.module)
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names} & names
    return found


class _WithoutTypes(ast.NodeTransformer):
    # Imports for type checkers alone are none when a program runs.
    def visit_If(self, node: ast.If) -> ast.If | ast.Pass:
        return ast.Pass() if ast.unparse(node.test) == "TYPE_CHECKING" else node


def imported_when_run(tree: ast.Module, names: set[str]) -> set[str]:
    """Return the modules of the house that a module imports at its top or later, but for type checkers."""
    return imported(_WithoutTypes().visit(ast.parse(ast.unparse(tree))), names)


def imported_late(tree: ast.Module, names: set[str]) -> set[str]:
    """Return the modules of the house that functions of a module import."""
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    return {one for node in ast.walk(tree) if isinstance(node, functions) for one in imported(node, names)}


def circles(imports: dict[str, set[str]]) -> list[set[str]]:
    """Return the sets of modules of which each reaches every other by imports (Tarjan 1972)."""
    numbers: dict[str, int] = {}
    lowest: dict[str, int] = {}
    open_modules: list[str] = []
    found: list[set[str]] = []

    def visit(name: str) -> None:
        numbers[name] = lowest[name] = len(numbers)
        open_modules.append(name)
        for other in sorted(imports[name]):
            if other not in numbers:
                visit(other)
                lowest[name] = min(lowest[name], lowest[other])
            elif other in open_modules:
                lowest[name] = min(lowest[name], numbers[other])
        if lowest[name] == numbers[name]:
            place = open_modules.index(name)
            found.append(set(open_modules[place:]))
            del open_modules[place:]

    for name in imports:
        if name not in numbers:
            visit(name)
    return [one for one in found if len(one) > 1]


def dispatch_sites(tree: ast.Module, nodes: set[str]) -> int:
    """Count the places that tell kinds of nodes apart: cases of ``match`` and arguments of ``isinstance``."""
    sites = 0
    for node in ast.walk(tree):
        match node:
            case ast.Match(cases=cases):
                patterns = {
                    name.id for case in cases for name in ast.walk(case.pattern) if isinstance(name, ast.Name)
                }
                sites += bool(patterns & nodes)
            case ast.Call(func=ast.Name(id="isinstance"), args=[_, kinds]):
                sites += bool({name.id for name in ast.walk(kinds) if isinstance(name, ast.Name)} & nodes)
    return sites


def only_importers(trees: dict[str, ast.Module]) -> dict[str, str]:
    """Return the files that exactly one other imports, and that file.

    Left out are the faces of folders, what the face of a folder lists that the file is in, and the kernels of
    a family of operations, which has its room.
    """
    importers: dict[str, set[str]] = defaultdict(set)
    for name, tree in trees.items():
        for one in imported(tree, {*trees}):
            importers[one].add(name)
    folders = {name.rpartition(".")[0] for name in trees}
    found = {name: next(iter(those)) for name, those in importers.items() if len(those) == 1}
    return {
        name: importer
        for name, importer in found.items()
        if name not in folders
        and not name.startswith(f"{importer}.")
        and not (name.startswith("matnb.blocks.kernels.") and room_of(importer) == "ops")
    }


def main() -> None:
    """Print the counts."""
    paths = {name_of(path): path for path in sorted((PROJECT / "matnb").rglob("*.py"))}
    texts = {name: path.read_text() for name, path in paths.items()}
    trees = {name: ast.parse(text) for name, text in texts.items()}
    classes = {
        name: [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
        for name, tree in trees.items()
    }
    nodes = node_classes(classes)
    alone = only_importers(trees)
    print("room           lines  files  median  classes  one importer  dispatch")
    rooms = Counter(map(room_of, paths))
    for room in [*rooms, "all"]:
        mine = [name for name in paths if room in (room_of(name), "all")]
        lengths = [texts[name].count("\n") for name in mine]
        print(
            f"{room:12} {sum(lengths):7,} {len(mine):6} {median(lengths):7.0f} "
            f"{sum(len(classes[name]) for name in mine):8} {len(alone.keys() & mine):13} "
            f"{sum(dispatch_sites(trees[name], nodes) for name in mine):9}"
        )
    used = Counter(one.name for each in classes.values() for one in each)
    often = {name: count for name, count in used.items() if count > 1}
    print(f"\n{len(often)} names of classes are used more than once: {', '.join(sorted(often))}")
    tests = sorted((PROJECT / "tests").rglob("*.py"))
    print(f"tests: {sum(path.read_text().count(chr(10)) for path in tests):,} lines in {len(tests)} files")


def node_classes(classes: dict[str, list[ast.ClassDef]]) -> set[str]:
    """Return the names of all kinds of expressions: what descends from Expr."""
    parents = {
        one.name: {base.id for base in one.bases if isinstance(base, ast.Name)}
        for each in classes.values()
        for one in each
    }
    found = {"Expr"}
    while more := {name for name, bases in parents.items() if bases & found} - found:
        found |= more
    return found


if __name__ == "__main__":
    main()
