"""A real JupyterLab for tests: a server of its own, and a notebook open in chromium."""

from __future__ import annotations

import json
import os
import re
import secrets
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import nbformat
import psutil
from playwright.sync_api import Browser, BrowserContext, Locator, Playwright
from playwright.sync_api import Request as Asked

PROJECT = Path(__file__).parents[1]
CHROMIUM_ARGUMENTS = [
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
# What a fresh JupyterLab asks the network for.
DISABLED = ("@jupyterlab/apputils-extension:announcements", "@jupyterlab/extensionmanager-extension")
THEMES = "@jupyterlab/apputils-extension/themes"
WIDGETS = "@jupyter-widgets/jupyterlab-manager/plugin"
SETTINGS: dict[str, dict[str, object]] = {
    "@jupyterlab/apputils-extension/notification": {"fetchNews": "false", "checkForUpdates": False},
    "@jupyterlab/docmanager-extension/plugin": {"autosave": False},
}
START_SECONDS = 90.0
STATUS = "() => window.jupyterapp?.shell?.currentWidget?.sessionContext?.session?.kernel?.status ?? 'none'"
# Not what can be seen: cells that are out of sight are not in the page.
RUNS = "() => window.jupyterapp.shell.currentWidget.content.widgets.some(cell => cell.prompt === '*')"
# Not whether it is changed, which a cell that runs brings about again before one can look.
HEAR_OF_SAVING = """() => {
    const context = window.jupyterapp.shell.currentWidget.context;
    window.isSaved = false;
    const hear = (_, state) => {
        if (state.startsWith("completed")) {
            window.isSaved = true;
            context.saveState.disconnect(hear);
        }
    };
    context.saveState.connect(hear);
}"""


class Lab:
    """A JupyterLab server with settings, notebooks and temporary files in one folder, and nothing outside."""

    def __init__(self, folder: Path) -> None:
        self.notebooks = folder / "notebooks"
        self._runtime = folder / "runtime"
        self._settings = folder / "settings"
        self._token = secrets.token_hex(16)
        own = {
            "JUPYTER_CONFIG_DIR": folder / "config",
            "JUPYTER_DATA_DIR": folder / "data",
            "JUPYTER_RUNTIME_DIR": self._runtime,
            "JUPYTERLAB_SETTINGS_DIR": self._settings,
            "JUPYTERLAB_WORKSPACES_DIR": folder / "workspaces",
            "IPYTHONDIR": folder / "ipython",
            "TMPDIR": folder / "tmp",
        }
        for path in (self.notebooks, folder / "config" / "labconfig", *own.values()):
            path.mkdir(parents=True, exist_ok=True)
        disabled = {"disabledExtensions": dict.fromkeys(DISABLED, True)}
        (folder / "config" / "labconfig" / "page_config.json").write_text(json.dumps(disabled))
        for name, values in SETTINGS.items():
            self.set(name, values)
        self._log = (folder / "server.log").open("w")
        command = [
            *(sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", "--ip=127.0.0.1"),
            *("--ServerApp.port=0", f"--IdentityProvider.token={self._token}"),
            *(f"--ServerApp.root_dir={self.notebooks}", "--LabApp.expose_app_in_browser=True"),
        ]
        environment = {
            **{
                name: value
                for name, value in os.environ.items()
                if not name.startswith(("JUPYTER", "MATNB_"))
            },
            **{name: str(path) for name, path in own.items()},
            "PYTHONPATH": str(PROJECT),
        }
        self._process = subprocess.Popen(command, env=environment, stdout=self._log, stderr=self._log)
        self.url = self._answered()

    def set(self, plugin: str, values: dict[str, object]) -> None:
        """Give one of JupyterLab's plugins settings, as if the user had made them; a page reads them."""
        path = self._settings / f"{plugin}.jupyterlab-settings"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(values))

    def write(self, name: str, *sources: str) -> None:
        """Write a notebook of code cells."""
        cells = [nbformat.v4.new_code_cell(text, id=f"cell-{place}") for place, text in enumerate(sources)]
        kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
        book = nbformat.v4.new_notebook(cells=cells, metadata={"kernelspec": kernel})
        nbformat.write(book, self.notebooks / name)

    def address(self, name: str) -> str:
        """Return where a notebook is opened, in a fresh workspace."""
        return f"{self.url}lab/workspaces/{secrets.token_hex(4)}/tree/{name}?token={self._token}"

    def end_kernels(self) -> None:
        """End every kernel; one that is just being restarted cannot be ended before it is there again."""
        end = time.monotonic() + 30
        for kernel in json.loads(self._asked("api/kernels")):
            while True:
                try:
                    self._asked(f"api/kernels/{kernel['id']}", "DELETE")
                    break
                except HTTPError as error:
                    if error.code == 404:  # it was ended all the same
                        break
                    if error.code != 500 or time.monotonic() > end:
                        raise
                    time.sleep(0.5)

    def working_seconds(self) -> float:
        """Return the CPU seconds that kernels and the processes they started have used."""
        found = 0.0
        for process in psutil.Process(self._process.pid).children(recursive=True):
            try:
                times = process.cpu_times()
            except psutil.NoSuchProcess:
                continue
            found += times.user + times.system
        return found

    def close(self) -> None:
        """End the kernels and the server."""
        if self._process.poll() is None:
            self.end_kernels()
            self._process.terminate()
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._log.close()

    def _asked(self, path: str, method: str = "GET") -> bytes:
        request = Request(self.url + path, method=method, headers={"Authorization": f"token {self._token}"})
        with urlopen(request, timeout=30) as answer:
            body: bytes = answer.read()
            return body

    def _answered(self) -> str:
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline and self._process.poll() is None:
            for path in self._runtime.glob("jpserver-*.json"):
                try:
                    self.url = str(json.loads(path.read_text())["url"])
                    self._asked("api/status")
                except (OSError, ValueError):  # half written, or not listening yet
                    continue
                return self.url
            time.sleep(0.05)
        self._process.kill()
        self._process.wait()
        self._log.close()
        raise AssertionError(f"JupyterLab did not start:\n{Path(self._log.name).read_text()[-4000:]}")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def launched(playwright: Playwright, chromium: str) -> Browser:
    """Return a browser that asks nobody but the pages' own server."""
    return playwright.chromium.launch(executable_path=chromium, args=CHROMIUM_ARGUMENTS)


class OpenNotebook:
    """A notebook open in JupyterLab in a tab of its own: what a user does there, and sees.

    Parameters
    ----------
    lab, context, name
        The server, the browser's window, and the notebook's file.
    dark
        Whether JupyterLab's and the system's theme are dark.
    """

    def __init__(self, lab: Lab, context: BrowserContext, name: str, dark: bool = False) -> None:
        self.lab, self.path = lab, lab.notebooks / name
        self.errors: list[str] = []
        lab.set(THEMES, {"theme": "JupyterLab Dark" if dark else "JupyterLab Light"})
        self.page = context.new_page()
        self.page.emulate_media(color_scheme="dark" if dark else "light")
        self.page.set_viewport_size({"width": 1280, "height": 1400})
        self.page.set_default_timeout(60_000)
        self.page.on("console", lambda said: said.type == "error" and self.errors.append(said.text))
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("dialog", lambda dialog: self.errors.append(f"dialog: {dialog.message}"))
        self.page.on(
            "requestfailed", lambda asked: self.errors.append(f"failed: {asked.url} {asked.failure}")
        )
        self.page.on("request", self._asked)
        self.page.goto(lab.address(name))
        self.page.locator(".jp-Notebook .jp-Cell").first.wait_for()
        self.wait_until(lambda: self.status == "idle", 60)

    @property
    def status(self) -> str:
        """What the kernel said last; "idle" also while a cell runs, when a widget was used."""
        return str(self.page.evaluate(STATUS))

    @property
    def is_done(self) -> bool:
        """Whether no cell waits or runs."""
        return not self.page.evaluate(RUNS)

    def cell(self, place: int) -> Locator:
        """Return a cell, counted with those of text."""
        return self.page.locator(".jp-Notebook .jp-Cell").nth(place)

    def output(self, place: int) -> Locator:
        """Return what a cell has put out."""
        return self.cell(place).locator(".jp-Cell-outputWrapper")

    def text(self, place: int) -> str:
        """Return what a user reads under a cell, which the page scrolls to."""
        self.cell(place).scroll_into_view_if_needed()
        return self.output(place).inner_text()

    def pictures(self, *places: int) -> list[str]:
        """Return what is drawn under some cells, or under all; the page scrolls to each."""
        found: list[str] = []
        for place in places or range(self.page.locator(".jp-Notebook .jp-Cell").count()):
            self.cell(place).scroll_into_view_if_needed()
            drawn = self.output(place).locator("svg[role='img'], img")
            found += drawn.evaluate_all("all => all.map(one => one.src ?? one.outerHTML)")
        return found

    def run_all(self) -> None:
        """Choose Run All Cells in the menu; return at once."""
        self.choose("Run", "Run All Cells")

    def choose(self, menu: str, item: str) -> None:
        """Choose what begins with some words in a menu."""
        self.page.locator(".lm-MenuBar-item", has_text=re.compile(f"^{menu}$")).click()
        self.page.locator(".lm-Menu-item", has_text=re.compile(f"^{item}")).first.click()

    def run(self, place: int) -> None:
        """Run a cell; return at once."""
        self.cell(place).locator(".jp-InputArea-editor").click()
        self.page.keyboard.press("Control+Enter")

    def run_to_end(self, place: int, seconds: float = 60.0) -> None:
        """Run a cell, and wait for its end."""
        self.run(place)
        self.page.wait_for_timeout(100)
        self.wait_until(lambda: self.is_done, seconds)

    def press_interrupt(self) -> None:
        """Press the square in the toolbar."""
        self.page.locator('.jp-NotebookPanel-toolbar [data-jp-item-name="interrupt"]').click()

    def save(self) -> nbformat.NotebookNode:
        """Save, and return what is in the file then."""
        self.page.evaluate(HEAR_OF_SAVING)
        self.page.keyboard.press("Escape")
        self.page.keyboard.press("Control+s")
        self.wait_until(lambda: self.page.evaluate("() => window.isSaved"), 20)
        return nbformat.read(self.path, as_version=4)

    def wait_until(self, condition: Callable[[], object], seconds: float) -> float:
        """Wait for what the page comes to; return how many seconds it took."""
        begin = time.monotonic()
        while not condition():
            assert time.monotonic() - begin < seconds, f"not within {seconds} seconds; errors: {self.errors}"
            self.page.wait_for_timeout(20)
        return time.monotonic() - begin

    def photograph(self, path: Path, *places: int) -> None:
        """Take a picture of the page, or of some cells, each in a file of its own."""
        self.page.mouse.move(0, 0)
        if not places:
            self.page.screenshot(path=path)
        for place in places:
            self.cell(place).screenshot(path=path.with_stem(f"{path.stem}-{place}"))

    def close(self) -> None:
        """Close the tab; the kernel stays."""
        self.page.close()

    def _asked(self, asked: Asked) -> None:
        if not asked.url.startswith((self.lab.url, "data:", "blob:")):
            self.errors.append(f"asked outside: {asked.url}")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
