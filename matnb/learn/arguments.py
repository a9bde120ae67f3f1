"""What estimators are given, looked at before anything is learned: rows, targets, weights, seeds, numbers."""

from __future__ import annotations

import math
from typing import Any, NamedTuple, cast

import numpy as np
import numpy.typing as npt

from matnb.blocks.foreign import is_missing_value
from matnb.errors import DataDTypeError, DTypeError, OptionError, ShapeError, TooLargeError, suggestion
from matnb.expr.client_data import SHIP_BYTES
from matnb.lazy.array import DistArray
from matnb.lazy.array_like import ArrayLike
from matnb.lazy.creation import asarray, ones
from matnb.lazy.limits import check_incoming
from matnb.pictures.quantities import bytes_text
from matnb.sources import BatchSource
from matnb.sources.whole_numbers import whole as whole  # for all estimators, as what else is here
from matnb.tables.row_orders import check_rows_of


def rows_from(X: ArrayLike, estimator: str, num_features: int | None = None) -> DistArray:
    """Return the rows an estimator is given: a real matrix, sparse or dense, of float64 or float32.

    Anything but float32 becomes float64. Each element is looked at, in a run of its own.

    Parameters
    ----------
    X
        n x p: a DistArray, what NumPy or SciPy has, a data frame of numbers.
    estimator
        Its name, for messages.
    num_features
        Columns that it was fitted to.

    Raises
    ------
    ShapeError
        For what has no two axes, no row, no column, or another number of columns.
    DTypeError
        For None, a source of batches, complex numbers and anything other than a number.
    OptionError
        For NaN or infinity: where the first one is.
    """
    if X is None:
        raise DataDTypeError(f"{estimator}: X is None; give a matrix with one row for each sample")
    if isinstance(X, BatchSource):
        raise DataDTypeError(
            f"{estimator}: X is a source of batches; give a matrix, or, where there is partial_fit, "
            "call it with each batch's X"
        )
    given = asarray(_numbers_of(X))
    if given.ndim != 2:
        remedy = "; give x[:, None] for one feature, or x[None] for one row" if given.ndim == 1 else ""
        raise ShapeError(
            f"{estimator}: X has shape {given.shape}; X must be a matrix of rows and features{remedy}"
        )
    if not given.shape[0]:
        raise ShapeError(f"{estimator}: X of shape {given.shape} has no rows")
    if not given.shape[1]:
        raise ShapeError(f"{estimator}: X of shape {given.shape} has no features")
    if num_features is not None and given.shape[1] != num_features:
        raise ShapeError(f"{estimator}: X has {given.shape[1]} features, but it was fitted to {num_features}")
    return checked(_real(given, estimator, "X"), estimator, "X")


def check_hessian(size: int, estimator: str) -> None:
    """Look at whether one process can have the Hessian of so many parameters.

    Raises
    ------
    TooLargeError
        For one that is above 64 MB.
    """
    if (num_bytes := 8 * size * size) > SHIP_BYTES:
        raise TooLargeError(
            f"{estimator}: solver='newton-cholesky' would store a Hessian of {size} x {size}, "
            f"{bytes_text(num_bytes)} of {bytes_text(SHIP_BYTES)} at most; use solver='lbfgs'"
        )


def fits_one_worker(*shape: int) -> bool:
    """Tell whether one process takes float64 numbers of a shape: up to 64 MB."""
    return 8 * math.prod(shape) <= SHIP_BYTES


def names_of(X: ArrayLike) -> npt.NDArray[np.object_] | None:
    """Return the names of a data frame's columns where they are texts, else None."""
    columns = getattr(X, "columns", None)
    if columns is None or not hasattr(X, "dtypes") or not all(isinstance(one, str) for one in columns):
        return None
    return np.array(list(columns), dtype=object)


def _numbers_of(X: Any) -> Any:
    # Objects that are numbers, as a frame of several dtypes has them, are taken as these.
    if isinstance(X, np.ndarray) and X.dtype == object:
        try:
            return X.astype(np.float64)
        except (TypeError, ValueError):
            return X
    # A frame whose columns have several dtypes of numbers, or pandas's own, is not an array of numbers by
    # itself.
    if not hasattr(X, "to_numpy") or not hasattr(X, "columns") or not hasattr(X, "dtypes"):
        return X
    kinds = {getattr(one, "kind", "O") for one in X.dtypes}
    if not kinds <= set("biuf") or (len(set(X.dtypes)) == 1 and isinstance(X.dtypes.iloc[0], np.dtype)):
        return X
    return X.to_numpy(dtype=np.float64, na_value=np.nan)


def checked(values: DistArray, estimator: str, name: str) -> DistArray:
    """Return numbers as they are, once none of them is NaN or infinite.

    Raises
    ------
    OptionError
        Where the first one is.
    """
    if not values.size or np.isfinite(float(values.sum())):
        return values
    wrong = ~np.isfinite(values)
    if not bool(wrong.any()):  # only the sum is beyond its dtype
        return values
    if values.ndim == 1:
        place = str(int(wrong.argmax()))
    else:
        row = int(wrong.any(axis=1).argmax())
        place = f"{row}, {int(wrong[row].argmax())}"
    what = "NaN" if bool(np.isnan(values).any()) else "infinite"
    raise OptionError(
        f"{estimator}: {name}[{place}] is the first number that is NaN or infinite (there is {what}); "
        "fill or leave out such rows first"
    )


def nonnegative(values: DistArray, estimator: str, name: str) -> DistArray:
    """Return a matrix as it is, once none of its elements is below 0.

    Raises
    ------
    OptionError
        Where the first one is.
    """
    wrong = values < 0
    if not bool(wrong.any()):
        return values
    row = int(wrong.any(axis=1).argmax())
    place = f"{row}, {int(wrong[row].argmax())}"
    raise OptionError(f"{estimator}: {name}[{place}] is the first number below 0; give 0 or more")


def _real(given: DistArray, estimator: str, name: str) -> DistArray:
    if given.dtype.kind not in "biuf":
        raise DataDTypeError(f"{estimator}: {name} has dtype {given.dtype}; give real numbers")
    return given if given.dtype in (np.float32, np.float64) else given.astype(np.float64)


def targets_from(y: ArrayLike, X: DistArray, estimator: str, several: bool = True) -> DistArray:
    """Return numbers to be predicted, one or several a row of X, as float64.

    Raises
    ------
    ShapeError
        For another number of rows, or several targets where one is wanted.
    DTypeError, OptionError
        For anything other than a number, NaN or infinite.
    """
    if y is None:
        raise DataDTypeError(f"{estimator}: y is None; give a target for each row of X")
    check_rows_of(X, y, f"{estimator}: y")
    given = asarray(y)
    if given.ndim == 2 and given.shape[1] == 1 and not several:
        given = given[:, 0]
    if given.ndim not in ((1, 2) if several else (1,)) or given.shape[:1] != X.shape[:1]:
        raise ShapeError(f"{estimator}: y of shape {given.shape} for X of shape {X.shape}")
    return checked(_real(given, estimator, "y").astype(np.float64), estimator, "y")


Classes = npt.NDArray[Any]


class Labels(NamedTuple):
    """The classes that occur, ascending, and the place of each row's class among them, int64."""

    classes: Classes
    codes: DistArray


def labels_from(y: ArrayLike, X: DistArray, estimator: str) -> Labels:
    """Return the classes of the rows of X; numbers or, from anything other than a DistArray, texts.

    Raises
    ------
    ShapeError
        For another number of rows.
    DTypeError
        For no y, complex numbers, or a mixture of types.
    OptionError
        For one class alone, and for numbers that are NaN, infinite or no whole numbers.
    """
    if y is None:
        raise DataDTypeError(f"{estimator}: y is None; give a class for each row of X")
    check_rows_of(X, y, f"{estimator}: y")
    codes: DistArray
    classes: Classes
    if isinstance(y, DistArray):
        y = y[:, 0] if y.ndim == 2 and y.shape[1] == 1 else y
        classes = np.asarray(np.unique(checked(y, estimator, "y") if y.dtype.kind == "f" else y))
        codes = cast(DistArray, np.searchsorted(cast(Any, asarray(classes)), cast(Any, y)))
    else:
        check_incoming(y)
        there: Classes = np.asarray(y)
        _check_none_missing(y, there, estimator)
        if there.ndim == 2 and there.shape[1] == 1:
            there = there[:, 0]
        try:
            classes, places = np.unique(there, return_inverse=True)
        except TypeError:
            kinds = ", ".join(sorted({type(one).__name__ for one in there.ravel().tolist()}))
            raise DataDTypeError(
                f"{estimator}: y mixes classes of different types ({kinds}); "
                "give only numbers or only strings"
            ) from None
        codes = asarray(places.reshape(there.shape))
    if codes.shape != X.shape[:1]:
        raise ShapeError(f"{estimator}: y of shape {codes.shape} for X of shape {X.shape}")
    _check_discrete(classes, estimator)
    if len(classes) < 2:
        only = ", ".join(map(str, classes)) or "none"
        raise OptionError(f"{estimator}: classes in y: {only}; give two or more")
    return Labels(classes, codes)


def _check_none_missing(y: object, there: Classes, estimator: str) -> None:
    # NumPy makes the text "nan" of a NaN among texts, so that what was given is looked at.
    if there.dtype.kind not in "OUf" or (isinstance(y, np.ndarray) and y.dtype.kind == "U"):
        return
    given = np.asarray(y, dtype=object) if there.dtype.kind == "U" else there
    if there.dtype.kind == "f":
        missing = np.flatnonzero(np.isnan(there)).tolist()
    else:
        missing = [place for place, one in enumerate(given.ravel().tolist()) if is_missing_value(one)]
    if missing:
        first = given.ravel().tolist()[missing[0]]
        # The name of a table's column, or of a frame's, tells how to leave rows out.
        column = getattr(y, "name", None)
        rows = f"these rows, as dropna([{column!r}]) of the table does" if isinstance(column, str) else ""
        raise OptionError(
            f"{estimator}: y[{missing[0]}] is missing ({first!r}), as are {len(missing):,} of {given.size:,} "
            f"labels; leave out {rows or 'these rows of X and y'}, or give them a class of their own"
        )


def _check_discrete(classes: Classes, estimator: str) -> None:
    # As scikit-learn: numbers with fractions are measurements, and each would be a class of its own.
    if classes.dtype.kind == "c":
        raise DataDTypeError(f"{estimator}: y has dtype {classes.dtype}; give integers or strings")
    if classes.dtype.kind == "f" and (fractions := classes[~np.isfinite(classes) | (classes % 1 != 0)]).size:
        raise OptionError(
            f"{estimator}: y has {fractions[0]}, which is not a class; "
            "give integers or strings, or use a regressor"
        )


def of_classes(places: DistArray, classes: Classes) -> DistArray | Classes:
    """Return the classes at places among them: a DistArray of numbers, or texts here."""
    if classes.dtype.kind in "biuf":
        return asarray(classes)[places]
    return classes[np.asarray(places)]


def weights_from(sample_weight: ArrayLike, X: DistArray, estimator: str) -> DistArray:
    """Return a weight for each row, float64; ones when left out.

    Raises
    ------
    ShapeError
        For another number of weights than rows.
    OptionError
        For weights that are negative, NaN or infinite, or all 0.
    """
    if sample_weight is None:
        return ones(X.shape[0])
    check_rows_of(X, sample_weight, f"{estimator}: sample_weight")
    given = asarray(sample_weight).astype(np.float64)
    if given.ndim == 0:
        given = given * ones(X.shape[0])
    if given.shape != X.shape[:1]:
        raise ShapeError(f"{estimator}: sample_weight of shape {given.shape} for {X.shape[0]} rows")
    checked(given, estimator, "sample_weight")
    if bool((given < 0).any()) or not bool((given > 0).any()):
        raise OptionError(f"{estimator}: sample_weight is negative, or 0 for all rows; give 0 or more")
    return given


def class_weights_from(
    class_weight: object, labels: Labels, sample_weight: ArrayLike, X: DistArray, estimator: str
) -> DistArray | None:
    """Return a weight for each row, times that of its class; None where both are left out.

    Parameters
    ----------
    class_weight
        A dict of factors by class, 1 for those it lacks; "balanced" for the same sum for each; or None.
    labels, sample_weight, X, estimator
        As of the other functions here.

    Raises
    ------
    ShapeError, DTypeError, OptionError
        As :func:`weights_from`; for another ``class_weight``, one of a class that there is not, below 0.
    """
    if class_weight is None:
        return None if sample_weight is None else weights_from(sample_weight, X, estimator)
    weights, known = weights_from(sample_weight, X, estimator), labels.classes.tolist()
    if isinstance(class_weight, str) and class_weight == "balanced":
        of_class = (labels.codes == np.arange(len(known))[:, None]).astype(np.float64) @ weights
        return weights * (weights.sum() / len(known) / of_class)[labels.codes]
    if not isinstance(class_weight, dict):
        raise OptionError(f"{estimator}: class_weight={class_weight!r}; give a dict, 'balanced' or None")
    unknown = [label for label in class_weight if label not in known]
    if unknown:
        raise OptionError(f"{estimator}: class_weight has {unknown[0]!r}, which is not a class of y: {known}")
    factors = [real(class_weight.get(label, 1.0), "class_weight", estimator) for label in known]
    return weights * asarray(np.array(factors))[labels.codes]


def seed_from(random_state: object, estimator: str) -> int:
    """Return the seed that ``random_state`` stands for: a number, or None for what NumPy's own state gives.

    Raises
    ------
    DTypeError, OptionError
        For anything other than a whole number, or a negative one.
    """
    if random_state is None or random_state is np.random:
        return int(np.random.randint(2**31 - 1))  # noqa: NPY002  scikit-learn's state, which is NumPy's own
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31 - 1))
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**31 - 1))
    return whole(random_state, "random_state", estimator, least=0)


def real(value: Any, name: str, estimator: str, least: float = 0.0, above: bool = False) -> float:
    """Return a finite number of at least ``least``, or ``above`` it.

    Raises
    ------
    DTypeError, OptionError
        For anything other than a number, or one outside.
    """
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise DTypeError(f"{estimator}: {name}={value!r}; give a number") from None
    if not (number > least if above else number >= least) or number == np.inf:
        raise OptionError(
            f"{estimator}: {name}={value}; give a number {'above' if above else 'from'} {least}"
        )
    return number


def one_of(value: object, name: str, estimator: str, allowed: tuple[str, ...]) -> str:
    """Return an option that is one of those allowed.

    Raises
    ------
    OptionError
        For another; the message lists them.
    """
    if value not in allowed:
        raise OptionError(f"{estimator}: {name}={value!r}; {suggestion(value, allowed, 'choose one of')}")
    return str(value)
