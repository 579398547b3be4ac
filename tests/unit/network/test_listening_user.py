import json
import os
import socket
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from isthmus.ide import ide_protocol
from isthmus.ide.claude.discovery.finding import find_ides
from isthmus.ide.gemini.finding import find_companions
from isthmus.network.loopback import TABLES, another_user_at, another_user_connects, connecting_users, listening_users
from support.isolation import IsolatedFolders

_TABLE = """\
  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:01BB 00000000:0000 0A 00000000:00000000 00:00000000 00000000  424201        0 6 1 00 100 0 0 10 0
   1: 0100007F:01BB 0100007F:9C40 01 00000000:00000000 00:00000000 00000000  424202        0 7 1 00 100 0 0 10 0
   2: 00000000000000000000000001000000:01BB 00000000000000000000000000000000:0000 0A 0:0 0:0 0 424203 0 8 1 00
   3: 0100007F:01BC 00000000:0000 0A 00000000:00000000 00:00000000 00000000  424204        0 9 1 00 100 0 0 10 0
   nonsense
"""


def test_those_that_listen_on_a_port_are_found_in_the_table() -> None:
    assert list(listening_users(443, _TABLE)) == [424201, 424203]
    assert list(listening_users(80, _TABLE)) == []
    assert list(listening_users(443, "")) == []


def test_the_user_of_a_connection_is_found_by_both_of_its_ports() -> None:
    assert list(connecting_users(443, 40000, _TABLE)) == [424202]
    assert list(connecting_users(40000, 443, _TABLE)) == []
    assert list(connecting_users(443, 0, _TABLE)) == []  # it only listens


def test_a_connection_of_another_user_or_of_nobody_known_is_not_ours(tmp_path: Path) -> None:
    table, none = tmp_path / "tcp", tmp_path / "none"
    table.write_text(_TABLE, encoding="ascii")
    assert "received one of the user 424202" in (another_user_connects(443, 40000, [table, none]) or "")
    assert "received one of the user unknown" in (another_user_connects(1, 2, [table, none]) or "")
    assert another_user_connects(1, 2, [none]) is None  # the system does not tell


def test_our_own_connection_is_ours(port: int) -> None:
    with socket.create_connection(("127.0.0.1", port)) as connection:
        assert another_user_connects(connection.getsockname()[1], port) is None


@pytest.fixture
def port() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield int(listener.getsockname()[1])


@pytest.fixture
def table(tmp_path: Path, port: int, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write the system's table as if another user listened there."""
    path = tmp_path / "tcp"
    path.write_text(_TABLE.replace(":01BB", f":{port:04X}"), encoding="ascii")
    tables = (path, tmp_path / "none")
    monkeypatch.setattr(ide_protocol, "another_user_at", partial(another_user_at, tables=tables))
    return path


def test_the_system_tells_that_we_listen_ourselves(port: int) -> None:
    told = [user for path in TABLES if path.exists() for user in listening_users(port, path.read_text("ascii"))]
    assert set(told) <= {os.getuid()}
    assert another_user_at(port) is None


def test_a_file_that_leads_to_another_users_process_is_of_no_use_by_either_protocol(
    isolated_folders: IsolatedFolders, workspace: Path, port: int, table: Path
) -> None:
    claude = isolated_folders.home / ".claude" / "ide"
    claude.mkdir(parents=True)
    (claude / f"{port}.lock").write_text(
        json.dumps({"pid": 1, "workspaceFolders": [str(workspace)], "authToken": "secret"}), encoding="utf-8"
    )
    gemini = Path(os.environ["TMPDIR"]) / "gemini" / "ide"
    gemini.mkdir(parents=True)
    (gemini / f"gemini-ide-server-1-{port}.json").write_text(
        json.dumps({"port": port, "workspacePath": str(workspace), "authToken": "secret"}), encoding="utf-8"
    )
    # Also if the environment names it: the variable is as old as the file.
    for environment in (dict(os.environ), {**os.environ, "CLAUDE_CODE_SSE_PORT": str(port)}):
        ides = find_ides(workspace, environment, ancestors=tuple)
        assert ides.ides == ()
        assert [rejected.reason for rejected in ides.rejected] == [
            f"a process of another user (uid 424201) listens on port {port}"
        ]
    companions = find_companions(workspace, os.environ, ancestors=tuple)
    assert companions.ides == ()
    assert "another user (uid 424201)" in companions.rejected[0].reason
    table.unlink()
    assert [ide.port for ide in find_ides(workspace, os.environ, ancestors=tuple).ides] == [port]
    assert [each.port for each in find_companions(workspace, os.environ, ancestors=tuple).ides] == [port]
