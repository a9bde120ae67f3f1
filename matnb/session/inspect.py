"""Explains and draws expressions before and after they ran; computes nothing."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from matnb.backend.store import Store
from matnb.blocks.grid import whole
from matnb.blocks.layout import Layout
from matnb.errors import OptionError, suggestion
from matnb.expr.control import Cond, Loop
from matnb.expr.nodes import Expr
from matnb.expr.traverse import topological
from matnb.passes import PASSES, stages, traced
from matnb.pictures.escaping import LONGEST_NAME, shortened
from matnb.pictures.facts import Change, GraphFacts, PanelFacts
from matnb.pictures.graph import listed
from matnb.pictures.picture import Picture
from matnb.pictures.quantities import count_text, plural_text
from matnb.plan.explain import LAST_VALUE, ExpressionGraph, changes_of
from matnb.plan.explain_plans import PlanGraph, nothing_to_run
from matnb.plan.looping import ControlPlan, plan_control, starts_inside
from matnb.plan.measured import MadeRun, Measures
from matnb.program.plan import Plan, StoredArray
from matnb.session import naming
from matnb.session.planning import Planner
from matnb.session.run import missing_results

RECORDED, OPTIMIZED, PLAN, PLACE = "recorded", "optimized", "plan", "place"
_IS_THERE = "nothing to run: the value is there; this is how it was made"
_INTERPRETED = (
    "computed by the interpreter: NumPy and SciPy in this process, without workers and so without a plan"
)


def stage_names() -> tuple[str, ...]:
    """Return the stages that can be looked at, in their order."""
    return (RECORDED, *(listed.name for listed in PASSES), PLAN, PLACE)


@dataclass(frozen=True)
class _NodePlan:
    # A loop or branch: what runs before it, what its inputs are called there, and how it runs itself.
    node: Loop | Cond
    before: Plan
    names: Mapping[Expr, str]
    plan: ControlPlan


class Looker:
    """Explains how expressions are computed.

    Parameters
    ----------
    measures
        Of its last runs.
    remembered
        Expressions whose values are in this process.
    interprets
        Whether values are made in this process, so that there is no plan.
    """

    def __init__(
        self,
        planner: Planner,
        store: Store,
        measures: Measures,
        remembered: Container[Expr],
        interprets: bool = False,
    ) -> None:
        self._interprets = interprets
        self._planner, self._store, self._measures, self._remembered = planner, store, measures, remembered

    def _graph(self, there: Container[Expr] = ()) -> ExpressionGraph:
        return ExpressionGraph(self._remembered, there, naming.called)

    def _made_again(self, roots: Mapping[str, Expr]) -> list[str]:
        # That arrays which handles stand for went to make room, and are made once more.
        needed = topological(roots.values(), self._store)
        count = sum(self._store.gave_way(node) for node in needed)
        return [f"  made again: {plural_text(count, 'array')} that gave way to others"] if count else []

    def explain(self, roots: Mapping[str, Expr], stage: str | None = None) -> str:
        """Return how expressions are computed: as recorded, after each pass, and the plan.

        Parameters
        ----------
        roots
            Named expressions.
        stage
            The only one of :func:`stage_names` to show.

        Raises
        ------
        OptionError
            For a stage that there is not; it names those there are.
        """
        _check(stage)
        self._planner.drop_dead()
        roots = _shortly_named(roots)
        known = self._store.find(topological(roots.values(), self._store))
        lines: list[str] = []
        if stage in (None, RECORDED):
            lines += [RECORDED, *listed(self._graph().panels(roots, known))]
        if self._interprets and stage in (None, PLAN, PLACE):
            return "\n".join([*lines, _INTERPRETED])
        passed: Mapping[str, Expr] | None = None
        if stage not in (RECORDED, PLAN, PLACE):
            before = dict(roots)
            for name, after in stages(roots, known):
                if stage in (None, name):
                    if all(after[one] is before[one] for one in roots):
                        lines.append(f"after {name}: no change")
                    else:
                        lines.append(f"after {name}")
                        lines += listed(self._graph().panels(after, known))
                before = passed = after
        if stage in (None, PLAN, PLACE):
            plan = self._plan_graph(roots, known, passed, stage == PLACE)
            lines += [
                stage or PLAN,
                *([f"  {plan.title}"] if plan.title == _IS_THERE else []),
                *self._made_again(roots),
                *listed(plan.panels),
            ]
        return "\n".join(lines)

    def layout(self, node: Expr) -> Layout:
        """Return how an expression would lie if it were computed now; the interpreter makes it whole."""
        if self._interprets:
            return Layout(whole(node.shape), (0,))
        self._planner.drop_dead()
        roots = {"value": node}
        known = self._store.find(topological([node], self._store))
        _, made = self._controls(roots, known, ExpressionGraph().names(roots, known))
        plan, optimized = self._planner.plan(roots, made)
        after = optimized[node]
        if (output := plan.outputs.get(after)) is not None:
            return output.layout
        # The passes made it what is there already, such as the same selection without a step that they drop.
        return {**self._store.find([after]), **made}[after].layout

    def _to_run(self, roots: Mapping[str, Expr]) -> dict[str, Expr]:
        return {
            name: node for name, node in roots.items() if node in self._store or node not in self._remembered
        }

    def _controls(
        self, roots: Mapping[str, Expr], known: Mapping[Expr, StoredArray], called: Mapping[Expr, str]
    ) -> tuple[list[_NodePlan], dict[Expr, StoredArray]]:
        # How the loops and branches below some roots would run, and the arrays they would give.
        made: dict[Expr, StoredArray] = {}
        controls: list[_NodePlan] = []
        order = topological(roots.values(), known)
        for node in order:
            if not isinstance(node, Loop | Cond) or not (wanted := missing_results(node, order, self._store)):
                continue
            inputs = {str(place): one for place, one in enumerate(node.inputs) if not starts_inside(one)}
            before, after = self._planner.plan(inputs, made)
            found = {**_as_stored(before, len(controls)), **made}
            found.update(self._store.find((*before.reused, *after.values())))
            stored = {one: found[after[one]] for one in inputs.values()}
            plan = plan_control(node, stored, self._planner.workers(), wanted)
            made.update(_as_stored(plan, len(controls)))
            names = {after[one]: called[one] for one in inputs.values()}
            controls.append(_NodePlan(node, before, names, plan))
        return controls, made

    def picture(self, roots: Mapping[str, Expr], stage: str | None = None) -> Picture:
        """Return one of the stages as a picture; arguments and errors as of :meth:`explain`.

        Without a stage it is the plan, with what was recorded and what the passes made of it to compare.
        """
        _check(stage)
        self._planner.drop_dead()
        known = self._store.find(topological(roots.values(), self._store))
        # What was asked for is drawn with what it is made from, though it may be there.
        there = [node for node in roots.values() if node in known]
        above = {node: array for node, array in known.items() if node not in there}
        if there:
            above.update(self._store.find(_below(roots.values(), there, self._store)))
            # The passes hide what is known, but what a loop gives is looked up in the loop.
            above = {node: array for node, array in above.items() if not isinstance(node, Loop | Cond)}
        if stage in (PLAN, PLACE):
            return Picture(self._plan_graph(roots, known, places=stage == PLACE))
        after = stages(roots, above)
        if stage == RECORDED:
            return Picture(self._expressions("what was recorded", roots, above, there))
        if stage is not None:
            return Picture(self._expressions(f"expressions after {stage}", dict(after)[stage], above, there))
        return self._compared(roots, known, above, there, after)

    def _compared(
        self,
        roots: Mapping[str, Expr],
        known: Mapping[Expr, StoredArray],
        above: Mapping[Expr, StoredArray],
        there: Sequence[Expr],
        after: Sequence[tuple[str, Mapping[str, Expr]]],
    ) -> Picture:
        plan = self._plan_graph(roots, known)
        optimized, origins = traced(roots, above)
        before = topological(roots.values(), above)
        changes = changes_of(before, topological(optimized.values(), above), origins)
        graphs = [(RECORDED, self._expressions("what was recorded", roots, above, there, changes))]
        last, changed = roots, []
        for name, passed in after:
            if any(passed[one] is not last[one] for one in roots):
                changed.append(name)
                graphs.append((name, self._expressions(f"expressions after {name}", passed, above, there)))
            last = passed
        if not changes:
            graphs = graphs[:1]  # only the order of operands is another
        else:
            title = f"expressions after all passes; changed by {', '.join(changed)}"
            graphs.append((OPTIMIZED, self._expressions(title, optimized, above, there, changes)))
        graphs.append((PLAN, plan))
        num_stages = sum(node.look == "work" for panel in plan.panels for node in panel.nodes)
        words = [f"{plural_text(_num_operations(before, above), 'operation')} recorded"]
        if changes:
            num_after = _num_operations(topological(optimized.values(), above), above)
            words.append(f"{count_text(num_after)} after the passes ({', '.join(changed)})")
        else:
            words.append("the passes change " + ("their order only" if changed else "nothing"))
        words.append(f"{plural_text(num_stages, 'stage')} of computing")
        return Picture(plan, tuple(graphs), (RECORDED, OPTIMIZED, PLAN), "; ".join(words))

    def _expressions(
        self,
        title: str,
        roots: Mapping[str, Expr],
        known: Mapping[Expr, StoredArray],
        there: Sequence[Expr],
        changes: Mapping[Expr, Change] | None = None,
    ) -> GraphFacts:
        panels = self._graph(there).panels(roots, known, changes)
        return GraphFacts(title, tuple(panels))

    def _plan_graph(
        self,
        roots: Mapping[str, Expr],
        known: Mapping[Expr, StoredArray],
        passed: Mapping[str, Expr] | None = None,
        places: bool = False,
    ) -> GraphFacts:
        names = ExpressionGraph().names(roots, known)
        graph = PlanGraph(self._measures, naming.called, places)
        wanted = self._to_run(roots)
        if passed is not None:
            passed = {name: passed[name] for name in wanted}
        controls, made = self._controls(wanted, known, names)
        panels: list[PanelFacts] = []
        for one in controls:
            name = _name_of(one.node, names)
            if one.before.stages:
                panels.append(graph.plan(f"before {name}", one.before, one.names))
            panels += graph.control(name, one.node, one.plan, names)
        plan, optimized = self._planner.plan(wanted, made, None if controls else passed)
        if plan.stages:
            called = {optimized[node]: name for name, node in wanted.items()}
            panels.append(graph.plan("afterwards" if panels else "", plan, called, names))
        if panels:
            return graph.facts("the plan", panels)
        ran = {name: run for name, node in roots.items() if (run := self._measures.run_of(node))}
        several = len({id(run) for run in ran.values()}) > 1
        seen: list[MadeRun] = []
        for name, run in ran.items():
            if all(run is not one for one in seen):
                seen.append(run)
                made_as = {
                    slot: name for name, node in roots.items() for slot in run.made.get(node.digest, ())
                }
                panels += graph.ran(f"as it ran{f' for {name}' if several else ''}", run, name, made_as)
        if panels:
            return graph.facts(_IS_THERE, panels, is_over=True)
        reason = "all of it is on the workers" if wanted else "the value is remembered"
        return GraphFacts("the plan", (nothing_to_run(reason),))


def _as_stored(plan: Plan | ControlPlan, number: int) -> dict[Expr, StoredArray]:
    # The arrays that a plan will leave, under names that no other has.
    return {
        node: replace(array, keys=tuple((type(plan), number, slot) for slot in array.keys))
        for node, array in plan.outputs.items()
    }


def _below(roots: Iterable[Expr], there: Sequence[Expr], stored: Container[Expr]) -> list[Expr]:
    # What is on the way to roots when some of what is stored is looked into.
    order = topological(roots, ())
    reached: set[Expr] = set(roots)
    for node in reversed(order):
        if node in reached and (node in there or node not in stored):
            reached.update(node.operands)
    return [node for node in order if node in reached and node not in there]


def _num_operations(order: Iterable[Expr], stored: Container[Expr]) -> int:
    return sum(bool(node.operands) and node not in stored for node in order)


def _name_of(node: Loop | Cond, called: Mapping[Expr, str]) -> str:
    return f"{'loop' if isinstance(node, Loop) else 'branch'} {called[node]}"


def _shortly_named(roots: Mapping[str, Expr]) -> dict[str, Expr]:
    found: dict[str, Expr] = {}
    for name, node in roots.items():
        known = (naming.line_of(node) or "last value") if name == LAST_VALUE else name
        short = shortened(known, LONGEST_NAME)
        found[short if short not in found else f"{short}#{len(found)}"] = node
    return found


def _check(stage: str | None) -> None:
    if stage is not None and stage not in stage_names():
        raise OptionError(f"no stage {stage!r}; {suggestion(stage, stage_names())}")
