"""A file is the same where its content is: copies with other times are read, other content is refused."""

from __future__ import annotations

import os
import pickle
import shutil
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from matnb.errors import FileFormatError, MissingFileError
from matnb.io import files
from matnb.io.files import COMPARED_BYTES, File, find_local, seen_from_here
from matnb.io.source import open_source


def written(path: Path, content: bytes) -> File:
    path.write_bytes(content)
    return find_local(str(path))


def copied_over(path: Path, content: bytes, times: tuple[int, int] | None = None) -> None:
    """Put a file of its own in the place of another, as each machine has its own."""
    copy = path.with_name("copy")
    copy.write_bytes(content)
    if times is not None:
        os.utime(copy, ns=times)
    os.replace(copy, path)


def read(file: File) -> bytes:
    with file.open() as stream:
        return stream.read()


@pytest.mark.parametrize("num_bytes", [1, 5_000, COMPARED_BYTES, COMPARED_BYTES + 1, 3_000_000])
@pytest.mark.parametrize("step", [None, 1, 10**9, -(3600 * 10**9)])
def test_a_copy_is_read_whatever_its_time(tmp_path: Path, num_bytes: int, step: int | None) -> None:
    content = np.random.default_rng(3).bytes(num_bytes)
    file = written(tmp_path / "a.bin", content)
    before = (tmp_path / "a.bin").stat()
    times = None if step is None else (before.st_atime_ns, before.st_mtime_ns + step)
    copied_over(tmp_path / "a.bin", content, times)
    assert read(pickle.loads(pickle.dumps(file))) == content


def test_what_scp_and_tar_keep_of_a_time(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("a,b\n1,2\n")
    source = open_source(path)
    whole = path.stat().st_mtime_ns // 10**9 * 10**9  # seconds alone
    copied_over(path, b"a,b\n1,2\n", (whole, whole))
    assert source.parse(source.pieces(1)[0]).num_rows == 1


@pytest.mark.parametrize("num_bytes", [4, 5_000, COMPARED_BYTES, 3_000_000])
@given(place=st.floats(0, 1), keeps_time=st.booleans())
def test_other_content_of_one_length_is_refused(
    num_bytes: int, place: float, keeps_time: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("changed")
    content = bytearray(num_bytes)
    file = written(folder / "a.bin", bytes(content))
    before = (folder / "a.bin").stat()
    spans = files._compared_spans(num_bytes)
    start, stop = spans[min(len(spans) - 1, int(place * len(spans)))]
    content[min(stop - 1, start + int(place * (stop - start)))] = 1
    copied_over(folder / "a.bin", bytes(content), (0, before.st_mtime_ns) if keeps_time else None)
    with pytest.raises(FileFormatError, match="has changed since it was opened: load it again"):
        file.open()
    shutil.rmtree(folder)


def test_a_large_file_that_was_written_to_is_refused_wherever(tmp_path: Path) -> None:
    path = tmp_path / "a.bin"
    file = written(path, bytes(3_000_000))
    with path.open("r+b") as stream:
        stream.seek(files._END_BYTES + files._MIDDLE_BYTES + 1)  # which is not compared
        stream.write(b"1")
    os.utime(path, ns=(0, file.mtime_ns + 1))
    with pytest.raises(FileFormatError, match="has changed"):
        file.open()


def test_a_file_that_was_only_moved_or_given_other_rights_is_read(tmp_path: Path) -> None:
    file = written(tmp_path / "a.bin", bytes(3_000_000))
    (tmp_path / "a.bin").chmod(0o600)
    (tmp_path / "a.bin").rename(tmp_path / "b.bin")
    (tmp_path / "b.bin").rename(tmp_path / "a.bin")
    assert len(read(file)) == 3_000_000


def test_errors_on_another_machine_name_both_and_the_ways(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.txt"
    monkeypatch.setattr(files, "_machine", lambda: "laptop")
    file = written(path, b"1 2\n")
    monkeypatch.setattr(files, "_machine", lambda: "worker-3")
    copied_over(path, b"1 3\n")
    with pytest.raises(FileFormatError, match=r"another file on worker-3 than on laptop: copy that"):
        file.open()
    path.unlink()
    with pytest.raises(MissingFileError) as told:
        file.open()
    for word in (
        "cannot be read here, on worker-3",
        "on laptop",
        "same path on every machine",
        "share",
        "s3://",
    ):
        assert word in str(told.value)


HAS_CHANGED = "has changed since it was opened"
# What a worker finds: what is said where that is so there alone, and for all.
THERE: dict[str, tuple[str, str]] = {
    "another file": ("the file that worker 3 has there is not the one here, on", HAS_CHANGED),
    "a longer one": ("the file that worker 3 has there is not the one here, on", HAS_CHANGED),
    "none": ("cannot be read by worker 3, though it can here, on", "cannot be read here, on"),
}


@pytest.mark.parametrize("there", THERE)
@pytest.mark.parametrize("num_bytes", [4, COMPARED_BYTES + 1])
def test_what_a_worker_cannot_read_is_told_as_who_opened_it_sees_it(
    tmp_path: Path, there: str, num_bytes: int
) -> None:
    path, content = tmp_path / "a.txt", b"1" * num_bytes
    file = written(path, content)
    path.rename(tmp_path / "the one here")
    copied_over(path, {"another file": b"2" * num_bytes}.get(there, content + b"1"))
    if there == "none":
        path.unlink()
    with pytest.raises((FileFormatError, MissingFileError)) as told:
        file.open()
    on_a_worker = pickle.loads(pickle.dumps(told.value))
    elsewhere, everywhere = THERE[there]
    assert everywhere in str(seen_from_here(on_a_worker, "worker 3"))
    (tmp_path / "the one here").replace(path)
    found = seen_from_here(on_a_worker, "worker 3")
    assert elsewhere in str(found)
    assert "same path on every machine" in str(found)
    assert HAS_CHANGED not in str(found)
    assert type(found) is type(told.value)


@pytest.mark.parametrize("suffix", [".csv", ".txt", ".mtx", ".npy", ".npz"])
def test_a_changed_file_of_one_size_has_another_identity(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"a{suffix}"
    contents = []
    for value in (1, 2):
        match suffix:
            case ".npy":
                np.save(path, np.full(3, value))
            case ".npz":
                sp.save_npz(path, sp.csr_array([[value]]), compressed=False)
            case ".mtx":
                path.write_text(f"%%MatrixMarket matrix array integer general\n1 1\n{value}\n")
            case ".csv":
                path.write_text(f"a,b\n3,{value}\n")
            case _:
                path.write_text(f"1,2\n3,{value}\n")
        contents.append(path.read_bytes())
    assert len(contents[0]) == len(contents[1])
    found = []
    for content in contents:
        path.write_bytes(content)
        os.utime(path, ns=(0, 10**18))
        found.append(open_source(path).identity())
    assert found[0] != found[1]
