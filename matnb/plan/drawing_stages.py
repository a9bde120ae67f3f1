"""Plans, and runs that are over, as the graphs that pictures draw: a box for each stage."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from matnb.expr.control import Cond, Loop, Variable
from matnb.expr.nodes import Expr
from matnb.expr.traverse import topological
from matnb.pictures.facts import GraphFacts, Look, NodeFacts, PanelFacts
from matnb.pictures.quantities import bytes_text, count_text, plural_text
from matnb.plan.explain import (
    blocks_text,
    describe,
    estimated_words,
    kind_of,
    measured_words,
    shared_words,
    shortened_words,
)
from matnb.plan.explain_control import bodies_of, sections_of
from matnb.plan.looping import ControlPlan, starts_inside
from matnb.plan.measured import ArrayMeasurement, MadeRun, MadeStage, Measures
from matnb.plan.plan_counts import counts_of, tasks_by_stage
from matnb.program.operators import Cut, Join
from matnb.program.plan import Plan, Stage, Stored, Task
from matnb.program.regions import region_size


@dataclass(frozen=True)
class Surroundings:
    """What the stages of a panel find there.

    Parameters
    ----------
    read
        What arrays that are read are called: variables, or what is on the workers.
    kept, names
        Expressions whose arrays stay, and what a user calls some.
    stored
        Arrays on the workers.
    owners
        Workers of what is there under other keys.
    origins
        Of such keys the expression that is drawn for them.
    """

    read: Mapping[Expr, str]
    kept: Container[Expr]
    names: Mapping[Expr, str] = field(default_factory=dict)
    stored: Mapping[Expr, Stored] = field(default_factory=dict)
    owners: Mapping[str, int] = field(default_factory=dict)
    origins: Mapping[str, Expr] = field(default_factory=dict)


class StageDrawing:
    """Writes the panels of one picture of a plan, in which stages are numbered throughout.

    Parameters
    ----------
    measures
        What was measured of stages that ran.
    """

    def __init__(self, measures: Measures) -> None:
        self._measures = measures
        self._num_stages = 0
        self._bytes: dict[str, float] = {}  # by stage
        self._seconds: dict[str, float] = {}

    def graph(self, title: str, panels: Sequence[PanelFacts], is_over: bool = False) -> GraphFacts:
        """Return a picture of panels that were made here, whose slowest path goes by seconds, or by bytes.

        Of a plan it goes by seconds only where all that computes was measured: else what was not would seem
        to take nothing. Of a run that ``is_over`` what was not measured did not run.
        """
        work = [node.name for panel in panels for node in panel.nodes if node.look == "work"]
        if len(work) < 2:
            return GraphFacts(title, tuple(panels))
        is_timed = (any if is_over else all)(name in self._seconds for name in work)
        weights = self._seconds if is_timed else self._bytes
        weighed = tuple(
            replace(
                panel, nodes=tuple(replace(one, weight=weights.get(one.name, 0.0)) for one in panel.nodes)
            )
            for panel in panels
        )
        return GraphFacts(title, weighed, "measured seconds" if is_timed else "estimated bytes")

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
            What a user calls some arrays.
        called
            What the expressions are called elsewhere, for those that are there already.
        """
        if not plan.stages and not plan.outputs:
            there = NodeFacts(
                "", "nothing to run", ("all of it is on the workers",), (), "known", False, True
            )
            return PanelFacts(title, (there,))
        read = {node: (called or {}).get(node, names.get(node, "")) for node in plan.reused}
        around = Surroundings(
            read, set(plan.outputs), names, plan.reused, {one.key: one.owner for one in plan.shipments}
        )
        groups = tasks_by_stage(plan.stages, plan.tasks)
        return PanelFacts(title, self._stages(plan.stages, groups, around), _notes(plan))

    def control(
        self,
        name: str,
        node: Loop | Cond,
        plan: ControlPlan,
        called: Mapping[Expr, str],
        stored: Mapping[Expr, Stored],
    ) -> list[PanelFacts]:
        """Return the panels of a loop or branch: what runs once, and what in each iteration or on a side."""
        panels = []
        title, names = "", _variables(node, called)
        variables = list(node.variables)
        given = variables[node.num_state + 1 :] if isinstance(node, Loop) else variables
        registers = [
            *((one, array) for one, array in zip(variables, plan.states, strict=False)),
            *((one, stored[array]) for one, array in zip(given, node.given, strict=True) if array in stored),
        ]
        arrays: dict[Expr, Stored] = {**stored, **dict(registers)}
        origins = {key: one for one, array in registers for key in array.keys}
        workers = plural_text(len(plan.peaks), "worker")
        needs = f"needs at most about {bytes_text(sum(plan.peaks.values()))} more on {workers}"
        for section in sections_of(plan.stages, plan.program.actions):
            title = section.title or title
            stages = [stage for batch in section.batches for stage in batch.stages]
            if not stages:
                continue
            kept = {one.expression for batch in section.batches for one in batch.stages if batch.keeps(one)}
            tasks = {key: task for batch in section.batches for key, task in batch.tasks.items()}
            groups = tasks_by_stage(stages, tasks.values())
            words = f"{title} before {name}" if title == "once" else f"{title} of {name}"
            around = Surroundings(names, kept, {}, arrays, plan.program.owners, origins)
            note = f"{plural_text(len(tasks), 'task')}, {needs}"
            if title != "once" and isinstance(node, Loop):
                note = f"{plural_text(len(tasks), 'task')}, registers used again in each iteration; {needs}"
            panels.append(PanelFacts(words, self._stages(stages, groups, around, is_program=True), (note,)))
        return panels

    def ran(
        self, title: str, run: MadeRun, name: str, names: Mapping[str, str] | None = None
    ) -> list[PanelFacts]:
        """Return the panels of a run that is over.

        Parameters
        ----------
        title, run
            Of the panels, and what ran.
        name
            What a user calls what it was asked for, where ``names`` does not tell.
        names
            The same by the keys of what is stored, where the run was asked for several.
        """
        names = names or {}
        sizes = run.sizes()
        panels = []
        parts: list[tuple[str, Sequence[MadeStage], Sequence[Task]]] = []
        if not run.work or isinstance(run.work[0], Task):
            parts.append((title, run.stages, [one for one in run.work if isinstance(one, Task)]))
        else:
            actions = [one for one in run.work if not isinstance(one, Task)]
            when = ""
            for section in sections_of(run.stages, actions):
                when = section.title or when
                stages = [stage for batch in section.batches for stage in batch.stages]
                tasks = [task for batch in section.batches for task in batch.tasks.values()]
                if stages:
                    parts.append((f"{title}, {when}", stages, tasks))
        for words, made, work in parts:
            result = name if made is parts[-1][1] else ""
            panels.append(PanelFacts(words, self._made(run, made, work, sizes, result, names)))
        return panels

    # a plan that would run

    def _stages(
        self,
        stages: Sequence[Stage],
        groups: Sequence[Sequence[Task]],
        around: Surroundings,
        is_program: bool = False,
    ) -> tuple[NodeFacts, ...]:
        read = around.read
        blocks = {key: node for node, array in around.stored.items() for key in array.keys if node in read}
        found = [
            _read_by(stage, stages, read) if is_program else _there(group, blocks)
            for stage, group in zip(stages, groups, strict=True)
        ]
        inputs = [node for node in read if any(node in ones for ones in found)]
        makers = {key: len(inputs) + number for number, stage in enumerate(stages) for key in stage.tasks}
        places = {node: place for place, node in enumerate(inputs)}
        exchanges = Exchanges(stages, around.stored.values(), around.owners)
        moved = [exchanges.of(stage, group) for stage, group in zip(stages, groups, strict=True)]
        operands = _operands(groups, makers, [[places[one] for one in ones] for ones in found], len(inputs))
        num_users = Counter(one for ones in operands for one in ones)
        # Shares of reductions made in one pass are a stage before that of the first one's value.
        last = {stage.expression: number for number, stage in enumerate(stages)}
        stored = {} if is_program else around.stored
        boxes = [
            _input_box(node, read[node], num_users[place], stored.get(node))
            for place, node in enumerate(inputs)
        ]
        drawn = {key: places[node] for key, node in {**blocks, **around.origins}.items() if node in places}
        for number, (stage, group) in enumerate(zip(stages, groups, strict=True)):
            node, place = stage.expression, len(inputs) + number
            is_value = last[node] == number
            marks = [f"= {around.names[node]}"] if is_value and node in around.names else []
            if is_value and not marks and node in around.kept:
                marks = ["kept"]
            known = self._measures.of(stage.tasks)
            box = self._box(stage, kind_of(node), known, group, moved[number], num_users[place], marks)
            boxes.append(
                replace(
                    box,
                    operands=operands[number],
                    look="given" if node.is_source else box.look,
                    is_result=is_value and node in around.names,
                    moved=_moved(moved[number], {**makers, **drawn}, operands[number]),
                )
            )
        return tuple(boxes)

    # a run that is over

    def _made(
        self,
        run: MadeRun,
        stages: Sequence[MadeStage],
        tasks: Sequence[Task],
        sizes: Mapping[str, int],
        name: str,
        names: Mapping[str, str],
    ) -> tuple[NodeFacts, ...]:
        groups = tasks_by_stage(stages, tasks)
        makers = {key: number for number, stage in enumerate(stages) for key in stage.tasks}
        exchanges = Exchanges((), (), {}, sizes)
        for group in groups:
            exchanges.place(group)
        operands = _operands(groups, makers, [[] for _ in stages], 0)
        num_users = Counter(one for ones in operands for one in ones)
        is_named = any(key in names for stage in stages for key in stage.tasks)
        boxes = []
        for number, (stage, group) in enumerate(zip(stages, groups, strict=True)):
            called = next((names[key] for key in stage.tasks if key in names), "")
            if not is_named and not num_users[number]:
                called = name
            known = self._measures.within(run, stage.tasks)
            kind = (
                f"{stage.layout.grid.shape} {stage.dtype}{'' if stage.estimated_nnz is None else ' sparse'}"
            )
            exchange = exchanges.of(stage, group)
            marks = [f"= {called}"] if called else []
            box = self._box(stage, kind, known, group, exchange, num_users[number], marks)
            moved = _moved(exchange, makers, operands[number])
            boxes.append(replace(box, operands=operands[number], is_result=bool(called), moved=moved))
        return tuple(boxes)

    def _box(
        self,
        stage: Stage | MadeStage,
        kind: str,
        known: ArrayMeasurement | None,
        tasks: Sequence[Task],
        exchange: Exchange | None,
        num_users: int,
        marks: Sequence[str],
    ) -> NodeFacts:
        details = [kind, f"{blocks_text(stage.layout)}, {plural_text(len(tasks), 'task')}"]
        details.append(estimated_words(stage))
        if known is not None:
            details.append(", ".join(measured_words(known)))
        details += shared_words(tasks)
        if exchange is not None:
            size = f"{bytes_text(exchange.num_bytes)} " if exchange.num_bytes else ""
            details.append(f"{verb_of(stage.kind)} {size}across workers")
        if num_users > 1:
            details.append(f"used {num_users} times")
        name = f"s{self._num_stages}"
        self._num_stages += 1
        look: Look = "given" if stage.kind in ("data", "load") else "work"
        self._bytes[name] = float(stage.estimated_bytes)
        if known is not None and known.slowest_seconds is not None:
            self._seconds[name] = known.slowest_seconds
        return NodeFacts(
            name,
            f"{stage.kind} {shortened_words(stage.detail)}".strip(),
            (*details, *marks),
            look=look,
            is_shared=num_users > 1,
        )


def _notes(plan: Plan) -> tuple[str, ...]:
    counts = counts_of(plan, plan.outputs)
    words = [f"{plural_text(counts.num_run, 'operation')} run", plural_text(len(plan.tasks), "task")]
    words.append(f"{plural_text(counts.num_arrays, 'array')} made")
    if plan.reused:
        words.append(f"{count_text(len(plan.reused))} read from the workers")
    workers = plural_text(len({task.owner for task in plan.tasks}), "worker")
    needs = f"about {bytes_text(plan.projected_bytes)} more on {workers}"
    return (", ".join(words), f"moves {bytes_text(plan.moved_bytes)}, needs {needs}")


def _operands(
    groups: Sequence[Sequence[Task]],
    makers: Mapping[str, int],
    inputs: Sequence[Sequence[int]],
    first: int,
) -> list[tuple[int, ...]]:
    operands = []
    for number, (group, ones) in enumerate(zip(groups, inputs, strict=True), start=first):
        made = {makers[key] for task in group for key in task.inputs if key in makers} - {number}
        # A stage that shares its tasks with a later one is no user of it.
        operands.append((*ones, *sorted(one for one in made if one < number)))
    return operands


def _moved(exchange: Exchange | None, places: Mapping[str, int], operands: Sequence[int]) -> tuple[int, ...]:
    if exchange is None:
        return ()
    found = {places[key] for key in exchange.sources if key in places}
    return tuple(one for one in operands if one in found)


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


# What the stages of a plan read from other workers: how much, and from which arrays.

_WHOLE = ("product", "part", "combine", "accumulate")  # tasks that give sums of blocks, as large as these
_VERBS = {"reduce": "reduces", "regrid": "re-cuts", "load": "sends", "data": "sends"}


@dataclass(frozen=True)
class Exchange:
    """What one stage reads from other workers.

    Attributes
    ----------
    num_bytes
        About so much, each value counted once for each worker that reads it; 0 where that is not known.
    sources
        Keys of the blocks that they come from, as far as other stages or arrays that are there made them.
    """

    num_bytes: int
    sources: tuple[str, ...]


class Exchanges:
    """Finds what goes from worker to worker.

    Parameters
    ----------
    stages
        Of a plan.
    stored
        Arrays that are there already.
    owners
        Workers of what is there under other keys.
    sizes
        Bytes of values by their keys, where they were measured.
    """

    def __init__(
        self,
        stages: Sequence[Stage],
        stored: Iterable[Stored] = (),
        owners: Mapping[str, int] | None = None,
        sizes: Mapping[str, int] | None = None,
    ) -> None:
        self._owners = dict(owners or {})
        self._sizes = dict(sizes or {})
        self._shapes: dict[str, int] = {}  # elements of blocks
        for stage in stages:
            regions = list(stage.layout.grid.regions())
            # Shares of a reduction lie as what is reduced does; each is as large as the value at most.
            is_array = stage.layout.grid.shape == stage.expression.shape
            whole = max(1, stage.expression.size)
            for key, region in zip(stage.tasks, regions, strict=False):
                self._shapes[key] = region_size(region)
                share = region_size(region) / whole if is_array else 1.0
                self._sizes.setdefault(key, int(stage.estimated_bytes * share))
        for array in stored:
            self._owners.update(zip(array.keys, array.layout.owners, strict=False))
            for key, region in zip(array.keys, array.layout.grid.regions(), strict=False):
                self._shapes[key] = region_size(region)
            for key, size in zip(array.keys, array.block_bytes, strict=False):
                self._sizes.setdefault(key, size)

    def place(self, tasks: Iterable[Task]) -> None:
        """Note which workers make the values of tasks."""
        self._owners.update((task.key, task.owner) for task in tasks)

    def of(self, stage: Stage | MadeStage, tasks: Sequence[Task]) -> Exchange | None:
        """Return what a stage reads from other workers, or None.

        Parameters
        ----------
        stage
            One of the stages.
        tasks
            That make it, with those that only lead to them.
        """
        by_key = {task.key: task for task in tasks}
        self.place(tasks)
        moved = dict.fromkeys(
            (key, task.owner)
            for task in tasks
            for key in task.inputs
            if self._owners.get(key, task.owner) != task.owner
        )
        if not moved:
            return None
        part = stage.estimated_bytes // max(1, len(stage.tasks))
        size = sum(self._size(key, by_key, part) for key, _ in moved)
        sources = dict.fromkeys(one for key, _ in moved for one in _sources(key, by_key, stage.tasks))
        return Exchange(size, tuple(sources))

    def _size(self, key: str, tasks: Mapping[str, Task], part: int) -> int:
        if key not in self._sizes:
            self._sizes[key] = self._size_made(tasks[key], tasks, part) if key in tasks else 0
        return self._sizes[key]

    def _size_made(self, task: Task, tasks: Mapping[str, Task], part: int) -> int:
        match task.steps[-1].operator if task.steps else None:
            case Cut(bounds) if len(task.inputs) == 1:
                (source,) = task.inputs
                whole = max(1, self._shapes.get(source, 0))
                share = min(1.0, region_size(bounds) / whole)
                return int(self._size(source, tasks, part) * share)
            case Join(_, shape, dtype, sparse) if not sparse:
                elements = 1
                for length in shape:
                    elements *= length
                return elements * dtype.itemsize
        return part if task.kind in _WHOLE else 0


def _sources(key: str, tasks: Mapping[str, Task], own: Sequence[str]) -> list[str]:
    # Where a value that is moved comes from: itself, or what was read to make it.
    found, waiting, seen = [], [key], set(own)
    while waiting:
        one = waiting.pop()
        if one in seen:
            continue
        seen.add(one)
        if one in tasks:
            waiting += tasks[one].inputs
        else:
            found.append(one)
    return found


def verb_of(kind: str) -> str:
    """Return what a stage of a kind does with what comes from other workers, in a word."""
    return _VERBS.get(kind, "gathers")
