"""What the user's editor shows reaches a hosted agent with each prompt."""

from pathlib import Path

import pytest

from isthmus.acp.host.prompt_blocks import context_block
from isthmus.acp.v1.connection import PromptCapabilities
from isthmus.encoding.codec import to_camel_json
from support.acp_hosting import acp_hosting, received

pytestmark = pytest.mark.anyio


def test_an_agent_that_reads_resources_gets_one() -> None:
    block = context_block("shown", PromptCapabilities(embedded_context=True))
    resource = {"uri": "isthmus:///editor", "mimeType": "text/plain", "text": "shown"}
    assert to_camel_json(block) == {"type": "resource", "resource": resource}


async def test_a_prompt_has_what_the_editor_shows(tmp_path: Path) -> None:
    asked: list[Path] = []

    async def editor_context(workspace: Path) -> str | None:
        asked.append(workspace)
        return "The user looks at a.txt." if len(asked) == 1 else None

    async with acp_hosting(tmp_path, editor_context=editor_context) as hosting:
        first = await hosting.prompt("hello")
        await hosting.prompt("again", first.context_id)
        workspace = hosting.workspace
    blocks = [item["params"]["prompt"] for item in received() if item.get("method") == "session/prompt"]
    assert blocks == [
        [{"type": "text", "text": "The user looks at a.txt.\n\n"}, {"type": "text", "text": "hello"}],
        [{"type": "text", "text": "again"}],
    ]
    assert asked == [workspace, workspace]
