"""Factorization machines, for a learner."""

from __future__ import annotations

from dataclasses import dataclass

from matnb.errors import OptionError, ShapeError
from matnb.lazy.array import DistArray
from matnb.lazy.creation import asarray, zeros
from matnb.lazy.random import default_rng
from matnb.learn.models.links import LINKS, LinkFunctions
from matnb.learn.named_arguments import LearnerPart
from matnb.learn.optimize.optimizers import Parameters


@dataclass(frozen=True)
class FactorizationMachine(LearnerPart):
    """A linear model with all products of two features, whose weights have a low rank.

    Rendle 2010, "Factorization Machines", equations 1 and 5: ``w0 + x w + sum over i < j of <v_i, v_j> x_i
    x_j``, where the sum over pairs is half of ``(x V)^2 - x^2 V^2`` summed over the columns of V: so it costs
    two products with V instead of all pairs. Parameters are ``intercept``, ``weights`` (p,) and ``factors``
    (p, rank).

    Parameters
    ----------
    rank
        Columns of V.
    link
        ``"identity"``, for half the squared error; or ``"logit"`` for y of 0 and 1, whose probability is
        predicted.
    scale
        The standard deviation of the first V.
    seed
        Of the first V.

    Examples
    --------
    >>> import numpy as np, matnb as mn
    >>> X = np.random.default_rng(0).normal(size=(2000, 3))
    >>> y = 1 + X[:, 0] * X[:, 1]
    >>> model = mn.learn.models.FactorizationMachine(rank=2, scale=0.1)
    >>> learner = mn.learn.Learner(model, optimizer=mn.learn.Adam(0.01)).fit(X, y, epochs=20, batch_size=50)
    >>> learner.loss(X, y) < 0.01
    True
    """

    rank: int = 8
    link: str = "identity"
    scale: float = 0.01
    seed: int = 0

    def start(self, X: DistArray, y: DistArray | None) -> Parameters:
        """Return zeros, and factors that are drawn."""
        if self.link not in ("identity", "logit"):
            raise OptionError(f"FactorizationMachine: link {self.link!r}; choose 'identity' or 'logit'")
        if y is None:
            raise OptionError("FactorizationMachine: y is missing; give a target for each row")
        if y.ndim != 1:
            raise ShapeError(f"FactorizationMachine: y of shape {y.shape}; give one target for each row")
        factors = self.scale * default_rng(self.seed).standard_normal((X.shape[1], self.rank))
        return {"intercept": asarray(0.0), "weights": zeros(X.shape[1]), "factors": factors}

    def loss(self, parameters: Parameters, X: DistArray, y: DistArray) -> DistArray:
        """Return the mean loss of rows."""
        mean: DistArray = self._link.loss(self._score(parameters, X), y).mean()
        return mean

    def gradient(self, parameters: Parameters, X: DistArray, y: DistArray) -> Parameters:
        """Return the gradient of the loss: equation 4 of the paper, for all rows at once."""
        residuals = self._link.slope(self._score(parameters, X), y) / X.shape[0]
        V = parameters["factors"]
        pairs = X.T @ (residuals[:, None] * (X @ V)) - V * ((X * X).T @ residuals)[:, None]
        return {"intercept": residuals.sum(), "weights": X.T @ residuals, "factors": pairs}

    def predict(self, parameters: Parameters, X: DistArray) -> DistArray:
        """Return what is predicted: numbers, or of logit probabilities of 1."""
        predicted: DistArray = self._link.mean(self._score(parameters, X))
        return predicted

    @property
    def _link(self) -> LinkFunctions:
        return LINKS[self.link]

    def _score(self, parameters: Parameters, X: DistArray) -> DistArray:
        V = parameters["factors"]
        pairs = 0.5 * (((X @ V) ** 2).sum(axis=1) - (X * X) @ (V * V).sum(axis=1))
        score: DistArray = parameters["intercept"] + X @ parameters["weights"] + pairs
        return score
