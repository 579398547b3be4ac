import json
import subprocess
import sys
from pathlib import Path

import pytest

import isthmus

HEAVY = frozenset(
    {
        "anthropic",
        "click",
        "google",
        "httpx",
        "httpx2",
        "mcp",
        "msgpack",
        "openai",
        "prompt_toolkit",
        "pydantic",
        "rich",
        "starlette",
        "tree_sitter",
        "uvicorn",
        "websockets",
        "yaml",
    }
)
"""Packages that cost more than the whole start may: a command imports one only when it needs it."""

LATER = frozenset(
    {
        "isthmus.a2a.coder_agent.encoder",
        "isthmus.a2a.coder_agent.routes",
        "isthmus.agent.commands",
        "isthmus.agent.commands.builtin.restore_checkpoint",
        "isthmus.ide.editor",
        "isthmus.ide.mcp.mcp_peer",
        "isthmus.ide.gemini.peer",
        "isthmus.observability.tracing",
        "isthmus.terminal.headless.headless",
        "mcp",
        "opentelemetry",
        "prometheus_client",
        "psutil",
        "rich",
        "tomllib",
    }
)
"""Other modules that the server imports only when they are needed."""

REPORT = "print(json.dumps(sorted({name.partition('.')[0] for name in sys.modules})))"

VERSION = f"""
import json, sys
import isthmus.__main__
sys.argv = ["isthmus", "--version"]
try:
    status = isthmus.__main__.main()
except SystemExit as end:
    status = end.code
assert not status, status
{REPORT}
"""

HELP = """
import gc, json
import isthmus.__main__
sys = isthmus.__main__.sys
sys.argv = ["isthmus", "serve", "--help"]
try:
    isthmus.__main__.main()
except SystemExit:
    print(json.dumps(gc.get_freeze_count() > 0))
"""


def run_python(source: str) -> list[str]:
    """Return the lines that `source` prints in an interpreter of its own."""
    result = subprocess.run([sys.executable, "-c", source], capture_output=True, encoding="utf-8", timeout=60)
    assert result.returncode == 0, result.stderr
    return result.stdout.splitlines()


def imported_packages(last_line: str) -> set[str]:
    return {str(name) for name in json.loads(last_line)}


def test_importing_the_entry_point_imports_nothing_heavy() -> None:
    lines = run_python(f"import json, sys\nimport isthmus.__main__\n{REPORT}")
    assert imported_packages(lines[-1]) & HEAVY == set()


def test_the_version_is_printed_without_importing_anything_heavy() -> None:
    lines = run_python(VERSION)
    assert isthmus.__version__ in lines[0]
    assert imported_packages(lines[-1]) & HEAVY == set()


@pytest.mark.slow
def test_nothing_is_looked_through_for_garbage_once_more_before_the_end() -> None:
    assert run_python(HELP)[-1] == "true"


@pytest.mark.slow
def test_a_server_just_started_has_imported_nothing_that_only_some_requests_need(tmp_path: Path) -> None:
    log = tmp_path / "imports"
    command = [sys.executable, "-X", "importtime", "-m", "isthmus", "serve", "--model", "demo"]
    with (
        log.open("wb") as errors,
        subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=errors) as run,
    ):
        try:
            assert run.stdout is not None
            assert b"ready" in run.stdout.readline()
        finally:
            run.terminate()
            run.wait(60)
    lines = log.read_text(encoding="utf-8").splitlines()
    imported = {line.rpartition("|")[2].strip() for line in lines if line.startswith("import time:")}
    assert "isthmus.a2a.server.application" in imported
    assert imported & LATER == ({"psutil"} if sys.platform != "linux" else set())
