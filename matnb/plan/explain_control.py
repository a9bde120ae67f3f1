"""How a loop or a branch runs, as text: what its bodies compute, and its program by when each part runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from matnb.expr.control import Body, Cond, Loop
from matnb.expr.nodes import Expr
from matnb.pictures.quantities import bytes_text, plural_text
from matnb.plan.explain import Listing, explain_stages
from matnb.plan.looping import ControlPlan
from matnb.plan.measured import MadeStage, Measures
from matnb.program.plan import Stage, Task
from matnb.program.program import Action, Batch, Branch, Iterate, batches

_Stage = TypeVar("_Stage", Stage, MadeStage)


@dataclass(frozen=True)
class NamedBody:
    """A body, and what is said of it.

    Attributes
    ----------
    title
        When it runs.
    roots
        What it gives, by names.
    names
        What its variables are called.
    outer
        What its variables are called in a loop inside, which has states of its own.
    """

    title: str
    roots: Mapping[str, Expr]
    names: Mapping[Expr, str]
    outer: Mapping[Expr, str]


def bodies_of(node: Loop | Cond, called: Mapping[Expr, str]) -> list[NamedBody]:
    """Return the bodies of a loop or a branch; ``called`` has its name, and those of all that it is given."""
    name = called[node]
    names: dict[Expr, str] = {
        variable: called[one]
        for variable, one in zip(node.variables, _inputs(node), strict=True)
        if one is not None
    }
    if isinstance(node, Cond):
        return [
            NamedBody(f"{name}, where it is true", _roots(node.then, "result"), names, names),
            NamedBody(f"{name}, else", _roots(node.otherwise, "result"), names, names),
        ]
    own: dict[Expr, str] = {
        variable: f"state {place}" for place, variable in enumerate(node.variables[: node.num_state])
    }
    own[node.variables[node.num_state]] = "iteration"
    outer = {**names, **{variable: f"{text} of {name}" for variable, text in own.items()}}
    roots = _roots(node.body, "next state")
    return [NamedBody(f"each iteration of {name}", roots, {**names, **own}, outer)]


def _inputs(node: Loop | Cond) -> Sequence[Expr | None]:
    if isinstance(node, Loop):
        return (*(None for _ in node.state), None, *node.given)
    return node.given


def _roots(body: Body, what: str) -> dict[str, Expr]:
    roots = {f"{what} {place}": result for place, result in enumerate(body.results)}
    return roots if body.until is None else {**roots, "until": body.until}


def explain_bodies(node: Loop | Cond, called: Mapping[Expr, str], listing: Listing) -> list[str]:
    """Return what the bodies of a loop or a branch compute, and those of the ones inside.

    Parameters
    ----------
    node
        Of which ``called`` has a name, and for all that it is given.
    listing
        Numbers what is inside.
    """
    lines: list[str] = []
    for body in bodies_of(node, called):
        told, inside = listing.of(body.roots, (), body.names)
        lines += [body.title, *told]
        for one in inside:
            if isinstance(one, Loop | Cond) and one not in body.names:
                lines += explain_bodies(one, {**inside, **body.outer}, listing)
    return lines


@dataclass(frozen=True)
class Told(Generic[_Stage]):
    """Stages of a program that run one after the other, with no control between them.

    Attributes
    ----------
    stages, tasks
        What runs, and the tasks by the keys that stages know.
    read
        Keys of tasks whose values are read afterwards.
    """

    stages: tuple[_Stage, ...]
    tasks: Mapping[str, Task]
    read: frozenset[str]

    def keeps(self, stage: _Stage) -> bool:
        """Tell whether what a stage makes is read afterwards."""
        return not self.read.isdisjoint(stage.tasks)


@dataclass(frozen=True)
class Section(Generic[_Stage]):
    """What of a program runs at the same time; without a title it goes on with the one of its depth above."""

    title: str
    depth: int
    batches: tuple[Told[_Stage], ...]


def sections_of(stages: Sequence[_Stage], actions: Sequence[Action]) -> list[Section[_Stage]]:
    """Return the stages of a program by when they run."""
    waiting = list(stages)
    sections: list[Section[_Stage]] = []

    def told(batch: Batch) -> Told[_Stage]:
        tasks = {_bare(task.key): _renamed(task) for task in batch.tasks}
        found = [one for one in waiting if not tasks.keys().isdisjoint(one.tasks)]
        for one in found:
            waiting.remove(one)
        return Told(tuple(found), tasks, frozenset(map(_bare, batch.results)))

    def write(actions: Sequence[Action], title: str, depth: int) -> None:
        straight: list[Told[_Stage]] = []
        if any(isinstance(action, Batch) for action in actions):
            sections.append(Section(title, depth, ()))
        for action in actions:
            match action:
                case Batch():
                    straight.append(told(action))
                    continue
            if straight:
                sections.append(Section("", depth, tuple(straight)))
                straight = []
            inside = depth + (title != "once")
            match action:
                case Iterate():
                    write(action.body, "each iteration", inside)
                case Branch():
                    write(action.then, "where it is true", inside)
                    write(action.otherwise, "else", inside)
        if straight:
            sections.append(Section("", depth, tuple(straight)))

    write(actions, "once", 1)
    return sections


def _renamed(task: Task) -> Task:
    return replace(task, key=_bare(task.key), inputs=tuple(map(_bare, task.inputs)))


def _bare(key: str) -> str:
    # In a program the name of their body is added to the keys of a stage's tasks.
    return key.split("~", 1)[0]


def explain_control(plan: ControlPlan, first: int = 0, measures: Measures | None = None) -> list[str]:
    """Return the stages of a program by when they run, and what it needs in all.

    Parameters
    ----------
    plan
        Of the loop or branch.
    first
        The number of the first stage.
    measures
        What was measured when the same was made before.
    """
    lines = []
    for section in sections_of(plan.stages, plan.program.actions):
        indent = "  " * section.depth
        if section.title:
            lines.append(f"{indent}{section.title}")
        for batch in section.batches:
            kept = [one.expression for one in batch.stages if batch.keeps(one)]
            told = explain_stages(batch.stages, kept, None, first, batch.tasks, measures)
            lines += [indent + line for line in told]
            first += len(batch.stages)
            if not batch.stages:
                kinds = Counter(task.kind for task in batch.tasks.values())
                words = ", ".join(plural_text(count, f"{kind} task") for kind, count in kinds.items())
                lines.append(f"{indent}        lay arrays out anew: {words}")
    inside = sum(
        len(batch.tasks)
        for action in plan.program.actions
        if isinstance(action, Iterate)
        for batch in batches(action.body)
    )
    often = f", {inside:,} in each iteration" if inside else ""
    workers = plural_text(len(plan.peaks), "worker")
    return [
        *lines,
        f"  {plural_text(plan.num_tasks, 'task')}{often}; needs at most about "
        f"{bytes_text(sum(plan.peaks.values()))} more on {workers}",
    ]
