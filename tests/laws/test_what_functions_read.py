"""A result is used again only if everything is the same that the function reads, and workers call that function."""

from __future__ import annotations

import hashlib
import importlib
import os
import subprocess
import sys
import types
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

import matnb as mn
from matnb.lazy.functions.portable import named_by

# Files of a user's, in which NUMBER is edited; ``total`` is called on a column of ones and gives NUMBER * 4.
HEAD = "import functools, dataclasses, enum\nimport numpy as np\n"
READS = {
    "its code": {"mod": "def total(x): return (x * NUMBER).sum()"},
    "a default": {"mod": "def total(x, rate=NUMBER): return (x * rate).sum()"},
    "a keyword's default": {"mod": "def total(x, *, rate=NUMBER): return (x * rate).sum()"},
    "a global": {"mod": "RATE = NUMBER\ndef total(x): return (x * RATE).sum()"},
    "a global array": {"mod": "RATE = np.full(1, NUMBER)\ndef total(x): return (x * RATE).sum()"},
    "a helper": {"mod": "def helper(x): return x * NUMBER\ndef total(x): return helper(x).sum()"},
    "a helper of a helper": {
        "mod": "RATE = NUMBER\ndef inner(x): return x * RATE\ndef helper(x): return inner(x)\n"
        "def total(x): return helper(x).sum()"
    },
    "a global in an inner function": {
        "mod": "RATE = NUMBER\ndef total(x):\n    def inner(): return [x * RATE for _ in 'a']\n    return inner()[0].sum()"
    },
    "a global in an inner class": {
        "mod": "RATE = NUMBER\ndef total(x):\n    class Inner:\n        rate = RATE\n    return (x * Inner.rate).sum()"
    },
    "a closure": {
        "mod": "def make(rate):\n    def total(x): return (x * rate).sum()\n    return total\ntotal = make(NUMBER)"
    },
    "a decorator": {
        "mod": "def scaled(fn):\n    @functools.wraps(fn)\n    def inner(x): return fn(x) * NUMBER\n    return inner\n"
        "@scaled\ndef total(x): return x.sum()"
    },
    "what a decorator is around": {
        "mod": "def plain(fn):\n    @functools.wraps(fn)\n    def inner(x): return fn(x)\n    return inner\n"
        "@plain\ndef total(x): return (x * NUMBER).sum()"
    },
    "a decorator of a class": {
        "mod": "class Scaled:\n    def __init__(self, fn): self.fn = fn\n"
        "    def __call__(self, x): return self.fn(x) * NUMBER\n@Scaled\ndef total(x): return x.sum()"
    },
    "a partial": {
        "mod": "def scaled(rate, x): return (x * rate).sum()\ntotal = functools.partial(scaled, NUMBER)"
    },
    "what a partial is of": {
        "mod": "def scaled(y, x): return (x * y * NUMBER).sum()\ntotal = functools.partial(scaled, 1)"
    },
    "a bound method": {
        "mod": "class Rate:\n    def __init__(self): self.one = 1\n"
        "    def total(self, x): return (x * NUMBER).sum() * self.one\ntotal = Rate().total"
    },
    "the object of a bound method": {
        "mod": "class Rate:\n    def __init__(self, rate): self.rate = rate\n"
        "    def total(self, x): return (x * self.rate).sum()\ntotal = Rate(NUMBER).total"
    },
    "a callable's class": {
        "mod": "class Rate:\n    def __call__(self, x): return (x * NUMBER).sum()\ntotal = Rate()"
    },
    "a class attribute": {
        "mod": "class Rate:\n    rate = NUMBER\ndef total(x): return (x * Rate.rate).sum()"
    },
    "an inherited attribute": {
        "mod": "class Rate:\n    rate = NUMBER\nclass Own(Rate): pass\ndef total(x): return (x * Own.rate).sum()"
    },
    "a static method, a class method and a property": {
        "mod": "class Rate:\n    rate = NUMBER\n    @classmethod\n    def one(cls): return cls.rate\n    @staticmethod\n"
        "    def two(x): return x * Rate.one()\n    @property\n    def three(self): return self.two\n"
        "def total(x): return Rate().three(x).sum()"
    },
    "a method by super": {
        "mod": "class Rate:\n    def of(self, x): return x * NUMBER\nclass Own(Rate):\n"
        "    def of(self, x): return super().of(x)\ndef total(x): return Own().of(x).sum()"
    },
    "a dataclass": {
        "mod": "@dataclasses.dataclass\nclass Rate:\n    rate: int = NUMBER\ndef total(x): return (x * Rate().rate).sum()"
    },
    "an enumeration": {
        "mod": "class Rate(enum.Enum):\n    ONE = NUMBER\ndef total(x): return (x * Rate.ONE.value).sum()"
    },
    "a table of functions": {
        "mod": "BY_NAME = {'scaled': lambda x: x * NUMBER}\ndef total(x): return BY_NAME['scaled'](x).sum()"
    },
    "a cached helper": {
        "mod": "@functools.lru_cache\ndef rate(): return NUMBER\ndef total(x): return (x * rate()).sum()"
    },
    "a vectorized helper": {
        "mod": "scaled = np.vectorize(lambda x: x * NUMBER)\ndef total(x): return scaled(x).sum()"
    },
    "an attribute of a function": {
        "mod": "def helper(): pass\nhelper.rate = NUMBER\ndef total(x): return (x * helper.rate).sum()"
    },
    "a cached property": {
        "mod": "class Rate:\n    @functools.cached_property\n    def rate(self): return NUMBER\n"
        "def total(x): return (x * Rate().rate).sum()"
    },
    "a function chosen by type": {
        "mod": "@functools.singledispatch\ndef scaled(x): return 0\n@scaled.register\n"
        "def _(x: np.ndarray): return x * NUMBER\ndef total(x): return scaled(x).sum()"
    },
    "a context": {
        "mod": "import contextlib\n@contextlib.contextmanager\ndef rate():\n    yield NUMBER\n"
        "def total(x):\n    with rate() as one: return (x * one).sum()"
    },
    "a named tuple": {
        "mod": "import typing\nclass Rate(typing.NamedTuple):\n    rate: int = NUMBER\n"
        "def total(x): return (x * Rate().rate).sum()"
    },
    "an abstract class": {
        "mod": "import abc\nclass Base(abc.ABC):\n    @abc.abstractmethod\n    def rate(self): ...\n"
        "class Own(Base):\n    def rate(self): return NUMBER\ndef total(x): return (x * Own().rate()).sum()"
    },
    "slots and a generic class": {
        "mod": "import typing\nT = typing.TypeVar('T')\nclass Rate(typing.Generic[T]):\n    __slots__ = ('rate',)\n"
        "    def __init__(self, rate: T): self.rate = rate\nRATE = Rate(NUMBER)\n"
        "def total(x): return (x * RATE.rate).sum()"
    },
    "a metaclass": {
        "mod": "class Meta(type):\n    @property\n    def rate(cls): return NUMBER\n"
        "class Rate(metaclass=Meta): pass\ndef total(x): return (x * Rate.rate).sum()"
    },
    "a descriptor": {
        "mod": "class Field:\n    def __get__(self, one, kind): return NUMBER\nclass Rate:\n    rate = Field()\n"
        "def total(x): return (x * Rate().rate).sum()"
    },
    "a method of a part": {
        "mod": "class Rate:\n    def of(self, x, rate): return x * rate\n"
        "    twice = functools.partialmethod(of, rate=NUMBER)\ndef total(x): return Rate().twice(x).sum()"
    },
    "a compiled helper": {
        "mod": "import numba\nRATE = NUMBER\n@numba.njit\ndef rate(): return RATE\n"
        "def total(x): return (x * rate()).sum()"
    },
    "a frame and a pattern": {
        "mod": "import re, logging, pandas as pd\nLOG = logging.getLogger(__name__)\n"
        "FRAME = pd.DataFrame({'rate NUMBER': [1.0]})\nRATE = re.compile('[0-9]+')\ndef total(x):\n"
        "    LOG.debug('')\n    return (x * int(RATE.search(FRAME.columns[0])[0])).sum()"
    },
    "functions that call each other": {
        "mod": "def even(k, x): return odd(k - 1, x) if k else x * NUMBER\n"
        "def odd(k, x): return even(k - 1, x) if k else x\ndef total(x): return even(4, x).sum()"
    },
    "a helper in another module": {
        "other": "def helper(x): return x * NUMBER",
        "mod": "import other\ndef total(x): return other.helper(x).sum()",
    },
    "a global of a helper in another module": {
        "other": "RATE = NUMBER\ndef helper(x): return x * RATE",
        "mod": "from other import helper\ndef total(x): return helper(x).sum()",
    },
    "what a module read when it was imported": {
        "other": "RATE = NUMBER",
        "mod": "import other\nRATE = other.RATE\ndef total(x): return (x * RATE).sum()",
    },
    "a module it imports itself": {
        "other": "def helper(x): return x * NUMBER",
        "mod": "def total(x):\n    import other\n    return other.helper(x).sum()",
    },
    "a module it imports itself by another name": {
        "other": "RATE = NUMBER\ndef helper(x): return x * RATE",
        "mod": "def total(x):\n    import other as own\n    def inner(): return own.helper(x)\n    return inner().sum()",
    },
    "a name it imports itself": {
        "other": "def helper(x): return x * NUMBER",
        "mod": "def total(x):\n    from other import helper as own\n    return own(x).sum()",
    },
    "a module by getattr": {
        "other": "def helper(x): return x * NUMBER",
        "mod": "import other\ndef total(x): return getattr(other, 'help' + 'er')(x).sum()",
    },
    "a module of a package": {
        "pack/__init__": "",
        "pack/rates": "def helper(x): return x * NUMBER",
        "mod": "import pack.rates\ndef total(x): return pack.rates.helper(x).sum()",
    },
    "a module of its own package, imported inside": {
        "pack/__init__": "",
        "pack/rates": "RATE = NUMBER",
        "pack/sums": "def total(x):\n    from .rates import RATE\n    from . import rates\n"
        "    return (x * (RATE + rates.RATE)).sum() / 2",
        "mod": "from pack.sums import total",
    },
}
X = np.ones((4, 1))


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder whose modules are a user's, and are forgotten afterwards."""
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # edits come within the resolution of times
    known = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - known:
        if getattr(sys.modules[name], "__file__", None) and str(tmp_path) in str(sys.modules[name].__file__):
            del sys.modules[name]


def write(folder: Path, texts: dict[str, str], number: int, blank: str = "") -> None:
    for name, text in texts.items():
        path = folder / f"{name}.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text(HEAD + blank + text.replace("NUMBER", str(number)) + "\n")


def loaded(texts: dict[str, str]) -> types.ModuleType:
    """Import the modules as autoreload does: those that were edited, in their order."""
    importlib.invalidate_caches()
    for name in texts:
        module_name = name.removesuffix("/__init__").replace("/", ".")
        if module_name in sys.modules:
            importlib.reload(sys.modules[module_name])
        else:
            importlib.import_module(module_name)
    return sys.modules["mod"]


@pytest.fixture(scope="module")
def session() -> Iterator[mn.session.Session]:
    with mn.start(workers=2, threads=1) as running:
        yield running


@pytest.mark.parametrize("read", READS)
def test_what_was_edited_is_computed_again(read: str, files: Path, session: mn.session.Session) -> None:
    texts = READS[read]
    write(files, texts, 2)
    mod, x = loaded(texts), mn.asarray(X)
    first = mn.reduce_blocks(mod.total, x, combine=np.add)
    kept = mn.reduce_blocks(mod.total, mn.asarray(2 * X), combine=np.add)
    assert float(first) == 8
    name = named_by(mod.total)
    assert not name.reason
    write(files, texts, 2, blank="# the same further down\n\n")
    assert named_by(loaded(texts).total).code == name.code, "what is the same is found again"
    write(files, texts, 3)
    mod = loaded(texts)
    assert float(mn.reduce_blocks(mod.total, x, combine=np.add)) == 12
    assert float(kept) == 16, "what was recorded before is what it was then"
    write(files, texts, 2)
    assert mn.reduce_blocks(loaded(texts).total, x, combine=np.add).expression is first.expression


def test_what_was_changed_in_memory_is_computed_again(files: Path, session: mn.session.Session) -> None:
    texts = {
        "other": "class Rate:\n    rate = NUMBER\ndef helper(x): return x * Rate.rate",
        "mod": "import other\nTABLE = {'rate': 1}\ndef total(x): return (other.helper(x) * TABLE['rate']).sum()",
    }
    write(files, texts, 2)
    mod, x = loaded(texts), mn.asarray(X)
    other = sys.modules["other"]

    def total() -> mn.DistArray:
        return mn.reduce_blocks(mod.total, x, combine=np.add)  # type: ignore[return-value]  # of one result

    first, late = total(), mn.reduce_blocks(mod.total, mn.asarray(2 * X), combine=np.add)
    assert float(first) == 8
    other.Rate.rate = 3
    assert float(total()) == 12
    assert float(late) == 16
    assert other.Rate.rate == 3, "what came with a function is not written into the user's own"
    mod.TABLE["rate"] = 2
    assert float(total()) == 24
    other.helper = lambda x: x
    assert float(total()) == 8
    assert total().expression is not first.expression


def made_by(fn: Callable[..., object]) -> dict[str, Callable[[], object]]:
    """Everything that takes a user's function, by its name; each gives arrays."""
    x, A = mn.asarray(X), mn.asarray(np.eye(4))
    return {
        "map_blocks": lambda: mn.map_blocks(lambda one: one * fn(one), x, pure=True),
        "reduce_blocks": lambda: mn.reduce_blocks(fn, x, combine=np.add),
        "combine": lambda: mn.reduce_blocks(np.sum, x, combine=lambda one, two: one + two + 0 * fn(X)),
        "replicated": lambda: mn.replicated(fn, A),
        "foreach": lambda: mn.foreach(fn, mn.splits(x)),
        "scan": lambda: mn.scan(
            x[:, 0], lambda u, a: u + a * fn(X), 0.0, update=lambda u, v: u + v + 0 * fn(X)
        ),
        "associative_scan": lambda: mn.associative_scan(lambda a, b: np.maximum(a, b) * (fn(X) > 0), x),
        "vectorize": lambda: np.vectorize(lambda one: one * fn(X))(x),
        "iterate": lambda: mn.iterate(lambda s: s + mn.replicated(fn, A), mn.zeros(()), max_iterations=2)[0],
        "nested": lambda: mn.nested.from_lists([[1.0, 2.0], [3.0]]).scan(
            lambda u, a: u + a * fn(X), identity=0.0, update=lambda u, v: u + v
        ).values,
    }


@pytest.mark.parametrize("caller", made_by(np.sum))
def test_every_way_in_follows_what_a_function_reads(
    caller: str, files: Path, session: mn.session.Session
) -> None:
    texts = READS["a global of a helper in another module"]
    expected = {}
    for number in (2, 3):
        write(files, texts, number)
        made = made_by(loaded(texts).total)[caller]()
        expected[number] = np.asarray(made[0] if isinstance(made, tuple) else made)
    if caller not in ("combine", "associative_scan"):
        assert not np.array_equal(expected[2], expected[3])
    write(files, texts, 2)
    made = made_by(loaded(texts).total)[caller]()
    np.testing.assert_array_equal(np.asarray(made[0] if isinstance(made, tuple) else made), expected[2])


def test_selected_entries_follow_what_a_function_reads(files: Path, session: mn.session.Session) -> None:
    texts = {"mod": "LEAST = NUMBER\ndef total(row, column, value): return value >= LEAST"}
    A = mn.asarray(sp.csr_array(np.arange(9.0).reshape(3, 3) + 0.5))
    for number in (2, 5, 2):
        write(files, texts, number)
        assert A.select(loaded(texts).total).nnz == 9 - number


# What cannot be followed.

NOT_FOLLOWED = {
    "a lock": "import threading\nLOCK = threading.Lock()\ndef total(x):\n    with LOCK: return x.sum() * NUMBER",
    "a lock in an object": "import threading\nclass Own:\n    def __init__(self): self.lock = threading.Lock()\n"
    "OWN = Own()\ndef total(x):\n    with OWN.lock: return x.sum() * NUMBER",
    "a lock of a decorator": "import threading\ndef locked(fn):\n    lock = threading.Lock()\n"
    "    @functools.wraps(fn)\n    def inner(x):\n        with lock: return fn(x)\n    return inner\n"
    "@locked\ndef total(x): return x.sum() * NUMBER",
    "open": "import pathlib\nPATH = pathlib.Path(__file__).parent / 'rate.txt'\n"
    "def total(x):\n    with open(PATH) as file: return x.sum() * int(file.read())",
    "eval": "def total(x): return eval('x.sum() * NUMBER')",
    "the environment": "import os\ndef total(x): return x.sum() * int(os.environ.get('RATE', NUMBER))",
    "getenv": "from os import getenv\ndef total(x): return x.sum() * int(getenv('RATE', NUMBER))",
    "environ": "from os import environ\ndef total(x): return x.sum() * int(environ.get('RATE', NUMBER))",
    "a file by NumPy": "import pathlib\nPATH = pathlib.Path(__file__).parent / 'rate.txt'\n"
    "def total(x): return x.sum() * int(np.loadtxt(PATH))",
    "a method beside a lock": "import threading\nclass Own:\n    def __init__(self): self.lock = threading.Lock()\n"
    "    def rate(self): return NUMBER\nOWN = Own()\ndef total(x): return x.sum() * OWN.rate()",
    "importlib": "import importlib\ndef total(x): return x.sum() * importlib.import_module('oth' + 'er').RATE",
}


@pytest.mark.parametrize("read", NOT_FOLLOWED)
def test_what_cannot_be_followed_is_not_remembered_and_told(
    read: str, files: Path, session: mn.session.Session
) -> None:
    texts = {"other": "RATE = NUMBER", "mod": NOT_FOLLOWED[read]}
    x = mn.asarray(X)
    for number in (2, 3):
        (files / "rate.txt").write_text(str(number))
        write(files, texts, number)
        mod = loaded(texts)
        made = mn.reduce_blocks(mod.total, x, combine=np.add)
        assert "not remembered: total reads" in str(made.explain())
        assert float(made) == number * 4
        assert mn.reduce_blocks(mod.total, x, combine=np.add).expression is not made.expression
    assert named_by(mod.total).reason


def test_a_worker_process_calls_the_edited_version(files: Path) -> None:
    several = (
        "a helper in another module", "a module it imports itself by another name", "a class attribute",
        "a module of its own package, imported inside", "a lock",
    )  # fmt: skip
    x = mn.asarray(X)
    with mn.start(workers=1, threads=1, processes=True):
        for number in (2, 3):
            for read in several:
                texts = READS.get(read) or {"mod": NOT_FOLLOWED[read]}
                write(files, texts, number)
                made = mn.reduce_blocks(loaded(texts).total, x, combine=np.add)
                assert float(made) == number * 4, read


def test_names_are_the_same_in_another_process(files: Path) -> None:
    script = (
        "import sys, hashlib, importlib\nfrom matnb.lazy.functions.portable import named_by\n"
        "for name in sys.argv[1:]:\n"
        "    print(hashlib.sha256(named_by(importlib.import_module(name).total).code).hexdigest())\n"
    )
    names, expected = [], []
    for place, (read, texts) in enumerate(READS.items()):
        if len(texts) == 1 and read not in ("a compiled helper", "a frame and a pattern"):  # slow to import
            names.append(f"mod{place}")
            write(files, {names[-1]: texts["mod"]}, 2)
            importlib.invalidate_caches()
            code = named_by(importlib.import_module(names[-1]).total).code
            expected.append(hashlib.sha256(code).hexdigest())
    found = subprocess.run(
        [sys.executable, "-c", script, *names], cwd=files, capture_output=True, text=True, check=True,
        env={**os.environ, "PYTHONHASHSEED": "1", "PYTHONPATH": os.pathsep.join([str(files), *sys.path])},
    ).stdout.split()  # fmt: skip
    assert found == expected
