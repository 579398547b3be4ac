"""The announcements of the user's own servers: which of them lead an ACP client to a server."""

import os
import socket
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from isthmus.files.locations import runtime_directory
from isthmus.network.loopback import another_user_at
from isthmus.programs.serve import running_servers as running_servers_module
from isthmus.programs.serve.running_servers import FOLDER, RunningServer, announced, running_servers

LISTENING = (
    "   0: 0100007F:{port:04X} 00000000:0000 0A 00000000:00000000 00:00000000 00000000  {user}        0 6 1 00\n"
)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RunningServer]:
    """Announce a server of this process."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/"
        found = RunningServer(os.getpid(), url, tmp_path / "token", tmp_path / "data")
        with announced(found):
            yield found


def port_of_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, server: RunningServer, user: int) -> None:
    """Write the system's table as if a user listened on the server's port."""
    port = int(server.url.rpartition(":")[2].strip("/"))
    table = tmp_path / "tcp"
    table.write_text("heading\n" + LISTENING.format(port=port, user=user), encoding="ascii")
    monkeypatch.setattr(running_servers_module, "another_user_at", partial(another_user_at, tables=[table]))


def test_a_server_of_this_user_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, server: RunningServer) -> None:
    port_of_user(tmp_path, monkeypatch, server, os.getuid())
    assert running_servers() == [server]


def test_a_port_that_another_user_has_taken_meanwhile_gets_no_token(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, server: RunningServer
) -> None:
    port_of_user(tmp_path, monkeypatch, server, 424201)
    assert running_servers() == []


@pytest.mark.parametrize("url", ["", "http://[::1", "http://127.0.0.1/", "http://127.0.0.1:99999/"])
def test_a_url_without_a_port_leads_nowhere(tmp_path: Path, url: str) -> None:
    with announced(RunningServer(os.getpid(), url, tmp_path / "token", tmp_path / "data")):
        assert running_servers() == []


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"pid": "1"}', "\udcff", "[" * 100_000])
def test_a_file_that_cannot_be_read_is_passed_over(server: RunningServer, text: str) -> None:
    (runtime_directory() / FOLDER / f"server-{os.getppid()}.json").write_text(text, "utf-8", "surrogateescape")
    assert running_servers() == [server]
