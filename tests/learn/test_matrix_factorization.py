"""MatrixFactorization: users solved for in NumPy, gradients by differences, held-out ratings of MovieLens."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

import matnb as mn
from matnb.errors import DTypeError, OptionError, ShapeError

MatrixFactorization = mn.learn.models.MatrixFactorization
USERS, ITEMS, K, C = 37, 23, 4, 0.2

pytestmark = pytest.mark.session("two threads")


def ratings(dtype: type = np.float64) -> sp.csr_array:
    """Return ratings 1 to 5, one of them a stored zero; user 5 and item 4 have none."""
    rng = np.random.default_rng(3)
    R = sp.random_array((USERS, ITEMS), density=0.3, rng=rng, format="lil")
    R[5, :], R[:, 4] = 0, 0
    R = sp.csr_array(R)
    R.data = rng.integers(1, 6, R.nnz).astype(dtype)
    R.data[7] = 0
    return R


def solved(R: sp.csr_array, Y: np.ndarray) -> np.ndarray:
    """Return the best factors of each user."""
    U = np.zeros((R.shape[0], Y.shape[1]))
    for user in range(R.shape[0]):
        rows = slice(R.indptr[user], R.indptr[user + 1])
        used = Y[R.indices[rows]]
        if len(used):
            U[user] = np.linalg.solve(
                used.T @ used + C * len(used) * np.eye(Y.shape[1]), used.T @ R.data[rows]
            )
    return U


RNG = np.random.default_rng(1)
Y = RNG.normal(size=(ITEMS, K))
EXACT = MatrixFactorization(K, C, num_steps=3 * K)


def test_users_are_solved_for() -> None:
    R, parameters = ratings(), {"items": mn.asarray(Y)}
    U = solved(R, Y)
    np.testing.assert_allclose(EXACT.users(parameters, mn.asarray(R)).compute(), U, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(EXACT.predict(parameters, R).compute(), U @ Y.T, rtol=1e-7, atol=1e-8)
    assert not EXACT.users(parameters, mn.asarray(R))[5].any()
    # Each step of conjugate gradients is nearer.
    losses = [
        float(MatrixFactorization(K, C, num_steps=n).loss(parameters, mn.asarray(R))) for n in (1, 2, 3, 8)
    ]
    assert losses == sorted(losses, reverse=True)
    rated = sp.csr_array((np.ones(R.nnz), R.indices, R.indptr), R.shape).toarray()
    sizes = rated * ((U**2).sum(axis=1)[:, None] + (Y**2).sum(axis=1))
    expected = (rated * (R.toarray() - U @ Y.T) ** 2 + C * sizes).sum() / USERS
    assert losses[-1] == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("model", [EXACT, MatrixFactorization(K, 0.0, num_steps=60)])
def test_a_gradient_is_that_of_its_loss(model: MatrixFactorization) -> None:
    # Users are solved for anew on both sides, yet what they change is nothing where they are the best.
    R, h = mn.asarray(ratings()), 1e-5
    gradient = model.gradient({"items": mn.asarray(Y)}, R)["items"].compute()
    for _ in range(4):
        way = RNG.normal(size=Y.shape)
        up, down = (float(model.loss({"items": mn.asarray(Y + sign * h * way)}, R)) for sign in (1, -1))
        assert (gradient * way).sum() == pytest.approx((up - down) / (2 * h), rel=1e-5)


def test_where_als_ends_nothing_moves() -> None:
    R = mn.asarray(ratings())
    als = mn.learn.ALS(K, C, 150, random_state=1).fit(R)
    there = {"items": als.item_factors_}
    assert float(EXACT.loss(there, R)) * USERS == pytest.approx(float(als.loss_), rel=1e-6)
    first = {"items": EXACT.start(R, None)["items"]}
    far, near = (float(abs(EXACT.gradient(one, R)["items"]).max()) for one in (first, there))
    assert near < 1e-3 * far


def test_batches_of_a_source_are_as_those_of_memory(tmp_path: Path) -> None:
    R = ratings(np.float32)
    for number, start in enumerate(range(0, USERS, 15)):
        sp.save_npz(tmp_path / f"{number}.npz", R[start : start + 15])
    model = MatrixFactorization(K, C)
    whole = mn.learn.Learner(model).fit(R, epochs=2, batch_size=10)
    streamed = mn.learn.Learner(model).fit(mn.sources.files(tmp_path, batch_size=10), epochs=2)
    found, expected = (one.parameters_["items"].compute() for one in (streamed, whole))
    assert found.dtype == np.float32
    assert found.tobytes() == expected.tobytes()
    np.testing.assert_array_equal(streamed.predict(R[:3]), whole.predict(R)[:3])


def test_whole_numbers_and_what_is_known_of_an_item_alone() -> None:
    whole = ratings()
    rated = mn.sources.memory(whole.astype(np.int64), batch_size=10)
    found, expected = (
        mn.learn.Learner(MatrixFactorization(K, C)).fit(one, batch_size=10).parameters_["items"].compute()
        for one in (rated, whole)
    )
    np.testing.assert_allclose(found, expected, rtol=1e-10)
    first = MatrixFactorization(K, C).start(mn.asarray(whole[:10]), None)["items"].compute()
    np.testing.assert_array_equal(expected[4], first[4])  # nobody has rated it
    np.testing.assert_allclose(first[:, 0] ** 2, whole[:10].data.mean())


def test_held_out_ratings_of_movielens(test_data: Path) -> None:
    table = np.loadtxt(test_data / "ml-latest-small" / "ratings.csv", delimiter=",", skiprows=1)
    users, items = (np.unique(table[:, column], return_inverse=True)[1] for column in (0, 1))
    held = np.random.default_rng(0).random(len(table)) < 0.1
    R = sp.csr_array((table[~held, 2], (users[~held], items[~held])), shape=(610, 9724))
    known = held & (np.diff(R.tocsc().indptr)[items] > 0)
    learner = mn.learn.Learner(MatrixFactorization(20, 0.15), optimizer=mn.learn.AdaGrad(0.2))
    learner.fit(R, epochs=5, batch_size=61)
    found = learner.predict(R).compute()[users[known], items[known]]
    assert 0.84 < np.sqrt(np.mean((found - table[known, 2]) ** 2)) < 0.92
    als = mn.learn.ALS(20, 0.15, 15, random_state=0).fit(R)
    assert learner.loss(R) * 610 < 1.03 * float(als.loss_)


@pytest.mark.parametrize(
    ("change", "options", "error", "told"),
    [
        (lambda R: R.toarray(), {}, DTypeError, "MatrixFactorization of a dense array of shape"),
        (lambda R: R, {"factors": 0}, OptionError, "MatrixFactorization: factors=0"),
        (lambda R: R, {"regularization": -1}, OptionError, "MatrixFactorization: regularization=-1"),
        (lambda R: R, {"num_steps": 0}, OptionError, "MatrixFactorization: num_steps=0"),
        (lambda R: R, {"scale": np.inf}, OptionError, "MatrixFactorization: scale=inf"),
        (lambda R: R * np.nan, {}, OptionError, "is the first number that is NaN"),
    ],
)
def test_bad_input(change: object, options: dict[str, object], error: type[Exception], told: str) -> None:
    learner = mn.learn.Learner(MatrixFactorization(**{"factors": 3, **options}))
    with pytest.raises(error, match=told):
        learner.fit(change(ratings()))  # type: ignore[operator]
    assert not hasattr(learner, "parameters_")


def test_what_does_not_fit_is_said() -> None:
    R = ratings()
    with pytest.raises(
        OptionError, match="MatrixFactorization: leave y out: the ratings are the entries of X"
    ):
        mn.learn.Learner(EXACT).fit(R, np.ones(USERS))
    learner = mn.learn.Learner(EXACT).fit(R)
    with pytest.raises(DTypeError, match="MatrixFactorization of a dense array"):
        learner.predict(R.toarray())
    with pytest.raises(ShapeError, match="X has 5 features, but it was fitted to 23"):
        learner.predict(R[:, :5])
