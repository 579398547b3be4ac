"""References as in the files of other programs, which are passed to a server as they stand, are named to the user."""

import json
from pathlib import Path
from typing import Any

import pytest

from isthmus.mcp_host.config.server_config import ServerConfig
from isthmus.mcp_host.config.workspace_config import load_configuration

VALUE = "put its value there, or a variable as ${NAME}"
HOME = "~ is passed as it stands, since no shell replaces it; write $HOME unless the program reads ~ itself"


def warnings_of(folder: Path, entry: Any) -> tuple[str, ...]:
    (folder / ".gemini").mkdir(parents=True)
    settings = folder / ".gemini" / "settings.json"
    settings.write_text(json.dumps({"mcpServers": {"one": entry}}), encoding="utf-8")
    (server,) = load_configuration(folder / "elsewhere", folder, {"HOME": "/home/me"}, lambda _: True).servers
    assert isinstance(server, ServerConfig)
    return server.warnings


@pytest.mark.parametrize(
    ("key", "entry", "sentence"),
    [
        ("args[0]", {"command": "x", "args": ["${env:TOKEN}"]}, "${env:TOKEN} {is}; write ${TOKEN} for the variable"),
        ("env.A", {"command": "x", "env": {"A": "${input:key}"}}, f"${{input:key}} {{is}}; {VALUE}"),
        ("env.A", {"command": "x", "env": {"A": "{{API_KEY}}"}}, f"{{{{API_KEY}}}} {{is}}; {VALUE}"),
        ("headers.B", {"url": "http://x", "headers": {"B": "Bearer {{ key }}"}}, f"{{{{ key }}}} {{is}}; {VALUE}"),
        ("url", {"url": "http://x/${env:PLACE}"}, "${env:PLACE} {is}; write ${PLACE} for the variable"),
        ("command", {"command": "~/bin/server"}, HOME),
        ("args[1]", {"command": "x", "args": ["-v", "--root=~/notes"]}, HOME),
        ("env.ROOT", {"command": "x", "env": {"ROOT": "~"}}, HOME),
    ],
)
def test_a_reference_that_is_passed_as_it_stands_is_named(tmp_path: Path, key: str, entry: Any, sentence: str) -> None:
    expected = sentence.replace("{is}", "is passed as it stands, since it is not a variable here")
    assert warnings_of(tmp_path, entry) == (f"{key}: {expected}",)


@pytest.mark.parametrize(
    "text",
    [
        "$HOME/notes", "${HOME}", "${MISSING:-b}", "{{.Names}}", "{{json .}}", "{a}", "a~b", "~user/x", "HEAD~1",
        "{\"a\": {\"b\": 1}}", "${x:" * 20_000, "{{" * 20_000,
    ],
)  # fmt: skip
def test_other_texts_are_no_references(tmp_path: Path, text: str) -> None:
    assert warnings_of(tmp_path, {"command": "x", "args": [text]}) == ()
