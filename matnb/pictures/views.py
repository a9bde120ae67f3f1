"""One of several views at a time, chosen by a click: without script and widget, so that it is kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from matnb.pictures.escaping import escaped

# Where a browser cannot tell which is chosen, and on paper, all views are seen, one below the other.
STYLE = (
    "<style>"
    ".matnb-views{display:flex;flex-wrap:wrap;gap:2px 10px;align-items:baseline;margin:4px 0}"
    ".matnb-views>label{cursor:pointer;font-size:12px;white-space:nowrap}"
    ".matnb-views input{margin:0 3px 0 0;vertical-align:-2px}"
    ".matnb-views>div{order:1;flex:0 0 100%;min-width:0}"
    "@media screen{@supports selector(:has(a)){.matnb-views>label:not(:has(:checked))+div{display:none}}}"
    "@media print{.matnb-views>label{display:none}}"
    "table.matnb-numbers{border-collapse:collapse;border:none;margin:0;font-size:12px}"
    "table.matnb-numbers th,table.matnb-numbers td{text-align:left!important;padding:1px 12px 1px 0;"
    "border:none;white-space:nowrap;background:transparent;max-width:none}"
    "table.matnb-numbers tr{background:transparent}"
    "</style>"
)


@dataclass(frozen=True)
class View:
    """One of several.

    Parameters
    ----------
    name
        By which it is chosen.
    html
        What is seen then.
    hint
        What hovering over the name tells.
    """

    name: str
    html: str
    hint: str = ""


def views_html(views: Sequence[View], chosen: int, label: str) -> str:
    """Return views of which one is seen; ``STYLE`` belongs before it, once a page.

    Parameters
    ----------
    views
        In the order of their names.
    chosen
        The place of the one that is seen at first.
    label
        What is chosen between, for a screen reader.
    """
    parts = []
    for place, view in enumerate(views):
        checked = ' checked="checked"' if place == chosen else ""
        hint = f' title="{escaped(view.hint)}"' if view.hint else ""
        parts.append(
            f'<label{hint}><input type="radio" name="view"{checked}/>{escaped(view.name)}</label>'
            f"<div>{view.html}</div>"
        )
    # Views of several forms do not meet; a form of a dialog goes nowhere when Enter is pressed.
    return f'<form class="matnb-views" method="dialog" aria-label="{escaped(label)}">{"".join(parts)}</form>'


def table_html(head: Sequence[str], rows: Sequence[Sequence[str]], caption: str = "as a table") -> str:
    """Return numbers as a table that opens; it is also what a screen reader reads."""
    body = "".join(_row("td", row) for row in rows)
    return (
        '<details style="font-size:12px;margin:6px 0;opacity:.8"><summary style="cursor:pointer">'
        f'{escaped(caption)}</summary><div style="overflow-x:auto"><table class="matnb-numbers">'
        f"<thead>{_row('th', head)}</thead><tbody>{body}</tbody></table></div></details>"
    )


def _row(tag: str, row: Sequence[str]) -> str:
    scope = ' scope="col"' if tag == "th" else ""
    return f"<tr>{''.join(f'<{tag}{scope}>{escaped(word)}</{tag}>' for word in row)}</tr>"
