"""Files with drawn damage: readers give their array or one MatnbError, soon, in memory that follows the file.

``python -m fuzzed_files --count 100000 --seed 1``, from this folder, tries so many and counts what became of
them.
"""

from __future__ import annotations

import argparse
import gzip
import io
import os
import pickle
import random
import re
import signal
import subprocess
import sys
import tempfile
import warnings
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

import numpy as np
import scipy.sparse as sp
from bad_files import GOOD, csr, npy, npz, saved

from matnb.blocks.formats import to_numpy
from matnb.blocks.grid import whole
from matnb.errors import FileContentWarning, MatnbError
from matnb.io.source import READERS, SourceFacts, open_source

SECONDS = 10.0  # of one file, some hundred times what is taken
ROOM_BYTES = 96 << 20  # beside what a file may take: the interpreter grows too, while it is read
LARGEST_BASE = 24_000  # bytes of a file that is damaged: small ones take most of what can be wrong
MOST_ELEMENTS = 1 << 20  # of an array that is made whole and compared
_NUMBERS = [b"-1", b"0", b"2147483648", b"99999999999999999999", b"1e400", b"nan", b"-inf", b"0x10", b"1.5",
            b"", b"1 1", b"4294967297", b"9223372036854775807", b"\xff", b"1e-400", b"+3", b".",
            b"1d5"]  # fmt: skip
_BYTES = [b"\0", b"\r", b"\n", b"\r\n", b"\n\n", b"\t", b",", b";", b'"', b" ", b"%", b"#", b"\xef\xbb\xbf"]


@dataclass(frozen=True)
class Outcome:
    """What became of one file: read, refused, or not whole since its array is too large."""

    name: str
    how: str
    found: SourceFacts | None = None
    values: np.ndarray | None = None


def bases(folder: Path | None) -> dict[str, bytes]:
    """Return small files of every kind by name, with those of a folder of published data."""
    matrix = sp.random_array((12, 9), density=0.3, rng=1)
    made: dict[str, bytes] = {
        "a.mtx": GOOD.encode(),
        "b.mtx": b"%%MatrixMarket matrix array real general\n% c\n2 2\n1.5\n2\n3e2\n-4\n",
        "c.mtx": b"%%MatrixMarket matrix coordinate pattern symmetric\n3 3 3\n1 1\n2 1\n3 3\n",
        "d.mtx": b"%%MatrixMarket matrix coordinate integer skew-symmetric\n3 3 2\n2 1 5\n3 1 -7\n",
        "a.txt": b"# c\n1 2\n2 3\n5 1\n",
        "b.txt": b"1,2,0.5\n2,3,1.5\n7,1,2\n",
        "a.graph": b"3 2\n2\n1 3\n2\n",
        "b.graph": b"% c\n3 2 1\n2 5\n1 5 3 6\n2 6\n",
        "a.svm": b"1 qid:3 1:0.5 4:2 # c\n-1\n2.5 2:1e3 7:-1\n",
        "a.ldac": b"2 0:1 3:4\n0\n1 5:2\n",
        "a.csv": b'a,b,"c d"\n1,2.5,true\n3,,false\n"4",NA,true\n',
        "a.npy": npy(np.arange(12.0).reshape(3, 4)),
        "b.npy": npy(np.asfortranarray(np.arange(6, dtype=np.int16).reshape(2, 3))),
        "c.npy": npy(np.array(3 + 4j)),
        "a.npz": npz(**csr()),
        "saved.npz": saved(),
    }
    for kind in ("csr", "csc", "coo", "bsr", "dia"):
        stream = io.BytesIO()
        sp.save_npz(stream, matrix.asformat(kind))
        made[f"{kind}.npz"] = stream.getvalue()
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        pass
    else:
        stream = io.BytesIO()
        table = pyarrow.table(
            {"a": [1, 2, None] * 20, "b": [0.5, 1.5, 2.5] * 20, "c": [True, False, True] * 20}
        )
        parquet.write_table(table, stream, row_group_size=25)
        made["a.parquet"] = stream.getvalue()
    suffixes = tuple(suffix for reader in READERS.values() for suffix in reader.suffixes)
    for path in sorted(folder.rglob("*")) if folder is not None else ():
        if path.name.endswith(suffixes) and path.is_file():
            with open(path, "rb") as stream:
                data = stream.read(LARGEST_BASE)
            if len(data) < LARGEST_BASE:
                made[f"{len(made)}-{path.name}"] = data
            elif path.name.endswith((".csv", ".txt")):  # the first lines of a longer one are a file too
                made[f"{len(made)}-{path.name}"] = data[: data.rfind(b"\n") + 1]
    packed = {
        f"{name}.gz": gzip.compress(made[name], mtime=0) for name in ("a.mtx", "b.txt", "a.csv", "a.graph")
    }
    return made | packed


def damaged(name: str, data: bytes, draw: random.Random) -> bytes:
    """Return the bytes of a file with drawn damage; half of what is compressed is damaged inside."""
    if name.endswith(".gz") and draw.random() < 0.6:
        return gzip.compress(_damaged(gzip.decompress(data), draw), mtime=0)
    if name.endswith(".npz") and draw.random() < 0.7:
        return _damaged_member(data, draw)
    return _damaged(data, draw)


def _damaged_member(data: bytes, draw: random.Random) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as new:
        names = old.namelist()
        chosen = draw.choice(names)
        for one in names:
            content = old.read(one)
            new.writestr(zipfile.ZipInfo(one), _damaged(content, draw) if one == chosen else content)
    return stream.getvalue()


def _damaged(data: bytes, draw: random.Random) -> bytes:
    made = bytearray(data)
    for _ in range(draw.choice([1, 1, 1, 2, 3, 8])):
        start = draw.randrange(len(made) + 1)
        if draw.random() < 0.4:  # most of what is wrong is wrong in the first lines
            start = min(start, draw.randrange(200))
        stop = min(len(made), start + draw.choice([1, 2, 4, 30, 400]))
        match draw.randrange(9):
            case 0 if made:
                made[start % len(made)] ^= 1 << draw.randrange(8)
            case 1 if made:
                made[start % len(made)] = draw.randrange(256)
            case 2:
                del made[start:stop]
            case 3:
                made[start:start] = made[start:stop]
            case 4:
                del made[start:]
            case 5:
                made[start:start] = draw.randbytes(draw.choice([1, 3, 50]))
            case 6:
                made[start:start] = draw.choice(_BYTES)
            case 7:
                old = draw.choice([b"\n", b" ", b",", b"."])
                made = bytearray(bytes(made).replace(old, draw.choice(_BYTES)))
            case _:
                numbers = list(re.finditer(rb"[0-9]+", made[:4000]))
                if numbers:
                    one = draw.choice(numbers)
                    made[one.start() : one.end()] = draw.choice(_NUMBERS)
    return bytes(made)


@contextmanager
def limited(name: str) -> Iterator[None]:
    """Fail what takes longer than a file may."""

    def late(signum: int, frame: FrameType | None) -> None:
        raise AssertionError(f"{name} took more than {SECONDS} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def peak_bytes() -> int | None:
    """Return the most memory this process has had since :func:`forget_peak`; None where nobody knows."""
    try:
        text = Path("/proc/self/status").read_text()
    except OSError:
        return None
    found = re.search(r"VmHWM:\s*(\d+) kB", text)
    return int(found[1]) << 10 if found else None


def forget_peak() -> None:
    """Begin to look for the most memory anew."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def attempt(path: Path) -> Outcome:
    """Read a file as far as it can be; any other error than a MatnbError comes out, a hang and a swell too.

    Raises
    ------
    AssertionError
        When it takes too long, or much more memory than the file and its array.
    """
    forget_peak()
    before = peak_bytes()
    with limited(path.name), warnings.catch_warnings():
        warnings.simplefilter("ignore", FileContentWarning)  # as of whole numbers that stay text
        try:
            outcome = _attempt(path)
        except MatnbError as error:
            text = str(error)
            assert text, "an error says what is wrong"
            assert len(text) < 2000, text
            outcome = Outcome(path.name, "refused")
    after = peak_bytes()
    if before is not None and after is not None:
        made = 0 if outcome.values is None else outcome.values.nbytes
        room = ROOM_BYTES + 40 * path.stat().st_size + 4 * made
        assert after - before < room, f"{path.name} took {after - before} bytes"
    return outcome


def _attempt(path: Path) -> Outcome:
    source = open_source(path)
    parsed = [source.parse(piece) for piece in source.pieces(2)]
    context = source.merge([source.summary(one) for one in parsed])
    found: SourceFacts = context.found
    if np.prod([float(length) for length in found.shape]) > MOST_ELEMENTS:
        return Outcome(path.name, "large", found)
    for region in whole(found.shape).regions():
        block = source.assemble([source.part(one, context, region) for one in parsed], context, region)
    return Outcome(path.name, "read", found, to_numpy(block))


# SciPy, in a process that may die

_CHILD = """
import pickle, sys, warnings
import numpy as np, scipy.io, scipy.sparse as sp
warnings.simplefilter("ignore")
for path in sys.stdin:
    path = path.strip()
    try:
        if path.endswith(".npz"):
            made = sp.load_npz(path)
        elif path.endswith(".npy"):
            made = np.load(path)
        else:
            made = scipy.io.mmread(path)
        values = None
        if np.prod([float(one) for one in made.shape]) <= {most}:
            values = np.asarray(made.toarray() if sp.issparse(made) else made)
    except BaseException:
        values = None
    if values is not None and values.dtype.kind not in "biufc":
        values = None
    data = pickle.dumps(values)
    sys.stdout.buffer.write(len(data).to_bytes(8, "little") + data)
    sys.stdout.buffer.flush()
"""


class Reference:
    """SciPy's and NumPy's readers in a process of their own, started again when it died."""

    def __init__(self) -> None:
        self._child: subprocess.Popen[bytes] | None = None
        self.num_died = 0

    def __enter__(self) -> Reference:
        return self

    def __exit__(self, *_: object) -> None:
        if self._child is not None:
            self._child.kill()
            self._child.communicate()
            self._child = None

    def read(self, path: Path) -> np.ndarray | None:
        """Return the array of a file; None where it is not read, too large, or the process died of it."""
        if self._child is None:
            self._child = subprocess.Popen(
                [sys.executable, "-c", _CHILD.format(most=MOST_ELEMENTS)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        try:
            self._child.stdin.write(f"{path}\n".encode())
            self._child.stdin.flush()
            head = self._child.stdout.read(8)
        except BrokenPipeError:
            head = b""
        if len(head) < 8:
            self.__exit__()
            self.num_died += 1
            return None
        values = pickle.loads(self._child.stdout.read(int.from_bytes(head, "little")))
        return values if isinstance(values, np.ndarray) else None


def differ(outcome: Outcome, reference: Reference, path: Path) -> str:
    """Return how an array that was read differs from SciPy's, where that reads it too."""
    if outcome.values is None or not path.name.endswith((".mtx", ".mtx.gz", ".npy", ".npz")):
        return ""
    values = reference.read(path)
    if values is None:
        return ""
    if values.shape != outcome.values.shape:
        return f"{path.name}: shape {outcome.values.shape}, SciPy's {values.shape}"
    if not np.array_equal(outcome.values, values, equal_nan=values.dtype.kind in "fc"):
        return f"{path.name}: other numbers than SciPy's"
    return ""


def fuzz(
    count: int,
    seed: int,
    folder: Path | None,
    work: Path,
    failed: Callable[[Path, BaseException | str], None] | None = None,
) -> Mapping[str, int]:
    """Try so many files and return how many were read, refused, large, compared; the first failure is raised.

    Parameters
    ----------
    folder
        Published data whose small files are damaged, too.
    work
        Where files are written.
    failed
        Is told of failures instead.
    """
    known, draw, counts = bases(folder), random.Random(seed), Counter[str]()
    names = list(known)
    with Reference() as reference:
        for number in range(count):
            name = names[number % len(names)]
            path = work / name
            path.write_bytes(damaged(name, known[name], draw))
            try:
                outcome = attempt(path)
                different = differ(outcome, reference, path)
                counts["compared"] += outcome.values is not None
                assert not different, different
            except Exception as error:  # whatever a reader let out is what is looked for
                counts["failed"] += 1
                if failed is None:
                    raise
                failed(path, error)
                continue
            counts[outcome.how] += 1
    counts["scipy died"] = reference.num_died
    return counts


def main() -> None:
    """Try files, keep those that failed, and print the counts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--data", type=Path, default=os.environ.get("MATNB_TEST_DATA"))
    parser.add_argument("--keep", type=Path, default=Path("fuzzed"))
    words = parser.parse_args()

    def failed(path: Path, error: BaseException | str) -> None:
        words.keep.mkdir(exist_ok=True)
        number = len(list(words.keep.iterdir()))
        (words.keep / f"{words.seed}-{number}-{path.name}").write_bytes(path.read_bytes())
        print(f"{number} {path.name}: {type(error).__name__}: {str(error)[:300]}", flush=True)

    with tempfile.TemporaryDirectory() as work:
        print(dict(fuzz(words.count, words.seed, words.data, Path(work), failed)))


if __name__ == "__main__":
    main()
