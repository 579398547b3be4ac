"""MCP servers that are commands over A2A: only for a program of the server's owner on the server's machine."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from isthmus.a2a.options import ServerOptions
from isthmus.a2a.protocol.extension import URI
from isthmus.a2a.server import owner_here
from isthmus.a2a.server.owner_here import is_direct
from isthmus.a2a.server.users.auth import UserAccess
from isthmus.a2a.server.users.users import UserTable
from isthmus.client import InvalidRequest
from isthmus.encoding.codec import JsonObject
from isthmus.engine import Engine, EngineOptions
from isthmus.engine.port.workspaces import WorkspaceRule
from isthmus.network.loopback import another_user_connects
from support.a2a_serving import EXTENSION, RawClient, prompt, serving
from support.a2a_users import Users
from support.agents import EchoAgent
from support.journals import journal_at

pytestmark = pytest.mark.anyio

COMMAND = {"name": "mine", "command": "sh", "args": ["-c", "exit"]}


@dataclass(slots=True)
class Checks:
    """The check of an agent that takes commands where it may, and all that it was asked."""

    asked: list[bool] = field(default_factory=list[bool])

    async def check(self, settings: JsonObject, folder: Path, brings_programs: bool) -> None:
        self.asked.append(brings_programs)
        if not brings_programs and any("command" in server for server in settings.get("mcp_servers", ())):
            raise InvalidRequest("commands of clients are not run here")


@pytest.fixture
async def engine(workspace: Path) -> AsyncGenerator[Engine]:
    journal = await journal_at(workspace / "journal.sqlite")
    rule = WorkspaceRule(workspace, (workspace,))
    engine = Engine(EchoAgent(), journal, EngineOptions(rule, check_settings=Checks().check))
    await engine.start()
    yield engine
    await engine.aclose()


def with_command(workspace: Path) -> dict[str, Any]:
    """Return a message whose AgentSettings have an MCP server that is a command."""
    message = prompt("go")
    message["message"]["metadata"] = {URI: {"workspace_path": str(workspace), "mcp_servers": [COMMAND]}}
    return message


async def takes_it(client: RawClient, workspace: Path, headers: Mapping[str, str] = {}) -> bool:
    """Return whether the server takes the message; otherwise it must have been refused for its command."""
    answer = await client.call("message/send", with_command(workspace), {**EXTENSION, **headers})
    if "result" in answer:
        return answer["result"]["status"]["state"] == "completed"
    assert "commands of clients are not run here" in answer["error"]["message"]
    return False


async def test_a_program_of_the_owner_on_this_machine_may_bring_commands(engine: Engine, workspace: Path) -> None:
    async with serving(engine, owner_here=engine.for_owner_here()) as server:
        assert await takes_it(server, workspace)
        (task,) = await engine.tasks()
        settings = await engine.settings_of(task.task_id)
        assert settings is not None
        assert [server.command for server in settings.mcp_servers] == ["sh"]


async def test_a_server_that_was_not_told_so_takes_commands_of_nobody(engine: Engine, workspace: Path) -> None:
    async with serving(engine) as server:
        assert not await takes_it(server, workspace)


async def test_other_users_bring_no_commands_from_this_machine(engine: Engine, workspace: Path) -> None:
    found: list[Users] = []
    access = UserAccess(lambda: found[0].table)
    served = serving(engine, for_user=engine.for_user, access=access, owner_here=engine.for_owner_here())
    async with served as server, AsyncExitStack() as stack:
        found.append(Users(server, UserTable(), stack, engine))
        assert not await takes_it(await found[0].client("alice"), workspace)
        assert await takes_it(server, workspace)


@pytest.mark.parametrize(
    "header",
    [
        {"X-Forwarded-For": "203.0.113.7"},
        {"x-forwarded-proto": "https"},
        {"Forwarded": "for=127.0.0.1"},
        {"Via": "1.1 proxy"},
        {"X-Real-IP": "127.0.0.1"},
        {"Referer": "http://127.0.0.1/"},
        {"Sec-Fetch-Mode": "cors"},
    ],
)
async def test_the_owners_token_through_a_proxy_or_from_a_page_brings_none(
    engine: Engine, workspace: Path, header: dict[str, str]
) -> None:
    async with serving(engine, owner_here=engine.for_owner_here()) as server:
        assert not await takes_it(server, workspace, header)


async def test_a_page_of_the_server_itself_brings_none(engine: Engine, workspace: Path) -> None:
    async with serving(engine, owner_here=engine.for_owner_here()) as server:
        assert not await takes_it(server, workspace, {"Origin": server.url.rstrip("/")})


async def test_the_owners_token_at_another_name_of_the_server_brings_none(engine: Engine, workspace: Path) -> None:
    options = ServerOptions("test-token", hosts=("agent.example.org",))
    async with serving(engine, options, owner_here=engine.for_owner_here()) as server:
        assert not await takes_it(server, workspace, {"Host": "agent.example.org"})


async def test_a_process_of_another_user_with_the_owners_token_brings_none(
    engine: Engine, workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = tmp_path / "tcp"
    table.write_text("  sl  local_address rem_address   st\n", encoding="ascii")  # our connection is not in it
    told = partial(another_user_connects, tables=[table])
    monkeypatch.setattr(owner_here, "another_user_connects", told)
    async with serving(engine, owner_here=engine.for_owner_here()) as server:
        assert not await takes_it(server, workspace)


async def test_a_program_around_the_server_that_authenticates_brings_none(engine: Engine, workspace: Path) -> None:
    async def authenticate(head: object) -> str:
        return ""

    async with serving(
        engine, access=UserAccess(authenticate=authenticate), owner_here=engine.for_owner_here()
    ) as server:
        assert not await takes_it(server, workspace)


def test_a_direct_request_names_this_machine_as_its_host() -> None:
    for host in ("127.0.0.1:80", "localhost", "[::1]:8080"):
        assert is_direct(["Host", "Authorization"], host)
    for host in (None, "", "[", "agent.example.org", "127.0.0.1.example.org"):
        assert not is_direct(["Host"], host)
