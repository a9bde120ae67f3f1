"""Plans, programs and finished runs as graphs for texts and pictures: one node per stage."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Generic, TypeVar

from matnb.blocks.layout import Layout
from matnb.expr.control import Cond, Loop, Variable
from matnb.expr.nodes import Expr, MaskedMatMul, MatMul
from matnb.expr.traverse import topological
from matnb.pictures.facts import GraphFacts, Look, NodeFacts, PanelFacts
from matnb.pictures.graph import listed
from matnb.pictures.quantities import bytes_text, count_text, plural_text, seconds_text
from matnb.plan.densified import MOST_TOLD, densified
from matnb.plan.explain import LAST_VALUE, NodeText, bodies_of, nameless
from matnb.plan.looping import ControlPlan, starts_inside
from matnb.plan.measured import ArrayMeasurement, MadeRun, MadeStage, Measures
from matnb.plan.plan_counts import counts_of, functions_of, reductions_of, tasks_by_stage
from matnb.program.kinds import Role
from matnb.program.loads import MOST_PARTS
from matnb.program.operators import Cut, Join
from matnb.program.plan import Plan, Slot, Stage, StoredArray, Task
from matnb.program.program import Action, Batch, Branch, Iterate
from matnb.program.regions import region_size

MAX_WORDS = 12  # of what a stage does

_Stage = TypeVar("_Stage", Stage, MadeStage)


def plan_text(plan: Plan, names: Mapping[Expr, str] | None = None) -> str:
    """Return the stages of a plan as a list; ``names`` has what a user calls some arrays."""
    return "\n".join(listed([PlanGraph(Measures()).plan("", plan, names or {})]))


def control_text(node: Loop | Cond, plan: ControlPlan) -> str:
    """Return the stages of a loop or branch as a list, by when they run."""
    name = "the loop" if isinstance(node, Loop) else "the branch"
    unnamed = dict.fromkeys((node, *node.inputs), "")
    return "\n".join(listed(PlanGraph(Measures()).control(name, node, plan, unnamed)))


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
        Workers of what is there in other slots.
    origins
        Of such slots the expression that is drawn for them.
    """

    read: Mapping[Expr, str]
    kept: Container[Expr]
    names: Mapping[Expr, str] = field(default_factory=dict)
    stored: Mapping[Expr, StoredArray] = field(default_factory=dict)
    owners: Mapping[Slot, int] = field(default_factory=dict)
    origins: Mapping[Slot, Expr] = field(default_factory=dict)


class PlanGraph:
    """Tells plans as panels, in which stages are numbered throughout.

    Parameters
    ----------
    measures
        What was measured of stages that ran.
    called
        What a user calls an array that is there, or nothing.
    places
        Whether to say how workers were chosen.
    """

    def __init__(self, measures: Measures, called: NodeText = nameless, places: bool = False) -> None:
        self._measures, self._called, self._places = measures, called, places
        self._num_stages = 0
        self._bytes: dict[str, float] = {}  # by stage
        self._seconds: dict[str, float] = {}

    def facts(self, title: str, panels: Sequence[PanelFacts], is_over: bool = False) -> GraphFacts:
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
            return nothing_to_run("all of it is on the workers")
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
    ) -> list[PanelFacts]:
        """Return the panels of a loop or branch: what runs once, and what in each iteration or on a side."""
        names = _variables(node, called)
        variables = list(node.variables)
        given = variables[node.num_state + 1 :] if isinstance(node, Loop) else variables
        registers = [
            *((one, array) for one, array in zip(variables, plan.states, strict=False)),
            *(
                (one, plan.inputs[array])
                for one, array in zip(given, node.given, strict=True)
                if array in plan.inputs
            ),
        ]
        arrays: dict[Expr, StoredArray] = {**plan.inputs, **dict(registers)}
        origins = {key: one for one, array in registers for key in array.keys}
        needs = f"needs at most about {_needs(plan.peaks)}"
        panels = []
        for section in sections_of(plan.stages, plan.program.actions):
            tasks = plural_text(len(section.tasks), "task")
            if section.is_repeated:
                tasks += ", registers used again in each iteration"
            groups = tasks_by_stage(section.stages, section.tasks.values())
            if num_laid := len(section.tasks) - len({task.key for group in groups for task in group}):
                tasks += f", {count_text(num_laid)} of them to lay arrays out anew"
            kept = {one.expression for one in section.stages if section.keeps(one)}
            around = Surroundings(names, kept, {}, arrays, plan.program.owners, origins)
            title = f"{section.title} {'before' if section.title == ONCE else 'of'} {name}"
            nodes = self._stages(section.stages, groups, around, is_program=True)
            panels.append(PanelFacts(title, nodes, (f"{tasks}; {needs}",)))
        return panels

    def ran(
        self, title: str, run: MadeRun, name: str, names: Mapping[Slot, str] | None = None
    ) -> list[PanelFacts]:
        """Return the panels of a run that is over.

        Parameters
        ----------
        title, run
            Of the panels, and what ran.
        name
            What a user calls what it was asked for, where ``names`` does not tell.
        names
            The same by the slots of the run, where it was asked for several.
        """
        names, sizes = names or {}, run.sizes()
        parts: list[tuple[str, Sequence[MadeStage], Sequence[Task]]] = []
        tasks = [one for one in run.work if isinstance(one, Task)]
        if len(tasks) == len(run.work):
            parts.append((title, run.stages, tasks))
        else:
            actions = [one for one in run.work if not isinstance(one, Task)]
            parts = [
                (f"{title}, {section.title}", section.stages, list(section.tasks.values()))
                for section in sections_of(run.stages, actions)
                if section.stages
            ]
        panels = []
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
            _input_box(node, read[node], num_users[place], stored.get(node), self._called(node))
            for place, node in enumerate(inputs)
        ]
        drawn = {key: places[node] for key, node in {**blocks, **around.origins}.items() if node in places}
        for number, (stage, group) in enumerate(zip(stages, groups, strict=True)):
            node, place = stage.expression, len(inputs) + number
            is_value = last[node] == number
            marks = [f"= {self._name(node, around.names)}"] if is_value and node in around.names else []
            if is_value and not marks and node in around.kept:
                marks = ["kept"]
            known = self._measures.of(stage)
            box = self._box(stage, node.form_text(), known, group, moved[number], num_users[place], marks)
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

    def _name(self, node: Expr, names: Mapping[Expr, str]) -> str:
        name = names[node]
        return (self._called(node) or "last value") if name == LAST_VALUE else name

    # a run that is over

    def _made(
        self,
        run: MadeRun,
        stages: Sequence[MadeStage],
        tasks: Sequence[Task],
        sizes: Mapping[Slot, int],
        name: str,
        names: Mapping[Slot, str],
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
            known = self._measures.within(run, stage)
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
        num_tasks = f", {plural_text(len(tasks), 'task')}" if tasks else ""
        details = [kind, f"{blocks_text(stage.layout)}{num_tasks}"]
        details.append(_estimated_text(stage))
        if known is not None:
            details.append(_measured_text(known))
        details += _saved_words(tasks)
        if self._places and isinstance(stage, Stage):
            details.append(_placing_text(stage))
        if exchange is not None:
            size = f"{bytes_text(exchange.num_bytes)} " if exchange.num_bytes else ""
            details.append(f"{_VERBS.get(stage.kind.role, 'gathers')} {size}across workers")
        if num_users > 1:
            details.append(f"used {num_users} times")
        name = f"s{self._num_stages}"
        self._num_stages += 1
        look: Look = "given" if stage.kind.role in (Role.SENDS, Role.LOADS) else "work"
        self._bytes[name] = float(stage.estimated_bytes)
        if known is not None and known.slowest_seconds is not None:
            self._seconds[name] = known.slowest_seconds
        return NodeFacts(
            name,
            _what(stage),
            (*details, *marks),
            look=look,
            is_shared=num_users > 1,
        )


_PLACES = {
    "owners": "where the largest operand is",
    "home": "where the result is to be",
    "loads": "by the least load",
}


def _placing_text(stage: Stage) -> str:
    placed = stage.placed
    if placed is None:
        return "each task where its block lies"
    parts = plural_text(placed.num_parts, "part")
    if len(placed.ways) == 1 and placed.num_parts > MOST_PARTS:
        return f"{parts}, too many to compare ways: each where its largest operand is"
    if placed.taken is None:
        return f"{parts}, each where all that it reads is"
    loads = ", ".join(f"{_PLACES[way]} {bytes_text(int(load))}" for way, load in placed.ways)
    return f"{parts}; largest loads {loads}; taken: {_PLACES[placed.taken]}"


def nothing_to_run(reason: str) -> PanelFacts:
    """Return the panel of a plan that has nothing to do."""
    return PanelFacts("", (NodeFacts("", "nothing to run", (reason,), look="known", is_result=True),))


def _notes(plan: Plan) -> tuple[str, ...]:
    counts = counts_of(plan, plan.outputs)
    words = [f"{plural_text(counts.num_run, 'operation')} run", plural_text(len(plan.tasks), "task")]
    words.append(f"{plural_text(counts.num_arrays, 'array')} made")
    if plan.reused:
        words.append(f"{count_text(len(plan.reused))} read from the workers")
    # How many entries a product of sparse arrays has is not known before it is made.
    inside = (one for stage in plan.stages for one in stage.inside)
    products = [one for one in inside if isinstance(one, MatMul | MaskedMatMul)]
    is_guess = any(one.sparse and one.left.sparse and one.right.sparse for one in products)
    needs = f"needs {'by a guess' if is_guess else 'at most'} about {_needs(plan.peaks)}"
    dense = [one.text for one in densified(plan.stages, plan.reused)[:MOST_TOLD]]
    return (", ".join(words), f"moves {bytes_text(plan.moved_bytes)}, {needs}", *dense)


def _needs(peaks: Mapping[int, int]) -> str:
    workers = plural_text(sum(one > 0 for one in peaks.values()), "worker")
    return f"{bytes_text(sum(peaks.values()))} more on {workers}"


def _operands(
    groups: Sequence[Sequence[Task]],
    makers: Mapping[Slot, int],
    inputs: Sequence[Sequence[int]],
    first: int,
) -> list[tuple[int, ...]]:
    operands = []
    for number, (group, ones) in enumerate(zip(groups, inputs, strict=True), start=first):
        made = {makers[key] for task in group for key in task.inputs if key in makers} - {number}
        # A stage that shares its tasks with a later one is no user of it.
        operands.append((*ones, *sorted(one for one in made if one < number)))
    return operands


def _moved(exchange: Exchange | None, places: Mapping[Slot, int], operands: Sequence[int]) -> tuple[int, ...]:
    if exchange is None:
        return ()
    found = {places[key] for key in exchange.sources if key in places}
    return tuple(one for one in operands if one in found)


def _there(tasks: Sequence[Task], blocks: Mapping[Slot, Expr]) -> list[Expr]:
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


def _input_box(node: Expr, name: str, num_users: int, stored: StoredArray | None, called: str) -> NodeFacts:
    details = [node.form_text()]
    if stored is not None:
        details.append(blocks_text(stored.layout))
        if stored.block_bytes:
            details.append(bytes_text(sum(stored.block_bytes)))
        details.append("stored on workers")
    if num_users > 1:
        details.append(f"used {num_users} times")
    what = called or node.describe(("...",) * len(node.operands)) if stored is not None else ""
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


# What is said of a stage in words.


def blocks_text(layout: Layout) -> str:
    """Return in how many blocks an array is cut, and on how many workers they are."""
    counts = "x".join(map(str, layout.grid.counts))
    blocks = "1 block" if layout.grid.num_blocks == 1 else f"{counts} blocks"
    return f"{blocks} on {plural_text(len(set(layout.owners)), 'worker')}"


def _estimated_text(stage: Stage | MadeStage) -> str:
    # How large its array will be, about; of a sparse one also how many entries it stores.
    size = f"about {bytes_text(stage.estimated_bytes)}"
    if stage.estimated_nnz is None:
        return size
    return f"{size} in {plural_text(stage.estimated_nnz, 'entry')}"


def _measured_text(known: ArrayMeasurement) -> str:
    made = f"{bytes_text(known.num_bytes)} made"
    if known.seconds is None:
        return made
    return f"{made}, {seconds_text(known.seconds)}{' with compiling' if known.compiled else ''}"


def _saved_words(tasks: Sequence[Task]) -> list[str]:
    # What the tasks of a stage save: buffers that functions share, and passes over the data.
    words = []
    num_functions, num_buffers = max(map(functions_of, tasks), default=(0, 0))
    if num_buffers < num_functions:
        words.append(f"{count_text(num_functions)} functions in {plural_text(num_buffers, 'buffer')}")
    num_reductions = max(map(reductions_of, tasks), default=0)
    if num_reductions > 1:
        words.append(f"{num_reductions} reductions in one pass")
    return words


def _what(stage: Stage | MadeStage) -> str:
    words = stage.detail.split()
    if len(words) > MAX_WORDS:
        words = [*words[:MAX_WORDS], f"... {len(words) - MAX_WORDS:,} more"]
    return " ".join([stage.kind.name, *words])


# The stages of a program by when they run.

ONCE = "once"


@dataclass(frozen=True)
class Section(Generic[_Stage]):
    """What of a program runs one after the other, with no control between.

    Attributes
    ----------
    title
        When it runs.
    is_repeated
        Whether it is inside of a loop.
    stages, tasks
        What runs, and the tasks by their slots.
    read
        Slots of tasks whose values are read afterwards.
    """

    title: str
    is_repeated: bool
    stages: tuple[_Stage, ...]
    tasks: Mapping[Slot, Task]
    read: frozenset[Slot]

    def keeps(self, stage: _Stage) -> bool:
        """Tell whether what a stage makes is read afterwards."""
        return not self.read.isdisjoint(stage.tasks)


def sections_of(stages: Sequence[_Stage], actions: Sequence[Action]) -> list[Section[_Stage]]:
    """Return the stages of a program by when they run."""
    waiting = list(stages)
    sections: list[Section[_Stage]] = []

    def write(actions: Sequence[Action], title: str, is_repeated: bool) -> None:
        inside = f", in {title}" if title != ONCE else ""
        batches: list[Batch] = []

        def end() -> None:
            if batches:
                sections.append(_section(title, is_repeated, batches, waiting))
                batches.clear()

        for action in actions:
            match action:
                case Batch():
                    batches.append(action)
                case Iterate():
                    end()
                    write(action.body, f"each iteration{inside}", True)
                case Branch():
                    end()
                    write(action.then, f"where it is true{inside}", is_repeated)
                    write(action.otherwise, f"else{inside}", is_repeated)
        end()

    write(actions, ONCE, False)
    return sections


def _section(
    title: str, is_repeated: bool, batches: Sequence[Batch], waiting: list[_Stage]
) -> Section[_Stage]:
    # Takes the stages of the batches from those that wait.
    tasks = {task.key: task for batch in batches for task in batch.tasks}
    found = [one for one in waiting if not tasks.keys().isdisjoint(one.tasks)]
    for one in found:
        waiting.remove(one)
    read = frozenset(key for batch in batches for key in batch.results)
    return Section(title, is_repeated, tuple(found), tasks, read)


# What the stages of a plan read from other workers: how much, and from which arrays.

_WHOLE = (Role.MULTIPLIES, Role.SPLITS, Role.JOINS)  # tasks whose values are as large as blocks
_VERBS = {
    Role.REDUCES: "reduces",
    Role.REPARTITIONS: "repartitions",
    Role.LOADS: "sends",
    Role.SENDS: "sends",
}


@dataclass(frozen=True)
class Exchange:
    """What one stage reads from other workers.

    Attributes
    ----------
    num_bytes
        About so much, each value counted once for each worker that reads it; 0 where that is not known.
    sources
        Slots of the blocks that they come from, as far as other stages or arrays that are there made them.
    """

    num_bytes: int
    sources: tuple[Slot, ...]


class Exchanges:
    """Finds what goes from worker to worker.

    Parameters
    ----------
    stages
        Of a plan.
    stored
        Arrays that are there already.
    owners
        Workers of what is there in other slots.
    sizes
        Bytes of values by their slots, where they were measured.
    """

    def __init__(
        self,
        stages: Sequence[Stage],
        stored: Iterable[StoredArray] = (),
        owners: Mapping[Slot, int] | None = None,
        sizes: Mapping[Slot, int] | None = None,
    ) -> None:
        self._owners = dict(owners or {})
        self._sizes = dict(sizes or {})
        self._shapes: dict[Slot, int] = {}  # elements of blocks
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

    def _size(self, key: Slot, tasks: Mapping[Slot, Task], part: int) -> int:
        if key not in self._sizes:
            self._sizes[key] = self._size_made(tasks[key], tasks, part) if key in tasks else 0
        return self._sizes[key]

    def _size_made(self, task: Task, tasks: Mapping[Slot, Task], part: int) -> int:
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
        return part if task.kind.role in _WHOLE else 0


def _sources(key: Slot, tasks: Mapping[Slot, Task], own: Sequence[Slot]) -> list[Slot]:
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
