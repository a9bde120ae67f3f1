"""A remembered result is believed where this user alone can have written it, and nowhere else."""

from __future__ import annotations

import os
import re
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

import matnb as mn
from matnb.blocks.formats import Block, Dense
from matnb.blocks.grid import Grid
from matnb.config import Config, config_from_environment, data_folder_from_environment
from matnb.errors import OptionError
from matnb.io.results import About, ResultFolder, result_key, write_result

PROJECT = Path(__file__).parents[2]
NOBODY = 65534
KEYS = data_folder_from_environment()
ABOUT = About(bytes(range(16)), Grid(((0, 3),)), np.dtype("f8"), False)
NAME = ABOUT.digest.hex()
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")


@pytest.fixture(autouse=True)
def usual_umask() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


def cases(every: dict[str, Callable[[Path], object]]) -> list[object]:
    """Return the cases as parameters; what gives a file away needs root."""
    return [
        pytest.param(each, id=name, marks=[as_root] if name == "another's" else [])
        for name, each in every.items()
    ]


def made(path: Path, mode: int = 0o700, owner: int | None = None) -> Path:
    path.mkdir(parents=True, exist_ok=True)
    path.chmod(mode)
    if owner is not None:
        os.chown(path, owner, owner)
    return path


def linked(path: Path, to: Path, owner: int | None = None) -> Path:
    path.symlink_to(to)
    if owner is not None:
        os.chown(path, owner, owner, follow_symlinks=False)
    return path


# What the folder is, made at a place of its own, and what the error says.
REFUSED: dict[str, tuple[Callable[[Path], Path], str]] = {
    "0777": (lambda at: made(at / "memo", 0o777), "mode 0777"),
    "0775": (lambda at: made(at / "memo", 0o775), "mode 0775"),
    "0702": (lambda at: made(at / "memo", 0o702), "mode 0702"),
    "sticky": (lambda at: made(at / "memo", 0o1777), "mode 1777"),
    "a link to 0777": (lambda at: linked(at / "link", made(at / "memo", 0o777)), "mode 0777"),
    "in 0777": (lambda at: made(made(at / "above", 0o777) / "memo"), "above it"),
    "below one in 0777": (lambda at: made(made(at / "above", 0o777) / "between" / "memo"), "above it"),
    "a link to one in 0777": (
        lambda at: linked(at / "link", made(made(at / "above", 0o777) / "memo")),
        "above it",
    ),
    "a link in 0777": (lambda at: linked(made(at / "above", 0o777) / "link", made(at / "memo")), "above it"),
    "a link to a link in 0777": (
        lambda at: linked(at / "link", linked(made(at / "above", 0o777) / "link", made(at / "memo"))),
        "above it",
    ),
}
OF_OTHERS: dict[str, tuple[Callable[[Path], Path], str]] = {
    "another's": (lambda at: made(at / "memo", 0o755, NOBODY), "belongs to user 65534"),
    "in another's": (lambda at: made(made(at / "above", 0o755, NOBODY) / "memo"), "belongs to user 65534"),
    "another's link": (
        lambda at: linked(made(at / "tmp", 0o1777) / "link", made(at / "memo"), NOBODY),
        "belongs to user 65534",
    ),
}
ACCEPTED: dict[str, Callable[[Path], Path]] = {
    "0700": lambda at: made(at / "memo", 0o700),
    "0755": lambda at: made(at / "memo", 0o755),
    "new": lambda at: at / "new" / "memo",
    "in a sticky folder": lambda at: made(made(at / "tmp", 0o1777) / "memo"),
    "a link": lambda at: linked(at / "link", made(at / "memo")),
    "a link to a link": lambda at: linked(at / "link", linked(at / "other", made(at / "memo"))),
    "through dots": lambda at: made(at / "memo") / ".." / "memo",
    "a name for the shell": lambda at: made(at / "a b'c;$x"),
}


@pytest.mark.parametrize(("make", "said"), REFUSED.values(), ids=REFUSED)
def test_a_folder_that_others_can_write_to_is_refused_with_the_command_that_mends_it(
    tmp_path: Path, make: Callable[[Path], Path], said: str
) -> None:
    at = made(tmp_path / "here's one")
    folder = make(at)
    before = sorted(at.rglob("*"))
    with pytest.raises(OptionError, match=r"^memo_dir=") as caught:
        ResultFolder(folder, 10**6, KEYS)
    assert said in str(caught.value)
    assert sorted(at.rglob("*")) == before
    command = re.search(r": (chmod .*)$", str(caught.value))
    assert command is not None
    subprocess.run(command[1], shell=True, check=True)
    ResultFolder(folder, 10**6, KEYS)


@as_root
@pytest.mark.parametrize(("make", "said"), OF_OTHERS.values(), ids=OF_OTHERS)
def test_a_folder_of_another_user_is_refused(tmp_path: Path, make: Callable[[Path], Path], said: str) -> None:
    with pytest.raises(OptionError, match=f"^memo_dir=.*{said}"):
        ResultFolder(make(tmp_path), 10**6, KEYS)


@pytest.mark.parametrize("make", ACCEPTED.values(), ids=ACCEPTED)
def test_a_folder_that_this_user_alone_writes_to_is_used(
    tmp_path: Path, make: Callable[[Path], Path]
) -> None:
    folder = ResultFolder(make(tmp_path), 10**6, KEYS)
    folder.write(ABOUT, lambda _: Dense(np.ones(3)))
    (path,) = Path(folder.path).iterdir()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert folder.read(ABOUT.digest, lambda result: result.num_bytes) == 24


@pytest.mark.parametrize("umask", [0o002, 0])
def test_folders_that_are_made_are_for_this_user_alone(tmp_path: Path, umask: int) -> None:
    os.umask(umask)  # under which new folders are the group's, or everybody's
    keys, at = tmp_path / "data" / "matnb", tmp_path / "results" / "of" / "mine"
    folder = ResultFolder(at, 10**6, str(keys))
    folder.write(ABOUT, lambda _: Dense(np.ones(3)))
    assert folder.read(ABOUT.digest, lambda result: result.num_bytes) == 24
    for one in (keys, keys.parent, at, at.parent, at.parent.parent):
        assert stat.S_IMODE(one.stat().st_mode) == 0o700


def test_a_url_is_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(
        OptionError, match=r"^memo_dir='s3://\*\*\*@bucket/memo\?\*\*\*'.*not a url"
    ) as caught:
        mn.start(memo_dir="s3://me:hidden@bucket/memo?token=hidden")
    assert "hidden" not in str(caught.value)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("text", ["", " ", "\t"])
def test_no_name_is_no_folder(text: str) -> None:
    for start in (lambda: mn.start(memo_dir=text), lambda: Config(memo_dir=text)):
        with pytest.raises(OptionError, match=r"^memo_dir=.*give the path of a folder"):
            start()
    if not text:  # a variable that a shell unsets for one command
        assert config_from_environment({"MATNB_MEMO_DIR": text}).memo_dir is None
        return
    with pytest.raises(OptionError, match=r"^MATNB_MEMO_DIR.*give the path of a folder"):
        config_from_environment({"MATNB_MEMO_DIR": text})


# How somebody else makes a file that says 7 where 1 was computed; all know how files are written.


def by_another_key(path: Path, key: bytes) -> None:
    with open(path, "w+b") as stream:
        write_result(stream, ABOUT, lambda _: Dense(np.full(3, 7.0)), key)


def with_a_block_for_a_table(path: Path) -> None:
    # What the user loads may be anything, and a checksum of it stands in a file: it is none of a table.
    by_another_key(path, bytes(32))
    whole = path.read_bytes()
    begin, length = int.from_bytes(whole[12:20], "little"), int.from_bytes(whole[20:28], "little")
    table = whole[begin : begin + length]
    own = path.with_name("own")
    about = About(ABOUT.digest, Grid(((0, len(table)),)), np.dtype("u1"), False)
    with open(own, "w+b") as stream:
        write_result(stream, about, lambda _: Dense(np.frombuffer(table, np.uint8)), result_key(KEYS, ""))
    checksum = re.findall(rb'"dense", [0-9]+, "([0-9a-f]{32})"', own.read_bytes())[-1]  # the data has one too
    path.write_bytes(whole[:28] + bytes.fromhex(checksum.decode()) + whole[44:])


def flipped(path: Path) -> None:
    whole = bytearray(path.read_bytes())
    whole[50] ^= 1
    path.write_bytes(whole)


FORGED: dict[str, Callable[[Path], object]] = {
    "another key": lambda path: by_another_key(path, bytes(range(32))),
    "no key": lambda path: by_another_key(path, b""),
    "a block for a table": with_a_block_for_a_table,
    "a bit": flipped,
    "mode 0666": lambda path: path.chmod(0o666),
    "mode 0620": lambda path: path.chmod(0o620),
    "a link": lambda path: (path.rename(path.with_name("own")), path.symlink_to("own")),
    "version 1": lambda path: path.write_bytes(path.read_bytes().replace(b"\n\3\0", b"\n\1\0", 1)),
    "another's": lambda path: os.chown(path, NOBODY, NOBODY),
}


@pytest.mark.parametrize("forge", cases(FORGED))
def test_what_this_user_did_not_write_is_a_miss_with_a_warning(
    tmp_path: Path, forge: Callable[[Path], object]
) -> None:
    ResultFolder(tmp_path, 10**6, KEYS).write(ABOUT, lambda _: Dense(np.ones(3)))
    folder = ResultFolder(tmp_path, 10**6, KEYS)
    forge(tmp_path / NAME)
    folder.refresh()

    def values(result: object) -> Block:
        return result.block(0)  # type: ignore[attr-defined]

    with pytest.warns(UserWarning, match="is not used and will be computed again"):
        assert folder.read(ABOUT.digest, values) is None
    assert ABOUT.digest not in folder


def test_a_session_computes_what_was_forged(tmp_path: Path) -> None:
    def total() -> float:
        return float((mn.asarray(np.arange(40_000.0), blocks=2) ** 2).sum())

    right = float((np.arange(40_000.0) ** 2).sum())
    with mn.start(memo_dir=tmp_path):
        assert total() == right
    (path,) = tmp_path.iterdir()
    about = About(bytes.fromhex(path.name), Grid(()), np.dtype("f8"), False)
    with open(path, "w+b") as stream:
        write_result(stream, about, lambda _: Dense(np.array(666.0)), bytes(32))
    with mn.start(memo_dir=tmp_path), pytest.warns(UserWarning, match="not written with your key"):
        assert total() == right
    mn.stop()


# the key


def test_the_key_is_drawn_once_and_nobody_else_reads_it(tmp_path: Path) -> None:
    folder, found = tmp_path / "data" / "matnb", []
    barrier = threading.Barrier(8)

    def ask() -> None:
        barrier.wait()
        found.append(result_key(str(folder), "memo"))

    asking = [threading.Thread(target=ask) for _ in range(8)]
    for one in asking:
        one.start()
    for one in asking:
        one.join()
    (path,) = folder.iterdir()
    assert [*found] == [path.read_bytes()] * 8
    assert len(found[0]) == 32
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert result_key(str(tmp_path / "other"), "memo") != found[0]


@pytest.mark.slow
def test_processes_that_come_at_once_have_one_key(tmp_path: Path) -> None:
    program = f"from matnb.io.results import result_key as k; print(k({str(tmp_path / 'k')!r}, '').hex())"
    environ = {**os.environ, "PYTHONPATH": str(PROJECT)}
    command = [sys.executable, "-c", program]
    every = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environ) for _ in range(4)]
    told = [one.communicate(timeout=120)[0] for one in every]
    assert told == [result_key(str(tmp_path / "k"), "").hex() + "\n"] * 4


SPOILED: dict[str, Callable[[Path], object]] = {
    "others read it": lambda path: path.chmod(0o644),
    "others write it": lambda path: path.chmod(0o622),
    "short": lambda path: path.write_bytes(b"short"),
    "empty": lambda path: path.write_bytes(b""),
    "long": lambda path: path.write_bytes(bytes(33)),
    "a link": lambda path: (path.rename(path.parent.parent / "k"), path.symlink_to(path.parent.parent / "k")),
    "another's": lambda path: os.chown(path, NOBODY, NOBODY),
}


@pytest.mark.parametrize("spoil", cases(SPOILED))
def test_a_key_that_others_may_know_is_refused(tmp_path: Path, spoil: Callable[[Path], object]) -> None:
    folder = tmp_path / "data" / "matnb"
    before = result_key(str(folder), "memo")
    (path,) = folder.iterdir()
    spoil(path)
    with pytest.raises(OptionError, match=r"^memo: the key of your results") as caught:
        result_key(str(folder), "memo")
    if (command := re.search(r"; (rm .*?) lets", str(caught.value))) is not None:
        subprocess.run(command[1], shell=True, check=True)
        assert result_key(str(folder), "memo") != before


def test_a_key_has_a_folder_of_this_user_alone(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match=r"^memo: the folder of the key of your results.*chmod go-w"):
        result_key(str(made(tmp_path / "data", 0o777)), "memo")
    (tmp_path / "file").write_text("")
    with pytest.raises(OptionError, match=r"^memo: the key of your results cannot be kept.*XDG_DATA_HOME"):
        result_key(str(tmp_path / "file" / "matnb"), "memo")


def test_where_the_key_is() -> None:
    assert data_folder_from_environment({"XDG_DATA_HOME": "/d"}) == "/d/matnb"
    home = os.path.expanduser("~/.local/share/matnb")
    assert [data_folder_from_environment(one) for one in ({}, {"XDG_DATA_HOME": "relative"})] == [home] * 2
