"""What every estimator has of scikit-learn's conventions: its clone, pipelines and searches take ours."""

from __future__ import annotations

import copy
import functools
import inspect
import math
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

import numpy as np

from matnb.errors import (
    NotFittedError,
    OptionError,
    ShapeError,
    UnsupportedError,
    no_attribute,
    ways,
)
from matnb.lazy.array import DistArray
from matnb.lazy.array_like import ArrayLike
from matnb.lazy.creation import asarray
from matnb.lazy.evaluator import evaluator, shown
from matnb.lazy.foreign_names import asks
from matnb.lazy.tree import flatten, unflatten
from matnb.learn.arguments import checked, names_of, weights_from
from matnb.learn.named_arguments import NamedArguments, taking_same_arguments
from matnb.pictures.escaping import escaped, shortened
from matnb.pictures.quantities import shape_text
from matnb.tables.row_orders import check_rows_of

# What learns from one batch after the other instead.
_BY_BATCHES = ways(
    {
        "LogisticRegression": 'mn.learn.SGDClassifier("log_loss"), which has it',
        "LinearRegression Ridge Lasso ElasticNet": "mn.learn.SGDRegressor(), which has it",
        "KMeans": "mn.learn.MiniBatchKMeans(), which has it",
        "NMF": "mn.learn.MiniBatchNMF(), which has it",
        "PCA TruncatedSVD": "mn.learn.IncrementalPCA(), which has it",
    }
)


class Estimator(NamedArguments):
    """Something that learns from data by ``fit``.

    Arguments of the constructor are kept as they are, under their names, and looked at by ``fit``. What was
    learned has a name that ends in an underscore, and is there after ``fit`` has ended well; a ``fit`` that
    raises leaves what was learned before.
    """

    feature_names_in_: np.ndarray
    _kind = ""  # as scikit-learn's tags have it: "classifier", "regressor", "clusterer", "transformer"
    _takes_nonnegative = False  # whether X must have no number below 0
    _takes_counts = False  # whether y must have none
    _ways: Mapping[str, str] = MappingProxyType({})  # what to write instead of attributes that it has not

    def __init_subclass__(cls) -> None:
        """Have methods look at the names of columns, and the constructor take scikit-learn's arguments."""
        super().__init_subclass__()
        if "__init__" in vars(cls):
            cls.__init__ = taking_same_arguments(vars(cls)["__init__"], cls.__name__)  # type: ignore[method-assign]
        for name in _GIVEN_ROWS & vars(cls).keys():
            setattr(cls, name, _looking_at_names(vars(cls)[name]))

    @classmethod
    def _names(cls) -> tuple[str, ...]:
        return tuple(inspect.signature(cls).parameters)

    def set_params(self, **params: Any) -> Self:
        """Change arguments of the constructor; ``name__inner`` changes one of an argument's own.

        Raises
        ------
        OptionError
            For a name that there is not.
        """
        for name, value in self._changed(params).items():
            setattr(self, name, value)
        return self

    def _learn(self, **learned: Any) -> Self:
        """Compute the arrays among what was learned, all in one run, and keep everything, or nothing.

        Names are given without their last underscore.
        """
        arrays = [value.expression for value in learned.values() if isinstance(value, DistArray)]
        if arrays:
            evaluator().persist(arrays)
        for name, value in learned.items():
            setattr(self, f"{name}_", value)
        return self

    if not TYPE_CHECKING:  # else any name would have a type

        def __getattr__(self, name: str) -> Any:
            if name.startswith("_"):
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            if inspect.getattr_static(type(self), name, None) is not None:
                return object.__getattribute__(self, name)  # what a property raised, once more
            kind = type(self).__name__
            if name == "score" and self._ways.get(name) and asks("sklearn"):
                raise UnsupportedError(  # an AttributeError would be a no to whoever asks whether it has one
                    f"scikit-learn's searches split rows, here users, of which {kind} must see each: fit for "
                    "each of sklearn.model_selection.ParameterGrid(parameters), and compare "
                    f"{self._ways[name]}"
                )
            if name.endswith("_") and not self.__sklearn_is_fitted__():
                raise _not_fitted(f"{kind}.{name} before fit: call fit first")
            raise no_attribute(
                kind,
                name,
                lambda: {*dir(type(self)), *vars(self)},
                lambda: _BY_BATCHES.get(kind, "") if name == "partial_fit" else self._ways.get(name, ""),
            )

    def _check_fitted(self, called: str) -> None:
        if not self.__sklearn_is_fitted__():
            raise _not_fitted(f"{type(self).__name__}.{called} before fit: call fit first")

    # What is pickled are the values of arrays, which lie on the workers of whoever reads it.

    def __getstate__(self) -> dict[str, Any]:
        return self._mapped(vars(self), _PickledValue.of)

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(self._mapped(state, _PickledValue.array_of))

    def _mapped(self, state: dict[str, Any], fn: Callable[[Any], Any]) -> dict[str, Any]:
        # What was learned may be nested, as the parameters of a learner; arguments are as they were given.
        arguments = self._names()
        return {name: fn(one) if name in arguments else _nested(one, fn) for name, one in state.items()}

    def __copy__(self) -> Self:
        new = object.__new__(type(self))
        vars(new).update(vars(self))
        return new

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        new = object.__new__(type(self))
        vars(new).update(copy.deepcopy(vars(self), memo))
        return new

    def __sklearn_is_fitted__(self) -> bool:
        return any(name.endswith("_") and not name.startswith("_") for name in vars(self))

    def __sklearn_tags__(self) -> Any:
        # Only scikit-learn asks, so it is there.
        from sklearn.utils import (
            ClassifierTags,
            InputTags,
            RegressorTags,
            Tags,
            TargetTags,
            TransformerTags,
        )

        return Tags(
            estimator_type=self._kind or None,
            target_tags=TargetTags(
                required=self._kind in ("classifier", "regressor"), positive_only=self._takes_counts
            ),
            transformer_tags=TransformerTags() if hasattr(self, "transform") else None,
            classifier_tags=ClassifierTags() if self._kind == "classifier" else None,
            regressor_tags=RegressorTags() if self._kind == "regressor" else None,
            input_tags=InputTags(sparse=True, positive_only=self._takes_nonnegative),
        )

    def __repr__(self) -> str:
        parameters = inspect.signature(type(self)).parameters
        changed = [
            f"{name}={_written(getattr(self, name))}"
            for name, parameter in parameters.items()
            if not _is_same(getattr(self, name), parameter.default)
        ]
        return f"{type(self).__name__}({', '.join(changed)})"

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        return {"text/plain": repr(self), "text/html": estimator_html(self)}


_CELL = "padding:0 14px 0 0;border:none;background:transparent;text-align:left;vertical-align:top"
_LONGEST = 90  # letters of a value
_MOST_WRITTEN = 700  # in an estimator's repr, as in scikit-learn's


def estimator_html(estimator: Estimator) -> str:
    """Return an estimator as HTML: its arguments, those that were changed first, and what it learned.

    Nothing is computed: of what was learned small values are seen that are there, and else shapes.
    """
    known = inspect.signature(type(estimator)).parameters
    given = [(name, getattr(estimator, name), parameter.default) for name, parameter in known.items()]
    given.sort(key=lambda one: _is_same(one[1], one[2]))  # which keeps the order of others
    changed = sum(not _is_same(value, usual) for _, value, usual in given)
    arguments = [(name, _shortly(value), _is_same(value, usual)) for name, value, usual in given]
    learned = [
        (name, _shortly(value), False)
        for name, value in vars(estimator).items()
        if name.endswith("_") and not name.startswith("_")
    ]
    state = "fitted" if estimator.__sklearn_is_fitted__() else "not fitted"
    title = f"{len(given)} arguments, {changed} of them changed" if given else "no arguments"
    below = f"{_opened('learned', learned, True)}" if learned else ""
    return (
        f"<div><div><b>{escaped(type(estimator).__name__)}</b> "
        f'<span style="opacity:.7">{state}</span></div>{_opened(title, arguments, not learned)}{below}</div>'
    )


def _opened(title: str, rows: list[tuple[str, str, bool]], is_open: bool) -> str:
    cells = "".join(
        f'<tr style="background:transparent;opacity:{0.6 if is_faint else 1}">'
        f'<td style="{_CELL}">{escaped(name)}</td>'
        f'<td style="{_CELL}"><code style="white-space:pre-wrap">{escaped(text)}</code></td></tr>'
        for name, text, is_faint in rows
    )
    state = ' open="open"' if is_open else ""
    return (
        f'<details{state} style="margin:2px 0"><summary style="cursor:pointer">{escaped(title)}</summary>'
        f'<table style="border-collapse:collapse;border:none;margin:2px 0 2px 14px">{cells}</table></details>'
    )


def _shortly(value: Any) -> str:
    if isinstance(value, DistArray):
        seen = shown(value.expression).value
        kind = f"{shape_text(value.shape)} {value.dtype}"
        return f"{seen}  ({kind})" if seen and len(seen) <= _LONGEST and "\n" not in seen else kind
    if isinstance(value, np.ndarray) and value.size > 8:
        return f"{shape_text(value.shape)} {value.dtype}"
    return shortened(repr(value), _LONGEST)


def _written(value: Any) -> str:
    # As code where that is short, else with parts left out.
    if isinstance(value, DistArray):
        return f"<DistArray {shape_text(value.shape)} {value.dtype}>"
    if isinstance(value, np.ndarray):
        with np.printoptions(threshold=8, edgeitems=2, linewidth=_LONGEST, precision=4):
            return " ".join(repr(value).split())
    return shortened(repr(value), _MOST_WRITTEN)


def _not_fitted(message: str) -> NotFittedError:
    # Code that uses scikit-learn may catch its error of the same name.
    theirs = sys.modules.get("sklearn.exceptions")
    if theirs is None:
        return NotFittedError(message)
    return _joined_with(theirs.NotFittedError)(message)


@functools.cache
def _joined_with(theirs: type[Exception]) -> type[NotFittedError]:
    def reduced(error: NotFittedError) -> tuple[Callable[[str], NotFittedError], tuple[str]]:
        return _not_fitted, (str(error),)

    return type(
        "NotFittedError", (NotFittedError, theirs), {"__doc__": theirs.__doc__, "__reduce__": reduced}
    )


_GIVEN_ROWS = {
    "fit", "fit_transform", "partial_fit", "predict", "predict_proba", "predict_log_proba",
    "decision_function", "transform", "score_samples", "kneighbors",
}  # fmt: skip
_Method = TypeVar("_Method", bound=Callable[..., Any])


def _looking_at_names(method: _Method) -> _Method:
    @functools.wraps(method)
    def looking(self: Estimator, *args: Any, **options: Any) -> Any:
        names = names_of(args[0] if args else options.get("X"))
        is_new = method.__name__ in ("fit", "fit_transform")
        known = None if is_new else vars(self).get("feature_names_in_")
        if known is not None and names is not None and list(names) != list(known):
            raise OptionError(
                f"{type(self).__name__}.{method.__name__}: columns {', '.join(names)}; "
                f"it was fitted to {', '.join(known)}, in this order"
            )
        result = method(self, *args, **options)
        if names is not None and (is_new or method.__name__ == "partial_fit"):
            self.feature_names_in_ = names
        elif is_new:
            vars(self).pop("feature_names_in_", None)
        return result

    return cast(_Method, looking)


@dataclass(frozen=True)
class _PickledValue:
    """The value of an array, in a pickle."""

    value: Any

    @classmethod
    def of(cls, given: Any) -> Any:
        if not isinstance(given, DistArray):
            return given
        return cls(given.to_scipy() if given.sparse else np.asarray(given))

    @classmethod
    def array_of(cls, given: Any) -> Any:
        return asarray(given.value) if isinstance(given, cls) else given


def _nested(value: Any, fn: Callable[[Any], Any]) -> Any:
    leaves, nesting = flatten(value)
    return unflatten(nesting, [fn(one) for one in leaves])


def _is_same(value: object, default: object) -> bool:
    return value is default or (type(value) is type(default) and value == default)


class Classifier(Estimator):
    """An estimator of classes."""

    _kind = "classifier"
    classes_: np.ndarray

    def score(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike = None) -> float:
        """Return the share of rows, by weight, whose class ``predict`` finds.

        Parameters
        ----------
        X
            n x p, as for ``predict``.
        y
            The true classes, n labels.
        sample_weight
            n weights, by default 1.

        Raises
        ------
        ShapeError
            For y or weights of another number of rows.
        OptionError
            For weights that are negative, NaN or infinite, or all 0.
        """
        check_rows_of(X, y, f"{type(self).__name__}.score: y")
        predicted = self.predict(X)  # type: ignore[attr-defined]  # every classifier predicts
        as_array = asarray if isinstance(predicted, DistArray) else np.asarray
        hits = asarray(predicted == _shaped(as_array(y), predicted, self))
        weights = weights_from(sample_weight, hits, f"{type(self).__name__}.score")
        return float((hits * weights).sum() / weights.sum())


class Regressor(Estimator):
    """An estimator of numbers."""

    _kind = "regressor"

    def score(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike = None) -> float:
        """Return the coefficient of determination, R^2, of what ``predict`` finds, or its mean over targets.

        Parameters
        ----------
        X
            n x p, as for ``predict``.
        y
            The true values, of shape (n,) or n x targets.
        sample_weight
            n weights, by default 1.

        Of a single row it is NaN, since nothing spreads.

        Raises
        ------
        ShapeError
            For y or weights of another number of rows.
        OptionError
            For y that is NaN or infinite; for weights that are, are negative, or all 0.
        """
        name = f"{type(self).__name__}.score"
        check_rows_of(X, y, f"{name}: y")
        predicted = self.predict(X)  # type: ignore[attr-defined]  # every regressor predicts
        truth = checked(_shaped(asarray(y).astype(np.float64), predicted, self), name, "y")
        weights = weights_from(sample_weight, truth, name)
        if truth.shape[0] < 2:
            return math.nan
        weights = weights[:, None] if truth.ndim > 1 else weights
        left = (weights * (truth - predicted) ** 2).sum(axis=0)
        center = (weights * truth).sum(axis=0) / weights.sum()
        spread = (weights * (truth - center) ** 2).sum(axis=0)
        explained = 1 - left / np.where(spread > 0, spread, 1.0)
        return float(np.where(spread > 0, explained, np.where(left > 0, 0.0, 1.0)).mean())


class Transformer(Estimator):
    """An estimator that maps rows to others."""

    _kind = "transformer"
    _features_out = "components_"  # what has a row for each column of a result

    def get_feature_names_out(self, input_features: object = None) -> np.ndarray:
        """Return the names of the columns that ``transform`` makes: the class in lower case, and a number.

        Parameters
        ----------
        input_features
            Names of the columns of X, only compared with those of ``fit``; scikit-learn's pipelines pass
            them.

        Returns
        -------
        numpy.ndarray
            Texts as objects: ``pca0``, ``pca1``, ...

        Raises
        ------
        NotFittedError
            Before ``fit``.
        OptionError
            For other names than ``feature_names_in_``, or another number of them than there were features.
        """
        self._check_fitted("get_feature_names_out")
        name, known = type(self).__name__, vars(self).get("feature_names_in_")
        if input_features is not None:
            given = list(np.asarray(input_features, dtype=object))
            if known is not None and given != list(known):
                raise OptionError(
                    f"{name}.get_feature_names_out: input_features {', '.join(map(str, given))}; "
                    f"it was fitted to {', '.join(known)}, in this order"
                )
            expected = vars(self)["n_features_in_"]
            if len(given) != expected:
                raise OptionError(
                    f"{name}.get_feature_names_out: {len(given)} input_features; it was fitted to {expected}"
                )
        count = len(getattr(self, self._features_out))
        return np.array([f"{name.lower()}{number}" for number in range(count)], dtype=object)

    def set_output(self, *, transform: str | None = None) -> Self:
        """Accept "default", or None: what ``transform`` returns is a DistArray.

        Raises
        ------
        UnsupportedError
            For another, as "pandas" and "polars", which scikit-learn's transformers take.
        """
        if transform not in (None, "default"):
            raise UnsupportedError(
                f"{type(self).__name__}.set_output(transform={transform!r}): it transforms to DistArrays; "
                "make a data frame of np.asarray(result), with get_feature_names_out() for its columns"
            )
        return self

    def fit_transform(self, X: ArrayLike, y: ArrayLike = None, **options: Any) -> DistArray:
        """Fit to X and return its rows transformed."""
        fitted = self.fit(X, y, **options)  # type: ignore[attr-defined]  # every transformer is fitted
        return fitted.transform(X)


class Clusterer(Estimator):
    """An estimator of groups of rows."""

    _kind = "clusterer"
    labels_: DistArray

    def fit_predict(self, X: ArrayLike, y: ArrayLike = None, **options: Any) -> DistArray:
        """Fit to X and return the cluster of each row."""
        self.fit(X, y, **options)  # type: ignore[attr-defined]  # every clusterer is fitted
        return self.labels_


def _shaped(y: Any, predicted: Any, estimator: Estimator) -> Any:
    # One column counts as none: scores compare element with element, never each with all.
    if y.ndim == 2 and y.shape[1] == 1 and predicted.ndim == 1:
        y = y[:, 0]
    if y.ndim == 1 and predicted.shape[1:] == (1,):
        y = y[:, None]
    if y.shape != predicted.shape:
        name = type(estimator).__name__
        raise ShapeError(f"{name}.score: y of shape {y.shape} for predictions of shape {predicted.shape}")
    return y
