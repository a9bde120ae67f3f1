"""What every test shares: hypothesis profiles, fixtures, and the guard that fails a test which leaks."""

from __future__ import annotations

import gc
import multiprocessing
import os
import shutil
import signal
import subprocess
import tempfile
from collections import Counter
from collections.abc import Generator, Iterator, Sequence
from multiprocessing import forkserver, util
from pathlib import Path

# Read when NumPy is loaded. Arrays of tests are small: a second thread of BLAS spins while it waits for work,
# which was half of what the tests of linear models took, and each of xdist's processes would have its own.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import dask
import distributed.utils
import durations
import hypothesis
import leaks
import pytest
from _pytest.mark import ParameterSet
from distributed import Security
from kinds import session_wanted, started

from matnb.blocks.kernels import compiled
from matnb.expr.nodes import Expr
from matnb.plan import program_cache
from matnb.plan.looping import ControlPlan, plan_control
from matnb.program.check import check_plan, check_program
from matnb.program.plan import Plan
from matnb.program.writer import PlanWriter
from matnb.session import current
from matnb.session.session import Session

PROJECT = Path(__file__).parents[1]
OUTER_TEMPORARY = pytest.StashKey[tuple[str | None, str]]()
METHOD = "distributed.worker.multiprocessing-method"
WRITTEN_TO = pytest.StashKey[Path | None]()
FROM_WIDER_FIXTURES = pytest.StashKey[set[leaks.Belonging]]()

# Kernels compile on first use, so one example may take seconds: no deadline. In CI every run draws the
# same examples.
hypothesis.settings.register_profile("default", deadline=None)
hypothesis.settings.register_profile("ci", deadline=None, derandomize=True, database=None)
hypothesis.settings.load_profile("ci" if os.environ.get("CI", "").lower() == "true" else "default")

# Worker processes are forked from one that has imported all of this, which takes a hundredth of the time a
# new Python takes. What belongs to starting itself is tested with the fixture `spawned`.
FORKED_FROM = ["distributed", "matnb", "matnb.backend.gang.performer", "matnb.backend.cluster.servers"]


def pytest_configure(config: pytest.Config) -> None:
    wanted = os.environ.pop("TEST_DURATIONS", None)  # of this run, and of none that a test starts
    config.stash[WRITTEN_TO] = None if wanted is None else Path(wanted).absolute()
    compiled.compile_always()  # what NumPy does before is tested by laws/test_before_compiling.py
    gc.set_threshold(20_000, 20, 20)  # the collector took a tenth of the time; tests that need it call it
    multiprocessing.get_context("forkserver").set_forkserver_preload(FORKED_FROM)
    distributed.utils._forkserver_preload_set = True  # else Dask sets its own list
    dask.config.set({METHOD: "forkserver"})
    # What a shell starts in the background ignores interrupts, and tests that interrupt would wait for ever.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    # A temporary folder of this run's own, so that another run on the machine cannot look like a leak here.
    # What pytest itself keeps for a user to look at (tmp_path) stays where it always is.
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", tempfile.gettempdir())
    # Beside that of the run which started this one, not in it: names of sockets must not be long.
    beside = Path(tempfile.gettempdir()).parent if hasattr(config, "workerinput") else None
    own = tempfile.mkdtemp(prefix="matnb-tests-", dir=beside)
    config.stash[OUTER_TEMPORARY] = (os.environ.get("TMPDIR"), own)
    os.environ["TMPDIR"], tempfile.tempdir = own, None
    os.environ["MATNB_COMPILE"] = "off"  # kernels of tests start no process that compiles
    os.environ["XDG_DATA_HOME"] = str(Path(own, "data"))  # the key of results, which is not the user's own


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    durations.longest_first(items)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    reports = [*terminalreporter.getreports("passed"), *terminalreporter.getreports("failed")]
    if (path := terminalreporter.config.stash[WRITTEN_TO]) is not None:
        timed = [one for name in ("", "passed", "failed") for one in terminalreporter.stats.get(name, ())]
        durations.write_durations(timed, path)
    counts = Counter[str]()
    for report in reports:
        counts.update(dict(report.user_properties).get("habits", {}))
    if counts:  # of tests/habits
        without = counts["raises"] + counts["differs"]
        terminalreporter.write_line(
            f"habits: {counts['works']} of {counts.total()} work, {counts['says']} say the way, "
            f"{without} raise without the way"
        )
    odd = Counter(dict(one.user_properties).get("odd_csv") for one in reports)
    if odd.pop(None, 0) and odd:  # of tests/laws/test_odd_csv_files.py
        counts_text = ", ".join(f"{count} {what}" for what, count in sorted(odd.items()))
        terminalreporter.write_line(f"odd CSV files: {odd.total()} right or with the way: {counts_text}")


def pytest_unconfigure(config: pytest.Config) -> None:
    outer, own = config.stash[OUTER_TEMPORARY]
    forkserver._forkserver._stop()
    util._run_finalizers()  # which remove its folder, that lies in ours
    os.environ.pop("TMPDIR")
    if outer is not None:
        os.environ["TMPDIR"] = outer
    tempfile.tempdir = None
    shutil.rmtree(own, ignore_errors=True)


@pytest.fixture(scope="session", autouse=True)
def contracts() -> Iterator[None]:
    """Check every plan and every program that is written in this process."""
    write = PlanWriter.plan

    def checked(writer: PlanWriter, roots: Sequence[Expr]) -> Plan:
        plan = write(writer, roots)
        owners = writer.slots.owners
        before = owners.keys() - {task.key for task in writer._tasks}
        holders = {owners[slot] for slot in before}
        check_plan(plan, {*writer.workers.numbers, *holders}, before)
        return plan

    def controlled(*arguments: object) -> ControlPlan:
        plan = plan_control(*arguments)
        check_program(plan.program)
        return plan

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PlanWriter, "plan", checked)
        patch.setattr(program_cache, "plan_control", controlled)
        yield


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(
    fixturedef: pytest.FixtureDef[object], request: pytest.FixtureRequest
) -> Generator[None, object, object]:
    # What a fixture of a module or of the whole run makes outlives the test that asked for it first.
    if fixturedef.scope == "function":
        return (yield)
    before = leaks.belongings()
    try:
        return (yield)
    finally:
        request.config.stash.setdefault(FROM_WIDER_FIXTURES, set()).update(leaks.belongings() - before)


@pytest.fixture(autouse=True, scope="module")
def looked_through() -> None:
    """Leave what is there already out of what is looked through for garbage: that takes longer and longer."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def leak_guard(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fail the test that leaves a thread, a child process, a listening socket or a temporary file."""
    # The first of the function's own fixtures, so the last to end: what they close is closed by then.
    request.config.stash[FROM_WIDER_FIXTURES] = set()
    before = leaks.belongings()
    yield
    left = leaks.leaks_since(before | request.config.stash[FROM_WIDER_FIXTURES])
    if left:
        pytest.fail("left behind by this test: " + "; ".join(left), pytrace=False)


@pytest.fixture(autouse=True)
def left_no_cluster() -> Iterator[None]:
    """Let each test start a session by itself, as the first of its process, whatever ended before."""
    # Sessions of a module end after its last test, so before the first of the next one; who asks notes it.
    current.active_session()
    current._process.left, current._process.has_stopped = "", False
    yield
    current._process.left, current._process.has_stopped = "", False


@pytest.fixture(scope="module")
def spawned() -> Iterator[None]:
    """Start worker processes as a user's are: each a new Python, with this one's environment and output."""
    with dask.config.set({METHOD: "spawn"}):
        yield


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Security:
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("openssl is not installed, and nothing else here makes certificates")
    folder = tmp_path_factory.mktemp("certificates")
    key, certificate = str(folder / "key.pem"), str(folder / "certificate.pem")
    options = ["-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    subprocess.run(
        [openssl, "req", "-x509", *options, "-keyout", key, "-out", certificate],
        check=True,
        capture_output=True,
    )
    pairs = {f"tls_{role}_{part}": path for role in ("client", "scheduler", "worker")
             for part, path in (("key", key), ("cert", certificate))}  # fmt: skip
    return Security(tls_ca_file=certificate, require_encryption=True, **pairs)


@pytest.fixture(scope="session")
def test_data() -> Path:
    """Return the folder of published graphs and their known answers."""
    folder = Path(os.environ.get("MATNB_TEST_DATA", PROJECT.parent / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip(f"no test data in {folder}: set MATNB_TEST_DATA to the folder")
    return folder


@pytest.fixture(scope="session")
def chromium() -> str:
    """Return the path of a chromium."""
    wanted = os.environ.get("MATNB_CHROMIUM") or "chromium"
    found = shutil.which(wanted)
    if found is None:
        pytest.skip(f"{wanted} is not installed: install it or set MATNB_CHROMIUM to its path")
    return found


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    mark = metafunc.definition.get_closest_marker("session")
    if mark is None:
        return
    params = [one if isinstance(one, ParameterSet) else pytest.param(one) for one in mark.args]
    metafunc.parametrize(
        "module_session",
        [
            pytest.param(
                session_wanted(kind, tuple(mark.kwargs.items())),
                marks=marks or ([pytest.mark.cluster] if "processes" in kind else []),
                id=pytest.HIDDEN_PARAM if len(params) == 1 else kind,
            )
            for (kind,), marks, _ in params
        ],
        indirect=True,
        scope="module",
    )


@pytest.fixture(scope="module", autouse=True)
def module_session(request: pytest.FixtureRequest) -> Iterator[tuple[str, Session] | None]:
    """Start what a module's mark names, or a test's: `pytest.mark.session("two workers", memo="off")`."""
    wanted = getattr(request, "param", None)
    if wanted is None:
        yield None
        return
    with started(wanted.kind, **dict(wanted.options)) as session:
        yield wanted.kind, session


@pytest.fixture(scope="module")
def session(module_session: tuple[str, Session]) -> Session:
    """Return the session that the mark names."""
    return module_session[1]


@pytest.fixture(scope="module")
def kind(module_session: tuple[str, Session]) -> str:
    """Return the kind of the session that the mark names."""
    return module_session[0]


@pytest.fixture(scope="module")
def interpreter() -> Iterator[None]:
    """Start a session whose engine is the interpreter, for single tests that ask handles for values."""
    with started("interpreter"):
        yield
