"""Arguments by their names: also of what is nested, and scikit-learn's that mean what is done anyway."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, replace
from typing import Any, NamedTuple, Self, TypeVar, cast

from matnb.errors import OptionError, suggestion


class NamedArguments:
    """What was made with arguments, which are its attributes of the same names."""

    def _names(self) -> Iterable[str]:
        raise NotImplementedError

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the arguments of the constructor by their names.

        Parameters
        ----------
        deep
            Also those of arguments that have arguments, as ``name__inner``.
        """
        found: dict[str, Any] = {}
        for name in self._names():
            found[name] = value = getattr(self, name)
            if deep and hasattr(value, "get_params") and not isinstance(value, type):
                found |= {f"{name}__{inner}": one for inner, one in value.get_params().items()}
        return found

    def _changed(self, params: Mapping[str, Any]) -> dict[str, Any]:
        # The arguments that are to be others, with what is nested in them.
        changed: dict[str, Any] = {}
        inner: dict[str, dict[str, Any]] = {}
        for name, value in params.items():
            first, is_nested, rest = name.partition("__")
            if first not in self._names():
                near = suggestion(first, tuple(self._names()))
                raise OptionError(f"{type(self).__name__} has no argument {first!r}; {near}")
            if is_nested:
                inner.setdefault(first, {})[rest] = value
            else:
                changed[name] = value
        for name, values in inner.items():
            value = changed.get(name, getattr(self, name))
            if not hasattr(value, "set_params"):
                raise OptionError(f"{type(self).__name__}: {name}={value!r} has no arguments of its own")
            changed[name] = value.set_params(**values)
        return changed


class LearnerPart(NamedArguments):
    """A frozen dataclass that is an argument of a learner: an optimizer, a regularizer, a mixin, a model."""

    def _names(self) -> Iterable[str]:
        return [one.name for one in fields(self)]  # type: ignore[arg-type]  # those that come of it are

    def set_params(self, **params: Any) -> Self:
        """Return one with other arguments; this one stays as it is.

        Parameters
        ----------
        params
            By name; ``name__inner`` is an argument's own.

        Raises
        ------
        OptionError
            For a name that there is not.

        Examples
        --------
        >>> import matnb as mn
        >>> mn.learn.Average(mn.learn.SGD(0.5)).set_params(optimizer__learning_rate=0.1).optimizer
        SGD(learning_rate=0.1, momentum=0.0, nesterov=False, schedule=None)
        """
        return replace(self, **self._changed(params))  # type: ignore[type-var]  # as above


_Init = TypeVar("_Init", bound=Callable[..., None])
_ELSE = "leave it out"


class Same(NamedTuple):
    """Values of an argument that are taken and not kept, and what to write instead of others.

    Attributes
    ----------
    values
        None for all: whatever it is, the result is the same.
    way
        For other values, a sentence; some of these have their own in ``special``.
    """

    values: tuple[object, ...] | None = None
    way: str = _ELSE
    special: Mapping[object, str] = {}


_ANY = Same()
_NO_START = Same((False,), "leave it out: fit begins anew, and comes to the same")
OWN_NEIGHBORS = (
    "scikit-learn's own takes DistArrays, sparse ones as X.to_scipy(): sklearn.neighbors.NearestNeighbors"
)
_L1 = 'write mn.learn.SGDClassifier("log_loss", penalty="l1")'
_NET = 'write mn.learn.SGDClassifier("log_loss", penalty="elasticnet", l1_ratio=0.15)'
_ONE_BY_ONE = "random_state selection precompute copy_X"
_SGD = {
    "early_stopping": Same(
        (False,), "leave it out: it ends after n_iter_no_change passes whose loss does not fall by tol"
    ),
    "average": Same((False,), "mn.learn.Learner takes mn.learn.Average(mn.learn.SGD()) as its optimizer"),
    "warm_start": Same((False,), "call partial_fit, which goes on from the weights"),
}
_POSITIVE = (
    "scikit-learn's own LinearRegression takes DistArrays, or write mn.learn.Lasso(alpha, positive=True)"
)
# Of each class; a name of several arguments stands for each of them.
SAME: Mapping[str, Mapping[str, Same]] = {
    one: {name: same for names, same in found.items() for name in names.split()}
    for classes, found in {
        "LogisticRegression": {
            "n_jobs verbose random_state intercept_scaling": _ANY,
            "penalty": Same(
                ("l2", "deprecated"),
                'it is "l2"; for none write C=np.inf',
                {None: "write C=np.inf", "none": "write C=np.inf", "l1": _L1, "elasticnet": _NET},
            ),
            "l1_ratio": Same((0, None), _NET, {1: _L1}),
            "multi_class": Same(
                ("auto", "deprecated"), "it is multinomial for more than two classes: leave it out"
            ),
            "dual": Same((False,)), "warm_start": _NO_START,
        },
        "LinearRegression": {"n_jobs copy_X": _ANY, "positive": Same((False,), _POSITIVE)},
        "Ridge": {
            "random_state copy_X": _ANY,
            "positive": Same(
                (False,), "write mn.learn.ElasticNet(alpha / n, l1_ratio=0, positive=True), with n rows"
            ),
        },
        "Lasso ElasticNet": {_ONE_BY_ONE: _ANY, "warm_start": _NO_START},
        "PoissonRegressor": {"verbose": _ANY, "warm_start": _NO_START},
        "SGDClassifier": {
            "n_jobs verbose validation_fraction": _ANY, **_SGD,
            "class_weight": Same(
                (None,),
                'give fit the sample_weight sklearn.utils.class_weight.compute_sample_weight("balanced", y)',
            ),
        },
        "SGDRegressor": {"verbose validation_fraction": _ANY, **_SGD},
        "KMeans": {
            "verbose copy_x n_jobs": _ANY,
            "algorithm": Same(("lloyd", "elkan", "auto", "full"), "leave it out: all come to the same"),
        },
        "MiniBatchKMeans MiniBatchNMF": {"verbose": _ANY},
        "NMF": {"verbose shuffle": _ANY},
        "LatentDirichletAllocation": {"n_jobs verbose": _ANY},
        "PCA": {"copy n_oversamples power_iteration_normalizer": _ANY},
        "IncrementalPCA": {"copy": _ANY},
        "TruncatedSVD": {"n_oversamples power_iteration_normalizer": _ANY},
        "SpectralEmbedding": {"n_jobs gamma eigen_solver eigen_tol": _ANY},
        "NearestNeighbors": {
            "n_jobs leaf_size": _ANY, "metric_params": Same((None,)),
            "radius": Same((1, None), f"leave it out; for radius_neighbors, {OWN_NEIGHBORS}"),
            "p": Same((2,), f"distances are euclidean; for others, {OWN_NEIGHBORS}"),
        },
    }.items()
    for one in classes.split()
}  # fmt: skip


def taking_same_arguments(init: _Init, called: str) -> _Init:
    """Return a constructor that also takes arguments of scikit-learn's which change nothing.

    Raises
    ------
    OptionError
        For values of these that would change something: with what to write instead.
    """
    known = SAME.get(called, {})

    @functools.wraps(init)
    def made(self: Any, *args: Any, **options: Any) -> None:
        for name in known.keys() & options.keys():
            same, value = known[name], options.pop(name)
            if same.values is not None and not (_is_plain(value) and value in same.values):
                way = same.special.get(value, same.way) if _is_plain(value) else same.way
                raise OptionError(f"{called}: {name}={value!r}; {way}")
        init(self, *args, **options)

    return cast(_Init, made) if known else init


def _is_plain(value: object) -> bool:
    return value is None or isinstance(value, str | int | float)
