"""Loops over sources: the bits of the same batches from memory, whatever the workers; and how they end."""

from __future__ import annotations

import gc
import os
import signal
import weakref
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from any_cuts import PARAMS, Library, library

import matnb as mn
from matnb.errors import LoopBodyError, OptionError, ShapeError
from matnb.expr import client_data
from matnb.sources import BatchSource, Minibatch, batches

ROWS, WIDTH, SIZE = 203, 7, 10


def drawn() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(ROWS, WIDTH)) * (rng.random((ROWS, WIDTH)) < 0.4)
    return X, (X @ np.arange(WIDTH) > 0) * 1.0


def step(w: mn.DistArray, batch: Minibatch) -> mn.DistArray:
    return w - 0.1 * (1 / (1 + np.exp(-(batch.X @ w))) - batch.y) @ batch.X


@pytest.fixture(scope="module", params=PARAMS)
def session(request: pytest.FixtureRequest) -> Iterator[Library]:
    with library(request.param) as started:
        yield started


@pytest.fixture
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a piece be three batches."""
    monkeypatch.setattr(batches, "MOST_BATCHES", 3)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    X, y = drawn()
    place = tmp_path_factory.mktemp("rows")
    for name, start, stop in (("a", 0, 84), ("b", 84, 85), ("c", 85, ROWS)):
        np.savez(place / f"{name}.npz", X=X[start:stop], y=y[start:stop])
    return place


def by_hand(source: BatchSource, epochs: int = 1) -> np.ndarray:
    w = mn.zeros(WIDTH)
    for batch in source.repeat(epochs):
        w = mn.asarray(step(w, Minibatch(batch.X, batch.y)).compute())
    return np.asarray(w.compute())


@pytest.mark.usefixtures("small_pieces")
class TestBits:
    """One result in all sessions, of which the first is remembered."""

    known: dict[tuple[str, bool], np.ndarray] = {}

    @pytest.mark.parametrize("shuffle", [False, True])
    @pytest.mark.parametrize("kind", ["memory", "rows of a file", "sparse", "calls"])
    def test_are_those_of_the_same_batches(self, session: Library, folder: Path, kind: str, shuffle: bool):
        X, y = drawn()
        given = sp.csr_array(X) if kind == "sparse" else X
        options = {"batch_size": SIZE, "shuffle": shuffle, "seed": 4}
        if kind == "rows of a file":
            source = mn.sources.files(folder, **options)
        elif kind == "calls":
            source = mn.sources.calls(
                lambda k: (X[29 * k : 29 * k + 29], y[29 * k : 29 * k + 29]), 7, **options
            )
        else:
            source = mn.sources.memory(given, y, **options)
        w, n = mn.iterate(step, mn.zeros(WIDTH), over=source, epochs=2)
        assert int(n) == 2 * -(-ROWS // SIZE)
        found = w.compute()
        assert np.array_equal(found, by_hand(source, 2))
        if session.kind != "interpreter":
            assert np.array_equal(found, self.known.setdefault((kind, shuffle), found))
        if not shuffle and kind != "sparse":
            arrays = X[: ROWS // SIZE * SIZE], y[: ROWS // SIZE * SIZE]
            whole = source.take(ROWS // SIZE)
            w, _ = mn.iterate(step, mn.zeros(WIDTH), over=whole)
            same, _ = mn.iterate(
                lambda w, item: step(w, Minibatch(*item)),
                mn.zeros(WIDTH),
                over=tuple(map(mn.asarray, arrays)),
                batch=SIZE,
            )
            assert np.array_equal(w.compute(), same.compute())


@pytest.mark.usefixtures("small_pieces")
class TestOptions:
    def test_until_ends_it_in_any_piece(self, session: Library):
        source = mn.sources.memory(np.ones((35, 1)), batch_size=2)
        for end in (0, 1, 5, 6, 11, 17):
            taken = []

            def call(k: int) -> np.ndarray:
                taken.append(k)  # noqa: B023  of this turn
                return np.ones((2, 1))

            for given in (source, mn.sources.calls(call, 40)):
                x, n, kept = mn.iterate(
                    lambda x, batch: x + batch.X.sum(),
                    0.0,
                    over=given,
                    until=lambda old, new, end=end: new > 2 * end,
                    collect=lambda new: (new, -new),
                )
                assert (float(x), int(n)) == (2.0 * end + 2 - (given is source and end == 17), end + 1)
                assert kept[0].compute().tolist() == (-kept[1]).compute().tolist()
                assert len(kept[0]) == end + 1
            assert len(taken) <= end + 1 + 3 * 4, "what comes after the end is not read"

    def test_max_iterations_goes_over_pieces_and_passes(self, session: Library):
        source = mn.sources.memory(np.ones((7, 1)), batch_size=2)
        for most in (0, 1, 4, 5, 20):
            x, n = mn.iterate(
                lambda x, batch: x + batch.X.shape[0], 0, over=source, max_iterations=most, epochs=2
            )
            assert int(n) == min(most, 8)
            assert int(x) == sum([2, 2, 2, 1, 2, 2, 2, 1][:most])

    def test_states_of_any_nesting_and_dtypes_that_widen(self, session: Library):
        source = mn.sources.memory(np.full((7, 2), 0.5), batch_size=2)
        state, _ = mn.iterate(
            lambda state, batch: {"sum": state["sum"] + batch.X.sum(), "rest": (state["rest"][0],)},
            {"sum": 0, "rest": (sp.csr_array(np.eye(3)),)},
            over=source,
        )
        assert float(state["sum"]) == 7
        assert state["rest"][0].sparse
        assert np.array_equal(state["rest"][0].compute().todense(), np.eye(3))

    def test_maps_are_part_of_the_step(self, session: Library):
        X, y = drawn()
        source = mn.sources.memory(X, y, batch_size=SIZE)
        w, _ = mn.iterate(step, mn.zeros(WIDTH), over=source.map(lambda X, y: (2 * X, 1 - y)))
        same, _ = mn.iterate(step, mn.zeros(WIDTH), over=mn.sources.memory(2 * X, 1 - y, batch_size=SIZE))
        assert np.array_equal(w.compute(), same.compute())


class TestRefusals:
    def test_what_makes_no_sense(self, session: Library):
        source = mn.sources.memory(np.ones((4, 1)), batch_size=2)
        for options in ({"batch": 2}, {"reverse": True}, {"epochs": -1}, {"epochs": 1.5}):
            with pytest.raises(OptionError):
                mn.iterate(lambda x, batch: x, 0.0, over=source, **options)
        with pytest.raises(OptionError, match="epochs=2 without a source"):
            mn.iterate(lambda x, item: x, 0.0, over=mn.ones(3), epochs=2)
        with pytest.raises(OptionError, match="nothing to collect"):
            mn.iterate(lambda x, batch: x, 0.0, over=source.take(0), collect=lambda x: x)
        with pytest.raises(ShapeError, match="shapes stay the same"):
            mn.iterate(lambda x, batch: batch.X.sum(axis=1), mn.zeros(3), over=source)
        with pytest.raises(LoopBodyError, match="a loop over a source runs at once"):
            mn.iterate(lambda x: mn.iterate(lambda x, batch: x, x, over=source)[0], 0.0, max_iterations=2)

    def test_rows_that_were_gone_through_are_let_go(self, session: Library, monkeypatch: pytest.MonkeyPatch):
        held: list[weakref.ref[np.ndarray]] = []
        owned = client_data.owned

        def noted(block: object) -> object:
            if getattr(block, "nbytes", 0) > 50_000:
                held.append(weakref.ref(block.values))  # type: ignore[attr-defined]
            return owned(block)

        monkeypatch.setattr("matnb.lazy.creation.owned", noted)
        source = mn.sources.calls(lambda k: np.full((1000, 10), k), 12)
        monkeypatch.setattr(batches, "MOST_BATCHES", 1)
        most = 0

        def looked(x: object, batch: Minibatch) -> object:
            nonlocal most
            gc.collect()
            most = max(most, sum(one() is not None for one in held))
            return x + batch.X.sum()

        x, _ = mn.iterate(looked, 0.0, over=source)
        assert float(x) == 10_000 * 66
        assert len(held) == 12
        if session.kind != "interpreter":  # which keeps what it knows
            assert most <= 6


def test_an_interrupt_between_pieces_ends_the_loop(session: Library):
    def call(k: int) -> np.ndarray:
        if k == 5:
            os.kill(os.getpid(), signal.SIGINT)
        return np.ones((2, 1))

    def interrupted() -> None:
        for _ in range(1000):  # the interrupt comes soon after the call
            mn.iterate(lambda x, batch: x + batch.X.sum(), 0.0, over=mn.sources.calls(call, 8))

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    x, _ = mn.iterate(
        lambda x, batch: x + batch.X.sum(), 0.0, over=mn.sources.memory(np.ones((9, 1)), batch_size=2)
    )
    assert float(x) == 9, "the session goes on"


@pytest.mark.cluster
def test_a_killed_worker_changes_nothing():
    X, y = drawn()
    with mn.start(workers=2, threads=1, processes=True) as session:
        pids = list(session.cluster.client.run(os.getpid).values())

        def call(k: int) -> tuple[np.ndarray, np.ndarray]:
            if k == 4:
                os.kill(pids[0], signal.SIGKILL)
            return X[29 * k : 29 * k + 29], y[29 * k : 29 * k + 29]

        w, n = mn.iterate(step, mn.zeros(WIDTH), over=mn.sources.calls(call, 7, batch_size=SIZE))
        assert int(n) == -(-ROWS // SIZE)
        same, _ = mn.iterate(step, mn.zeros(WIDTH), over=mn.sources.memory(X, y, batch_size=SIZE))
        assert np.array_equal(w.compute(), same.compute())
    mn.stop()
