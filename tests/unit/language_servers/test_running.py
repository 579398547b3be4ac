"""Running language servers: pyright itself, and programs that do not answer, end early or talk nonsense."""

import os
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import psutil
import pytest

from isthmus.language_servers.running import RunningLanguageServer, ServerFailedError, ServerTimeouts
from isthmus.language_servers.servers import server_for
from support.process_families import is_alive
from support.waiting import eventually_async

pytestmark = pytest.mark.anyio

PYRIGHT = Path(sys.executable).with_name("pyright-langserver")
ENVIRONMENT = {"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/")}
BRIEF = ServerTimeouts(start_seconds=1.0, look_seconds=0.5, settle_seconds=0.05, end_seconds=0.2)


@asynccontextmanager
async def running(
    workspace: Path, program: str, timeouts: ServerTimeouts = ServerTimeouts(60.0, 60.0)
) -> AsyncGenerator[RunningLanguageServer]:
    server = server_for(Path("a.py"))
    assert server is not None
    made = RunningLanguageServer(server, program, workspace, ENVIRONMENT, timeouts)
    try:
        yield made
    finally:
        await made.aclose()


def script(folder: Path, body: str) -> str:
    path = folder.parent / "server"
    path.write_text(f"#!{sys.executable}\nimport json, sys, time\n{body}", encoding="utf-8")
    path.chmod(0o755)
    return str(path)


ANSWERS = """
def read():
    length = 0
    while (line := sys.stdin.buffer.readline()) not in (b"", b"\\r\\n"):
        length = int(line.split(b":")[1])
    return json.loads(sys.stdin.buffer.read(length))
def write(value):
    body = json.dumps(value).encode()
    sys.stdout.buffer.write(b"Content-Length: %d\\r\\n\\r\\n%b" % (len(body), body))
    sys.stdout.buffer.flush()
write({"jsonrpc": "2.0", "id": read()["id"], "result": {"capabilities": {}}})
"""


async def test_pyright_says_what_is_wrong_with_each_text(workspace: Path) -> None:
    path = workspace / "a.py"
    async with running(workspace, str(PYRIGHT)) as server:
        texts = ("x: int = 1\n", 'x: int = "a"\n', "x: int = 2\n", "x: int = y\n")
        found = [await server.diagnostics(path, text) for text in texts]
    messages = [[each.message.split("\n")[0] for each in each_text or ()] for each_text in found]
    assert messages == [
        [],
        ['Type "Literal[\'a\']" is not assignable to declared type "int"'],
        [],
        ['"y" is not defined'],
    ]
    assert found[1] is not None
    assert found[1][0].range.start.character == 9


async def test_nothing_of_a_server_is_left_behind(workspace: Path) -> None:
    before = set(psutil.Process().children(recursive=True))
    async with running(workspace, str(PYRIGHT)) as server:
        await server.diagnostics(workspace / "a.py", "x = 1\n")
        children = set(psutil.Process().children(recursive=True)) - before
        assert children
    await eventually_async(lambda: not any(map(is_alive, children)))


@pytest.mark.parametrize(
    "body",
    ["sys.exit(3)", "time.sleep(100)", "print('hello'); time.sleep(100)", "sys.stdout.write('x' * 10_000_000)"],
    ids=["ends", "silent", "no protocol", "floods"],
)
async def test_a_program_that_is_no_server_fails_in_time(workspace: Path, body: str) -> None:
    async with running(workspace, script(workspace, body), BRIEF) as server:
        with pytest.raises(ServerFailedError):
            await server.diagnostics(workspace / "a.py", "")


async def test_a_missing_program_fails(workspace: Path) -> None:
    async with running(workspace, str(workspace / "none"), BRIEF) as server:
        with pytest.raises(ServerFailedError, match="pyright-langserver: "):
            await server.diagnostics(workspace / "a.py", "")


async def test_a_server_that_says_nothing_of_a_file_is_waited_for_in_time(workspace: Path) -> None:
    async with running(workspace, script(workspace, ANSWERS + "time.sleep(100)"), BRIEF) as server:
        assert await server.diagnostics(workspace / "a.py", "") is None


async def test_a_server_that_ends_while_it_is_asked_fails(workspace: Path) -> None:
    async with running(workspace, script(workspace, ANSWERS + "read()\nsys.exit(0)"), BRIEF) as server:
        with pytest.raises(ServerFailedError, match="has ended"):
            await server.diagnostics(workspace / "a.py", "")
