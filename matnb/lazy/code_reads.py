"""What code reads from outside: globals, free variables and imports, and which attributes of each."""

from __future__ import annotations

import dis
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from types import CodeType
from typing import TypeAlias

# Names of attributes, one of the other's value; empty where the value itself is used.
Chain: TypeAlias = tuple[str, ...]
_WORD = re.compile(r"[^\W\d]\w*")
_LOADS_GLOBAL = ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS")
_NAMES_GLOBAL = ("STORE_GLOBAL", "DELETE_GLOBAL")
_LOADS_FREE = ("LOAD_DEREF", "LOAD_CLASSDEREF", "LOAD_FROM_DICT_OR_DEREF")
_LOADS_ATTRIBUTE = ("LOAD_ATTR", "LOAD_METHOD")


@dataclass(frozen=True)
class Read:
    """A name that code reads.

    Attributes
    ----------
    name
        Of a global or a free variable, or of a module as the code imports it.
    chains
        The attributes that are taken of it.
    level
        Of an import: how many packages up it begins.
    """

    name: str
    chains: tuple[Chain, ...]
    level: int = 0


@dataclass(frozen=True)
class CodeReads:
    """All that code reads from outside, functions defined inside of it included.

    Attributes
    ----------
    names, free, imports
        Globals, free variables and modules.
    texts
        The words in its strings, by which ``globals()`` and ``eval`` may read.
    """

    names: tuple[Read, ...]
    free: tuple[Read, ...]
    imports: tuple[Read, ...]
    texts: tuple[str, ...]


@lru_cache(maxsize=4096)
def reads_of(code: CodeType) -> CodeReads:
    """Return what code reads.

    Where it takes attributes of a name only, the chains say which; a name that is used in any other way has
    an empty chain.
    """
    found: dict[tuple[str, str, int], set[Chain]] = {}
    for one in _with_inner(code):
        for kind, name, level, chain in _reads(one):
            if kind != "free" or name in code.co_freevars:
                found.setdefault((kind, name, level), set()).add(chain)

    def of_kind(wanted: str) -> tuple[Read, ...]:
        return tuple(
            Read(name, tuple(sorted(chains)), level)
            for (kind, name, level), chains in sorted(found.items())
            if kind == wanted
        )

    strings = (text for one in _with_inner(code) for text in one.co_consts if isinstance(text, str))
    words = sorted({word for text in strings for word in _WORD.findall(text)})
    return CodeReads(of_kind("name"), of_kind("free"), of_kind("import"), tuple(words))


def _with_inner(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _with_inner(constant)


def _instructions(code: CodeType) -> list[dis.Instruction]:
    return [one for one in dis.get_instructions(code) if one.opname != "EXTENDED_ARG"]


def _reads(code: CodeType) -> Iterator[tuple[str, str, int, Chain]]:
    steps = _instructions(code)
    for place, step in enumerate(steps):
        if step.opname in _LOADS_GLOBAL:
            yield "name", step.argval, 0, _chain_at(steps, place)
        elif step.opname in _NAMES_GLOBAL:
            yield "name", step.argval, 0, ()
        elif step.opname in _LOADS_FREE:
            yield "free", step.argval, 0, _chain_at(steps, place)
        elif step.opname == "IMPORT_NAME":
            for name, level, chain in _imported(code, steps, place):
                yield "import", name, level, chain


def _chain_at(steps: Sequence[dis.Instruction], place: int) -> Chain:
    chain = []
    for step in steps[place + 1 :]:
        if step.opname not in _LOADS_ATTRIBUTE:
            break
        chain.append(step.argval)
    return tuple(chain)


def _imported(
    code: CodeType, steps: Sequence[dis.Instruction], place: int
) -> Iterator[tuple[str, int, Chain]]:
    # The module that an import reads, and what the code takes of it by the local names that it gets.
    name, level, wanted = steps[place].argval, steps[place - 2].argval, steps[place - 1].argval
    if not isinstance(level, int):
        yield name, 0, ()
        return
    if wanted:
        taken = None
        for step in steps[place + 1 :]:
            if step.opname == "IMPORT_FROM":
                taken = step.argval
            elif step.opname.startswith("STORE_") and taken is not None:
                for chain in _uses(code, step):
                    yield name, level, (taken, *chain)
                taken = None
            else:
                break
        return
    first, *inner = name.split(".")
    is_renamed = steps[place + 1].opname == "IMPORT_FROM"  # import a.b as c
    stored = next((step for step in steps[place + 1 :] if step.opname.startswith("STORE_")), None)
    for chain in [()] if stored is None else _uses(code, stored):
        yield first, level, (*inner, *chain) if is_renamed else chain


def _uses(code: CodeType, stored: dis.Instruction) -> Iterable[Chain]:
    # Which attributes are read of the local name that something was stored under; of any other name, all.
    if stored.opname not in ("STORE_FAST", "STORE_DEREF"):
        return [()]
    found: set[Chain] = set()
    for one in _with_inner(code):
        if one is not code and stored.argval not in one.co_freevars:
            continue
        steps = _instructions(one)
        for place, step in enumerate(steps):
            names = step.argval if isinstance(step.argval, tuple) else (step.argval,)
            if step.opname.startswith(("LOAD_FAST", *_LOADS_FREE)) and stored.argval in names:
                found.add(_chain_at(steps, place) if names[-1] == stored.argval else ())
    return sorted(found) or [()]
