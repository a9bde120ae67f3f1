"""The block map is to scale, shaded by density, colored by owner, small, quick and safe."""

from __future__ import annotations

import dataclasses
import random
import re
import time
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from matnb.pictures.arrays import MAX_BYTES, block_map, density_legend, gather, shade_levels
from matnb.pictures.facts import ArrayFacts
from matnb.pictures.svg_style import COLORS, color_of


def facts_of(cuts, owners=(), block_nnz=(), sparse=True) -> ArrayFacts:
    shape = tuple(axis[-1] for axis in cuts)
    return ArrayFacts(
        shape,
        "float64",
        sparse,
        stored=True,
        nnz=sum(block_nnz),
        cuts=cuts,
        owners=owners,
        block_nnz=block_nnz,
    )


def even(length, count):
    return tuple(length * i // count for i in range(count + 1))


def random_facts(count, num_owners, seed=0):
    draw = random.Random(seed)
    cuts = tuple(tuple(sorted({0, 10**6, *draw.sample(range(1, 10**6), count - 1)})) for _ in range(2))
    owners = tuple(draw.randrange(num_owners) for _ in range(count * count))
    return facts_of(cuts, owners, tuple(int(10 ** (6 * draw.random())) for _ in range(count * count)))


def rectangles(svg):
    """Return the filled rectangles of a map as (color, opacity, x, y, width, height)."""
    found = []
    for path in ElementTree.fromstring(svg).iter("path"):
        if path.get("fill"):
            for x, y, wide, tall in re.findall(r"M(\d+) (\d+)h(\d+)v(\d+)h-\d+z", path.get("d")):
                look = (path.get("fill"), float(path.get("fill-opacity")))
                found.append((*look, int(x), int(y), int(wide), int(tall)))
    return found


def test_a_small_map_is_drawn_to_scale():
    facts = facts_of(((0, 100, 400), (0, 400)), (0, 1), (100 * 400, 300 * 4))
    first, second = sorted(rectangles(block_map(facts)), key=lambda found: found[3])
    assert first == (COLORS[0], 1.0, 0, 0, 440, 110)
    assert second[:1] + second[2:] == (COLORS[1], 0, 110, 440, 330)
    assert second[1] < 0.5  # a hundredth of the density


def test_golden_strip():
    facts = facts_of(((0, 25, 100),), (0, 1), (25, 75), sparse=False)
    assert block_map(facts) == (
        '<svg role="img" aria-label="Block map of 100: 2 blocks" width="222" '
        'height="30" viewBox="-2 -2 444 60" style="flex:none;max-width:100%" shape-rendering="crispEdges">'
        f'<path fill="{COLORS[0]}" fill-opacity="1.0" d="M0 0h110v56h-110z"/>'
        f'<path fill="{COLORS[1]}" fill-opacity="1.0" d="M110 0h330v56h-330z"/>'
        '<path stroke="currentColor" stroke-opacity=".45" d="M110 0v56"/>'
        '<rect width="440" height="56" fill="none" stroke="currentColor" stroke-width="2"/>'
        '<g fill="none" pointer-events="all">'
        '<rect x="0" y="0" width="110" height="56">'
        "<title>elements 0:25; 25 entries, 100 %; worker 0</title></rect>"
        '<rect x="110" y="0" width="330" height="56">'
        "<title>elements 25:100; 75 entries, 100 %; worker 1</title></rect>"
        "</g></svg>"
    )


def test_an_empty_block_is_left_blank():
    facts = facts_of((even(100, 2), even(100, 2)), (0, 0, 0, 0), (5, 0, 0, 5))
    drawn = {found[2:4] for found in rectangles(block_map(facts))}
    assert drawn == {(0, 0), (220, 220)}


@pytest.mark.parametrize("count", [1, 8, 9, 20, 64])
def test_every_map_is_well_formed_small_and_without_scripts_or_addresses(count):
    svg = block_map(random_facts(count, 50))
    assert len(svg.encode()) <= MAX_BYTES
    tree = ElementTree.fromstring(svg)
    assert {node.tag for node in tree.iter()} <= {"svg", "g", "path", "rect", "title"}
    assert "http" not in svg
    assert tree.findall(".//title")
    cells = re.findall(r"M\d+ \d+h\d+v", svg)
    assert len(cells) <= 64 * 64


def test_many_blocks_take_less_than_fifty_milliseconds():
    count = 200
    owners = tuple(i // count for i in range(count * count))
    facts = facts_of((even(10**6, count), even(10**6, count)), owners, tuple(range(count * count)))
    seconds = []
    for _ in range(5):
        start = time.process_time()
        block_map(facts)
        seconds.append(time.process_time() - start)
    print(f"{1000 * min(seconds):.1f} ms")
    assert min(seconds) < 0.05


def test_equal_facts_give_equal_maps():
    assert block_map(random_facts(30, 7)) == block_map(dataclasses.replace(random_facts(30, 7)))


@pytest.mark.parametrize("cuts", [None, (), ((0, 2), (0, 3), (0, 4)), ((0, 0),), ((0, 0), (0, 5))])
def test_there_is_no_map_of_a_lazy_a_0d_an_nd_or_an_array_without_elements(cuts):
    shape = tuple(axis[-1] for axis in cuts) if cuts is not None else (5, 5)
    facts = ArrayFacts(shape, "float64", False, cuts=cuts, owners=(0,), block_nnz=(0,))
    assert block_map(facts) == ""


@given(st.data())
def test_gathering_loses_no_entry_and_no_block(data):
    counts = data.draw(st.tuples(st.integers(1, 40), st.integers(1, 40)))
    number = counts[0] * counts[1]
    block_nnz = tuple(data.draw(st.lists(st.integers(0, 9), min_size=number, max_size=number)))
    owners = tuple(data.draw(st.lists(st.integers(0, 4), min_size=number, max_size=number)))
    limit = data.draw(st.integers(1, 50))
    facts = facts_of((even(100, counts[0]), even(100, counts[1])), owners, block_nnz)
    cells = gather(facts, limit)
    assert max(cells.entries.shape) <= limit
    assert cells.entries.sum() == sum(block_nnz)
    assert cells.blocks.sum() == number
    assert (cells.row_cuts[0], cells.row_cuts[-1]) == (0, 100)
    assert np.isin(cells.owners, owners).all()


def test_a_cell_of_several_blocks_goes_to_the_owner_of_most_entries():
    facts = facts_of((even(8, 4),), (3, 3, 5, 5), (1, 1, 1, 0))
    assert gather(facts, 1).owners.tolist() == [[3]]
    facts = facts_of((even(8, 4),), (3, 3, 5, 5), (0, 0, 2, 0))
    assert gather(facts, 1).owners.tolist() == [[5]]


def test_shades_span_at_least_a_factor_of_ten():
    facts = facts_of((even(100, 2),), (0, 0), (50, 45))
    assert shade_levels(gather(facts, 64)).tolist() == [[7, 7]]
    assert density_legend(facts) == ""
    facts = facts_of((even(10**4, 2),), (0, 0), (5000, 5))
    assert shade_levels(gather(facts, 64)).tolist() == [[7, 1]]
    assert density_legend(facts).startswith("0.1 %")


def test_neighbors_among_owners_have_different_colors():
    assert all(color_of(owner) != color_of(owner + 1) for owner in range(20))
