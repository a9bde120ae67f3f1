"""The contract of an estimator: scikit-learn's conventions, and the same results however rows are cut."""

from __future__ import annotations

import copy
import inspect
import pickle
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from matnb.errors import MatnbError
from matnb.lazy.array import DistArray
from matnb.lazy.creation import asarray
from matnb.session import active_session, start, stop
from matnb.testing.expectations import cut_anywhere, expect, expect_error

_APPLIED = ("predict", "transform", "predict_proba", "decision_function", "score_samples")


class EstimatorTests:
    """Tests of an estimator; a subclass gives ``make`` and ``data``.

    They run in the session that there is, or in one with two workers in the tests' process. A session with
    ``engine="interpret"`` has no blocks, so that there nothing can depend on cuts.

    Attributes
    ----------
    tolerance
        Relative and absolute, of what is learned from rows that are cut in other ways.
    """

    tolerance: float = 1e-9

    def make(self) -> Any:
        """Return an estimator that is not fitted; with a seed where it draws."""
        raise NotImplementedError(f"{type(self).__name__}: write make(self), an estimator")

    def data(self) -> tuple[Any, Any]:
        """Return X and y as NumPy's arrays of some dozen rows; y is None where nothing is taught."""
        raise NotImplementedError(f"{type(self).__name__}: write data(self), returning X and y")

    def test_fit_returns_the_estimator_and_keeps_its_arguments(self) -> None:
        """``fit`` returns self, and sets attributes alone whose names end in an underscore."""
        with _session():
            model = self.make()
            before = dict(vars(model))
            expect(model.fit(*self.data()) is model, f"{_name(model)}.fit returns something else than self")
            changed = [
                name for name, value in vars(model).items() if name not in before or before[name] is not value
            ]
            wrong = [one for one in changed if not one.endswith("_") and not one.startswith("_")]
            expect(
                not wrong,
                f"{_name(model)}.fit sets {', '.join(wrong)}: what is learned ends in an underscore",
            )
            expect(changed, f"{_name(model)}.fit learns nothing")

    def test_the_constructor_keeps_what_it_is_given(self) -> None:
        """Each argument of the constructor is an attribute of its name, as it was given."""
        model = self.make()
        named = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY
        names = [name for name, one in inspect.signature(type(model)).parameters.items() if one.kind in named]
        missing = [name for name in names if name not in vars(model)]
        expect(not missing, f"{_name(model)} does not keep {', '.join(missing)} under the argument's name")
        given = {name: getattr(model, name) for name in names}
        again = type(model)(**given)
        changed = [name for name in names if getattr(again, name) is not given[name]]
        expect(
            not changed, f"{_name(model)} changes {', '.join(changed)} in its constructor: let fit look at it"
        )

    def test_fitting_again_gives_the_same(self) -> None:
        """A second fit, and a new estimator, learn the same, bit for bit."""
        with _session():
            model = self.make().fit(*self.data())
            first = _learned(model)
            for again in (model.fit(*self.data()), self.make().fit(*self.data())):
                _expect_learned(_learned(again), first, 0.0, f"{_name(model)} fitted again")

    def test_any_cuts_teach_the_same(self) -> None:
        """DistArrays, cut in any way, teach what NumPy's arrays do."""
        X, y = self.data()
        with _session():
            first = _learned(self.make().fit(X, y))
            for seed in range(3):
                given = cut_anywhere([X] if y is None else [X, y], seed)
                model = self.make().fit(given[0], given[1] if y is not None else None)
                _expect_learned(_learned(model), first, self.tolerance, f"{_name(model)}, cuts {seed}")

    def test_data_is_not_changed(self) -> None:
        """X and y are as before."""
        X, y = self.data()
        before = copy.deepcopy((X, y))
        with _session():
            model = self.make().fit(X, y)
            for name in _applied(model):
                np.asarray(getattr(model, name)(X))
        for one, other in zip((X, y), before, strict=True):
            np.testing.assert_array_equal(one, other, err_msg=f"{_name(model)} changes its data")

    def test_results_have_a_row_for_each_row(self) -> None:
        """What is applied to rows gives DistArrays, with a row for each, whatever the cuts and the order."""
        X, y = self.data()
        with _session():
            model = self.make().fit(X, y)
            for name in _applied(model):
                where = f"{_name(model)}.{name}"
                found = getattr(model, name)(asarray(X))
                expect(
                    isinstance(found, DistArray), f"{where} returns {type(found).__name__}, not a DistArray"
                )
                expect(found.shape[0] == len(X), f"{where} returns {found.shape[0]} rows for {len(X)}")
                whole, turned = np.asarray(found), np.asarray(getattr(model, name)(X[::-1].copy()))
                _expect_close(turned[::-1], whole, self.tolerance, f"{where} of rows in another order")
                for handle in (cut_anywhere([X], seed)[0] for seed in (1, 2)):
                    cut = np.asarray(getattr(model, name)(handle))
                    _expect_close(cut, whole, self.tolerance, f"{where} of rows that are cut")

    def test_other_columns_are_refused(self) -> None:
        """Rows with another number of columns than those of ``fit`` are an error."""
        X, y = self.data()
        with _session():
            model = self.make().fit(X, y)
            for name in _applied(model):
                where = f"{_name(model)}.{name} takes {X.shape[1] + 1} columns where fit had {X.shape[1]}"
                with expect_error((MatnbError, ValueError), f"{where}: refuse them"):
                    np.asarray(getattr(model, name)(np.column_stack([X, X[:, :1]])))

    def test_before_fit_it_says_so(self) -> None:
        """Before ``fit`` there is an AttributeError or ValueError; scikit-learn's NotFittedError is both."""
        X, _ = self.data()
        with _session():
            for name in _applied(self.make()):
                where = f"{_name(self.make())}.{name} returns something before fit"
                with expect_error((AttributeError, ValueError), where):
                    np.asarray(getattr(self.make(), name)(X))

    def test_it_is_pickled_with_what_it_learned(self) -> None:
        """A pickled estimator has learned the same."""
        with _session():
            model = self.make().fit(*self.data())
            again = pickle.loads(pickle.dumps(model))
            _expect_learned(_learned(again), _learned(model), 0.0, f"{_name(model)}, pickled")


@contextmanager
def _session() -> Iterator[None]:
    if active_session() is not None:
        yield
        return
    start(workers=2, threads=1)
    try:
        yield
    finally:
        stop()


def _name(model: object) -> str:
    return type(model).__name__


def _applied(model: object) -> list[str]:
    return [name for name in _APPLIED if hasattr(type(model), name) and hasattr(model, name)]


def _learned(model: object) -> dict[str, Any]:
    names = [name for name in vars(model) if name.endswith("_") and not name.startswith("_")]
    return {name: getattr(model, name) for name in names}


def _expect_learned(found: dict[str, Any], wanted: dict[str, Any], tolerance: float, where: str) -> None:
    expect(found.keys() == wanted.keys(), f"{where}: learns {', '.join(found)}, not {', '.join(wanted)}")
    for name, value in wanted.items():
        if isinstance(value, DistArray | np.ndarray | np.generic | int | float):
            _expect_close(np.asarray(found[name]), np.asarray(value), tolerance, f"{where}: {name}")


def _expect_close(found: Any, wanted: Any, tolerance: float, where: str) -> None:
    if tolerance and wanted.dtype.kind in "fc":
        np.testing.assert_allclose(found, wanted, rtol=tolerance, atol=tolerance, err_msg=where)
    else:
        np.testing.assert_array_equal(found, wanted, err_msg=where)
