"""Topics of documents, against scikit-learn from the same topics, and published topics of news."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from any_cuts import PARAMS, Arrays, Library, check_same, cut, expected_of, library
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment
from sklearn.decomposition import LatentDirichletAllocation as Peer

import matnb as mn
from matnb.errors import DTypeError, NotFittedError, OptionError, ShapeError
from matnb.learn.decomposition.topics import exp_expectation

LatentDirichletAllocation = mn.learn.LatentDirichletAllocation
WORDS, TOPICS = 25, 4
# What https://github.com/lda-project/lda shows of the same documents, by 1500 iterations of Gibbs's sampler
LISTED = """british churchill sale million major letters west britain
church government political country state people party against
elvis king fans presley life concert young death
yeltsin russian russia president kremlin moscow michael operation
pope vatican paul john surgery hospital pontiff rome
family funeral police miami versace cunanan city service
simpson former years court president wife south church
order mother successor election nuns church nirmala head
charles prince diana royal king queen parker bowles
film french france against bardot paris poster animal
germany german war nazi letter christian book jews
east peace prize award timor quebec belo leader
n't life show told very love television father
years year time last church world people say
mother teresa heart calcutta charity nun hospital missionaries
city salonika capital buddhist cultural vietnam byzantine show
music tour opera singer israel people film israeli
church catholic bernardin cardinal bishop wright death cancer
harriman clinton u.s ambassador paris president churchill france
city museum art exhibition century million churches set"""


class FromTheSame(Peer):
    """scikit-learn's, from given topics, and from 1 on for each document, as where it only transforms."""

    def _init_latent_vars(self, n_features: int, dtype: type = np.float64) -> None:
        super()._init_latent_vars(n_features, dtype)
        self.components_ = self.first.astype(dtype)
        self.exp_dirichlet_component_ = exp_expectation(mn.asarray(self.first)).compute().astype(dtype)
        self.random_state_ = None


TWO_THREADS = pytest.mark.session("two threads")


def documents(seed: int = 0, count: int = 30) -> sp.csr_array:
    """Return counts of words of drawn topics; one document is empty, and one stores a zero."""
    rng = np.random.default_rng(seed)
    topics = rng.dirichlet(np.full(WORDS, 0.3), TOPICS)
    counts = rng.poisson(20 * rng.dirichlet(np.full(TOPICS, 0.3), count) @ topics).astype(float)
    counts[4] = 0
    made = sp.csr_array(counts)
    made.data[3] = 0
    return made


def both(X: sp.csr_array, **options: object) -> tuple[LatentDirichletAllocation, Peer]:
    """Return our model and scikit-learn's, not fitted, that start from the same topics."""
    ours = LatentDirichletAllocation(TOPICS, random_state=3, **options)
    peer = FromTheSame(TOPICS, **options)
    peer.first = mn.random.default_rng(3).gamma(100.0, 0.01, (TOPICS, X.shape[1])).compute()
    return ours, peer


def check_alike(ours: LatentDirichletAllocation, peer: Peer, X: sp.csr_array, other: sp.csr_array) -> None:
    np.testing.assert_allclose(ours.components_.compute(), peer.components_, rtol=1e-6)
    np.testing.assert_allclose(
        ours.exp_dirichlet_component_.compute(), peer.exp_dirichlet_component_, rtol=1e-6, atol=1e-6
    )
    for documents in (X, other):
        shares = ours.transform(documents).compute()
        np.testing.assert_allclose(shares, peer.transform(documents), atol=1e-6)
        assert ours.score(documents) == pytest.approx(peer.score(documents), rel=1e-7)
        for scaled in (False, True):
            found, expected = (model.perplexity(documents, scaled) for model in (ours, peer))
            assert found == pytest.approx(expected, rel=1e-7)
    for name in ("n_batch_iter_", "n_iter_", "doc_topic_prior_", "topic_word_prior_", "n_features_in_"):
        assert getattr(ours, name) == getattr(peer, name), name
        assert type(getattr(ours, name)) is type(getattr(peer, name)), name


OPTIONS = {
    "batch": {},
    "online": {"learning_method": "online", "batch_size": 8},
    "batches come out even": {"learning_method": "online", "batch_size": 10, "learning_offset": 3.0},
    "one batch": {"learning_method": "online", "batch_size": 100, "learning_decay": 0.9},
    "priors": {"doc_topic_prior": 0.6, "topic_word_prior": 0.01, "max_iter": 3},
    "looks at the perplexity": {"evaluate_every": 2, "perp_tol": 0.05, "max_iter": 40},
    "looks and never ends": {"evaluate_every": 3, "perp_tol": 0.0, "max_iter": 7, "total_samples": 50},
    "few iterations": {"max_doc_update_iter": 3, "max_iter": 4},
    "no iteration": {"max_doc_update_iter": 0, "max_iter": 2},
    "many iterations": {"mean_change_tol": 1e-7, "max_doc_update_iter": 1000, "max_iter": 3},
    "no pass": {"max_iter": 0},
}


@TWO_THREADS
class TestAsScikitLearn:
    @pytest.mark.parametrize("name", OPTIONS)
    @pytest.mark.parametrize("form", [sp.csr_array, sp.csr_array.toarray], ids=["sparse", "dense"])
    def test_fit(self, name: str, form: Callable[[sp.csr_array], object]):
        X = documents()
        ours, peer = both(X, **OPTIONS[name])
        check_alike(ours.fit(form(X)), peer.fit(form(X)), X, documents(1, 7))
        assert ours.bound_ == pytest.approx(peer.bound_, rel=1e-7)
        assert type(ours.bound_) is float

    def test_it_ends_by_the_perplexity(self):
        ours, _ = both(documents(), **OPTIONS["looks at the perplexity"])
        assert 2 < ours.fit(documents()).n_iter_ < 39

    def test_partial_fit(self):
        X, other = documents(), documents(1, 7)
        ours, peer = both(X, batch_size=8, total_samples=40)
        for part in (X, other, X[:9]):
            ours.partial_fit(part)
            peer.partial_fit(part)
        check_alike(ours, peer, X, other)

    def test_float32(self):
        X = documents().astype(np.float32)
        ours, peer = both(X, learning_method="online", batch_size=8, mean_change_tol=1e-5, max_iter=3)
        ours.fit(X)
        peer.fit(X)
        assert ours.components_.dtype == ours.transform(X).dtype == np.float32
        np.testing.assert_allclose(ours.components_.compute(), peer.components_, rtol=1e-3)
        assert ours.bound_ == pytest.approx(peer.bound_, rel=1e-4)

    def test_what_is_not_normalized(self):
        X = documents()
        ours, peer = both(X, max_iter=2)
        parameters = ours.fit_transform(X, normalize=False).compute()
        np.testing.assert_allclose(parameters, peer.fit_transform(X, normalize=False), rtol=1e-6)
        np.testing.assert_allclose(ours.transform(X).compute().sum(axis=1), 1)

    def test_priors_so_small_that_products_are_no_floats(self):
        X = documents()
        ours, peer = both(X, doc_topic_prior=1e-3, topic_word_prior=1e-3, max_iter=5)
        assert ours.fit(X).bound_ == pytest.approx(peer.fit(X).bound_, rel=1e-5)
        assert ours.score(documents(1, 7)) == pytest.approx(peer.score(documents(1, 7)), rel=1e-5)

    @given(seed=st.integers(0, 1000), batch_size=st.integers(1, 12), decay=st.floats(0, 1))
    @settings(max_examples=8)
    def test_one_pass_of_any_batches(self, seed: int, batch_size: int, decay: float):
        X = documents(seed, 11)
        options = {"learning_method": "online", "batch_size": batch_size, "learning_decay": decay}
        ours, peer = both(X, max_iter=1, **options)
        np.testing.assert_allclose(ours.fit(X).components_.compute(), peer.fit(X).components_, atol=1e-5)


@TWO_THREADS
class TestDocuments:
    def test_a_document_is_done_for_itself(self):
        X = documents()
        model = LatentDirichletAllocation(TOPICS, random_state=0, max_iter=2).fit(X)
        alone = np.concatenate([model.transform(X[[row]]).compute() for row in range(X.shape[0])])
        assert alone.tobytes() == model.transform(X).compute().tobytes()

    def test_the_words_of_topics_are_those_of_the_documents(self):
        X = documents()
        model = LatentDirichletAllocation(TOPICS, random_state=0, topic_word_prior=0.5).fit(X)
        found = (model.components_ - 0.5).sum(axis=0).compute()
        np.testing.assert_allclose(found, X.sum(axis=0), rtol=1e-10)

    def test_the_bound_grows_with_each_pass(self):
        X = documents()
        options = {"random_state": 0, "mean_change_tol": 1e-6, "max_doc_update_iter": 1000}
        bounds = [
            LatentDirichletAllocation(TOPICS, max_iter=passes, **options).fit(X).bound_ for passes in range(4)
        ]
        assert np.all(np.diff(bounds) < 0)


@TWO_THREADS
class TestRefusals:
    @pytest.mark.parametrize(
        ("X", "error", "message"),
        [
            ([[1.0, -2.0]], OptionError, r"LatentDirichletAllocation: X\[0, 1\] is the first number below"),
            (
                sp.csr_array([[1.0, 0], [0, np.nan]]),
                OptionError,
                r"X\[1, 1\] is the first number that",
            ),
            ([1.0, 2.0], ShapeError, "must be a matrix"),
            ([[1j]], DTypeError, "real"),
        ],
    )
    @pytest.mark.parametrize("method", ["fit", "partial_fit"])
    def test_documents(self, X: object, error: type[Exception], message: str, method: str):
        model = LatentDirichletAllocation(2)
        with pytest.raises(error, match=message):
            getattr(model, method)(X)
        with pytest.raises(NotFittedError, match=r"LatentDirichletAllocation.transform before fit"):
            model.transform([[1.0]])

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("n_components", 0),
            ("doc_topic_prior", 0.0),
            ("topic_word_prior", -1.0),
            ("learning_method", "onlin"),
            ("learning_decay", -0.5),
            ("learning_offset", 0.5),
            ("max_iter", -1),
            ("batch_size", 0),
            ("perp_tol", -1.0),
            ("mean_change_tol", -1e-3),
            ("max_doc_update_iter", -1),
            ("random_state", -1),
        ],
    )
    def test_arguments(self, name: str, value: object):
        model = LatentDirichletAllocation(**{"learning_method": "online", name: value})
        with pytest.raises(OptionError, match=f"LatentDirichletAllocation: {name}="):
            model.fit(documents())
        assert not hasattr(model, "components_")

    def test_other_words(self):
        model = LatentDirichletAllocation(2, max_iter=1).fit(documents())
        for method in ("transform", "score", "perplexity", "partial_fit"):
            with pytest.raises(ShapeError, match=f"X has 3 features, but it was fitted to {WORDS}"):
                getattr(model, method)(np.ones((2, 3)))


@TWO_THREADS
class TestSources:
    ONLINE = {"learning_method": "online", "batch_size": 8, "max_iter": 3, "random_state": 0}

    @pytest.mark.parametrize("dtype", [np.float64, np.float32])
    def test_from_disk_is_as_from_memory(self, tmp_path: Path, dtype: type):
        X = documents().astype(dtype)
        for number, start in enumerate(range(0, 30, 10)):
            sp.save_npz(tmp_path / f"{number}.npz", X[start : start + 10])
        source = mn.sources.files(tmp_path, batch_size=8)
        found, expected = (LatentDirichletAllocation(TOPICS, **self.ONLINE).fit(one) for one in (source, X))
        assert found.components_.compute().tobytes() == expected.components_.compute().tobytes()
        assert found.bound_ == pytest.approx(expected.bound_, rel=1e-12 if dtype is np.float64 else 1e-5)
        for name in ("n_batch_iter_", "n_iter_", "n_features_in_"):
            assert getattr(found, name) == getattr(expected, name)

    def test_whole_numbers(self):
        X = documents()
        source = mn.sources.memory(X.astype(np.int64), batch_size=8)
        found, expected = (LatentDirichletAllocation(TOPICS, **self.ONLINE).fit(one) for one in (source, X))
        np.testing.assert_allclose(found.components_.compute(), expected.components_.compute(), rtol=1e-10)

    def test_a_number_below_0_in_a_later_batch(self):
        X = documents()
        X.data[-1] = -3
        model = LatentDirichletAllocation(TOPICS, **self.ONLINE)
        with pytest.raises(OptionError, match=r"LatentDirichletAllocation: BatchSource.* has the number -3"):
            model.fit(mn.sources.memory(X, batch_size=8))
        assert not hasattr(model, "components_")

    @pytest.mark.parametrize("options", [{}, {"learning_method": "online", "evaluate_every": 1}])
    def test_what_needs_all_documents(self, options: dict[str, object]):
        with pytest.raises(OptionError, match="only one batch is in memory"):
            LatentDirichletAllocation(TOPICS, **options).fit(mn.sources.memory(documents(), batch_size=8))


def read_documents(folder: Path) -> tuple[sp.csr_array, list[str]]:
    """Return documents in LDA-C's format, and the words that their numbers stand for."""
    words = folder.joinpath("reuters.tokens").read_text().split()
    lines = [line.split()[1:] for line in folder.joinpath("reuters.ldac").read_text().splitlines()]
    entries = np.array([pair.split(":") for line in lines for pair in line], np.int64)
    ends = np.cumsum([0, *map(len, lines)])
    return sp.csr_array((entries[:, 1].astype(float), entries[:, 0], ends), (len(lines), len(words))), words


@pytest.fixture(scope="module")
def news(test_data: Path) -> tuple[sp.csr_array, list[str]]:
    return read_documents(test_data / "lda_reuters")


@pytest.mark.slow  # fits of real documents
@TWO_THREADS
class TestNews:
    def test_topics_are_those_that_were_published(self, news: tuple[sp.csr_array, list[str]]):
        X, words = news
        assert (X.shape, X.sum()) == ((395, 4258), 84010)
        model = LatentDirichletAllocation(20, random_state=0, max_iter=25).fit(X)
        assert model.bound_ < 2396.35  # of the shares of words alone
        largest = np.argsort(-model.components_.compute(), axis=1)[:, :20]
        found = [{words[word] for word in topic} for topic in largest]
        listed = [set(line.split()) for line in LISTED.splitlines()]
        shared = np.array([[len(one & other) for other in found] for one in listed])
        assert shared[linear_sum_assignment(-shared)].sum() >= 0.6 * sum(map(len, listed))

    def test_online_is_below_the_shares_of_words_alone(self, news: tuple[sp.csr_array, list[str]]):
        options = {"learning_method": "online", "batch_size": 64, "max_iter": 10, "random_state": 0}
        assert LatentDirichletAllocation(20, **options).fit(news[0]).bound_ < 2396.35


def fitted(X: mn.DistArray, **options: object) -> tuple[object, ...]:
    """Return what a model learns of documents, and what it says of them."""
    few = {"max_iter": 3, "max_doc_update_iter": 12}  # the interpreter takes long for each
    model = LatentDirichletAllocation(TOPICS, random_state=0, **few, **options).fit(X)
    return model.components_, model.transform(X), mn.asarray([model.bound_])


ALGORITHMS: dict[str, Callable[[mn.DistArray], object]] = {
    "batch": lambda X: fitted(X, evaluate_every=1),
    "online": lambda X: fitted(X, learning_method="online", batch_size=7),
}
MATRICES = {"float64": documents(), "float32": documents().astype(np.float32)}


@pytest.fixture(scope="module")
def expected() -> dict[tuple[str, str], Arrays]:
    return expected_of(ALGORITHMS, MATRICES)


@pytest.fixture(scope="module", params=PARAMS)
def kind(request: pytest.FixtureRequest, expected: object) -> Iterator[Library]:
    with library(request.param) as started:
        yield started


@pytest.mark.parametrize("cuts", [None, (0, 3, 4, 17, 30)], ids=["whole", "cut"])
@pytest.mark.parametrize("dtype", MATRICES)
@pytest.mark.parametrize("name", ALGORITHMS)
def test_any_workers_and_cuts(
    kind: Library,
    expected: dict[tuple[str, str], Arrays],
    name: str,
    dtype: str,
    cuts: tuple[int, ...] | None,
):
    tolerance = {"float64": 1e-6, "float32": 1e-3}[dtype] if kind.kind == "interpreter" else None
    found = kind.values(ALGORITHMS[name](cut(MATRICES[dtype], cuts)))
    check_same(found, expected[name, dtype], tolerance)
