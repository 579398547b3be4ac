"""Policy files in the hands of the real Gemini CLI and of Isthmus: both refuse and run the same calls."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from support.headless_gemini import RunHere, gemini_settings, run_gemini_cli
from support.scripted_wire import Call, Reply, Say

pytestmark = pytest.mark.timeout(300)

POLICY = """
[[rule]]
toolName = "run_shell_command"
commandPrefix = "touch denied"
decision = "deny"
priority = 100
denyMessage = "no touching"

[[rule]]
toolName = "run_shell_command"
commandPrefix = "touch denied but-not-this"
decision = "allow"
priority = 101

[[rule]]
toolName = "run_shell_command"
commandRegex = "touch ask.d"
decision = "ask_user"
priority = 100

[[rule]]
toolName = ["write_file", "replace"]
argsPattern = '"file_path":"[^"]*secret'
decision = "deny"
priority = 100

[[rule]]
toolName = "glob"
decision = "deny"
priority = 100

[[rule]]
toolName = "run_shell_command"
commandPrefix = "touch headless"
decision = "deny"
interactive = false
priority = 100

[[rule]]
toolName = "run_shell_command"
commandPrefix = "touch plan"
decision = "deny"
modes = ["plan"]
priority = 100
"""


def shell(command: str) -> Reply:
    return Reply.of(Call("run_shell_command", {"command": command, "description": "d"}))


def write(path: Path) -> Reply:
    return Reply.of(Call("write_file", {"file_path": str(path), "content": "x"}))


def replies(folder: Path) -> list[Reply]:
    commands = (
        "touch denied",
        "touch denied but-not-this",
        "echo a && touch denied with-echo",
        "touch deniedx",
        "touch asked",
        "touch headless",
        "touch plan",
        "touch free",
    )
    return [*map(shell, commands), write(folder / "a-secret"), write(folder / "b"), Reply.of(Say("done"))]


EXPECTED = ["b", "but-not-this", "denied", "deniedx", "free", "plan"]


@pytest.fixture
def policy(workspace: Path) -> None:
    folder = Path.home() / ".gemini" / "policies"
    folder.mkdir(parents=True)
    (folder / "p.toml").write_text(POLICY, "utf-8")
    assert list(workspace.iterdir()) == []


def check(workspace: Path, requests: Sequence[Any], errors: str) -> None:
    assert sorted(path.name for path in workspace.iterdir()) == EXPECTED, errors
    assert "no touching" in str(requests[1])
    assert "'glob'" not in str(requests[0]["tools"])


@pytest.mark.comparison
@pytest.mark.usefixtures("policy")
def test_gemini_cli_runs_what_is_allowed_in_yolo_and_refuses_the_rest(workspace: Path) -> None:
    gemini_settings({})
    done, requests = run_gemini_cli(workspace, "--approval-mode", "yolo", "-p", "go", replies=replies(workspace))
    assert done.returncode == 0, done.stderr
    check(workspace, requests, done.stderr)


@pytest.mark.usefixtures("policy")
def test_isthmus_runs_and_refuses_the_same(workspace: Path, run_here: RunHere) -> None:
    status, _, errors, requests = run_here("-p", "go", "--approval-mode", "yolo", replies=replies(workspace))
    assert status == 57, errors  # a rule wants a user to be asked
    check(workspace, requests, errors)
