"""Models for :class:`matnb.learn.Learner`."""

from matnb.errors import offered
from matnb.learn.models.factorization_machine import FactorizationMachine
from matnb.learn.models.generalized_linear import GeneralizedLinear
from matnb.learn.models.matrix_factorization import MatrixFactorization

__all__ = ["FactorizationMachine", "GeneralizedLinear", "MatrixFactorization"]
__getattr__, __dir__ = offered(__name__, __all__)
