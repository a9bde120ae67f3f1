"""``matnb report`` writes one whole file or nothing, and says in a line what was wrong."""

from __future__ import annotations

import json
import subprocess
import sys

import nbformat
import pytest

import matnb as mn
from matnb import cli
from matnb.cli import main, parameter_value
from matnb.cli.page import has_formulas, outside_loads


def write(path, *cells, parameters=None):
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    book.metadata["kernelspec"] = {"name": "not-installed", "display_name": "x", "language": "python"}
    if parameters is not None:
        book.cells.insert(0, nbformat.v4.new_code_cell(parameters, metadata={"tags": ["parameters"]}))
    nbformat.write(book, path)
    return str(path)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("3", 3), ("0.85", 0.85), ("1e-8", 1e-8), ("true", True), ("False", False), ("none", None),
        ("wiki-Vote.txt", "wiki-Vote.txt"), ("'10'", "10"), ("", ""), ("1-2", "1-2"), ("007", "007"),
        ("[1, 2]", [1, 2]), ("a b/c.mtx", "a b/c.mtx"), ("-5", -5),
    ],
)  # fmt: skip
def test_parameters_are_read_as_papermill_reads_them(text, value):
    assert parameter_value(text) == value
    assert type(parameter_value(text)) is type(value)


def test_the_package_is_the_command():
    def run(*arguments):
        return subprocess.run([sys.executable, "-m", "matnb", *arguments], capture_output=True, text=True)

    assert run("--version").stdout == f"matnb {mn.__version__}\n"
    missing = run("report", "nowhere.ipynb")
    assert missing.returncode == 2
    assert "nowhere.ipynb" in missing.stderr
    assert "usage: matnb " in run().stderr


@pytest.mark.parametrize(
    "page",
    [
        '<img src="https://a.org/b.png">',
        '<script src="//a.org/b.js"></script>',
        '<link rel="stylesheet" href="https://a.org/c.css">',
        "<style>@import 'https://a.org/c.css';</style>",
        "<style>a { background: url(https://a.org/d.png) }</style>",
        "<p style=\"background: url('https://a.org/d.png')\"></p>",
        '<img src="figure.png">',
        '<svg><image href="https://a.org/e.png"/></svg>',
        '<iframe src="https://a.org"></iframe>',
    ],
)
def test_what_a_browser_would_fetch_is_found(page):
    assert len(outside_loads(page)) == 1


def test_links_fragments_and_data_are_no_loads():
    page = '<a href="https://a.org">x</a><img src="data:image/png;base64,AA"><svg><use href="#id"/></svg>'
    assert outside_loads(page) == []


def test_help_says_how(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["report", "--help"])
    assert ended.value.code == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "-p NAME VALUE" in text
    assert "-o FILE" in text
    assert "--trace record|replay FILE" in text
    assert "--timings" in text
    assert "--pdf" in text


@pytest.mark.parametrize("content", [None, "", "x", '{"a": 1}', "[]", "folder"])
def test_what_is_no_notebook_is_told_in_a_line(tmp_path, capsys, content):
    path = tmp_path / "book.ipynb"
    if content == "folder":
        path.mkdir()
    elif content is not None:
        path.write_text(content)
    assert main(["report", str(path), "-o", str(tmp_path / "out.html")]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"matnb report: {path}: ")
    assert not (tmp_path / "out.html").exists()


def test_an_unknown_parameter_is_refused_with_those_there_are(tmp_path, capsys):
    path = write(tmp_path / "book.ipynb", "n", parameters="n = 1\nname = 'x'")
    assert main(["report", path, "-p", "m", "2", "-o", str(tmp_path / "out.html")]) == 2
    assert capsys.readouterr().err == f"matnb report: {path} has no parameter 'm'; it has n, name\n"


@pytest.mark.parametrize("option", ["-p", "--parameter"])
def test_an_equals_sign_is_answered_with_how_a_parameter_is_given(capsys, option):
    with pytest.raises(SystemExit) as ended:
        main(["report", option, "top=3", "book.ipynb"])
    assert ended.value.code == 2
    assert capsys.readouterr().err.endswith(f"{option} top=3: write {option} top 3\n")
    assert main(["report", "nowhere.ipynb", option, "where", "a=3"]) == 2  # a value may have one
    assert "nowhere.ipynb: no such notebook" in capsys.readouterr().err


def test_another_file_is_told_in_a_line(tmp_path):
    script = tmp_path / "job.py"
    script.write_text("print(1)")
    done = subprocess.run(
        [sys.executable, "-m", "matnb", "report", script], capture_output=True, text=True, check=False
    )
    assert done.stderr == f"matnb report: {script}: this is not a Jupyter notebook\n"


def test_parameters_that_are_no_plain_python_are_told(tmp_path, capsys):
    path = write(tmp_path / "book.ipynb", "n", parameters="%load_ext matnb\nn = 1")
    assert main(["report", path, "-p", "n", "2", "-o", str(tmp_path / "out.html")]) == 2
    assert "its cell of parameters is not plain Python" in capsys.readouterr().err


def test_an_output_that_is_a_folder_is_refused_before_anything_runs(tmp_path, capsys):
    assert main(["report", write(tmp_path / "book.ipynb", "1"), "-o", str(tmp_path)]) == 2
    assert f"{tmp_path} is a folder" in capsys.readouterr().err


def test_a_missing_extra_is_told_with_how_to_get_it(tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "papermill", None)
    assert main(["report", write(tmp_path / "book.ipynb", "1")]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "pip install 'matnb[notebook]'" in line


@pytest.mark.notebook
def test_a_failed_cell_fails_the_report_and_leaves_no_file(tmp_path, capsys):
    path = write(tmp_path / "book.ipynb", "x = 1", "1 / 0", "print('not reached')")
    assert main(["report", path, "-o", str(tmp_path / "out.html")]) == 1
    text = capsys.readouterr().err
    assert "ZeroDivisionError: division by zero" in text
    assert "cell 2 of 3 failed; nothing was written" in text
    assert "\x1b" not in text
    assert {entry.name for entry in tmp_path.iterdir()} == {"book.ipynb"}


@pytest.mark.notebook
@pytest.mark.parametrize(
    ("source", "has"),
    [
        (r"with $\sum_i a_i$ in it", True),
        ("$$\n\\int_0^1 x\n$$", True),
        (r"\begin{align*} a &= b \end{align*}", True),
        ("it costs $5 and $10 each", False),
        (r"\$a\$", False),
        ("`$a$` and\n\n```sh\necho $HOME$\n```\n", False),
        ("plain", False),
    ],
)
def test_formulas_are_known_from_sums_of_money_and_code(source, has):
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell(source)])
    assert has_formulas(book) == has
    data = {"text/latex": "$x$", "text/plain": "x", **({} if has else {"text/html": "<i>x</i>"})}
    shown = nbformat.v4.new_output("display_data", data=data)
    book.cells = [nbformat.v4.new_code_cell(source, outputs=[shown])]
    assert has_formulas(book) == has


def test_a_report_says_that_formulas_are_shown_as_typed(tmp_path, capsys):
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell("$a_i$")])
    nbformat.write(book, tmp_path / "book.ipynb")
    assert main(["report", str(tmp_path / "book.ipynb"), "-o", str(tmp_path / "out.html")]) == 0
    assert "formulas in TeX are shown as typed" in capsys.readouterr().err
    assert "$a_i$" in (tmp_path / "out.html").read_text()


def test_what_was_saved_in_a_notebook_is_no_part_of_a_run(tmp_path, capsys):
    book = nbformat.v4.new_notebook()
    old = nbformat.v4.new_output("error", ename="E", evalue="old", traceback=["OLD saved error"])
    for source in ("open('nothere.csv')", "1 / 0", ""):
        book.cells.append(nbformat.v4.new_code_cell(source, outputs=[old], execution_count=7))
    nbformat.write(book, tmp_path / "book.ipynb")
    assert main(["report", str(tmp_path / "book.ipynb"), "-o", str(tmp_path / "out.html")]) == 1
    told = capsys.readouterr().err
    assert "nothere.csv" in told
    assert "cell 1 of 2 failed" in told
    assert "OLD saved error" not in told


def test_a_kernel_that_dies_fails_the_report(tmp_path, capsys):
    path = write(tmp_path / "book.ipynb", "import os\nos._exit(3)")
    assert main(["report", path, "-o", str(tmp_path / "out.html")]) == 1
    assert "the kernel died" in capsys.readouterr().err
    assert {entry.name for entry in tmp_path.iterdir()} == {"book.ipynb"}


@pytest.mark.notebook
def test_a_report_runs_in_this_python_and_folder_with_the_parameters_and_repeats_byte_for_byte(
    tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    path = write(
        tmp_path / "book.ipynb",
        "import os\nimport sys\nprint(n, name, os.getcwd(), sys.executable)",
        "import warnings\nwarnings.warn('careful')\nobject()",
        "import ipywidgets\nipywidgets.IntSlider()",
        "from IPython.display import Javascript\nJavascript('alert(1)')",
        "%config InlineBackend.figure_formats = ['png', 'svg']",
        "import matplotlib.pyplot as plt\nplt.plot([1, n]);",
        "print({'a', 'b', 'c', 'd'})",
        "print('Matplotlib is building the font cache; this may take a moment.', file=sys.stderr)",
        parameters="n = 1\nname = 'x'",
    )
    pages = []
    for output in ("one.html", "deeper/two.html"):
        assert main(["report", path, "-p", "n", "5", "-p", "name", "a b.txt", "-o", output]) == 0
        pages.append((tmp_path / output).read_bytes())
    assert pages[0] == pages[1]
    page = pages[0].decode()
    assert f"5 a b.txt {tmp_path} {sys.executable}" in page
    assert outside_loads(page) == []
    assert "http://" not in page
    assert "https://" not in page
    for placeholder in ("IntSlider(", "widget-view", "Loading widget", "<script", "ipykernel_"):
        assert placeholder not in page
    assert page.count("building the font cache") == 1  # in the cell that prints it
    measured = json.loads((tmp_path / "deeper/two.timings.json").read_text())
    assert len(measured["cells"]) == 10
    assert all(cell["seconds"] >= 0 for cell in measured["cells"])
    written = {"book.ipynb", "one.html", "one.timings.json", "deeper"}
    assert {entry.name for entry in tmp_path.iterdir()} == written


@pytest.mark.notebook
def test_a_page_that_would_load_something_is_refused(tmp_path, capsys):
    path = write(
        tmp_path / "book.ipynb", "from IPython.display import HTML\nHTML('<img src=\"https://a.org/x.png\">')"
    )
    assert main(["report", path, "-o", str(tmp_path / "out.html")]) == 2
    assert "https://a.org/x.png" in capsys.readouterr().err
    assert not (tmp_path / "out.html").exists()


def test_a_write_that_fails_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "out.html"
    path.write_text("old")
    monkeypatch.setattr(cli.os, "replace", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        cli._write(path, b"new")
    assert path.read_text() == "old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["out.html"]
