"""Pictures of how something is computed: stages compared, exchanges, what ran and what it took."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import numpy as np
import pytest

import matnb as mn
from matnb.pictures.facts import GraphFacts, NodeFacts
from matnb.pictures.graph import slowest_path
from matnb.pictures.picture import Picture

pytestmark = pytest.mark.session("two workers")


def fresh(*shape: int, blocks: object = None) -> mn.DistArray:
    return mn.asarray(np.random.default_rng().random(shape), blocks=blocks)


def nodes(facts: GraphFacts) -> list[NodeFacts]:
    return [node for panel in facts.panels for node in panel.nodes]


def stages(picture: Picture) -> dict[str, GraphFacts]:
    return dict(picture.stages)


def test_recorded_is_compared_with_optimized_and_the_plan(session: mn.session.Session) -> None:
    M = fresh(400, 30)
    y = (M.T.T * 2.0)[100:200] + 1.0
    picture = mn.visualize(y)
    assert list(stages(picture)) == ["recorded", "identities", "narrowing", "optimized", "plan"]
    assert picture.shown == ("recorded", "optimized", "plan")
    assert picture.facts is stages(picture)["plan"]
    gone = [node.what for node in nodes(stages(picture)["recorded"]) if node.change == "gone"]
    assert gone == ["e0.T", "e1.T"]
    # The slice is taken earlier, but is the same operation; nothing is new.
    assert not any(node.change for node in nodes(stages(picture)["optimized"]))
    assert picture.said.startswith("5 operations recorded; 3 after the passes (identities, narrowing); ")
    html = picture.bundle()["text/html"]
    names = [one.find("input").tail for one in ElementTree.fromstring(html).iter("label")]
    assert names == ["recorded", "optimized", "plan"]
    assert picture.text.splitlines()[0] == "the plan"


def test_what_a_pass_makes_is_new(session: mn.session.Session) -> None:
    A, B, v = fresh(300, 300), fresh(300, 300), fresh(300)
    picture = mn.visualize((A @ B) @ v)
    new = [node.what for node in nodes(stages(picture)["optimized"]) if node.change == "new"]
    gone = [node.what for node in nodes(stages(picture)["recorded"]) if node.change == "gone"]
    assert len(new) == len(gone) == 1
    assert "@" in new[0]
    (root,) = (node for node in nodes(stages(picture)["optimized"]) if node.is_result)
    assert not root.change  # the product that is asked for is the one that was written


def test_where_the_passes_change_nothing_only_two_stages_are_shown(session: mn.session.Session) -> None:
    x = fresh(100)
    picture = mn.visualize(np.sqrt(x))
    assert list(stages(picture)) == ["recorded", "plan"]
    assert picture.said == "1 operation recorded; the passes change nothing; 1 stage of computing"


def test_what_goes_between_workers_is_told_with_its_bytes(session: mn.session.Session) -> None:
    A, x = mn.repartition(mn.random.rmat(scale=12, edge_factor=4, seed=3), n=2), fresh(4096, blocks=2)
    picture = mn.visualize(A @ (x + 1.0), stage="plan")
    (product,) = (node for node in nodes(picture.facts) if node.what.startswith("product"))
    (told,) = (one for one in product.details if "across workers" in one)
    assert told == f"gathers {8 * 4096 / 1000:.3g} kB across workers"  # each worker reads the other's half
    operands = [nodes(picture.facts)[one] for one in product.moved]
    assert [one.what for one in operands] == ["map add"]


def test_what_stays_on_its_worker_moves_nothing(session: mn.session.Session) -> None:
    picture = mn.visualize(np.sqrt(fresh(3000, blocks=2)) * 2, stage="plan")
    assert not any(node.moved for node in nodes(picture.facts))
    assert "across workers" not in picture.text
    assert "moves 0 B" in picture.text


def test_before_a_run_the_path_goes_by_bytes_and_after_it_by_seconds(session: mn.session.Session) -> None:
    M = fresh(1500, 200, blocks=[2, 1])
    y = mn.linalg.norm(M @ (M.T @ M).sum(axis=0))
    before = mn.visualize(y, measured=True).facts
    assert before.unit == "estimated bytes"
    float(y)
    after = mn.visualize(y, measured=True)
    assert after.facts.title == "nothing to run: the value is there; this is how it was made"
    assert after.facts.unit == "measured seconds"
    made = nodes(after.facts)
    path = slowest_path(made)
    assert len(path) > 1
    assert max(range(len(made)), key=lambda one: made[one].weight) in path
    assert all(re.search(r"made, \S+ m?s", ", ".join(made[one].details)) for one in path)
    assert made[-1].details[-1] == "= value"
    assert [node.name for node in made if node.is_result] == [made[-1].name]
    without = mn.visualize(y)
    assert without.facts.unit == "estimated bytes"
    assert not re.search(r"\d m?s\b", without.text)
    assert "made" in without.text
    assert without.bundle() == mn.visualize(y).bundle()


def test_what_was_asked_for_is_drawn_with_what_it_is_made_from_though_it_is_there(
    session: mn.session.Session,
) -> None:
    x = fresh(3000)
    y = x * 2 + 1
    z = np.sqrt(y) - x
    y.persist()
    z.persist()
    recorded = nodes(mn.visualize(z, stage="recorded").facts)
    found = {node.what.split("(")[0]: node for node in recorded}
    assert {what: node.look for what, node in found.items()} == {
        "add": "known", "given array": "known", "sqrt": "work", "subtract": "known",
    }  # fmt: skip
    assert found["add"].operands == ()  # what is remembered on the way is not looked into
    assert "stored on workers" in found["subtract"].details


def test_a_loop_that_ran_is_drawn_by_when_its_parts_ran(session: mn.session.Session) -> None:
    A, x = fresh(60, 60), fresh(60)
    y = mn.iterate(lambda v: A @ v / 50 + x, mn.ones(60), max_iterations=7)[0]
    titles = [panel.title for panel in mn.visualize(y).facts.panels]
    assert any(one.startswith("each iteration of loop") for one in titles)
    note = next(p.notes[0] for p in mn.visualize(y).facts.panels if p.title.startswith("each iteration"))
    assert "registers used again in each iteration; needs at most about" in note
    y.compute()
    after = mn.visualize(y, measured=True)
    assert [panel.title for panel in after.facts.panels][-1] == "as it ran, each iteration"
    assert stages(after)["recorded"].panels[-1].title.startswith("each iteration of e")
    last = after.facts.panels[-1].nodes[-1]
    assert "= value" in last.details
    assert any("made, " in one for one in last.details)


def test_a_branch_and_a_person_s_function_are_drawn_after_they_ran(session: mn.session.Session) -> None:
    x = fresh(50)
    y = mn.cond(x.sum() > 1, lambda: x * 2, lambda: mn.replicated(np.sort, x))
    y.compute()
    facts = mn.visualize(y, measured=True).facts
    assert facts.unit in ("", "measured seconds")  # though one side did not run
    titles = [panel.title for panel in facts.panels]
    assert "as it ran, where it is true" in titles
    assert "as it ran, else" in titles


def test_looking_keeps_no_function_of_a_person_with_its_data(session: mn.session.Session) -> None:
    large = np.ones(1000)

    def told(small: np.ndarray) -> np.ndarray:
        return small + large.sum()

    def told_again(state: mn.DistArray) -> mn.DistArray:
        return mn.replicated(told, state)

    once = mn.replicated(told, fresh(5))
    looped = mn.iterate(told_again, mn.ones(5), max_iterations=2)[0]
    mn.compute(once, looped)
    kept = list(session._runner.log.measures._runs)[-3:]
    assert "call" in str([run.work for run in kept])
    assert "pickled" not in str([run.work for run in kept])
