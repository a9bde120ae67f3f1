"""An estimator as HTML: its arguments, the changed ones first, and what it learned; nothing is computed."""

from __future__ import annotations

from xml.etree import ElementTree

import numpy as np
import pytest

import matnb as mn

pytestmark = pytest.mark.session("one thread")


def cells(estimator: object) -> dict[str, str]:
    tree = ElementTree.fromstring(estimator._repr_mimebundle_()["text/html"])  # type: ignore[attr-defined]
    return {"".join(row[0].itertext()): "".join(row[1].itertext()) for row in tree.iter("tr")}


def test_arguments_and_what_was_learned() -> None:
    X = np.random.default_rng(0).random((30, 2))
    model = mn.learn.KMeans(n_clusters=3, random_state=1)
    before = model._repr_mimebundle_()
    assert before["text/plain"] == repr(model)
    assert "not fitted" in before["text/html"]
    assert "2 of them changed" in before["text/html"]
    assert list(cells(model))[:2] == ["n_clusters", "random_state"]
    assert set(cells(model)) == set(model.get_params())
    model.fit(X)
    assert "not fitted" not in model._repr_mimebundle_()["text/html"]
    assert cells(model)["cluster_centers_"] == "3 x 2 float64"
    assert cells(model)["labels_"].endswith("(30 int32)")


@pytest.mark.parametrize(
    "name", [one for one in mn.learn.__all__ if hasattr(getattr(mn.learn, one), "get_params")]
)
def test_every_estimator_is_well_formed(name: str) -> None:
    kind = getattr(mn.learn, name)
    try:
        made = kind()
    except TypeError:
        pytest.skip("it has arguments that must be given")
    if hasattr(made, "_repr_mimebundle_"):
        assert set(made.get_params(deep=False)) <= set(cells(made))


def test_what_a_user_wrote_is_escaped() -> None:
    html = mn.learn.KMeans(n_clusters="<script>")._repr_mimebundle_()["text/html"]  # type: ignore[arg-type]
    assert "<script>" not in html
    assert "&lt;script&gt;" in html
