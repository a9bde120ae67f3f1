"""Pictures of graphs: well-formed, the same every time, small; edges lead down and names are escaped."""

from __future__ import annotations

import random
import time
from dataclasses import replace
from itertools import pairwise
from xml.etree import ElementTree

import pytest

from matnb.errors import OptionError
from matnb.pictures.graph import MOST_BYTES, MOST_NODES, GraphFacts, NodeFacts, PanelFacts, folded, graph_svg
from matnb.pictures.layers import layers_of, placed
from matnb.pictures.picture import Picture

SVG = "{http://www.w3.org/2000/svg}"


def graph(*nodes: NodeFacts, title: str = "") -> GraphFacts:
    return GraphFacts("a graph", (PanelFacts(title, nodes),))


def drawn_at_random(count: int, seed: int = 0) -> list[tuple[int, ...]]:
    draw = random.Random(seed)
    return [
        tuple({draw.randrange(max(0, node - 12), node) for _ in range(min(node, 2))}) for node in range(count)
    ]


def crossed(first: NodeFacts, *others: NodeFacts) -> list[ElementTree.Element]:
    return list(ElementTree.fromstring(graph_svg(graph(first, *others))).iter("text"))


DIAMOND = (
    NodeFacts("a", "given", ("8 MB",), look="given"),
    NodeFacts("b", "left", (), (0,)),
    NodeFacts("c", "right", (), (0,)),
    NodeFacts("d", "both", (), (1, 2), is_result=True),
)


@pytest.mark.parametrize("count", [1, 2, 9, 120])
def test_edges_lead_down_and_boxes_of_a_layer_stand_apart(count: int) -> None:
    operands = drawn_at_random(count)
    sizes = [(60.0 + 7 * (node % 5), 30.0 + 14 * (node % 3)) for node in range(count)]
    placing = placed(sizes, operands)
    assert len(placing.edges) == sum(map(len, operands))
    for operand, user, points in placing.edges:
        heights = [y for _, y in points]
        assert heights == sorted(heights)
        assert heights[0] == placing.corners[operand][1] + sizes[operand][1]
        assert heights[-1] == placing.corners[user][1]
    rows: dict[float, list[tuple[float, float]]] = {}
    for (x, y), (width, height) in zip(placing.corners, sizes, strict=True):
        rows.setdefault(y, []).append((x, x + width))
        assert 0 <= x <= x + width <= placing.width + 1e-9
        assert y + height <= placing.height + 1e-9
    for row in rows.values():
        row.sort()
        assert all(end < start for (_, end), (start, _) in pairwise(row))


def test_what_has_no_operands_stands_right_above_who_reads_it() -> None:
    assert layers_of([(), (0,), (1,), (), (2, 3)]) == [0, 1, 2, 2, 3]


def test_crossings_that_can_be_avoided_are() -> None:
    placing = placed([(50.0, 20.0)] * 6, [(), (), (), (2,), (1,), (0,)])
    tops, ends = [placing.corners[n][0] for n in range(3)], [placing.corners[n][0] for n in (5, 4, 3)]
    assert sorted(range(3), key=tops.__getitem__) == sorted(range(3), key=ends.__getitem__)


def test_an_edge_goes_around_what_it_passes() -> None:
    placing = placed([(200.0, 20.0)] * 3, [(), (0,), (0, 1)])
    (points,) = (points for operand, user, points in placing.edges if (operand, user) == (0, 2))
    (x, _), (left, right) = points[1], (placing.corners[1][0], placing.corners[1][0] + 200)
    assert not left <= x <= right


def test_a_picture_is_well_formed_and_the_same_every_time() -> None:
    first = graph_svg(graph(*DIAMOND))
    assert first == graph_svg(graph(*DIAMOND))
    tree = ElementTree.fromstring(first)
    texts = [one.text for one in tree.iter("text")]
    assert texts[:2] == ["a  given", "8 MB"]
    assert [one.text for one in tree.iter("title")][3] == "d both"
    assert "id=" not in first
    assert "http" not in first


def test_names_are_shown_and_not_run() -> None:
    bad = "<script>alert('&\")</script>"
    picture = Picture(GraphFacts(bad, (PanelFacts(bad, (NodeFacts(bad, bad, (bad,)),)),)))
    html = picture._repr_mimebundle_()["text/html"]
    for text in (html, picture.svg):
        assert "<script" not in text
        ElementTree.fromstring(text)
    assert bad in picture.text


@pytest.mark.parametrize(
    ("node", "words"),
    [
        (NodeFacts("a", "x", ("used 2 times",), is_shared=True), "read more than once"),
        (NodeFacts("a", "x", ("stored on workers",), look="known"), "value is there already"),
        (NodeFacts("a", "x", look="control"), "loop or branch"),
        (NodeFacts("a", "x", look="given"), "given or made from parameters"),
        (NodeFacts("a", "x", is_result=True), "result"),
    ],
)
def test_a_look_is_told_in_words_too(node: NodeFacts, words: str) -> None:
    plain, marked = crossed(NodeFacts("a", "x", node.details)), crossed(node)
    assert [one.text for one in marked] == [*(one.text for one in plain), words]


def test_a_long_chain_is_one_box_and_the_far_end_of_a_large_graph_is_left_out() -> None:
    chain = [NodeFacts("e0", "given")]
    chain += [NodeFacts(f"e{n}", f"add(e{n - 1})", (), (n - 1,), function="add") for n in range(1, 3000)]
    first, rest = folded(chain, MOST_NODES)
    assert first.name == "e0"
    assert (rest.name, rest.what, rest.details) == (
        "e1...e2999",
        "2,999 functions",
        ("add add add add ... 2,995 more",),
    )
    assert folded(chain[:9], MOST_NODES) == chain[:9]
    operands = drawn_at_random(1000)
    large = [NodeFacts(f"e{n}", "x" * 60, ("y" * 60,) * 9, ones) for n, ones in enumerate(operands)]
    kept = folded(large, MOST_NODES)
    assert len(kept) == MOST_NODES
    assert kept[0].what == f"{1000 - MOST_NODES + 1} others not drawn"
    assert kept[-1].name == "e999"
    drawing = graph_svg(graph(*large))
    assert len(drawing.encode()) <= MOST_BYTES
    ElementTree.fromstring(drawing)


def test_a_hundred_boxes_are_drawn_quickly() -> None:
    nodes = [NodeFacts(f"e{n}", "add", ("(3,)",), ones) for n, ones in enumerate(drawn_at_random(100))]
    seconds = []
    for _ in range(5):
        start = time.process_time()
        graph_svg(graph(*nodes))
        seconds.append(time.process_time() - start)
    assert min(seconds) < 0.05


def test_panels_are_framed_and_titled() -> None:
    facts = GraphFacts("a graph", (PanelFacts("", DIAMOND), PanelFacts("each iteration", DIAMOND[:2])))
    tree = ElementTree.fromstring(graph_svg(facts))
    assert "each iteration" in [one.text for one in tree.iter("text")]
    assert sum("stroke-dasharray" in one.attrib for one in tree.iter("rect")) == 1


def test_as_text_it_is_a_tree_that_tells_everything_once() -> None:
    assert Picture(graph(*DIAMOND)).text.splitlines() == [
        "a graph",
        "d  both",
        "├─ b  left",
        "│  └─ a  given  8 MB",
        "└─ c  right",
        "   └─ a  (told above)",
    ]
    unnamed = Picture(graph(replace(DIAMOND[0], name=""), *DIAMOND[1:])).text
    assert unnamed.splitlines()[-1] == "   └─ given  (told above)"


def test_it_is_saved_as_svg_or_text(tmp_path) -> None:
    picture = Picture(graph(*DIAMOND))
    picture.save(tmp_path / "graph.svg")
    picture.save(str(tmp_path / "graph.txt"))
    assert ElementTree.parse(tmp_path / "graph.svg").getroot().tag == f"{SVG}svg"
    assert "prefers-color-scheme" in (tmp_path / "graph.svg").read_text()
    assert (tmp_path / "graph.txt").read_text().splitlines()[1] == "d  both"
    with pytest.raises(OptionError, match=r"saved as .svg or .txt, not as '.*graph.png'"):
        picture.save(tmp_path / "graph.png")
    assert not (tmp_path / "graph.png").exists()
