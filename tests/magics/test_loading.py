"""Loading adds magics, settings and completion; unloading leaves IPython as it was."""

from __future__ import annotations

import pytest
from IPython.core.completer import provisionalcompleter

import matnb as mn
from matnb.magics.distmat import known_words
from matnb.magics.options import CELL, COMMANDS


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
        dict(shell.display_formatter.mimebundle_formatter.type_printers),
        dict(shell.display_formatter.ipython_display_formatter.type_printers),
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
        (
            "%distmat ",
            {
                "start",
                "connect",
                "status",
                "explain",
                "memo",
                "history",
                "simulate",
                "rebalance",
                "monitor",
                "stamp",
                "doctor",
                "stop",
            },
        ),
        ("%distmat st", {"start", "status", "stamp", "stop"}),
        ("%distmat start --w", {"--workers"}),
        ("%distmat start --workers 2 --p", {"--processes"}),
        ("%distmat start --node", {"--node-grid"}),
        (
            "%distmat simulate x --",
            {"--nodes", "--workers", "--threads", "--iterations", "--memory", "--bandwidth", "--latency"},
        ),
        (
            "%%distmat --",
            {"--lazy", "--keep", "--nowait", "--out", "--memo", "--no-memo", "--engine", "--explain"},
        ),
        ("%%distmat --engine ", {"auto", "dask", "gang", "interpret"}),
        ("%%distmat --lazy --engine in", {"interpret"}),
        ("%distmat start --rebalance ", {"auto", "entries", "presto", "off"}),
        ("%distmat rebalance n", {"now"}),
        ("%distmat explain --stage pl", {"plan", "place"}),
        ("%distmat stamp --", {"--json", "--time", "--save"}),
    ],
)
def test_tab_completes_commands_and_options(shell, text, found):
    with provisionalcompleter():
        matches = {completion.text for completion in shell.Completer.completions(text, len(text))}
    assert matches == found


@pytest.mark.parametrize("command", ["explain", "simulate"])
def test_tab_completes_names_of_arrays(shell, command):
    shell.run_cell("import matnb as mn\nloss, count, _hidden = mn.ones(3), 3, mn.ones(3)").raise_error()
    text = f"%distmat {command} "
    with provisionalcompleter():
        matches = {completion.text for completion in shell.Completer.completions(text, len(text))}
    assert matches == {"loss", *COMMANDS[command].flags}


@pytest.mark.parametrize("use_jedi", [True, False])
def test_tab_completes_functions_not_files(shell, monkeypatch, use_jedi):
    shell.run_cell("import matnb as mn")
    monkeypatch.setattr(shell.Completer, "use_jedi", use_jedi)
    for room in (mn.graph, mn.linalg, mn.learn, mn.sources):
        text = f"mn.{room.__name__.rpartition('.')[2]}."
        with provisionalcompleter():
            matches = {one.text.lstrip(".") for one in shell.Completer.completions(text, len(text))}
        assert {one for one in matches if not one.startswith("_")} == set(room.__all__)


@pytest.mark.parametrize("name", ["%", *COMMANDS])
def test_every_option_is_completed_and_explained(shell, name):
    parser = CELL if name == "%" else COMMANDS[name]
    line = "%%distmat --" if name == "%" else f"%distmat {name} --"
    with provisionalcompleter():
        found = {one.text for one in shell.Completer.completions(line, len(line))}
    assert {one for one in found if one.startswith("--")} == set(parser.flags)
    assert parser.description
    for action in parser._actions:
        assert action.help, action
        assert not action.help.endswith(".")


def test_nothing_is_completed_after_an_unknown_command():
    assert known_words("%", "nonsense ") == []


def test_where_a_value_is_wanted_that_nobody_knows_no_option_is_offered():
    assert known_words("%%", "--out ", ["A"]) == []
    assert known_words("%", "history --save ") == []
    assert known_words("%%", "--keep ", ["A"]) == ["A"]
    assert "--out" in known_words("%%", "--lazy ")
    assert "--save" in known_words("%", "stamp --json ")
