"""The user's channel: the processes that may allow actions over it."""

import asyncio
import json
import shutil
import socket
import subprocess
import sys
from collections.abc import AsyncGenerator, Iterable, Mapping
from pathlib import Path

import pytest

from isthmus.editors.headless import HeadlessEditor
from isthmus.ide.companion import Companion
from isthmus.ide.control import lineage
from isthmus.ide.control.control import ControlServer

pytestmark = pytest.mark.anyio

_CONNECTS_FOR_ANOTHER = """
import socket, sys
connection = socket.socket(socket.AF_UNIX)
connection.connect(sys.argv[1])
socket.send_fds(socket.socket(fileno=int(sys.argv[2])), [b"x"], [connection.fileno()])
"""


@pytest.fixture
async def control(workspace: Path, tmp_path: Path) -> AsyncGenerator[Path]:
    """Yield the file by which a companion's channel is found."""
    folder = tmp_path / "runtime"
    server = ControlServer(Companion(HeadlessEditor((str(workspace),))), folder, allow_agent_accept=False)
    await server.start()
    server.announce((str(workspace),), (1,), {}, "")
    (file,) = folder.glob("companion-*.json")
    yield file
    await server.stop()
    await server.cut_off()


async def test_a_channel_whose_folder_somebody_removed_can_be_opened_again(workspace: Path, tmp_path: Path) -> None:
    folder = tmp_path / "runtime"
    server = ControlServer(Companion(HeadlessEditor((str(workspace),))), folder, allow_agent_accept=False)
    await server.start()
    server.announce((str(workspace),), (1,), {}, "")
    assert server.is_announced
    shutil.rmtree(folder)
    assert not server.is_announced
    await server.start()
    server.announce((str(workspace),), (1,), {}, "")
    (file,) = folder.glob("companion-*.json")
    said = json.loads(file.read_text(encoding="utf-8"))
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(said["socket"])
    assert "unknown command 'x'" in await _asked(connection, {"command": "x", "token": said["token"]})
    await server.stop()
    assert list(folder.iterdir()) == []


async def test_a_command_that_still_waits_at_the_end_is_cut_off(workspace: Path, tmp_path: Path) -> None:
    folder = tmp_path / "runtime"
    server = ControlServer(Companion(HeadlessEditor((str(workspace),))), folder, allow_agent_accept=False)
    await server.start()
    server.announce((str(workspace),), (1,), {}, "")
    (file,) = folder.glob("companion-*.json")
    said = json.loads(file.read_text(encoding="utf-8"))
    reader, writer = await asyncio.open_unix_connection(said["socket"])
    waiting = {"command": "diffs", "wait": 3600, "token": said["token"]}
    writer.write(json.dumps({"command": "x", "token": said["token"]}).encode() + b"\n")
    writer.write(json.dumps(waiting).encode() + b"\n")
    assert b"unknown command" in await reader.readline()  # it is served, and the next one waits
    await server.stop()
    assert not reader.at_eof()
    await server.cut_off()
    assert await asyncio.wait_for(reader.read(), 30) == b""
    writer.close()


async def test_an_agent_is_forgotten_when_it_has_ended(workspace: Path, tmp_path: Path) -> None:
    folder = tmp_path / "runtime"
    server = ControlServer(Companion(HeadlessEditor((str(workspace),))), folder, allow_agent_accept=False)
    await server.start()
    server.announce((str(workspace),), (1,), {}, "")
    (file,) = folder.glob("companion-*.json")
    said = json.loads(file.read_text(encoding="utf-8"))
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as agent:
        for pid in (agent.pid, -1, 2**64):  # the others are not processes
            reader, writer = await asyncio.open_unix_connection(said["socket"])
            writer.write(json.dumps({"command": "agent", "token": said["token"], "pid": pid}).encode() + b"\n")
            assert json.loads(await asyncio.wait_for(reader.readline(), 30)) == {"ok": True, "result": {}}
            writer.close()
            await writer.wait_closed()
        assert server.agents == {agent.pid}
        agent.kill()
    assert server.agents == frozenset()
    await server.stop()


async def _asked(connection: socket.socket, request: Mapping[str, object]) -> str:
    reader, writer = await asyncio.open_unix_connection(sock=connection)
    writer.write(json.dumps(request).encode() + b"\n")
    answer = json.loads(await asyncio.wait_for(reader.readline(), 30))
    writer.close()
    await writer.wait_closed()
    return str(answer["error"])


@pytest.mark.parametrize("token", [{}, {"token": ""}, {"token": None}, {"token": "of an earlier companion"}])
@pytest.mark.parametrize("command", ["diffs", "agent", "accept", "answer", "decide", "page_view", "unknown"])
async def test_no_command_is_run_without_the_token_of_this_companion(
    control: Path, token: Mapping[str, object], command: str
) -> None:
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(json.loads(control.read_text(encoding="utf-8"))["socket"])
    assert "Unauthorized" in await _asked(connection, {"command": command, **token})


async def test_nothing_is_allowed_to_a_process_that_is_gone_before_it_could_be_looked_at(
    control: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_doubt(pid: int, agents: Iterable[int]) -> None:
        """Ignore the terminal: these tests may run in one or without one."""

    monkeypatch.setattr(lineage, "doubt_about", no_doubt)
    said = json.loads(control.read_text(encoding="utf-8"))
    request = {"command": "answer", "token": said["token"], "id": "nobody", "yes": True}
    own = socket.socket(socket.AF_UNIX)
    own.connect(said["socket"])
    assert "no question nobody waits" in await _asked(own, request)

    here, there = socket.socketpair()
    with here, there:
        command = [sys.executable, "-c", _CONNECTS_FOR_ANOTHER, said["socket"], str(there.fileno())]
        await asyncio.to_thread(subprocess.run, command, check=True, timeout=60, pass_fds=(there.fileno(),))
        _, descriptors, _, _ = socket.recv_fds(here, 1, 1)
    connected = socket.socket(fileno=descriptors[0])
    assert "has ended, so it cannot be checked" in await _asked(connected, request)
