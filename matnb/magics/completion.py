"""Tab completion of the magics' commands and options, read from their parsers."""

from __future__ import annotations

import re

from IPython.core.completer import CompletionContext, SimpleCompletion, SimpleMatcherResult, context_matcher

from matnb.magics.options import CELL, COMMANDS

_OURS = re.compile(r"\s*(%{1,2})distmat\s(.*)")


@context_matcher(identifier="matnb.options")
def match_options(context: CompletionContext) -> SimpleMatcherResult:
    """Complete a command after ``%distmat``, and an option after it or after ``%%distmat``."""
    found = _OURS.fullmatch(context.text_until_cursor)
    words = known_words(found[1], found[2]) if found else []
    completions = [SimpleCompletion(word, type="option") for word in words if word.startswith(context.token)]
    return SimpleMatcherResult(completions=completions, suppress=bool(completions))


def known_words(percents: str, text: str) -> list[str]:
    """Return the words that may stand at the end of a magic's line."""
    if percents == "%%":
        return CELL.flags
    before = text.split()[: -1 if text and not text[-1].isspace() else None]
    if not before:
        return list(COMMANDS)
    if before[0] not in COMMANDS:
        return []
    parser = COMMANDS[before[0]]
    return [*parser.flags, *parser.settings]
