import asyncio
import json
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from isthmus.editors.headless import HeadlessEditor
from isthmus.ide.cli_choice import Announcement, Here
from isthmus.ide.discovery.protocols import IDE_PROTOCOLS
from isthmus.ide.ide_protocol import FoundIde
from isthmus.ide.options import CompanionOptions
from isthmus.ide.running.host import Ready
from support.companion import running_host
from support.waiting import eventually_async

pytestmark = pytest.mark.anyio

(JSON_LINES,) = (protocol for protocol in IDE_PROTOCOLS if protocol.name == "json-lines")


@asynccontextmanager
async def serving(editor: HeadlessEditor) -> AsyncGenerator[Ready]:
    options = CompanionOptions()
    async with running_host(editor, options, protocols=(JSON_LINES,)) as (_, ready, _):
        yield ready


@asynccontextmanager
async def connection(ready: Ready) -> AsyncGenerator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    reader, writer = await asyncio.open_connection("127.0.0.1", ready.servers[0].port)
    try:
        yield reader, writer
    finally:
        writer.close()
        await writer.wait_closed()


def token(ready: Ready) -> str:
    return json.loads(Path(ready.servers[0].discovery_files[0]).read_bytes())["authToken"]


async def test_an_edit_that_the_user_accepts_returns_to_the_agent(workspace: Path) -> None:
    editor = HeadlessEditor((str(workspace),))
    file = workspace / "a.py"
    async with serving(editor) as ready, connection(ready) as (reader, writer):
        writer.write(b'{"token": "%b", "agent": "Lines"}\n' % token(ready).encode())
        assert await reader.readline() == b'{"editor": "Isthmus (headless)"}\n'
        assert await reader.readline() == b'{"active": null}\n'
        writer.write(b'{"openDiff": {"path": "%b", "text": "b = 2\\n"}}\n' % bytes(file))
        assert await reader.readline() == b'{"opened": {"path": "%b"}}\n' % bytes(file)
        (review,) = editor.open_reviews
        assert (review.title, review.proposed) == ("Lines", "b = 2\n")
        editor.accept_diff(review.id)
        assert await reader.readline() == b'{"accepted": {"path": "%b", "text": "b = 2\\n"}}\n' % bytes(file)


async def test_an_agent_that_leaves_closes_its_view(workspace: Path) -> None:
    editor = HeadlessEditor((str(workspace),))
    async with serving(editor) as ready:
        async with connection(ready) as (reader, writer):
            writer.write(b'{"token": "%b", "agent": "Lines"}\n' % token(ready).encode())
            writer.write(b'{"openDiff": {"path": "%b", "text": ""}}\n' % bytes(workspace / "a.py"))
            while b"opened" not in await reader.readline():
                pass
        await eventually_async(lambda: not editor.open_reviews, what="a closed view")


async def test_an_agent_without_the_token_is_refused(workspace: Path) -> None:
    async with serving(HeadlessEditor((str(workspace),))) as ready, connection(ready) as (reader, writer):
        writer.write(b'{"token": "guess", "agent": "Lines"}\n')
        assert await reader.read() == b'{"error": "expected the token of this companion"}\n'


async def test_its_agent_finds_the_editor_by_the_discovery_file(workspace: Path) -> None:
    (cli,) = JSON_LINES.clis
    async with serving(HeadlessEditor((str(workspace),))) as ready:
        (path,) = cli.discovery_files(os.environ)
        found = cli.read(path)
        assert isinstance(found, FoundIde)
        assert (found.port, found.token) == (ready.servers[0].port, token(ready))
        file = Announcement(cli.name, str(path), None, found.port, found.pid, found.folders, found.display_name)
        here = Here(str(workspace), os.environ, open_ports=frozenset({found.port}))
        assert cli.choose([file], here).source == str(path)
    assert not path.exists()
