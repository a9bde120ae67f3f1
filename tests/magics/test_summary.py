"""Whether somebody is there is read from the kernel, with a fallback on the message it answers."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from matnb.widgets.output_area import is_headless


def message(allow_stdin):
    return SimpleNamespace(get_parent=lambda: {"content": {"allow_stdin": allow_stdin}})


@pytest.mark.parametrize(
    ("shell", "headless"),
    [
        (SimpleNamespace(), False),
        (SimpleNamespace(kernel=SimpleNamespace(_allow_stdin=False)), True),
        (SimpleNamespace(kernel=SimpleNamespace(_allow_stdin=True)), False),
        (SimpleNamespace(kernel=message(False)), True),
        (SimpleNamespace(kernel=message(True)), False),
    ],
)
def test_headless(shell, headless):
    assert is_headless(shell) is headless
