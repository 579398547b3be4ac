"""Several messages in one run without a user: their order, what is printed for each, and the exit codes."""

import asyncio
import io
import json
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path
from typing import Any

import pytest

from isthmus.client import PromptMessage
from isthmus.events import TextContent
from isthmus.terminal.headless.answer_schema import read_answer_schema
from isthmus.terminal.headless.headless import ExitCode, HeadlessOptions
from isthmus.terminal.headless.headless_stream import run_stream
from support.memory_agent import Ask, MemoryAgent, Step, write_file_call

pytestmark = pytest.mark.anyio


def line(text: str, *blocks: dict[str, Any]) -> bytes:
    content = [{"type": "text", "text": text}, *blocks]
    return json.dumps({"type": "user", "message": {"role": "user", "content": content}}).encode() + b"\n"


async def chunks(*parts: bytes) -> AsyncGenerator[bytes, None]:
    for part in parts:
        yield part


def script(message: PromptMessage) -> Sequence[Step]:
    if "edit" in message.text:
        return (Ask((write_file_call(),)), TextContent("t", "Not done."))
    if "fail" in message.text:
        return (RuntimeError("broken"),)
    return (TextContent("t", f"You said: {message.text}"),)


async def stream(agent: MemoryAgent, *parts: bytes, **options: Any) -> tuple[int, list[dict[str, Any]], str]:
    out, err = io.StringIO(), io.StringIO()
    given = HeadlessOptions("", "stream-json", {"workspace_path": "/w"}, **options)
    code = await run_stream(agent, given, chunks(*parts), out, err)
    return code, [json.loads(text) for text in out.getvalue().splitlines()], err.getvalue()


async def test_each_message_is_a_turn_of_one_session() -> None:
    agent = MemoryAgent(script)
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw=="}}
    code, lines, err = await stream(agent, line("one"), line("two", image)[:9], line("two", image)[9:] + line("three"))
    assert (code, err) == (0, "")
    assert [(item["type"], item.get("content")) for item in lines] == [
        *(("init", None), ("message", "one"), ("message", "You said: one"), ("result", None)),
        *(("init", None), ("message", "two"), ("message", "You said: two"), ("result", None)),
        *(("init", None), ("message", "three"), ("message", "You said: three"), ("result", None)),
    ]
    assert len({item["session_id"] for item in lines if item["type"] == "init"}) == 1
    first, second, third = agent.prompts
    assert (first.context_id, second.context_id) == (None, third.context_id)
    assert [part.media_type for part in second.parts] == [None, "image/png"]
    assert len({(await agent.get(item.task_id)).context_id for item in await agent.tasks()}) == 1


async def test_a_turn_that_fails_leaves_its_exit_code_and_the_next_goes_on() -> None:
    code, lines, _ = await stream(MemoryAgent(script), line("edit it"), line("fail"), line("one"))
    assert code == ExitCode.REFUSED
    assert [item["status"] for item in lines if item["type"] == "result"] == ["error", "error", "success"]


async def test_a_refused_line_ends_the_run() -> None:
    agent = MemoryAgent(script)
    code, lines, err = await stream(agent, line("one") + b"nonsense\n" + line("two"))
    assert code == ExitCode.BAD_INPUT
    assert lines[-1]["type"] == "result"
    assert lines[-1]["error"]["type"] == "FatalInputError"
    assert lines[-1]["error"]["message"].startswith("line 2 of the standard input: expected JSON")
    assert "line 2" in err
    assert [message.text for message in agent.prompts] == ["one"]


async def test_no_message_at_all_is_bad_input() -> None:
    code, [last], _ = await stream(MemoryAgent(script), b"\n\n")
    assert (code, last["status"]) == (ExitCode.BAD_INPUT, "error")
    assert '{"type": "user"' in last["error"]["message"]


async def test_a_message_is_read_when_the_turn_before_it_has_ended() -> None:
    agent, out, asked = MemoryAgent(script), io.StringIO(), asyncio.Event()

    async def conversation() -> AsyncGenerator[bytes, None]:
        yield line("one")
        assert json.loads(out.getvalue().splitlines()[-1])["type"] == "result"
        yield line(f"you said {len(agent.prompts)}")
        asked.set()

    options = HeadlessOptions("", "stream-json", {"workspace_path": "/w"})
    assert await run_stream(agent, options, conversation(), out, None) == 0
    assert asked.is_set()
    assert "you said 1" in out.getvalue()


async def test_the_answer_of_every_turn_fits_the_schema(tmp_path: Path) -> None:
    file = tmp_path / "schema.json"
    file.write_text('{"type": "integer"}', "utf-8")
    answers = iter((("m1", "1"), ("m2", "two"), ("m3", "2")))
    agent = MemoryAgent(lambda _: (TextContent(*next(answers)),))
    code, lines, _ = await stream(agent, line("a"), line("b"), schema=read_answer_schema(file))
    assert code == 0
    assert [item["structured_output"] for item in lines if item["type"] == "result"] == [1, 2]
