"""What a ``%%distmat`` cell runs, shows and keeps, and what the commands of ``%distmat`` do."""

from __future__ import annotations

import re
from types import SimpleNamespace
from xml.etree import ElementTree

import numpy as np
import pytest
from cells import counts, fail, run
from distributed import LocalCluster

import matnb as mn
from matnb.errors import OptionError

COMMANDS = "start, connect, status, explain, simulate, memo, history, rebalance, monitor, stamp, doctor, stop"


def stored(shell, name):
    return shell.user_ns[name].facts().stored


def test_the_last_value_is_shown_and_kept_then_the_summary(shell, capsys):
    (summary,) = run(shell, "%%distmat\nx = mn.arange(6.0)\ny = x + 1\ny")
    assert "DistArray 6 float64, dense, 48 B" in capsys.readouterr().out
    assert shell.user_ns["_"] is shell.user_ns["y"]
    assert shell.user_ns["Out"][shell.execution_count - 1] is shell.user_ns["y"]
    assert summary == "1 task"
    assert counts(shell).startswith("2 operations recorded; 2 operations run in 1 task; 2 arrays made; ")
    np.testing.assert_array_equal(shell.user_ns["y"].compute(), np.arange(6.0) + 1)


def test_a_value_that_is_no_array_is_shown_as_ever(shell, capsys):
    run(shell, "%%distmat\n1 + 1")
    assert "2" in capsys.readouterr().out
    assert shell.user_ns["_"] == 2


def test_a_cell_that_ends_in_a_statement_shows_only_the_summary(shell, capsys):
    assert len(run(shell, "%%distmat\nx = mn.ones(3)")) == 1
    assert capsys.readouterr().out == ""


def test_a_semicolon_silences_but_computes(shell, capsys):
    assert run(shell, "%%distmat\nx = mn.ones(3) * 2\nx;") == []
    assert capsys.readouterr().out == ""
    assert stored(shell, "x")


def test_sinks_run_and_what_they_consume_does_not(shell):
    run(shell, "L = mn.asarray(np.tril(np.ones((6, 6)), -1), format='sparse')")
    run(shell, "%%distmat\nP = L @ L\nt = (P * L).sum()")
    assert stored(shell, "t")
    assert not stored(shell, "P")
    assert float(shell.user_ns["t"]) == 20  # the triangles of a complete graph of six


def test_a_mean_consumes_what_it_is_the_mean_of(shell):
    run(shell, "%%distmat\nx = mn.arange(8.0) + 1\nm = np.mean(x)")
    assert stored(shell, "m")
    assert not stored(shell, "x")


def test_all_arrays_of_a_last_tuple_run(shell):
    run(shell, "x = mn.arange(4.0)")
    run(shell, "%%distmat\ny = x + 1\nz = y * 2\ny, z")
    assert stored(shell, "y")
    assert stored(shell, "z")


def test_names_of_earlier_cells_are_not_run_again(shell):
    run(shell, "%%distmat --lazy\nearlier = mn.arange(4.0) + 1")
    run(shell, "%%distmat\nif False:\n    earlier = 0\nx = mn.ones(2) + 1")
    assert stored(shell, "x")
    assert not stored(shell, "earlier")


def test_equal_operations_are_merged(shell):
    run(shell, "a = mn.arange(4.0)")
    (summary,) = run(shell, "%%distmat\nb = (a + 1) * (a + 1)")
    assert summary == "1 task"
    assert counts(shell).startswith(
        "3 operations recorded (1 merged with equal ones); 3 operations run in 1 task; 2 arrays made; "
    )


def test_a_loop_that_asks_for_values_keeps_its_blocks_for_the_next_turn(shell):
    (summary,) = run(
        shell,
        "%%distmat\nx = mn.full(4, 64.0)\ncount = 0\n"
        "while float(x.sum()) > 1:\n    x = x / 2\n    count += 1\nx",
    )
    assert shell.user_ns["count"] == 8
    assert counts(shell).startswith("18 operations recorded")
    (remembered,) = (int(words.split()[0]) for words in summary.split(", ") if "reused" in words)
    # A turn starts from the stored half, the first from an array made anew; the last value is there.
    assert remembered == 7 + 1


def test_lazy_only_records(shell):
    (summary,) = run(shell, "%%distmat --lazy\nx = mn.ones(3) + 1")
    assert summary == "nothing run"
    assert counts(shell) == "2 operations recorded"
    assert not stored(shell, "x")
    assert mn.active_session() is None


def test_keep_adds_a_root(shell):
    run(shell, "a = mn.arange(4.0)")
    run(shell, "%%distmat --keep P\nP = a + 1\nt = P.sum()")
    assert stored(shell, "P")


def test_keep_of_an_unknown_name_says_what_there_is(shell, capsys):
    _, text = fail(shell, capsys, "%%distmat --keep Q\nP = mn.ones(3)")
    assert "--keep Q: no DistArray of that name; assigned in this cell: P" in text


def test_a_variable_fills_in_an_option_but_not_the_body(shell):
    run(shell, "name = 'P'\na = mn.arange(4.0)")
    run(shell, "%%distmat --keep {name}\nP = a + 1\nt = P.sum()\nf'{name}'")
    assert stored(shell, "P")
    assert shell.user_ns["_"] == "P"


def test_what_exceeds_the_memo_stays_lazy_and_is_told(shell):
    mn.start(memo="1kB")
    summary = run(shell, "%%distmat\nbig = mn.ones(1000) + 1\nsmall = mn.ones(2) + 1")[0]
    assert "big stays lazy: larger than the memo budget; to compute it, use --keep big" in summary
    assert not stored(shell, "big")
    assert stored(shell, "small")


def test_live_a_short_run_shows_only_its_value_and_a_long_one_its_seconds(shell, monkeypatch):
    shell.run_line_magic("config", "DistMat.display = 'live'")
    assert run(shell, "%%distmat\nx = mn.ones(3) + 1\nx") == []
    monkeypatch.setattr("matnb.magics.summary.QUIET_SECONDS", 0.0)
    (summary,) = run(shell, "%%distmat\nx = mn.ones(4) + 1\nx")
    assert re.fullmatch(r"1 task, \S+ .?s", summary)
    assert "imbalance of the workers" in counts(shell)


def test_static_measures_lie_beside_the_text(shell):
    run(shell, "%%distmat\nx = mn.ones(3) + 1\nx")
    (output,) = shell.display_pub.outputs
    assert set(output["metadata"]["matnb"]) == {"seconds", "imbalance", "actual_bytes"}


def test_ipython_syntax_works_in_the_body(shell):
    run(shell, "%%distmat\nhere = %pwd\nx = mn.ones(2)")
    assert isinstance(shell.user_ns["here"], str)


def test_future_imports_of_earlier_cells_hold(shell):
    run(shell, "from __future__ import annotations")
    run(shell, "%%distmat\ndef f(x: undefined_name):\n    return x\nmn.ones(2)")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("%distmat", f"%distmat: a command is missing; there are {COMMANDS}"),
        (
            "%distmat strat",
            "%distmat: unknown command 'strat'; did you mean start?",
        ),
        (
            "%distmat start --worker 2",
            "%distmat start: unknown option '--worker'; did you mean --workers?",
        ),
        ("%distmat start --workers two", "%distmat start: argument --workers: invalid int value: 'two'"),
        ("%distmat stop now", "%distmat stop: unknown argument 'now'; it takes none"),
        ("%distmat explain nobody", "%distmat explain: nobody is not a DistArray"),
        (
            "%distmat explain",
            "%distmat explain: nothing was recorded yet; run a %%distmat cell or name a DistArray",
        ),
        (
            "%distmat simulate",
            "%distmat simulate: nothing was recorded yet; run a %%distmat cell or name a DistArray",
        ),
        ("%distmat memo --disk", "%distmat memo: --disk requires --clear"),
        ("%distmat connect {nothing}", "%distmat connect: no variable nothing for '{nothing}'"),
        ("%distmat connect 'tcp", "%distmat: No closing quotation"),
        ("%distmat connect", "%distmat connect: give the scheduler's ADDRESS or --scheduler-file FILE"),
        (
            "%distmat connect tcp://127.0.0.1:1 --scheduler-file x.json",
            "%distmat connect: give the scheduler's ADDRESS or --scheduler-file FILE",
        ),
        ("%%distmat --lasy\n1", "%%distmat: unknown option '--lasy'; did you mean --lazy?"),
        ("%%distmat --quick\n1", "%%distmat: unknown option '--quick'; it takes --lazy, --keep"),
        (
            "%distmat connect {exitt}",
            "%distmat connect: no variable exitt for '{exitt}'; did you mean 'exit'?",
        ),
    ],
)
def test_a_wrong_line_gives_one_line_that_says_what_exists(shell, capsys, line, said):
    _, text = fail(shell, capsys, line)
    assert text.startswith(f"UsageError: {said}")
    assert len(text.strip().splitlines()) == 1


def test_a_cluster_is_simulated(shell, capsys):
    run(shell, "x = mn.ones((1_000_000, 8)); y = x.T @ x")
    line = "%distmat simulate y --nodes 4 --workers 2 --bandwidth 20Gbps --latency 50us --memory 8GB"
    (text,) = run(shell, line)
    assert text.startswith("simulated on 4 nodes of 2 workers: ")
    _, text = fail(shell, capsys, "%distmat simulate nothing")
    assert "%distmat simulate: nothing is not a DistArray" in text


def test_what_is_simulated_without_a_name_is_the_last_cell(shell, capsys):
    run(shell, "%%distmat\ny = mn.ones((1000, 8)).sum(axis=0)")
    (text,) = run(shell, "%distmat simulate --nodes 2")
    assert text.startswith("simulated on 2 nodes of 1 worker: ")
    run(shell, "del y")
    _, text = fail(shell, capsys, "%distmat simulate --nodes 2")
    said = "UsageError: %distmat simulate: the results of the last cell are gone; name a DistArray"
    assert text.strip() == said


def test_a_notebook_shows_a_simulated_cluster_as_a_picture(shell, monkeypatch):
    monkeypatch.setattr(shell, "kernel", SimpleNamespace(_allow_stdin=True), raising=False)
    run(shell, "x = mn.ones((300_000, 8)).sum(axis=0)\n%distmat simulate x --nodes 3")
    (output,) = shell.display_pub.outputs
    assert output["data"]["text/plain"].startswith("simulated on 3 nodes of 1 worker: ")
    (svg,) = ElementTree.fromstring(output["data"]["text/html"])
    assert svg.tag == "{http://www.w3.org/2000/svg}svg"
    assert sum("idle" in (one.text or "") for one in svg.iter()) >= 3  # a lane of each node


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("%distmat explain x --stage none", "no stage 'none'; there are 'recorded', "),
        ("%distmat explain x --stage planned", "no stage 'planned'; did you mean 'plan'?"),
        ("%distmat history --save cuts.xml", "a history is saved as .json, .svg or .txt, not as 'cuts.xml'"),
        ("%distmat stamp --save s.xml", "a stamp is saved as .json, .html or .txt, not as 's.xml'"),
        ("%distmat start --workers 0", "workers=0: give a whole number of at least 1"),
        ("%distmat start --workers 4 --node-grid 3x2", "node_grid=(3, 2) is for 6, but there are 4 workers"),
        ("%distmat simulate x --nodes 0", "Cluster(nodes=0): give a whole number of at least 1"),
        (
            "%distmat simulate x --bandwidth slow",
            "Cluster(bandwidth='slow'): give '20Gbps', or bytes a second",
        ),
        (
            "%distmat simulate x --bandwidth 0",
            "Cluster(bandwidth='0'): give '20Gbps', or bytes a second",
        ),
        ("%distmat simulate x --bandwidth 0Gbps", "Cluster(bandwidth='0Gbps'): give '20Gbps', or bytes"),
        ("%distmat simulate x --memory 0", "Cluster(memory='0'): a machine needs memory, as in '16GB'"),
        ("%distmat simulate x --memory 0GB", "Cluster(memory='0GB'): a machine needs memory, as in '16GB'"),
        ("%distmat simulate x --iterations 0", "simulate(iterations=0): give a whole number of at least 1"),
        ("%distmat rebalance sometimes", "rebalance='sometimes': give a trace, "),
        ("%%distmat --engine quick\n1", "engine='quick': choose one of 'auto', "),
        ("%%distmat --keep y\n1", "--keep y: no DistArray of that name; assigned in this cell: none"),
    ],
)
def test_a_wrong_value_gives_one_line_and_tb_the_whole(shell, capsys, line, said):
    run(shell, "x = mn.ones(3)")
    error, text = fail(shell, capsys, line)
    assert isinstance(error, OptionError)
    assert text.startswith(f"OptionError: {said}")
    assert len(text.strip().splitlines()) == 1
    shell.run_cell("%tb")
    assert "distmat.py" in capsys.readouterr().out


def test_an_error_of_a_line_that_is_not_ours_is_shown_as_ever(shell, capsys, monkeypatch):
    monkeypatch.setattr("matnb.magics.distmat.stop", lambda: {}["nothing"])
    error, text = fail(shell, capsys, "%distmat stop")
    assert isinstance(error, KeyError)
    assert "Traceback (most recent call last)" in text
    assert "exec(code_obj" not in text  # IPython's own frames


def test_start_status_and_stop(shell, capsys):
    shell.run_cell("%distmat status").raise_error()
    assert capsys.readouterr().out == "no session is running; the first result starts one\n"
    run(shell, "n = 2\n%distmat start --workers {n} --threads 1 --memory-limit 1GB")
    assert "2 workers" in capsys.readouterr().out
    run(shell, "%%distmat\nx = mn.ones(10) + 1")
    shell.run_cell("%distmat status").raise_error()
    text = capsys.readouterr().out
    assert "2 workers" in text
    assert " of 1 GB" in text  # half of what the workers have
    run(shell, "%distmat stop")
    assert mn.active_session() is None


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("--workers 0", "workers=0: give a whole number of at least 1"),
        ("--threads 0", "threads=0: give a whole number of at least 1, or None for all cores"),
        ("--engine quick", "engine='quick': choose one of 'auto', 'dask', 'gang', 'interpret'"),
        ("--memory-limit ''", "memory_limit='': give a number of bytes"),
    ],
)
def test_start_is_given_what_is_written_even_if_it_is_nothing(shell, capsys, line, said):
    error, _ = fail(shell, capsys, f"%distmat start {line}")
    assert isinstance(error, OptionError)
    assert str(error).startswith(said)
    assert mn.active_session() is None


def test_start_leaves_to_the_environment_what_is_not_written(shell, capsys, monkeypatch):
    monkeypatch.setenv("MATNB_WORKERS", "2")
    run(shell, "%distmat start --threads 1")
    assert "2 workers" in capsys.readouterr().out


def test_connect_uses_a_cluster_that_is_there_and_stop_leaves_it(shell, capsys):
    with LocalCluster(
        n_workers=1, threads_per_worker=1, processes=False, protocol="tcp", dashboard_address=":0"
    ) as theirs:
        address = theirs.scheduler_address
        run(shell, f"%distmat connect {address}")
        assert capsys.readouterr().out == f"the Dask cluster at {address}\n"
        run(shell, "%%distmat\nx = mn.arange(5.0) + 1\nx")
        assert float(shell.user_ns["x"].sum()) == 15
        run(shell, "%distmat stop")
        assert mn.active_session() is None
        assert theirs.scheduler.tasks == {}
        assert len(theirs.workers) == 1


def test_explain_shows_the_last_cell_or_what_is_named(shell, capsys):
    run(shell, "%%distmat\nx = mn.ones(10) + 1\ny = x * 2")
    capsys.readouterr()
    shell.run_cell("%distmat explain").raise_error()
    assert "y" in capsys.readouterr().out
    shell.run_cell("%distmat explain x").raise_error()
    assert "add(" in capsys.readouterr().out
    shell.run_cell("%distmat explain --stage recorded x").raise_error()
    assert capsys.readouterr().out.count("\n") == 3
    error, _ = fail(shell, capsys, "%distmat explain --stage none x")
    assert isinstance(error, OptionError)


def test_explain_without_a_name_is_of_the_last_cell_whatever_was_shown_since(shell, capsys):
    run(shell, "%%distmat\nmn.arange(7.0).sum(), mn.ones(5) * 3")
    run(shell, "mn.ones(3) * 2")
    capsys.readouterr()
    run(shell, "%distmat explain --stage recorded")
    text = capsys.readouterr().out
    assert "= _[0]" in text
    assert "= _[1]" in text
    assert "(3,)" not in text
    run(shell, "%%distmat --out pair\nmn.ones(4) * 3, mn.ones(6)")
    capsys.readouterr()
    run(shell, "%distmat explain --stage recorded")
    assert "= pair[0]" in capsys.readouterr().out


def test_what_a_silent_cell_ended_with_is_told_to_be_gone(shell, capsys):
    run(shell, "%%distmat\n(mn.ones(4) * 5).sum();")
    _, text = fail(shell, capsys, "%distmat explain")
    said = "%distmat explain: the results of the last cell are gone; name a DistArray"
    assert text.strip() == f"UsageError: {said}"


def test_explain_draws_and_the_text_of_the_picture_is_printed_where_there_is_no_page(shell):
    run(shell, "%%distmat\nx = mn.ones(10) + 1\ny = (x * 2).sum()")
    (text,) = run(shell, "%distmat explain --picture")
    assert text == mn.visualize(shell.user_ns["y"]).text.replace("= value", "= y")
    html = shell.display_pub.outputs[0]["data"]["text/html"]
    assert "/>recorded</label>" in html
    (recorded,) = run(shell, "%distmat explain x --picture --stage recorded")
    assert recorded.startswith("what was recorded\n")


def test_a_cell_that_is_interpreted_shows_what_came_out(shell, capsys):
    run(shell, "x = mn.arange(5.0)")
    capsys.readouterr()
    run(shell, "%%distmat --engine interpret\n(x * 2).sum()")
    assert "20" in capsys.readouterr().out
    mn.start(workers=1, threads=1, engine="interpret")
    run(shell, "%%distmat\n(mn.arange(6.0) * 2).sum()")
    assert "30" in capsys.readouterr().out


def test_help_shows_every_option(shell, capsys):
    shell.run_cell("%%distmat?").raise_error()
    text = capsys.readouterr().out + "".join(str(output["data"]) for output in shell.display_pub.outputs)
    text += "".join(str(payload) for payload in shell.payload_manager.read_payload())
    assert "--keep NAME" in text
    assert "--scheduler-file FILE" in text
    assert "mn.connect(ADDRESS, security=" in text
    assert "tls://" not in text
    assert "--memory-limit SIZE" in text


@pytest.mark.parametrize(
    ("line", "said", "unsaid"),
    [
        ("%distmat start --help", "usage: %distmat start [--workers N]", "--scheduler-file"),
        ("%%distmat --help\nran = 1", "usage: %%distmat [--lazy]", "--workers"),
        ("%%distmat --help", "usage: %%distmat [--lazy]", "--workers"),
        ("\n%%distmat  --lazy -h", "usage: %%distmat [--lazy]", "--workers"),
        (
            "%distmat --help",
            "  %distmat doctor     Say whether all is well here and on the cluster, and what to change\n",
            "%%%",
        ),
    ],
)
def test_help_of_one_command_is_printed(shell, capsys, line, said, unsaid):
    run(shell, line)
    text = capsys.readouterr().out
    assert said in text
    assert unsaid not in text
    assert "ran" not in shell.user_ns


@pytest.mark.parametrize("line", ["%distmat stop", "%distmat doctor", "%distmat stamp"])
def test_a_command_needs_no_session_and_starts_none(shell, line):
    run(shell, line)
    assert mn.active_session() is None


def test_what_is_remembered_is_listed_without_measured_numbers_and_cleared(shell, capsys):
    run(shell, "%%distmat\nx = np.sqrt(mn.arange(3000.0))")
    run(shell, "%%distmat\ntotal = x.max()")
    run(shell, "del x")
    (listed,) = run(shell, "%distmat memo")
    head, *rows, last = [line.split() for line in listed.splitlines()]
    assert head == ["result", "shape", "dtype", "bytes", "hits", "where", "handle"]
    assert rows[0][:3] == ["x", "=", "np.sqrt(mn.arange(3000.0))"]  # the line that made it
    assert [(row[0], row[-1]) for row in rows] == [("x", "workers"), ("total", "yes")]
    assert " ".join(last) == "2 entries, 24 kB on workers, 8 B as values"
    capsys.readouterr()
    run(shell, "%distmat status")
    assert "memo: 1 array without a name, 24 kB; 1 small value" in capsys.readouterr().out
    assert run(shell, "%distmat memo --clear") == []
    assert run(shell, "%distmat memo")[0].endswith("\n1 entry, 8 B on workers")


def test_monitor_prints_a_table_of_the_workers_where_no_widget_can_be(shell, capsys):
    mn.start(workers=2, threads=1)
    run(shell, "%distmat monitor")
    run(shell, "%%distmat\nx = mn.arange(3000.0, blocks=4) + 1")
    capsys.readouterr()
    run(shell, "%distmat monitor")
    assert "2 workers" in capsys.readouterr().out


def test_a_cell_is_told_which_line_makes_a_sparse_array_dense(shell):
    run(shell, "A = mn.asarray(np.eye(1000), format='sparse')")
    (summary,) = run(shell, "%%distmat\nB = A * 2\nC = np.exp(B)\nC.sum()")
    assert "line 3: exp((1000, 1000) float64 sparse) makes a sparse array dense: 16 kB become 8 MB" in summary
    (quiet,) = run(shell, "%%distmat\nD = np.exp(A[:100]) + 1\nE = A * np.exp(A)\nx = A @ np.ones(1000)")
    assert "dense" not in quiet
    text = (np.exp(shell.user_ns["A"]) + 1).explain(stage="plan")
    assert "exp((1000, 1000) float64 sparse) makes a sparse array dense" in text


def test_a_session_shows_what_it_keeps(shell):
    run(shell, "mn.start(workers=1, threads=2, processes=False)\nx = mn.ones(1000).persist()")
    format_value = shell.display_formatter.format
    bundle, _ = format_value(mn.current_session())
    assert "<b>1 worker x 2 threads" in bundle["text/html"]
    assert "1 array kept, 8 kB of" in bundle["text/html"]
    assert bundle["text/plain"].startswith("Session on 1 worker x 2 threads")
    session = mn.current_session()
    mn.stop()
    assert "Session (ended)" in format_value(session)[0]["text/html"]
