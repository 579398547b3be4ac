"""Files with secrets, and those that git ignores: reading them is asked about, or refused where nobody can answer."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from isthmus.agent.approval.grants import PrefixGrant, ToolGrant
from isthmus.agent.approval.policy import ApprovalMode, Policy
from isthmus.agent.approval.private_reads import asked_reads
from isthmus.events import TaskState
from isthmus.tools.port.base import ToolKind
from isthmus.tools.port.workspace import Workspace
from support.agent_harness import AgentHarness
from support.scripted_wire import Call, Reply, Say

pytestmark = pytest.mark.anyio
Harness = Callable[..., AgentHarness]
SECRET = "KEY=hunter2"


def private_reads(tool: str, kind: ToolKind, arguments: dict[str, Any], workspace: Path) -> tuple[str, ...]:
    return asked_reads(tool, kind, arguments, Workspace(workspace)).files


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


# --- files that git ignores ---

IGNORED = """
/local/
*.log
node_modules/
build/
.venv/
*.egg-info/
other-environment/
"""


@pytest.fixture
def ignoring(workspace: Path) -> Path:
    """Return the workspace, a repository with ignored files whose texts have the word KEY and their path."""
    (workspace / ".git").mkdir()
    (workspace / ".gitignore").write_text(IGNORED, "utf-8")
    names = ("local/a/notes.txt", "local/other.txt", "web/server.log", "web/sub/server.log", "web/page.txt")
    free = ("node_modules/a/index.js", "build/out.txt", ".venv/lib/a.py", "a.egg-info/PKG-INFO")
    for name in (*names, *free, "other-environment/lib/b.py", "build/deep/trace.log"):
        path = workspace / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"KEY of {name}\n", "utf-8")
    (workspace / "other-environment/pyvenv.cfg").write_text("home = /usr\n", "utf-8")
    return workspace


@pytest.mark.parametrize(
    ("name", "folder"),
    [
        ("local/a/notes.txt", "local"),
        ("local", "local"),
        ("web/server.log", "web"),
        ("web/sub/server.log", "web/sub"),
        *((name, None) for name in ("web/page.txt", "web", ".", "node_modules/a/index.js", "build/out.txt")),
        *((name, None) for name in (".venv/lib/a.py", "other-environment/lib/b.py", "a.egg-info/PKG-INFO")),
        *((name, None) for name in ("build/deep/trace.log", ".gitignore", "new.log")),
    ],
)
def test_ignored_files_are_known_by_their_folders_and_what_is_made_is_free(
    ignoring: Path, name: str, folder: str | None
) -> None:
    for tool, kind, arguments in (
        ("read_file", ToolKind.READ, {"file_path": name}),
        ("read_many_files", ToolKind.READ, {"include": [name]}),
        ("run_shell_command", ToolKind.EXECUTE, {"command": f"cat {name}"}),
    ):
        found = asked_reads(tool, kind, arguments, Workspace(ignoring))
        assert found.files == ()
        assert found.folders == (() if folder is None else (str(ignoring / folder),)), tool


def test_nothing_is_asked_in_a_workspace_that_a_repository_around_it_ignores(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / ".gitignore").write_text("*\n", "utf-8")
    project = tmp_path / "project"
    project.mkdir()
    (project / "a.txt").write_text("a", "utf-8")
    assert not asked_reads("read_file", ToolKind.READ, {"file_path": "a.txt"}, Workspace(project))


IGNORED_READS = (
    ("read_file", {"file_path": "local/a/notes.txt"}),
    ("grep_search", {"pattern": "KEY", "dir_path": "local", "no_ignore": True}),
    ("grep_search", {"pattern": "KEY", "dir_path": "local/a/notes.txt"}),
)


@pytest.mark.parametrize("request_", IGNORED_READS, ids=str)
async def test_an_ignored_file_is_asked_about_once_for_its_folder(
    harness: Harness, ignoring: Path, request_: tuple[str, dict[str, Any]]
) -> None:
    other = ("read_file", {"file_path": "web/server.log"})
    at = harness(calls(request_, *IGNORED_READS, other))
    assert (await at.prompt("Look.")).state is TaskState.INPUT_REQUIRED
    asked = at.calls[-1].confirmation_request
    assert asked is not None
    assert [option.id for option in asked.options] == ["proceed_once", "proceed_always_folder", "cancel"]
    assert str(asked.options[0].description) == f"The model would get files in {ignoring / 'local'} that git ignores"
    assert "KEY of" not in at.told()
    assert (await at.answer(at.calls[-1], "proceed_always_folder")).state is TaskState.INPUT_REQUIRED
    assert at.told().count("KEY of local/a/notes.txt") >= 2
    assert "KEY of web" not in at.told()
    assert at.calls[-1].input_parameters == other[1]


async def test_a_search_of_ignored_files_leaves_out_what_was_not_agreed_to(harness: Harness, ignoring: Path) -> None:
    agreed = ("read_file", {"file_path": "web/server.log"})
    search = ("grep_search", {"pattern": "KEY", "no_ignore": True})
    many = {
        "include": ["**/*"],
        "useDefaultExcludes": False,
        "file_filtering_options": {"respect_git_ignore": False},
    }
    for request in (search, ("read_many_files", many)):
        at = harness(calls(agreed, request))
        await at.prompt("Look.")
        assert (await at.answer(at.calls[-1], "proceed_always_folder")).state is TaskState.COMPLETED
        told = at.told().split("KEY of web/server.log", 1)[1]
        shown = ("web/server.log", "web/page.txt", "node_modules/a", "build/out", "build/deep", ".venv", "other-env")
        for name in shown:
            assert f"KEY of {name}" in told, name
        for name in ("local/a/notes.txt", "local/other.txt", "web/sub/server.log"):
            assert f"KEY of {name}" not in told, name
    assert ignoring.exists()


async def test_an_answer_for_a_folder_holds_for_the_folder_that_the_question_named(
    harness: Harness, ignoring: Path
) -> None:
    widens = ("write_file", {"file_path": ".gitignore", "content": "*\n", "instruction": "Ignore all"})
    again = ("read_file", {"file_path": "web/page.txt"})
    at = harness(calls(("read_file", {"file_path": "web/sub/server.log"}), widens, again))
    await at.prompt("Look.")
    assert (await at.answer(at.calls[-1], "proceed_always_folder")).state is TaskState.INPUT_REQUIRED
    assert (await at.answer(at.calls[-1])).state is TaskState.INPUT_REQUIRED
    assert "KEY of web/page.txt" not in at.told()
    assert ignoring.exists()


async def test_an_answer_for_a_file_does_not_follow_a_link_to_another_one(harness: Harness, secret: Path) -> None:
    secret.with_name("tls.key").write_text("the key", "utf-8")
    secret.with_name("notes.txt").symlink_to(".env")
    swap = ("run_shell_command", {"command": "ln -sf tls.key notes.txt"})
    read = ("read_file", {"file_path": "notes.txt"})
    at = harness(calls(read, swap, read))
    await at.prompt("Look.")
    assert (await at.answer(at.calls[-1], "proceed_always_file")).state is TaskState.INPUT_REQUIRED
    assert (await at.answer(at.calls[-1])).state is TaskState.INPUT_REQUIRED
    assert SECRET in at.told()
    assert "the key" not in at.told()


async def test_an_ignored_file_is_refused_where_nobody_can_answer_and_read_in_yolo(
    harness: Harness, ignoring: Path
) -> None:
    at = harness(calls(IGNORED_READS[0]), policy=Policy(may_ask=False))
    assert (await at.prompt("Look.")).state is TaskState.COMPLETED
    assert f"would read files in {ignoring / 'local'} that git ignores, and no user can be asked here" in at.told()
    at = harness(calls(IGNORED_READS[0]), policy=Policy(ApprovalMode.YOLO))
    assert (await at.prompt("Look.")).state is TaskState.COMPLETED
    assert "KEY of local/a/notes.txt" in at.told()
