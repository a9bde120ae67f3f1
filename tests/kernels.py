"""Executing notebooks in a kernel of this Python, which needs no installed kernelspec."""

from __future__ import annotations

import sys
from pathlib import Path

import nbformat
from jupyter_client.kernelspec import KernelSpec
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient

PROJECT = Path(__file__).parents[1]
PAGERANK = PROJECT / "example_notebooks" / "01_pagerank.ipynb"
NOTHING_TWICE = PROJECT / "example_notebooks" / "05_nothing_twice.ipynb"
COMMUNITIES = PROJECT / "example_notebooks" / "02_communities.ipynb"
TAXI = PROJECT / "example_notebooks" / "03_taxi.ipynb"
LOAD_BALANCING = PROJECT / "example_notebooks" / "04_load_balancing.ipynb"
NUMPY_WORDS = PROJECT / "example_notebooks" / "06_numpy_words.ipynb"
RECOMMENDER = PROJECT / "example_notebooks" / "07_recommender.ipynb"
TOPICS = PROJECT / "example_notebooks" / "08_topics.ipynb"
FROM_DATAFRAMES = PROJECT / "example_notebooks" / "09_from_dataframes.ipynb"
PRESTO = PROJECT / "example_notebooks" / "10_presto.ipynb"
NESTED = PROJECT / "example_notebooks" / "11_nested.ipynb"


class KernelOfThisPython(AsyncKernelManager):
    """Runs the Python that runs the tests."""

    kernel_spec = KernelSpec(
        argv=[sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}", "--log-level=ERROR"],
        display_name="Python 3",
        language="python",
        env={"PYTHONPATH": str(PROJECT)},
    )


def client_of(book: nbformat.NotebookNode, folder: Path) -> NotebookClient:
    """Return what executes a notebook in a folder."""
    return NotebookClient(
        book,
        kernel_manager_class=KernelOfThisPython,
        kernel_name="python3",
        timeout=120,
        resources={"metadata": {"path": str(folder)}},
    )


def book_of(*sources: str) -> nbformat.NotebookNode:
    """Return a notebook of code cells."""
    return nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in sources])


def with_parameters(path: Path, parameters: str, extra: str = "") -> nbformat.NotebookNode:
    """Return a notebook with a cell after its parameters' cell, and one more at its end."""
    book = nbformat.read(path, as_version=4)
    place = next(i for i, cell in enumerate(book.cells) if "parameters" in cell.metadata.get("tags", []))
    book.cells.insert(place + 1, nbformat.v4.new_code_cell(parameters))
    book.cells.append(nbformat.v4.new_code_cell(extra))
    return book


def texts(book: nbformat.NotebookNode) -> list[str]:
    """Return the plain texts of everything that the cells put out, in order."""
    outputs = [output for cell in book.cells for output in cell.get("outputs", [])]
    return [output.get("text") or output.get("data", {}).get("text/plain", "") for output in outputs]
