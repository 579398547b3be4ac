"""Everything in the settings of Gemini CLI and Claude Code that forbids, asks or hides: it works here, or it is named.

One row for each guard, in the user's own file. Those that are served change the rules of the folder, the servers or the
tools; the others are named at the start and refuse the approval mode ``yolo``, in which nobody would be asked instead.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from isthmus.mcp_host.config.workspace_config import load_configuration
from isthmus.settings import load_settings
from support.extension_folders import install_extension

HOOK = [{"hooks": [{"type": "command", "command": "guard"}]}]
SERVERS = {"mcpServers": {"one": {"command": "one"}, "two": {"command": "two"}}}
GEMINI_SERVED: dict[str, Any] = {
    "tools.exclude": ["run_shell_command"],
    "tools.core": ["read_file"],
    "tools.confirmationRequired": ["write_file"],
    "security.disableYoloMode": True,
    "security.disableAlwaysAllow": True,
    "admin.secureModeEnabled": True,
    "hooks.BeforeTool": HOOK,
    "hooks.AfterTool": HOOK,
    "hooks.BeforeAgent": HOOK,
    "hooks.AfterAgent": HOOK,
    "hooks.SessionStart": HOOK,
    "hooks.BeforeModel": HOOK,
    "hooks.AfterModel": HOOK,
    "hooks.BeforeToolSelection": HOOK,
    "mcp.allowed": ["one"],
    "mcp.excluded": ["two"],
    "admin.mcp.enabled": False,
    "skills.enabled": False,
    "skills.disabled": ["x"],
    "experimental.enableAgents": False,
    "agents.overrides": {"x": {"enabled": False}},
    "admin.skills.enabled": False,
    "admin.extensions.enabled": False,
    "security.blockGitExtensions": True,
    "security.allowedExtensions": ["^https://github.com/mine/"],
    "tools.sandbox": True,
    "advanced.ignoreLocalEnv": True,
}
GEMINI_NAMED: dict[str, Any] = {
    "hooks.AnEventOfLater": HOOK,
    "security.enableConseca": True,
    "security.toolSandboxing": True,
    "security.environmentVariableRedaction.enabled": True,
    "security.environmentVariableRedaction.blocked": ["TOKEN"],
    "security.auth.enforcedType": "oauth-personal",
    "context.fileFiltering.customIgnoreFilePaths": [".secretignore"],
}
CLAUDE_SERVED: dict[str, Any] = {
    "hooks.PreToolUse": HOOK,
    "hooks.PostToolUse": HOOK,
    "hooks.PostToolUseFailure": HOOK,
    "hooks.UserPromptSubmit": HOOK,
    "hooks.PermissionRequest": HOOK,
    "hooks.SessionStart": HOOK,
    "hooks.Stop": HOOK,
    "hooks.SubagentStart": HOOK,
    "hooks.SubagentStop": HOOK,
    "permissions.deny": ["Read(./.env)"],
    "permissions.ask": ["Bash(git push:*)"],
    "permissions.allow": ["Bash(npm run test:*)"],
    "permissions.additionalDirectories": ["../docs"],
    "permissions.defaultMode": "plan",
    "permissions.disableBypassPermissionsMode": "disable",
}
CLAUDE_NAMED: dict[str, Any] = {
    "permissions.deny": ["Bash(command:rm *)"],
    "permissions.ask": ["Agent(model:opus)"],
    "hooks.TaskCompleted": HOOK,
    "hooks.AnEventOfLater": HOOK,
}


def nested(key: str, value: object) -> dict[str, Any]:
    """Return the JSON of a file that has this key."""
    first, _, rest = key.partition(".")
    return {first: nested(rest, value) if rest else value}


def effects(tmp_path: Path, program: str, values: dict[str, Any]) -> tuple[Any, Any, Any]:
    """Return the settings that count, the servers that may be used and the guards that are named."""
    home, project = tmp_path / "home", tmp_path / "project"
    project.mkdir(exist_ok=True)
    for name in (".gemini", ".claude"):
        (home / name).mkdir(parents=True, exist_ok=True)
        content = SERVERS if name == ".gemini" else {}
        content = {**content, **values} if name == program else content
        (home / name / "settings.json").write_text(json.dumps(content), "utf-8")
    install_extension(home, "from-git", {"mcpServers": {"of-extension": {"command": "x"}}}, source_type="git")
    settings = load_settings(project, home, {}, is_trusted=True)
    servers = load_configuration(project, home, {}, lambda _: True).servers
    usable = [server.name for server in servers if not hasattr(server, "problem")]
    skills = (settings.uses_skills, settings.disabled_skills)
    subagents = (settings.uses_subagents, settings.disabled_subagents)
    rules = (settings.rules.described(), skills, subagents, settings.sandbox, settings.rules.permissions)
    others = (settings.ignores_local_env, settings.included_folders, settings.approval_mode)
    return (rules, others), usable, settings.guards


@pytest.mark.parametrize(
    ("program", "key", "value"),
    [
        *((".gemini", key, value) for key, value in GEMINI_SERVED.items()),
        *((".claude", key, value) for key, value in CLAUDE_SERVED.items()),
    ],
)
def test_a_guard_that_is_served_has_an_effect_and_is_not_named_as_missing(
    tmp_path: Path, program: str, key: str, value: object
) -> None:
    before = effects(tmp_path, program, {})
    after = effects(tmp_path, program, nested(key, value))
    assert after[:2] != before[:2]
    assert after[2] == ()


@pytest.mark.parametrize(
    ("program", "key", "value"),
    [
        *((".gemini", key, value) for key, value in GEMINI_NAMED.items()),
        *((".claude", key, value) for key, value in CLAUDE_NAMED.items()),
    ],
)
def test_a_guard_that_is_not_served_is_named_and_refuses_yolo(
    tmp_path: Path, program: str, key: str, value: object
) -> None:
    rules, _, guards = effects(tmp_path, program, nested(key, value))
    assert any(key in guard for guard in guards), guards
    assert any("approval mode yolo" in rule for rule in rules[0][0])
