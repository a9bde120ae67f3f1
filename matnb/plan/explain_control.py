"""How a loop or a branch runs, as text: what its bodies compute, and its program by when each part runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from matnb.lazy.control import Body, Cond, Loop
from matnb.lazy.expr import Expr
from matnb.pictures.quantities import bytes_text, plural_text
from matnb.plan.explain import Listing, explain_stages, shortened
from matnb.plan.looping import ControlPlan
from matnb.plan.plan import Stage
from matnb.plan.program import Action, Batch, Branch, Repeat, batches


def explain_bodies(node: Loop | Cond, called: Mapping[Expr, str], listing: Listing) -> list[str]:
    """Return what the bodies of a loop or a branch compute, and those of the ones inside.

    Parameters
    ----------
    node
        Of which ``called`` has a name, and for all that it is given.
    listing
        Numbers what is inside.
    """
    name = called[node]
    names: dict[Expr, str] = {
        variable: called[one]
        for variable, one in zip(node.variables, _inputs(node), strict=True)
        if one is not None
    }
    if isinstance(node, Cond):
        outer = dict(names)
        return [
            *_explain_body(f"{name}, where it is true", node.then, "result", names, listing, outer),
            *_explain_body(f"{name}, else", node.otherwise, "result", names, listing, outer),
        ]
    own: dict[Expr, str] = {
        variable: f"state {place}" for place, variable in enumerate(node.variables[: node.num_state])
    }
    own[node.variables[node.num_state]] = "iteration"
    outer = {**names, **{variable: f"{text} of {name}" for variable, text in own.items()}}
    return _explain_body(
        f"each iteration of {name}", node.body, "next state", {**names, **own}, listing, outer
    )


def _inputs(node: Loop | Cond) -> Sequence[Expr | None]:
    if isinstance(node, Loop):
        return (*(None for _ in node.state), None, *node.given)
    return node.given


def _explain_body(
    title: str,
    body: Body,
    what: str,
    names: Mapping[Expr, str],
    listing: Listing,
    outer: Mapping[Expr, str],
) -> list[str]:
    # In a loop inside, a state of this one is told from its own by what is in ``outer``.
    roots = {f"{what} {place}": result for place, result in enumerate(body.results)}
    if body.until is not None:
        roots["until"] = body.until
    lines, called = listing.of(roots, (), names)
    lines = [title, *shortened(lines)]
    for one in called:
        if isinstance(one, Loop | Cond) and one not in names:
            lines += explain_bodies(one, {**called, **outer}, listing)
    return lines


def explain_control(plan: ControlPlan, first: int = 0) -> list[str]:
    """Return the stages of a program by when they run, and what it needs in all.

    ``first`` is the number of the first stage.
    """
    writer = _ProgramText(plan.stages, first)
    writer.write(plan.program.actions, "once")
    inside = sum(
        len(batch.tasks)
        for action in plan.program.actions
        if isinstance(action, Repeat)
        for batch in batches(action.body)
    )
    often = f", {inside:,} in each iteration" if inside else ""
    workers = plural_text(len(plan.peaks), "worker")
    return [
        *writer.lines,
        f"  {plural_text(plan.num_tasks, 'task')}{often}; needs at most about "
        f"{bytes_text(sum(plan.peaks.values()))} more on {workers}",
    ]


class _ProgramText:
    """Writes the stages of actions, numbered throughout."""

    def __init__(self, stages: Sequence[Stage], first: int) -> None:
        self._stages = list(stages)
        self._number = first
        self.lines: list[str] = []

    def write(self, actions: Sequence[Action], title: str, depth: int = 1) -> None:
        """Write what is done one after the other, under a title."""
        if any(isinstance(action, Batch) for action in actions):
            self.lines.append(f"{'  ' * depth}{title}")
        for action in actions:
            match action:
                case Batch():
                    self._batch(action, "  " * depth)
                case Repeat():
                    self.write(action.body, "each iteration", depth + (title != "once"))
                case Branch():
                    self.write(action.then, "where it is true", depth + (title != "once"))
                    self.write(action.otherwise, "else", depth + (title != "once"))

    def _batch(self, batch: Batch, indent: str) -> None:
        # In a program the name of their body is added to the keys of a stage's tasks.
        kinds = {task.key.split("~", 1)[0]: task.kind for task in batch.tasks}
        read = {key.split("~", 1)[0] for key in batch.results}
        stages = [one for one in self._stages if not kinds.keys().isdisjoint(one.tasks)]
        kept = [one.expression for one in stages if read.intersection(one.tasks)]
        for one in stages:
            self._stages.remove(one)
        self.lines += [indent + line for line in explain_stages(stages, kept, first=self._number)]
        self._number += len(stages)
        if not stages:
            told = ", ".join(
                plural_text(count, f"{kind} task") for kind, count in Counter(kinds.values()).items()
            )
            self.lines.append(f"{indent}        lay arrays out anew: {told}")
