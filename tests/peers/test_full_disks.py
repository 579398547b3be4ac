"""The program where files may not grow: one line says why, and what to do; no traceback."""

import os
import resource
import subprocess
from functools import partial
from pathlib import Path

import pytest

from support.isolation import IsolatedFolders
from support.isthmus_program import ISTHMUS

REASON = "cannot be opened: the disk has an error, or the size of files is limited too much (ulimit -f)."


def limit_size(maximum: int) -> None:
    """Limit the size of all files that this process writes, in bytes; more is an error and no signal."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (maximum, maximum))


@pytest.mark.parametrize("maximum", [10_000, 50_000, 200_000])
def test_files_that_may_not_grow_are_named_in_a_line(
    isolated_folders: IsolatedFolders, workspace: Path, maximum: int
) -> None:
    ran = subprocess.run(
        [*ISTHMUS, "-p", "hi", "-m", "demo", "--no-ide"],
        cwd=workspace,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        preexec_fn=partial(limit_size, maximum),
    )
    assert ran.returncode == 1
    assert "Traceback" not in ran.stderr
    lines = [line for line in ran.stderr.splitlines() if not line.startswith("isthmus: Model:")]
    assert all(line.startswith("isthmus: ") for line in lines), ran.stderr
    expected = REASON if maximum < 100_000 else "the journal could not be written (disk I/O error)"
    assert expected in lines[0]
