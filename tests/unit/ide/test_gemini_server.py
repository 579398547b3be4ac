"""What spec 1's server leaves to its next life."""

import asyncio
from pathlib import Path

import pytest

from isthmus.editors.headless import HeadlessEditor
from isthmus.ide.companion import Companion
from isthmus.ide.gemini.server import KEPT_CHARACTERS, GeminiServer
from support.companion_recorder import Recorder

pytestmark = pytest.mark.anyio


async def test_of_proposals_that_wait_only_so_much_is_left_to_the_next_life(workspace: Path) -> None:
    companion = Companion(HeadlessEditor((str(workspace),)))
    agent = Recorder("an agent")
    companion.attach(agent)
    server = GeminiServer(companion, lambda: None)
    known = {agent.id: {"name": "streamable-http-client", "version": "1", "protocol_version": "2025-11-25"}}
    await server.start({"port": 0, "token": "secret", "sessions": known})
    serving = asyncio.create_task(server.serve())
    await server.listening()
    for number in range(3):
        await companion.open_diff(agent, str(workspace / f"{number}.txt"), str(number) * (KEPT_CHARACTERS // 2))
    await companion.open_diff(agent, str(workspace / "last.txt"), "")
    left = server.life()["waiting"][agent.id]["proposals"]
    assert [Path(each["file_path"]).name for each in left] == ["0.txt", "1.txt", "last.txt"]
    await server.stop()
    await asyncio.wait_for(serving, 30)
