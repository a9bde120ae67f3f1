"""Files that are not what they claim to be, each with where and why it is refused."""

from __future__ import annotations

import gzip
import io
import pickle

import numpy as np
import scipy.sparse as sp

REAL = "%%MatrixMarket matrix coordinate real "
ARRAY = "%%MatrixMarket matrix array real "
GOOD = REAL + "general\n3 3 3\n1 1 1.5\n2 2 2.5\n3 3 3.5\n"


def npz(**members: np.ndarray) -> bytes:
    stream = io.BytesIO()
    np.savez(stream, **members)
    return stream.getvalue()


def npy(values: np.ndarray, allow_pickle: bool = False) -> bytes:
    stream = io.BytesIO()
    np.save(stream, values, allow_pickle)
    return stream.getvalue()


def csr(**changes: np.ndarray) -> dict[str, np.ndarray]:
    good = sp.csr_array(np.arange(9.0).reshape(3, 3))
    parts = {"format": np.array(b"csr"), "shape": np.array(good.shape), "data": good.data,
             "indices": good.indices, "indptr": good.indptr}  # fmt: skip
    return parts | changes


def saved(**changes: np.ndarray) -> bytes:
    parts = {"matnb": np.array(1), "sparse": np.array(True), "dtype": np.array(b"<f8"),
             "pattern": np.array(False), "cuts_0": np.array([0, 3]), "cuts_1": np.array([0, 3]),
             "nnz": np.array([2]), "block_0_pointers": np.array([0, 1, 2, 2]),
             "block_0_columns": np.array([0, 2]), "block_0_values": np.array([1.0, 2.0])}  # fmt: skip
    return npz(**(parts | changes))


def fake_npy(shape: str, descr: str = "<f8", data: bytes = b"") -> bytes:
    header = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + data


def damaged_zip() -> bytes:
    data = bytearray(npz(**csr()))
    place = data.index(b"data.npy") + 200
    data[place] ^= 255
    return bytes(data)


# name of the file, content, line (None where lines mean nothing), what the reason says
BAD = [
    # Matrix Market
    ("a.mtx", b"", None, "empty"),
    ("a.mtx", "1 2 3\n", 1, "%%MatrixMarket"),
    ("a.mtx", "\ufeff" + GOOD, 1, "byte order mark"),
    ("a.mtx", "%%MatrixMarket matrix coordinate real\n1 1 1\n1 1 1\n", 1, "header"),
    ("a.mtx", "%%MatrixMarket vector coordinate real general\n", 1, "vector"),
    ("a.mtx", "%%MatrixMarket matrix coordinate quaternion general\n", 1, "quaternion"),
    ("a.mtx", "%%MatrixMarket matrix array pattern general\n1 1\n1\n", 1, "pattern"),
    ("a.mtx", REAL + "general\n", None, "ends before"),
    ("a.mtx", REAL + "general\n% only\n% comments\n", None, "ends before"),
    ("a.mtx", REAL + "general\n3 x 3\n", 2, "line of sizes"),
    ("a.mtx", REAL + "general\n3 3\n1 1 1\n", 2, "line of sizes"),
    ("a.mtx", REAL + "general\n-3 3 1\n1 1 1\n", 2, "line of sizes"),
    ("a.mtx", REAL + "symmetric\n3 4 1\n1 1 1\n", 2, "symmetric"),
    ("a.mtx", GOOD.replace("3 3 3.5", " " * 8), None, "2 entries where the header says 3"),
    ("a.mtx", GOOD[:-4], 5, "2 columns where 3"),
    ("a.mtx", GOOD + "1 2 3\n", None, "4 entries where the header says 3"),
    ("a.mtx", GOOD.replace("2 2 2.5", "0 2 2.5"), 4, "row 0 is not in 1 to 3"),
    ("a.mtx", GOOD.replace("2 2 2.5", "4 2 2.5"), 4, "row 4 is not in 1 to 3"),
    ("a.mtx", GOOD.replace("2 2 2.5", "2 -2 2.5"), 4, "column -2 is not in 1 to 3"),
    ("a.mtx", GOOD.replace("2 2 2.5", "2 99999999999999999999 2.5"), 4, "does not fit 64 bits"),
    ("a.mtx", GOOD.replace("2 2 2.5", "2 2 2.x5"), 4, "'2.x5' is not a number"),
    ("a.mtx", GOOD.replace("2 2 2.5", "2 two 2.5"), 4, "'two' is not a whole number"),
    ("a.mtx", GOOD.replace("2 2 2.5", "2 2.0 2.5"), 4, "'2.0' is not a whole number"),
    ("a.mtx", GOOD.replace("2 2 2.5", "2 2 2.5 junk"), 4, "4 columns where 3"),
    ("a.mtx", GOOD.replace("2 2 2.5", "2 2 2.5\0"), 4, "byte 0"),
    ("a.mtx", GOOD.replace("2 2 2.5", "% late comment"), 4, "is not a whole number"),
    ("a.mtx", GOOD.encode() + bytes(range(128, 256)) * 10, 6, "columns where 3"),
    ("a.mtx", GOOD.replace("real", "integer"), 3, "'1.5' is not a whole number"),
    ("a.mtx", REAL + f"general\n3 3 {10**15}\n1 1 1\n", 2, "claims 1000000000000000 entries"),
    ("a.mtx", REAL + f"general\n{10**15} 3 1\n1 1 1\n", 2, "claims 1000000000000000 rows"),
    ("a.mtx", REAL + f"general\n3 {10**40} 1\n1 1 1\n", 2, "line of sizes"),
    ("a.mtx", ARRAY + f"general\n{2**30} {2**30}\n1\n", 2, "claims"),
    ("a.mtx", ARRAY + "general\n2 2\n1.0\n2.0\n3.0\n", None, "3 entries where the header says 4"),
    ("a.mtx", ARRAY + "general\n2 2\n1\n2\n3\n4 5\n", 6, "2 columns where 1"),
    ("a.mtx", ARRAY + "general\n2 2\n1\n2\n3\n4\n5\n", None, "5 entries"),
    ("a.mtx", REAL + "general\n3 3 300000\n" + "1" * 2_000_000, 3, "a line of more than"),
    # gzip
    ("a.mtx.gz", GOOD, None, "not a gzip file"),
    ("a.mtx.gz", gzip.compress(GOOD.encode())[:-12], None, "ends early"),
    ("a.mtx.gz", gzip.compress(GOOD.encode())[:40], None, "ends early"),
    ("a.mtx.gz", gzip.compress(GOOD.encode()) + b"trailing", None, "gzip"),
    ("a.mtx.gz", gzip.compress(GOOD.replace("2 2 2.5", "2 2 2.x5").encode()), 4, "not a number"),
    ("a.mtx.gz", gzip.compress((REAL + f"general\n3 3 {10**15}\n1 1 1\n").encode()), 2, "claims"),
    ("a.mtx.gz", gzip.compress(b""), None, "holds no text"),
    # edge lists
    ("a.txt", "# comment\n1 2\n3\n", 3, "1 columns where 2"),
    ("a.txt", "1 2\n3 4 5\n", 2, "3 columns where 2"),
    ("a.txt", "1 2\n3 four\n", 2, "'four' is not a whole number"),
    ("a.txt", "1 2\n3 -4\n", 2, "vertex -4 is negative"),
    ("a.txt", "1 2\n3 9223372036854775808\n", 2, "does not fit 64 bits"),
    ("a.txt", "1 2 0.5\n3 4 x\n", 2, "'x' is not a number"),
    ("a.txt", "1\n2\n", 1, "1 columns where an edge needs 2"),
    ("a.txt", "1 2 3 4\n", 1, "4 columns"),
    ("a.txt", "\ufeff1 2\n", 1, "byte order mark"),
    ("a.txt", "1 2\n1\x00 2\n", 2, "byte 0"),
    ("a.txt", "1 2\n,,\n3,,4\n", 2, "empty"),
    ("a.txt", ", # 1 2\n", 1, "0 columns where an edge needs 2"),
    ("a.txt", "1 " * 1_000_000, 1, "a line of more than"),
    ("a.txt", "1 2\n" + "3 4 " * 1_000_000 + "\n", 2, "a line of more than"),
    # METIS
    ("a.graph", "% only a comment\n", None, "no header"),
    ("a.graph", "x 2\n", 1, "not a METIS header"),
    ("a.graph", "3 2 7\n2\n1 3\n2\n", 1, "format '7'"),
    ("a.graph", "3 2\n2\n   1 3\n", None, "2 lines of vertices where the header says 3"),
    ("a.graph", "3 2\n2\n1 3\n2\n1\n", None, "lines of vertices where the header says 3"),
    ("a.graph", "3 3\n2\n     1 3\n2\n", None, "4 neighbors are listed"),
    ("a.graph", "3 1\n2\n1 3\n2\n", None, "4 neighbors are listed"),
    ("a.graph", "3 2\n2\n1 4\n2\n", 3, "neighbor 4 is not in 1 to 3"),
    ("a.graph", "3 2\n2\n1 0\n2\n", 3, "neighbor 0 is not in 1 to 3"),
    ("a.graph", "3 2\n2\n1 x\n2\n", 3, "'x' is not a whole number"),
    ("a.graph", "% c\n3 2\n2\n% c\n1 3\n1\n", 6, "vertex 3 lists 1, but 1 does not list 3"),
    ("a.graph", "3 2\n2\n1 3\n\n\n", None, "3 neighbors are listed"),
    ("a.graph", "4 2\n\n4\n\n1 2 3\n", 5, "vertex 4 lists 1, but 1 does not list 4"),
    ("a.graph", "3 2\n2 2\n1 1\n\n", 2, "vertex 1 lists 2 twice"),
    ("a.graph", "3 2 1\n2 5\n1 5 3 6\n2 7\n", 3, "another weight"),
    ("a.graph", "3 2 1\n2 5\n1 5 3\n2 7\n", 3, "pairs of neighbor and weight"),
    ("a.graph", "3 2 1\n2 x\n1 5 3 6\n2 7\n", 2, "'x' is not a number"),
    ("a.graph", f"{10**15} 2\n2\n1\n", 1, "claims"),
    ("a.graph", f"3 {10**15}\n2\n1\n", 1, "claims"),
    # CSV
    ("a.csv", "a,b\n1,2\n3\n", 3, "1 fields where the header has 2"),
    ("a.csv", "a,b\n1,2,3\n", 2, "3 fields where the header has 2"),
    ("a.csv", "a,b\n" + "1,2\n" * 30 + "3,four\n1,2\n", 32, "'four' in column 'b' is not a number"),
    ("a.csv", "a,b\n" + "1,2\n" * 30 + "3,four\n5\n", 32, "'four' in column 'b' is not a number"),
    ("a.csv", "a,b\n" + "1,2\n" * 30 + "3\n4,five\n", 32, "1 fields where the header has 2"),
    ("a.csv", b"a,b\n1,x\n2,caf\xe9\n", 3, "not UTF-8"),
    ("a.csv", "a,b\n1,2\n3,4\r5,6\n", 3, "carriage return"),
    ("a.csv", 'a,b\n1,2\n3,"4\n5\n', 3, "a quoted field that is not closed"),
    ("a.csv", 'a,b\n1,2\n3,"4\n5"6\n', 3, "a quote in the middle"),
    ("a.csv", 'a,b\n1,2\n3,4"4"\n', 3, "a quote in the middle"),
    ("a.csv", "a,b\n1,2\n3,4\x00\n", 3, "byte 0"),
    ("a.csv", "\n\n", None, "blank"),
    ("a.csv", "a,b,a\n1,2,3\n", 1, "2 columns named 'a'"),
    ("a.csv", b"a,\xff\n1,2\n", 1, "UTF-8"),
    ("a.csv", 'a,"b\nc\n1,2\n', 1, "a quoted name that is not closed"),
    ("a.csv", "a,b\n" + "1," * 1_000_000, 2, "a line of more than"),
    ("a.csv", "a,b\r1,2\r3,4\r", 1, "carriage return"),
    # .npy
    ("a.npy", b"junk", None, "magic"),
    ("a.npy", npy(np.arange(10.0))[:-1], None, "80 bytes; 79 follow"),
    ("a.npy", npy(np.arange(10.0)) + b"x", None, "80 bytes; 81 follow"),
    ("a.npy", npy(np.arange(10.0))[:50], None, "header"),
    ("a.npy", npy(np.array([{}, None]), True), None, "pickled"),
    ("a.npy", pickle.dumps([1, 2]), None, "magic"),
    ("a.npy", npy(np.array(["text"])), None, "dtype <U4"),
    ("a.npy", npy(np.zeros(3, [("a", "f8")])), None, "dtype"),
    ("a.npy", fake_npy("(1000000000000000,)"), None, "8000000000000000 bytes"),
    ("a.npy", fake_npy("(-1,)"), None, "shape"),
    ("a.npy", fake_npy("__import__('os')"), None, "header"),
    ("a.npy", fake_npy("(3,").replace(b"}", b" "), None, "header"),
    # .npz
    ("a.npz", b"junk", None, "zip"),
    ("a.npz", npz(**csr())[:-30], None, "zip"),
    ("a.npz", npz(**csr())[400:], None, "zip"),
    ("a.npz", damaged_zip(), None, "damaged"),
    ("a.npz", npz(a=np.arange(3)), None, "neither a sparse matrix"),
    ("a.npz", npz(format=np.array(b"coo"), shape=np.array([3, 3]), data=np.ones(3)), None, "no member 'row'"),
    ("a.npz", npz(**csr(format=np.array(b"lil"))), None, "format 'lil'"),
    ("a.npz", npz(**csr(indices=np.array([1, 2, 0, 1, 2, 0, 1, 3]))), None, "indices[7] = 3 is not"),
    ("a.npz", npz(**csr(indices=np.array([1, 2, 0, 1, 2, 0, 1, -1]))), None, "indices[7] = -1"),
    ("a.npz", npz(**csr(indices=np.array([1.0] * 8))), None, "whole numbers"),
    ("a.npz", npz(**csr(indptr=np.array([0, 5, 2, 8]))), None, "decrease"),
    ("a.npz", npz(**csr(indptr=np.array([0, 2, 5, 7]))), None, "pointers"),
    ("a.npz", npz(**csr(indptr=np.array([1, 2, 5, 8]))), None, "pointers"),
    ("a.npz", npz(**csr(shape=np.array([4, 3]))), None, "pointers"),
    ("a.npz", npz(**csr(shape=np.array([10**15, 3]))), None, "claims shape"),
    ("a.npz", npz(**csr(shape=np.array([3]))), None, "1 axes"),
    ("a.npz", npz(**csr(data=np.array([1.0]))), None, "do not fit together"),
    ("a.npz", npz(**csr(data=np.array(["x"] * 8))), None, "dtype <U1"),
    ("a.npz", saved(matnb=np.array(99)), None, "version 99"),
    ("a.npz", saved(cuts_0=np.array([0, 3, 2])), None, "cuts"),
    ("a.npz", saved(cuts_0=np.array([0, 4])), None, "pointers"),
    ("a.npz", saved(cuts_0=np.array([0, 10**15])), None, "shape"),
    ("a.npz", saved(block_0_columns=np.array([0, 3])), None, "column"),
    ("a.npz", saved(block_0_columns=np.array([2, 0]), block_0_pointers=np.array([0, 2, 2, 2])), None,
     "order"),
    ("a.npz", saved(block_0_pointers=np.array([0, 2, 1, 2])), None, "decrease"),
    ("a.npz", saved(block_0_values=np.array([1, 2])), None, "values"),
    ("a.npz", saved(dtype=np.array(b"O")), None, "dtype"),
]  # fmt: skip
