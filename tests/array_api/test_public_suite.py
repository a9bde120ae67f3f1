"""The array API standard's own test-suite, run against matnb where a checkout of it is at hand.

It is not on PyPI. Clone it with its submodules, which hold the standard's texts that it reads, install what
it needs, and name the folder::

    git clone --recurse-submodules https://github.com/data-apis/array-api-tests ~/array-api-tests
    git -C ~/array-api-tests checkout --recurse-submodules COMMIT  # the one below
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
COMMIT = "a75721f3b948be4970a66181961325c28dd54eb5"  # at another one the suite has other tests
EXAMPLES = os.environ.get("MATNB_ARRAY_API_EXAMPLES", "10")
SKIPS = Path(__file__).with_name("skips.txt")


def commit_of(checkout: Path) -> str:
    """Return the commit that a checkout is at, or what git says instead."""
    asked = ["git", "-C", str(checkout), "rev-parse", "HEAD"]
    told = subprocess.run(asked, capture_output=True, text=True, check=False)
    return (told.stdout or told.stderr).strip()


def checked(checkout: Path) -> Path:
    """Return a checkout of the suite.

    Raises
    ------
    ValueError
        When the folder holds none, or one at another commit.
    """
    if not (checkout / "array_api_tests").is_dir():
        raise ValueError(f"no array_api_tests in {checkout}")
    found = commit_of(checkout)
    if found != COMMIT:
        raise ValueError(
            f"{checkout} is at {found}, and the list of what is left out is for {COMMIT}: "
            f"git -C {checkout} checkout --recurse-submodules {COMMIT}"
        )
    return checkout


def test_a_checkout_at_another_commit_is_told(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no array_api_tests in"):
        checked(tmp_path)
    (tmp_path / "array_api_tests").mkdir()
    with pytest.raises(ValueError, match=f"not a git repository.*checkout --recurse-submodules {COMMIT}"):
        checked(tmp_path)
    identity = ["-c", "user.name=someone", "-c", "user.email=someone@example.org"]
    for command in (["init", "-q"], [*identity, "commit", "-q", "--allow-empty", "-m", "another"]):
        subprocess.run(["git", "-C", str(tmp_path), *command], check=True)
    with pytest.raises(ValueError, match=rf"is at [0-9a-f]{{40}}, and .* for {COMMIT}"):
        checked(tmp_path)


def test_every_test_that_is_left_out_has_a_reason() -> None:
    reason = ""
    for line in SKIPS.read_text().splitlines():
        reason = line if line.startswith("#") else reason if line else ""
        assert not line or reason, f"no reason above {line}"


@pytest.mark.slow
@pytest.mark.skipif(not CHECKOUT, reason="MATNB_ARRAY_API_TESTS names no checkout of array-api-tests")
@pytest.mark.parametrize("engine", ["interpret", "auto"])
def test_the_standard(engine: str) -> None:
    checkout = checked(Path(CHECKOUT).expanduser())
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
