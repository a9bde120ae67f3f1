"""Regularizers of learners: what parameters cost by themselves, as slopes or as proximal steps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from matnb.errors import OptionError
from matnb.lazy.array import DistArray
from matnb.learn.arguments import real
from matnb.learn.named_arguments import LearnerPart

Names = str | tuple[str, ...] | None


class Regularizer(LearnerPart):
    """What all regularizers have.

    A learner adds ``slope`` to the gradient, then lets the optimizer take its step, and then takes the
    ``proximal`` steps of all regularizers in the order in which they are listed. ``where`` names the
    parameters; left out, these are all but ``"intercept"``.
    """

    where: Names

    def slope(self, value: DistArray) -> DistArray | float:
        """Return the gradient of the smooth part."""
        return 0.0

    def penalty(self, value: DistArray) -> DistArray:
        """Return the part that is smooth, 0-d, which optimizers over whole passes need."""
        raise OptionError(
            f"{self!r} has no penalty; optimizers over whole passes take L2, and others AdaGrad"
        )

    def curvature(self, value: DistArray) -> DistArray:
        """Return the second derivatives of that part by each element, which ``Newton`` needs."""
        raise OptionError(f"{self!r} has no curvature; the optimizer Newton takes L2")

    def proximal(self, value: DistArray, rate: Any) -> DistArray:
        """Return the nearest value that is cheaper; ``rate`` is the optimizer's, 0-d or one an element."""
        return value


def _check(one: Regularizer, *names: str) -> None:
    # A number, or one for each column.
    for name in names:
        for value in np.ravel(getattr(one, name)):
            real(value, name, type(one).__name__)


def _shrunk(value: DistArray, by: Any) -> DistArray:
    shrunk: DistArray = np.sign(value) * np.maximum(abs(value) - by, 0.0)
    return shrunk


@dataclass(frozen=True)
class L1(Regularizer):
    """L1 penalty ``alpha * sum |w|``, as a proximal step, which makes elements exactly 0.

    Duchi, Singer 2009, "Efficient Online and Batch Learning Using Forward Backward Splitting"; with AdaGrad
    each element has its own rate, as in Duchi, Hazan, Singer 2011, section 5.

    Examples
    --------
    >>> import matnb as mn
    >>> mn.learn.L1(0.5).proximal(mn.asarray([2.0, -0.3]), 1.0).compute()
    array([ 1.5, -0. ])
    """

    alpha: float = 1e-4
    where: Names = None

    def __post_init__(self) -> None:
        _check(self, "alpha")

    def proximal(self, value: DistArray, rate: Any) -> DistArray:
        """Return the result of the proximal operator."""
        return _shrunk(value, rate * self.alpha)


@dataclass(frozen=True)
class L2(Regularizer):
    """L2 penalty ``alpha / 2 * sum w^2``, added to the gradient as ``alpha * w``.

    Examples
    --------
    >>> import matnb as mn
    >>> mn.learn.L2(0.5).slope(mn.asarray([2.0, -1.0])).compute()
    array([ 1. , -0.5])
    """

    alpha: float = 1e-4
    where: Names = None

    def __post_init__(self) -> None:
        _check(self, "alpha")

    def slope(self, value: DistArray) -> DistArray:
        """Return the gradient of the smooth part."""
        return self.alpha * value

    def penalty(self, value: DistArray) -> DistArray:
        """Return the smooth part, a scalar."""
        return (self.alpha / 2 * value * value).sum()

    def curvature(self, value: DistArray) -> DistArray:
        """Return the diagonal of the Hessian."""
        return self.alpha + 0.0 * value


@dataclass(frozen=True)
class ElasticNetPenalty(Regularizer):
    """``alpha * (l1_ratio * sum |w| + (1 - l1_ratio) / 2 * sum w^2)``: the L1 part as a proximal step.

    Zou, Hastie 2005, "Regularization and Variable Selection via the Elastic Net"; the arguments are those of
    scikit-learn.

    Examples
    --------
    >>> import matnb as mn
    >>> net = mn.learn.ElasticNetPenalty(1.0, l1_ratio=0.25)
    >>> net.slope(mn.asarray([2.0])).compute(), net.proximal(mn.asarray([2.0]), 1.0).compute()
    (array([1.5]), array([1.75]))
    """

    alpha: float = 1e-4
    l1_ratio: float = 0.15
    where: Names = None

    def __post_init__(self) -> None:
        _check(self, "alpha", "l1_ratio")

    def slope(self, value: DistArray) -> DistArray:
        """Return the gradient of the smooth part."""
        return self.alpha * (1 - self.l1_ratio) * value

    def proximal(self, value: DistArray, rate: Any) -> DistArray:
        """Return the result of the proximal operator."""
        return _shrunk(value, rate * (self.alpha * self.l1_ratio))


@dataclass(frozen=True)
class NonNegative(Regularizer):
    """Nonnegativity constraint: after each step, negative elements are set to 0.

    Examples
    --------
    >>> import matnb as mn
    >>> mn.learn.NonNegative().proximal(mn.asarray([2.0, -0.3]), 1.0).compute()
    array([2., 0.])
    """

    where: Names = None

    def proximal(self, value: DistArray, rate: Any) -> DistArray:
        """Return the result of the proximal operator."""
        return cast(DistArray, np.maximum(value, 0.0))


@dataclass(frozen=True)
class MaxNorm(Regularizer):
    """Max-norm constraint: after each step, columns longer than ``limit`` are scaled to that length.

    Srebro, Shraibman 2005, "Rank, Trace-Norm and Max-Norm", as Srivastava et al. 2014 ("Dropout", section
    5.1) have it.

    Examples
    --------
    >>> import matnb as mn
    >>> mn.learn.MaxNorm(1.0).proximal(mn.asarray([3.0, 4.0]), 1.0).compute()
    array([0.6, 0.8])
    """

    limit: float = 1.0
    where: Names = None

    def __post_init__(self) -> None:
        _check(self, "limit")

    def proximal(self, value: DistArray, rate: Any) -> DistArray:
        """Return the result of the proximal operator."""
        length = np.sqrt((value * value).sum(axis=0)) if value.ndim else abs(value)
        return cast(DistArray, value * (self.limit / np.maximum(length, self.limit)))
