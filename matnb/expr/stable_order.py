"""A sort key for expressions that is the same in every run of a program, whatever their digests are."""

from __future__ import annotations

from collections import Counter
from itertools import count
from threading import Lock
from weakref import WeakKeyDictionary

from matnb.expr.digest import digest_of_node
from matnb.expr.interning import node_fields
from matnb.expr.nodes import Data, Expr, Load
from matnb.io.files import File

# A digest follows from inode and times of a file, so another run of the same program, which writes the file
# anew, would list what commutes in another order, and plan it so. Here the versions of files of one name
# count instead, in the order in which they were first seen, and of arrays that are named at random the order
# in which they were given.
_versions: dict[tuple[str | int, ...], int] = {}
_num_versions: Counter[str] = Counter()
_given: WeakKeyDictionary[Expr, int] = WeakKeyDictionary()
_num_given = count()
_lock = Lock()
_steady: WeakKeyDictionary[Expr, bytes] = WeakKeyDictionary()


def place_of(node: Expr) -> tuple[bytes, bytes]:
    """Return a key to sort expressions by: alike in every run of a program, unlike for unlike expressions.

    It follows from what a digest follows from, but for files: these differ by their names and, where those
    are the same, by the order in which this process has seen them; and for arrays of :func:`named_at_random`.
    """
    return (steady_digest(node) if node.digest_varies else node.digest), node.digest


def named_at_random(node: Data) -> Data:
    """Return an array whose name is random, noted as the next one that this process was given."""
    _given[node] = next(_num_given)
    node.__dict__["digest_varies"] = True
    return node


def steady_digest(node: Expr) -> bytes:
    """Return what the digest would be, did it follow from nothing that is another in each run."""
    waiting = [node]
    while waiting:
        one = waiting[-1]
        missing = (
            [operand for operand in one.operands if operand.digest_varies and operand not in _steady]
            if one.digest_varies
            else []
        )
        if missing:
            waiting += missing
            continue
        if one.digest_varies and one not in _steady:
            _steady[one] = _made(one)
        waiting.pop()
    return _steady.get(node, node.digest)


def _made(node: Expr) -> bytes:
    form = node_fields(type(node))
    values = tuple(node.__dict__[name] for name in form.names)
    if isinstance(node, Load):
        assert form.source is not None
        values = (*values[: form.source], file_order(node), *values[form.source + 1 :])
    if node in _given:
        values = (_given[node], *values[1:])  # instead of its content
    below = b"".join(_steady.get(operand, operand.digest) for operand in node.operands)
    return digest_of_node(form.label, form.parameters(values), below, form.are_plain)


def file_order(node: Load) -> tuple[str | int, ...]:
    """Return the kind and the name of a file that is loaded, and which of those of that name it is."""
    identity, file = node.source.identity(), getattr(node.source, "file", None)
    name = file.name if isinstance(file, File) else ""
    with _lock:
        if identity not in _versions:
            _versions[identity] = _num_versions[name]
            _num_versions[name] += 1
        return identity[0], name, _versions[identity]
