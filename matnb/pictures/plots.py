"""Pictures by matplotlib, from numbers that were found on the workers; it is imported when one is drawn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from matnb.pictures.facts import DecisionFacts, HistoryFacts
from matnb.pictures.imbalance import imbalance
from matnb.pictures.svg_style import COLORS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_FAINTEST = 3  # the scale of density begins at this part of the least that there is, so that it is seen


def axes_or_current(ax: Axes | None) -> Axes:
    """Return the axes to draw in: those given, else pyplot's current ones."""
    if ax is not None:
        return ax
    from matplotlib import pyplot

    current: Axes = pyplot.gca()
    return current


def draw_density(
    ax: Axes, counts: npt.NDArray[np.int64], areas: npt.NDArray[np.int64], shape: Sequence[int]
) -> Axes:
    """Draw the share of each cell's elements that are there: the darker, the more, on a logarithmic scale.

    Parameters
    ----------
    counts, areas
        Of the cells of an even grid: elements that are there, and all.
    shape
        Of the matrix.
    """
    from matplotlib.colors import LogNorm

    density = np.ma.masked_equal(counts / np.maximum(areas, 1), 0)
    num_rows, num_columns = shape
    image: dict[str, Any] = {
        "cmap": "Greys",
        "interpolation": "nearest",
        "extent": (-0.5, num_columns - 0.5, num_rows - 0.5, -0.5),
    }
    if density.count():
        image["norm"] = LogNorm(density.min() / _FAINTEST, density.max())
    ax.imshow(density, **image)
    ax.set(xlabel="column", ylabel="row")
    return ax


def draw_envelope(
    ax: Axes, starts: npt.NDArray[np.int64], least: npt.NDArray[Any], most: npt.NDArray[Any], length: int
) -> Axes:
    """Draw a series by its least and greatest value a pixel, as a line through all its points would look.

    Parameters
    ----------
    starts
        Where each pixel's elements begin.
    least, most
        Of each pixel, by column where there are several series.
    length
        Of the series.
    """
    places = np.repeat(starts, 2)
    places[1::2] = np.append(starts[1:], length) - 1
    both = np.stack([least, most], axis=1).reshape(-1, *least.shape[1:])
    ax.plot(places, both, linewidth=0.8)
    ax.set_xlabel("index")
    return ax


def draw_history(ax: Axes, facts: HistoryFacts) -> Axes:
    """Draw for each repartition how uneven loads were before it, as predicted, and as measured."""
    shown = [one for one in facts.decisions if one.acts]
    before = [imbalance(dict(one.before.loads)) for one in shown]
    predicted = [imbalance(dict(one.after.loads)) for one in shown]
    measured = [
        imbalance(dict(one.gained.loads)) if one.gained is not None and one.gained.loads else np.nan
        for one in shown
    ]
    places = np.arange(len(shown))
    series = (("before", before, "o"), ("predicted", predicted, "_"), ("measured", measured, "x"))
    for (label, values, marker), color in zip(series, (COLORS[1], COLORS[0], COLORS[5]), strict=True):
        ax.plot(places, values, marker, color=color, label=label)
    ax.set(ylabel="largest load over the mean", xlabel="repartition")
    ax.set_ylim(bottom=min(1.0, *before, *predicted) if shown else 1.0)
    ax.set_xticks(places, [_label(one) for one in shown], rotation=30, ha="right")
    if shown:
        ax.legend()
    else:
        ax.set_title(f"rebalance={facts.setting}: no repartition yet", fontsize="medium")
    return ax


def _label(one: DecisionFacts) -> str:
    when = f"iteration {one.iteration}" if one.iteration else "start"
    return f"{one.name}, {when}".replace("$", r"\$")  # which would begin mathematics
