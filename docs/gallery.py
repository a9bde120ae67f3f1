"""The example notebooks as pages of the documentation: run as `matnb report` does, with a picture of each."""

from __future__ import annotations

import base64
import os
import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nbformat import NotebookNode

HERE = Path(__file__).resolve().parent
PROJECT = HERE.parent
FOLDER = HERE / "gallery"  # which git ignores
HEADING = """\
# Gallery

Each page is a notebook of `example_notebooks/`, run from its first cell to its last when this site was built.
`make lab` opens them in JupyterLab. Some take a file of yours instead of generated data.

::::{grid} 1 2 2 2
:gutter: 3

"""
CARD = """\
:::{{grid-item-card}} {title}
:link: {name}
:link-type: doc
:img-top: {picture}
:class-img-top: matnb-thumbnail

{summary}
:::

"""
ENDING = """\
::::

```{toctree}
:hidden:

"""


def main() -> int:
    """Run the notebooks that changed, or all when matnb did, and write them and the page with their cards."""
    from matnb.cli import CellFailed, run_notebook
    from matnb.cli.page import settle

    os.environ["MATNB_DISPLAY"] = "static"
    FOLDER.mkdir(exist_ok=True)
    notebooks = sorted((PROJECT / "example_notebooks").glob("*.ipynb"))
    newest = max(path.stat().st_mtime for path in (PROJECT / "matnb").rglob("*.py"))
    for notebook in notebooks:
        target = FOLDER / notebook.name
        if target.is_file() and target.stat().st_mtime > max(newest, notebook.stat().st_mtime):
            continue
        print(f"gallery: {notebook.name}", file=sys.stderr)
        with tempfile.TemporaryDirectory(prefix="matnb-gallery-") as scratch:
            os.chdir(scratch)  # where a notebook writes its files
            try:
                book, _, _ = run_notebook(notebook, {})
            except CellFailed as failure:
                print(failure, file=sys.stderr)
                return 1
            finally:
                os.chdir(PROJECT)
        settle(book)
        write(book, target)
    names = [notebook.stem for notebook in notebooks]
    (FOLDER / "index.md").write_text(page_of(names), encoding="utf-8")
    return 0


def write(book: NotebookNode, target: Path) -> None:
    """Write an executed notebook, and the picture of its card beside it."""
    import nbformat

    for kind, content in pictures_in(book):
        for old in target.parent.glob(f"{target.stem}.thumbnail.*"):
            old.unlink()
        target.with_suffix(f".thumbnail.{kind}").write_bytes(content)
        break
    nbformat.write(book, target)


def pictures_in(book: NotebookNode) -> Iterator[tuple[str, bytes]]:
    """Yield the pictures in a notebook's outputs with their file's ending: Matplotlib's first."""
    outputs = [output.get("data", {}) for cell in book.cells for output in cell.get("outputs", [])]
    for data in outputs:
        if "image/png" in data:
            yield "png", base64.b64decode(data["image/png"])
    for data in outputs:
        if found := re.search(r"<svg.*?</svg>", data.get("text/html", ""), re.DOTALL):
            yield "svg", found[0].encode()


def page_of(names: list[str]) -> str:
    """Return the page with a card for each notebook: its title and the first sentences of its text."""
    import nbformat

    cards = []
    for name in names:
        first = nbformat.read(FOLDER / f"{name}.ipynb", as_version=4).cells[0].source
        title, text = first.split("\n\n")[:2]
        picture = next(FOLDER.glob(f"{name}.thumbnail.*")).name
        summary = shortened(" ".join(text.split()))
        cards.append(CARD.format(title=title.removeprefix("# "), name=name, picture=picture, summary=summary))
    return HEADING + "".join(cards) + ENDING + "\n".join(names) + "\n```\n"


def shortened(text: str, most: int = 190) -> str:
    """Return the whole sentences of a text that fit into ``most`` characters, one at least."""
    sentences = re.split(r"(?<=[.?!]) ", text)
    kept = sentences[0]
    for sentence in sentences[1:]:
        if len(kept) + len(sentence) >= most:
            break
        kept += f" {sentence}"
    return kept


if __name__ == "__main__":
    sys.exit(main())
