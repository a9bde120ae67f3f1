"""The drawings of the Presto paper's section 7.3 and the numbers beside them, from recorded runs."""

from __future__ import annotations

import io
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from harness.statistics import duration
from matnb.pictures.quantities import plural_text

_INK, _NEW, _WITHOUT, _WITH, _BLANK = "#1a1a1a", "#8c8c8c", "#e08a00", "#0a7fc4", "none"
_MOVED = _WITH
_THEMES = (
    "<style>svg{color:#1a1a1a;background:#fff}"
    "@media(prefers-color-scheme:dark){svg{color:#e8e8e8;background:#16181c}}</style>"
)
_STYLE = {
    "svg.fonttype": "none", "svg.hashsalt": "matnb", "font.size": 10, "font.family": "sans-serif",
    "text.color": _INK, "axes.edgecolor": _INK, "axes.labelcolor": _INK, "xtick.color": _INK,
    "ytick.color": _INK, "axes.spines.top": False, "axes.spines.right": False, "legend.frameon": False,
    "figure.facecolor": "none", "axes.facecolor": "none", "axes.titlesize": 10,
}  # fmt: skip
_RULES = {"presto": "Presto's rule", "auto": "matnb"}


@dataclass(frozen=True)
class Stretch:
    """What a run of n repartitions would have taken: until the last, and the rest at the pace after it."""

    num_repartitions: int
    seconds: float
    repartition_seconds: float


@dataclass(frozen=True)
class WorkerTimes:
    """One iteration: each worker's kernels, and what the iteration takes besides the slowest one's."""

    kernels: Mapping[str, float]
    transfer: float

    @property
    def seconds(self) -> float:
        """Of the slowest worker."""
        return max(self.kernels.values()) + self.transfer


def middle(runs: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """Return the run of the median time."""
    return sorted(runs, key=lambda run: run["seconds"])[len(runs) // 2]


def worker_times(run: Mapping[str, Any]) -> WorkerTimes:
    """Return what one iteration of a run took each worker."""
    kernels = {worker: seconds / run["iterations"] for worker, seconds in sorted(run["kernels"].items())}
    return WorkerTimes(kernels, max(0.0, run["loop_seconds"] / run["iterations"] - max(kernels.values())))


def stretches(run: Mapping[str, Any], without: Mapping[str, Any], iterations: int) -> list[Stretch]:
    """Return the estimated time to the end with one, two ... of a run's repartitions (paper, Figure 14).

    With none it is that of a run without.
    """
    steps = list(zip(run["decisions"], run["repartitions"], run["repartition_stamps"], strict=False))
    bounds = [*(step["iteration"] for step, _, _ in steps), iterations]
    found, spent = [Stretch(0, without["seconds"], 0.0)], 0.0
    for number, (step, seconds, told) in enumerate(steps, 1):
        spent += seconds
        pace = _pace(run["stamps"], step["iteration"], bounds[number])
        if pace is not None:
            found.append(Stretch(number, told + pace * (iterations - step["iteration"]), spent))
    return found


def _pace(stamps: Sequence[Sequence[float]], done: int, until: int) -> float | None:
    # The seconds of iterations that were told between two repartitions; the first after one is warming up.
    told = [seconds for _, iteration, seconds in stamps if done < iteration <= until and seconds > 0]
    return statistics.median(told[1:] or told) if told else None


def _stretches(story: Mapping[str, Any], rule: str) -> list[Stretch]:
    runs = story["pagerank"]
    return stretches(middle(runs[rule]), middle(runs["off"]), story["iterations"])


def figure_13(story: Mapping[str, Any]) -> Figure:
    """Which blocks were heavy and cut, and which are new, each time; as wide as they have entries."""
    with mpl.rc_context(_STYLE):
        runs = {rule: middle(story["pagerank"][rule])["decisions"] for rule in _RULES}
        longest = max(1, *map(len, runs.values()))
        figure = Figure(figsize=(8.5, 1.2 + 0.42 * longest), layout="constrained")
        for axes, (rule, steps) in zip(figure.subplots(1, 2), runs.items(), strict=True):
            _strips(axes, steps, story["entries_before"])
            axes.set_title(f"{_RULES[rule]}: {plural_text(len(steps), 'repartition')}")
            axes.set_xlabel("part of all entries")
            axes.set_ylim(longest + 0.5, -0.5)
        handles = [mpl.patches.Patch(fc=color, ec=_INK, label=label) for color, label in (
            (_INK, "heavy, cut next"), (_NEW, "new"), (_MOVED, "moved to the other worker"),
            (_BLANK, "as it was"),
        )]  # fmt: skip
        figure.legend(handles=handles, loc="outside lower center", ncols=4)
    return figure


def _strips(axes: Axes, steps: Sequence[Mapping[str, Any]], entries: Mapping[str, float]) -> None:
    first = [(step["before"], step["owners_before"]) for step in steps[:1]]
    states = first + [(step["after"], step["owners_after"]) for step in steps]
    for number, (cuts, owners) in enumerate(states):
        old = dict(_blocks(*states[max(0, number - 1)]))
        following = set(states[number + 1][0]) if number + 1 < len(states) else set()
        for (low, high), owner in _blocks(cuts, owners):
            begin, end = entries[str(low)], entries[str(high)]
            heavy = any(low < cut < high for cut in following)
            was = old.get((low, high))
            color = _INK if heavy else _NEW if was is None else _BLANK if was == owner else _MOVED
            axes.barh(number, end - begin, left=begin, height=0.6, fc=color, ec=_INK, lw=0.6)
    labels = ["at first", *(f"after {step['iteration']}" for step in steps)]
    axes.set_yticks(range(len(states)), labels[: len(states)])
    axes.tick_params(axis="y", length=0)
    axes.set_xlim(0, 1)


def _blocks(cuts: Sequence[int], owners: Sequence[int]) -> list[tuple[tuple[int, int], int]]:
    # The rows of each block, and whose it is.
    return list(zip(pairwise(cuts), owners, strict=True))


def figure_14(story: Mapping[str, Any]) -> Figure:
    """Time to the end against the number of repartitions, and the time that these took."""
    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=(6, 3.2), layout="constrained")
        axes = figure.subplots()
        for rule, color in (("presto", _WITHOUT), ("auto", _WITH)):
            found = _stretches(story, rule)
            numbers = [one.num_repartitions for one in found]
            label = _RULES[rule]
            axes.plot(numbers, [one.seconds for one in found], "o-", c=color, label=f"{label}: to the end")
            spent = [one.repartition_seconds for one in found]
            axes.plot(numbers, spent, "s--", c=color, mfc="none", label=f"{label}: repartitioning so far")
        axes.set(xlabel="repartitions", ylabel="seconds", ylim=(0, None))
        axes.xaxis.set_major_locator(mpl.ticker.MaxNLocator(integer=True))
        figure.legend(loc="outside right upper")
    return figure


def _worker_figure(before: WorkerTimes, after: WorkerTimes) -> Figure:
    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=(8.5, 2.2), layout="constrained")
        both = figure.subplots(1, 2, sharex=True)
        for axes, times, title in zip(both, (before, after), ("before repartitioning", "after"), strict=True):
            names = [f"worker {worker}" for worker in times.kernels]
            axes.barh(names, times.transfer * 1e3, color=_WITHOUT, label="transfer")
            axes.barh(
                names, [one * 1e3 for one in times.kernels.values()], left=times.transfer * 1e3, color=_WITH,
                label="computation",
            )  # fmt: skip
            axes.invert_yaxis()
            axes.set(title=title, xlabel="ms of an iteration")
        figure.legend(*both[0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
    return figure


def figure_15(story: Mapping[str, Any]) -> Figure:
    """What an iteration of PageRank takes each worker."""
    return _worker_figure(*_before_and_after(story["pagerank"]))


def figure_17(story: Mapping[str, Any]) -> Figure:
    """What a restart of Lanczos' method takes each worker."""
    return _worker_figure(*_before_and_after(story["lanczos"]))


def _before_and_after(runs: Mapping[str, Any]) -> tuple[WorkerTimes, WorkerTimes]:
    return worker_times(middle(runs["off"])), worker_times(middle(runs["settled"]))


def figure_16(story: Mapping[str, Any]) -> Figure:
    """Whole times with repartitioning and without."""
    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=(6, 2.6), layout="constrained")
        axes = figure.subplots()
        for place, name in enumerate(("pagerank", "lanczos")):
            for side, setting, color in ((-0.2, "off", _WITHOUT), (0.2, "auto", _WITH)):
                seconds = middle(story[name][setting])["seconds"]
                label = {"off": "without", "auto": "with repartitioning"}[setting] if not place else None
                bars = axes.barh(place + side, seconds, height=0.36, color=color, label=label)
                axes.bar_label(bars, labels=[duration(seconds)], padding=4)
        axes.set_yticks((0, 1), ("PageRank", "Lanczos"))
        axes.invert_yaxis()
        axes.set(xlabel="seconds")
        axes.margins(x=0.15)
        figure.legend(loc="outside lower center", ncols=2)
    return figure


FIGURES = {
    "figure_13": figure_13,
    "figure_14": figure_14,
    "figure_15": figure_15,
    "figure_16": figure_16,
    "figure_17": figure_17,
}


def saved(figure: Figure, path: Path) -> None:
    """Write a figure as SVG that follows a page's light or dark colors."""
    drawn = io.StringIO()
    with mpl.rc_context(_STYLE):
        figure.savefig(drawn, format="svg", metadata={"Date": None})
    head, begin, rest = drawn.getvalue().partition("<svg")
    attributes, end, body = rest.partition(">")
    text = head + begin + attributes + end + "\n " + _THEMES + body.replace(_INK, "currentColor")
    path.write_text("\n".join(line.rstrip() for line in text.splitlines()) + "\n", encoding="utf-8")


def document(story: Mapping[str, Any]) -> str:
    """Return the page that shows the figures with their numbers."""
    pagerank, lanczos = story["pagerank"], story["lanczos"]
    graph = f"R-MAT 2^{story['scale']}, {story['entries']:,} entries"
    parts = [
        "# Repartitioning, in the figures of the Presto paper\n\n"
        "Written by `benchmarks/figures.py`; do not edit. Figures 13 to 17 of Venkataraman et al., *Presto: "
        "Distributed Machine Learning and Graph Processing with Sparse Matrices*, EuroSys 2013, redrawn from "
        f"runs of matnb on one machine: {graph}, at first 8 blocks of equally many rows, 2 processes x 1 "
        f"thread. PageRank runs {story['iterations']} iterations with {story['columns']} columns; Lanczos' "
        f"method is `mn.linalg.eigsh` of a symmetric graph, 2^{story['lanczos_scale']}. Each figure shows "
        "the run with the median time.\n",
        _section(
            13, "Which blocks were cut", "Filled: cut at the next repartition; gray: created by the last "
            "one; blue: unchanged, but moved by it to the other worker. The width of a bar is "
            "its share of the entries. Labels: the iterations completed before the repartition.",
            ["rule", "after iteration", "blocks before", "blocks after", "repartition in"],
            [
                [_RULES[rule], str(step["iteration"]), str(len(step["before"]) - 1),
                 str(len(step["after"]) - 1), duration(seconds)]
                for rule in _RULES
                for step, seconds in zip(
                    middle(pagerank[rule])["decisions"], middle(pagerank[rule])["repartitions"], strict=False
                )
            ],
        ),
        _section(
            14, "Completion time against repartitions", "Estimated, as in the paper, as if no more "
            "repartitions followed; at zero it is the run without any. Dashed: the time that repartitioning "
            "itself took so far.",
            ["rule", "repartitions", "completion time", "repartitioning so far"],
            [
                [_RULES[rule], str(one.num_repartitions), duration(one.seconds),
                 duration(one.repartition_seconds) if one.num_repartitions else "none"]
                for rule in _RULES
                for one in _stretches(story, rule)
            ],
        ),
        _section(15, "An iteration of PageRank", _TRANSFER, _WORKER_HEADS, _worker_rows(pagerank)),
        _section(
            16, "Total times", "Including the start of the loop and all repartitioning.",
            ["", "without", "with repartitioning", "ratio"],
            [_whole("PageRank", pagerank), _whole("Lanczos", lanczos)],
        ),
        _section(17, "A restart of Lanczos' method", _TRANSFER, _WORKER_HEADS, _worker_rows(lanczos)),
    ]  # fmt: skip
    return "\n".join(parts)


_TRANSFER = (
    "Transfer is the time of an iteration beyond its slowest worker's kernels, so it is the same for all "
    "workers; a worker that finishes early waits."
)
_WORKER_HEADS = ["", "worker", "computation", "transfer"]


def _worker_rows(runs: Mapping[str, Any]) -> list[list[str]]:
    return [
        [name, worker, duration(seconds), duration(times.transfer)]
        for name, times in zip(("before", "after"), _before_and_after(runs), strict=True)
        for worker, seconds in times.kernels.items()
    ]


def _whole(name: str, runs: Mapping[str, Any]) -> list[str]:
    without, with_ = (middle(runs[one])["seconds"] for one in ("off", "auto"))
    return [name, duration(without), duration(with_), f"{with_ / without:.2f}"]


def _section(number: int, title: str, told: str, heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    table = "".join(f"| {' | '.join(row)} |\n" for row in (heads, ["---"] * len(heads), *rows))
    return f"## Figure {number}: {title}\n\n![{title}](figure_{number}.svg)\n\n{told}\n\n{table}"
