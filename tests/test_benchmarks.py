"""What benchmarks share: medians, spread, ties, agreement, turns, the record, the document, inputs."""

from __future__ import annotations

import importlib
import json
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import dask
import numpy as np
import pytest
import scipy.sparse as sp

import matnb as mn

sys.path.append(str(Path(__file__).parents[1] / "benchmarks"))

comparison = importlib.import_module("harness.comparison")
dask_peer = importlib.import_module("harness.dask_peer")
document = importlib.import_module("harness.document")
inputs = importlib.import_module("harness.inputs")
machine = importlib.import_module("harness.machine")
checkouts = importlib.import_module("checkouts")
processors = importlib.import_module("harness.processors")
record = importlib.import_module("harness.record")
sessions = importlib.import_module("harness.sessions")
snippets = importlib.import_module("harness.snippets")
statistics = importlib.import_module("harness.statistics")
threads = importlib.import_module("harness.threads")


class Clock:
    """Goes on by what the contender that runs costs, half of it on a processor."""

    def __init__(self) -> None:
        self.now = 0.0

    @property
    def stopwatch(self) -> Any:
        return processors.Stopwatch(lambda: self.now, lambda: self.now / 2, lambda: 0.0)


def costing(clock: Clock, name: str, *costs: float, value: Any = 1.0, **options: Any) -> Any:
    """Return a contender whose rounds, the checking one first, take the given times."""
    left = list(costs)

    def run(number: int) -> Any:
        clock.now += left.pop(0)
        return value

    return comparison.Contender(name, run, **options)


def line(**changes: Any) -> Any:
    made = record.Line(
        "products", "A @ x", 0.5, {"matnb": (1.0, 2.0, 3.0), "SciPy": (8.0, 8.0, 8.0)}, ("SciPy",),
        ("a note",), 0.25, "2026-01-02T03:04:05+00:00", {"processor": "A | B"}, {"numpy": "2.4"},
    )  # fmt: skip
    return replace(made, **changes)


def page(*lines: Any) -> str:
    text: str = document.document(list(record.pasts(lines, document.ratio_now).values()))
    return text


def rows_of(text: str) -> list[str]:
    return [row for row in text.splitlines() if row.startswith(("| products ", "| sums "))]


def test_a_ratio_is_of_the_medians_and_its_spread_of_the_rounds():
    ratio = statistics.ratio_of([1.0, 2.0, 9.0], [4.0, 2.0, 3.0])
    assert ratio.value == 2 / 3
    assert (ratio.low, ratio.high) == (0.625, 2.0)  # halfway to the middle one of 0.25, 1 and 3
    assert str(ratio) == "0.67 (0.62 to 2.00)"


def test_a_ratio_of_one_round_has_no_spread():
    assert statistics.ratio_of([1.0], [4.0]) == statistics.Ratio(0.25, 0.25, 0.25)


@pytest.mark.parametrize(("mine", "theirs"), [([], []), ([1.0], [1.0, 2.0])])
def test_rounds_that_do_not_fit_have_no_ratio(mine: list[float], theirs: list[float]):
    with pytest.raises(ValueError, match="rounds"):
        statistics.ratio_of(mine, theirs)


@pytest.mark.parametrize(
    ("value", "target", "told"),
    [
        (0.5, 0.5, "holds"),
        (0.51, 0.5, "missed"),
        (1.05, 1.1, "holds, a tie"),
        (0.9, 0.85, "missed, a tie"),
        (1.2, None, "slower"),
        (1.19, None, "tie"),
        (0.84, None, "tie"),
        (0.83, None, "faster"),
    ],
)
def test_the_verdict(value: float, target: float | None, told: str):
    assert statistics.verdict(statistics.Ratio(value, value, value), target) == told


@pytest.mark.parametrize(
    ("seconds", "told"),
    [
        (2.0, "2.00 s"),
        (1.0, "1.00 s"),
        (0.0123, "12.3 ms"),
        (0.123, "123 ms"),
        (4.5e-6, "4.50 us"),
        (0.0, "0.00 us"),
    ],
)
def test_durations(seconds: float, told: str):
    assert statistics.duration(seconds) == told


def test_contenders_take_turns_and_the_first_round_is_not_counted():
    clock, order = Clock(), []
    contenders = [
        costing(clock, "matnb", 50.0, 1.0, 2.0, prepare=lambda number: order.append(("matnb", number))),
        costing(clock, "peer", 50.0, 3.0, 4.0, prepare=lambda number: order.append(("peer", number))),
    ]
    times = comparison.timed(contenders, 2, clock.stopwatch)
    assert times.wall == {"matnb": [1.0, 2.0], "peer": [3.0, 4.0]}
    assert times.cpu == {"matnb": [0.5, 1.0], "peer": [1.5, 2.0]}
    assert order[2:] == [("matnb", 1), ("peer", 1), ("peer", 2), ("matnb", 2)]


def test_what_prepares_is_not_timed():
    clock = Clock()

    def slow(number: int) -> None:
        clock.now += 100.0

    contenders = [
        costing(clock, "matnb", 1.0, 1.0, prepare=slow),
        costing(clock, "peer", 1.0, 2.0, prepare=slow),
    ]
    assert comparison.timed(contenders, 1, clock.stopwatch).wall == {"matnb": [1.0], "peer": [2.0]}


def test_contenders_that_differ_are_not_timed():
    clock = Clock()
    contenders = [costing(clock, "matnb", 1.0), costing(clock, "peer", 1.0, value=1.1)]
    with pytest.raises(SystemExit, match="matnb and peer give different results"):
        comparison.timed(contenders, 1, clock.stopwatch)


@pytest.mark.parametrize("tolerance", [0.2, None])
def test_a_contender_may_be_let_differ(tolerance: float | None):
    clock = Clock()
    contenders = [costing(clock, "matnb", 1.0), costing(clock, "peer", 1.0, value=1.1, tolerance=tolerance)]
    comparison.check_agreement(contenders)


def test_sparse_results_agree_in_pattern_and_values():
    one = sp.csr_array(np.array([[0.0, 1.0], [2.0, 0.0]]))
    unsorted = sp.coo_array(([2.0, 1.0], ([1, 0], [0, 1])), shape=(2, 2))
    assert comparison.agree(one, unsorted)
    assert not comparison.agree(one, one * 2)
    assert not comparison.agree(one, sp.csr_array([[2.0, 0.0], [0.0, 1.0]]))
    assert not comparison.agree(sp.csr_array([[1.0, 0.0]]), sp.csr_array([[0.0, 1.0]]))
    assert not comparison.agree(one, sp.csr_array((2, 3)))
    assert not comparison.agree(np.ones(2), np.ones(3))


def test_the_best_peer_is_judged_and_what_is_for_information_is_not():
    claim = comparison.Claim("c", "work", 0.5)
    seconds = {"matnb": [1.0], "slow": [4.0], "fast": [2.0], "information": [0.1]}
    one = comparison.Comparison(claim, seconds, ["slow", "fast"], ["said"])
    assert one.peer == "fast"
    assert one.ratio.value == 0.5
    assert "=> 0.50 of fast, target <= 0.5: holds" in one.text()
    assert "said" in one.text()


def test_lines_are_appended_and_read_back(tmp_path: Path):
    path = tmp_path / "results.jsonl"
    first, second = line(), line(claim="sums", target=None, notes=())
    record.append(first, path)
    record.append(second, path)
    read = record.read(path)
    assert [one.to_json() for one in read] == [first.to_json(), second.to_json()]


@pytest.mark.parametrize("bad", ["{", '{"claim": "c"}'])
def test_a_bad_line_is_named(tmp_path: Path, bad: str):
    path = tmp_path / "results.jsonl"
    path.write_text(line().to_json() + "\n" + bad + "\n")
    with pytest.raises(ValueError, match=r"results.jsonl:2: no comparison"):
        record.read(path)


def test_the_newest_line_of_each_claim_counts():
    lines = [line(load=1.0), line(claim="sums"), line(load=2.0)]
    assert [(name, one.load) for name, one in record.newest(lines).items()] == [
        ("products", 2.0),
        ("sums", 0.25),
    ]


def test_a_line_made_now_tells_machine_versions_and_date():
    made = record.Line.now("c", "w", None, {"matnb": (1.0,)}, (), (), 0.123)
    assert {"processor", "cores", "memory", "system", "python"} <= set(made.machine)
    assert made.versions["matnb"] == mn.__version__
    assert made.date.endswith("+00:00")
    assert made.load == 0.12


def test_the_processor_is_as_the_system_tells(tmp_path: Path):
    file = tmp_path / "cpuinfo"
    file.write_text("processor\t: 0\nmodel name\t: Some CPU @ 2 GHz\nmodel name\t: other\n")
    assert machine.processor_model(file) == "Some CPU @ 2 GHz"


def test_the_document_shows_every_claim():
    text = page(line(), line(claim="sums", target=None))
    assert rows_of(text)[:2] == [
        "| products | 2.00 s | SciPy | 8.00 s | 0.25 (0.19 to 0.31) | <= 0.5 | holds | 2026-01-02 |",
        "| sums | 2.00 s | SciPy | 8.00 s | 0.25 (0.19 to 0.31) |  | faster | 2026-01-02 |",
    ]
    assert "- a note\n" in text
    assert "| processor | A \\| B |\n" in text
    assert "## Machine and versions\n" in text


def test_lines_of_several_machines_name_theirs():
    text = page(line(), line(claim="sums", machine={"processor": "other"}))
    assert "| 2026-01-02 | 1 |" in text
    assert "| 2026-01-02 | 2 |" in text
    assert "## Machine 2 and versions\n" in text


def test_the_page_tells_now_before_and_best():
    def ran(day: int, seconds: float, **changes: Any) -> Any:
        times = {"matnb": (seconds,), "SciPy": (8.0,)}
        return line(seconds=times, date=f"2026-01-0{day}T00:00:00+00:00", **changes)

    best, before, now = ran(2, 2.0, commit="abc"), ran(4, 6.0), ran(7, 4.0, commit="def+")
    other_work, busy = ran(1, 1.0, work="A @ X"), ran(5, 0.5, is_busy=True)
    text = page(other_work, best, before, busy, now)
    assert rows_of(text)[1] == (
        "| products | 0.50, 4.00 s (2026-01-07 def+) | 0.75, 6.00 s (2026-01-04) "
        "| 0.25, 2.00 s (2026-01-02 abc) |"
    )
    assert rows_of(page(best))[1] == "| products | 0.25, 2.00 s (2026-01-02 abc) |  | now |"


def test_a_busy_run_is_marked_on_the_page_and_is_never_the_best():
    slow, busy = (
        line(date="2026-01-01T00:00:00+00:00"),
        line(is_busy=True, seconds={"matnb": (1.0,), "SciPy": (8.0,)}),
    )
    text = page(slow, busy)
    assert "| 2026-01-02, busy |" in text
    assert "and others used the machine." in text
    assert rows_of(text)[1].endswith(
        "| 0.12, 1.00 s (2026-01-02, busy) | 0.25, 2.00 s (2026-01-01) | 0.25, 2.00 s (2026-01-01) |"
    )


def test_seconds_of_processors_are_shown_where_they_were_measured():
    text = page(line(cpu_seconds={"matnb": (4.0, 4.0, 4.0)}))
    assert "| matnb | 2.00 s | 4.00 s |  |  |" in text
    assert "| SciPy | 8.00 s |  | 0.25 (0.19 to 0.31) |  |" in text


def test_lines_of_before_cpu_seconds_and_commits_can_be_read(tmp_path: Path):
    told = json.loads(line().to_json())
    for name in ("cpu_seconds", "commit", "is_busy"):
        del told[name]
    path = tmp_path / "results.jsonl"
    path.write_text(json.dumps(told) + "\n")
    (old,) = record.read(path)
    assert (old.cpu_seconds, old.commit, old.is_busy) == ({}, "", False)


def test_a_busy_machine_is_refused():
    machine.refuse_busy(lambda: 0.5)
    with pytest.raises(SystemExit, match=r"load average is 0.51: .* `make bench BUSY=1`"):
        machine.refuse_busy(lambda: 0.51)


@pytest.mark.parametrize(("busy", "is_busy"), [(0.5, False), (0.6, True)])
def test_a_script_marks_its_run_when_others_use_the_machine(busy: float, is_busy: bool, capsys: Any):
    assert machine.print_load(lambda: 3.0, lambda: busy) == (3.0, is_busy)
    assert ("WARNING" in capsys.readouterr().out) == is_busy


def test_the_commit_is_that_of_matnb():
    assert re.fullmatch(r"([0-9a-f]{10}\+?)?", machine.commit())


def test_seconds_of_processors_count_all_threads_and_children():
    def burn() -> None:
        end = time.process_time() + 0.05
        while time.process_time() < end:
            pass

    watch = processors.Stopwatch()
    watch.start()
    burn()
    _, cpu = watch.stop()
    assert 0.05 <= cpu < 0.2
    code = "import time\nwhile time.process_time() < 0.2: pass\nprint(flush=True)\ninput()"
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", code], **pipes) as living:
        watch.start()
        living.stdout.readline()
        _, cpu = watch.stop()
        assert cpu >= 0.1
        living.communicate(b"\n")
    watch.start()
    subprocess.run([sys.executable, "-c", code], input=b"\n", stdout=subprocess.DEVNULL, check=True)
    _, cpu = watch.stop()
    assert cpu >= 0.2


def test_a_process_that_ended_takes_nothing():
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        ended.wait()
    assert processors.process_seconds(ended.pid) == 0.0


def test_a_peer_is_timed_with_each_number_of_threads():
    limits: list[int] = []

    @contextmanager
    def limit(count: int) -> Iterator[None]:
        limits.append(count)
        yield
        limits.append(0)

    one = comparison.Contender("matnb", lambda number: 1.0)
    peer = comparison.Contender("peer", lambda number: float(limits[-1] > 0))
    peers = threads.by_threads(peer, limit)
    assert [each.name for each in peers] == ["peer, 1 thread", "peer, 2 threads"]
    comparison.timed([one, *peers], 1)
    assert limits == [1, 0, 2, 0, 1, 0, 2, 0] or limits == [1, 0, 2, 0, 2, 0, 1, 0]


def bench_with(*arguments: str) -> Any:
    return comparison.Bench("tried", arguments=["--rounds", "2", *arguments])


@pytest.fixture
def _idle(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comparison, "print_load", lambda: (0.0, False))


@pytest.mark.usefixtures("_idle")
def test_a_limit_is_the_peer_that_counts_and_calls_share_a_time(tmp_path: Path):
    contenders = [comparison.Contender(name, lambda number: 1.0) for name in ("matnb", "NumPy")]
    path = tmp_path / "found.jsonl"
    bench = bench_with("--record", str(path), "--busy")
    found = bench.compare(comparison.Claim("c", "work", 1.0), contenders, calls=10, limit=100.0)
    assert found.peer == "the limit"
    assert found.ratio.value < 0.01
    (told,) = record.read(path)
    assert told.is_busy
    assert set(told.seconds) == {"matnb", "NumPy", "the limit"}
    assert set(told.cpu_seconds) == {"matnb", "NumPy"}


@pytest.mark.usefixtures("_idle")
def test_matnb_alone_is_timed_after_all_were_compared(tmp_path: Path):
    path = tmp_path / "found.jsonl"
    bench = bench_with("--record", str(path), "--alone")
    same, other = (comparison.Contender("peer", lambda number, value=value: value) for value in (1.0, 2.0))
    ours = comparison.Contender("matnb", lambda number: 1.0)
    bench.compare(comparison.Claim("c", "work", 1.0), [ours, same])
    assert set(record.read(path)[0].seconds) == {"matnb"}
    with pytest.raises(SystemExit, match="different results"):
        bench.compare(comparison.Claim("c", "work", 1.0), [ours, other])


@pytest.mark.usefixtures("_idle")
def test_peers_for_information_are_left_out_where_that_is_asked_for(tmp_path: Path):
    path = tmp_path / "found.jsonl"
    bench = bench_with("--record", str(path), "--judged")
    ours, peer = (comparison.Contender(name, lambda number: 1.0) for name in ("matnb", "peer"))
    shown = comparison.Contender("shown", lambda number: pytest.fail("it is not run"), judged=False)
    bench.compare(comparison.Claim("c", "work", 1.0), [ours, shown, peer])
    assert set(record.read(path)[0].seconds) == {"matnb", "peer"}


@pytest.mark.usefixtures("_idle")
@pytest.mark.parametrize(("options", "timed"), [(["--alone"], {"matnb"}), ([], {"dask.array, threads"})])
def test_loops_are_tried_small_and_alone(options: list[str], timed: set[str], tmp_path: Path):
    pytest.importorskip("graphblas")
    loops = importlib.import_module("loops")
    path = tmp_path / "found.jsonl"
    bench = bench_with("--record", str(path), "--trial", "--rounds", "1", *options)
    # of its own, since Dask's own threads stay
    with ThreadPoolExecutor(2) as pool, dask.config.set(pool=pool), mn.start(workers=1, threads=2):
        loops.compare(bench, 16, [dask_peer.Scheduler("dask.array, threads", None)])
    found = record.read(path)
    assert len(found) == 1 + ("matnb" not in timed)  # against dask.array, where it was timed
    assert timed <= set(found[-1].seconds)
    assert all("R-MAT 2^10" in one.work for one in found)


@pytest.mark.usefixtures("_idle")
def test_a_trial_takes_small_sizes():
    assert bench_with("--trial").sized(20, 10) == 10
    assert bench_with().sized(20, 10) == 20


def test_cuts_are_of_equal_entries():
    pointers = np.array([0, 60, 60, 70, 80, 90, 100])
    assert inputs.equal_entry_cuts(pointers, 2) == [0, 1, 6]
    assert inputs.equal_entry_cuts(pointers, 1) == [0, 6]
    assert inputs.equal_entry_cuts(np.array([0, 100, 100]), 4) == [0, 1, 2]


def test_row_blocks_put_together_are_the_matrix():
    matrix = sp.random_array((20, 10), density=0.4, rng=np.random.default_rng(0), format="csr")
    blocks = inputs.row_blocks(matrix, 3)
    assert sum(block.shape[0] for block in blocks) == 20
    together = sp.vstack([sp.csr_array((b.values, b.columns, b.pointers), shape=b.shape) for b in blocks])
    assert comparison.agree(together, matrix)
    assert all(block.values is None for block in inputs.row_blocks(matrix, 3, pattern=True))


def test_the_lower_triangle_of_a_graph():
    graph = sp.csr_array(np.array([[1.0, 1.0, 0.0], [1.0, 0.0, 1.0], [0.0, 0.0, 0.0]]))
    assert inputs.lower_triangle(graph).toarray().tolist() == [[0, 0, 0], [1, 0, 0], [0, 1, 0]]


def test_a_call_that_is_answered_from_memory_is_refused():
    with mn.start(workers=1, threads=1):
        ours, call = sessions.public(
            lambda x: float(x.sum()), lambda number: mn.ones(100) * float(number + 2)
        )
        assert ours.run(ours.prepare(0)) == 200.0
        held = ours.prepare(1)
        assert ours.run(held) == 300.0
        assert len(call.notes()) == 1
        with pytest.raises(sessions.StaleResult, match="no task ran"):
            ours.run(held)


def test_results_are_dropped_between_rounds():
    with mn.start(workers=1, threads=1):
        x = mn.ones(100).persist()
        ours, _ = sessions.public(lambda number: float((x * 2.0).sum()))
        for number in range(3):
            assert ours.run(ours.prepare(number)) == 200.0


def test_two_checkouts_take_turns():
    this, other = Path("this"), Path("other")
    order = []

    def run(checkout: Path) -> dict[str, tuple[float, float]]:
        order.append(checkout)
        return {"sum": (1.0, 2.0)} if checkout == this else {"sum": (4.0, 4.0), "cell": (1.0, 1.0)}

    found = checkouts.alternated(run, this, other, 2)
    assert order == [this, other, other, this]
    assert found["sum"] == {this: [(1.0, 2.0)] * 2, other: [(4.0, 4.0)] * 2}
    assert list(found["cell"]) == [other]


def test_a_pair_is_told_by_wall_and_processor_with_spread(capsys: pytest.CaptureFixture[str]):
    this, other = Path("this"), Path("other")
    mine, theirs = [(1.0, 2.0), (3.0, 4.0)], [(2.0, 2.0), (2.0, 2.0)]
    checkouts.print_rows({"sum": {this: mine, other: theirs}, "cell": {other: theirs}}, this, other)
    one, two = capsys.readouterr().out.splitlines()
    assert "2.00 s for 2.00 s" in one
    assert one.endswith("wall 1.00 (0.75 to 1.25)   CPU 1.50 (1.25 to 1.75)")
    assert two == "cell: run 0 times here and 2 times there"


def test_a_folder_without_matnb_is_no_checkout(tmp_path: Path):
    with pytest.raises(SystemExit, match=r"has no matnb|failed with the matnb"):
        checkouts.check_checkout(tmp_path)


@pytest.mark.parametrize("name", ["sum", "cell", "loop"])
def test_snippets_run(name: str):
    assert min(snippets.measured(name, 1)) > 0


def test_the_bench_runs_claims_alone():
    root = Path(__file__).parents[1]
    makefile = (root / "Makefile").read_text(encoding="utf-8")
    (left_out,) = re.findall(r"addprefix benchmarks/,([^)]*)\)", makefile)
    claims = {
        path.name
        for path in (root / "benchmarks").glob("*.py")
        if re.search(r"Bench\(__doc__|--busy", path.read_text(encoding="utf-8"))
    }
    others = {path.name for path in (root / "benchmarks").glob("*.py")} - claims
    assert others == set(left_out.split())
