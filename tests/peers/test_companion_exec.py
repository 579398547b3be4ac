"""The command `isthmus companion exec`: an agent started with a companion, and its environment."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from support.companion_clients import proposing_agent, status_at
from support.isolation import IsolatedFolders
from support.isthmus_program import ISTHMUS, companion_program, isthmus, process_ends, read_line
from support.waiting import eventually

_SHOW_ENVIRONMENT = "import json, os, sys; print(json.dumps(dict(os.environ))); sys.exit(7)"


@pytest.mark.requirement("GEM-029", "CLD-009", "CLD-010")
def test_exec_gives_an_agent_every_variable_and_not_the_users_token(
    workspace: Path, isolated_folders: IsolatedFolders, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_PROXY", "example.org")
    with companion_program(workspace) as companion:
        (control_file,) = (isolated_folders.runtime / "isthmus").glob("*.json")
        users_token = json.loads(control_file.read_text(encoding="utf-8"))["token"]
        done = isthmus("companion", "exec", "--", sys.executable, "-c", _SHOW_ENVIRONMENT, folder=workspace)
        assert done.returncode == 7, done.stderr
        environment = json.loads(done.stdout)
        assert environment["GEMINI_CLI_IDE_SERVER_PORT"] == str(companion.ready["port"])
        assert environment["GEMINI_CLI_IDE_WORKSPACE_PATH"] == str(workspace)
        assert environment["GEMINI_CLI_IDE_AUTH_TOKEN"] == companion.discovered["authToken"]
        assert environment["GEMINI_CLI_IDE_PID"] == str(companion.process.pid)
        assert environment["QWEN_CODE_IDE_SERVER_PORT"] == str(companion.ready["port"])
        assert environment["QWEN_CODE_IDE_WORKSPACE_PATH"] == str(workspace)
        assert environment["CLAUDE_CODE_SSE_PORT"] == str(companion.ready["servers"]["claude"]["port"])
        assert environment["ENABLE_IDE_INTEGRATION"] == "true"
        assert environment["NO_PROXY"] == "example.org,127.0.0.1,localhost,::1"
        assert environment["no_proxy"] == "example.org,127.0.0.1,localhost,::1"
        assert users_token not in done.stdout


def test_exec_leads_claude_code_to_the_companion_from_another_editors_terminal(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLAUDE_CODE_SSE_PORT", "12345")
    with companion_program(workspace) as companion:
        done = isthmus("companion", "exec", "--", sys.executable, "-c", _SHOW_ENVIRONMENT, folder=workspace)
        port = companion.ready["servers"]["claude"]["port"]
        assert json.loads(done.stdout)["CLAUDE_CODE_SSE_PORT"] == str(port)


def test_what_exec_runs_is_an_agent_before_it_connects(workspace: Path) -> None:
    with companion_program(workspace) as companion, proposing_agent(companion, workspace / "a.py") as agent:
        assert read_line(agent) == "proposed"
        done = isthmus("companion", "exec", "--", *ISTHMUS, "ide", "accept", "a.py", folder=workspace)
        assert done.returncode == 1
        assert "--allow-agent-accept" in done.stderr
        assert isthmus("ide", "accept", "a.py", folder=workspace).returncode == 0


@pytest.mark.requirement("GEM-006", "GEM-087")
def test_exec_starts_a_companion_that_ends_with_the_agent(workspace: Path, isolated_folders: IsolatedFolders) -> None:
    script = "import os, sys; print(os.environ['GEMINI_CLI_IDE_SERVER_PORT'], flush=True); sys.stdin.read()"
    command = [*ISTHMUS, "companion", "exec", "--", sys.executable, "-c", script]
    with subprocess.Popen(
        command, cwd=workspace, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8"
    ) as agent:
        port = int(read_line(agent))
        assert status_at(port) == 401
        (path,) = (isolated_folders.temporary / "gemini" / "ide").iterdir()
        pid = int(path.name.split("-")[3])
        agent.send_signal(signal.SIGTERM)
        assert agent.wait(30) == -signal.SIGTERM
        process_ends(pid)
        assert not path.exists()


def test_a_companion_that_exec_started_stays_for_the_agents_that_came_to_it(
    workspace: Path, isolated_folders: IsolatedFolders
) -> None:
    script = "import os, sys; print(os.environ['GEMINI_CLI_IDE_SERVER_PORT'], flush=True); sys.stdin.read()"
    command = [*ISTHMUS, "companion", "exec", "--", sys.executable, "-c", script]

    def agent() -> "subprocess.Popen[str]":
        return subprocess.Popen(
            command, cwd=workspace, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8"
        )

    with agent() as first:
        port = int(read_line(first))
        with agent() as second:
            assert int(read_line(second)) == port
            first.communicate(timeout=30)
            with pytest.raises(AssertionError, match="not within"):  # it checks its agents twice a second
                eventually(lambda: not list((isolated_folders.temporary / "gemini" / "ide").iterdir()), seconds=2)
            assert status_at(port) == 401
            second.communicate(timeout=30)
    eventually(lambda: not list((isolated_folders.temporary / "gemini" / "ide").iterdir()), what="the companion's end")


def test_exec_of_a_program_that_does_not_exist_is_127_and_starts_nothing(
    workspace: Path, isolated_folders: IsolatedFolders
) -> None:
    done = isthmus("companion", "exec", "--", "no-such-agent", folder=workspace)
    assert done.returncode == 127
    assert "no-such-agent" in done.stderr
    assert not (isolated_folders.temporary / "gemini").exists()
