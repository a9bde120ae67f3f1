"""``%distmat history`` and ``rebalance``, the line under a cell, and what of them may be told in a report."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from cells import fail, run
from IPython.core.completer import provisionalcompleter

import matnb as mn
from matnb.balance.trace import Trace
from matnb.errors import OptionError, WriteError
from matnb.session.history_view import HistoryView

# The first of two halves has all entries, so many that the counts alone say it is worth a repartition.
SKEWED = """%%distmat
starts = np.minimum(np.arange(4001), 2000) * 1500
count = starts[-1]
S = scipy.sparse.csr_array((np.full(count, 1e-4), np.arange(count) % 4000, starts), shape=(4000, 4000))
A = mn.asarray(S, blocks=[[0, 2000, 4000], None])
"""
LOOP = """%%distmat
x = mn.iterate(lambda x: A @ x + 1.0, mn.ones(4000), max_iterations=120)[0]
"""


@pytest.fixture
def cut_badly(shell):
    mn.start(workers=2, threads=1, rebalance="entries")
    run(shell, "import scipy.sparse")
    run(shell, SKEWED)
    return shell


def run_with_html(shell, text):
    texts = run(shell, text)
    return texts, [output["data"].get("text/html", "") for output in shell.display_pub.outputs]


def test_under_a_cell_it_says_what_was_re_cut_by_counts(cut_badly):
    (summary,) = run(cut_badly, LOOP)
    (line,) = (line for line in summary.splitlines() if line.startswith("repartitioned"))
    before, after = map(
        float,
        re.fullmatch(r"repartitioned A\S* once: imbalance (\S+) -> (\S+)", line.replace(", x", "")).groups(),
    )
    assert before == pytest.approx(2.0, abs=0.01)
    assert after < 1.1
    (again,) = run(cut_badly, LOOP.replace("1.0", "2.0"))
    assert "repartitioned" not in again


def test_the_line_tells_seconds_live(cut_badly, monkeypatch):
    monkeypatch.setattr("matnb.magics.summary.QUIET_SECONDS", 0.0)
    run(cut_badly, "%config DistMat.display = 'live'")
    summary = run(cut_badly, LOOP)[-1]
    assert re.search(r"^repartitioned A.* once: imbalance 2.00 -> 1.\d\d, \S+ m?s$", summary, re.MULTILINE)


def test_in_a_report_the_history_is_the_same_every_time(cut_badly):
    shown = []
    for _ in range(2):
        texts = run(cut_badly, LOOP)
        shown.append((texts, run_with_html(cut_badly, "%distmat history")))
        mn.stop()
        mn.start(workers=2, threads=1, rebalance="entries")
        run(cut_badly, SKEWED)
    assert shown[0] == shown[1]
    _, ((text,), (html,)) = shown[0]
    assert text.startswith("rebalance=entries: ")
    assert " 1 to repartition" in text
    assert "before 000000000000000000000000111111111111111111111111" in text
    assert "<svg" in html
    assert "measured" not in text + html


def test_live_it_has_measured_numbers(cut_badly):
    run(cut_badly, LOOP)
    run(cut_badly, "%config DistMat.display = 'live'")
    (text,) = run(cut_badly, "%distmat history")
    assert re.search(r"\d m?s\b", text)


def test_a_history_that_a_cell_ends_with_is_shown_as_the_command_does(cut_badly, capsys):
    run(cut_badly, LOOP)
    (command,) = run(cut_badly, "%distmat history")
    shown = cut_badly.display_formatter.format(mn.history())[0]
    assert shown["text/plain"] == command
    assert "<svg" in shown["text/html"]
    mn.unload_ipython_extension(cut_badly)
    assert cut_badly.display_formatter.format(mn.history())[0]["text/plain"] == str(mn.history())


def test_it_is_saved_as_a_trace_that_can_be_repeated(cut_badly, capsys, tmp_path):
    run(cut_badly, LOOP)
    path = tmp_path / "cuts.json"
    run(cut_badly, f"file = r'{path}'")
    capsys.readouterr()
    assert run(cut_badly, "%distmat history --save {file}") == []
    assert capsys.readouterr().out == f"history saved to {path}\n"
    trace = Trace.from_json(path.read_text())
    assert [one.decision.acts for one in trace.passed] == [one.decision.acts for one in mn.history()]
    (acted,) = (one.decision for one in trace.passed if one.decision.acts)
    mn.stop()
    mn.start(workers=2, threads=1, rebalance=str(path))
    run(cut_badly, SKEWED)
    (summary,) = run(cut_badly, LOOP)
    assert f"repartitioned {acted.name} once" in summary
    (again,) = (one.decision for one in mn.history() if one.decision.acts)
    assert again.after == acted.after
    assert again.policy == "replay"


def test_a_trace_is_repeated_where_the_matrix_has_another_name(cut_badly, tmp_path):
    run(cut_badly, LOOP)
    path = tmp_path / "cuts.json"
    mn.history().save(path)
    (acted,) = (one.decision for one in mn.history() if one.decision.acts)
    mn.stop()
    mn.start(workers=2, threads=1, rebalance=path)
    run(cut_badly, SKEWED.replace("A =", "B ="))
    (summary,) = run(cut_badly, LOOP.replace("A @ x", "B @ x"))
    (again,) = (one.decision for one in mn.history() if one.decision.acts)
    assert again.after == acted.after
    assert again.name != acted.name
    assert f"repartitioned {again.name} once" in summary


def test_another_ending_is_refused(shell, capsys):
    error, text = fail(shell, capsys, "%distmat history --save cuts.xml")
    assert "a history is saved as .json, .svg or .txt, not as 'cuts.xml'" in text
    assert isinstance(error, mn.MatnbError)


@pytest.mark.parametrize("ending", ["json", "svg", "txt"])
def test_every_ending_is_written(tmp_path, ending):
    path = tmp_path / f"cuts.{ending}"
    HistoryView().save(path)
    assert path.read_text().startswith({"json": "{", "svg": "<svg", "txt": "rebalance="}[ending])


def test_without_a_session_nothing_is_started(shell, capsys):
    assert run(shell, "%distmat history") == [
        "rebalance=auto: decisions based on measured times are not shown here"
    ]
    capsys.readouterr()
    run(shell, "%distmat rebalance now")
    assert capsys.readouterr().out == "nothing is stored that could be repartitioned\n"
    run(shell, "%distmat rebalance")
    assert mn.active_session() is None


@pytest.mark.parametrize("setting", ["auto", "entries", "presto", "off"])
def test_the_setting_is_changed_and_shown(shell, capsys, setting):
    mn.start(rebalance="off")
    capsys.readouterr()
    run(shell, f"%distmat rebalance {setting}")
    assert capsys.readouterr().out.startswith(f"rebalance={setting}\n")
    assert mn.current_session().rebalance == setting
    run(shell, "%distmat rebalance")
    assert capsys.readouterr().out.startswith(f"rebalance={setting}\n")


def test_a_setting_that_there_is_not_is_refused_and_changes_nothing(shell, capsys):
    mn.start(rebalance="entries")
    _, text = fail(shell, capsys, "%distmat rebalance sometimes")
    for known in ("sometimes", "auto", "entries", "presto", "off"):
        assert known in text
    assert mn.current_session().rebalance == "entries"


def test_off_re_cuts_nothing_until_it_is_asked_for(cut_badly, capsys):
    run(cut_badly, "%distmat rebalance off")
    (summary,) = run(cut_badly, LOOP)
    assert "repartitioned" not in summary
    run(cut_badly, "%config DistMat.display = 'live'")
    capsys.readouterr()
    run(cut_badly, "%distmat rebalance now")
    assert re.match(r"A.* repartitioned before the first iteration \(asked\): ", capsys.readouterr().out)
    assert mn.history().decisions[-1].decision.acts
    run(cut_badly, "%distmat rebalance")
    assert "rebalance=off\nA" in capsys.readouterr().out


NO_TRACES = {
    "missing": (None, "cannot be read: No such file"),
    "folder": (..., "cannot be read: Is a directory"),
    "empty": (b"", "line 1: not a trace, since it is not JSON"),
    "binary": (b"\xff\xfe\x00{", "it is not UTF-8 text"),
    "other": (b'\xef\xbb\xbf{"format": 1}', "not a trace: a trace begins"),
    "nan": (b'{"format": NaN}', "NaN is not a number"),
    "deep": (b"[" * 10**5, "nested too deeply"),
}


@pytest.mark.parametrize("kind", NO_TRACES)
def test_what_is_no_trace_is_refused_when_it_is_set(shell, capsys, monkeypatch, tmp_path, kind):
    content, said = NO_TRACES[kind]
    path = tmp_path / "cuts.json"
    if content is ...:
        path.mkdir()
    elif content is not None:
        path.write_bytes(content)
    wanted = rf"rebalance='.*cuts\.json': .*{re.escape(said)}.*; give the \.json file that `mn\.history"
    with pytest.raises(OptionError, match=wanted):
        mn.start(rebalance=path)
    monkeypatch.setenv("MATNB_REBALANCE", str(path))
    with pytest.raises(OptionError, match=wanted):
        mn.start()
    assert mn.active_session() is None
    monkeypatch.delenv("MATNB_REBALANCE")
    mn.start(rebalance="entries")
    with pytest.raises(OptionError, match=wanted):
        mn.current_session().set_rebalance(str(path))
    error, text = fail(shell, capsys, f"%distmat rebalance {path}")
    assert isinstance(error, OptionError)
    assert said in " ".join(text.split())
    assert mn.current_session().rebalance == "entries"


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("%distmat hi", ["history"]),
        ("%distmat history --", ["--save"]),
        ("%distmat rebalance ", ["auto", "entries", "now", "off", "presto"]),
        ("%distmat rebalance e", ["entries"]),
    ],
)
def test_completion(shell, line, expected):
    with provisionalcompleter():
        found = [one.text for one in shell.Completer.completions(line, len(line))]
    assert sorted(word for word in found if word in expected) == expected


def test_help_tells_of_both(shell):
    text = shell.find_line_magic("distmat").__doc__
    assert "%distmat history [--save FILE]" in text
    assert "%distmat rebalance [SETTING]" in text
    assert "presto: by the rule of the Presto paper" in " ".join(text.split())


def test_a_history_that_cannot_be_written_says_where_and_why(tmp_path: Path) -> None:
    with pytest.raises(WriteError, match=r"nowhere.*h\.json: the history was not written: No such file"):
        HistoryView().save(tmp_path / "nowhere" / "h.json")


def test_every_name_of_a_cell_is_known_though_the_cell_uses_it(shell: object) -> None:
    with mn.start(workers=2, threads=1):
        run(shell, "%%distmat\nG = mn.random.rmat(10, seed=3)\ns = G.sum()")
        run(shell, "mn.repartition(G, n=5);")
        (passed,) = mn.history()
        assert passed.decision.name == "G"


def test_it_is_shown_in_the_middle_of_a_cell(shell, capsys):
    run(shell, "mn.history().show()\n1 + 1")
    first, last = capsys.readouterr().out.splitlines()
    assert first.startswith("rebalance=")
    assert last.endswith("2")
