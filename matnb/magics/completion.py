"""Tab completion of the magics' commands, options and their values, read from their parsers."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from IPython.core.completer import CompletionContext, SimpleCompletion, SimpleMatcherResult, context_matcher
from IPython.core.interactiveshell import InteractiveShell

from matnb.lazy.array import DistArray
from matnb.magics.options import CELL, COMMANDS, OptionParser

_OURS = re.compile(r"\s*(%{1,2})distmat\s(.*)")
_OF_ARRAYS = ("--keep",)

Matcher = Callable[[CompletionContext], SimpleMatcherResult]


def matcher_of(shell: InteractiveShell) -> Matcher:
    """Return what completes a command after ``%distmat``, and options and values after it or ``%%distmat``.

    Parameters
    ----------
    shell
        IPython, whose variables are completed where an array's name is wanted.
    """

    @context_matcher(identifier="matnb.options")
    def match_options(context: CompletionContext) -> SimpleMatcherResult:
        found = _OURS.fullmatch(context.text_until_cursor)
        words = known_words(found[1], found[2], _arrays(shell)) if found else []
        completions = [
            SimpleCompletion(word, type="option") for word in words if word.startswith(context.token)
        ]
        return SimpleMatcherResult(completions=completions, suppress=bool(completions))

    matcher: Matcher = match_options
    return matcher


def known_words(percents: str, text: str, arrays: Sequence[str] = ()) -> list[str]:
    """Return the words that may stand at the end of a magic's line.

    Parameters
    ----------
    percents
        "%" or "%%".
    text
        The line after the magic's name.
    arrays
        Names of DistArrays.
    """
    before = text.split()[: -1 if text and not text[-1].isspace() else None]
    if percents == "%%":
        return _words(CELL, before, arrays)
    if not before:
        return list(COMMANDS)
    if before[0] not in COMMANDS:
        return []
    return _words(COMMANDS[before[0]], before[1:], arrays)


def _words(parser: OptionParser, before: Sequence[str], arrays: Sequence[str]) -> list[str]:
    option = before[-1] if before else ""
    if option in parser.words:
        return list(parser.words[option])
    if option in parser.flags and option in _OF_ARRAYS:
        return list(arrays)
    if option in parser.takes_value:
        return []
    return [*parser.flags, *parser.settings, *(arrays if parser.takes_arrays else ())]


def _arrays(shell: InteractiveShell) -> list[str]:
    named = sorted(shell.user_ns.items())
    return [name for name, one in named if isinstance(one, DistArray) and not name.startswith("_")]
