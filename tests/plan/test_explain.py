"""Explanations: each stage alone, every root named, what is shared, known or measured marked."""

from __future__ import annotations

import cProfile
import pstats
import re
from collections.abc import Mapping
from functools import partial
from xml.etree import ElementTree

import numpy as np
import pytest
import scipy.sparse as sp

import matnb as mn
from matnb.blocks.grid import regular
from matnb.blocks.layout import Layout
from matnb.errors import LoopBodyError, OptionError
from matnb.events import TaskTimed
from matnb.expr.nodes import Data, Expr
from matnb.ops.selecting import Compress
from matnb.pictures.graph import MOST_LISTED, listed
from matnb.plan.explain import ExpressionGraph, told_alone
from matnb.plan.explain_plans import plan_text
from matnb.plan.lower import lower
from matnb.plan.measured import MOST_RUNS, Measures
from matnb.plan.report import RunReport, total
from matnb.program.plan import StoredArray, Workers
from matnb.session.inspect import stage_names

FLOAT = np.dtype(np.float64)
TWO = Workers((0, 1), 2, 0)
A = mn.DistArray(Data(b"a", (3, 4), FLOAT, False))
S = mn.DistArray(Data(b"s", (4, 4), FLOAT, True))


def text_of(array: mn.DistArray) -> str:
    return array.expression.describe(tuple("xyz"[: len(array.expression.operands)]))


def test_a_result_is_told_by_what_it_is_of() -> None:
    final, _ = mn.iterate(lambda x: x * 2, A, max_iterations=2)
    assert final.facts().expression == "result 0 of loop from (3, 4) float64, at most 2 times"
    picked = Compress(A.expression, Data(b"m", (3,), np.dtype(bool), False), (0, 3), (0, 2))
    assert told_alone(picked) == "(3, 4) float64[(3,) bool]"


@pytest.mark.parametrize(
    ("array", "text"),
    [
        (mn.asarray(2.5), "constant 2.5"),
        (mn.asarray([1.0, 2.0]), "constant (2,)"),
        (A, "given array"),
        (mn.eye(4), "eye"),
        (A + A, "add(x, y)"),
        (A.astype(int), "astype(x, int64)"),
        (A @ S, "x @ y"),
        (mn.matmul(A, S, semiring="min_plus"), "matmul(x, y, min_plus)"),
        (A.T, "x.T"),
        (np.transpose(mn.zeros((2, 3, 4)), (1, 0, 2)), "transpose(x, (1, 0, 2))"),
        (A.sum(), "sum(x)"),
        (A.max(axis=1), "max(x, axis=1)"),
        (mn.zeros((2, 3, 4)).any(axis=(0, 2)), "any(x, axis=(0, 2))"),
        (A[1, ::2], "x[1, 0:3:2]"),
        (A[::-1, None], "x[2::-1, None, 0:4]"),
        (np.broadcast_to(A, (2, 3, 4)), "broadcast(x)"),
        (np.where(A, A, 1), "where(x, y, z)"),
        (mn.asarray(A, blocks=[3, 1]), "regrid(x) to 3 x 1 blocks"),
    ],
)
def test_an_expression_is_one_line(array: mn.DistArray, text: str):
    assert text_of(array) == text


def test_kind_tells_shape_dtype_and_format():
    assert A.expression.form_text() == "(3, 4) float64"
    assert S.expression.form_text() == "(4, 4) float64 sparse"


def lines_of(roots: Mapping[str, Expr], stored: Mapping[Expr, StoredArray] | None = None) -> list[str]:
    return listed(ExpressionGraph().panels(roots, stored or {}))


def test_expressions_are_listed_operands_first_and_marked():
    shared = A @ S
    roots: dict[str, Expr] = {
        "y": (shared * 2.0 * shared.sum()).expression,
        "z": shared.expression,
        "also": shared.expression,
    }
    lines = lines_of(roots)
    assert [line.split()[0] for line in lines] == ["e0", "e1", "e2", "e3", "e4", "e5"]
    assert lines[2].endswith("(3, 4) float64, about 96 B, used 2 times, = z, = also")
    assert "multiply(e2, 2.0)" in lines[3]  # a scalar is told where it is read
    assert "multiply(e3, e4)" in lines[5]
    assert lines[5].endswith("= y")
    stored = lines_of(roots, {shared.expression: StoredArray(Layout(regular((3, 4), (1, 1)), (0,)), ("a",))})
    assert len(stored) == 4
    assert stored[0].endswith("stored on workers, = z, = also")


def test_a_plan_names_every_root_and_what_it_needs():
    x = mn.asarray(np.ones((1024, 128)), blocks=4)
    middle = x + 1
    y, z = middle.sum(axis=0), middle @ x.T
    plan = lower([y.expression, z.expression], [middle.expression], {}, TWO)
    lines = plan_text(plan, {y.expression: "y", z.expression: "z"}).splitlines()
    assert len(lines) == len(plan.stages) + 1
    assert sum(line.endswith(", = y") for line in lines) == 1
    assert sum(line.endswith(", = z") for line in lines) == 1
    (kept,) = (line for line in lines if line.endswith(", kept"))
    assert kept.split("   ")[-1].strip() == (
        "(1024, 128) float64, 4x1 blocks on 2 workers, 4 tasks, about 1.05 MB, used 2 times, kept"
    )
    assert f" run, {len(plan.tasks)} tasks, " in lines[-1]
    assert lines[-1].endswith("more on 2 workers")


def test_a_stored_array_is_read():
    x = mn.asarray(np.ones((1024, 128)), blocks=4)
    stored = lower([x.expression], (), {}, TWO).outputs
    plan = lower([(x + 1).expression], (), stored, TWO)
    told = plan_text(plan).splitlines()
    assert told[0].endswith("(1024, 128) float64, 4x1 blocks on 2 workers, stored on workers")
    assert "4 tasks, 1 array made, 1 read from the workers; moves 0 B" in told[-1]


def test_long_listings_keep_both_ends():
    x = A
    for number in range(2 * MOST_LISTED):
        x = x + float(number)
    lines = lines_of({"end": x.expression})
    assert len(lines) == MOST_LISTED + 1
    assert lines[-1].endswith("= end")
    assert f"... {MOST_LISTED + 1} more ..." in lines[MOST_LISTED // 2]
    assert lines[0].split()[0] == "e0"


# with a session

TWO_WORKERS = pytest.mark.session("two workers")


def fresh(count: int = 3000) -> mn.DistArray:
    return mn.asarray(np.random.default_rng().random(count), blocks=2)


def titles(text: str) -> list[str]:
    return [line for line in text.splitlines() if line[0] != " "]


@TWO_WORKERS
def test_each_stage_is_told_alone_and_all_of_them_by_default(session: mn.session.Session) -> None:
    x = fresh()
    y = (x - x.mean()) * 1 + 0.5
    whole = y.explain()
    assert titles(whole)[0] == "recorded"
    assert titles(whole)[-1] == "plan"
    assert len(titles(whole)) == len(stage_names()) - 1  # "place" says more of the plan
    alone = {name: y.explain(name) for name in stage_names() if name != "place"}
    assert "\n".join(alone.values()) == whole
    assert [len(titles(text)) for text in alone.values()] == [1] * len(alone)
    assert any(text.endswith(": no change") for text in alone.values())


@TWO_WORKERS
def test_a_stage_that_is_not_there_is_refused_with_those_that_are(session: mn.session.Session) -> None:
    for look in (fresh().explain, lambda stage: mn.visualize(fresh(), stage=stage)):
        with pytest.raises(OptionError, match=r"no stage 'planned'; did you mean 'plan'\?$"):
            look("planned")


@TWO_WORKERS
def test_values_that_are_known_are_marked(session: mn.session.Session) -> None:
    x = fresh()
    y = x * 2 + 1
    total = y.sum()
    y.persist()
    float(total)
    (line,) = ((total + y).explain("recorded")).splitlines()[1:2]
    assert "stored on workers" in line
    graph = ExpressionGraph({total.expression})
    told = listed(graph.panels({"t": (total * 3).expression}, session._store.find([y.expression])))
    assert [line.split(", ")[-1] for line in told[:2]] == ["stored on workers", "remembered value"]
    assert "nothing to run" in total.explain("plan")


@TWO_WORKERS
def test_shared_buffers_and_passes_are_told(session: mn.session.Session) -> None:
    x = fresh()
    chain = np.sqrt(x * x + x) * 2 - abs(x - 0.5) + np.exp(-x)
    found = re.search(r", (\d+) functions in (\d+) buffers, ", chain.explain("plan"))
    assert found is not None
    assert int(found[1]) == 10
    assert 3 <= int(found[2]) <= 5
    several = x.min() + x.max() * x.sum()
    assert "3 reductions in one pass" in several.explain("plan")


@TWO_WORKERS
def test_a_sparse_result_tells_its_format_and_entries(session: mn.session.Session) -> None:
    A = mn.asarray(sp.csr_array(np.eye(1000)))
    told = np.concatenate([A[:, ::2], A[:, ::2]]).explain("plan")
    assert re.search(r"  concatenate +\(2000, 500\) float64 sparse, ", told)
    assert " in 1,000 entries, " in told
    assert "entries" not in (A.sum(axis=0) + 1).explain("plan").splitlines()[-2]


@TWO_WORKERS
def test_after_a_run_the_measured_stands_beside_the_estimated(session: mn.session.Session) -> None:
    x = fresh()
    y = (x + 1) * (x + 2)
    before = y.explain("plan")
    assert "kB made" not in before
    assert "about 24 kB, " in before
    y.persist()
    after = y.explain("plan")
    assert titles(after) == ["plan", "as it ran"]
    assert "about 24 kB, 24 kB made" in after
    assert y.explain("plan") == after  # nothing in it is timed
    timed = y.explain("plan", measured=True)
    assert timed != after
    assert re.search(r"24 kB made, \S+ m?s, = value$", timed)
    assert re.sub(r" made, [\d.]+ m?s", " made", timed) == after


@TWO_WORKERS
def test_a_loop_tells_how_it_ran(session: mn.session.Session) -> None:
    x, _ = mn.iterate(lambda s: s / 2 + 1, fresh(), max_iterations=5)
    x.compute()
    told = x.explain("plan").partition("as it ran")[2]
    assert "map divide add " in told
    assert "(3000,) float64, 2 blocks on 2 workers, 2 tasks, about 24 kB, 24 kB made" in told


def test_measures_are_bounded_and_hold_no_expression() -> None:
    measures = Measures()
    plan = lower([(mn.ones(4) + 1).expression], (), {}, TWO)
    (stage,), (task,) = plan.stages, plan.tasks
    for number in range(2 * MOST_RUNS):
        timed = [TaskTimed(task.key, "map", 0, 1.0, 3, 12, number)]
        measures.note(plan.stages, timed, plan.outputs, plan.tasks)
    assert len(measures._runs) == MOST_RUNS
    assert measures.of(stage).num_bytes == 2 * MOST_RUNS - 1
    assert measures.without_seconds().of(stage).seconds is None
    big = [TaskTimed(f"{place}", "map", 0, 1.0, 3, 12, 8) for place in range(30_000)]
    measures.note(plan.stages, big, plan.outputs, plan.tasks)
    assert len(measures._runs) == 1
    assert measures.of(stage) is None
    for stage in measures._runs[0].stages:
        assert not any(isinstance(value, Expr) for value in stage)


@TWO_WORKERS
def test_the_work_of_explaining_grows_as_the_operations_do(session: mn.session.Session) -> None:
    def calls_of(num_operations: int) -> int:
        x = fresh()
        with cProfile.Profile() as profile:
            y = x
            for number in range(num_operations // 2):
                y = y * x + float(number % 7)
            text = y.explain()
        assert f"{num_operations:,} functions in 3 buffers" in text
        assert "more ..." in text
        return int(pstats.Stats(profile).total_calls)

    calls_of(5000)  # what is imported once
    assert calls_of(5000) < 5.5 * calls_of(1000)


def pictured(*arrays: mn.DistArray, stage: str = "plan") -> tuple[str, str]:
    picture = mn.visualize(*arrays, stage=stage)
    tree = ElementTree.fromstring(picture._repr_mimebundle_()["text/html"])
    return picture.text, " / ".join(one.text for one in tree.iter("text"))


@TWO_WORKERS
def test_a_picture_shows_any_stage(session: mn.session.Session) -> None:
    x, M = fresh(40), mn.asarray(np.random.default_rng().random((40, 40)), blocks=2)
    y = M @ x
    z = y * y + 1
    for stage in ("place", *(one for one in stage_names() if one != "place")):
        text, drawn = pictured(z, y, stage=stage)
        assert "= value 0" in text
        assert "= value 1" in drawn
        assert "used 2 times" in drawn or stage in ("plan", "place")
    assert text.splitlines()[0] == "the plan"
    assert "(40,) float64 / 2 blocks on 2 workers, 2 tasks / about 320 B / = value 0" in drawn
    y.persist()
    text, drawn = pictured(z + 1)
    assert "stored on workers" in drawn
    assert "value is there already" in drawn
    assert mn.visualize(z + 1).svg == mn.visualize(z + 1).svg


@TWO_WORKERS
def test_a_picture_of_a_loop_has_its_body_in_a_box(session: mn.session.Session) -> None:
    x, _ = mn.iterate(lambda s: s / 2 + 1, fresh(), until=lambda a, b: abs(a - b).sum() < 1, max_iterations=5)
    text, drawn = pictured(x, stage="recorded")
    assert "loop or branch" in drawn
    assert "each iteration of e" in drawn
    assert "= next state 0" in drawn
    assert "= until" in text
    text, drawn = pictured(x)
    assert "each iteration of loop e" in drawn
    assert "map divide add" in drawn
    assert "state 0" in drawn
    other = mn.cond(x.sum() > 1, lambda: x * 2, lambda: x * 3)
    assert "where it is true" in pictured(other)[1]
    assert ", else" in pictured(other, stage="recorded")[1]


@TWO_WORKERS
def test_a_picture_needs_something_to_draw(session: mn.session.Session) -> None:
    with pytest.raises(OptionError, match="at least one array"):
        mn.visualize()
    with pytest.raises(LoopBodyError):
        mn.iterate(lambda s: mn.visualize(s), mn.ones(3), max_iterations=2)


def test_a_report_gives_the_text_of_its_plans_though_it_lets_go_of_them() -> None:
    asked: list[str] = []

    def text_of(name: str) -> str:
        asked.append(name)
        return f"text of {name}"

    texts = (partial(text_of, "plan"), partial(text_of, "loop"), partial(text_of, "loop"))
    report = RunReport(total((), (), 0, 0, {}), (), texts)
    assert asked == []  # a cell that shows nothing pays for no text
    assert report.plan_text() == "text of plan\ntext of loop"
    (bare,) = report.without_plans().plan_texts
    assert bare() == report.plan_text()
    assert bare not in texts
