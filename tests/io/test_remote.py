"""Files behind urls: every reader through fsspec, as one version of the file; and what cannot be reached."""

from __future__ import annotations

import gzip
import io
import threading
from collections.abc import Callable, Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import fsspec
import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp
from reading import read_whole

import matnb as mn
from matnb.errors import FileFormatError, MissingFileError, OptionError, UnsupportedError
from matnb.io.files import find_file
from matnb.io.source import open_source

MATRIX = sp.random_array((60, 40), density=0.1, format="csr", rng=3)
Put = Callable[[str, bytes], str]


@pytest.fixture
def put() -> Iterator[Put]:
    """Return a function that keeps bytes in memory under a name and returns their url."""
    system = fsspec.filesystem("memory")

    def kept(name: str, data: bytes) -> str:
        system.pipe_file(f"/matnb-tests/{name}", data)
        return f"memory://matnb-tests/{name}"

    yield kept
    if system.exists("/matnb-tests"):
        system.rm("/matnb-tests", recursive=True)


def files() -> dict[str, bytes]:
    """Return a file of each kind that holds ``MATRIX``, by name."""
    made = {name: io.BytesIO() for name in ("a.mtx", "a.npz", "a.npy", "b.npy")}
    scipy.io.mmwrite(made["a.mtx"], MATRIX)
    sp.save_npz(made["a.npz"], MATRIX)
    np.save(made["a.npy"], MATRIX.toarray())
    np.save(made["b.npy"], np.asfortranarray(MATRIX.toarray()))
    found = {name: stream.getvalue() for name, stream in made.items()}
    rows = "\n".join(",".join(map(repr, row)) for row in MATRIX.toarray().tolist())
    found["a.csv"] = (",".join(f"c{one}" for one in range(40)) + "\n" + rows).encode()
    return found | {f"{name}.gz": gzip.compress(found[name], mtime=0) for name in ("a.mtx", "a.csv")}


@pytest.mark.usefixtures("small_chunks")
def test_every_reader_reads_a_url(put: Put) -> None:
    for name, data in files().items():
        source = open_source(put(name, data))
        for pieces, counts in ((1, 1), (3, 2)):
            np.testing.assert_array_equal(read_whole(source, pieces, counts)[1], MATRIX.toarray(), name)


def test_the_threads_of_a_session_read_and_write_urls(put: Put) -> None:
    with mn.start(workers=2, threads=2):
        table = mn.load(put("a.csv", files()["a.csv"]), blocks=4)
        np.testing.assert_array_equal(table["c7"].compute(), MATRIX.toarray()[:, 7])
        for name in ("out.npz", "out.npy"):
            mn.save(table.to_matrix() * 2, f"memory://matnb-tests/{name}")
            back = mn.load(f"memory://matnb-tests/{name}", blocks=3)
            np.testing.assert_array_equal(back.compute(), MATRIX.toarray() * 2)
    mn.stop()


def test_another_version_is_another_file(put: Put) -> None:
    url = put("a.csv", b"n\n1\n")
    source, same = open_source(url), open_source(url)
    assert source.identity() == same.identity()
    put("a.csv", b"n\n2\n")
    assert open_source(url).identity() != source.identity()
    with pytest.raises(FileFormatError, match="has changed since it was opened"):
        read_whole(source)


def test_what_cannot_be_reached(put: Put, tmp_path: Path) -> None:
    with pytest.raises(MissingFileError, match=r"nothing\.csv"):
        open_source("memory://matnb-tests/nothing.csv")
    with pytest.raises(OptionError, match=r"Protocol not known: nosuch"):
        open_source("nosuch://a.csv")
    with pytest.raises(OptionError, match=r"nosuch"):
        mn.save(np.zeros(3), "nosuch://a.npy")
    with pytest.raises(FileFormatError, match="is empty"):
        open_source(put("b.csv", b""))
    with pytest.raises(UnsupportedError, match="another machine"):
        open_source("file://elsewhere/a.csv")
    path = tmp_path / "a b.csv"
    path.write_text("n\n1\n")
    assert find_file(path.as_uri()).path == str(path)


def test_a_protocol_whose_package_is_missing_names_it() -> None:
    try:
        import s3fs  # noqa: F401
    except ImportError:
        with pytest.raises(UnsupportedError, match=r"s3://.*s3fs"):
            open_source("s3://bucket/a.csv")
    else:
        pytest.skip("s3fs is installed")


class _Ranged(SimpleHTTPRequestHandler):
    """Serves files, and parts of them where it is asked to; says nothing."""

    ranges = True

    def do_GET(self) -> None:
        asked = self.headers.get("Range")
        if asked is None or not self.ranges:
            super().do_GET()
            return
        data = Path(self.translate_path(self.path)).read_bytes()
        start, stop = asked.removeprefix("bytes=").split("-")
        part = data[int(start) : int(stop) + 1]
        self.send_response(206)
        self.send_header("Content-Length", str(len(part)))
        self.send_header("Content-Range", f"bytes {start}-{stop}/{len(data)}")
        self.end_headers()
        self.wfile.write(part)

    def log_message(self, *words: object) -> None:
        pass


class _Whole(_Ranged):
    """Knows no ranges, as Python's own server."""

    ranges = False


@pytest.mark.parametrize("handler", [_Ranged, _Whole])
@pytest.mark.usefixtures("small_chunks")
def test_a_web_server(tmp_path: Path, handler: type[_Ranged]) -> None:
    pytest.importorskip("aiohttp", reason="fsspec reads http:// with aiohttp, which is not installed")
    for name, data in files().items():
        (tmp_path / name).write_bytes(data)
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(handler, directory=str(tmp_path)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        for name in ("a.csv", "a.npy", "a.npz", "a.mtx.gz"):
            source = open_source(f"http://127.0.0.1:{server.server_port}/{name}")
            np.testing.assert_array_equal(read_whole(source, 2, 2)[1], MATRIX.toarray(), name)
        with pytest.raises(MissingFileError, match=r"nothing\.csv"):
            open_source(f"http://127.0.0.1:{server.server_port}/nothing.csv")
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_the_web_without_its_package() -> None:
    try:
        import aiohttp  # noqa: F401
    except ImportError:
        with pytest.raises(UnsupportedError, match=r"https://.*aiohttp"):
            open_source("https://example.org/a.csv")
    else:
        pytest.skip("aiohttp is installed")
