"""An executed notebook as one page that needs nothing else and is the same every time; as PDF, too."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING

from matnb.config import chromium_from_environment
from matnb.errors import MatnbError, UnsupportedError
from matnb.io.temporary import temporary_folder

if TYPE_CHECKING:
    from nbformat import NotebookNode


# What differs from run to run in what kernels print: process ids, addresses, the first use of a cache.
_KERNEL_FILE = re.compile(r"\S*[/\\]ipykernel_\d+[/\\]\d+\.py")
_FONT_CACHE = re.compile(r"Matplotlib is building the font cache; this may take a moment\.\n")
_ADDRESS = re.compile(r"\b0x[0-9a-fA-F]{6,16}\b")
_STYLE = re.compile(r"(<style[^>]*>)(.*?)(</style>)", re.DOTALL)
_STYLE_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_STYLE_LOAD = re.compile(r"""(?:@import\s+|url\(\s*)["']?([^"')\s]+)""")
_LOADING = {"src", "poster", "data", "srcset", "background"}  # attributes that make a browser fetch
_CODE = re.compile(r"(?ms)^(```|~~~).*?^\1|(`+).+?\2")  # of Markdown
# As Pandoc knows formulas from sums of money: no blank inside of the signs, and no digit after them.
_FORMULA = re.compile(r"(?s)\$\$.+?\$\$|\\begin\{\w+\*?\}|(?<![\\$])\$(?![\s$])[^$\n]*(?<![\s\\])\$(?!\d)")
_BEFORE_LATEX = {"text/html", "text/markdown", "image/svg+xml"}  # what is shown where there are both
_SCRIPTED = {"application/vnd.jupyter.widget-view+json", "application/javascript"}

# JupyterLab's own look without what it would fetch: a report is read from a disk, maybe years later.
_TEMPLATE = """\
{%- extends 'lab/index.html.j2' -%}
{%- block html_head_js -%}{%- endblock -%}
{%- block jupyter_widgets -%}{%- endblock -%}
{%- block html_head_js_mathjax -%}{%- endblock -%}
{%- block html_head_js_mermaidjs -%}{%- endblock -%}
{%- block extra_css -%}
<style>
body.jp-Notebook { max-width: 980px; margin: 0 auto; padding: 24px 16px 64px; box-sizing: border-box; }
.jp-RenderedImage img { max-width: 100%; height: auto; }
.jp-RenderedHTMLCommon table { margin-left: 0; }
</style>
{%- endblock -%}
{%- block notebook_css -%}
{{ super() }}
<style>
:root { color-scheme: light dark; }
body.jp-Notebook { background: var(--jp-layout-color0); color: var(--jp-content-font-color1); }
@media screen and (prefers-color-scheme: dark) {
{% include 'static/theme-dark.css' %}
{#- Figures are drawn in dark ink: each lies on a light card, with room around it, and not too bright. #}
.jp-RenderedImage img {
  background: #ffffff; border-radius: 8px; box-sizing: border-box; padding: 10px 12px;
  filter: brightness(0.93);
}
}
.jp-InputArea-editor .highlight pre { overflow-x: auto; }
.matnb-measured { padding: 0 8px; }
.matnb-measured p { margin: 0.3em 0; }
@media print {
  :root { color-scheme: light; }
  .jp-InputArea-editor .highlight pre { white-space: pre-wrap; overflow-wrap: anywhere; }
  body.jp-Notebook { max-width: none; padding: 0; }
  .jp-Cell-outputWrapper svg, .jp-RenderedImage, .jp-RenderedHTMLCommon tr, .jp-Cell-inputWrapper {
    break-inside: avoid;
  }
  h1, h2, h3, .jp-Cell-inputWrapper { break-after: avoid; }
  /* Paper does not scroll: text and cells of tables are broken, between words where there are some. */
  .jp-OutputArea-output, .jp-OutputArea-output * { overflow: visible !important; }
  .jp-OutputArea-output :is(pre, td, th) {
    white-space: pre-wrap !important; word-break: normal !important; overflow-wrap: break-word;
  }
}
</style>
{%- endblock -%}
"""


# What is wider than a sheet is made smaller before it is broken, which no style can ask for. Only what is
# printed here has a script: it sees the page as it is on paper, 7.7 inches of a sheet of 8.5.
_FITTING = """\
<style>
html body.jp-Notebook { width: 739px; margin: 0; }
.jp-OutputArea-output:not(.matnb-broken) :is(pre, td, th) { white-space: pre !important; }
.matnb-torn :is(pre, td, th) { overflow-wrap: anywhere !important; }
</style>
<script>
for (const shown of document.querySelectorAll(".jp-OutputArea-output")) {
  const fits = smallest => {
    shown.style.zoom = 1;
    const wide = shown.scrollWidth, room = shown.clientWidth;
    const ratio = wide > room ? room / (wide + 4) : 1;  // as lengths are rounded
    shown.style.zoom = Math.max(ratio, smallest);
    return ratio >= smallest;
  };
  if (fits(0.5)) continue;
  shown.classList.add("matnb-broken");
  if (fits(0.35)) continue;
  shown.classList.add("matnb-torn");
}
</script>
"""


def settle(book: NotebookNode) -> None:
    """Remove or mask what differs from run to run, and remove what only JavaScript can show."""
    book.metadata.pop("widgets", None)
    for cell in book.cells:
        for output in cell.get("outputs", []):
            if "text" in output:
                output.text = _settled(output.text)
            data = output.get("data", {})
            if _SCRIPTED & set(data):
                # A widget's plain text is only its class; a picture or a table beside it may stay.
                for kind in [*_SCRIPTED, "text/plain"]:
                    data.pop(kind, None)
            for kind in ("text/plain", "text/html", "text/markdown"):
                if kind in data:
                    data[kind] = _settled(data[kind])
        if "outputs" in cell:
            cell.outputs = [output for output in cell.outputs if output.get("data", output.get("text", True))]


def _settled(text: str) -> str:
    return _ADDRESS.sub("0x...", _KERNEL_FILE.sub("cell.py", _FONT_CACHE.sub("", text)))


def has_formulas(book: NotebookNode) -> bool:
    """Tell whether a notebook has formulas in TeX, which a page without scripts shows as they were typed."""
    for cell in book.cells:
        if cell.cell_type == "markdown" and _FORMULA.search(_CODE.sub("", cell.source)):
            return True
        for output in cell.get("outputs", []):
            data = output.get("data", {})
            if "text/latex" in data and not _BEFORE_LATEX & set(data):
                return True
    return False


def page_of(book: NotebookNode, notebook: Path, ending: str = "") -> str:
    """Return the page of an executed notebook.

    Parameters
    ----------
    book
        With outputs, settled.
    notebook
        Its path; the page's title is its name.
    ending
        HTML below all cells.

    Raises
    ------
    UnsupportedError
        When it would load something from elsewhere.
    """
    from nbconvert import HTMLExporter
    from traitlets.config import Config

    exporter = HTMLExporter(
        config=Config(HighlightMagicsPreprocessor={"languages": {"%%distmat": "python"}}),
        raw_template=_TEMPLATE,
        embed_images=True,
        exclude_input_prompt=True,
        exclude_output_prompt=True,
        exclude_anchor_links=True,
        extra_template_basedirs=[],
    )
    resources = {"metadata": {"name": notebook.stem, "path": str(notebook.parent)}}
    page, _ = exporter.from_notebook_node(book, resources=resources)
    head, main, tail = page.rpartition("</main>")
    page = f"{head}{ending}{main}{tail}"
    page = _STYLE.sub(lambda found: found[1] + _STYLE_COMMENT.sub("", found[2]) + found[3], page)
    loads = outside_loads(page)
    if loads:
        raise UnsupportedError(
            f"the page would load {', '.join(loads[:3])}; a report must be self-contained, so use a local "
            "picture"
        )
    return page


def outside_loads(page: str) -> list[str]:
    """Return the addresses that a browser would fetch to show a page; links to click on are not loads."""
    finder = _LoadFinder()
    finder.feed(page)
    finder.close()
    return sorted(finder.found)


class _LoadFinder(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: set[str] = set()
        self.in_style = False

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.in_style = tag == "style"
        for name, value in attributes:
            fetched = name in _LOADING or (name in ("href", "xlink:href") and tag not in ("a", "base"))
            if value and fetched:
                self._note(value)
            elif value and name == "style":
                self.handle_style(value)

    def handle_endtag(self, tag: str) -> None:
        self.in_style = False

    def handle_data(self, data: str) -> None:
        if self.in_style:
            self.handle_style(data)

    def handle_style(self, text: str) -> None:
        for address in _STYLE_LOAD.findall(text):
            self._note(address)

    def _note(self, address: str) -> None:
        if not address.startswith(("data:", "#")):
            self.found.add(address)


BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
LIMIT_SECONDS = 300
# The time of printing, as long as before: the places of objects in the file stay right.
_DATE = re.compile(rb"/(CreationDate|ModDate) ?\(D:\d{14}[^)]*\)")
# The browser's name and version.
_CREATOR = re.compile(rb"/Creator ?\((?:\\.|[^)\\])*\)")


class PrintError(MatnbError, RuntimeError):
    """Chromium did not print the page; the message has what it said."""


def find_browser() -> str:
    """Return the path of chromium: what ``MATNB_CHROMIUM`` names, or one of :data:`BROWSERS`.

    Raises
    ------
    UnsupportedError
        When there is none; the message says what to install.
    """
    wanted = chromium_from_environment()
    for name in (wanted,) if wanted else BROWSERS:
        found = shutil.which(name)
        if found:
            return found
    if wanted:
        raise UnsupportedError(f"MATNB_CHROMIUM={wanted!r}: no such program exists")
    raise UnsupportedError(
        "a PDF is printed by chromium, which was not found: install it (on Debian and Ubuntu `apt install "
        "chromium`), or set MATNB_CHROMIUM to the path of a browser like it"
    )


def pdf_of(page: str, browser: str) -> bytes:
    """Return a page as PDF; the same bytes for the same page, fonts and browser.

    Parameters
    ----------
    page
        HTML that needs nothing else.
    browser
        The path of chromium.

    Raises
    ------
    PrintError
        When it fails, or takes more than :data:`LIMIT_SECONDS`.
    """
    with temporary_folder("print-") as folder:
        source, target = Path(folder, "page.html"), Path(folder, "page.pdf")
        source.write_text(page_to_print(page), encoding="utf-8", newline="\n")
        command = [
            browser, "--headless=new", "--disable-gpu", "--no-first-run", "--disable-extensions",
            "--disable-background-networking", "--disable-component-update", "--disable-sync",
            f"--user-data-dir={folder}/profile", "--no-pdf-header-footer", f"--print-to-pdf={target}",
            *(["--no-sandbox"] if os.geteuid() == 0 else []),  # root gets no sandbox
            source.as_uri(),
        ]  # fmt: skip
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, errors="replace", timeout=LIMIT_SECONDS, check=False
            )
        except subprocess.TimeoutExpired:
            raise PrintError(f"{browser} did not print the page within {LIMIT_SECONDS} s") from None
        if done.returncode or not target.is_file():
            said = " ".join(done.stderr.split()[-40:]) or f"status {done.returncode}"
            raise PrintError(f"{browser} did not print the page: {said}")
        return _without_date(target.read_bytes())


def page_to_print(page: str) -> str:
    """Return a page styled for paper, with a script that shrinks or wraps outputs wider than the sheet."""
    head, end, tail = page.replace("@media print", "@media all").rpartition("</body>")
    return f"{head}{_FITTING}{end}{tail}"


def _without_date(printed: bytes) -> bytes:
    printed = _DATE.sub(lambda found: _padded(b"/%s (D:19700101000000" % found[1], found[0]), printed)
    return _CREATOR.sub(lambda found: _padded(b"/Creator (matnb", found[0]), printed)


def _padded(text: bytes, before: bytes) -> bytes:
    # A closed text as long as what it stands for; one that is too long leaves that as it is.
    return before if len(text) >= len(before) else text + b")" + b" " * (len(before) - len(text) - 1)
