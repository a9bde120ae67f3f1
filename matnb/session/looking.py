"""Looking at expressions before and after they ran: explained as text, and drawn; nothing is computed."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass

from matnb.backend.store import Store
from matnb.errors import OptionError
from matnb.lazy.control import Cond, Loop
from matnb.lazy.expr import Expr
from matnb.lazy.passes import PASSES, stages
from matnb.lazy.traverse import topological
from matnb.pictures.graph import GraphFacts, PanelFacts
from matnb.pictures.picture import Picture
from matnb.plan.drawing import Drawing
from matnb.plan.explain import Listing, explain_expressions, explain_made, explain_plan
from matnb.plan.explain_control import explain_bodies, explain_control
from matnb.plan.looping import ControlPlan, plan_control, starts_inside
from matnb.plan.measured import Measures
from matnb.plan.plan import Plan, Stored
from matnb.session.looping import missing_results
from matnb.session.planning import Planner

RECORDED, PLAN = "recorded", "plan"


def stage_names() -> tuple[str, ...]:
    """Return the stages that can be looked at, in their order."""
    return (RECORDED, *(listed.name for listed in PASSES), PLAN)


@dataclass(frozen=True)
class _Planned:
    # A loop or branch: what runs before it, what its inputs are called there, and how it runs itself.
    node: Loop | Cond
    before: Plan
    names: Mapping[Expr, str]
    plan: ControlPlan


class Looker:
    """Tells how expressions are computed.

    Parameters
    ----------
    planner, store
        Of the session.
    measures
        Of its last runs.
    remembered
        Expressions whose values are in this process.
    """

    def __init__(
        self, planner: Planner, store: Store, measures: Measures, remembered: Container[Expr]
    ) -> None:
        self._planner, self._store, self._measures, self._remembered = planner, store, measures, remembered

    def explain(self, roots: Mapping[str, Expr], stage: str | None = None) -> str:
        """Return how expressions are computed: as recorded, after each pass, and the plan.

        Parameters
        ----------
        roots
            Named expressions.
        stage
            The only one of :func:`stage_names` to tell of.

        Raises
        ------
        OptionError
            For a stage that there is not; it names those there are.
        """
        _check(stage)
        self._planner.drop_dead()
        known = self._store.find(topological(roots.values(), self._store))
        parts: list[str] = []
        if stage in (None, RECORDED):
            parts += [RECORDED, explain_expressions(roots, known, self._remembered)]
        passed: Mapping[str, Expr] | None = None
        if stage not in (RECORDED, PLAN):
            before = dict(roots)
            for name, after in stages(roots, known):
                if stage in (None, name):
                    if all(after[one] is before[one] for one in roots):
                        parts.append(f"after {name}: no change")
                    else:
                        parts += [f"after {name}", explain_expressions(after, known, self._remembered)]
                before = passed = after
        if stage in (None, PLAN):
            parts += self._explain_plan(roots, known, passed)
        return "\n".join(parts)

    def _explain_plan(
        self, roots: Mapping[str, Expr], known: Mapping[Expr, Stored], passed: Mapping[str, Expr] | None
    ) -> list[str]:
        parts: list[str] = []
        listing, num_stages = Listing(), 0
        _, called = listing.of(roots, known)
        roots = self._to_run(roots)
        if not roots:
            return [PLAN, "  nothing to run: the value is remembered"]
        if passed is not None:
            passed = {name: passed[name] for name in roots}
        controls, made = self._controls(roots, known, called)
        for one in controls:
            name = _name_of(one.node, called)
            if one.before.stages:
                parts += [f"before {name}", explain_plan(one.before, one.names, num_stages, self._measures)]
                num_stages += len(one.before.stages)
            parts += explain_bodies(one.node, called, listing)
            parts += [f"plan of {name}", *explain_control(one.plan, num_stages, self._measures)]
            num_stages += len(one.plan.stages)
        plan, optimized = self._planner.plan(roots, made, None if controls else passed)
        if plan.stages or not parts:
            names = {optimized[node]: name for name, node in roots.items()}
            parts += [PLAN, explain_plan(plan, names, num_stages, self._measures)]
        if not plan.stages and not controls:
            ran = dict.fromkeys(pair for node in roots.values() for pair in self._measures.made(node))
            if ran:
                parts += ["as it ran", *explain_made(list(ran))]
        return parts

    def _to_run(self, roots: Mapping[str, Expr]) -> dict[str, Expr]:
        return {
            name: node for name, node in roots.items() if node in self._store or node not in self._remembered
        }

    def _controls(
        self, roots: Mapping[str, Expr], known: Mapping[Expr, Stored], called: Mapping[Expr, str]
    ) -> tuple[list[_Planned], dict[Expr, Stored]]:
        # How the loops and branches below some roots would run, and the arrays they would give.
        made: dict[Expr, Stored] = {}
        controls = []
        order = topological(roots.values(), known)
        for node in order:
            if not isinstance(node, Loop | Cond) or not (wanted := missing_results(node, order, self._store)):
                continue
            inputs = {str(place): one for place, one in enumerate(node.inputs) if not starts_inside(one)}
            before, after = self._planner.plan(inputs, made)
            found = {**before.reused, **before.outputs, **made}
            found.update(self._store.find(after.values()))
            stored = {one: found[after[one]] for one in inputs.values()}
            plan = plan_control(node, stored, self._planner.workers(), wanted)
            made.update(plan.outputs)
            names = {after[one]: called[one] for one in inputs.values()}
            controls.append(_Planned(node, before, names, plan))
        return controls, made

    def picture(self, roots: Mapping[str, Expr], stage: str = PLAN) -> Picture:
        """Return one of the stages as a picture; arguments and errors as of :meth:`explain`."""
        _check(stage)
        self._planner.drop_dead()
        known = self._store.find(topological(roots.values(), self._store))
        drawing = Drawing(self._remembered, self._measures)
        if stage == PLAN:
            return Picture(GraphFacts("the plan", tuple(self._plan_panels(roots, known, drawing))))
        title, after = "what was recorded", dict(roots)
        if stage != RECORDED:
            title, after = f"expressions after {stage}", dict(stages(roots, known))[stage]
        return Picture(GraphFacts(title, tuple(drawing.expressions(after, known))))

    def _plan_panels(
        self, roots: Mapping[str, Expr], known: Mapping[Expr, Stored], drawing: Drawing
    ) -> Sequence[PanelFacts]:
        _, called = Listing().of(roots, known)
        roots = self._to_run(roots)
        controls, made = self._controls(roots, known, called)
        panels: list[PanelFacts] = []
        for one in controls:
            name = _name_of(one.node, called)
            if one.before.stages:
                panels.append(drawing.plan(f"before {name}", one.before, one.names))
            panels += drawing.control(name, one.node, one.plan, called)
        plan, optimized = self._planner.plan(roots, made)
        if plan.stages or not panels:
            names = {optimized[node]: name for name, node in roots.items()}
            panels.append(drawing.plan("", plan, names, called))
        return panels


def _name_of(node: Loop | Cond, called: Mapping[Expr, str]) -> str:
    return f"{'loop' if isinstance(node, Loop) else 'branch'} {called[node]}"


def _check(stage: str | None) -> None:
    if stage is not None and stage not in stage_names():
        raise OptionError(f"no stage {stage!r}; there are {', '.join(stage_names())}")
