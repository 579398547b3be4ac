"""The discovery file and the variables beside it, without a server."""

import json
import os
import stat
from pathlib import Path

import pytest

from isthmus.ide.discovery_file import announces
from isthmus.ide.editor import EditorIdentity
from isthmus.ide.gemini.discovery import DiscoveryFile, agent_variables, node_temporary_directory
from isthmus.network.loopback import terminal_environment

_IDENTITY = EditorIdentity("vim", "Vim", 4711)


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({"TMPDIR": "/a/", "TMP": "/b", "TEMP": "/c"}, "/a"),
        ({"TMPDIR": "", "TMP": "/b", "TEMP": "/c"}, "/b"),
        ({"TEMP": "/c//"}, "/c"),
        ({}, "/tmp"),
        ({"TMPDIR": "/"}, "/"),
        ({"TMPDIR": "here"}, f"{Path.cwd()}/here"),
    ],
)
def test_the_temporary_folder_is_the_one_of_node(environment: dict[str, str], expected: str) -> None:
    assert node_temporary_directory(environment) == Path(expected)


def test_a_file_is_written_whole_replaced_and_removed(tmp_path: Path) -> None:
    file = DiscoveryFile(_IDENTITY, 5000, {"TMPDIR": str(tmp_path)})
    file.write(("/one", "/two"), "secret")
    assert file.path == tmp_path / "gemini" / "ide" / "gemini-ide-server-4711-5000.json"
    assert json.loads(file.path.read_text(encoding="utf-8")) == {
        "port": 5000,
        "workspacePath": "/one:/two",
        "authToken": "secret",
        "ideInfo": {"name": "vim", "displayName": "Vim"},
    }
    file.write(("/three",), "secret")
    assert json.loads(file.path.read_text(encoding="utf-8"))["workspacePath"] == "/three"
    assert stat.S_IMODE(file.path.stat().st_mode) == 0o600
    assert list(file.path.parent.iterdir()) == [file.path]
    file.remove()
    file.remove()
    assert list(file.path.parent.iterdir()) == []


def test_an_agents_environment_keeps_what_was_there() -> None:
    base = {"PATH": "/bin", "NO_PROXY": "a, localhost", "GEMINI_CLI_IDE_SERVER_PORT": "1"}
    environment = terminal_environment(agent_variables(2, "secret", ("/one", "/two"), 3), base)
    assert environment == {
        "PATH": "/bin",
        "GEMINI_CLI_IDE_SERVER_PORT": "2",
        "GEMINI_CLI_IDE_WORKSPACE_PATH": "/one:/two",
        "GEMINI_CLI_IDE_AUTH_TOKEN": "secret",
        "GEMINI_CLI_IDE_PID": "3",
        "QWEN_CODE_IDE_SERVER_PORT": "2",
        "QWEN_CODE_IDE_WORKSPACE_PATH": "/one:/two",
        "NO_PROXY": "a,localhost,127.0.0.1,::1",
        "no_proxy": "a,localhost,127.0.0.1,::1",
    }
    assert base["GEMINI_CLI_IDE_SERVER_PORT"] == "1"


@pytest.mark.parametrize(
    ("base", "capital", "small"),
    [
        ({}, "127.0.0.1,localhost,::1", "127.0.0.1,localhost,::1"),
        ({"no_proxy": "b"}, "b,127.0.0.1,localhost,::1", "b,127.0.0.1,localhost,::1"),
        ({"NO_PROXY": "a", "no_proxy": "b"}, "a,127.0.0.1,localhost,::1", "b,127.0.0.1,localhost,::1"),
        ({"NO_PROXY": "*"}, "*", "*"),
    ],
)
def test_exceptions_from_a_proxy_go_on_in_either_spelling(base: dict[str, str], capital: str, small: str) -> None:
    # Programs read one of the two, most of them the lower-case one first; "*" counts only alone.
    assert terminal_environment({}, base) == {"NO_PROXY": capital, "no_proxy": small}


def test_a_file_leads_to_a_server_while_it_is_whole_and_names_its_token(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file"
    assert not announces(path, "t")
    for content, leads in (('{"authToken": "t", "pid": 5}', True), ('{"authToken": "u"}', False), ("{", False)):
        path.write_text(content, encoding="utf-8")
        assert announces(path, "t") is leads
    owner = os.getuid()
    monkeypatch.setattr(os, "getuid", lambda: owner + 1)
    assert announces(path, "t"), "to write it again would change nothing"
