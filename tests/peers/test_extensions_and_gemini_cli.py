"""Extensions that the real Gemini CLI installs and switches off: both programs use the same parts of them."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from isthmus.settings.extensions import find_extensions
from support.headless_gemini import SECONDS, RunHere, gemini_settings, run_gemini_cli
from support.isthmus_program import InProcess
from support.programs import node_package, require
from support.scripted_wire import Call, Reply, Say

CONTEXT = "Always greet in ESPERANTO."
SKILL = "---\nname: conjure\ndescription: How to conjure things.\n---\nSay ABRACADABRA.\n"
POLICY = """
[[rule]]
toolName = "run_shell_command"
commandPrefix = "touch denied"
decision = "deny"
priority = 100
denyMessage = "no touching"

[[rule]]
toolName = "run_shell_command"
commandPrefix = "touch denied"
decision = "allow"
priority = 900

[[rule]]
toolName = "run_shell_command"
commandPrefix = "touch for-yolo"
decision = "deny"
modes = ["default", "yolo"]
priority = 100

[[rule]]
toolName = "run_shell_command"
commandPrefix = "touch asked"
decision = "ask_user"
priority = 100

[[rule]]
toolName = "glob"
decision = "deny"
priority = 100
"""
POLICY_OF_USER = """
[[rule]]
toolName = "run_shell_command"
commandPrefix = "touch denied-but-mine"
decision = "allow"
priority = 1
"""
COMMANDS = ("touch denied", "touch denied-but-mine", "touch for-yolo", "touch asked", "touch free")
REPLIES = [
    Reply.of(
        Call("activate_skill", {"name": "conjure"}),
        *(Call("run_shell_command", {"command": command, "description": "d"}) for command in COMMANDS),
    ),
    Reply.of(Say("done")),
]


def gemini_extensions(folder: Path, *arguments: str) -> str:
    """Run ``gemini extensions``; return its output."""
    program = node_package("@google/gemini-cli") / "bundle" / "gemini.js"
    done = subprocess.run(
        [str(require("node")), str(program), "extensions", *arguments],
        cwd=folder, env={**os.environ, "GEMINI_CLI_TRUST_WORKSPACE": "true", "GEMINI_CLI_NO_RELAUNCH": "1"},
        stdin=subprocess.DEVNULL, capture_output=True, text=True, encoding="utf-8", check=True, timeout=SECONDS,
    )  # fmt: skip
    return done.stdout + done.stderr


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """Write an extension with a part of each kind that is used; return its folder."""
    source = tmp_path / "greeter"
    for name, text in {
        "gemini-extension.json": json.dumps(
            {
                "name": "greeter",
                "version": "1.0.0",
                "mcpServers": {"greetings": {"command": "${extensionPath}${/}run", "trust": True}},
                "excludeTools": ["write_file"],
            }
        ),
        "GEMINI.md": CONTEXT,
        "hooks/hooks.json": json.dumps(
            {
                "hooks": {
                    "BeforeAgent": [{"hooks": [{"type": "command", "command": "cat ${extensionPath}/greeting.json"}]}]
                }
            }
        ),
        "greeting.json": json.dumps(
            {"hookSpecificOutput": {"hookEventName": "BeforeAgent", "additionalContext": "HOOKED"}}
        ),
        "skills/conjure/SKILL.md": SKILL,
        "policies/rules.toml": POLICY,
        "commands/greet.toml": 'description = "Greets."\nprompt = "Say hello to {{args}}."\n',
    }.items():
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_text(text, "utf-8")
    gemini_settings({})
    (policies := Path.home() / ".gemini" / "policies").mkdir()
    (policies / "mine.toml").write_text(POLICY_OF_USER, "utf-8")
    return source


def parts(requests: list[Any]) -> dict[str, bool]:
    """Return which parts of the extension the requests to the model show."""
    first = json.dumps(requests[0])
    tools = [tool["name"] for entry in requests[0]["tools"] for tool in entry["functionDeclarations"]]
    return {
        "context": CONTEXT in first,
        "skill": "Say ABRACADABRA" in json.dumps(requests[1]["contents"]),
        "excluded": "write_file" not in tools,
        "hook": "HOOKED" in first,
        "forbidden": "no touching" in json.dumps(requests[1]["contents"]) and "glob" not in tools,
    }


def touched(folder: Path) -> list[str]:
    """Return the names of the files that the commands of a run made, and remove the files."""
    files = sorted(path for path in folder.iterdir() if path.is_file())
    for path in files:
        path.unlink()
    return [path.name for path in files]


EFFECTIVE = dict.fromkeys(("context", "skill", "excluded", "hook", "forbidden"), True)
TOUCHED = ["denied-but-mine", "for-yolo", "free"]


def install(source: Path, workspace: Path) -> None:
    assert "installed successfully" in gemini_extensions(workspace, "install", str(source), "--consent")


@pytest.mark.comparison
def test_gemini_cli_uses_each_part_of_an_installed_extension(source: Path, workspace: Path) -> None:
    install(source, workspace)
    done, requests = run_gemini_cli(workspace, "--approval-mode", "yolo", "-p", "go", replies=REPLIES)
    assert done.returncode == 0, done.stderr
    assert (touched(workspace), parts(requests)) == (TOUCHED, EFFECTIVE)


def switch_off_but_inside(workspace: Path) -> Path:
    """Switch the extension off in the workspace and on in a folder of it; return that."""
    (inside := workspace / "inside").mkdir()
    gemini_extensions(workspace, "disable", "greeter", "--scope", "workspace")
    gemini_extensions(inside, "enable", "greeter", "--scope", "workspace")
    return inside


@pytest.mark.comparison
def test_gemini_cli_says_where_an_extension_is_off(source: Path, workspace: Path) -> None:
    install(source, workspace)
    inside = switch_off_but_inside(workspace)
    assert "Enabled (Workspace): false" in gemini_extensions(workspace, "list")
    assert "Enabled (Workspace): true" in gemini_extensions(inside, "list")


@pytest.mark.extended
def test_an_installed_extension_works_as_in_gemini_cli_and_can_be_off(
    source: Path, workspace: Path, run_here: RunHere, isthmus_here: InProcess
) -> None:
    install(source, workspace)
    status, _, errors, ours = run_here("--approval-mode", "yolo", "-p", "/greet Ada", replies=REPLIES)
    # A rule wants a user to be asked, which Gemini CLI does not say by its exit status.
    assert status == 57, errors
    assert (touched(workspace), parts(ours)) == (TOUCHED, EFFECTIVE)
    assert "Say hello to Ada." in json.dumps(ours[0]["contents"])
    _, listed, _ = isthmus_here("mcp", "list")
    assert "greetings" in listed
    assert f"{Path.home()}/.gemini/extensions/greeter/run" in listed

    inside = switch_off_but_inside(workspace)
    for folder, is_enabled in ((workspace, False), (inside, True)):
        (found,) = find_extensions(Path.home(), folder).installed
        assert found.is_enabled is is_enabled, folder
    status, _, errors, ours = run_here("--approval-mode", "yolo", "-p", "go", replies=REPLIES)
    assert status == 0, errors
    assert touched(workspace) == ["asked", "denied", "denied-but-mine", "for-yolo", "free"]
    assert CONTEXT not in json.dumps(ours[0])
    assert "conjure" not in json.dumps(ours[0])


def test_a_linked_extension_is_read_from_its_source(source: Path, workspace: Path) -> None:
    gemini_extensions(workspace, "link", str(source), "--consent")
    (context := source / "GEMINI.md").write_text("Changed.", "utf-8")
    (found,) = find_extensions(Path.home(), workspace).enabled
    assert (found.folder, found.context_files) == (source, (context,))
