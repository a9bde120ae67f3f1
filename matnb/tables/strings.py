"""``column.str``: what is done to texts, once for each distinct one, however many rows have it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn
from unicodedata import normalize

import numpy as np

from matnb.errors import DTypeError, MissingAttributeError, OptionError
from matnb.io.columns import by_code_point, places_among
from matnb.io.texts import strings
from matnb.lazy.creation import asarray
from matnb.tables.accessors import keeps_names
from matnb.tables.makers import makers
from matnb.tables.pandas_names import OF_TEXTS, no_table_name
from matnb.tables.row_orders import check_length

if TYPE_CHECKING:
    import pyarrow

    from matnb.tables.columns import TextColumn
    from matnb.tables.table import Table

# What Python's regular expressions and Arrow's (RE2) may take for different things: classes, which RE2 has of
# ASCII alone, ends of lines, numbered and possessive repetitions, and groups that look around or set flags.
_PYTHONS_OWN = re.compile(r"\\[A-Za-z0-9]|[${]|\(\?|\[\[|[*+?][+]")


@keeps_names
class TextMethods:
    """Functions of the texts of a column, by pandas' names: ``t["zone"].str.lower()``.

    Each is applied to the distinct texts, in this process, and gives a column for the rows: text or whole
    numbers, missing where the text is, or an array of booleans, which a missing text gives False (``na``
    where a function has it). Regular expressions are Python's.

    Examples
    --------
    >>> import matnb as mn
    >>> t = mn.table({"name": [" Ada Lovelace", "alan turing ", None]})
    >>> name = t["name"].str.strip().str.title()
    >>> name.compute().tolist(), name.str.split(" ").str[1].compute().tolist()
    (['Ada Lovelace', 'Alan Turing', nan], ['Lovelace', 'Turing', nan])
    >>> t[t["name"].str.contains("love", case=False)].shape
    (1, 1)
    """

    def __init__(self, column: TextColumn) -> None:
        self._column = column

    # Letters

    def lower(self) -> TextColumn:
        """Return texts in small letters."""
        return self._by_arrow("utf8_lower")

    def upper(self) -> TextColumn:
        """Return texts in capital letters."""
        return self._by_arrow("utf8_upper")

    def title(self) -> TextColumn:
        """Return texts of which each word begins with a capital letter, and has small ones then."""
        return self._by_arrow("utf8_title")

    def capitalize(self) -> TextColumn:
        """Return texts of which the first letter is a capital one, and the others are small."""
        return self._by_arrow("utf8_capitalize")

    def swapcase(self) -> TextColumn:
        """Return texts with small letters for capital ones, and the other way round."""
        return self._by_arrow("utf8_swapcase")

    def casefold(self) -> TextColumn:
        """Return texts for comparison without regard to capital letters."""
        return self._made(str.casefold)

    def normalize(self, form: str) -> TextColumn:
        """Return texts in one of Unicode's forms, "NFC", "NFD", "NFKC" or "NFKD"."""
        if form not in ("NFC", "NFD", "NFKC", "NFKD"):
            raise OptionError(f"str.normalize({form!r}): choose 'NFC', 'NFD', 'NFKC' or 'NFKD'")
        return self._made(lambda text: normalize(form, text))  # type: ignore[arg-type]

    # Ends

    def strip(self, to_strip: str | None = None) -> TextColumn:
        """Return texts without white space, or without some characters, at both ends."""
        return self._made(lambda text: text.strip(to_strip))

    def lstrip(self, to_strip: str | None = None) -> TextColumn:
        """Return texts without white space, or without some characters, at the beginning."""
        return self._made(lambda text: text.lstrip(to_strip))

    def rstrip(self, to_strip: str | None = None) -> TextColumn:
        """Return texts without white space, or without some characters, at the end."""
        return self._made(lambda text: text.rstrip(to_strip))

    def removeprefix(self, prefix: str) -> TextColumn:
        """Return texts without a beginning, where they have it."""
        return self._made(lambda text: text.removeprefix(prefix))

    def removesuffix(self, suffix: str) -> TextColumn:
        """Return texts without an end, where they have it."""
        return self._made(lambda text: text.removesuffix(suffix))

    def pad(self, width: int, side: str = "left", fillchar: str = " ") -> TextColumn:
        """Return texts filled up to a width on the "left", the "right" or "both" sides."""
        sides = {"left": str.rjust, "right": str.ljust, "both": str.center}
        if side not in sides:
            raise OptionError(f"str.pad(side={side!r}): choose 'left', 'right' or 'both'")
        if not isinstance(fillchar, str) or len(fillchar) != 1:
            raise OptionError(f"fillchar={fillchar!r}: give one character")
        return self._made(lambda text: sides[side](text, width, fillchar))

    def ljust(self, width: int, fillchar: str = " ") -> TextColumn:
        """Return texts filled up to a width at the end."""
        return self.pad(width, "right", fillchar)

    def rjust(self, width: int, fillchar: str = " ") -> TextColumn:
        """Return texts filled up to a width at the beginning."""
        return self.pad(width, "left", fillchar)

    def center(self, width: int, fillchar: str = " ") -> TextColumn:
        """Return texts filled up to a width on both sides."""
        return self.pad(width, "both", fillchar)

    def zfill(self, width: int) -> TextColumn:
        """Return texts filled up to a width by zeros, after a sign."""
        return self._made(lambda text: text.zfill(width))

    # Parts

    def slice(self, start: int | None = None, stop: int | None = None, step: int | None = None) -> TextColumn:
        """Return parts of texts by numbers of characters."""
        return self._made(lambda text: text[start:stop:step])

    def get(self, i: int) -> TextColumn:
        """Return one character of each text; texts that are too short give a missing value."""
        return self._made(lambda text: text[i] if -len(text) <= i < len(text) else None)

    def __getitem__(self, key: Any) -> TextColumn:
        return self.get(key) if isinstance(key, int) else self._made(lambda text: text[key])

    def repeat(self, repeats: int) -> TextColumn:
        """Return texts repeated some times."""
        return self._made(lambda text: text * repeats)

    def replace(
        self, pat: str, repl: str | Callable[..., str], n: int = -1, case: bool = True, regex: bool = False
    ) -> TextColumn:
        """Return texts with another text where a pattern is, at most ``n`` times each.

        Parameters
        ----------
        pat, repl
            A text and its replacement; with ``regex=True`` a regular expression, and a text with groups as
            ``\\\\1``, or a function of a match.
        """
        if isinstance(pat, re.Pattern):
            return self._made(lambda text: pat.sub(repl, text, max(0, n)))
        if not regex and case:
            if not isinstance(repl, str):
                raise OptionError("str.replace with a function: it is of regular expressions, regex=True")
            if not pat:
                return self._made(lambda text: text.replace(pat, repl, n))
            most = {"max_replacements": n} if n >= 0 else {}
            return self._by_arrow("replace_substring", pat, repl, **most)
        found = _compiled(pat if regex else re.escape(pat), case)
        new = repl if regex or not isinstance(repl, str) else repl.replace("\\", "\\\\")
        return self._made(lambda text: found.sub(new, text, max(0, n)))

    def extract(self, pat: str, flags: int = 0, expand: bool = True) -> Any:
        """Return the first match of each group of a regular expression; missing where there is none.

        Returns
        -------
        Table or TextColumn
            A table with a column per group, by its name or else its number; with ``expand=False`` and one
            group the column.
        """
        found = _compiled(pat, flags=flags)
        if not found.groups:
            raise OptionError(f"str.extract({pat!r}) has no group: put what is wanted in brackets")
        names = {place: name for name, place in found.groupindex.items()}
        matches = [None if text is None else found.search(text) for text in self._labels()]
        columns = {
            names.get(group, str(group - 1)): self._column_of(
                [None if match is None else match[group] for match in matches]
            )
            for group in range(1, found.groups + 1)
        }
        return _table(columns) if expand or found.groups > 1 else next(iter(columns.values()))

    def split(
        self, pat: str | None = None, n: int = -1, expand: bool = False, regex: bool | None = None
    ) -> Any:
        """Return texts split at a separator, by default at white space, ``n`` times at most.

        Parameters
        ----------
        regex
            Whether the separator is a regular expression: by default if it is longer than one character.

        Returns
        -------
        SplitText or Table
            ``x.str.split(",").str[0]`` are the first parts; ``expand=True`` gives a table of all of them,
            with the columns "0", "1" and so on.
        """
        if pat == "":
            raise OptionError('str.split(""): give a separator; x.str[0] is the first character')
        most = n if n and n > 0 else -1
        if isinstance(pat, re.Pattern) or (pat and (len(pat) > 1 if regex is None else regex)):
            found = _compiled(pat)
            return self._split(lambda text: found.split(text, max(0, most)), expand)
        return self._split(lambda text: text.split(pat, most), expand)

    def rsplit(self, pat: str | None = None, n: int = -1, expand: bool = False) -> Any:
        """Return texts split at a separator, counted from the end; see :meth:`split`."""
        return self._split(lambda text: text.rsplit(pat, n if n and n > 0 else -1), expand)

    def partition(self, sep: str = " ", expand: bool = True) -> Any:
        """Return a table of what is before a separator, the separator, and what is after it."""
        return self._split(lambda text: list(text.partition(sep)), expand)

    def cat(self, others: Any = None, sep: str = "", na_rep: str | None = None) -> TextColumn:
        """Return the texts joined with those of another column, or of several in a list.

        The distinct pairs of texts are joined in this process.

        Parameters
        ----------
        others
            A column of text, or a list of columns.
        sep
            What is put between.
        na_rep
            What stands for a missing text; None to make the result missing.
        """
        given = list(others) if isinstance(others, list | tuple) else [others]
        found = self._column
        for one in given:
            if not isinstance(one, type(found)):
                raise DTypeError("str.cat: give a column of text, or a list of columns")
            found = _joined(found, one, sep, na_rep)
        return found

    # Tests

    def contains(
        self, pat: str, case: bool = True, flags: int = 0, na: Any = False, regex: bool = True
    ) -> Any:
        """Return where texts contain a regular expression, or with ``regex=False`` a text."""
        if isinstance(pat, re.Pattern):
            return self._tests(lambda text: pat.search(text) is not None, na)
        if not regex and case:
            return self._tests(lambda text: pat in text, na, "match_substring", pat)
        found = _compiled(pat if regex else re.escape(pat), case, flags)
        arrow = () if not case or flags or _PYTHONS_OWN.search(pat) else ("match_substring_regex", pat)
        return self._tests(lambda text: found.search(text) is not None, na, *arrow)

    def match(self, pat: str, case: bool = True, flags: int = 0, na: Any = False) -> Any:
        """Return where texts begin with a regular expression."""
        found = _compiled(pat, case, flags)
        return self._tests(lambda text: found.match(text) is not None, na)

    def fullmatch(self, pat: str, case: bool = True, flags: int = 0, na: Any = False) -> Any:
        """Return where whole texts match a regular expression."""
        found = _compiled(pat, case, flags)
        return self._tests(lambda text: found.fullmatch(text) is not None, na)

    def startswith(self, pat: str | tuple[str, ...], na: Any = False) -> Any:
        """Return where texts begin with a text, or with one of several."""
        _check_texts("startswith", pat)
        arrow = ("starts_with", pat) if isinstance(pat, str) else ()
        return self._tests(lambda text: text.startswith(pat), na, *arrow)

    def endswith(self, pat: str | tuple[str, ...], na: Any = False) -> Any:
        """Return where texts end with a text, or with one of several."""
        _check_texts("endswith", pat)
        arrow = ("ends_with", pat) if isinstance(pat, str) else ()
        return self._tests(lambda text: text.endswith(pat), na, *arrow)

    def isdigit(self) -> Any:
        """Return where texts have digits only, and at least one."""
        return self._tests(str.isdigit)

    def isnumeric(self) -> Any:
        """Return where texts have signs of numbers only, and at least one."""
        return self._tests(str.isnumeric)

    def isdecimal(self) -> Any:
        """Return where texts have decimal digits only, and at least one."""
        return self._tests(str.isdecimal)

    def isalpha(self) -> Any:
        """Return where texts have letters only, and at least one."""
        return self._tests(str.isalpha)

    def isalnum(self) -> Any:
        """Return where texts have letters and digits only, and at least one."""
        return self._tests(str.isalnum)

    def isspace(self) -> Any:
        """Return where texts have white space only, and some."""
        return self._tests(str.isspace)

    def islower(self) -> Any:
        """Return where texts have small letters, and no capital ones."""
        return self._tests(str.islower)

    def isupper(self) -> Any:
        """Return where texts have capital letters, and no small ones."""
        return self._tests(str.isupper)

    def istitle(self) -> Any:
        """Return where words of texts begin with capital letters."""
        return self._tests(str.istitle)

    # Numbers

    def len(self) -> Any:
        """Return numbers of characters."""
        return self._whole(len)

    def count(self, pat: str, flags: int = 0) -> Any:
        """Return how often a regular expression is in texts."""
        found = _compiled(pat, flags=flags)
        return self._whole(lambda text: sum(1 for _ in found.finditer(text)))

    def find(self, sub: str, start: int = 0, end: int | None = None) -> Any:
        """Return where a text is first, -1 where it is not."""
        return self._whole(lambda text: text.find(sub, start, end))

    def rfind(self, sub: str, start: int = 0, end: int | None = None) -> Any:
        """Return where a text is last, -1 where it is not."""
        return self._whole(lambda text: text.rfind(sub, start, end))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        known = [one for one in dir(type(self)) if not one.startswith("_")]
        raise no_table_name("x.str", name, OF_TEXTS, lambda: known)

    # How the rows get what the distinct texts give

    def _labels(self) -> list[Any]:
        return self._column.labels.to_pylist()  # type: ignore[no-any-return]  # operators of arrays give Any

    def _by_arrow(self, function: str, *arguments: str, **options: int) -> TextColumn:
        from pyarrow import compute

        return recoded(self._column, getattr(compute, function)(self._column.labels, *arguments, **options))

    def _made(self, function: Callable[[str], str | None]) -> TextColumn:
        return self._column_of(map(function, self._labels()))

    def _column_of(self, texts: Iterable[str | None]) -> TextColumn:
        return recoded(self._column, strings(list(texts)))

    def _tests(self, function: Callable[[str], bool], na: Any = False, *arrow: str) -> Any:
        from pyarrow import compute

        labels = self._column.labels
        if arrow:
            found = getattr(compute, arrow[0])(labels, arrow[1]).to_numpy(zero_copy_only=False)
        else:
            found = np.fromiter(map(function, self._labels()), np.bool_, len(labels))
        return asarray(np.append(found, [bool(na)]))[self._column.codes]

    def _whole(self, function: Callable[[str], int]) -> Any:
        labels = self._labels()
        found = np.fromiter(map(function, labels), np.int64, len(labels))
        return taken(self._column, found, 0)

    def _split(self, function: Callable[[str], Sequence[str]], expand: bool) -> Any:
        parts = [function(text) for text in self._labels()]
        found = SplitText(self._column, parts)
        if not expand:
            return found
        width = max(map(len, parts), default=1)
        return _table({str(place): found[place] for place in range(width)})


@keeps_names
class SplitText:
    """Texts of a column split into parts: ``x.str.split(",")``; ``.str[0]`` are the first parts."""

    def __init__(self, column: TextColumn, parts: Sequence[Sequence[str]]) -> None:
        self._column, self._parts = column, parts

    @property
    def str(self) -> SplitText:
        """The parts."""
        return self

    def __len__(self) -> int:
        return len(self._column)

    def __getitem__(self, place: int) -> TextColumn:
        return self.get(place)

    def get(self, i: int) -> TextColumn:
        """Return one part of each text; texts with fewer parts give a missing value."""
        if isinstance(i, bool) or not isinstance(i, int | np.integer):
            raise OptionError(f"part {i!r} of split texts: give its number, from 0 on, or from -1 back")
        made = [parts[i] if -len(parts) <= i < len(parts) else None for parts in self._parts]
        return recoded(self._column, strings(made))

    def len(self) -> Any:
        """Return numbers of parts."""
        return taken(self._column, np.fromiter(map(len, self._parts), np.int64, len(self._parts)), 0)

    def join(self, sep: Any) -> TextColumn:
        """Return the parts joined by another separator."""
        return recoded(self._column, strings([sep.join(parts) for parts in self._parts]))

    def __getattr__(self, name: Any) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        text = (
            f"split texts have no attribute {name!r}; .str[0], .str.len() and .str.join() are of the "
            "parts, and split(..., expand=True) is a table of them"
        )
        raise MissingAttributeError(name, lambda: text)

    def __repr__(self) -> Any:
        return f"{len(self._column):,} split texts: .str[0] are their first parts"


def recoded(column: TextColumn, texts: pyarrow.Array) -> TextColumn:
    """Return a column with other texts in place of its labels, null for missing ones."""
    import pyarrow

    labels = by_code_point([texts.drop_null()])
    codes = asarray(places_among(texts.cast(pyarrow.string()), labels))
    return type(column)(codes[column.codes], labels, column.may_miss or texts.null_count > 0)


def taken(column: TextColumn, values: Any, instead: Any) -> Any:
    """Return for each row the value of its label, an array, or a column where texts may be missing."""
    found: Any = asarray(np.append(values, np.array([instead], values.dtype)))[column.codes]
    return makers.masked(found, column.missing) if column.may_miss else found


def _joined(one: TextColumn, two: TextColumn, sep: str, na_rep: str | None) -> TextColumn:
    check_length("others", len(two), len(one))
    width = len(two.labels) + 1
    pairs: Any
    places: Any
    pairs, places = np.unique((one.codes + 1).astype(np.int64) * width + two.codes + 1, return_inverse=True)
    texts = [[na_rep, *column.labels.to_pylist()] for column in (one, two)]
    made = [
        None if left is None or right is None else f"{left}{sep}{right}"
        for left, right in ((texts[0][pair // width], texts[1][pair % width]) for pair in pairs.tolist())
    ]
    found = strings(made)
    return recoded(type(one)(places, found, False), found)


def _table(columns: dict[str, TextColumn]) -> Table:
    return makers.table(columns)


def _compiled(pat: str, case: bool = True, flags: int = 0) -> re.Pattern[str]:
    if isinstance(pat, re.Pattern):
        return pat
    if not isinstance(pat, str):
        raise OptionError(f"{pat!r} is no pattern: give a text")
    try:
        return re.compile(pat, flags | (0 if case else re.IGNORECASE))
    except re.error as error:
        raise OptionError(
            f"{pat!r} is no regular expression: {error}; regex=False takes it as a text"
        ) from None


def _check_texts(name: str, pat: object) -> None:
    if not isinstance(pat, str) and not (isinstance(pat, tuple) and all(isinstance(one, str) for one in pat)):
        raise OptionError(f"str.{name}({pat!r}): give a text, or a tuple of texts; str.match takes patterns")


class HasText:
    """What a column of text has beside its own methods."""

    @property
    def str(self) -> TextMethods:
        """Functions of the texts, by pandas' names, as in ``x.str.lower()``: a ``TextMethods``."""
        return TextMethods(self)  # type: ignore[arg-type]

    def __add__(self, other: Any) -> Any:
        return _sum(self, other, lambda one, two: one + two)

    def __radd__(self, other: Any) -> Any:
        return _sum(self, other, lambda one, two: two + one)

    def _refuse(self: Any, *_: object) -> NoReturn:
        name = f"column {self.name!r}" if self.name else "the column"
        raise DTypeError(f"{name} is text, of which there is no arithmetic: x.to_float() has the numbers")

    __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = __floordiv__ = _refuse
    __rfloordiv__ = __mod__ = __rmod__ = __pow__ = __rpow__ = __neg__ = __pos__ = __abs__ = _refuse


def _sum(column: Any, other: Any, join: Callable[[Any, Any], Any]) -> Any:
    # Texts one after the other, as pandas' + has them.
    if isinstance(other, HasText):
        return column.str.cat(other)
    if not isinstance(other, str):
        kind = "numbers" if hasattr(other, "dtype") else repr(other)
        raise DTypeError(f"a column of text + {kind}: texts are added to texts; x.astype(str) makes texts")
    return column.str._made(lambda text: join(text, other))
