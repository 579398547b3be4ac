"""``isthmus acp`` with acpx, a headless client: one prompt, and a session that its background process keeps."""

import json
import os
import re
import shlex
import subprocess
from collections.abc import Generator, Sequence
from pathlib import Path

import pytest

from support.acp_client import acp_command
from support.programs import node_package, require
from support.waiting import eventually

SECONDS_KEPT = "30"
"""Time after which the background process of a session ends by itself, if a test could not close the session."""


class Acpx:
    """The program acpx in the workspace, with our agent."""

    def __init__(self, folder: Path, workspace: Path) -> None:
        program = node_package("acpx") / "dist" / "cli.js"
        agent = shlex.join(acp_command(folder))
        self._workspace = workspace
        self._program = (str(require("node")), str(program))
        self._command = (*self._program, "--ttl", SECONDS_KEPT, "--agent", agent)

    def run(self, *arguments: str, status: int = 0) -> str:
        """Run a command to its end, and return what it printed."""
        return self._run([*self._command, *arguments], status)

    def run_named(self, *arguments: str) -> str:
        """Run a command that names the agent of its settings, and return what it printed."""
        return self._run([*self._program, *arguments], 0)

    def _run(self, command: Sequence[str], status: int) -> str:
        ended = subprocess.run(
            command,
            cwd=self._workspace, capture_output=True, encoding="utf-8", timeout=60, check=False,
        )  # fmt: skip
        assert ended.returncode == status, ended.stdout + ended.stderr
        return ended.stdout

    def start(self, output: Path, *arguments: str) -> "subprocess.Popen[bytes]":
        """Start a command whose output goes to a file."""
        with output.open("wb") as file:
            return subprocess.Popen([*self._command, *arguments], cwd=self._workspace, stdout=file)


@pytest.fixture
def acpx(tmp_path: Path, workspace: Path) -> Generator[Acpx]:
    running = Acpx(tmp_path, workspace)
    yield running
    if (Path(os.environ["HOME"]) / ".acpx" / "sessions").exists():
        running.run("sessions", "close")


def use_settings_of_the_guide(folder: Path) -> None:
    """Write the settings that name our agent, as the guide has them, with the command of the tests."""
    page = (Path(__file__).resolve().parents[2] / "docs" / "how-to" / "acp.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"`~/.acpx/config.json`:\n\n```json\n(.*?)```", page, flags=re.DOTALL)
    settings = json.loads(block)
    assert settings == {"agents": {"isthmus": {"argv": ["isthmus", "acp"]}}}
    settings["agents"]["isthmus"]["argv"] = list(acp_command(folder))
    own = Path(os.environ["HOME"]) / ".acpx"
    own.mkdir()
    (own / "config.json").write_text(json.dumps(settings), encoding="utf-8")


@pytest.mark.extended
def test_a_single_prompt_writes_what_is_allowed_alone(acpx: Acpx, tmp_path: Path, workspace: Path) -> None:
    use_settings_of_the_guide(tmp_path)
    allowed = acpx.run_named("--approve-all", "isthmus", "exec", "write allowed.txt")
    refused = acpx.run("--deny-all", "exec", "write refused.txt", status=5)

    assert "[tool] Write allowed.txt (completed)" in allowed
    assert f"diff {workspace / 'allowed.txt'} (+" in allowed
    assert "It is written." in allowed
    assert "[tool] Write refused.txt (failed)" in refused
    assert "It was refused." in refused
    assert [file.name for file in workspace.iterdir()] == ["allowed.txt"]


@pytest.mark.extended
def test_a_session_is_continued_queued_for_and_cancelled(acpx: Acpx, tmp_path: Path) -> None:
    session = acpx.run("sessions", "new").split()[0]
    hello = acpx.run("prompt", "say hello")
    # acpx begins another session if this one cannot be continued before its first prompt.
    assert "session/new" not in hello
    assert "Hello from the agent." in hello
    assert [line.split("\t")[:2] for line in acpx.run("sessions", "list").splitlines()] == [[session, "say hello"]]

    slow = acpx.start(tmp_path / "slow.txt", "prompt", "take your time")
    with slow:
        try:
            eventually(lambda: "I begin." in (tmp_path / "slow.txt").read_text(encoding="utf-8"))
            assert acpx.run("prompt", "--no-wait", "say hello again").startswith("[queued]")
            acpx.run("cancel")
            assert slow.wait(30) == 0
        finally:
            slow.kill()
    assert "[done] cancelled" in (tmp_path / "slow.txt").read_text(encoding="utf-8")
    # It waits for what was queued before it.
    assert "Hello from the agent." in acpx.run("prompt", "say hello")
    assert acpx.run("sessions", "read").count("Hello from the agent.") == 3
