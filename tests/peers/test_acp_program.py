"""``isthmus acp`` as a process: JSON alone on its output, its end, and turns that outlive it."""

import asyncio
import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from support.acp_front import ALLOW, RefusedError
from support.acp_program import acp_arguments, acp_program
from support.isthmus_program import ISTHMUS
from support.waiting import eventually_async

pytestmark = pytest.mark.anyio

NOISE = """
import os, subprocess, sys
import isthmus.programs.acp.front as front

serve = front.serve_local

async def noisy(*arguments, **options):
    print("noise by print", flush=True)
    sys.stdout.write("noise by write")
    os.write(1, b"noise by the system")
    subprocess.run(["echo", "noise by a program"])
    await serve(*arguments, **options)

front.serve_local = noisy
from isthmus.__main__ import main
main()
"""
RUBBISH = (b"\n", b"rubbish\n", b"\xff\xfe\x00\n", b"[1,2]\n", b"{}\n", b'{"jsonrpc":"2.0","id":"x","method":5}\n')


async def test_the_output_has_messages_alone_whatever_prints_and_whatever_comes_in(tmp_path: Path) -> None:
    async with acp_program(tmp_path, (sys.executable, "-c", NOISE)) as program:
        await program.client.write(b"".join(RUBBISH))
        await program.initialize()
        session = await program.client.new(tmp_path)
        assert await program.client.prompt(session, "hello") == "end_turn"
        assert program.client.text() == "You said: hello"
        errors = [message["error"]["code"] for message in program.client.messages if "error" in message]
        assert errors == [-32700, -32700, -32600, -32600, -32600]
        image = {"type": "image", "data": "A" * 30_000_000, "mimeType": "image/png"}
        with pytest.raises(RefusedError, match="has 22,500,000 bytes; a file of a message may have at most 15,000,000"):
            await program.client.call("session/prompt", sessionId=session, prompt=[image])
        assert await program.client.prompt(session, "still there?") == "end_turn"
        assert await program.end() == 0
    printed = program.errors.read_text(encoding="utf-8")
    assert all(f"noise by {what}" in printed for what in ("print", "write", "the system", "a program"))
    program.no_traceback()


async def test_a_turn_that_a_signal_interrupts_goes_on_in_the_next_process(tmp_path: Path) -> None:
    async with acp_program(tmp_path) as program:
        await program.initialize()
        session = await program.client.new(tmp_path)
        await program.client.begin_prompt(session, "slow")
        await eventually_async(lambda: program.client.text() == "Begun. ")
        program.process.send_signal(signal.SIGTERM)
        assert await asyncio.wait_for(program.process.wait(), 30) == 0
        program.no_traceback()
    async with acp_program(tmp_path) as program:
        await program.initialize()
        await program.client.load(session, tmp_path)
        await eventually_async(lambda: program.client.text().endswith("Begun. Done."))
        assert program.client.text("user_message_chunk") == "slow"
        assert program.client.text().count("Done.") == 1
        listed = await program.client.call("session/list")
        assert [item["sessionId"] for item in listed["sessions"]] == [session]


async def test_two_processes_ask_about_one_edit_and_the_first_answer_writes_the_file(tmp_path: Path) -> None:
    """As two editors do, or one whose earlier process has not ended."""
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    async with acp_program(tmp_path) as one, acp_program(tmp_path) as two:
        await one.initialize()
        await two.initialize()
        session = await one.client.new(workspace)
        turn = await one.client.begin_prompt(session, "write")
        question = await one.client.question()
        await two.client.load(session, workspace)
        await two.client.respond(await two.client.question(), ALLOW)
        assert (await asyncio.wait_for(turn, 30))["stopReason"] == "end_turn"
        assert one.client.withdrawn == [question["id"]]
        assert (workspace / "new.txt").read_text(encoding="utf-8") == "one\n"
        for client in (one.client, two.client):
            await eventually_async(lambda c=client: c.text() == "Written.")
            statuses = [update["status"] for update in client.of_kind("tool_call_update") if "status" in update]
            assert statuses.count("completed") == 1
            assert len(client.questions) == 1


async def test_the_end_of_the_input_ends_it_while_a_turn_runs(tmp_path: Path) -> None:
    async with acp_program(tmp_path) as program:
        await program.initialize()
        await program.client.begin_prompt(await program.client.new(tmp_path), "endless")
        await eventually_async(lambda: program.client.text() == "Begun. ")
        assert await program.end() == 0
        program.no_traceback()


async def test_a_signal_ends_it_although_nobody_reads_its_output(tmp_path: Path) -> None:
    async with acp_program(tmp_path, reads=False) as program:
        assert program.process.stdin is not None
        program.process.stdin.write(b"rubbish\n" * 200_000)  # each line is answered
        assert program.process.stdout is not None
        first = await program.process.stdout.readline()
        assert json.loads(first)["error"]["code"] == -32700
        program.process.send_signal(signal.SIGTERM)
        await eventually_async(lambda: program.process.returncode is not None)
        assert program.process.returncode == 0
        program.no_traceback()


def test_requests_in_a_file_are_answered(tmp_path: Path) -> None:
    requests: list[dict[str, Any]] = [
        {"id": 1, "method": "initialize", "params": {"protocolVersion": 1}},
        {"id": 2, "method": "session/new", "params": {"cwd": str(tmp_path), "mcpServers": []}},
        {"id": 3, "method": "nothing", "params": {}},
    ]
    lines = "".join(json.dumps({"jsonrpc": "2.0", **request}) + "\n" for request in requests)
    (tmp_path / "requests").write_text(lines, encoding="utf-8")
    with (tmp_path / "requests").open("rb") as source:
        done = subprocess.run(
            [*ISTHMUS, *acp_arguments(tmp_path)],
            cwd=tmp_path,
            stdin=source,
            capture_output=True,
            check=False,
            timeout=60,
        )
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert [answer["id"] for answer in answers if "id" in answer] == [1, 2, 3]
    assert (done.returncode, b"Traceback" in done.stderr) == (0, False)
