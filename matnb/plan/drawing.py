"""Expressions and plans as the graphs that pictures draw: boxes with what is told of each in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Mapping, Sequence

from matnb.lazy.control import Cond, Loop, Variable
from matnb.lazy.expr import Elementwise, Expr, Literal
from matnb.lazy.traverse import consumers, topological
from matnb.pictures.graph import Look, NodeFacts, PanelFacts
from matnb.pictures.quantities import bytes_text, plural_text
from matnb.plan.counting import tasks_by_stage
from matnb.plan.estimate import estimate_bytes, estimate_entries
from matnb.plan.explain import (
    Listing,
    blocks_text,
    describe,
    estimated_words,
    kind_of,
    marks_of,
    measured_words,
    shared_words,
    shortened_words,
)
from matnb.plan.explain_control import NamedBody, bodies_of, sections_of
from matnb.plan.fuse import is_source
from matnb.plan.looping import ControlPlan, starts_inside
from matnb.plan.measured import Measures
from matnb.plan.plan import Plan, Stage, Stored, Task


class Drawing:
    """Writes the panels of one picture, in which a name means the same throughout.

    Parameters
    ----------
    remembered
        Expressions whose values are in this process.
    measures
        What was measured of stages that ran.
    """

    def __init__(self, remembered: Container[Expr], measures: Measures) -> None:
        self._remembered, self._measures = remembered, measures
        self._listing = Listing()
        self._num_stages = 0

    # expressions

    def expressions(self, roots: Mapping[str, Expr], stored: Mapping[Expr, Stored]) -> list[PanelFacts]:
        """Return a panel for named expressions, and one for each body of the loops and branches there."""
        _, called = self._listing.of(roots, stored)
        order = topological(roots.values(), stored)
        entries = estimate_entries(roots.values(), stored)
        sizes = {node: f"about {bytes_text(estimate_bytes(node, entries[node]))}" for node in order}
        for node in stored:
            if (known := stored[node].block_bytes) and node in sizes:
                sizes[node] = bytes_text(sum(known))
        panels = [PanelFacts("", self._boxes(roots, stored, called, {}, sizes))]
        for node in order:
            if isinstance(node, Loop | Cond) and node not in stored:
                panels += self.bodies(node, called)
        return panels

    def bodies(self, node: Loop | Cond, called: Mapping[Expr, str]) -> list[PanelFacts]:
        """Return a panel for each body of a loop or branch, and those of the ones inside."""
        panels: list[PanelFacts] = []
        for body in bodies_of(node, called):
            _, inside = self._listing.of(body.roots, (), body.names)
            panels.append(PanelFacts(body.title, self._body_boxes(body, inside)))
            for one in inside:
                if isinstance(one, Loop | Cond) and one not in body.names:
                    panels += self.bodies(one, {**inside, **body.outer})
        return panels

    def _body_boxes(self, body: NamedBody, called: Mapping[Expr, str]) -> tuple[NodeFacts, ...]:
        return self._boxes(body.roots, {}, called, body.names, {})

    def _boxes(
        self,
        roots: Mapping[str, Expr],
        stored: Mapping[Expr, Stored],
        called: Mapping[Expr, str],
        names: Mapping[Expr, str],
        sizes: Mapping[Expr, str],
    ) -> tuple[NodeFacts, ...]:
        ends = _ends(roots)
        order = topological(roots.values(), stored)
        users = consumers(order, stored)
        # Numbers are told where they are read, and get no box.
        numbers: dict[Expr, str] = {
            node: str(node.value)
            for node in order
            if isinstance(node, Literal) and node.size == 1 and node not in ends
        }
        called = {**called, **numbers}
        order = [node for node in order if node not in numbers]
        places = {node: place for place, node in enumerate(order)}
        boxes = []
        for node in order:
            below = () if node in stored else node.operands
            what = describe(node, tuple("..." if node in stored else called[one] for one in node.operands))
            marks = [*marks_of(node, len(users[node]), stored, self._remembered), *ends.get(node, [])]
            known = node in stored or node in self._remembered
            size = [sizes[node]] if node in sizes else []
            boxes.append(
                NodeFacts(
                    name=called[node],
                    what="" if node in names else what,
                    details=(kind_of(node), *size, *marks),
                    operands=tuple(places[one] for one in below if one in places),
                    look="known" if known else _look_of(node),
                    is_shared=len(users[node]) > 1,
                    is_result=node in ends,
                    function=node.name if isinstance(node, Elementwise) and not known else "",
                )
            )
        return tuple(boxes)

    # plans

    def plan(
        self,
        title: str,
        plan: Plan,
        names: Mapping[Expr, str],
        called: Mapping[Expr, str] | None = None,
    ) -> PanelFacts:
        """Return a panel of a plan's stages and of the arrays that they read.

        Parameters
        ----------
        title
            Of the panel.
        plan
            What would run.
        names
            What a person calls some arrays.
        called
            What the expressions are called elsewhere, for those that are there already.
        """
        groups = tasks_by_stage(plan.stages, plan.tasks)
        read = {node: (called or {}).get(node, names.get(node, "")) for node in plan.reused}
        if not plan.stages and not plan.outputs:
            there = NodeFacts(
                "", "nothing to run", ("all of it is on the workers",), (), "known", False, True
            )
            return PanelFacts(title, (there,))
        return PanelFacts(
            title, self._stages(plan.stages, groups, read, set(plan.outputs), names, plan.reused)
        )

    def control(
        self, name: str, node: Loop | Cond, plan: ControlPlan, called: Mapping[Expr, str]
    ) -> list[PanelFacts]:
        """Return the panels of a loop or branch: what runs once, and what in each iteration or on a side."""
        panels = []
        title, names = "", _variables(node, called)
        for section in sections_of(plan):
            title = section.title or title
            stages = [stage for batch in section.batches for stage in batch.stages]
            if not stages:
                continue
            kept = {one for batch in section.batches for one in batch.kept}
            tasks = {key: task for batch in section.batches for key, task in batch.tasks.items()}
            groups = tasks_by_stage(stages, tasks.values())
            words = f"{title} before {name}" if title == "once" else f"{title} of {name}"
            panels.append(PanelFacts(words, self._stages(stages, groups, names, kept, {}, {})))
        return panels

    def _stages(
        self,
        stages: Sequence[Stage],
        groups: Sequence[Sequence[Task]],
        read: Mapping[Expr, str],
        kept: Container[Expr],
        names: Mapping[Expr, str],
        stored: Mapping[Expr, Stored],
    ) -> tuple[NodeFacts, ...]:
        blocks = {key: node for node, array in stored.items() for key in array.keys}
        found = [
            _there(group, blocks) if stored else _read_by(stage, stages, read)
            for stage, group in zip(stages, groups, strict=True)
        ]
        inputs = [node for node in read if any(node in ones for ones in found)]
        makers = {key: len(inputs) + number for number, stage in enumerate(stages) for key in stage.tasks}
        operands = []
        for number, (group, ones) in enumerate(zip(groups, found, strict=True), start=len(inputs)):
            made = {makers[key] for task in group for key in task.inputs if key in makers} - {number}
            operands.append((*(inputs.index(one) for one in ones), *sorted(made)))
        num_users = Counter(one for ones in operands for one in ones)
        # Shares of reductions made in one pass are a stage before that of the first one's value.
        last = {stage.expression: number for number, stage in enumerate(stages, start=len(inputs))}
        boxes = [
            _input_box(node, read[node], num_users[place], stored.get(node))
            for place, node in enumerate(inputs)
        ]
        for place, (stage, group) in enumerate(zip(stages, groups, strict=True), start=len(inputs)):
            node = stage.expression
            is_value = last[node] == place
            boxes.append(
                NodeFacts(
                    name=f"s{self._num_stages}",
                    what=f"{stage.kind} {shortened_words(stage.detail)}".strip(),
                    details=self._stage_details(
                        stage, group, names if is_value else {}, num_users[place], is_value and node in kept
                    ),
                    operands=operands[place - len(inputs)],
                    look="given" if is_source(node) or stage.kind in ("data", "load") else "work",
                    is_shared=num_users[place] > 1,
                    is_result=is_value and node in names,
                )
            )
            self._num_stages += 1
        return tuple(boxes)

    def _stage_details(
        self, stage: Stage, tasks: Sequence[Task], names: Mapping[Expr, str], num_users: int, is_kept: bool
    ) -> tuple[str, ...]:
        known = self._measures.of(stage.tasks)
        size = [estimated_words(stage), *measured_words(known)]
        runs = f"{blocks_text(stage.layout)}, {plural_text(len(tasks), 'task')}"
        details = [kind_of(stage.expression), runs, ", ".join(size)]
        details += shared_words(tasks)
        if num_users > 1:
            details.append(f"used {num_users} times")
        if stage.expression in names:
            details.append(f"= {names[stage.expression]}")
        elif is_kept:
            details.append("kept")
        return tuple(details)


def _there(tasks: Sequence[Task], blocks: Mapping[str, Expr]) -> list[Expr]:
    # The arrays that were there already and are read.
    return list(dict.fromkeys(blocks[key] for task in tasks for key in task.inputs if key in blocks))


def _read_by(stage: Stage, stages: Sequence[Stage], read: Container[Expr]) -> list[Expr]:
    # The variables below a stage, whose registers have names of their own. Other stages end the walk.
    own = {one.expression for one in stages}
    found: dict[Expr, None] = {}
    seen = set(stage.inside)
    waiting = [one for node in stage.inside for one in node.operands]
    while waiting:
        node = waiting.pop()
        if node in read:
            found[node] = None
        elif node not in seen and node not in own:
            seen.add(node)
            waiting += node.operands
    return list(found)


def _input_box(node: Expr, name: str, num_users: int, stored: Stored | None) -> NodeFacts:
    details = [kind_of(node)]
    if stored is not None:
        details.append(blocks_text(stored.layout))
        if stored.block_bytes:
            details.append(bytes_text(sum(stored.block_bytes)))
        details.append("stored on workers")
    if num_users > 1:
        details.append(f"used {num_users} times")
    what = describe(node, ("...",) * len(node.operands)) if stored is not None else ""
    look: Look = "known" if stored is not None else "given"
    return NodeFacts(name, what, tuple(details), (), look, num_users > 1)


def _variables(node: Loop | Cond, called: Mapping[Expr, str]) -> dict[Expr, str]:
    # What is read in bodies: their variables, and where the program makes or holds what they are given.
    names = {one: called[one] for one in node.inputs if one in called and not starts_inside(one)}
    waiting: list[tuple[Loop | Cond, Mapping[Expr, str]]] = [(node, called)]
    while waiting:
        control, outer = waiting.pop()
        for body in bodies_of(control, outer):
            names = {**body.names, **names}
            inside = {one: name for one, name in body.names.items() if _is_variable(one)}
            for one in topological(body.roots.values()):
                if isinstance(one, Loop | Cond):
                    # Not named where they stand, so that what they are given goes by what it computes.
                    own = {below: inside.get(below, "inside") for below in topological([one])}
                    waiting.append((one, own))
    return names


def _is_variable(node: Expr) -> bool:
    return isinstance(node, Variable)


def _ends(roots: Mapping[str, Expr]) -> dict[Expr, list[str]]:
    ends: dict[Expr, list[str]] = {}
    for name, root in roots.items():
        ends.setdefault(root, []).append(f"= {name}")
    return ends


def _look_of(node: Expr) -> Look:
    if isinstance(node, Loop | Cond):
        return "control"
    return "given" if is_source(node) or isinstance(node, Variable) else "work"
