"""Files with secrets: reading one is asked about once, whatever tool reads it, and refused where nobody can answer."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from isthmus.agent.approval.policy import ApprovalMode, Policy, PrefixGrant, ToolGrant
from isthmus.agent.approval.private_reads import private_reads
from isthmus.events import TaskState
from isthmus.tools.base import ToolKind
from support.agent_harness import AgentHarness
from support.scripted_wire import Call, Reply, Say

pytestmark = pytest.mark.anyio
Harness = Callable[..., AgentHarness]
SECRET = "KEY=hunter2"


@pytest.mark.parametrize(
    "name",
    [
        ".env",
        ".env.local",
        "a/.env.production",
        "server.pem",
        "tls.key",
        "id_ed25519",
        ".npmrc",
        ".git/config",
        "secrets.yaml",
    ],
)
def test_files_with_secrets_are_known_by_their_names(tmp_path: Path, name: str) -> None:
    for tool, argument in (("read_file", "file_path"), ("read_file", "absolute_path"), ("grep_search", "dir_path")):
        assert private_reads(tool, ToolKind.READ, {argument: name}, tmp_path) == (str(tmp_path / name),)
    assert private_reads("read_many_files", ToolKind.READ, {"include": ["a.py", name]}, tmp_path) == (
        str(tmp_path / name),
    )
    command = {"command": f"cat a.py {name}"}
    assert private_reads("run_shell_command", ToolKind.EXECUTE, command, tmp_path) == (str(tmp_path / name),)


@pytest.mark.parametrize(
    "name", [".env.example", ".env/lib/a.py", "a.py", "id_ed25519.pub", "environment.ts", "keys.md", "."]
)
def test_examples_and_other_files_are_free(tmp_path: Path, name: str) -> None:
    assert private_reads("read_file", ToolKind.READ, {"file_path": name}, tmp_path) == ()


def test_a_link_to_a_file_with_secrets_is_one(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("KEY=1", "utf-8")
    (tmp_path / "notes.txt").symlink_to(".env")
    assert private_reads("read_file", ToolKind.READ, {"file_path": "notes.txt"}, tmp_path) == (str(tmp_path / ".env"),)


def calls(*requests: tuple[str, dict[str, Any]]) -> list[Any]:
    return [*(Reply.of(Call(name, arguments)) for name, arguments in requests), Reply.of(Say("Done."))]


READS = (
    ("read_file", {"file_path": ".env"}),
    ("read_many_files", {"include": [".env"], "useDefaultExcludes": False}),
    ("grep_search", {"pattern": "KEY", "dir_path": ".env"}),
)


@pytest.fixture
def secret(workspace: Path) -> Path:
    (workspace / ".env").write_text(f"{SECRET}\n", "utf-8")
    (workspace / "a.txt").write_text("KEY of a\n", "utf-8")
    return workspace / ".env"


@pytest.mark.parametrize("request_", READS, ids=lambda request: request[0])
@pytest.mark.parametrize("mode", [ApprovalMode.DEFAULT, ApprovalMode.AUTO_EDIT, ApprovalMode.PLAN])
async def test_a_file_with_secrets_is_asked_about_before_it_is_read(
    harness: Harness, secret: Path, request_: tuple[str, dict[str, Any]], mode: ApprovalMode
) -> None:
    at = harness(calls(request_, request_), policy=Policy(mode))
    assert (await at.prompt("Look.")).state is TaskState.INPUT_REQUIRED
    asked = at.calls[-1].confirmation_request
    assert asked is not None
    assert [option.id for option in asked.options] == ["proceed_once", "proceed_always_file", "cancel"]
    assert str(secret) in str(asked.options[0].description)
    assert (await at.answer(at.calls[-1])).state is TaskState.INPUT_REQUIRED
    assert SECRET in at.told()
    assert (await at.answer(at.calls[-1], "cancel")).state is TaskState.COMPLETED


async def test_an_answer_for_the_file_covers_it_for_all_tools_and_no_other_file(harness: Harness, secret: Path) -> None:
    secret.with_name("tls.key").write_text("the key", "utf-8")
    other = ("read_file", {"file_path": "tls.key"})
    at = harness(calls(READS[0], READS[1], READS[2], ("grep_search", {"pattern": "KEY"}), other))
    await at.prompt("Look.")
    assert (await at.answer(at.calls[-1], "proceed_always_file")).state is TaskState.INPUT_REQUIRED
    assert [call.input_parameters for call in at.calls if call.confirmation_request is not None] == [other[1]]
    assert "the key" not in at.told()


@pytest.mark.parametrize("request_", READS, ids=lambda request: request[0])
async def test_where_nobody_can_answer_it_is_refused_by_name(
    harness: Harness, secret: Path, request_: tuple[str, dict[str, Any]]
) -> None:
    at = harness(calls(request_), policy=Policy(may_ask=False))
    assert (await at.prompt("Look.")).state is TaskState.COMPLETED
    assert SECRET not in at.told()
    assert f"would read {secret}, which may hold secrets, and no user can be asked" in at.told()


@pytest.mark.parametrize("request_", READS, ids=lambda request: request[0])
async def test_yolo_reads_everything(harness: Harness, secret: Path, request_: tuple[str, dict[str, Any]]) -> None:
    at = harness(calls(request_), policy=Policy(ApprovalMode.YOLO))
    assert (await at.prompt("Look.")).state is TaskState.COMPLETED
    assert SECRET in at.told()
    assert secret.exists()


@pytest.mark.parametrize(
    "request_",
    [("grep_search", {"pattern": "KEY"}), ("read_many_files", {"include": ["**/*", ".*"]})],
    ids=lambda request: request[0],
)
async def test_a_search_leaves_it_out(harness: Harness, secret: Path, request_: tuple[str, dict[str, Any]]) -> None:
    at = harness(calls(request_))
    assert (await at.prompt("Look.")).state is TaskState.COMPLETED
    assert "KEY of a" in at.told()
    assert SECRET not in at.told()
    assert secret.exists()


async def test_a_reference_in_a_prompt_is_asked_about_too(harness: Harness, secret: Path) -> None:
    at = harness([Reply.of(Say("Done."))])
    assert (await at.prompt("Explain @.env")).state is TaskState.INPUT_REQUIRED
    assert (await at.answer(at.calls[-1])).state is TaskState.COMPLETED
    assert SECRET in at.told()
    assert secret.exists()


@pytest.mark.parametrize("grant", [PrefixGrant(("cat",)), ToolGrant("run_shell_command")], ids=["prefix", "tool"])
async def test_a_permission_for_a_command_does_not_cover_files_with_secrets(
    harness: Harness, secret: Path, grant: PrefixGrant | ToolGrant
) -> None:
    request = ("run_shell_command", {"command": "cat .env"})
    at = harness(calls(request), policy=Policy(grants=frozenset({grant})))
    assert (await at.prompt("Look.")).state is TaskState.INPUT_REQUIRED
    refused = harness(calls(request), policy=Policy(grants=frozenset({grant}), may_ask=False))
    assert (await refused.prompt("Look.")).state is TaskState.COMPLETED
    assert f"would read {secret}" in refused.told()


@pytest.mark.parametrize(
    "command",
    [
        "cp a.txt .git/hooks/pre-commit",
        "mv a.txt .envrc",
        "ln -s a.txt AGENTS.md",
        "tee .mcp.json",
        "cd .git && cp a hooks/x",
    ],
)
async def test_a_permission_for_a_command_does_not_cover_files_that_other_programs_act_on(
    harness: Harness, secret: Path, command: str
) -> None:
    names = ("cp", "mv", "ln", "tee", "cd")
    grants = frozenset(PrefixGrant((name,)) for name in names)
    at = harness(calls(("run_shell_command", {"command": command})), policy=Policy(grants=grants))
    assert (await at.prompt("Do it.")).state is TaskState.INPUT_REQUIRED
    plain = harness(calls(("run_shell_command", {"command": "cp a.txt b.txt"})), policy=Policy(grants=grants))
    assert (await plain.prompt("Do it.")).state is TaskState.COMPLETED
    assert secret.with_name("b.txt").exists()


def test_a_word_with_an_at_sign_names_the_file_behind_it_and_the_one_of_that_name(tmp_path: Path) -> None:
    command = {"command": "curl -d @.env http://localhost"}
    assert private_reads("run_shell_command", ToolKind.EXECUTE, command, tmp_path) == (str(tmp_path / ".env"),)
    command = {"command": "cat @a/tls.key"}
    found = private_reads("run_shell_command", ToolKind.EXECUTE, command, tmp_path)
    assert found == (str(tmp_path / "@a/tls.key"), str(tmp_path / "a/tls.key"))
