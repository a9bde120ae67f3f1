"""Loading adds magics, settings and completion; unloading leaves IPython as it was."""

from __future__ import annotations

import pytest
from IPython.core.completer import provisionalcompleter

import matnb as mn
from matnb.magics.completion import known_words


def state(shell):
    manager = shell.magics_manager
    events = {name: tuple(callbacks) for name, callbacks in shell.events.callbacks.items()}
    return (
        {kind: dict(magics) for kind, magics in manager.magics.items()},
        dict(manager.registry),
        list(shell.configurables),
        list(shell.Completer.custom_matchers),
        events,
        list(shell.ast_transformers),
        list(shell.input_transformers_cleanup),
        dict(shell.display_formatter.formatters["text/html"].type_printers),
        shell.custom_exceptions,
        dict(vars(mn.MatnbError)),
    )


def test_unload_leaves_ipython_as_it_was(bare_shell):
    bare_shell.magics_manager.load_all_lazy_magics()
    before = state(bare_shell)
    bare_shell.run_cell("%load_ext matnb").raise_error()
    assert bare_shell.find_cell_magic("distmat") is not None
    assert state(bare_shell) != before
    bare_shell.run_cell("%unload_ext matnb").raise_error()
    assert state(bare_shell) == before


def test_loading_twice_is_harmless(bare_shell):
    mn.load_ipython_extension(bare_shell)
    before = state(bare_shell)
    mn.load_ipython_extension(bare_shell)
    assert state(bare_shell) == before
    mn.unload_ipython_extension(bare_shell)
    mn.unload_ipython_extension(bare_shell)
    assert bare_shell.find_cell_magic("distmat") is None


def test_reload(shell):
    shell.run_cell("%reload_ext matnb").raise_error()
    shell.run_cell("%%distmat\nx = mn.ones(3) + 1\nx").raise_error()
    assert [type(one).__name__ for one in shell.configurables].count("DistMat") == 1


def test_settings_are_listed_with_their_help(shell, capsys):
    shell.run_cell("%config DistMat").raise_error()
    text = capsys.readouterr().out
    assert "DistMat.display" in text
    assert "counts only" in text


def test_a_setting_comes_from_the_environment(bare_shell, monkeypatch):
    monkeypatch.setenv("MATNB_DISPLAY", "static")
    mn.load_ipython_extension(bare_shell)
    assert not bare_shell.magics_manager.registry["DistMatMagics"].live


def test_a_terminal_is_live(bare_shell):
    mn.load_ipython_extension(bare_shell)
    assert bare_shell.magics_manager.registry["DistMatMagics"].live


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("%distmat ", {"start", "connect", "status", "explain", "memo", "history", "rebalance", "stop"}),
        ("%distmat st", {"start", "status", "stop"}),
        ("%distmat start --w", {"--workers"}),
        ("%distmat start --workers 2 --p", {"--processes"}),
        ("%%distmat --", {"--lazy", "--keep"}),
    ],
)
def test_tab_completes_commands_and_options(shell, text, found):
    with provisionalcompleter():
        matches = {completion.text for completion in shell.Completer.completions(text, len(text))}
    assert matches == found


def test_nothing_is_completed_after_an_unknown_command():
    assert known_words("%", "nonsense ") == []
