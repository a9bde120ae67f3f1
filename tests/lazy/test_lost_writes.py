"""A change of a part that nothing refers to is told; NumPy's parts are views and say what was meant."""

from __future__ import annotations

import subprocess
import sys
import warnings

import numpy as np
import pytest
import scipy.ndimage

import matnb as mn
from matnb.errors import DTypeError, LostWriteWarning, UnsupportedError

pytestmark = pytest.mark.session("interpreter")
LOST = [
    "q[1][2] = 4",
    "q[1][2] += 4",
    "q.T[0] = 7",
    "q[...][0] = 1",
    "q.ravel()[:3] = 1",
    "q.reshape(-1)[0] = 2",
    "q.reshape(2, 6)[0].fill(8)",
    "q[1:3].fill(8)",
    "q[2].sort()",
    "q[:, 1].partition(1)",
    "np.add(x, 1, out=q[1])",
    "np.sum(q, axis=0, out=q[0])",
    "x.clip(0, 1, out=q[1])",
    "np.copyto(q[0], 3)",
    "np.put(q[0], [1], 5)",
    "np.putmask(q[0], q[0] > 1, 4)",
    "np.fill_diagonal(q[1:, 1:], 5)",
    "np.add.at(q[0], [1, 2], 1)",
    "c.imag[:] = 0",
    "c.real[0] = 9",
    "for row in q: row[:] = 0",
    "for row in q:\n    row -= row.mean()",
    "for i, row in enumerate(q):\n    row[0] = i",
    "for row, other in zip(q, 2 * q):\n    row += other",
    "def f():\n    q[0][1] = 9\nf()",
    "[row.fill(1) for row in q]",
    "c = q[1:-1]\nc += 1",
    "inner = q[1:, 1:]\ninner[...] = 0\ndel inner",
    "def relax(q):\n    c = q[1:-1, 1:-1]\n    c += 0.5 * c\nrelax(q)",
    "left, right = np.split(q, 2, axis=1)\nleft[:] = 7",
    "re, im = c.real, c.imag\nre *= 2",
    "t = q.T\nt[0] = 9",
    "d = q[1:][0]\nd.sort()",
    "q += 0\nflat = q.reshape(-1)\nflat[::7] = 1",
    "y = q[:]\ny -= 1",
    "u = mn.ones((6, 6))\nuf = u.reshape(-1)\nuf[::5] = 0\nlate = u",
    "u = mn.ones((6, 6))\nuf = np.ravel(u)\nuf[0] = 0\nlate = u",
    "u = mn.asarray(np.ones((6, 6)))\ns = u.squeeze()\ns[0] = 0\nlate = u",
    "u = mn.ones((24, 6))\nM = u.reshape(2, 12, 6)\nM -= M.mean(axis=0)\nlate = u",
    "u = mn.ones(6)\nM = np.atleast_2d(u)\nM[0, 1] = 3\nlate = u",
    "y = q[...]\ny[0] = 3",
    "def f(q):\n    q = q[:, :]\n    q[0] = 3\nf(q)",
]
KEPT = [
    "q[1, 2] = 4",
    "q[1] += 4",
    "q += 1",
    "x.sort()",
    "np.add(x, 1, out=x)",
    "r = q[1].copy()\nr[0] = 1\nseen = r.sum()",
    "y = np.add(x, 1, out=q[1].copy())\nseen = y.sum()",
    "def f(y):\n    y[0] = 1\n    return y\nseen = f(q.copy()).sum()",
    "def f(y):\n    y[0] = 1\n    return y.sum()\nseen = f(q.copy())",
    "rows = []\nfor row in q:\n    row = row.copy()\n    row[0] = 1\n    rows.append(row)\nseen = sum(rows)",
    "q[1:, 1:] *= 2",
    "q[:] -= 1",
    "q[...] = 3",
    "y = q.reshape(4, 3, order='F')\ny[0] = 3\nseen = y",
    "y = (q + 0).reshape(-1)\ny[0] = 3\nseen = y",
    "z = mn.ones((2, 3))\ny = mn.ones((2, 3)).reshape(-1)\ny[0] = 3\nseen = y",
    "z = mn.ones((2, 3))\ny = z.reshape(-1)\nz += 1\nseen = z",
    "y = q[:]\ny = y + 1\nseen = y",
    "y = q[:].copy()\ny -= 1\nseen = y",
    "c.real *= 2",
    "y = q[1:].astype('f4')\ny[0] = 1\nseen = y",
    "y = q[:, 1:].flatten()\ny[0] = 1\nseen = y",
    "y = np.copy(q[1])\ny[0] = 1\nseen = y",
    "y = np.array(q[1])\ny[0] = 1\nseen = y",
    "y = q[[0, 1]]\ny[0] = 1\nseen = y",
    "y = q[q > 3]\ny[0] = 1\nseen = y",
    "y = q[1:] + 0\ny[0] = 1\nseen = y",
    "y = np.take(q, 1, axis=0)\ny[0] = 1\nseen = y",
    "y = np.concatenate([q[1]])\ny[0] = 1\nseen = y",
    "y = np.stack([q[1]])\ny[0] = 1\nseen = y",
    "y = np.tile(q[1], 1)\ny[0] = 1\nseen = y",
    "q = q[1:]\nq[0] = 1",
    "y = (2 * q)[1:]\ny[0] = 1\nseen = y",
    "seen = 0\nfor y in map(lambda i: q.copy(), range(3)):\n    y[0] = 1\n    seen += y.sum()",
    "seen = 0\nfor i in range(3):\n    y = q.copy()\n    y[0] = i\n    seen += y.sum()",
    "x[0] = 1; x = -x; seen = x",
    "held = [q.copy()]\nheld[0][0] = 1\nseen = held[0]",
    "c.imag = 0",
    "c.real = [1, 2, 3]",
    "x.real = 2",
]  # fmt: skip


def after(code: str, library: object) -> tuple[list[np.ndarray], int]:
    """Run a user's code on arrays of a library; what they are then, and the warnings' number."""
    arrays = {"q": np.arange(12.0)[::-1].reshape(3, 4), "x": np.arange(4.0)[::-1], "c": np.arange(3) + 2j}
    names = {"np": np, "mn": library} | {name: library.array(one) for name, one in arrays.items()}  # type: ignore[attr-defined]
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        exec(compile(code, "a cell", "exec"), names)
    told = [one for one in found if issubclass(one.category, LostWriteWarning)]
    assert {one.filename for one in told} <= {"a cell"}, "it is told at the user's line"
    seen = [np.asarray(names[name]) for name in (*arrays, "seen", "late") if name in names]
    names.clear()  # functions are in circles with what they see
    return seen, len(told)


@pytest.mark.parametrize("code", LOST)
def test_a_change_that_nobody_sees_is_told(code: str) -> None:
    ours, told = after(code, mn)
    assert told
    theirs, _ = after(code, np)
    assert any(not np.array_equal(one, other) for one, other in zip(ours, theirs, strict=True)), (
        "NumPy's is seen"
    )


@pytest.mark.parametrize("code", KEPT)
def test_a_change_that_is_seen_is_not_told(code: str) -> None:
    ours, told = after(code, mn)
    assert not told
    theirs, _ = after(code, np)
    for one, other in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(one, other)


def test_real_numbers_have_no_imaginary_part_to_set() -> None:
    x = mn.zeros(3)
    with pytest.raises(DTypeError, match=r"x \+ 1j"):
        x.imag = 1


def test_handles_that_live_until_the_end_are_silent() -> None:
    code = "import matnb as mn; x = mn.ones(4); x[0] = 2; rows = list(mn.ones((2, 2))); rows[0][0] = 1"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr == ""


def test_scipy_does_not_write_into_a_copy() -> None:
    x = mn.asarray(np.random.default_rng(0).random((6, 6)))
    with pytest.raises(UnsupportedError, match="output=x"):
        scipy.ndimage.gaussian_filter(x, 1, output=np.zeros_like(x))
    into = np.zeros((6, 6))
    scipy.ndimage.gaussian_filter(x, 1, output=into)
    np.testing.assert_array_equal(into, scipy.ndimage.gaussian_filter(np.asarray(x), 1))


def test_a_part_less_an_array_of_numpys_is_given_back() -> None:
    f = mn.asarray(np.ones((4, 3, 5)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        f[:, 1, 2] -= np.arange(4.0)
    assert f[:, 1, 2].tolist() == [1, 0, -1, -2]
