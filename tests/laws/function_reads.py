"""A user's modules, each of which reads NUMBER in another way; ``total`` multiplies the sum of ones by it."""

from __future__ import annotations

# Each begins with the name of its file; those that others import come first.
READS = {
    "its code": """
#: mod
def total(x):
    return (x * NUMBER).sum()
""",
    "a default": """
#: mod
def total(x, rate=NUMBER):
    return (x * rate).sum()
""",
    "a keyword's default": """
#: mod
def total(x, *, rate=NUMBER):
    return (x * rate).sum()
""",
    "a global": """
#: mod
RATE = NUMBER

def total(x):
    return (x * RATE).sum()
""",
    "a global array": """
#: mod
RATE = np.full(1, NUMBER)

def total(x):
    return (x * RATE).sum()
""",
    "a helper": """
#: mod
def helper(x):
    return x * NUMBER

def total(x):
    return helper(x).sum()
""",
    "a helper of a helper": """
#: mod
RATE = NUMBER

def inner(x):
    return x * RATE

def helper(x):
    return inner(x)

def total(x):
    return helper(x).sum()
""",
    "a global in an inner function": """
#: mod
RATE = NUMBER

def total(x):

    def inner():
        return [x * RATE for _ in 'a']
    return inner()[0].sum()
""",
    "a global in an inner class": """
#: mod
RATE = NUMBER

def total(x):

    class Inner:
        rate = RATE
    return (x * Inner.rate).sum()
""",
    "a closure": """
#: mod
def make(rate):

    def total(x):
        return (x * rate).sum()
    return total
total = make(NUMBER)
""",
    "a decorator": """
#: mod
def scaled(fn):

    @functools.wraps(fn)
    def inner(x):
        return fn(x) * NUMBER
    return inner

@scaled
def total(x):
    return x.sum()
""",
    "what a decorator is around": """
#: mod
def plain(fn):

    @functools.wraps(fn)
    def inner(x):
        return fn(x)
    return inner

@plain
def total(x):
    return (x * NUMBER).sum()
""",
    "a decorator of a class": """
#: mod
class Scaled:

    def __init__(self, fn):
        self.fn = fn

    def __call__(self, x):
        return self.fn(x) * NUMBER

@Scaled
def total(x):
    return x.sum()
""",
    "a partial": """
#: mod
def scaled(rate, x):
    return (x * rate).sum()
total = functools.partial(scaled, NUMBER)
""",
    "what a partial is of": """
#: mod
def scaled(y, x):
    return (x * y * NUMBER).sum()
total = functools.partial(scaled, 1)
""",
    "a bound method": """
#: mod
class Rate:

    def __init__(self):
        self.one = 1

    def total(self, x):
        return (x * NUMBER).sum() * self.one
total = Rate().total
""",
    "the object of a bound method": """
#: mod
class Rate:

    def __init__(self, rate):
        self.rate = rate

    def total(self, x):
        return (x * self.rate).sum()
total = Rate(NUMBER).total
""",
    "a callable's class": """
#: mod
class Rate:

    def __call__(self, x):
        return (x * NUMBER).sum()
total = Rate()
""",
    "a class attribute": """
#: mod
class Rate:
    rate = NUMBER

def total(x):
    return (x * Rate.rate).sum()
""",
    "an inherited attribute": """
#: mod
class Rate:
    rate = NUMBER

class Own(Rate):
    pass

def total(x):
    return (x * Own.rate).sum()
""",
    "a static method, a class method and a property": """
#: mod
class Rate:
    rate = NUMBER

    @classmethod
    def one(cls):
        return cls.rate

    @staticmethod
    def two(x):
        return x * Rate.one()

    @property
    def three(self):
        return self.two

def total(x):
    return Rate().three(x).sum()
""",
    "a method by super": """
#: mod
class Rate:

    def of(self, x):
        return x * NUMBER

class Own(Rate):

    def of(self, x):
        return super().of(x)

def total(x):
    return Own().of(x).sum()
""",
    "a dataclass": """
#: mod
@dataclasses.dataclass
class Rate:
    rate: int = NUMBER

def total(x):
    return (x * Rate().rate).sum()
""",
    "an enumeration": """
#: mod
class Rate(enum.Enum):
    ONE = NUMBER

def total(x):
    return (x * Rate.ONE.value).sum()
""",
    "a table of functions": """
#: mod
BY_NAME = {'scaled': lambda x: x * NUMBER}

def total(x):
    return BY_NAME['scaled'](x).sum()
""",
    "a cached helper": """
#: mod
@functools.lru_cache
def rate():
    return NUMBER

def total(x):
    return (x * rate()).sum()
""",
    "a vectorized helper": """
#: mod
scaled = np.vectorize(lambda x: x * NUMBER)

def total(x):
    return scaled(x).sum()
""",
    "an attribute of a function": """
#: mod
def helper():
    pass
helper.rate = NUMBER

def total(x):
    return (x * helper.rate).sum()
""",
    "a cached property": """
#: mod
class Rate:

    @functools.cached_property
    def rate(self):
        return NUMBER

def total(x):
    return (x * Rate().rate).sum()
""",
    "a function chosen by type": """
#: mod
@functools.singledispatch
def scaled(x):
    return 0

@scaled.register
def _(x: np.ndarray):
    return x * NUMBER

def total(x):
    return scaled(x).sum()
""",
    "a context": """
#: mod
import contextlib

@contextlib.contextmanager
def rate():
    yield NUMBER

def total(x):
    with rate() as one:
        return (x * one).sum()
""",
    "a named tuple": """
#: mod
import typing

class Rate(typing.NamedTuple):
    rate: int = NUMBER

def total(x):
    return (x * Rate().rate).sum()
""",
    "an abstract class": """
#: mod
import abc

class Base(abc.ABC):

    @abc.abstractmethod
    def rate(self):
        ...

class Own(Base):

    def rate(self):
        return NUMBER

def total(x):
    return (x * Own().rate()).sum()
""",
    "slots and a generic class": """
#: mod
import typing
T = typing.TypeVar('T')

class Rate(typing.Generic[T]):
    __slots__ = ('rate',)

    def __init__(self, rate: T):
        self.rate = rate
RATE = Rate(NUMBER)

def total(x):
    return (x * RATE.rate).sum()
""",
    "a metaclass": """
#: mod
class Meta(type):

    @property
    def rate(cls):
        return NUMBER

class Rate(metaclass=Meta):
    pass

def total(x):
    return (x * Rate.rate).sum()
""",
    "a descriptor": """
#: mod
class Field:

    def __get__(self, one, kind):
        return NUMBER

class Rate:
    rate = Field()

def total(x):
    return (x * Rate().rate).sum()
""",
    "a method of a part": """
#: mod
class Rate:

    def of(self, x, rate):
        return x * rate
    twice = functools.partialmethod(of, rate=NUMBER)

def total(x):
    return Rate().twice(x).sum()
""",
    "a compiled helper": """
#: mod
import numba
RATE = NUMBER

@numba.njit
def rate():
    return RATE

def total(x):
    return (x * rate()).sum()
""",
    "a frame and a pattern": """
#: mod
import re, logging, pandas as pd
LOG = logging.getLogger(__name__)
FRAME = pd.DataFrame({'rate NUMBER': [1.0]})
RATE = re.compile('[0-9]+')

def total(x):
    LOG.debug('')
    return (x * int(RATE.search(FRAME.columns[0])[0])).sum()
""",
    "functions that call each other": """
#: mod
def even(k, x):
    return odd(k - 1, x) if k else x * NUMBER

def odd(k, x):
    return even(k - 1, x) if k else x

def total(x):
    return even(4, x).sum()
""",
    "a helper in another module": """
#: other
def helper(x):
    return x * NUMBER
#: mod
import other

def total(x):
    return other.helper(x).sum()
""",
    "a global of a helper in another module": """
#: other
RATE = NUMBER

def helper(x):
    return x * RATE
#: mod
from other import helper

def total(x):
    return helper(x).sum()
""",
    "what a module read when it was imported": """
#: other
RATE = NUMBER
#: mod
import other
RATE = other.RATE

def total(x):
    return (x * RATE).sum()
""",
    "a module it imports itself": """
#: other
def helper(x):
    return x * NUMBER
#: mod
def total(x):
    import other
    return other.helper(x).sum()
""",
    "a module it imports itself by another name": """
#: other
RATE = NUMBER

def helper(x):
    return x * RATE
#: mod
def total(x):
    import other as own

    def inner():
        return own.helper(x)
    return inner().sum()
""",
    "a name it imports itself": """
#: other
def helper(x):
    return x * NUMBER
#: mod
def total(x):
    from other import helper as own
    return own(x).sum()
""",
    "a module by getattr": """
#: other
def helper(x):
    return x * NUMBER
#: mod
import other

def total(x):
    return getattr(other, 'help' + 'er')(x).sum()
""",
    "a module of a package": """
#: pack/__init__
#: pack/rates
def helper(x):
    return x * NUMBER
#: mod
import pack.rates

def total(x):
    return pack.rates.helper(x).sum()
""",
    "a module of its own package, imported inside": """
#: pack/__init__
#: pack/rates
RATE = NUMBER
#: pack/sums
def total(x):
    from .rates import RATE
    from . import rates
    return (x * (RATE + rates.RATE)).sum() / 2
#: mod
from pack.sums import total
""",
}
# What no name tells: locks, files, and what is found while it runs.
NOT_FOLLOWED = {
    "a lock": """
#: other
RATE = NUMBER
#: mod
import threading
LOCK = threading.Lock()

def total(x):
    with LOCK:
        return x.sum() * NUMBER
""",
    "a lock in an object": """
#: other
RATE = NUMBER
#: mod
import threading

class Own:

    def __init__(self):
        self.lock = threading.Lock()
OWN = Own()

def total(x):
    with OWN.lock:
        return x.sum() * NUMBER
""",
    "a lock of a decorator": """
#: other
RATE = NUMBER
#: mod
import threading

def locked(fn):
    lock = threading.Lock()

    @functools.wraps(fn)
    def inner(x):
        with lock:
            return fn(x)
    return inner

@locked
def total(x):
    return x.sum() * NUMBER
""",
    "open": """
#: other
RATE = NUMBER
#: mod
import pathlib
PATH = pathlib.Path(__file__).parent / 'rate.txt'

def total(x):
    with open(PATH) as file:
        return x.sum() * int(file.read())
""",
    "eval": """
#: other
RATE = NUMBER
#: mod
def total(x):
    return eval('x.sum() * NUMBER')
""",
    "globals by their names": """
#: other
RATE = NUMBER
#: mod
RATE_OF_ROWS = NUMBER

def total(x):
    return x.sum() * globals()['RATE_' + 'OF_ROWS'.lower().upper()]
""",
    "a global in a text": """
#: other
RATE = NUMBER
#: mod
RATE = NUMBER

def total(x):
    return eval('x.sum() * RATE')
""",
    "globals beside a lock": """
#: other
RATE = NUMBER
#: mod
import threading
LOCK = threading.Lock()
RATE = NUMBER

def total(x):
    with LOCK:
        return [x.sum() * value for name, value in globals().items() if name.startswith('RA')][0]
""",
    "the environment": """
#: other
RATE = NUMBER
#: mod
import os

def total(x):
    return x.sum() * int(os.environ.get('RATE', NUMBER))
""",
    "getenv": """
#: other
RATE = NUMBER
#: mod
from os import getenv

def total(x):
    return x.sum() * int(getenv('RATE', NUMBER))
""",
    "environ": """
#: other
RATE = NUMBER
#: mod
from os import environ

def total(x):
    return x.sum() * int(environ.get('RATE', NUMBER))
""",
    "a file by NumPy": """
#: other
RATE = NUMBER
#: mod
import pathlib
PATH = pathlib.Path(__file__).parent / 'rate.txt'

def total(x):
    return x.sum() * int(np.loadtxt(PATH))
""",
    "a method beside a lock": """
#: other
RATE = NUMBER
#: mod
import threading

class Own:

    def __init__(self):
        self.lock = threading.Lock()

    def rate(self):
        return NUMBER
OWN = Own()

def total(x):
    return x.sum() * OWN.rate()
""",
    "importlib": """
#: other
RATE = NUMBER
#: mod
import importlib

def total(x):
    return x.sum() * importlib.import_module('oth' + 'er').RATE
""",
}


def files_of(text: str) -> dict[str, str]:
    """Return the text of each file by its name, without the ending."""
    parts = [one.partition("\n") for one in text.split("#: ")[1:]]
    return {name: body for name, _, body in parts}
