"""Estimators with scikit-learn's conventions, written on DistArray and iterate.

Rows are samples and columns are features. ``fit`` learns, in runs of its own, and keeps what it learned under
names that end in an underscore, as DistArrays. What does not converge gives what the last iteration came to,
with a :class:`matnb.errors.ConvergenceWarning`.
"""

from matnb.errors import offered
from matnb.learn import models
from matnb.learn.als import ALS
from matnb.learn.elastic_net import ElasticNet
from matnb.learn.glm import GLM
from matnb.learn.incremental_pca import IncrementalPCA
from matnb.learn.item_similarity import ItemSimilarity
from matnb.learn.kmeans import KMeans
from matnb.learn.lasso import Lasso
from matnb.learn.latent_dirichlet_allocation import LatentDirichletAllocation
from matnb.learn.learner import Learner, Model
from matnb.learn.linear_regression import LinearRegression
from matnb.learn.logistic import LogisticRegression
from matnb.learn.mini_batch_kmeans import MiniBatchKMeans
from matnb.learn.mini_batch_nmf import MiniBatchNMF
from matnb.learn.minimize import Minimum, minimize
from matnb.learn.mixins import Correlation, CosineSimilarity, Entropy, Perplexity, Top
from matnb.learn.neighbors import NearestNeighbors
from matnb.learn.nmf import NMF
from matnb.learn.optimizers import SGD, AdaGrad, Adam, Average
from matnb.learn.pass_optimizers import LBFGS, ConjugateGradient, Newton
from matnb.learn.pca import PCA
from matnb.learn.poisson import PoissonRegressor
from matnb.learn.regularizers import L1, L2, ElasticNetPenalty, MaxNorm, NonNegative
from matnb.learn.ridge import Ridge
from matnb.learn.sgd_classifier import SGDClassifier
from matnb.learn.sgd_regressor import SGDRegressor
from matnb.learn.spectral_embedding import SpectralEmbedding
from matnb.learn.training import LearningHistory
from matnb.learn.truncated_svd import TruncatedSVD

__all__ = [
    "ALS",
    "GLM",
    "L1",
    "L2",
    "LBFGS",
    "NMF",
    "PCA",
    "SGD",
    "AdaGrad",
    "Adam",
    "Average",
    "ConjugateGradient",
    "Correlation",
    "CosineSimilarity",
    "ElasticNet",
    "ElasticNetPenalty",
    "Entropy",
    "IncrementalPCA",
    "ItemSimilarity",
    "KMeans",
    "Lasso",
    "LatentDirichletAllocation",
    "Learner",
    "LearningHistory",
    "LinearRegression",
    "LogisticRegression",
    "MaxNorm",
    "MiniBatchKMeans",
    "MiniBatchNMF",
    "Minimum",
    "Model",
    "NearestNeighbors",
    "Newton",
    "NonNegative",
    "Perplexity",
    "PoissonRegressor",
    "Ridge",
    "SGDClassifier",
    "SGDRegressor",
    "SpectralEmbedding",
    "Top",
    "TruncatedSVD",
    "minimize",
    "models",
]
# What scikit-learn has beside estimators, and what there is instead.
_INSTEAD = {
    "StandardScaler": "write (X - X.mean(axis=0)) / X.std(axis=0)",
    "MinMaxScaler": "write (X - X.min(axis=0)) / (X.max(axis=0) - X.min(axis=0))",
} | dict.fromkeys(
    ("Pipeline", "make_pipeline", "GridSearchCV", "cross_val_score", "train_test_split"),
    "scikit-learn's own takes these estimators and DistArrays",
)
__getattr__, __dir__ = offered(__name__, __all__, lambda name: _INSTEAD.get(name, ""))
