"""What does not fit the memory is refused before it is read, and reading takes no more than was stated."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from fuzzed_files import forget_peak, peak_bytes

import matnb as mn
from matnb.errors import FileFormatError, TooLargeError
from matnb.io.source import open_source
from matnb.session import Session

LIMIT = 96_000_000
ROOM = 64 << 20  # beside what was stated
COUNT = 9_000_000  # entries of a bomb: 144 MB with their positions


def packed(head: bytes, line: bytes, count: int) -> bytes:
    """Return a gzip file of the same line again and again, made a hundred thousand lines at a time."""
    packer = zlib.compressobj(1, zlib.DEFLATED, 31)
    many = line * 100_000
    parts = [packer.compress(head), *(packer.compress(many) for _ in range(count // 100_000)), packer.flush()]
    return b"".join(parts)


def write_parquet(path: Path, count: int) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    import pyarrow

    parquet.write_table(pyarrow.table({name: np.zeros(count) for name in "abcd"}), path)


def write_csr(path: Path, count: int) -> None:
    values, pointers = np.ones(count), np.linspace(0, count, 1001).astype(np.int32)
    columns = (np.arange(count) % (count // 1000)).astype(np.int32)
    sp.save_npz(path, sp.csr_array((values, columns, pointers), shape=(1000, count // 1000)))


def write_npy(path: Path, count: int) -> None:
    head = path.with_suffix(".head.npy")
    np.lib.format.open_memmap(head, "w+", np.float64, (2 * count,))
    head.rename(path)


def writing(data: Callable[[int], bytes]) -> Callable[[Path, int], object]:
    return lambda path, count: path.write_bytes(data(count))


MTX = b"%%%%MatrixMarket matrix coordinate real general\n9 9 %d\n"
LARGE: Mapping[str, Callable[[Path, int], object]] = {
    "a.mtx.gz": writing(lambda count: packed(MTX % count, b"1 1 1\n", count)),
    "array.mtx.gz": writing(
        lambda count: packed(b"%%%%MatrixMarket matrix array real general\n%d 2\n" % count, b"1\n", 2 * count)
    ),
    "a.txt.gz": writing(lambda count: packed(b"", b"1 2\n", 2 * count)),
    "liar.txt.gz": writing(lambda count: packed(b"", b"1 2\n", 2 * count) + gzip.compress(b"1 2\n")),
    "a.csv.gz": writing(lambda count: packed(b"a,b\n", b"1,2\n", count)),
    "liar.csv.gz": writing(lambda count: packed(b"a,b\n", b"1,2\n", count) + gzip.compress(b"1,2\n")),
    "a.graph.gz": writing(lambda count: packed(b"2 %d\n" % (count // 2), b"2 ", count)),
    "a.npz": write_csr,
    "a.npy": write_npy,
    "a.parquet": write_parquet,
}


@pytest.fixture
def session(request: pytest.FixtureRequest) -> Iterator[Session]:
    """Start a session with little memory, or what the test says."""
    limit = getattr(request, "param", LIMIT)
    with mn.start(workers=1, threads=1, memory_limit=limit, memo="off") as started:
        mn.ones(3).sum().compute()
        yield started
    mn.stop()


def growth(work: Callable[[], object]) -> int:
    """Return how much memory this process has grown by, at most, while it worked."""
    forget_peak()
    before = peak_bytes()
    if before is None:
        pytest.skip("the system does not tell how much memory a process takes")
    work()
    return (peak_bytes() or 0) - before


FAST = ("a.mtx.gz", "liar.txt.gz")
CASES = [pytest.param(name, marks=() if name in FAST else pytest.mark.slow) for name in LARGE]


@pytest.mark.parametrize("name", CASES)
def test_what_does_not_fit_is_refused(session: Session, tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    LARGE[name](path, COUNT)
    before = session.status().num_arrays

    def refused() -> None:
        with pytest.raises(TooLargeError, match=r"[0-9.]+ [MG]B.* memory_limit") as caught:
            mn.load(path)
        assert name in str(caught.value)

    assert growth(refused) < LIMIT + ROOM
    assert session.status().num_arrays == before


@pytest.mark.slow
@pytest.mark.parametrize("session", [2_000_000_000], indirect=True)
@pytest.mark.parametrize("name", [name for name in LARGE if name != "a.graph.gz"])
def test_reading_takes_what_was_stated(
    session: Session, tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    stated: list[int] = []
    planner = session._runner.planner
    check = planner.check_peaks

    def noted(peaks: Mapping[int, int], needed: object) -> None:
        stated.append(sum(peaks.values()))
        check(dict.fromkeys(peaks, 0), needed)  # type: ignore[arg-type]  # as it was given

    monkeypatch.setattr(planner, "check_peaks", noted)
    path = tmp_path / name
    LARGE[name](path, 100_000)
    mn.load(path)  # what compiling takes is no part of reading
    LARGE[name](path, 3_000_000)
    stated.clear()
    grown = growth(lambda: mn.load(path))
    # What is compressed may lie of its length: then it is the room of a worker that bounds it.
    assert grown < (2_000_000_000 if name.startswith("liar") else max(stated)) + ROOM


def test_members_are_compared_before_they_are_inflated(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    large = np.zeros(30_000_000)
    members = {"format": np.array(b"csr"), "shape": np.array([3, 3]), "indptr": np.zeros(4, np.int32)}
    np.savez_compressed(path, data=large, indices=np.zeros(3, np.int32), **members)
    del large

    def refused() -> None:
        with pytest.raises(FileFormatError, match="do not fit together"):
            open_source(path)

    assert growth(refused) < 20_000_000
