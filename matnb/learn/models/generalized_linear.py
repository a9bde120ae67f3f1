"""Generalized linear models of one or many targets, for a learner."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from matnb.errors import OptionError, ShapeError, suggestion
from matnb.lazy.array import DistArray
from matnb.lazy.creation import asarray, zeros
from matnb.learn.models.links import LINKS, hessian_of
from matnb.learn.named_arguments import LearnerPart
from matnb.learn.optimize.optimizers import Parameters


@dataclass(frozen=True)
class GeneralizedLinear(LearnerPart):
    """Targets whose means are functions of ``X @ weights + intercept``, each with a link of its own.

    McCullagh, Nelder 1989, "Generalized Linear Models"; many targets at once as BIDMach's (Canny, Zhao 2013,
    table 5): one product ``X @ weights`` and one ``X.T @ residuals`` for all of them. The loss is the
    negative log-likelihood without what does not depend on the parameters, summed over targets: of normal y
    with variance 1 (identity), of y from 0 to 1 (logit, probit), of counts (log), of shares of classes
    (softmax).

    Parameters
    ----------
    link
        ``"identity"``, ``"logit"``, ``"log"``, ``"probit"``, or one of them per target; ``"softmax"`` applies
        to all targets together.
    mask
        p x targets: where it is 0, the weight of a feature stays 0.
    fit_intercept
        Whether each target has an intercept.

    Examples
    --------
    >>> import numpy as np, matnb as mn
    >>> X = np.random.default_rng(0).normal(size=(500, 2))
    >>> Y = np.stack([X @ [1.0, 2.0], X @ [1.0, -1.0] > 0], axis=1)
    >>> model = mn.learn.models.GeneralizedLinear(link=["identity", "logit"], mask=[[1, 1], [0, 1]])
    >>> learner = mn.learn.Learner(model).fit(X, Y, epochs=2, batch_size=50)
    >>> float(learner.parameters_["weights"][1, 0])
    0.0
    """

    link: str | Sequence[str] = "identity"
    mask: Any = None
    fit_intercept: bool = True

    def start(self, X: DistArray, y: Any) -> Parameters:
        """Return zeros."""
        targets, _ = self._targets(y)
        self.check_targets(targets)
        shape = targets.shape[1:]
        if self.mask is not None and asarray(self.mask).shape != (X.shape[1], *shape):
            expected = (X.shape[1], *shape)
            raise ShapeError(f"GeneralizedLinear: mask of shape {asarray(self.mask).shape}; give {expected}")
        intercept = {"intercept": zeros(shape)} if self.fit_intercept else {}
        return {"weights": zeros((X.shape[1], *shape)), **intercept}

    def check_targets(self, y: DistArray | None) -> None:
        """Look at links, and whether targets are within their bounds.

        Raises
        ------
        OptionError, ShapeError
            For an unknown link, links of another number than targets, and targets that are none of a link's.
        """
        if y is None:
            raise OptionError("GeneralizedLinear: y is missing; give a target for each row")
        names = [self.link] if isinstance(self.link, str) else self.link
        if unknown := set(names) - LINKS.keys():
            name = min(unknown)
            raise OptionError(f"GeneralizedLinear: link {name!r}; {suggestion(name, LINKS, 'choose one of')}")
        if not isinstance(self.link, str) and (len(names),) != y.shape[1:]:
            raise ShapeError(f"GeneralizedLinear: {len(names)} links for y of shape {y.shape}")
        if "softmax" in names and (y.ndim < 2 or set(names) != {"softmax"}):
            raise OptionError("GeneralizedLinear: softmax uses all columns of y together; give two or more")
        least = np.array([LINKS[name].least for name in names])
        most = np.array([LINKS[name].most for name in names])
        if np.isinf([least, most]).all():
            return
        wrong = (y < least) | (y > most)
        if not bool(wrong.any()):
            return
        place = tuple(int(one) for one in np.unravel_index(int(wrong.ravel().argmax()), y.shape))
        name = names[place[-1] if len(names) > 1 else 0]
        bounds = f"from 0 to {LINKS[name].most:g}" if LINKS[name].most < np.inf else "of 0 or more"
        raise OptionError(
            f"GeneralizedLinear: y[{', '.join(map(str, place))}] is {float(y[place]):g}, and targets of the "
            f"link {name!r} are {bounds}"
        )

    def loss(self, parameters: Parameters, X: DistArray, y: Any) -> DistArray:
        """Return the mean over rows of the losses of all targets."""
        targets, weights = self._targets(y)
        eta = self._eta(parameters, X)
        return cast(DistArray, (weights * self._each("loss", eta, targets)).sum() / X.shape[0])

    def gradient(self, parameters: Parameters, X: DistArray, y: Any) -> Parameters:
        """Return the gradient of the loss."""
        targets, weights = self._targets(y)
        residuals = weights * self._each("slope", self._eta(parameters, X), targets) / X.shape[0]
        slope = X.T @ residuals
        gradient = {"weights": slope if self.mask is None else slope * asarray(self.mask)}
        return {**gradient, "intercept": residuals.sum(axis=0)} if self.fit_intercept else gradient

    def hessian(self, parameters: Parameters, X: DistArray, y: Any) -> DistArray:
        """Return the second derivatives of the loss of one target, by its weights and then its intercept."""
        targets, weights = self._targets(y)
        if targets.ndim > 1 or self.link == "softmax" or not isinstance(self.link, str):
            raise OptionError("GeneralizedLinear: the Hessian needs one target, y of shape (n,); use LBFGS")
        curvature = weights * LINKS[self.link].curvature(self._eta(parameters, X), targets) / X.shape[0]
        mask = None if self.mask is None else asarray(self.mask) * 1.0
        return hessian_of(X, curvature, mask, self.fit_intercept)

    def predict(self, parameters: Parameters, X: DistArray) -> DistArray:
        """Return the means of the targets."""
        return cast(DistArray, self._each("mean", self._eta(parameters, X)))

    def _targets(self, y: Any) -> tuple[DistArray, Any]:
        # A pair is of targets and weights of rows, (n,), or of rows and targets.
        targets, weights = y if isinstance(y, tuple) else (y, 1.0)
        columns = isinstance(weights, DistArray) and weights.ndim == 1 and targets.ndim == 2
        return targets, weights[:, None] if columns else weights

    def _eta(self, parameters: Parameters, X: DistArray) -> DistArray:
        eta = X @ parameters["weights"]
        return eta + parameters["intercept"] if self.fit_intercept else eta

    def _each(self, part: str, eta: DistArray, *y: DistArray) -> Any:
        if isinstance(self.link, str):
            return getattr(LINKS[self.link], part)(eta, *y)
        first, *others = sorted(set(self.link))
        value = getattr(LINKS[first], part)(eta, *y)
        return self._chosen(value, others, part, eta, *y)

    def _chosen(self, value: Any, names: Sequence[str], part: str, eta: DistArray, *y: DistArray) -> Any:
        if not names:
            return value
        name, *others = names
        # What another link makes of a column may overflow, and is not looked at.
        here = np.array([one == name for one in self.link])
        value = np.where(here, getattr(LINKS[name], part)(eta, *y), value)
        return self._chosen(value, others, part, eta, *y)
