"""Files from strangers that are read at the start: any content is accepted, or named in an error."""

import json
import random
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from isthmus.a2a.server.users.users import UsersError, UserTable
from isthmus.a2a.server.users.users_file import UsersFile
from isthmus.agent.approval.restricted_tools import restrict
from isthmus.agent.commands.custom.custom_files import find_custom_commands
from isthmus.mcp_host.config.folder_trust import stated_trust, trusted_folders_path
from isthmus.mcp_host.config.workspace_config import load_configuration
from isthmus.settings import SettingsError, load_settings
from isthmus.settings.env_files import load_environment
from isthmus.settings.guards import GUARDS
from isthmus.settings.keys import FORMER_NAMES, KEYS
from isthmus.tools.builtin import builtin_tools
from support.fuzzing import TIMEOUT, cases

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.timeout(TIMEOUT)

SHARE = 0.1
ENTRIES = ("write_file", "run_shell_command(rm -rf)", "ShellTool(", "*", "mcp_a_*", "a.b", "", "((", "x)", "\0")
TEXTS = (
    "",
    "yolo",
    "scripted:/dev/zero",
    "$HOME",
    "none",
    "9" * 400,
    "\u202ex",
    "a/b",
    "..",
    "500MB",
    "-1MB",
    *ENTRIES,
)
BYTES = (
    b"{",
    b"}",
    b"[",
    b"]",
    b'"',
    b"\\",
    b"/*",
    b"*/",
    b"//",
    b",",
    b":",
    b"\n",
    b"\0",
    b"\xff",
    b"\xef\xbb\xbf",
    b"\\ud800",
    b"1e999",
    b"NaN",
    b"-",
    b"=",
    b"'",
    b"#",
    b"export ",
    b"[[rule]]",
    b'"""',
    b"!{",
    b"{{args}}",
    b"@{",
)
ENV = b'export A=1\nB="x\\n\\"y" # c\nC=\'z\'\nGEMINI_API_KEY=`k`\nD = plain # comment\n'
TOML = b'description = "d"\nprompt = """Say !{echo {{args}}} of @{file}"""\n'
POLICY = b'[[rule]]\ntoolName = "glob"\ndecision = "allow"\npriority = 1\n'


def value(chance: random.Random, depth: int = 0) -> Any:
    """Return any JSON value, more often one that some key expects."""
    match chance.randrange(9 if depth < 4 else 6):
        case 0:
            return chance.choice((True, False, None))
        case 1:
            return chance.choice((0, -1, 1, 7, 10**18, 0.5, 1.0, -0.1, 1e300))
        case 2 | 3:
            return chance.choice(TEXTS)
        case 4 | 5:
            return chance.choices(ENTRIES, k=chance.randrange(4))
        case 6:
            return [value(chance, depth + 1) for _ in range(chance.randrange(4))]
        case _:
            names = ("enabled", "command", "url", "httpUrl", "args", "env", "type", "trust", "BeforeTool", "files", "x")
            return {name: value(chance, depth + 1) for name in chance.sample(names, chance.randrange(5))}


def settings(chance: random.Random) -> bytes:
    """Return a settings file in which some keys have values that do not fit."""
    whole: dict[str, Any] = {}
    for name in chance.sample((*KEYS, *GUARDS, *FORMER_NAMES.values(), "hooksConfig.x", "ui.x"), chance.randrange(9)):
        *groups, last = name.split(".")
        place = whole
        for group in groups:
            below: Any = place.get(group)
            place[group] = below if isinstance(below, dict) else {}
            place = place[group]
        place[last] = value(chance)
    return json.dumps(whole if chance.random() < 0.95 else value(chance)).encode()


def damaged(chance: random.Random, data: bytes) -> bytes:
    """Return the data, in half of the cases with pieces removed, repeated or inserted."""
    for _ in range(chance.choice((0, 0, 0, 1, 2, 5))):
        start, end = sorted((chance.randrange(len(data) + 1), chance.randrange(len(data) + 1)))
        match chance.randrange(4):
            case 0:
                data = data[:start] + data[min(end, start + 8) :]
            case 1:
                data = data[:start] + chance.choice(BYTES) + data[start:]
            case 2:
                data = data[:end] + data[start:]
            case _:
                data = data[:start] + chance.choice(BYTES) * chance.choice((1, 50, 3000)) + data[start:]
    return data[: 1 << 20]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "home" / ".gemini" / "policies").mkdir(parents=True)
    return tmp_path / "home"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "project" / ".gemini" / "commands").mkdir(parents=True)
    return tmp_path / "project"


def check_error(text: str, file: Path) -> None:
    assert text.startswith(str(file)), "the error names the file"
    assert len(text) < 5000


def test_every_file_is_read_or_named_in_an_error(home: Path, project: Path, tmp_path: Path) -> None:
    own, theirs = home / ".gemini" / "settings.json", project / ".gemini" / "settings.json"
    users = tmp_path / "users.json"
    tools = builtin_tools()
    table_of_users = UserTable().added("alice", 1.0)[0].encode()

    def read_settings(chance: random.Random) -> None:
        file = chance.choice((own, theirs))
        file.write_bytes(damaged(chance, settings(chance)))
        try:
            loaded = load_settings(project, home, {}, is_trusted=chance.random() < 0.5)
        except SettingsError as error:
            check_error(str(error), file)
        else:
            restrict(tools, loaded.rules.tools)
            assert file is own or (loaded.approval_mode, loaded.allowed_tools, loaded.model) == (None, (), None)
        load_configuration(project, home, {}, lambda _: True)
        file.unlink()

    def read_mcp_json(chance: random.Random) -> None:
        servers = {"mcpServers": {"a": value(chance), "b": value(chance)}, "mcp": value(chance)}
        (project / ".mcp.json").write_bytes(damaged(chance, json.dumps(servers).encode()))
        found = load_configuration(project, home, {}, lambda _: True)
        assert all(str(project / ".mcp.json") in problem for problem in found.problems)

    def read_command(chance: random.Random) -> None:
        path = project / ".gemini" / "commands" / "c.toml"
        path.write_bytes(damaged(chance, TOML))
        found = find_custom_commands(home / ".gemini", project, ())
        assert len(found.commands) + len(found.problems) == 1
        assert all(str(path) in problem for problem in found.problems)

    def read_users(chance: random.Random) -> None:
        table = json.loads(table_of_users)
        if chance.random() < 0.5:
            table["tokens"][0][chance.choice([*table["tokens"][0]])] = value(chance)
        users.write_bytes(damaged(chance, json.dumps(table).encode()))
        users.chmod(0o600)
        try:
            UsersFile(users).read()
        except UsersError as error:
            check_error(str(error), users)

    def read_env(chance: random.Random) -> None:
        file = chance.choice((home / ".gemini" / ".env", project / ".env"))
        file.write_bytes(damaged(chance, ENV))
        found = load_environment({"PATH": "/bin"}, home, project, lambda _: True)
        assert found.variables["PATH"] == "/bin"
        assert all(str(file) in problem for problem in found.problems)
        assert not any("\0" in text for item in found.variables.items() for text in item)
        file.unlink()

    def read_policy(chance: random.Random) -> None:
        path = home / ".gemini" / "policies" / "p.toml"
        path.write_bytes(damaged(chance, POLICY))
        assert all(str(path) in problem for problem in load_settings(project, home, {}).guards)
        path.unlink()

    def read_trust(chance: random.Random) -> None:
        rules = {str(project): chance.choice(("TRUST_FOLDER", "DO_NOT_TRUST", value(chance))), "\0": "TRUST_PARENT"}
        trusted_folders_path(home).write_bytes(damaged(chance, json.dumps(rules).encode()))
        assert stated_trust(home, project) in (True, False, None)
        trusted_folders_path(home).unlink()

    readers: list[Callable[[random.Random], None]] = [read_settings] * 3
    readers += [read_mcp_json, read_command, read_users, read_env, read_policy, read_trust]
    for chance in cases("settings files", SHARE, least=60):
        chance.choice(readers)(chance)
