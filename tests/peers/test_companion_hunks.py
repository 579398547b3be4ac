"""Hunks of a review that are accepted in a terminal, of a companion that runs as a program."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx2
import pytest

from support.companion import BareAgent, EventStream
from support.isthmus_program import CompanionProgram, companion_program, isthmus

pytestmark = pytest.mark.anyio

OLD = "one\ntwo\nthree\nfour\nfive\n"
NEW = "ONE\ntwo\nTHREE\nfour\nFIVE\n"


@pytest.fixture
def file(workspace: Path) -> Path:
    path = workspace / "a.txt"
    path.write_text(OLD, encoding="utf-8")
    return path


@asynccontextmanager
async def _proposing(companion: CompanionProgram, file: Path, content: str) -> AsyncGenerator[EventStream]:
    """Yield the events of an agent that proposes a text."""
    headers = {"authorization": f"Bearer {companion.discovered['authToken']}"}
    base = f"http://127.0.0.1:{companion.ready['port']}"
    async with httpx2.AsyncClient(base_url=base, headers=headers, timeout=60, trust_env=False) as http:
        agent = BareAgent(http)
        await agent.initialize()
        arguments = {"filePath": str(file), "newContent": content}
        async with agent.stream() as stream:
            await stream.next()
            answer = await agent.request("tools/call", {"name": "openDiff", "arguments": arguments})
            assert answer["result"] == {"content": []}
            yield stream


async def _accepted(stream: EventStream) -> str:
    return (await stream.until("ide/diffAccepted"))[1]["params"]["content"]


async def _ide(workspace: Path, *arguments: str) -> tuple[int, str]:
    done = await asyncio.to_thread(isthmus, "ide", *arguments, folder=workspace)
    return done.returncode, done.stdout + done.stderr


async def test_two_hunks_of_three_are_accepted(workspace: Path, file: Path) -> None:
    with companion_program(workspace, "--allow-agent-accept") as companion:
        async with _proposing(companion, file, NEW) as stream:
            _, listed = await _ide(workspace, "diffs")
            assert [line for line in listed.splitlines() if line.startswith("@@")] == [
                "@@ -1,2 +1,2 @@ hunk 1 of 3",
                "@@ -3,2 +3,2 @@ hunk 2 of 3",
                "@@ -5 +5 @@ hunk 3 of 3",
            ]
            status, text = await _ide(workspace, "accept", str(file), "--hunks", "1,3")
            assert (status, await _accepted(stream)) == (0, "ONE\ntwo\nthree\nfour\nFIVE\n"), text


async def test_hunks_of_a_file_with_carriage_returns_are_counted_alike(workspace: Path, file: Path) -> None:
    file.write_bytes(b"\xef\xbb\xbf" + OLD.replace("\n", "\r\n").removesuffix("\r\n").encode())
    with companion_program(workspace, "--allow-agent-accept") as companion:
        async with _proposing(companion, file, NEW.removesuffix("\n")) as stream:
            assert "hunk 3 of 3" in (await _ide(workspace, "diffs"))[1]
            status, text = await _ide(workspace, "accept", str(file), "--hunks", "2")
            assert (status, await _accepted(stream)) == (0, "one\ntwo\nTHREE\nfour\nfive"), text


async def test_numbers_that_are_no_longer_true_decide_nothing(workspace: Path, file: Path) -> None:
    with companion_program(workspace, "--allow-agent-accept") as companion:
        async with _proposing(companion, file, NEW) as stream:
            await _ide(workspace, "diffs")
            file.write_text("zero\n" + OLD, encoding="utf-8")
            status, text = await _ide(workspace, "accept", str(file), "--hunks", "2")
            assert status == 1
            assert "has changed since its hunks were listed" in text
            assert "list them again" in text
            await _ide(workspace, "diffs")
            assert (await _ide(workspace, "accept", str(file), "--hunks", "2-9"))[0] == 1
            status, text = await _ide(workspace, "accept", str(file), "--hunks", "1-3")
            assert (status, await _accepted(stream)) == (0, NEW), text


async def test_an_empty_choice_says_to_reject(workspace: Path, file: Path) -> None:
    with companion_program(workspace, "--allow-agent-accept") as companion:
        async with _proposing(companion, file, NEW):
            status, text = await _ide(workspace, "accept", str(file), "--hunks", "")
            assert status == 42
            assert "to accept nothing, use `isthmus ide reject`" in text
            status, text = await _ide(workspace, "accept", str(file), "--hunks", "1", "--content", "-")
            assert (status, "give one of them" in text) == (42, True)


async def test_a_notebook_is_accepted_by_cells(workspace: Path) -> None:
    path = workspace / "a.ipynb"
    cells = '{"cells": [{"cell_type": "code", "execution_count": null, "metadata": {}, "outputs": [], "source": "%s"}]'
    notebook = cells + ', "metadata": {}, "nbformat": 4, "nbformat_minor": 5}'
    path.write_text(notebook % "a", encoding="utf-8")
    with companion_program(workspace, "--allow-agent-accept") as companion:
        async with _proposing(companion, path, notebook % "b"):
            status, text = await _ide(workspace, "accept", str(path), "--hunks", "1")
            assert (status, "--cells" in text) == (1, True)
