import json
import os
import subprocess
from pathlib import Path

import pytest

from support.programs import NODE_PEERS, node_package, require


def node(*arguments: str | Path, cwd: Path) -> str:
    environment = {**os.environ, "GEMINI_CLI_NO_RELAUNCH": "1"}
    result = subprocess.run(
        [require("node"), *arguments], cwd=cwd, env=environment, capture_output=True, encoding="utf-8", timeout=60
    )
    assert result.returncode == 0, result.stderr
    return result.stdout.strip()


def test_the_real_gemini_cli_is_the_version_that_the_tests_were_written_against(workspace: Path) -> None:
    program = node_package("@google/gemini-cli") / "bundle" / "gemini.js"
    assert node(program, "--version", cwd=workspace) == "0.61.0"


def test_the_a2a_client_for_javascript_can_be_imported_without_a_server_framework() -> None:
    node_package("@a2a-js/sdk")
    source = "import { A2AClient } from '@a2a-js/sdk/client'; console.log(typeof A2AClient)"
    assert node("--input-type=module", "--eval", source, cwd=NODE_PEERS) == "function"


LOCKED = ["@a2a-js/sdk", "@agentclientprotocol/sdk", "@google/gemini-cli", "@google/gemini-cli-a2a-server", "acpx"]


@pytest.mark.parametrize("name", LOCKED)
def test_the_installed_package_is_the_locked_one(name: str) -> None:
    lock = json.loads((NODE_PEERS / "package-lock.json").read_text(encoding="utf-8"))
    installed = json.loads((node_package(name) / "package.json").read_text(encoding="utf-8"))
    assert installed["version"] == lock["packages"][""]["dependencies"][name]


def test_the_lock_file_holds_every_packages_integrity_and_no_registrys_address() -> None:
    lock = json.loads((NODE_PEERS / "package-lock.json").read_text(encoding="utf-8"))
    packages = {name: entry for name, entry in lock["packages"].items() if name}
    assert [name for name, entry in packages.items() if not entry.get("integrity")] == []
    assert [name for name, entry in packages.items() if "resolved" in entry] == []
