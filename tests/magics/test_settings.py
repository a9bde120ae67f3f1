"""``%config DistMat``: settings from the environment or a variable, checked, taken on as their help says."""

from __future__ import annotations

import pytest
from cells import fail, run

import matnb as mn
from matnb.session.settings import OPTIONS


@pytest.mark.parametrize(
    ("option", "value", "field", "becomes"),
    [
        ("workers", 2, "workers", 2),
        ("threads", 1, "threads", 1),
        ("memory_limit", "'1GB'", "memory_limit_bytes", 10**9),
        ("memo", "'2MB'", "memo_bytes", 2 * 10**6),
        ("memo", "'off'", "remembers", False),
        ("compute_limit", 5000, "compute_limit_bytes", 5000),
        ("engine", "'dask'", "engine", "dask"),
        ("rebalance", "'entries'", "rebalance", "entries"),
    ],
)
def test_a_setting_is_taken_on_at_the_next_start_and_goes_with_the_magics(
    shell, option, value, field, becomes
):
    run(shell, f"wish = {value}\n%config DistMat.{option} = wish")
    run(shell, "%distmat start" + ("" if option == "threads" else " --threads 1"))
    assert getattr(mn.current_session().config, field) == becomes
    mn.unload_ipython_extension(shell)
    mn.start(threads=1)
    assert option == "threads" or getattr(mn.current_session().config, field) != becomes


def test_the_first_result_starts_what_is_set_and_what_is_given_goes_before(shell):
    run(shell, "%config DistMat.workers = 2\n%config DistMat.threads = 1")
    run(shell, "%%distmat\nmn.ones(3) + 1")
    assert mn.current_session().config.workers == 2
    run(shell, "%distmat start --workers 1")
    assert mn.current_session().config.workers == 1


def test_rebalance_is_taken_on_at_once(shell):
    session = mn.start(workers=1, threads=1)
    run(shell, "%config DistMat.rebalance = 'off'")
    assert session.rebalance == "off"


def test_a_results_folder_is_set(shell, tmp_path):
    folder = tmp_path / "results"
    run(shell, f"%config DistMat.memo_dir = {str(folder)!r}\n%distmat start --threads 1")
    assert folder.is_dir()


def test_every_option_of_start_is_a_setting(shell):
    settings = shell.magics_manager.registry["DistMatMagics"].settings
    assert {"display", *OPTIONS} == set(settings.trait_names(config=True))
    for name in OPTIONS:
        help = settings.traits()[name].help
        assert help.endswith(("From the next start on.", "At once.")), name


@pytest.mark.parametrize(
    ("option", "value", "said"),
    [
        ("workers", "0", "DistMat.workers: workers=0: give a whole number of at least 1"),
        ("threads", "-1", "DistMat.threads: threads=-1: give a whole number of at least 1"),
        (
            "memory_limit",
            "'1kB'",
            "DistMat.memory_limit: memory_limit=1000 bytes: a worker needs at least 64MB",
        ),
        ("memo", "'much'", "DistMat.memo: memo='much': give a number of bytes or a string such as '4GB'"),
        ("compute_limit", "0", "DistMat.compute_limit: compute_limit=0 would not let any value be computed"),
        ("engine", "'quick'", "The 'engine' trait of a DistMat instance expected any of ['auto', 'dask', "),
        ("rebalance", "'sometimes'", "DistMat.rebalance: rebalance='sometimes': give the path of a trace"),
        ("rebalance", "'none.json'", "DistMat.rebalance: "),
        ("display", "'loud'", "The 'display' trait of a DistMat instance expected any of ['auto', 'live', "),
        ("processes", "'maybe'", "The 'processes' trait of a DistMat instance expected a boolean"),
    ],
)
def test_a_bad_value_is_one_clear_line_and_changes_nothing(shell, caplog, option, value, said):
    settings = shell.magics_manager.registry["DistMatMagics"].settings
    before = getattr(settings, option)
    shell.run_cell(f"%config DistMat.{option} = {value}")
    (record,) = caplog.records
    assert record.getMessage().startswith(said)
    assert len(record.getMessage().splitlines()) == 1
    assert getattr(settings, option) == before
    run(shell, "%distmat start --workers 1 --threads 1")


def test_the_environment_is_where_settings_begin(bare_shell, monkeypatch, capsys):
    monkeypatch.setenv("MATNB_WORKERS", "3")
    monkeypatch.setenv("MATNB_MEMO", "off")
    monkeypatch.setenv("MATNB_COMPUTE_LIMIT", "3MB")
    mn.load_ipython_extension(bare_shell)
    bare_shell.run_cell("%config DistMat").raise_error()
    text = capsys.readouterr().out
    for words in ("Current: 3\n", "Current: 'off'", "Current: '3 MB'"):
        assert words in text


def test_a_bad_variable_of_the_environment_is_told_of_by_its_name(bare_shell, monkeypatch, capsys):
    monkeypatch.setenv("MATNB_WORKERS", "many")
    mn.load_ipython_extension(bare_shell)
    _, text = fail(bare_shell, capsys, "%config DistMat")
    assert "OptionError: MATNB_WORKERS='many': give a whole number" in text
    assert text.count("\n") < 6


def test_a_parameters_cell_gives_the_settings(shell):
    run(shell, "workers, limit = 2, '1GB'")
    run(shell, "%distmat start --workers {workers} --threads 1 --memory-limit {limit}")
    config = mn.current_session().config
    assert (config.workers, config.memory_limit_bytes) == (2, 10**9)
