"""Questions of an agent are answered by the user: an answer from the agent's programs is asked about, or refused.

Real processes, each started in a way in which an agent's shell command would leave its family.
"""

import asyncio
import json
import os
import shlex
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from isthmus.editors.headless import HeadlessEditor
from isthmus.ide.editor import Capability
from isthmus.ide.options import CompanionOptions
from support import agent_program
from support.companion import running_host
from support.companion_clients import proposing_agent
from support.isthmus_program import ISTHMUS, companion_program, isthmus, read_line, started_isthmus
from support.programs import require
from support.waiting import eventually

ACCEPT = shlex.join([*ISTHMUS, "ide", "accept", "a.py"])
TMUX = f"isthmus-test-{os.getpid()}"
"""The name of a tmux server of this process alone."""


def _without_environment(command: str) -> str:
    return shlex.join(["env", "-i", *(f"{name}={value}" for name, value in os.environ.items()), "sh", "-c", command])


def _left_alone(command: str) -> str:
    """Return a command with a double fork: the shell in between has ended, or is about to."""
    return shlex.join(["sh", "-c", f"({command}) & exit"])


def _ways(told: str) -> dict[str, str]:
    """Return commands that accept a review and write the exit status to the file ``told``."""
    accept = f"{ACCEPT} >{told}.part 2>&1; mv {told}.part {told}"
    quoted = shlex.quote(accept)
    return {
        "setsid": f"setsid -f sh -c {quoted}",
        "double fork": _left_alone(accept),
        "setsid, env -i": _without_environment(f"setsid -f sh -c {quoted}"),
        "double fork, env -i": _without_environment(_left_alone(accept)),
        "script": f"script -qc {quoted} /dev/null",
        "setsid, script, env -i": _without_environment(f"setsid -f script -qc {quoted} /dev/null </dev/null"),
        "tmux": f"tmux -L {TMUX} new-session -d {quoted}",
        # Another server: the first one ends with its session, perhaps just when this one would begin.
        "tmux, env -i": _without_environment(f"tmux -L {TMUX}-2 new-session -d {quoted}"),
    }


@pytest.fixture
def file(workspace: Path) -> Path:
    path = workspace / "a.py"
    path.write_text("old\n", encoding="utf-8")
    return path


def test_an_agent_that_leaves_its_family_does_not_accept_its_own_edit(
    workspace: Path, tmp_path: Path, file: Path
) -> None:
    for program in ("setsid", "script", "tmux"):
        require(program)
    ways, stop = tuple(_ways("")), tmp_path / "stop"
    told = {way: tmp_path / f"told{number}" for number, way in enumerate(ways)}
    # One way after the other, below one agent, which stays.
    tries = (f"{_ways(str(answer))[way]}; until [ -e {answer} ]; do sleep 0.02; done" for way, answer in told.items())
    line = "; ".join((*tries, f"until [ -e {stop} ]; do sleep 0.02; done"))
    with (
        companion_program(workspace) as companion,
        proposing_agent(companion, file, "sh", "-c", line) as agent,
    ):
        assert read_line(agent) == "proposed"
        try:
            for way in ways:
                eventually(told[way].exists, what=f"the end of the command, {way}")
            answers = {way: answer.read_text(encoding="utf-8") for way, answer in told.items()}
            assert {way: answer for way, answer in answers.items() if "refused" not in answer} == {}
            diffs = json.loads(isthmus("ide", "diffs", "--json", folder=workspace).stdout)["diffs"]
            assert [diff["file"] for diff in diffs] == [str(file)]
        finally:
            stop.touch()
            for server in (TMUX, f"{TMUX}-2"):
                subprocess.run([require("tmux"), "-L", server, "kill-server"], check=False, capture_output=True)


def test_the_mark_of_an_agent_in_the_environment_counts(
    workspace: Path, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with companion_program(workspace) as companion, proposing_agent(companion, file) as agent:
        assert read_line(agent) == "proposed"
        monkeypatch.setenv("GEMINI_CLI", "1")
        refused = started_isthmus("ide", "accept", "a.py", folder=workspace)
        assert refused.returncode == 1
        assert "GEMINI_CLI" in refused.stderr
        monkeypatch.delenv("GEMINI_CLI")
        assert started_isthmus("ide", "accept", "a.py", folder=workspace).returncode == 0


def test_the_user_accepts_in_the_shell_of_a_terminal(workspace: Path, file: Path) -> None:
    with companion_program(workspace) as companion, proposing_agent(companion, file) as agent:
        assert read_line(agent) == "proposed"
        shell = [str(require("script")), "-qec", "bash --norc --noprofile -i", "/dev/null"]
        done = subprocess.run(
            shell, cwd=workspace, input=f"{ACCEPT}\nexit\n".encode(), capture_output=True, check=False, timeout=60
        )
        assert json.loads(read_line(agent))["method"] == "ide/diffAccepted", done.stdout


def test_the_user_accepts_in_tmux(workspace: Path, file: Path) -> None:
    tmux = [str(require("tmux")), "-L", TMUX]
    with companion_program(workspace) as companion, proposing_agent(companion, file) as agent:
        assert read_line(agent) == "proposed"
        subprocess.run([*tmux, "new-session", "-d", "bash --norc --noprofile -i"], cwd=workspace, check=True)
        try:
            subprocess.run([*tmux, "send-keys", ACCEPT, "Enter"], check=True)
            assert json.loads(read_line(agent))["method"] == "ide/diffAccepted"
        finally:
            subprocess.run([*tmux, "kill-server"], check=False)


class AskingEditor(HeadlessEditor):
    """A headless editor that can ask, and is answered at once."""

    def __init__(self, folder: Path, answer: bool) -> None:
        super().__init__((str(folder),))
        self.asked: list[str] = []
        self._answer = answer

    @property
    def unavailable(self) -> Mapping[Capability, str]:
        missing = dict(super().unavailable)
        missing.pop(Capability.CONFIRM)
        return missing

    async def confirm(self, title: str, text: str) -> bool:
        self.asked.append(f"{title} {text}")
        return self._answer


@pytest.mark.anyio
@pytest.mark.parametrize("yes", [True, False])
async def test_without_a_terminal_the_editor_asks_whether_it_was_the_user(
    workspace: Path, file: Path, yes: bool
) -> None:
    editor = AskingEditor(workspace, yes)
    async with running_host(editor, CompanionOptions()) as (_, ready, _):
        discovered = json.loads(Path(ready.discovery_file).read_text(encoding="utf-8"))
        # The agent is another process, so that a program started here does not run below it.
        program = [*ISTHMUS, "ide", "accept", "a.py"]
        url = f"http://127.0.0.1:{ready.port}/mcp"
        command = [sys.executable, str(agent_program.__file__), url, discovered["authToken"], str(file), "new\n"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, encoding="utf-8") as agent:
            assert await asyncio.to_thread(read_line, agent) == "proposed"
            done = await asyncio.to_thread(
                subprocess.run, program, cwd=workspace, capture_output=True, text=True, check=False, timeout=60,
                start_new_session=True,
            )  # fmt: skip
            agent.kill()
    assert done.returncode == (0 if yes else 1), done.stderr
    (asked,) = editor.asked
    assert "a.py" in asked
    assert "it has no terminal" in asked
