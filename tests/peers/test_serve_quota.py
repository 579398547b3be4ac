"""The model tokens of a user's day, which end a task of ``isthmus serve`` between two messages of its model."""

import asyncio
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from support.a2a_serving import EXTENSION, prompt, rpc
from support.loaded_program import LoadedProgram
from support.plain_http import plain_client
from support.postgres import postgres
from support.serve_program import ServeProgram, serve_program

pytestmark = pytest.mark.anyio


async def call(served: ServeProgram, token: str, message: object) -> dict[str, Any]:
    headers = {**EXTENSION, "Authorization": f"Bearer {token}"}
    async with plain_client() as http:
        return (await http.post(served.url, json=rpc("message/send", message), headers=headers)).json()


@pytest.fixture(params=["sqlite", "postgres"])
def journal(request: pytest.FixtureRequest) -> Iterator[Sequence[str]]:
    """Return the options of the journal."""
    if request.param == "sqlite":
        yield ()
    else:
        with postgres() as server:
            yield ("--journal", server.database())


async def test_a_task_that_uses_up_the_tokens_of_its_day_ends_after_its_call(
    tmp_path: Path, workspace: Path, loaded_isthmus: LoadedProgram, journal: Sequence[str]
) -> None:
    options = (*journal, "--approval-mode", "yolo", "--user-max-tokens-a-day", "10")
    async with serve_program(tmp_path, workspace, *options, loaded=loaded_isthmus) as served:
        adding = ("serve", "token", "add", "alice", "--data-dir", str(tmp_path / "data"))
        added = await asyncio.to_thread(loaded_isthmus.run, *adding, folder=tmp_path, text="")
        alice = added.stdout.strip()
        task = (await call(served, alice, prompt("greet", workspace)))["result"]
        said = task["status"]["message"]["parts"][0]["text"]
        assert (task["status"]["state"], said.partition(" model tokens")[0][:15]) == ("failed", "alice has used ")
        assert "10 are the maximum of a day; the work ended here, and what was done is kept" in said
        assert (workspace / "greeting.txt").read_text("utf-8") == "hello\n"
        refused = (await call(served, alice, prompt("go on", workspace)))["error"]
        assert (refused["code"], "nothing was changed" in refused["message"]) == (-32000, True)
        owners = (await call(served, served.token, prompt("greet", workspace)))["result"]
        assert owners["status"]["state"] == "completed"
