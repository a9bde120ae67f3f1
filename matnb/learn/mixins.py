"""Mixins of learners: figures of a model's components, and slopes that make them smaller or larger."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import numpy as np

from matnb.lazy.array import DistArray
from matnb.lazy.functions.ordering import topk
from matnb.learn.named_arguments import LearnerPart
from matnb.learn.regularizers import Names

_SMALL = 1e-300  # instead of 0 where a column of zeros would divide or have a logarithm


class Mixin(LearnerPart):
    """What all mixins have: a figure in a learner's history and, unless ``weight`` is 0, a term of the loss.

    BIDMach (Canny, Zhao 2013, section 2) has models "mixed with ... mixins which add losses for things like
    component dependence": here ``weight * figure`` is added to what is minimized, by its gradient; a negative
    weight makes the figure larger. The components are the columns of a matrix of parameters; ``where`` names
    the matrices, all with two axes when left out. The figure of several is their sum.
    """

    weight: float
    where: Names

    def figure(self, value: DistArray) -> DistArray:
        """Return the measure of a matrix, a scalar."""
        raise NotImplementedError

    def slope(self, value: DistArray) -> DistArray:
        """Return the gradient of the measure."""
        raise NotImplementedError


def _unit(value: DistArray) -> tuple[DistArray, DistArray]:
    length = np.maximum(np.sqrt((value * value).sum(axis=0)), _SMALL)
    return value / length, length


def _pairs(value: DistArray) -> int:
    return max(value.shape[1] * (value.shape[1] - 1), 1)


@dataclass(frozen=True)
class CosineSimilarity(Mixin):
    """Mean cosine similarity of all pairs of components.

    The sum of all cosines is the squared norm of the sum of the unit vectors, so no matrix of pairs is
    formed.

    Examples
    --------
    >>> import matnb as mn
    >>> mixin = mn.learn.CosineSimilarity(0.01)
    >>> float(mixin.figure(mn.asarray([[1.0, 0.0, 1.0], [0.0, 2.0, 0.0]])))
    0.3333333333333333
    """

    weight: float = 0.0
    where: Names = None

    def figure(self, value: DistArray) -> DistArray:
        """Return the measure of a matrix, a scalar."""
        units, _ = _unit(value)
        total = units.sum(axis=1)
        mean: DistArray = ((total * total).sum() - (units * units).sum()) / _pairs(value)
        return mean

    def slope(self, value: DistArray) -> DistArray:
        """Return the gradient of the measure."""
        units, length = _unit(value)
        total = units.sum(axis=1)[:, None]
        across = total - units * (total * units).sum(axis=0)
        slope: DistArray = 2 / _pairs(value) * across / length
        return slope


@dataclass(frozen=True)
class Correlation(CosineSimilarity):
    """Mean correlation of all pairs of components, the cosine of the centered columns.

    Examples
    --------
    >>> import matnb as mn
    >>> round(float(mn.learn.Correlation().figure(mn.asarray([[1.0, 4.0], [2.0, 2.0], [3.0, 0.0]]))), 12)
    -1.0
    """

    def figure(self, value: DistArray) -> DistArray:
        """Return the measure of a matrix, a scalar."""
        return super().figure(value - value.mean(axis=0))

    def slope(self, value: DistArray) -> DistArray:
        """Return the gradient of the measure."""
        slope = super().slope(value - value.mean(axis=0))
        centered: DistArray = slope - slope.mean(axis=0)
        return centered


@dataclass(frozen=True)
class Entropy(Mixin):
    """Mean entropy, in nats, of the components as distributions: ``-sum p log p``, ``p = |w| / sum |w|``.

    Examples
    --------
    >>> import matnb as mn
    >>> round(float(mn.learn.Entropy().figure(mn.asarray([[1.0, 3.0], [1.0, 0.0]]))), 6)
    0.346574
    """

    weight: float = 0.0
    where: Names = None

    def figure(self, value: DistArray) -> DistArray:
        """Return the measure of a matrix, a scalar."""
        return self._entropies(value).mean()

    def slope(self, value: DistArray) -> DistArray:
        """Return the gradient of the measure."""
        return self._slopes(value) / value.shape[1]

    def _logs(self, value: DistArray) -> tuple[DistArray, DistArray, DistArray]:
        total = np.maximum(abs(value).sum(axis=0), _SMALL)
        shares = abs(value) / total
        return shares, np.log(np.maximum(shares, _SMALL)), total

    def _entropies(self, value: DistArray) -> DistArray:
        shares, logs, _ = self._logs(value)
        return -(shares * logs).sum(axis=0)

    def _slopes(self, value: DistArray) -> DistArray:
        # d(-sum p log p) / d|w_i| = -(log p_i + entropy) / sum |w|
        _, logs, total = self._logs(value)
        return cast(DistArray, -np.sign(value) * (logs + self._entropies(value)) / total)


@dataclass(frozen=True)
class Perplexity(Entropy):
    """Mean perplexity of the components as probability distributions, ``exp`` of their entropy.

    Examples
    --------
    >>> import matnb as mn
    >>> round(float(mn.learn.Perplexity().figure(mn.asarray([[1.0, 3.0], [1.0, 0.0]]))), 6)
    1.5
    """

    def figure(self, value: DistArray) -> DistArray:
        """Return the measure of a matrix, a scalar."""
        return cast(DistArray, np.exp(self._entropies(value)).mean())

    def slope(self, value: DistArray) -> DistArray:
        """Return the gradient of the measure."""
        return cast(DistArray, np.exp(self._entropies(value)) * self._slopes(value) / value.shape[1])


@dataclass(frozen=True)
class Top(Mixin):
    """Mean over components of the sum of ``|w|`` outside the ``n`` largest elements.

    As BIDMach's mixin of this name, but with a number of elements instead of a threshold.

    Examples
    --------
    >>> import matnb as mn
    >>> float(mn.learn.Top(n=1).figure(mn.asarray([[1.0, -3.0], [0.5, 1.0]])))
    0.75
    """

    n: int = 10
    weight: float = 0.0
    where: Names = None

    def figure(self, value: DistArray) -> DistArray:
        """Return the measure of a matrix, a scalar."""
        return (abs(value) * self._rest(value)).sum() / value.shape[1]

    def slope(self, value: DistArray) -> DistArray:
        """Return the gradient of the measure."""
        return cast(DistArray, np.sign(value) * self._rest(value) / value.shape[1])

    def _rest(self, value: DistArray) -> DistArray:
        # Of elements as large as the last one at the top, the earlier ones are there too, as many as fit.
        k = min(self.n, value.shape[0])
        if not k:
            return abs(value) >= 0
        last = topk(abs(value), k, axis=0).values.min(axis=0)
        is_last = abs(value) == last
        room = k - (abs(value) > last).sum(axis=0)
        fits = np.cumsum(is_last, axis=0) <= room
        return (abs(value) < last) | (is_last & ~fits)
