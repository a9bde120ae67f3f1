"""Every function of matplotlib that takes arrays draws of a DistArray what it draws of NumPy's."""

from __future__ import annotations

import inspect
import io
import itertools
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from fetched import counting
from matplotlib.axes import Axes
from matplotlib.contour import ContourSet
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.text import Text

import matnb as mn
from matnb.lazy import evaluator as hook
from matnb.lazy.element_reads import CHUNK_BYTES

pytestmark = [
    pytest.mark.session("two workers"),
    # Of matplotlib's own, with NumPy's arrays too.
    pytest.mark.filterwarnings("ignore::DeprecationWarning:matplotlib"),
    pytest.mark.filterwarnings("ignore::UserWarning:matplotlib"),
]
RANDOM = np.random.default_rng(0)
MOST_FETCHED = 30  # values that come here for one picture, however many elements it has
N = 300
X, Y, W = np.sort(RANDOM.normal(size=N)), RANDOM.normal(size=N), RANDOM.random(N) + 0.1
FEW = slice(0, 12)
x, y, w = X[FEW], Y[FEW], W[FEW]
GX, GY = np.arange(12.0), np.arange(10.0)
Z, U, V = RANDOM.random((10, 12)), RANDOM.normal(size=(10, 12)), RANDOM.normal(size=(10, 12))
ONE, TWO = np.array(1.0), np.array(2.0)

Draw = Callable[..., object]


@dataclass(frozen=True)
class Case:
    """A call of a function of Axes with arrays."""

    name: str
    arrays: tuple[np.ndarray, ...]
    draw: Draw

    def __str__(self) -> str:
        return self.name


def case(name: str, *arrays: np.ndarray, draw: Draw | None = None, **options: object) -> Case:
    return Case(name, arrays, draw or (lambda ax, *given: getattr(ax, name)(*given, **options)))


CASES = [
    case("plot", X, Y), case("plot", Y), case("plot", Z), case("plot", GX, Z.T),
    case("plot", X, Y, draw=lambda ax, a, b: ax.plot("u", "v", "r.", data={"u": a, "v": b})),
    case("plot", ONE, TWO, draw=lambda ax, a, b: ax.plot([0, 1], [a, b])),
    case("plot", np.where(Y > 0, Y, np.nan)), case("plot", np.zeros(0)),
    case("scatter", X, Y, W, draw=lambda ax, a, b, c: ax.scatter(a, b, c=c, s=c)), case("hist", Y),
    case("hist", Y, np.linspace(-2, 2, 9)), case("hist", Z),
    case("hist", Y, W, draw=lambda ax, a, b: ax.hist(a, weights=b, density=True, cumulative=True)),
    case("hist", X, Y, draw=lambda ax, a, b: ax.hist([a, b], stacked=True)),
    case("hist", RANDOM.integers(0, 9, N)), case("hist", Y.astype(np.float32), histtype="step"),
    case("hist2d", X, Y), case("hexbin", X, Y, gridsize=20), case("hexbin", X, Y, W, gridsize=9),
    case("bar", x, y), case("bar", y > 0, y), case("barh", x, y),
    case("bar_label", x, y, draw=lambda ax, a, b: ax.bar_label(ax.bar(a, b))),
    case("bar", x, y, w, draw=lambda ax, a, b, c: ax.bar(a, b, width=c, bottom=a, yerr=c)),
    case("grouped_bar", y, w, draw=lambda ax, a, b: ax.grouped_bar([a, b])), case("boxplot", Y),
    case("boxplot", Z), case("boxplot", X, Y, draw=lambda ax, a, b: ax.boxplot([a, b], notch=True)),
    case("violinplot", Y), case("violinplot", Z),
    case("violinplot", X, Y, draw=lambda ax, a, b: ax.violinplot([a, b])), case("errorbar", x, y, w),
    case("errorbar", x, y, np.stack([w, w]), w),
    case("errorbar", x, y, draw=lambda ax, a, b: ax.errorbar(a, b, yerr=abs(b), uplims=b > 0)),
    case("fill_between", X, Y, W), case("fill_betweenx", X, Y, W), case("fill", X, Y),
    case("fill_between", X, Y, W, draw=lambda ax, a, b, c: ax.fill_between(a, b, c, where=b > c)),
    case("stackplot", X, abs(Y), W), case("stackplot", GX, Z[:4], baseline="wiggle"), case("pie", w[:5]),
    case("pie", w[:5], w[5:10], draw=lambda ax, a, b: ax.pie(a, explode=b)), case("stem", x, y),
    case("stem", y), case("step", X, Y), case("stairs", y[:11], x), case("stairs", y, fill=True),
    case("eventplot", y), case("eventplot", y, x, draw=lambda ax, a, b: ax.eventplot([a, b])),
    case("eventplot", Z[:4]), case("ecdf", Y), case("ecdf", Y, W), case("imshow", Z),
    case("imshow", RANDOM.random((9, 8, 3))), case("imshow", Z > 0.5), case("matshow", Z),
    case("spy", Z * (Z > 0.8)), case("pcolor", GX, GY, Z), case("pcolormesh", Z),
    case("pcolormesh", GX, GY, Z), case("pcolorfast", Z), case("contour", Z), case("contour", GX, GY, Z),
    case("contourf", GX, GY, Z, levels=5), case("contour", Z, np.array([0.2, 0.5])),
    case("clabel", Z, draw=lambda ax, a: ax.clabel(ax.contour(a))), case("quiver", U, V),
    case("quiver", GX, GY, U, V), case("quiver", GX, GY, U, V, Z), case("barbs", GX, GY, U, V),
    case("streamplot", GX, GY, U, V, density=0.4), case("tricontour", X, Y, W),
    case("tricontourf", X, Y, W), case("tripcolor", X, Y, W), case("triplot", X, Y), case("specgram", Y),
    case("psd", Y), case("csd", Y, W), case("cohere", Y, W, NFFT=64), case("acorr", Y), case("xcorr", Y, W),
    case("magnitude_spectrum", Y), case("angle_spectrum", Y), case("phase_spectrum", Y),
    case("semilogx", W, Y), case("semilogy", X, W), case("loglog", W, W), case("vlines", x, y, w),
    case("hlines", x, y, w),
    case("broken_barh", np.array([[0.0, 1.0], [2.0, 3.0]]), draw=lambda ax, a: ax.broken_barh(a, (0, 1))),
    case("table", Z[:3, :3]), case("axhline", ONE), case("axvline", ONE), case("axvspan", ONE, TWO),
    case("axhspan", ONE, TWO), case("axline", np.array([0.0, 1.0]), np.array([1.0, 3.0])),
    case("set_xlim", ONE, TWO), case("set_ylim", ONE, TWO), case("set_xticks", GX),
    case("arrow", ONE, TWO, ONE, TWO),
    case("text", ONE, TWO, draw=lambda ax, a, b: ax.text(a, b, f"{a:.2f}")),
    case("annotate", np.array([1.0, 2.0]), draw=lambda ax, a: ax.annotate("here", a)),
]  # fmt: skip


# What is drawn: all numbers of all artists.

_GETTERS = (
    "get_xydata", "get_array", "get_offsets", "get_paths", "get_path", "get_bbox", "get_xy", "get_sizes",
    "get_linewidths", "get_facecolor", "get_edgecolor", "get_text", "get_position",
)  # fmt: skip


def _drawn(draw: Draw, arrays: tuple[Any, ...]) -> list[tuple[str, Any]]:
    figure = Figure(figsize=(3, 2), dpi=50)
    ax = figure.subplots()
    draw(ax, *arrays)
    figure.savefig(io.BytesIO(), format="raw")
    return [
        (f"{type(artist).__name__}.{getter}", _numbers(getattr(artist, getter)()))
        for artist in ax.findobj()
        if artist is not ax
        for getter in _GETTERS
        if hasattr(artist, getter) and not (getter == "get_text" and isinstance(artist, ContourSet))
    ]


def _numbers(value: Any) -> Any:
    if hasattr(value, "vertices"):
        points = np.array(value.vertices, float)
        points[np.isnan(points).any(axis=1)] = np.nan  # half a point is none
        return points
    if isinstance(value, list | tuple):
        return [_numbers(one) for one in value]
    if isinstance(value, Text):
        return value.get_text()
    if value is None or isinstance(value, str):
        return value
    return np.ma.filled(np.ma.asarray(np.asanyarray(value), dtype=float), -1e9)


def _assert_same(found: list[tuple[str, Any]], expected: list[tuple[str, Any]]) -> None:
    assert [name for name, _ in found] == [name for name, _ in expected]
    for (name, one), (_, other) in zip(found, expected, strict=True):
        _assert_close(one, other, name)


def _assert_close(found: Any, expected: Any, name: str) -> None:
    assert type(found) is type(expected), name
    if isinstance(expected, list):
        assert len(found) == len(expected), name
        for one, other in zip(found, expected, strict=True):
            _assert_close(one, other, name)
    elif isinstance(expected, np.ndarray):
        # matplotlib sums weights by np.cumsum, whose last bit is another on the workers.
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12, err_msg=name)
    else:
        assert found == expected, name


def _given(values: np.ndarray) -> mn.DistArray:
    # Not what a user gave, but something to compute, in several blocks.
    made: Any = mn.asarray(values, blocks=2 if values.ndim and len(values) > 1 else None)
    return made & True if values.dtype.kind == "b" else made * 1  # type: ignore[no-any-return]


@pytest.mark.parametrize("one", CASES, ids=str)
def test_of_an_array_is_drawn_what_is_drawn_of_numpys(one: Case) -> None:
    expected = _drawn(one.draw, one.arrays)
    with counting() as fetched:
        found = _drawn(one.draw, tuple(map(_given, one.arrays)))
    _assert_same(found, expected)
    assert len(fetched.sizes) <= MOST_FETCHED


def test_every_function_of_axes_that_takes_data_is_among_them() -> None:
    takes = {
        name
        for name, method in vars(Axes).items()
        if callable(method) and not name.startswith("_") and "data" in inspect.signature(method).parameters
    }
    assert takes > {"plot", "hist", "streamplot"}
    assert takes <= {one.name for one in CASES}


def test_how_often_values_come_does_not_grow_with_them() -> None:
    counts = []
    for size in (200, 20_000):
        with counting() as fetched:
            ax = Figure().subplots()
            one, other = mn.arange(float(size)) * 2, mn.arange(float(size)) + 1
            (
                ax.hist(one),
                ax.plot(one, other),
                ax.scatter(one, other),
                ax.boxplot(one),
                ax.fill_between(one, other),
            )
            ax.bar(one[:50], other[:50]), ax.step(one, other), ax.ecdf(one), ax.eventplot(one[:50])
        counts.append(len(fetched.sizes))
    assert counts[1] <= counts[0] + 10  # chunks of more than one


def test_a_sparse_array_is_drawn_sparse() -> None:
    matrix = sp.random_array((30_000, 40_000), density=1e-5, format="csr", rng=1)  # 9.6 GB if it were dense
    with counting() as fetched:
        ax = Figure().subplots()
        ax.spy(mn.asarray(matrix) * 2, markersize=1)
    assert fetched.num_bytes < 1e6
    expected = Figure().subplots()
    expected.spy(matrix * 2, markersize=1)
    for found, other in zip(ax.lines, expected.lines, strict=True):
        assert sorted(map(tuple, found.get_xydata())) == sorted(map(tuple, other.get_xydata()))
    small = np.triu(np.arange(12.0).reshape(3, 4))
    assert isinstance(Figure().subplots().spy(mn.asarray(small)), AxesImage)  # as of NumPy's, no markers


def test_images_and_bars_of_sparse_products_are_drawn() -> None:
    A = mn.asarray(sp.csr_array(np.triu(np.arange(1.0, 26).reshape(5, 5))))
    expected = np.triu(np.arange(1.0, 26).reshape(5, 5))
    _assert_same(_drawn(lambda ax, a: ax.imshow(a), (A,)), _drawn(lambda ax, a: ax.imshow(a), (expected,)))
    _assert_same(
        _drawn(lambda ax, a: ax.bar(np.arange(5), a), (A.sum(axis=0),)),
        _drawn(lambda ax, a: ax.bar(np.arange(5), a), (expected.sum(axis=0),)),
    )


# Columns of tables, of each kind

TIMES = np.datetime64("2024-03-01T12:00") + np.arange(12).astype("m8[h]") * 7
ZONES = np.array(["b", "a", "c", "b"] * 3, object)
PEOPLE = [1, None, 3, 4, 2, 2, None, 1, 5, 1, 2, 3]
COLUMNS: dict[str, tuple[Any, np.ndarray]] = {
    "fare": (w, w),
    "people": (PEOPLE, np.array([np.nan if one is None else one for one in PEOPLE])),
    "paid": (w > 0.5, w > 0.5),
    "zone": (list(ZONES), ZONES),
    "when": (TIMES.astype("M8[s]"), TIMES),
}
OF_COLUMNS: dict[str, Draw] = {
    "plot": lambda ax, a, b: ax.plot(a, b),
    "scatter": lambda ax, a, b: ax.scatter(a, b),
    "step": lambda ax, a, b: ax.step(a, b),
    "bar": lambda ax, a, b: ax.bar(a, b),
    "barh": lambda ax, a, b: ax.barh(a, b),
    "stem": lambda ax, a, b: ax.stem(a, b),
    "errorbar": lambda ax, a, b: ax.errorbar(a, b, yerr=b),
    "fill_between": lambda ax, a, b: ax.fill_between(a, b),
    "hist": lambda ax, a, b: ax.hist(a),
    "vlines": lambda ax, a, b: ax.vlines(a, 0, b),
}


@pytest.mark.parametrize("name", COLUMNS)
@pytest.mark.parametrize("function", OF_COLUMNS)
def test_of_a_column_is_drawn_what_is_drawn_of_numpys(function: str, name: str) -> None:
    table = mn.table({key: given for key, (given, _) in COLUMNS.items()})
    plain = COLUMNS[name][1]
    draw = OF_COLUMNS[function]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of what NumPy's arrays of objects give, too
        try:
            expected = _drawn(draw, (plain, w))
        except (TypeError, ValueError) as error:
            with pytest.raises(type(error)):
                _drawn(draw, (table[name], table["fare"]))
            return
        with counting() as fetched:
            found = _drawn(draw, (table[name], table["fare"]))
    _assert_same(found, expected)
    assert len(fetched.sizes) <= 2 * MOST_FETCHED


# Python's own loops, on which other libraries draw

LOOPS: dict[str, Callable[[Any], Any]] = {
    "for": lambda one: [value for value in one],  # noqa: C416  what is tried
    "list": list,
    "max": max,
    "min": min,
    "sum": sum,
    "sorted": sorted,
    "reversed": lambda one: list(reversed(one)),
    "enumerate": lambda one: list(enumerate(one)),
    "zip": lambda one: list(zip(one, one, strict=True)),
    "in": lambda one: one[3] in one and -1 not in one,
    "set": set,
    "map": lambda one: [value * 2 for value in one],
    "index": lambda one: [float(one[place]) for place in range(len(one))],
    "index back": lambda one: [float(one[-place]) for place in range(1, len(one))],
    "tolist": lambda one: one.tolist(),
    "array of a list": lambda one: np.array(list(one)).tolist(),
}


WITH_AN_ORDER = ("max", "min", "sorted", "index", "index back")  # or by floats, which complex numbers are not


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        (name, kind)
        for name in LOOPS
        for kind in ("float64", "int32", "bool", "complex128")
        if kind != "complex128" or name not in WITH_AN_ORDER
    ],
)
def test_loops_over_elements_give_numpys_numbers_in_few_runs(name: str, kind: str) -> None:
    values = (RANDOM.permutation(5000) % 4001).astype(kind)
    array = _given(values).persist()
    loop = LOOPS[name]
    with counting() as fetched:
        found = loop(array)
    expected = loop(values)
    assert found == expected
    if name in ("for", "list"):
        assert [type(one) for one in found] == [type(one) for one in expected]
    assert len(fetched.sizes) <= 4
    assert fetched.largest <= CHUNK_BYTES


READS = {
    "array of elements": lambda x: np.array([x[1], x[2], x[7], x[6]]),
    "array of one": lambda x: [np.asarray(x[place], float) for place in range(9)],
    "array of rows": lambda x: np.array([x.reshape(-1, 5)[place] for place in range(9)]),
    "array of a column": lambda x: np.array([x.reshape(-1, 5)[place, 3] for place in range(9)]),
    "stacked": lambda x: np.stack([x[3], x[4], x[5]]),
    "assigned": lambda x: _assigned(np.zeros(4), [x[0], x[1], x[2], x[3]]),
    "range": lambda x: np.linspace(x[4], x[5], 3),
}


def _assigned(array: np.ndarray, values: object) -> np.ndarray:
    array[:] = values
    return array


@pytest.mark.parametrize("read", READS.values(), ids=READS)
def test_elements_that_follow_each_other_are_arrays_without_axes(read: Callable[[Any], Any]) -> None:
    array = _given(Y).persist()
    list(itertools.islice(array, 3))
    for _ in range(2):
        np.testing.assert_array_equal(read(array), read(Y), strict=True)


def test_lines_are_drawn_at_elements_that_follow_each_other() -> None:
    def lines(values: Any) -> list[np.ndarray]:
        axes = Figure().add_subplot()
        drawn = [axes.axhline(values[3]), axes.axvline(values[4]), *axes.plot(values[5], values[6], "o")]
        return [np.asarray(one.get_xydata(), float) for one in drawn]

    np.testing.assert_array_equal(np.concatenate(lines(_given(Y).persist())), np.concatenate(lines(Y)))


def _steps(x: Any, see: Callable[[Any], Any], count: int) -> list[Any]:
    seen = []
    for _ in range(count):
        x = x + 0.1 * (np.roll(x, 1) - 2 * x + np.roll(x, -1))
        seen.append(see(x))
    return seen


@pytest.mark.parametrize("see", [np.sum, lambda x: x[3], lambda x: x, lambda x: x[1:3].max() - x.mean()])
def test_what_each_step_of_a_loop_gave_is_made_in_few_runs(see: Callable[[Any], Any]) -> None:
    expected = np.array(_steps(Y, see, 70))
    seen = _steps(_given(Y), see, 70)
    evaluator, made = hook.evaluator(), []

    class Counting:
        def __getattr__(self, name: str) -> Any:
            return getattr(evaluator, name)

        def persist(self, nodes: Any) -> None:
            made.append(len(nodes))
            evaluator.persist(nodes)

    hook.set_evaluator(Counting())
    try:
        found = np.array(seen)
    finally:
        hook.set_evaluator(evaluator)
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    assert made == [4, 16, 49]


def test_unlike_values_and_those_without_a_common_past_are_made_when_they_are_asked_for() -> None:
    array = _given(Y) * 2
    others = [(_given(Y) * (3 + place)).sum() for place in range(5)]
    later = [array + place for place in range(5)]
    for one in (others[0], others[1], later[0], array.sum(), later[1]):
        one.compute()
    assert [one.layout is not None for one in others[2:] + later[3:]] == [False] * 5


def test_a_loop_over_a_large_array_reads_as_far_as_it_goes() -> None:
    array = mn.arange(3e6) * 1
    with counting() as fetched:
        assert next(itertools.dropwhile(lambda one: one < 100, array)) == 100
    assert fetched.num_bytes == CHUNK_BYTES
    with counting() as fetched:
        assert sum(1 for _ in array) == 3_000_000
    assert len(fetched.sizes) <= 8
    array.persist()
    with counting() as fetched:
        assert sum(1 for _ in array) == 3_000_000
    assert len(fetched.sizes) <= 8


def test_a_loop_over_rows_reads_them_together_and_only_where_their_values_are_asked_for() -> None:
    values = RANDOM.random((400, 30))
    array = mn.asarray(values) * 1
    with counting() as fetched:
        rows = list(array)
        first, second = array[:2]
        assert isinstance(first + second, mn.DistArray)
        assert not fetched.sizes
        np.testing.assert_array_equal(np.array([row.compute() for row in rows]), values)
        assert [a for a, *_ in array] == values[:, 0].tolist()
    assert len(fetched.sizes) <= 12
    sparse = sp.random_array((200, 50), density=0.1, format="csr", rng=2)
    for row, expected in zip(mn.asarray(sparse), sparse.toarray(), strict=True):
        np.testing.assert_array_equal(row, expected)


def test_in_a_loops_body_rows_and_elements_stay_expressions() -> None:
    def step(state: mn.DistArray) -> mn.DistArray:
        a, b = state
        return mn.stack([b, a + b])  # type: ignore[no-any-return]

    found, _ = mn.iterate(step, mn.asarray([0.0, 1.0]), max_iterations=9)
    assert found.tolist() == [34.0, 55.0]


def test_elements_of_what_changes_in_a_loop_are_the_new_ones() -> None:
    x = mn.arange(50.0) * 1
    plain = np.arange(50.0)
    for place in range(1, 12):
        x[place] = x[place - 1] + 2
        plain[place] = plain[place - 1] + 2
        assert float(x[place]) == plain[place]
    assert [float(x[place]) for place in range(50)] == plain.tolist()


# Conversions by the names of pandas and SciPy


def test_conversions_are_those_of_pandas_and_scipy() -> None:
    dense = np.triu(np.arange(1.0, 13).reshape(3, 4))
    theirs, A, D = sp.csr_array(dense), mn.asarray(sp.csr_array(dense)) * 1, mn.asarray(dense) * 1
    for name in ("tocsr", "tocsc", "tocoo"):
        found, expected = getattr(A, name)(), getattr(theirs, name)()
        assert type(found) is type(expected)
        assert (found != expected).nnz == 0
        assert not hasattr(D, name), "by which libraries tell sparse arrays"
        with pytest.raises(AttributeError, match=r"scipy\.sparse\.csr_array\(x\.compute\(\)\)"):
            getattr(D, name)
    for one in (A, D):
        for found in (one.to_numpy(), one.toarray(), one.todense(), np.asarray(one)):
            assert type(found) is np.ndarray
            np.testing.assert_array_equal(found, dense)
        assert one.toarray(order="F").flags.f_contiguous
        out = np.empty((3, 4))
        assert one.toarray(out=out) is out
        np.testing.assert_array_equal(out, dense)
        assert one.to_numpy(dtype="int32").dtype == np.int32
    assert "tocsr" in dir(mn.DistArray)
    assert mn.DistArray.tocsr.__doc__
