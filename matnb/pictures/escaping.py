"""Text that a user or a file named, as a part of HTML and SVG: shown and never run, and never malformed."""

from __future__ import annotations

import re
from html import escape
from unicodedata import east_asian_width

# What no XML may hold: control characters, halves of pairs, and anything other than a character.
_UNFIT = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
# Characters of a name, and of a line of a user's, in text that is to be read at a glance.
LONGEST_NAME, LONGEST_LINE = 40, 300
_ELLIPSIS = "\N{HORIZONTAL ELLIPSIS}"


def escaped(text: str, longest: int | None = None) -> str:
    """Return text for an element or an attribute, of at most so many characters before it is escaped."""
    if longest is not None:
        text = shortened(text, longest)
    return escape(_UNFIT.sub("\N{REPLACEMENT CHARACTER}", text))


def shortened(text: str, longest: int) -> str:
    """Return text of at most so many characters, with a sign that more was there."""
    return text if len(text) <= longest else f"{text[: longest - 1]}{_ELLIPSIS}"


def columns_of(text: str) -> int:
    """Return how many columns text takes in a font of one width: East Asian signs and emoji take two."""
    if text.isascii():
        return len(text)
    return sum(2 if east_asian_width(one) in "WF" else 1 for one in text)
