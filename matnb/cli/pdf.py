"""A page as PDF: printed by chromium, without the date and the place that it would put on each sheet."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from matnb.config import chromium_from_environment
from matnb.errors import MatnbError, UnsupportedError

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
        raise UnsupportedError(f"MATNB_CHROMIUM={wanted!r}: there is no such program")
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
    with tempfile.TemporaryDirectory(prefix="matnb-print-", ignore_cleanup_errors=True) as folder:
        source, target = Path(folder, "page.html"), Path(folder, "page.pdf")
        source.write_text(page, encoding="utf-8", newline="\n")
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
        return _settled(target.read_bytes())


def _settled(printed: bytes) -> bytes:
    printed = _DATE.sub(lambda found: _padded(b"/%s (D:19700101000000" % found[1], found[0]), printed)
    return _CREATOR.sub(lambda found: _padded(b"/Creator (matnb", found[0]), printed)


def _padded(text: bytes, before: bytes) -> bytes:
    # A closed text as long as what it stands for; one that is too long leaves that as it is.
    return before if len(text) >= len(before) else text + b")" + b" " * (len(before) - len(text) - 1)
