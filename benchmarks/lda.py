"""Topics of documents, learned online, against scikit-learn; gensim and tomotopy beside them."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
import tomotopy
from gensim.matutils import Sparse2Corpus
from gensim.models import LdaModel
from harness.comparison import OURS, Bench, Claim, Contender
from harness.inputs import THREADS
from harness.sessions import public
from sklearn.decomposition import LatentDirichletAllocation

import matnb as mn

TOPICS, PASSES, LENGTH, SHARE = 20, 10, 260, 1.01
PEER = "scikit-learn"


def documents(count: int, words: int) -> sp.csr_array:
    """Return counts of the words of documents, drawn from topics whose words are as unlike as Zipf's."""
    rng = np.random.default_rng(0)
    topics = rng.gamma(0.5, size=(TOPICS, words)) * rng.permutation(1 / np.arange(1, words + 1))
    ends = np.cumsum(topics, axis=1)
    ends = np.arange(TOPICS)[:, None] + ends / ends[:, -1:]
    shares = np.cumsum(rng.dirichlet(np.full(TOPICS, 0.3), count), axis=1)
    rows = np.repeat(np.arange(count), LENGTH)
    drawn = np.arange(count)[:, None] + shares / shares[:, -1:]
    topic = np.searchsorted(drawn.ravel(), rows + rng.random(len(rows)), side="right") - rows * TOPICS
    word = np.searchsorted(ends.ravel(), topic + rng.random(len(rows)), side="right") - topic * words
    counts = sp.coo_array((np.ones(len(rows)), (rows, np.minimum(word, words - 1))), (count, words)).tocsr()
    counts.sum_duplicates()
    return counts


def gensim_model(X: sp.csr_array, options: dict[str, object]) -> float:
    """Return what gensim's online variational Bayes comes to: a bound of the likelihood per word."""
    corpus = Sparse2Corpus(X, documents_columns=False)
    model = LdaModel(
        corpus, TOPICS, chunksize=options["batch_size"], passes=PASSES, decay=0.7, offset=10.0,
        random_state=0, id2word={word: str(word) for word in range(X.shape[1])}, eval_every=None,
    )  # fmt: skip
    return float(model.get_topics().sum())


def tomotopy_model(X: sp.csr_array) -> tomotopy.LDAModel:
    """Return a model with the documents, before its first sweep."""
    model = tomotopy.LDAModel(k=TOPICS, alpha=1 / TOPICS, eta=1 / TOPICS, seed=0)
    for row in range(X.shape[0]):
        entries = slice(X.indptr[row], X.indptr[row + 1])
        model.add_doc([str(one) for one in np.repeat(X.indices[entries], X.data[entries].astype(int))])
    return model


def sampled(model: tomotopy.LDAModel) -> float:
    """Return the perplexity after as many sweeps as the others make passes."""
    model.train(PASSES, workers=THREADS)
    return float(model.perplexity)


def main() -> None:
    bench = Bench(__doc__)
    X = documents(bench.sized(20_000, 600), bench.sized(10_000, 500))
    options = {
        "n_components": TOPICS,
        "learning_method": "online",
        "batch_size": bench.sized(4096, 128),
        "max_iter": PASSES,
        "random_state": 0,
    }
    perplexities: dict[str, float] = {}

    def noted(name: str, model: object) -> float:
        perplexities[name] = model.fit(A if name == OURS else X).bound_  # type: ignore[attr-defined]  # both have it
        return perplexities[name]

    def notes() -> list[str]:
        ours, theirs = perplexities[OURS], perplexities[PEER]
        if not bench.is_small and ours > SHARE * theirs:
            raise AssertionError(f"perplexity {ours:.1f}, over {SHARE} of scikit-learn's {theirs:.1f}")
        return [*call.notes(), f"perplexity {ours:.1f}, scikit-learn's {theirs:.1f}"]

    with mn.start(threads=THREADS):
        A = mn.asarray(X).persist()
        ours, call = public(lambda _: noted(OURS, mn.learn.LatentDirichletAllocation(**options)))
        peer = Contender(
            "scikit-learn",
            lambda _: noted("scikit-learn", LatentDirichletAllocation(**options)),
            tolerance=None,
        )
        by_gensim = Contender(
            "gensim, 1 process", lambda _: gensim_model(X, options), tolerance=None, judged=False
        )
        by_tomotopy = Contender(
            f"tomotopy, Gibbs, {PASSES} sweeps, {THREADS} threads", sampled, lambda _: tomotopy_model(X),
            tolerance=None, judged=False,
        )  # fmt: skip
        size = f"{X.shape[0]:,} documents of {X.shape[1]:,} words, {X.nnz:,} entries, {TOPICS} topics"
        bench.compare(
            Claim(f"LDA, online, {PASSES} passes", size, 0.5), [ours, peer, by_gensim, by_tomotopy], notes
        )


if __name__ == "__main__":
    main()
