"""The command ``isthmus companion --tools FILE.py`` as a program: declared tools reach agents, faults are reported."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from support.isthmus_program import ISTHMUS, companion_program, isthmus

ROOT = Path(__file__).resolve().parents[2]


def _settings() -> dict[str, object]:
    """Return the settings that the documentation shows."""
    guide = (ROOT / "docs" / "how-to" / "companion-tools.md").read_text(encoding="utf-8")
    return json.loads(guide.split("```json\n", 1)[1].split("```", 1)[0])


@pytest.mark.requirement("CLD-084")
def test_an_agent_has_the_tools_of_the_companion_as_the_documentation_says(workspace: Path) -> None:
    guide = (ROOT / "docs" / "how-to" / "companion-tools.md").read_text(encoding="utf-8")
    tools = workspace / "tools.py"
    tools.write_text(guide.split("```python\n", 1)[1].split("```", 1)[0], encoding="utf-8")
    settings = Path(os.environ["HOME"]) / ".gemini" / "settings.json"
    settings.parent.mkdir(exist_ok=True)
    settings.write_text(json.dumps(_settings()), encoding="utf-8")
    with companion_program(workspace, "--tools", "tools.py"):
        assert _listed(workspace) == "✓ editor"
    with companion_program(workspace):
        assert _listed(workspace) == "✗ editor"  # it connects as well, and has none of the tools


def _listed(workspace: Path) -> str:
    """Return the status that Isthmus itself shows for the server, started beside the companion."""
    done = subprocess.run(
        [*ISTHMUS, "companion", "exec", "--", *ISTHMUS, "mcp", "list"],
        cwd=workspace, capture_output=True, text=True, encoding="utf-8", check=False, timeout=60,
    )  # fmt: skip
    return done.stdout.partition(":")[0]


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        ("def shout(): pass", "there is no function with @companion.tool in it"),
        ("import missing_module", "line 1: ModuleNotFoundError"),
        ("from isthmus import companion\n@companion.tool\ndef openFile():\n  'x'", "openFile: a tool of the companion"),
        ("from isthmus import companion\n@companion.tool\ndef f(a: object()):\n  'x'", "custom tool f:"),
    ],
)
def test_a_file_that_cannot_be_used_is_one_clear_line_and_nothing_is_left(
    workspace: Path, source: str, problem: str
) -> None:
    (workspace / "tools.py").write_text(source, encoding="utf-8")
    done = isthmus("companion", "--editor", "headless", "--tools", "tools.py", folder=workspace)
    assert done.returncode == 1
    assert "--tools tools.py" in done.stderr
    assert problem in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert not list((Path(os.environ["HOME"]) / ".claude").rglob("*.lock"))


def test_a_missing_file_is_told_with_its_name(workspace: Path) -> None:
    done = isthmus("companion", "--editor", "headless", "--tools", "missing.py", folder=workspace)
    assert done.returncode == 1
    assert "--tools missing.py: expected an existing Python file" in done.stderr


def test_what_a_tool_prints_does_not_come_between_the_lines_of_the_program(workspace: Path) -> None:
    (workspace / "tools.py").write_text(
        "import sys\nfrom isthmus import companion\nprint('loading')\n"
        "@companion.tool\ndef f() -> str:\n  'x'\n  return ''\n",
        encoding="utf-8",
    )
    with companion_program(workspace, "--tools", "tools.py") as companion:
        assert companion.ready["pid"] == companion.process.pid
