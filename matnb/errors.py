"""The error tree: every error is a MatnbError and also the builtin a Python user expects; and near names."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import get_close_matches
from dis import opmap
from pathlib import Path
from typing import NoReturn

import numpy as np

from matnb.location import Location, shown_text

_BETWEEN = ("matnb.", "contextlib")  # modules whose frames lie between a user's line and a warning


class MatnbError(Exception):
    """Base of every error matnb raises, except :class:`CellCancelled`.

    Urls in its message and notes are shown without user, password, query and fragment.

    Attributes
    ----------
    lines
        Cell lines that wrote the expression, where an error was found on a worker.
    expression
        That expression as one line of text.
    cell
        File name of the cell, where it is an earlier one than that which asked for a value.
    raised_at
        File and line of the user's function that raised it, or that gave what it had not promised.
    file
        What could not be read where this was raised, which may be another machine.
    """

    lines: tuple[int, ...] = ()
    expression: str = ""
    cell: str = ""
    raised_at: tuple[str, int] | None = None
    file: object = None

    def __init__(self, *words: object) -> None:
        super().__init__(*(_in_a_line(shown_text(one)) if isinstance(one, str) else one for one in words))

    def add_note(self, note: str) -> None:
        """Add a line below the message."""
        super().add_note(shown_text(note))


def _in_a_line(text: str) -> str:
    return text if "\n" not in text else " ".join(text.split())  # an array that is shown has many


class ShapeError(MatnbError, ValueError):
    """Shapes, axes or cuts that do not fit together."""


class DTypeError(MatnbError, TypeError):
    """A dtype or an operand of a kind that the operation does not take."""


class DataDTypeError(DTypeError, ValueError):
    """Data of a dtype that an estimator does not take; scikit-learn raises a ValueError there."""


class RangeError(DTypeError, OverflowError):
    """A number outside the range of the dtype that it takes on."""


class ArgumentError(MatnbError, TypeError):
    """Arguments that a function does not take; the message says which ones it does."""


class IndexingError(MatnbError, IndexError):
    """An index outside an array, or of a kind that cannot index it."""


class ColumnError(MatnbError, KeyError):
    """A name that no column of a table has."""

    __str__ = Exception.__str__  # a KeyError puts its message in quotes


class OptionError(MatnbError, ValueError):
    """An option, argument or environment variable with a value that is not allowed."""


class AxisError(ShapeError, IndexingError, np.exceptions.AxisError):
    """An axis that an array does not have: NumPy's error too, which is a ValueError and an IndexError.

    Parameters
    ----------
    message
        What is wrong, in words.
    axis, ndim
        The axis and the number of axes, where there is one of each, as NumPy's error has them.
    """

    def __init__(self, message: str, axis: int | None = None, ndim: int | None = None) -> None:
        super().__init__(message)
        self.axis, self.ndim = axis, ndim

    def __str__(self) -> str:
        return str(self.args[0])  # to which NumPy's would add what it says


class UnsupportedError(MatnbError, NotImplementedError):
    """Something matnb does not do; the message names the nearest way."""


class NotFittedError(MatnbError, ValueError, AttributeError):
    """Something that is learned was asked of an estimator before its ``fit``."""


class NotScalarError(MatnbError, TypeError):
    """A single value was asked of an array that holds more than one."""


class LoopBodyError(MatnbError, TypeError):
    """A value was asked for inside the body of a loop or branch, which is only recorded."""


class FileFormatError(MatnbError, ValueError):
    """A file that cannot be read as what it claims to be.

    Parameters
    ----------
    path
        The file as the user named it.
    reason
        What is wrong, with the offending values.
    line
        1-based line of a text file, or None where lines have no meaning.
    """

    def __init__(self, path: str | Path | Location, reason: str, line: int | None = None) -> None:
        self.path, self.reason, self.line = shown_text(str(path)), shown_text(reason), line
        place = f"{self.path}, line {line}" if line is not None else self.path
        super().__init__(f"{place}: {self.reason}")

    def __reduce__(self) -> tuple[type[FileFormatError], tuple[str, str, int | None], dict[str, object]]:
        return type(self), (self.path, self.reason, self.line), self.__dict__


class FileContentWarning(UserWarning):
    """A file or texts that were read, but may mean something else than they were read as."""


class LostWriteWarning(UserWarning):
    """A change of a copy of a part of an array, where NumPy would change the array itself."""


class StoredZerosWarning(UserWarning):
    """A computed graph that stores entries which are 0, and which an algorithm counts as edges."""


class ConvergenceWarning(UserWarning):
    """An iterative algorithm took all its iterations and did not converge: its result is the last one's."""


class MissingFileError(MatnbError, FileNotFoundError):
    """A file that is not there, or not visible from the workers."""


class WriteError(MatnbError, OSError):
    """A file that could not be written, with the system's ``errno``; what was there before still is."""


class TooLargeError(MatnbError, MemoryError):
    """A result or a plan that does not fit the limit; the message has the numbers and what to do."""


class CellSyntaxError(MatnbError):
    """A cell that is not Python; its cause is the SyntaxError.

    Not a SyntaxError itself, of which IPython would show the way from IPython to the compiler too.
    """


class ClusterError(MatnbError, RuntimeError):
    """The cluster could not be started, reached or kept."""


class VersionMismatchError(ClusterError):
    """Client, scheduler and workers run versions that do not work together."""


class WorkerLostError(ClusterError):
    """Workers died and the run could not be finished over the survivors."""


class SessionEnded(MatnbError, RuntimeError):  # noqa: N818  DESIGN names it so: it states an event, as StopIteration does
    """A value lived only on a cluster that has been stopped."""


class KernelError(MatnbError, RuntimeError):
    """A kernel failed on a worker with an error that is none of ours."""


class KernelValueError(KernelError, ValueError):
    """A kernel failed on a worker with a ValueError, as for an integer to a negative power."""


class SingularError(KernelValueError, np.linalg.LinAlgError):
    """A matrix has no inverse, or no decomposition was found."""


def kernel_error(cause: BaseException, text: str) -> KernelError:
    """Return an error that tells of one that is none of ours, and is of its kind where people catch it."""
    if isinstance(cause, np.linalg.LinAlgError):
        return SingularError(text)
    return KernelValueError(text) if isinstance(cause, ValueError) else KernelError(text)


class CellCancelled(KeyboardInterrupt):
    """The user interrupted a run; what was finished is kept.

    A plain KeyboardInterrupt, so that ``except Exception`` does not swallow it.
    """


def warn(text: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the user's line, however many calls of matnb's lie between."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and str(frame.f_globals.get("__name__")).startswith(_BETWEEN):
        frame, level = frame.f_back, level + 1
    warnings.warn(text, category, stacklevel=level)


# What is said of a name that is not there: the one that was meant, or which there are.

_LIKENESS = 0.7  # of two texts, from 0 to 1; at 0.6 "sometimes" is like "entries"
_LONGEST_NAME, _MOST_NAMES = 60, 50  # letters of a name that is compared, and names that are listed


def near_name(name: object, known: Iterable[object]) -> str | None:
    """Return which of some names is most like one that is not among them; None where none is like it."""
    if not isinstance(name, str) or len(name) > _LONGEST_NAME:
        return None
    names = {one.casefold(): one for one in known if isinstance(one, str) and len(one) <= _LONGEST_NAME}
    found = get_close_matches(name.casefold(), names, 1, _LIKENESS)
    return names[found[0]] if found else None


def meant(
    name: object, known: Iterable[object], shown: Callable[[object], str] = repr, before: str = ""
) -> str:
    """Return a question for the name that was meant, after other words, or nothing where none is near."""
    near = near_name(name, known)
    return "" if near is None else f"{before}did you mean {shown(near)}?"


def suggestion(
    name: object,
    known: Iterable[object],
    otherwise: str = "there are",
    shown: Callable[[object], str] = repr,
) -> str:
    """Return what follows the complaint about a name: which one is near, else which there are.

    Examples
    --------
    >>> suggestion("fair", ["fare", "tip"]), suggestion("zone", ["fare", "tip"])
    ("did you mean 'fare'?", "there are 'fare', 'tip'")
    """
    names = list(known)
    listed = [shown(one) for one in names[:_MOST_NAMES]] or ["none"]
    more = f" and {len(names) - _MOST_NAMES:,} more" if len(names) > _MOST_NAMES else ""
    return meant(name, names, shown) or f"{otherwise} {', '.join(listed)}{more}"


class MissingAttributeError(AttributeError):
    """An attribute that is not there; the message, made when it is read, says what to write instead."""

    # Libraries ask for many names that are not there, and read nothing.

    def __init__(self, name: str, said: Callable[[], str]) -> None:
        super().__init__(name=name, obj=None)  # of an object Python would add a suggestion of its own
        self._said = said

    def __str__(self) -> str:
        return self._said()

    def __reduce__(self) -> tuple[type[AttributeError], tuple[str]]:
        return AttributeError, (str(self),)


def no_attribute(
    owner: str, name: str, known: Callable[[], Iterable[str]] = tuple, instead: Callable[[], str] = str
) -> AttributeError:
    """Return the error for an attribute that is not there, with what to write instead or a near name.

    ``known`` and ``instead`` are called when the message is read.
    """

    def said() -> str:
        words = instead() or meant(name, (one for one in known() if not one.startswith("_")))
        return f"{owner} has no attribute {name!r}{'; ' if words else ''}{words}"

    return MissingAttributeError(name, said)


def ways(words: Mapping[str, str]) -> dict[str, str]:
    """Return what to write instead of each name, where a key of ``words`` may be several names."""
    return {name: f"write {way}" for names, way in words.items() for name in names.split()}


def refuse_import(module: str, name: str, instead: Callable[[], str]) -> None:
    """Raise where ``from module import name`` asks for what there is another way for.

    Of an AttributeError Python makes an ImportError of its own, which says nothing of the way.

    Raises
    ------
    ImportError
        With what to write.
    """
    frame = sys._getframe(1)
    while f"{frame.f_globals.get('__name__')}.".startswith(_BETWEEN) and frame.f_back is not None:
        frame = frame.f_back
    if frame.f_code.co_code[frame.f_lasti] == opmap["IMPORT_FROM"] and (words := instead()):
        raise ImportError(f"cannot import name {name!r} from {module!r}; {words}", name=name)


def offered(
    module: str, names: Sequence[str], instead: Callable[[str], str] = lambda name: ""
) -> tuple[Callable[[str], NoReturn], Callable[[], list[str]]]:
    """Return ``__getattr__`` and ``__dir__`` of a module that completes these names, and tells near ones."""

    def missing(name: str) -> NoReturn:
        refuse_import(module, name, lambda: instead(name))
        raise no_attribute(f"module {module!r}", name, lambda: names, lambda: instead(name))

    return missing, lambda: sorted(names)
