"""``make cluster``: a database, several servers and a proxy on this machine, with no trace of them afterwards."""

import asyncio
import os
import re
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from isthmus.a2a.client.remote_agent import RemoteAgent
from isthmus.client import PromptMessage
from isthmus.events import StateChange, TaskState, TextContent
from support.isthmus_program import process_ends
from support.postgres import run_sql

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(60)]

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "cluster.py"
WORDS = [f"word{number}" for number in range(12)]
PAUSES = [2 if word == "word5" else 0.05 for word in WORDS]
"""Seconds after each word; the long one is the time to kill a server that is still working."""
STEPS = "".join(
    f"          - text: '{word} '\n          - delay: {pause}\n" for word, pause in zip(WORDS, PAUSES, strict=True)
)
MODEL = f"name: practice\nscenarios:\n  - prompt: long\n    replies:\n      - steps:\n{STEPS}"


class Cluster:
    """A cluster that has reported that it is ready."""

    def __init__(self, process: asyncio.subprocess.Process, folder: Path, said: str) -> None:
        self.process = process
        self.folder = folder
        self.url = re.findall(r"Cluster ready: (http\S+)", said)[0]
        self.token = (folder / "token").read_text("utf-8").strip()
        self.journal = (folder / "journal-url").read_text("utf-8")
        self.replicas = [int(pid) for pid in re.findall(r"replica \d+ +pid (\d+)", said)]
        self.database = int(re.findall(r"database +pid (\d+)", said)[0])

    async def said(self, pattern: str) -> re.Match[str]:
        """Return the match of the next line of its output that has the pattern."""
        assert self.process.stdout is not None
        async with asyncio.timeout(20):
            while line := (await self.process.stdout.readline()).decode():
                if found := re.search(pattern, line):
                    return found
        raise AssertionError(f"the cluster ended without {pattern!r}")


@asynccontextmanager
async def cluster(tmp_path: Path, *options: str) -> AsyncGenerator[Cluster]:
    """Start a cluster; end it afterwards as Ctrl-C does."""
    (tmp_path / "model.yaml").write_text(MODEL, "utf-8")
    folder = tmp_path / "cluster"
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, str(SCRIPT), "--folder", str(folder), "-m", f"scripted:{tmp_path / 'model.yaml'}", *options),
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    try:
        async with asyncio.timeout(40):
            said = (await process.stdout.readuntil(b"Ctrl-C ends everything.\n")).decode()
        yield Cluster(process, folder, said)
    finally:
        if process.returncode is None:
            process.send_signal(signal.SIGINT)
        async with asyncio.timeout(30):
            await process.communicate()


async def test_a_task_goes_on_through_the_proxy_when_its_replica_is_killed(tmp_path: Path) -> None:
    async with cluster(tmp_path) as found:
        agent = await RemoteAgent.connect(found.url, found.token)
        try:
            turn = await agent.prompt(
                PromptMessage("long", settings={"workspace_path": str(found.folder / "workspace")})
            )
            async for item in turn.deliveries:
                if isinstance(item.event, TextContent) and "word3" in item.event.text:
                    break
            owner = str(await run_sql(found.journal, "SELECT owner FROM tasks")).split(":")
            killed = int(owner[-2])
            assert killed in found.replicas
            os.kill(killed, signal.SIGKILL)
            assert (await found.said(r"Replica \d \(pid (\d+)\) ended with SIGKILL"))[1] == str(killed)
            texts = list[str]()
            async with asyncio.timeout(20):
                async for item in (await agent.follow(turn.task_id, 0)).deliveries:
                    if isinstance(item.event, TextContent):
                        texts.append(item.event.text)
                    if isinstance(item.event, StateChange) and item.event.state is TaskState.COMPLETED:
                        break
            assert "".join(texts).split()[-1] == WORDS[-1]
        finally:
            await agent.aclose()
    assert found.process.returncode == 0
    for pid in (*found.replicas, found.database):
        await asyncio.to_thread(process_ends, pid)
    assert not found.folder.exists()


def run(*arguments: object) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, str(SCRIPT), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, encoding="utf-8", check=False, timeout=50)


def test_a_server_that_does_not_start_ends_the_cluster_with_its_reason(tmp_path: Path) -> None:
    done = run("--folder", tmp_path / "cluster", "--replicas", 1, "--slots", "many")
    assert done.returncode == 1
    assert "replica 1 does not start" in done.stderr
    assert "'many' is not a valid integer" in done.stderr
    assert not (tmp_path / "cluster").exists()


def test_a_folder_that_is_there_is_not_touched(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    done = run("--folder", tmp_path)
    assert done.returncode == 1
    assert "name another --folder" in done.stderr
    assert [each.name for each in tmp_path.iterdir()] == ["file"]
