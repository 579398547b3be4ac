"""The environment of an MCP server of the user's settings, beside that which the real Gemini CLI gives it."""

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from support.isthmus_program import ISTHMUS
from support.programs import NODE_PEERS, require

SERVER = """
import json, os, sys
open(sys.argv[1], "w").write(json.dumps(dict(os.environ)))
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    result = {"tools": []}
    if message["method"] == "initialize":
        version = message["params"]["protocolVersion"]
        info = {"name": "e", "version": "1"}
        result = {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info}
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"""
SHELL = {
    "TERM": "xterm", "LANG": "C.UTF-8", "KUBECONFIG": "/k", "AWS_PROFILE": "work", "DOCKER_HOST": "unix:///d",
    "HTTPS_PROXY": "http://proxy.invalid:3128", "DISPLAY": ":1", "VIRTUAL_ENV": "/v", "EDITOR": "vi", "FOO": "bar",
    "OPENAI_API_KEY": "sk-1", "GITHUB_TOKEN": "x", "SSH_AUTH_SOCK": "/s", "DATABASE_URL": "postgres://u:p@h/d",
    "http_proxy": "http://user:password@proxy.invalid", "GEMINI_API_KEY": "dummy", "NO_PROXY": "*", "no_proxy": "*",
}  # fmt: skip
MARKS = ("GEMINI_CLI", "ISTHMUS_")
"""Beginnings of the names of variables with which a program marks what it starts."""


def given(command: Sequence[str], shell: Mapping[str, str], workspace: Path, told: Path) -> dict[str, str]:
    """Run a command that starts the server, and return the environment that it got."""
    subprocess.run(command, env=shell, cwd=workspace, capture_output=True, timeout=120, check=False)
    environment: dict[str, str] = json.loads(told.read_text("utf-8"))
    told.unlink()
    return {name: value for name, value in environment.items() if not name.startswith(MARKS)}


@pytest.mark.timeout(300)
def test_a_server_gets_what_gemini_cli_gives_it(tmp_path: Path, workspace: Path) -> None:
    told, program = tmp_path / "told.json", tmp_path / "server.py"
    program.write_text(SERVER, "utf-8")
    home = tmp_path / "home"
    (home / ".gemini").mkdir(parents=True)
    server = {"command": sys.executable, "args": [str(program), str(told)]}
    settings = {"mcpServers": {"e": server}, "security": {"folderTrust": {"enabled": False}}}
    (home / ".gemini" / "settings.json").write_text(json.dumps(settings), "utf-8")
    gemini = str(require(str(NODE_PEERS / "node_modules" / ".bin" / "gemini")))
    shell = {**SHELL, "HOME": str(home), "PATH": "/usr/local/bin:/usr/bin:/bin", "PYTHONPATH": "/pp"}
    theirs = given([gemini, "mcp", "list"], shell, workspace, told)
    ours = given([*ISTHMUS, "mcp", "list"], shell, workspace, told)
    assert ours == theirs
    assert {"KUBECONFIG", "AWS_PROFILE", "DOCKER_HOST", "HTTPS_PROXY", "DISPLAY", "LANG", "VIRTUAL_ENV"} <= set(ours)
    assert not {"OPENAI_API_KEY", "GITHUB_TOKEN", "DATABASE_URL", "http_proxy"} & set(ours)
