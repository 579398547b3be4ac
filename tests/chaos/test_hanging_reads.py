"""A read-only call that hangs its process: the process ends by itself, is started again, and gets past the call."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.extended import first_of


@pytest.mark.timeout(300)
@pytest.mark.parametrize("moment", first_of(["run", "propose"]))
def test_a_read_that_hangs_its_process_is_run_twice_and_then_failed(tmp_path: Path, moment: str) -> None:
    ends: list[int] = []
    output = ""
    while len(ends) < 4 and 0 not in ends:
        done = subprocess.run(
            [sys.executable, "-m", "chaos.hanging_program", str(tmp_path), moment],
            capture_output=True,
            text=True,
            check=False,
            timeout=100,
            env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])},
        )
        assert done.returncode == 0 or "_hang" in done.stderr, done.stderr
        ends.append(done.returncode)
        output = done.stdout
    assert ends == [-26, -26, 0], "SIGVTALRM twice"
    assert (tmp_path / "begun").read_text(encoding="utf-8").splitlines() == [moment] * 2
    assert "FAILED look was under way twice when the work on the task broke off" in output
    assert "because the agent's process ended" in output
    assert "I saw what became of it." in output
