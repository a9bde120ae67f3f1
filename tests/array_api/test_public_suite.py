"""The array API standard's own test-suite, run against matnb where a checkout of it is at hand.

It is not on PyPI. Clone it with its submodules, which hold the standard's texts that it reads, install what
it needs, and name the folder::

    git clone --recurse-submodules https://github.com/data-apis/array-api-tests ~/array-api-tests
    .venv/bin/pip install -r ~/array-api-tests/requirements.txt
    MATNB_ARRAY_API_TESTS=~/array-api-tests .venv/bin/pytest tests/array_api -m slow

``MATNB_ARRAY_API_EXAMPLES`` says how many examples each test draws, 10 if it says nothing; both engines are
tried, and a failure shows the suite's own report. What is left out, and why, is in ``skips.txt``: a test that
fails and is not listed there is a fault of matnb's.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

CHECKOUT = os.environ.get("MATNB_ARRAY_API_TESTS", "")
EXAMPLES = os.environ.get("MATNB_ARRAY_API_EXAMPLES", "10")
SKIPS = Path(__file__).with_name("skips.txt")


@pytest.mark.slow
@pytest.mark.skipif(not CHECKOUT, reason="MATNB_ARRAY_API_TESTS names no checkout of array-api-tests")
@pytest.mark.parametrize("engine", ["interpret", "auto"])
def test_the_standard(engine: str) -> None:
    checkout = Path(CHECKOUT).expanduser()
    assert (checkout / "array_api_tests").is_dir(), f"no array_api_tests in {checkout}"
    told = {
        "ARRAY_API_TESTS_MODULE": "matnb",
        "ARRAY_API_TESTS_VERSION": "2024.12",
        "MATNB_ENGINE": engine,
    }
    command = [sys.executable, "-m", "pytest", "array_api_tests", "-q", "-p", "no:cacheprovider"]
    command += ["--max-examples", EXAMPLES, "--derandomize", "--disable-deadline"]
    # With "=", or pytest takes the file's folder, and so this project's settings, for where it is to run.
    command += [f"--skips-file={SKIPS}", "--disable-extension", "fft", "linalg"]
    run = subprocess.run(
        command, cwd=checkout, env=os.environ | told, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stdout[-20_000:] + run.stderr[-2_000:]
