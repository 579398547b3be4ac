"""Claude Code's permission rules, read from its settings file, in a session of the agent."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from isthmus.agent.approval.policy import ApprovalMode, Policy
from isthmus.agent.approval.restricted_tools import restrict
from isthmus.events import TaskState
from isthmus.settings import load_folder_rules
from isthmus.tools.builtin import builtin_tools
from support.agent_harness import AgentHarness
from support.gemini_wire import GeminiWire
from support.scripted_wire import Call, Reply, Say

pytestmark = pytest.mark.anyio


@pytest.fixture
def wire() -> Iterator[GeminiWire]:
    with GeminiWire() as wire:
        yield wire


def harness(
    tmp_path: Path,
    wire: GeminiWire,
    mode: ApprovalMode = ApprovalMode.DEFAULT,
    *,
    may_ask: bool = True,
    **permissions: list[str],
) -> AgentHarness:
    """Return an agent in a project, whose user has these permissions."""
    home, project = tmp_path / "home", tmp_path / "project"
    (home / ".claude").mkdir(parents=True, exist_ok=True)
    project.mkdir(exist_ok=True)
    (home / ".claude" / "settings.json").write_text(json.dumps({"permissions": permissions}), "utf-8")
    rules = load_folder_rules(project, home, {}).untrusted
    tools = restrict(builtin_tools(), rules.tools, rules.policies, rules.permissions)
    return AgentHarness(project, wire, Policy(mode, may_ask=may_ask), tools=tools)


def with_secret(tmp_path: Path) -> Path:
    """Return a project with a file that must stay secret, and links to it."""
    project = tmp_path / "project"
    (project / "secrets").mkdir(parents=True)
    (project / "secrets" / "key").write_text("word: xyzzy\n")
    (project / "open").write_text("word: plain\n")
    (project / "link").symlink_to(project / "secrets" / "key")
    (project / "folder").symlink_to(project / "secrets")
    return project


READS: list[tuple[str, dict[str, Any]]] = [
    ("read_file", {"file_path": "secrets/key"}),
    ("read_file", {"file_path": "link"}),
    ("read_file", {"file_path": "folder/key"}),
    ("read_file", {"path": "./open/../secrets/key"}),
    ("read_many_files", {"include": ["**"]}),
    ("read_many_files", {"include": ["secrets"]}),
    ("read_many_files", {"include": ["link"]}),
    ("grep_search", {"pattern": "word"}),
    ("grep_search", {"pattern": "word", "dir_path": "secrets/key"}),
    ("grep_search", {"pattern": "word", "dir_path": "folder", "no_ignore": True}),
    ("run_shell_command", {"command": "cat secrets/key"}),
    ("run_shell_command", {"command": "cd secrets && cat key"}),
    ("run_shell_command", {"command": "cat link"}),
    ("run_shell_command", {"command": "grep word < secrets/key"}),
    ("replace", {"file_path": "secrets/key", "old_string": "word: ", "new_string": "w: "}),
    ("write_file", {"file_path": "link", "content": "new"}),
]


@pytest.mark.parametrize("mode", [ApprovalMode.DEFAULT, ApprovalMode.YOLO])
async def test_no_tool_shows_or_changes_a_file_that_may_not_be_read(
    tmp_path: Path, wire: GeminiWire, mode: ApprovalMode
) -> None:
    project = with_secret(tmp_path)
    agent = harness(tmp_path, wire, mode, deny=["Read(./secrets/**)"])
    wire.add(Reply.of(*(Call(name, arguments) for name, arguments in READS)), Reply.of(Say("done")))
    assert (await agent.prompt("go")).state is TaskState.COMPLETED
    assert "xyzzy" not in agent.told()
    assert "plain" in agent.told()
    assert (project / "secrets" / "key").read_text() == "word: xyzzy\n"
    assert "'Read(./secrets/**)' in permissions.deny" in agent.told()


@pytest.mark.parametrize(
    ("name", "arguments"), [("glob", {"pattern": "**/*"}), ("list_directory", {"dir_path": "secrets"})]
)
async def test_the_names_of_files_that_may_not_be_read_are_not_listed(
    tmp_path: Path, wire: GeminiWire, name: str, arguments: dict[str, Any]
) -> None:
    with_secret(tmp_path)
    agent = harness(tmp_path, wire, deny=["Read(./secrets/**)"])
    wire.add(Reply.of(Call(name, arguments)), Reply.of(Say("done")))
    await agent.prompt("go")
    assert "key" not in agent.told()


async def test_a_users_reference_does_not_reach_a_file_that_may_not_be_read(tmp_path: Path, wire: GeminiWire) -> None:
    with_secret(tmp_path)
    agent = harness(tmp_path, wire, deny=["Read(./secrets/**)"])
    wire.add(Reply.of(Say("done")))
    await agent.prompt("see @secrets/key and @link and @open and @secrets")
    assert "xyzzy" not in str(wire.requests)
    assert "plain" in str(wire.requests)


async def test_a_file_that_is_asked_about_is_read_once_allowed_and_in_no_search(
    tmp_path: Path, wire: GeminiWire
) -> None:
    with_secret(tmp_path)
    agent = harness(tmp_path, wire, ApprovalMode.YOLO, ask=["Read(./secrets/**)"])
    search = Call("grep_search", {"pattern": "word"})
    wire.add(Reply.of(search, Call("read_file", {"file_path": "secrets/key"})), Reply.of(Say("done")))
    assert (await agent.prompt("go")).state is TaskState.INPUT_REQUIRED
    assert [call.status.name for call in agent.calls] == ["SUCCEEDED", "PENDING"]
    assert (await agent.answer(agent.calls[1])).state is TaskState.COMPLETED
    assert agent.told().count("xyzzy") == 1


async def test_a_denied_command_is_refused_in_yolo_and_a_denied_tool_not_offered(
    tmp_path: Path, wire: GeminiWire
) -> None:
    agent = harness(tmp_path, wire, ApprovalMode.YOLO, deny=["Bash(touch x*)", "WebFetch"])
    commands = ("touch x", "echo && touch xy", "touch y")
    wire.add(Reply.of(*(Call("run_shell_command", {"command": each}) for each in commands)), Reply.of(Say("done")))
    assert (await agent.prompt("go")).state is TaskState.COMPLETED
    assert [path.name for path in (tmp_path / "project").iterdir() if not path.name.startswith(".")] == ["y"]
    assert "web_fetch" not in str(agent.body(0)["tools"])


async def test_what_the_user_allows_runs_without_asking_where_nobody_can_be_asked(
    tmp_path: Path, wire: GeminiWire
) -> None:
    agent = harness(tmp_path, wire, may_ask=False, allow=["Bash(touch:*)", "Edit(src/**)"])
    calls = [
        Call("run_shell_command", {"command": "touch a"}),
        Call("run_shell_command", {"command": "mkdir b"}),
        Call("write_file", {"file_path": "src/c", "content": ""}),
        Call("write_file", {"file_path": "src/.env", "content": ""}),
        Call("write_file", {"file_path": "d", "content": ""}),
    ]
    wire.add(Reply.of(*calls), Reply.of(Say("done")))
    await agent.prompt("go")
    files = sorted(path.name for path in (tmp_path / "project").rglob("*") if path.is_file())
    assert [name for name in files if name in {"a", "b", "c", "d", ".env"}] == ["a", "c"]
    assert not (tmp_path / "project" / "b").exists()
