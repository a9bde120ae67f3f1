"""Folders of processes that were killed are removed by the next one; those of others never."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from matnb.io.temporary import remove_abandoned, temporary_folder

ROOT = str(Path(__file__).parents[2])
HOLD = """
import sys
from matnb.io.temporary import temporary_folder
with temporary_folder("test-", sys.argv[1]) as folder:
    (folder / "deep").mkdir()
    (folder / "deep" / "file").write_text("data")
    print(folder, flush=True)
    sys.stdin.read()
"""


@contextmanager
def holder(parent: Path) -> Iterator[tuple[subprocess.Popen[str], Path]]:
    """Run a process that has a folder, and give both."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(parent)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": ROOT},
    ) as process:
        assert process.stdout is not None
        try:
            yield process, Path(process.stdout.readline().strip())
        finally:
            process.kill()


def test_only_the_folder_of_a_process_that_is_gone_is_removed(tmp_path: Path) -> None:
    with holder(tmp_path) as (killed, left), holder(tmp_path) as (_, used):
        killed.send_signal(signal.SIGKILL)
        killed.wait()
        assert left.is_dir()
        with temporary_folder(parent=str(tmp_path)) as own:
            assert own.stat().st_mode & 0o777 == 0o700
            assert not left.exists()
            assert (used / "deep" / "file").read_text() == "data"
            assert own.is_dir()
        assert not own.exists()


@pytest.mark.parametrize("kind", ["without a note", "file", "link", "other name", "linked note"])
def test_what_is_not_surely_ours_and_abandoned_stays(tmp_path: Path, kind: str) -> None:
    place, other = tmp_path / "matnb-x", tmp_path / "elsewhere"
    other.mkdir()
    (other / "in-use").touch()
    match kind:
        case "without a note":
            place.mkdir()
            (place / "values").touch()
        case "file":
            place.touch()
        case "link":
            place.symlink_to(other)
        case "other name":
            place = other
        case "linked note":  # a link from inside to a file elsewhere is not followed
            place.mkdir()
            (place / "in-use").symlink_to(other / "in-use")
    remove_abandoned(tmp_path)
    assert os.path.lexists(place)
    assert (other / "in-use").exists()


def test_a_folder_of_another_user_stays(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give a folder to another user")
    place = tmp_path / "matnb-theirs"
    place.mkdir()
    (place / "in-use").touch()
    os.chown(place, 65534, 65534)
    remove_abandoned(tmp_path)
    assert place.exists()
    os.chown(place, 0, 0)
    remove_abandoned(tmp_path)
    assert not place.exists()


def test_a_link_inside_is_removed_and_what_it_points_to_stays(tmp_path: Path) -> None:
    place, other = tmp_path / "matnb-x", tmp_path / "elsewhere"
    for one in (place, other):
        one.mkdir()
        (one / "in-use").touch()
    (place / "link").symlink_to(other)
    remove_abandoned(tmp_path)
    assert not place.exists()
    assert (other / "in-use").exists()


def test_a_parent_that_is_not_there_is_no_error(tmp_path: Path) -> None:
    remove_abandoned(tmp_path / "nowhere")
