"""The real Gemini CLI and ``isthmus mcp`` on the same settings files: each reads what the other wrote."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from support.isthmus_program import isthmus
from support.mcp_hosting import scripted
from support.programs import node_package, require


def gemini(folder: Path, *arguments: str) -> str:
    """Return the output of a command of the real Gemini CLI."""
    program = node_package("@google/gemini-cli") / "bundle" / "gemini.js"
    own = {"GEMINI_API_KEY": "none", "GEMINI_CLI_NO_RELAUNCH": "1", "RES_OPTIONS": "timeout:1 attempts:1"}
    done = subprocess.run(
        [str(require("node")), str(program), *arguments],
        cwd=folder,
        env={**os.environ, **own},
        stdin=subprocess.DEVNULL, capture_output=True, text=True, encoding="utf-8", check=False, timeout=120,
    )  # fmt: skip
    return done.stdout + done.stderr


def ours(folder: Path, *arguments: str) -> str:
    done = isthmus("mcp", *arguments, folder=folder)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_gemini_cli_lists_and_switches_off_what_was_added_here(workspace: Path) -> None:
    settings = Path.home() / ".gemini" / "settings.json"
    settings.parent.mkdir()
    settings.write_text('{\n  // mine\n  "security": {"folderTrust": {"enabled": false}}\n}\n', "utf-8")
    server = scripted("plain")
    ours(workspace, "add", "-s", "user", "plain", server["command"], *server["args"])
    ours(workspace, "add", "-s", "user", "off", "some-program", "--flag")
    ours(workspace, "add", "-s", "user", "-t", "http", "web", "http://127.0.0.1:1/mcp")
    ours(workspace, "add", "-s", "user", "-t", "sse", "events", "http://127.0.0.1:1/sse")
    ours(workspace, "disable", "off")
    listed = gemini(workspace, "mcp", "list")
    assert f"✓ plain: {server['command']} {' '.join(server['args'])} (stdio) - Connected" in listed
    assert "○ off: some-program --flag (stdio) - Disabled" in listed
    assert "✗ web: http://127.0.0.1:1/mcp (http) - Disconnected" in listed
    assert "✗ events: http://127.0.0.1:1/sse (sse) - Disconnected" in listed
    assert "// mine" in settings.read_text("utf-8")


@pytest.mark.extended
def test_what_gemini_cli_added_is_listed_and_removed_here(workspace: Path) -> None:
    (Path.home() / ".gemini").mkdir()
    gemini(workspace, "mcp", "add", "-s", "user", "program", "some-program", "one", "-e", "A=b")
    gemini(workspace, "mcp", "add", "-s", "user", "-t", "http", "web", "http://127.0.0.1:1/mcp", "-H", "A: b")
    gemini(workspace, "mcp", "add", "-s", "user", "-t", "sse", "events", "http://127.0.0.1:1/sse")
    assert ours(workspace, "list", "--no-connect").splitlines() == [
        "· program: command: some-program one (stdio) - Not tried",
        "· web: http://127.0.0.1:1/mcp (http) - Not tried",
        "· events: http://127.0.0.1:1/sse (sse) - Not tried",
    ]
    ours(workspace, "remove", "-s", "user", "web")
    settings = json.loads((Path.home() / ".gemini" / "settings.json").read_text("utf-8"))
    assert list(settings["mcpServers"]) == ["program", "events"]
