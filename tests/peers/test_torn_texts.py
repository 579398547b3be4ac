"""The command `isthmus serve`, killed during a text: the next process sends it again, and followers get both events."""

import asyncio
import signal
from pathlib import Path

import pytest

from isthmus.client import PromptMessage
from isthmus.events import TextContent
from isthmus.task_view import TaskView
from support.loaded_program import LoadedProgram
from support.serve_program import serve_program
from support.turns import SECONDS, events_of

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(300)]

HALF = """
name: halting
scenarios:
  - prompt: '.'
    replies:
      - steps: [{text: Half a t}, {delay: 3600}]
"""
WHOLE = """
name: whole
scenarios:
  - prompt: '.'
    replies:
      - text: The whole text.
"""


async def test_a_text_cut_by_kill_9_is_said_anew_and_named_as_void(
    tmp_path: Path, workspace: Path, loaded_isthmus: LoadedProgram
) -> None:
    async with (
        serve_program(tmp_path, workspace, script=HALF, loaded=loaded_isthmus) as program,
        program.client() as agent,
    ):
        turn = await agent.prompt(PromptMessage("go", settings={"workspace_path": str(workspace)}))
        said = ""
        async with asyncio.timeout(SECONDS):
            while said != "Half a t":
                event = (await anext(turn.deliveries)).event
                said += event.text if isinstance(event, TextContent) else ""
        assert await program.end(signal.SIGKILL) == -signal.SIGKILL
    async with (
        serve_program(tmp_path, workspace, script=WHOLE, loaded=loaded_isthmus) as program,
        program.client() as agent,
    ):
        told = [
            event for event in await events_of(await agent.follow(turn.task_id, 0)) if isinstance(event, TextContent)
        ]
        torn, whole = told[0].message_id, told[-1].message_id
        assert {event.message_id: event.replaces for event in reversed(told)} == {torn: None, whole: torn}
        view = TaskView()
        followed = await agent.follow(turn.task_id, 0)
        async for delivery in followed.deliveries:
            view.apply(delivery)
        assert [message.text for message in view.messages.values()] == ["The whole text."]
        history = (await agent.get(turn.task_id)).history
        assert [(item.role, item.text) for item in history] == [("user", "go"), ("agent", "The whole text.")]
