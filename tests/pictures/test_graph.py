"""Pictures of graphs: well-formed, the same every time, small; edges lead down and names are escaped."""

from __future__ import annotations

import random
import re
import time
from dataclasses import replace
from itertools import pairwise
from xml.etree import ElementTree

import pytest

from matnb.errors import OptionError, WriteError
from matnb.pictures.escaping import columns_of
from matnb.pictures.facts import GraphFacts, NodeFacts, PanelFacts
from matnb.pictures.graph import (
    MOST_BYTES,
    MOST_NODES,
    folded,
    graph_rows,
    graph_svg,
    graph_text,
    layers_of,
    placed,
    slowest_path,
)
from matnb.pictures.picture import MOST_BYTES as PAGE_BYTES
from matnb.pictures.picture import Picture, graphs_html

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


HOSTILE = [
    "<script>alert(1)</script>\"'&",
    "a" * 10_000,
    "\u202eright to left",
    "\x00\x1b[31m\ud800",
    "🦑" * 30,
]


@pytest.mark.parametrize("name", HOSTILE, ids=["script", "endless", "bidi", "no characters", "wide"])
def test_hostile_names_are_shown_in_well_formed_pictures_of_bounded_size(name: str) -> None:
    node = NodeFacts(name, name, (name,), is_result=True)
    facts = GraphFacts("hostile", (PanelFacts("", (node,)),))
    for text in (graphs_html([("plan", facts), (name[:50], facts)]), graph_svg(facts, is_alone=True)):
        assert len(text.encode()) < PAGE_BYTES
        tree = ElementTree.fromstring(text)
        assert not any(one.tag.endswith("script") for one in tree.iter())
        assert any((one.text or "").startswith(name[:4].replace("\x00", "\ufffd")[:1]) for one in tree.iter())
    tree = ElementTree.fromstring(graph_svg(facts))
    (box,) = (one for one in tree.iter("rect") if one.get("rx") == "4" and float(one.get("height")) > 12)
    assert float(box.get("width")) >= 6 * columns_of(next(tree.iter("text")).text)


@pytest.mark.parametrize(
    ("node", "words"),
    [
        (NodeFacts("a", "x", ("used 2 times",), is_shared=True), "read more than once"),
        (NodeFacts("a", "x", ("stored on workers",), look="known"), "remembered: value is there already"),
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


def weighed(*weights: float) -> list[NodeFacts]:
    return [replace(node, weight=weight, look="work") for node, weight in zip(DIAMOND, weights, strict=True)]


def test_the_path_that_takes_longest_is_marked_and_told_by_its_unit() -> None:
    assert slowest_path(weighed(1.0, 2.0, 3.0, 0.5)) == [0, 2, 3]
    assert slowest_path(weighed(0.0, 2.0, 2.0, 0.0)) == [1]
    assert slowest_path(weighed(0.0, 0.0, 0.0, 0.0)) == []
    facts = replace(graph(*weighed(1.0, 2.0, 3.0, 0.5)), unit="measured seconds")
    tree = ElementTree.fromstring(graph_svg(facts))
    marked = [one.find("title").text for one in tree.iter("g") if one.find("title") is not None]
    assert ["slowest path" in one for one in marked] == [True, False, True, True]
    (line,) = (
        one for one in tree.iter("path") if one.get("stroke-width") == "2.5" and one.get("d").count("C") == 2
    )
    assert line.get("stroke") == "#d55e00"
    assert "slowest path, by measured seconds" in [one.text for one in tree.iter("text")]
    assert graph_text(facts).splitlines()[1] == "d  both  slowest path"
    assert "slowest" not in graph_svg(replace(facts, unit=""))


def test_of_one_that_computes_there_is_no_slowest_path() -> None:
    facts = replace(graph(*weighed(0.0, 2.0, 0.0, 0.0)), unit="estimated bytes")
    assert "slowest" not in graph_svg(facts) + graph_text(facts)


def test_what_goes_between_workers_is_a_broken_line_and_is_told() -> None:
    nodes = [*DIAMOND[:3], replace(DIAMOND[3], moved=(2,))]
    tree = ElementTree.fromstring(graph_svg(graph(*nodes)))
    broken = [one.get("d").count("M") for one in tree.iter("path") if one.get("stroke-dasharray") == "6 4"]
    assert broken == [1, 1]  # the edge, and its like below
    assert "between workers" in [one.text for one in tree.iter("text")]
    assert graph_rows(graph(*nodes))[-1] == ("d", "both", "", "b, c", "reads between workers")


def test_what_the_passes_did_is_marked() -> None:
    nodes = [DIAMOND[0], replace(DIAMOND[1], change="gone"), replace(DIAMOND[2], change="new"), DIAMOND[3]]
    texts = [one.text for one in ElementTree.fromstring(graph_svg(graph(*nodes))).iter("text")]
    assert texts[-2:] == ["made by the passes", "replaced by the passes"]
    assert [row[-1] for row in graph_rows(graph(*nodes))] == [
        "", "replaced by the passes", "made by the passes", ""
    ]  # fmt: skip


def test_folding_keeps_marks_and_weights() -> None:
    nodes = [NodeFacts("e0", "given", weight=1.0)]
    nodes += [
        NodeFacts(f"e{n}", "add", (), (n - 1,), function="add", weight=1.0, moved=(n - 1,))
        for n in range(1, 60)
    ]
    first, chain = folded(nodes, 50)
    assert (first.weight, chain.weight) == (1.0, 59.0)
    operands = drawn_at_random(60)
    wide = [NodeFacts(f"e{n}", "x", (), ones, moved=ones[:1]) for n, ones in enumerate(operands)]
    for node in folded(wide, 20):
        assert set(node.moved) <= set(node.operands)


def test_a_page_has_every_picture_in_a_bounded_size_with_its_table() -> None:
    operands = drawn_at_random(400)
    large = graph(*(NodeFacts(f"e{n}", "x" * 30, ("y" * 30,) * 4, ones) for n, ones in enumerate(operands)))
    small = graph(*DIAMOND)
    for graphs in ([("plan", large)], [("recorded", large), ("optimized", large), ("plan", large)]):
        html = graphs_html(graphs, len(graphs) - 1, "what was done")
        assert 20_000 < len(html.encode()) <= PAGE_BYTES
        tree = ElementTree.fromstring(html)
        assert len(list(tree.iter("svg"))) == len(list(tree.iter("table"))) == len(graphs)
        assert "others not drawn" in html
        assert "more rows left out" in html
    tree = ElementTree.fromstring(graphs_html([("recorded", small), ("plan", large)], 1))
    assert [one.find("input").get("checked") for one in tree.iter("label")] == [None, "checked"]
    first = next(tree.iter("table"))
    rows = [["".join(cell.itertext()) for cell in row] for row in first.iter("tr")]
    assert rows[1] == ["a", "given", "8 MB", "", ""]
    assert rows[-1] == ["d", "both", "", "b, c", ""]
    assert not re.search(r"https?://|<script|url\(|\bon[a-z]+=", graphs_html([("plan", large)]))


def test_two_hundred_boxes_are_drawn_quickly() -> None:
    nodes = [NodeFacts(f"e{n}", "add", ("(3,)",), ones) for n, ones in enumerate(drawn_at_random(200))]
    seconds = []
    for _ in range(5):
        start = time.process_time()
        graphs_html([("plan", graph(*nodes))])
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
    with pytest.raises(WriteError, match=r"graph\.svg: the picture was not written: No such file"):
        picture.save(tmp_path / "nowhere" / "graph.svg")
    assert not (tmp_path / "graph.png").exists()
