"""Estimators with scikit-learn's conventions, written on DistArray and iterate.

Rows are samples and columns are features. ``fit`` learns, in runs of its own, and keeps what it learned under
names that end in an underscore, as DistArrays. What does not converge gives what the last iteration came to,
with a :class:`matnb.errors.ConvergenceWarning`.
"""

import sys

from matnb.errors import offered, ways
from matnb.learn import models
from matnb.learn.cluster.kmeans import KMeans
from matnb.learn.cluster.mini_batch_kmeans import MiniBatchKMeans
from matnb.learn.decomposition.incremental_pca import IncrementalPCA
from matnb.learn.decomposition.latent_dirichlet_allocation import LatentDirichletAllocation
from matnb.learn.decomposition.mini_batch_nmf import MiniBatchNMF
from matnb.learn.decomposition.nmf import NMF
from matnb.learn.decomposition.pca import PCA
from matnb.learn.decomposition.spectral_embedding import SpectralEmbedding
from matnb.learn.decomposition.truncated_svd import TruncatedSVD
from matnb.learn.glm import GLM
from matnb.learn.learner import Learner, Model
from matnb.learn.linear.elastic_net import ElasticNet
from matnb.learn.linear.lasso import Lasso
from matnb.learn.linear.linear_regression import LinearRegression
from matnb.learn.linear.logistic import LogisticRegression
from matnb.learn.linear.poisson import PoissonRegressor
from matnb.learn.linear.ridge import Ridge
from matnb.learn.linear.sgd_classifier import SGDClassifier
from matnb.learn.linear.sgd_regressor import SGDRegressor
from matnb.learn.mixins import Correlation, CosineSimilarity, Entropy, Perplexity, Top
from matnb.learn.neighbors.nearest_neighbors import NearestNeighbors
from matnb.learn.optimize.minimize import Minimum, minimize
from matnb.learn.optimize.optimizers import SGD, AdaGrad, Adam, Average
from matnb.learn.optimize.pass_optimizers import LBFGS, ConjugateGradient, Newton
from matnb.learn.recommend.als import ALS
from matnb.learn.recommend.item_similarity import ItemSimilarity
from matnb.learn.regularizers import L1, L2, ElasticNetPenalty, MaxNorm, NonNegative
from matnb.learn.training import LearningHistory

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
# What scikit-learn has beside these, and what there is instead: its own takes DistArrays, which it computes.
_OF_SKLEARN = {
    "model_selection": (
        "GridSearchCV RandomizedSearchCV KFold StratifiedKFold cross_val_score cross_val_predict "
        "cross_validate train_test_split"
    ),
    "pipeline": "Pipeline make_pipeline FeatureUnion",
    "compose": "ColumnTransformer make_column_transformer",
    "preprocessing": (
        "LabelEncoder OrdinalEncoder PolynomialFeatures RobustScaler Normalizer normalize scale"
    ),
    "impute": "SimpleImputer KNNImputer",
    "metrics": (
        "accuracy_score classification_report confusion_matrix f1_score log_loss mean_absolute_error "
        "mean_squared_error precision_score r2_score recall_score roc_auc_score silhouette_score"
    ),
    "ensemble": (
        "RandomForestClassifier RandomForestRegressor GradientBoostingClassifier GradientBoostingRegressor "
        "HistGradientBoostingClassifier HistGradientBoostingRegressor IsolationForest"
    ),
    "tree": "DecisionTreeClassifier DecisionTreeRegressor",
    "svm": "SVC SVR LinearSVC",
    "naive_bayes": "GaussianNB MultinomialNB BernoulliNB ComplementNB",
    "feature_extraction.text": "TfidfTransformer",
    "feature_selection": (
        "SelectKBest SelectPercentile SelectFromModel VarianceThreshold RFE chi2 f_classif f_regression "
        "mutual_info_classif mutual_info_regression"
    ),
    "multiclass": "OneVsRestClassifier OneVsOneClassifier",
    "calibration": "CalibratedClassifierCV",
    "neighbors": "KNeighborsClassifier KNeighborsRegressor",
    "cluster": "AgglomerativeClustering DBSCAN HDBSCAN SpectralClustering",
    "mixture": "GaussianMixture",
    "manifold": "TSNE Isomap",
    "neural_network": "MLPClassifier MLPRegressor",
}
_TAKES_OURS = "scikit-learn's own takes these estimators and DistArrays"
_TAKES_DENSE = "scikit-learn's own takes DistArrays, sparse ones as X.to_scipy()"
_OF_ANY_ROWS = ("model_selection", "pipeline", "compose", "metrics", "multiclass", "calibration")
_INSTEAD = {
    name: f"{_TAKES_OURS if module in _OF_ANY_ROWS else _TAKES_DENSE}: sklearn.{module}.{name}"
    for module, names in _OF_SKLEARN.items()
    for name in names.split()
} | {
    # Its modules, as somebody writes mn.learn.metrics.f1_score.
    module: f"{_TAKES_OURS}: sklearn.{module}"
    for module in (*_OF_SKLEARN, "feature_extraction", "utils", "datasets")
    if "." not in module
} | ways(
    {
        "StandardScaler": "(X - X.mean(axis=0)) / X.std(axis=0), or of sparse rows X / X.std(axis=0)",
        "MinMaxScaler": "(X - X.min(axis=0)) / (X.max(axis=0) - X.min(axis=0))",
        "CountVectorizer": (
            "mn.asarray(sklearn.feature_extraction.text.CountVectorizer().fit_transform(texts))"
        ),
        "TfidfVectorizer": (
            "mn.asarray(sklearn.feature_extraction.text.TfidfVectorizer().fit_transform(texts))"
        ),
        "HashingVectorizer": (
            "mn.asarray(sklearn.feature_extraction.text.HashingVectorizer().fit_transform(texts))"
        ),
        "OneHotEncoder": 'mn.asarray(sklearn.preprocessing.OneHotEncoder().fit_transform(t[["zone"]]))',
        "load_svmlight_file": 'mn.load(path, kind="svmlight"), and y is X.labels',
        "SVD": "mn.learn.TruncatedSVD",
        "NaiveBayes": "sklearn.naive_bayes.MultinomialNB(), which takes X.to_scipy()",
        "DictVectorizer FeatureHasher": "mn.asarray of what scikit-learn's own fit_transform gives",
        "linear_model cluster decomposition neighbors": "mn.learn.Ridge and so on, all in mn.learn itself",
    }
)  # fmt: skip


def _instead_of(name: str) -> str:
    # What to write: here, or with scikit-learn's module that has it, where somebody has loaded it.
    loaded = ((one, sys.modules.get(f"sklearn.{one}")) for one in ("linear_model", *_OF_SKLEARN))
    ways = (
        f"{_TAKES_OURS}: sklearn.{one}.{name}" for one, its in loaded if callable(getattr(its, name, None))
    )
    return _INSTEAD.get(name) or next(ways, "")


__getattr__, __dir__ = offered(__name__, __all__, _instead_of)
