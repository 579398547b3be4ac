"""The A2A server on h11, where httptools has no wheels: the tests of careless requests, in a process of their own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

CONTRACT = Path(__file__).resolve().parents[1] / "contract"


@pytest.mark.extended
def test_careless_requests_are_answered_the_same_without_httptools(tmp_path: Path) -> None:
    options = ["-q", "-p", "support.without_httptools", "-p", "no:cacheprovider", f"--basetemp={tmp_path / 'inner'}"]
    tests = [CONTRACT / "test_a2a_careless_requests.py"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    environment["PYTHONPATH"] = str(CONTRACT.parent)
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", *options, *map(str, tests)],
        cwd=CONTRACT.parent.parent,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout[-4000:] + ran.stderr[-2000:]
    assert " passed" in ran.stdout
