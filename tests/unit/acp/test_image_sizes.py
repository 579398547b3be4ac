"""An image that is too large, in a prompt of an ACP client: refused, and nothing of it is stored."""

import base64
from pathlib import Path

import pytest

from isthmus.engine.requests import attachments
from support.acp_front import RefusedError, front
from support.agents import EchoAgent
from support.engines import engine_on

pytestmark = pytest.mark.anyio


async def test_an_image_that_is_too_large_costs_its_prompt_alone(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attachments, "MAXIMUM_FILE_BYTES", 1000)
    image = {"type": "image", "data": base64.b64encode(bytes(1001)).decode(), "mimeType": "image/png"}
    async with engine_on(workspace, EchoAgent()) as engine, front(engine) as client:
        session = await client.new(workspace)
        expected = "prompt: the file of the type image/png has 1,001 bytes; a file of a message may have at most 1,000"
        with pytest.raises(RefusedError, match=expected) as caught:
            await client.call("session/prompt", sessionId=session, prompt=[image])
        assert caught.value.code == -32602
        assert await engine.tasks() == []
        smaller = {**image, "data": base64.b64encode(bytes(999)).decode()}
        result = await client.call("session/prompt", sessionId=session, prompt=[smaller])
        assert result["stopReason"] == "end_turn"
