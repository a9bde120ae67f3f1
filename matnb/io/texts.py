"""What texts are written as: numbers, dates, times, true and false; and texts that stand for no value."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from matnb.errors import OptionError
from matnb.io.durations import durations_of

if TYPE_CHECKING:
    import pyarrow

# As pandas reads them, and "NAN", which parsing numbers knows too.
NO_VALUE = (
    *("", "NA", "N/A", "n/a", "#N/A", "#N/A N/A", "#NA", "<NA>", "NULL", "null", "None"),
    *("NaN", "nan", "NAN", "-NaN", "-nan", "1.#IND", "-1.#IND", "1.#QNAN", "-1.#QNAN"),
)
TRUE, FALSE = ("true", "True", "TRUE"), ("false", "False", "FALSE")
# What values of a type are tried as, where they are not of it.
WIDER = {"int64": "uint64", "uint64": "float64", "date32": "timestamp[us]", "timestamp[us]": "timestamp[ns]"}
WIDER |= {"timestamp[us, UTC]": "timestamp[ns, UTC]", "duration[us]": "duration[ns]"}
TRIED = (
    *("int64", "uint64", "float64", "bool", "date32"),
    *("timestamp[us]", "timestamp[ns]", "timestamp[us, UTC]", "timestamp[ns, UTC]"),
    *("duration[us]", "duration[ns]"),
)
# Those that Arrow's reader of CSV does not know, or of which it forgets the offset.
WITH_OFFSET = ("timestamp[us, UTC]", "timestamp[ns, UTC]")
READ_AS_TEXT = (*WITH_OFFSET, "duration[us]", "duration[ns]")
OFFSET = "[+-][0-9]{2}(?::?[0-9]{2})?"  # of a zone, of hours or of hours and minutes; Z is UTC's
WHOLE = r"^[+-]?[0-9]+$"
CODE = "^0[0-9]+$"  # whole numbers that may be codes, such as ZIP codes
DECIMAL_COMMA = r"^[+-]?[0-9]{1,3}(\.[0-9]{3})*,[0-9]+$|^[+-]?[0-9]+,[0-9]+$"
POINTS = r"^[+-]?[1-9][0-9]{0,2}(\.[0-9]{3})+(,[0-9]+)?$"  # between thousands, as may be
SYMBOL = r"^[-–—.…?*#~/\\]{1,4}$"  # that may stand for no value  # noqa: RUF001
WORDS, _MOST_WORDS = "^[^0-9]{1,20}$", 5  # that may stand for no value, and how many are told
NUMBER = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"
_ODD_INTEGER = r"^(-0+|[+-]?0[xX].*)$"  # a zero with a sign is a float's; Arrow takes sixteens for integers
EXACT = 2**53  # up to which a double holds each whole number
NaWord: TypeAlias = str | float
NaValues: TypeAlias = NaWord | Sequence[NaWord] | Mapping[str, NaWord | Sequence[NaWord]]


@dataclass(frozen=True)
class Marks:
    """The characters in numbers: before the part below one, and between thousands, "" where there is none."""

    decimal: str = "."
    thousands: str = ""

    @property
    def are_usual(self) -> bool:
        """Whether numbers are written as Python writes them."""
        return self == USUAL_MARKS


USUAL_MARKS = Marks()


def checked_marks(decimal: object, thousands: object) -> Marks:
    """Return the marks of numbers: before the part below one a point, or a comma if points are thousands'.

    Raises
    ------
    OptionError
        For anything else than one character each, which no number has elsewhere, and two of them.
    """
    decimal = decimal or ("," if thousands == "." else ".")
    for option, value in (("decimal", decimal), ("thousands", thousands)):
        if value is None and option == "thousands":
            continue
        if not isinstance(value, str) or len(value) != 1 or re.match(r'[\w"+\r\n-]', value):
            raise OptionError(f"{option}={value!r}: give one character, such as ',', not a letter or a sign")
    if not str(decimal).isascii():
        raise OptionError(f"decimal={decimal!r}: give a character of ASCII")
    if decimal == thousands:
        raise OptionError(f"decimal={decimal!r} and thousands={thousands!r} are one character")
    return Marks(str(decimal), "" if thousands is None else str(thousands))


@dataclass(frozen=True)
class NullTexts:
    """The texts that stand for no value.

    Attributes
    ----------
    defaults
        Those that do so where they are not quoted.
    given
        Those that a user named, which do so in quotes too.
    """

    defaults: tuple[str, ...] = NO_VALUE
    given: tuple[str, ...] = ()

    @property
    def words(self) -> tuple[str, ...]:
        """All of them."""
        return self.defaults + self.given

    @property
    def numbers(self) -> tuple[float, ...]:
        """Those that are numbers, which stand for no value however they are written."""
        found = []
        for text in self.given:
            try:
                found.append(float(text))
            except ValueError:
                continue
        return tuple(one for one in found if one == one)


@dataclass(frozen=True)
class MissingTexts:
    """What stands for no value in each column: of some by name, of all others alike."""

    others: NullTexts = NullTexts()
    by_name: tuple[tuple[str, NullTexts], ...] = ()

    def of(self, name: str) -> NullTexts:
        """Return what stands for no value in a column."""
        return dict(self.by_name).get(name, self.others)


def missing_texts(na_values: NaValues, keep_default_na: bool, names: Sequence[str]) -> MissingTexts:
    """Return the texts that stand for no value, from options that mean what they mean in pandas.

    Raises
    ------
    OptionError
        For a value that is neither a string nor a number, and a name that no column has.
    """
    defaults = NO_VALUE if keep_default_na else ()
    if not isinstance(na_values, Mapping):
        return MissingTexts(NullTexts(defaults, _texts_of(na_values)))
    for name in na_values:
        if name not in names:
            raise OptionError(f"na_values: no column {name!r}; they are {', '.join(map(repr, names[:50]))}")
    own = [(str(name), NullTexts(defaults, _texts_of(values))) for name, values in na_values.items()]
    return MissingTexts(NullTexts(defaults), tuple(own))


def _texts_of(values: NaWord | Sequence[NaWord]) -> tuple[str, ...]:
    listed = [values] if isinstance(values, str | int | float) else list(values)
    for value in listed:
        if not isinstance(value, str | int | float | np.integer | np.floating):
            raise OptionError(f"na_values: {value!r} is neither a string nor a number")
    found: dict[str, None] = {}
    for value in listed:
        found[str(value)] = None
        try:
            number = float(value)
        except ValueError:
            continue
        if number.is_integer():  # 999 is 999.0, too
            found |= {f"{int(number)}.0": None, str(int(number)): None}
    return tuple(found)


def arrow_type(word: str) -> pyarrow.DataType:
    """Return Arrow's type of what values are written as; text has a dictionary."""
    import pyarrow

    if word == "text":
        return pyarrow.dictionary(pyarrow.int32(), pyarrow.string())
    if word == "date32":
        return pyarrow.date32()
    unit, _, zone = word.removeprefix("timestamp[").rstrip("]").partition(", ")
    if word.startswith("timestamp"):
        return pyarrow.timestamp(unit, zone or None)
    if word.startswith("duration"):
        return pyarrow.duration(word[len("duration[") : -1])
    return pyarrow.from_numpy_dtype(np.dtype(word))


def present(texts: pyarrow.Array, words: Sequence[str]) -> pyarrow.Array:
    """Return texts with nulls where they stand for no value."""
    from pyarrow import compute

    return compute.if_else(compute.is_in(texts, strings(words)), None, texts) if words else texts


def words_among(texts: pyarrow.Array | None, missing: Sequence[str]) -> list[str]:
    """Return the first few texts that no number and no date is written as, and that are not missing."""
    if texts is None:
        return []
    from pyarrow import compute

    distinct = compute.unique(present(compute.utf8_trim_whitespace(texts), missing)).drop_null()
    is_word = compute.match_substring_regex(distinct, WORDS)
    is_float = compute.match_substring_regex(distinct, "(?i)^[+-]?(inf(inity)?|nan)$")
    found = distinct.filter(compute.and_not(is_word, is_float))
    return found[:_MOST_WORDS].to_pylist()  # type: ignore[no-any-return]  # strings


def strings(texts: Sequence[str | None]) -> pyarrow.Array:
    """Return an Arrow array of strings."""
    import pyarrow

    return pyarrow.array(list(texts), pyarrow.string())


def without_numbers(values: pyarrow.Array, numbers: Sequence[float]) -> pyarrow.Array:
    """Return numbers with nulls where they are some that stand for no value."""
    import pyarrow
    from pyarrow import compute

    if pyarrow.types.is_integer(values.type):
        limits = np.iinfo(values.type.to_pandas_dtype())
        numbers = [int(one) for one in numbers if one == np.floor(one) and limits.min <= one <= limits.max]
    elif not pyarrow.types.is_floating(values.type):
        return values
    if not numbers:
        return values
    return compute.if_else(compute.is_in(values, pyarrow.array(numbers, values.type)), None, values)


def values_in(
    texts: pyarrow.Array, word: str, marks: Marks = USUAL_MARKS, exact: bool = False, takes_nan: bool = True
) -> pyarrow.Array | None:
    """Return texts without spaces around them as values of a type; None where one is not of it.

    Parameters
    ----------
    texts
        An Arrow array of strings.
    word
        The type, as Arrow writes it.
    marks
        How numbers are written.
    exact
        Whether a float of a whole number has to be that number.
    takes_nan
        Whether "nan" is a number.
    """
    from pyarrow import ArrowInvalid, compute

    if word == "bool":
        is_true = compute.is_in(texts, strings(TRUE))
        is_one = compute.or_(is_true, compute.is_in(texts, strings(FALSE)))
        if not compute.all(compute.or_(is_one, texts.is_null()), min_count=0).as_py():
            return None
        return compute.if_else(texts.is_null(), None, is_true)
    if word in ("int64", "uint64", "float64"):
        plain = _plain_numbers(texts, marks)
        if plain is None:
            return None
        if word != "float64" and _any(compute.match_substring_regex(plain, _ODD_INTEGER)):
            return None
        if word != "float64" and exact and _any(compute.match_substring_regex(plain, CODE)):
            return None
        if not takes_nan and _any(compute.match_substring_regex(plain, "^[+-]?[nN][aA][nN]$")):
            return None
        texts = compute.replace_substring_regex(plain, r"^\+([0-9.iI])", r"\1")
    if word.startswith("duration"):
        made = durations_of(texts)
        if made is not None and word == "duration[ns]":
            return made.cast(arrow_type(word))
        return None if made is None or made.type != arrow_type(word) else made
    try:
        made = texts.cast(arrow_type(word))
    except ArrowInvalid:
        return None
    if word in WITH_OFFSET:
        return _with_offset(texts, made)
    return None if exact and word == "float64" and inexact_place(texts, made) is not None else made


def offsets_in(texts: pyarrow.Array) -> list[str]:
    """Return the offsets that times are written with, "UTC" for that of zero."""
    from pyarrow import compute

    parts = compute.extract_regex(texts, f"(?P<offset>Z|{OFFSET})$").field(0)
    found = parts.filter(texts.is_valid()).unique().to_pylist()
    named = (whole_offset(one) for one in found if one is not None and one != "Z")
    made = {"UTC" if one[1:] == "00:00" else one for one in named}
    return sorted(made | ({"UTC"} if "Z" in found else set()))


def whole_offset(offset: str) -> str:
    """Return "+01", "+0100" or "+01:00" as the last."""
    return f"{offset[:3]}:{offset[3:].strip(':') or '00'}"


def _with_offset(texts: pyarrow.Array, times: pyarrow.Array) -> pyarrow.Array:
    # Times of the offset that they are written with, of UTC if of several, of no type if there is none.
    import pyarrow

    offsets = offsets_in(texts)
    if not offsets:
        return pyarrow.nulls(len(times))
    return times.cast(pyarrow.timestamp(times.type.unit, offsets[0] if len(offsets) == 1 else "UTC"))


def _plain_numbers(texts: pyarrow.Array, marks: Marks) -> pyarrow.Array | None:
    # Numbers as Python writes them; None where the marks are not where they belong.
    from pyarrow import compute

    if marks.are_usual:
        return texts
    texts = without_thousands(texts, marks)
    if marks.thousands and _any(compute.match_substring(texts, marks.thousands)):
        return None
    if marks.decimal != ".":
        if _any(compute.match_substring(texts, ".")):
            return None
        texts = compute.replace_substring(texts, marks.decimal, ".")
    return texts


def without_thousands(texts: pyarrow.Array, marks: Marks) -> pyarrow.Array:
    """Return numbers without the marks between thousands, where these are in their places."""
    from pyarrow import compute

    if not marks.thousands:
        return texts
    mark, point = re.escape(marks.thousands), re.escape(marks.decimal)
    form = rf"^[+-]?[0-9]{{1,3}}({mark}[0-9]{{2,3}})*{mark}[0-9]{{3}}({point}[0-9]*)?$"  # 12,34,567 too
    is_grouped = compute.match_substring_regex(texts, form)
    return compute.if_else(is_grouped, compute.replace_substring(texts, marks.thousands, ""), texts)


def _any(found: pyarrow.Array) -> bool:
    from pyarrow import compute

    return bool(compute.any(found, min_count=0).as_py())


def inexact_place(texts: pyarrow.Array, values: pyarrow.Array) -> int | None:
    """Return the place of the first whole number that the float made of it is not; None if all are."""
    from pyarrow import compute

    found = values.to_numpy(zero_copy_only=False)
    with np.errstate(invalid="ignore"):
        large = np.flatnonzero(np.abs(found) >= EXACT)
    if not large.size:
        return None
    written = texts.take(large)
    is_whole = compute.match_substring_regex(written, WHOLE)
    places = large[is_whole.to_numpy(zero_copy_only=False)].tolist()
    for place, text in zip(places, written.filter(is_whole).to_pylist(), strict=True):
        value = float(found[place])
        if not np.isfinite(value) or int(text) != int(value):  # a finite one has 309 digits at most
            return int(place)
    return None


def integers_of(values: pyarrow.Array) -> pyarrow.Array | None:
    """Return texts or decimal numbers as int64, or else uint64; None where neither type has all of them."""
    import pyarrow

    for integers in (pyarrow.int64(), pyarrow.uint64()):
        try:
            return values.cast(integers)
        except pyarrow.ArrowInvalid:
            continue
    return None


_DAYS = (
    "%Y-%m-%d",
    "%Y%m%d",
    "%d.%m.%Y",
    "%d/%m/%Y",
    "%m/%d/%Y",
    "%Y/%m/%d",
    "%d-%m-%Y",
    "%m-%d-%Y",
    "%d.%m.%y",
    "%d/%m/%y",
    "%m/%d/%y",
    "%d %b %Y",
    "%b %d, %Y",
)
_CLOCKS = ("", " %H:%M", " %H:%M:%S", " %H:%M:%S.%f", " %I:%M %p", "T%H:%M:%S")


def date_way(texts: Sequence[str], reads: str) -> str:
    """Return how a form makes dates or times of texts, both forms where the day or the month may be first.

    Parameters
    ----------
    texts
        Some, of which the forms are those that all have.
    reads
        What follows the call of ``to_datetime``.

    Examples
    --------
    >>> date_way(["31.12.2020 08:15"], "reads it"), date_way(["Monday"], "reads it")
    ('to_datetime("%d.%m.%Y %H:%M") reads it', 'to_datetime("%d.%m.%Y") reads "31.12.2020"')
    """
    by_text = [forms for text in texts if (forms := forms_of(text))]
    common = [form for form in (by_text or [[]])[0] if all(form in forms for forms in by_text)]
    if not by_text:
        return 'to_datetime("%d.%m.%Y") reads "31.12.2020"'
    if not common:
        return f'to_datetime("{by_text[0][0]}") {reads}'
    way = f'to_datetime("{common[0]}") {reads}'
    month_first = next((form for form in common[1:] if form.startswith("%m")), None)
    if month_first is None:
        return way
    return f'{way} with the day first, to_datetime("{month_first}") with the month first, as pandas does'


def forms_of(text: str) -> list[str]:
    """Return how a time is written, as :meth:`datetime.datetime.strptime` takes it; nothing if it is none.

    Examples
    --------
    >>> forms_of("01/02/2024"), forms_of("Monday")
    (['%d/%m/%Y', '%m/%d/%Y'], [])
    """
    found = []
    for form in (day + clock for day in _DAYS for clock in _CLOCKS):
        with suppress(ValueError):
            datetime.strptime(text, form)
            found.append(form)
    return found
