"""What is secret in a url occurs in no text that matnb makes: messages, plans, pictures, stamps, files."""

from __future__ import annotations

import atexit
import json
import pickle
import sys
import threading
import traceback
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import quote, urlsplit
from urllib.request import Request, urlopen

import fsspec
import numpy as np
import pytest
from cells import fail, run
from fsspec.spec import AbstractFileSystem
from hypothesis import given
from hypothesis import strategies as st
from IPython.core.interactiveshell import InteractiveShell
from magics.conftest import new_shell

import matnb as mn
from matnb.errors import FileFormatError, MatnbError, MissingFileError, OptionError, UnsupportedError
from matnb.io.source import open_source
from matnb.lazy.array import DistArray
from matnb.location import Location, shown_text
from matnb.ops.creation import read_here

MARK = "h1dd3nM4RK"
TABLE = b"n,m\n" + b"1,2\n3,4\n" * 50
_FAULTS: dict[str, Callable[[str], Exception]] = {
    "ours": lambda url: _ForeignError(f"denied: {url}"),
    "nameless": lambda url: _ForeignError(),
    "missing": lambda url: FileNotFoundError(url),
    "errno": lambda url: PermissionError(13, f"no way to {url}", url),
    "value": lambda url: ValueError(f"bad {quote(url, safe='')}"),
    "key": lambda url: KeyError(url),
    "parts": lambda url: RuntimeError(f"user {MARK} at {urlsplit(url).hostname}, {MARK.upper()}"),
    "import": lambda url: ImportError(f"{url} needs more"),
    "done": lambda url: NotImplementedError(f"cannot {url}"),
}


class _ForeignError(Exception):
    """What a package raises that derives its errors from Exception, as botocore's and aiohttp's do."""


class _Faulty(AbstractFileSystem):  # type: ignore[misc]  # mypy does not look into fsspec
    """Files that cannot be had: the host of a url names the error that tells all of it."""

    protocol = "faulty"
    cachable = False

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        return path

    def info(self, path: str, **_: object) -> dict[str, Any]:
        host = urlsplit(path).hostname or ""
        if host in ("range", "put"):
            return {"name": path, "size": 100, "type": "file"}
        raise _FAULTS[host](path)

    def cat_file(self, path: str, start: int | None = None, end: int | None = None, **_: object) -> bytes:
        raise _ForeignError(f"no bytes {start} to {end} of {path}")

    def put_file(self, lpath: str, rpath: str, **_: object) -> None:
        raise _FAULTS[urlsplit(rpath).path.split("-")[0].strip("/") or "ours"](rpath)


class _Guarded(AbstractFileSystem):  # type: ignore[misc]
    """Files behind a password, read with Python's own client, whose errors tell the url."""

    protocol = "guarded"
    cachable = False

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        return path

    def _read(self, path: str) -> bytes:
        parts = urlsplit(path)
        asked = Request(f"http://{parts.hostname}:{parts.port}{parts.path}?{parts.query}")
        words = b64encode(f"{parts.username}:{parts.password}".encode()).decode()
        asked.add_header("Authorization", f"Basic {words}")
        try:
            with urlopen(asked, timeout=10) as answer:
                return bytes(answer.read())
        except HTTPError as error:
            with error:
                raise _ForeignError(f"{error.code} of {path}") from error

    def info(self, path: str, **_: object) -> dict[str, Any]:
        return {"name": path, "size": len(self._read(path)), "type": "file", "ETag": "v1"}

    def cat_file(self, path: str, start: int | None = None, end: int | None = None, **_: object) -> bytes:
        return self._read(path)[start:end]


class _Locked(BaseHTTPRequestHandler):
    """Gives the table to who has the password and the token."""

    def do_GET(self) -> None:
        scheme, _, word = self.headers.get("Authorization", "").partition(" ")
        known = scheme == "Basic" and b64decode(word) == f"me{MARK}:{MARK}".encode()
        known = known and f"token={MARK}" in self.path
        if not known:
            self.send_response(401)
            self.send_header("WWW-Authenticate", f'Basic realm="{MARK}"')
        else:
            self.send_response(200)
        self.send_header("Content-Length", str(len(TABLE) if known else 0))
        self.end_headers()
        if known:
            self.wfile.write(TABLE)

    def log_message(self, *words: object) -> None:
        pass


@pytest.fixture(autouse=True, scope="module")
def systems() -> None:
    """Let fsspec know the file systems of this test."""
    for one in (_Faulty, _Guarded):
        fsspec.register_implementation(one.protocol, one, clobber=True)


@pytest.fixture
def locked() -> Iterator[str]:
    """Serve the table on the loopback, and return its url with what opens it."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Locked)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"guarded://me{MARK}:{MARK}@127.0.0.1:{server.server_port}/t.csv?token={MARK}&x=1#{MARK}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture
def kept() -> Iterator[Callable[[str, bytes], str]]:
    """Return a function that keeps bytes in memory at a url with secrets and returns the url."""
    system = fsspec.filesystem("memory")

    def put(name: str, data: bytes) -> str:
        url = f"memory://me:{MARK}@laws/{name}?token={MARK}#{MARK}"
        system.pipe_file(system._strip_protocol(url), data)
        return url

    yield put
    for path in [one for one in system.store if MARK in one]:
        system.rm_file(path)


def told(error: BaseException) -> str:
    """Return all that is shown of an error: its traceback with notes and causes, and its own words."""
    frames = [line for line in traceback.format_exception(error) if not line.startswith("  File ")]
    return "\n".join([*frames, repr(error), str(error), repr(vars(error))])


@contextmanager
def silent_error(kind: type[MatnbError]) -> Iterator[None]:
    """Check that the code inside raises an error of a kind, in which the mark does not occur."""
    with pytest.raises(kind) as caught:
        yield
    assert MARK.casefold() not in told(caught.value).casefold()
    assert "***" in str(caught.value)


# a location as text

_WORDS = st.text(st.sampled_from("ab:@/?#%&=;. []"), max_size=4)


@st.composite
def urls(draw: st.DrawFn) -> str:
    """Return urls with a mark where secrets are, and letters around it that confuse who parses them."""
    # With :// in it, it would be another url of a chain.
    marked = st.builds(lambda one, other: f"{one}{MARK}{other}", _WORDS, _WORDS)
    marked = marked.filter(lambda text: "://" not in text)
    chain = draw(st.sampled_from(["", "simplecache::", "zip://a.csv::"]))
    scheme = draw(st.sampled_from(["https", "s3", "memory", "ftp", "a+b"]))
    port = draw(st.sampled_from(["", ":8080"]))
    where = draw(st.sampled_from(["password", "query", "fragment", "all"]))
    user = f"u:{draw(marked)}@" if where in ("password", "all") else draw(st.sampled_from(["", "u@"]))
    query = f"?{draw(marked)}" if where in ("query", "all") else ""
    fragment = f"#{draw(marked)}" if where in ("fragment", "all") else ""
    return f"{chain}{scheme}://{user}host{port}/x.csv{query}{fragment}"


@given(urls())
def test_no_secret_in_the_text_of_a_location(url: str) -> None:
    where = Location(url)
    texts = [str(where), repr(where), f"{where}", f"{where!r}", "%s %r" % (where, where), str([where])]  # noqa: UP031
    error = FileFormatError(where, "is bad", 3)
    again = pickle.loads(pickle.dumps(error))
    texts += [str(error), error.path, str(MissingFileError(f"{where}: gone")), told(error), told(again)]
    texts += [where.reason(made(url)) for name, made in _FAULTS.items() if name != "parts"]
    assert all(MARK.casefold() not in one.casefold() for one in texts)
    assert where.real == url
    assert where != Location(url.replace(MARK, "other"))
    assert shown_text(str(where)) == str(where)


@pytest.mark.parametrize(
    ("url", "text"),
    [
        ("https://example.org/a/b.mtx", None),
        ("tcp://127.0.0.1:8786", None),
        ("http://[::1]:80/x.npy", None),
        ("s3://bucket/some/key@v1.npz", None),
        ("/home/me@work/x?y.csv", None),
        ("zip://a.csv::s3://key:secret@bucket/c.zip", "zip://a.csv::s3://***@bucket/c.zip"),
        ("https://me@host/x", "https://***@host/x"),
        ("https://me:pass@host:81/x.csv?sig=1&y=2#z", "https://***@host:81/x.csv?***#***"),
        ("https://me:pa/ss@host/x", "https://***@host/x"),
    ],
)
def test_what_is_not_secret_stays(url: str, text: str | None) -> None:
    assert str(Location(url)) == (text or url)


@pytest.mark.parametrize("fault", [*_FAULTS, "range"])
def test_no_secret_in_errors_of_file_systems(fault: str) -> None:
    url = f"faulty://me{MARK}:{MARK}@{fault}/a.mtx?token={MARK}#{MARK}"
    with silent_error(UnsupportedError if fault == "import" else MissingFileError):
        mn.load(url)


@pytest.mark.parametrize("fault", _FAULTS)
def test_no_secret_in_errors_of_saving(fault: str) -> None:
    with silent_error(MatnbError):
        mn.save(np.zeros(3), f"faulty://me{MARK}:{MARK}@put/{fault}-a.npy?token={MARK}")
    mn.stop()


def test_no_secret_in_errors_before_reading() -> None:
    for scheme, kind in (("nosuch", OptionError), ("file", UnsupportedError), ("memory", MissingFileError)):
        with silent_error(kind):
            mn.load(f"{scheme}://me:{MARK}@host/a.csv?token={MARK}")
    with silent_error(OptionError):
        mn.save(np.zeros(3), f"memory://me:{MARK}@host/a.xls?token={MARK}")
    with silent_error(MatnbError):
        mn.connect(f"nosuch://me:{MARK}@127.0.0.1:1", timeout_seconds=1)
    with silent_error(OptionError):
        mn.history().save(f"https://me:{MARK}@host/cuts.xls")


def test_no_secret_in_errors_of_lists(kept: Callable[[str, bytes], str]) -> None:
    table = kept("a.csv", TABLE)
    matrix = kept("a.mtx", b"%%MatrixMarket matrix coordinate real general\n1 1 0\n")
    with silent_error(OptionError):
        mn.load([table, matrix])
    with silent_error(OptionError):
        mn.load((table, 1))  # type: ignore[arg-type]
    mn.stop()


def test_no_secret_in_errors_of_content(kept: Callable[[str, bytes], str]) -> None:
    for name, content in {"a.mtx": b"junk", "a.csv": b"a,b\n1,2\n3\n", "a.npy": b"junk", "a.npz": b"junk",
                          "a.txt": b"1 2\n3\n", "a.graph": b"3 2\n", "a.mtx.gz": b"junk",
                          "a.parquet": b"junk"}.items():  # fmt: skip
        with silent_error(FileFormatError):
            mn.load(kept(name, content))
    for options in ({"columns": ["x"]}, {"names": ["x"]}, {"dtype": {"x": int}}, {"other": 1}, {"kind": "x"}):
        with silent_error(OptionError):
            mn.load(kept("b.csv", TABLE), **options)
    mn.stop()


# a session

CELLS = """\
%load_ext matnb
import matnb as mn, numpy as np
---
%%distmat --explain
t = mn.load(url)
x = t["n"]
y = np.sqrt(x) @ t["m"]
y
---
%distmat status
---
%distmat explain
---
%distmat memo
---
%distmat stamp
---
%distmat doctor
---
%distmat history
---
%distmat explain --picture
"""


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[InteractiveShell]:
    """Return an IPython shell."""
    main, hook = sys.modules["__main__"], sys.excepthook
    made = new_shell(tmp_path / "ipython")
    yield made
    mn.unload_ipython_extension(made)
    made.atexit_operations()
    atexit.unregister(made.atexit_operations)
    sys.modules["__main__"], sys.excepthook = main, hook
    mn.stop()


def shown(thing: object) -> str:
    """Return every form in which an object shows itself."""
    called = ("_repr_html_", "_repr_mimebundle_", "_repr_svg_")
    forms = [repr(thing), str(thing)]
    forms += [repr(getattr(thing, name)()) for name in called if hasattr(thing, name)]
    forms += [str(getattr(thing, name)) for name in ("text", "html", "json", "svg") if hasattr(thing, name)]
    return "\n".join(forms)


def everything(array: DistArray, folder: Path) -> Iterator[str]:
    """Yield the texts that a session makes of an array."""
    for stage in ("recorded", "plan", None):
        yield array.explain() if stage is None else array.explain(stage=stage)
        yield shown(mn.visualize(array) if stage is None else mn.visualize(array, stage=stage))
    yield array.explain(measured=True)
    for ending in ("svg", "txt"):
        mn.visualize(array).save(folder / f"plan.{ending}")
        yield (folder / f"plan.{ending}").read_text()
    stamp = mn.stamp(with_time=True)
    for ending in ("json", "html", "txt"):
        stamp.save(folder / f"stamp.{ending}")
        yield (folder / f"stamp.{ending}").read_text()
    mn.history().save(folder / "cuts.json")
    yield (folder / "cuts.json").read_text()
    for one in (array, stamp, mn.memo, mn.history(), mn.doctor(), mn.monitor(), mn.current_session(),
                mn.current_session().status(), mn.current_session().config):  # fmt: skip
        yield shown(one)


def test_no_secret_in_what_a_session_shows(
    locked: str, tmp_path: Path, shell: InteractiveShell, capfd: pytest.CaptureFixture[str]
) -> None:
    memo_dir, seen = tmp_path / "memo", []
    mn.start(workers=2, threads=1, memo_dir=memo_dir)
    end = mn.current_session().subscribe(lambda event: seen.append(repr(event)), samples=True)
    shell.user_ns["url"] = locked
    texts = []
    for cell in CELLS.split("---\n"):
        texts += run(shell, cell)
        texts += [json.dumps(one["data"], default=str) for one in shell.display_pub.outputs]
    table = shell.user_ns["t"]
    np.testing.assert_array_equal(table["n"].compute(), np.array([1, 3] * 50))
    texts += [shown(table), *everything(np.sqrt(table["n"] + 1.5) @ table["m"], tmp_path)]
    other = np.sqrt(table["n"])
    other.compute()
    mn.memo.clear()
    texts += seen
    end()
    written = [one for one in memo_dir.iterdir() if one.is_file()]
    assert written, "something should have been remembered on the disk"
    assert all(MARK.encode() not in one.read_bytes() and MARK not in one.name for one in written)
    for url in (locked.replace(f":{MARK}@", f":{MARK}x@"), locked.replace(f"token={MARK}", f"tok={MARK}")):
        shell.user_ns["url"] = url
        error, printed = fail(shell, capfd, "%%distmat\nz = mn.load(url)\n")  # type: ignore[arg-type]  # reads as capsys does
        assert isinstance(error, MissingFileError)
        assert "401" in str(error) or "_ForeignError" in str(error)
        texts += [told(error), printed]
    out, err = capfd.readouterr()
    texts += [out, err]
    found = [text for text in texts if MARK.casefold() in text.casefold()]
    assert not found, found[0][:2000]
    assert any("guarded://***@127.0.0.1" in text for text in texts)  # it is told which file it was


def test_secrets_still_distinguish_files(kept: Callable[[str, bytes], str]) -> None:
    system = fsspec.filesystem("memory")
    one = kept("t.csv", TABLE)
    other = one.replace(f":{MARK}@", ":other@")
    system.pipe_file(system._strip_protocol(other), TABLE)
    try:
        first, second = open_source(one), open_source(other)
        assert first.identity()[1] != second.identity()[1]
        assert first != second
        assert repr(first) == repr(second)
        np.testing.assert_array_equal(read_here(first)[1].values, read_here(second)[1].values)
        with mn.start(workers=1):
            assert mn.load(one)["n"].expression.digest != mn.load(other)["n"].expression.digest
    finally:
        system.rm_file(system._strip_protocol(other))
