"""Further folders of a session, which the client names: checked, asked about, stated with each prompt, and left out."""

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from isthmus.mcp_host.config.folder_trust import TrustRule, state_trust
from isthmus.programs.acp.place import LocalPlace
from support.acp_front import BOTH_VERSIONS, CANCELLED, FROM_START, RefusedError, front
from support.agents import EchoAgent
from support.engines import engine_on
from support.memory_agent import MemoryAgent

pytestmark = pytest.mark.anyio

ALLOW = {"outcome": {"outcome": "selected", "optionId": "allow"}}
REFUSE = {"outcome": {"outcome": "selected", "optionId": "refuse"}}
KEY = "additional_directories"


@pytest.fixture
async def agent() -> AsyncGenerator[MemoryAgent]:
    agent = MemoryAgent()
    yield agent
    await agent.aclose()


@pytest.fixture
def beside(workspace: Path) -> Path:
    folder = workspace.parent / "beside"
    folder.mkdir()
    return folder


async def new(client: Any, cwd: Path, *folders: Path | str) -> str:
    """Begin a session with further folders."""
    more = {"additionalDirectories": list(map(str, folders))}
    return (await client.call("session/new", cwd=str(cwd), mcpServers=[], **more))["sessionId"]


def stated(agent: MemoryAgent) -> list[Any]:
    """Return the further folders that each prompt stated."""
    return [(prompt.settings or {}).get(KEY) for prompt in agent.prompts]


async def test_the_user_is_asked_once_and_each_prompt_states_them(
    agent: MemoryAgent, workspace: Path, beside: Path
) -> None:
    async with front(agent, answer=ALLOW) as client:
        session = await new(client, workspace, beside, beside, workspace / "inside-of-it", workspace)
        assert client.questions == []
        await client.prompt(session, "hello")
        await client.prompt(session, "again")
        await client.prompt(await new(client, workspace, beside), "another session")
        (question,) = client.questions
    asked = question["params"]["toolCall"]
    assert asked["title"] == "Let the agent work in further folders, which your editor names?"
    text = f"Besides {workspace}, it could read and change files in:\n  - {beside}"
    assert asked["content"] == [{"type": "content", "content": {"type": "text", "text": text}}]
    kinds = [(option["optionId"], option["kind"]) for option in question["params"]["options"]]
    assert kinds == [("allow", "allow_once"), ("refuse", "reject_once")]
    assert stated(agent) == [[str(beside)]] * 3


@pytest.fixture(autouse=True)
def _inside(workspace: Path) -> None:
    (workspace / "inside-of-it").mkdir()


@pytest.mark.parametrize("answer", [REFUSE, CANCELLED, {}, {"outcome": "rubbish"}])
async def test_what_is_not_allowed_is_left_out_and_the_user_is_told(
    answer: dict[str, Any], agent: MemoryAgent, workspace: Path, beside: Path
) -> None:
    async with front(agent, answer=answer) as client:
        session = await new(client, workspace, beside)
        await client.prompt(session, "hello")
        assert f"The agent does not work in {beside}: you did not allow it." in client.text()
        await client.prompt(session, "again")
        assert (stated(agent), len(client.questions)) == ([[], []], 1)
        more = {"additionalDirectories": [str(beside)]}
        await client.call("session/load", sessionId=session, cwd=str(workspace), mcpServers=[], **more)
        await client.prompt(session, "and now")
        assert len(client.questions) == 2


async def test_a_client_that_cannot_ask_goes_on_without_them(agent: MemoryAgent, workspace: Path, beside: Path) -> None:
    async with front(agent) as client:
        turn = await client.begin_prompt(await new(client, workspace, beside), "hello")
        question = await client.question()
        await client.send({"id": question["id"], "error": {"code": -32601, "message": "Method not found"}})
        assert await asyncio.wait_for(turn, 10) == {"stopReason": "end_turn"}
        assert (stated(agent), "does not work in" in client.text()) == ([[]], True)


async def test_a_prompt_that_is_cancelled_while_it_asks_decides_nothing(
    agent: MemoryAgent, workspace: Path, beside: Path
) -> None:
    async with front(agent) as client:
        session = await new(client, workspace, beside)
        turn = await client.begin_prompt(session, "hello")
        await client.question()
        await client.notify("session/cancel", sessionId=session)
        assert await asyncio.wait_for(turn, 10) == {"stopReason": "cancelled"}
        turn = await client.begin_prompt(session, "hello")
        await client.respond(await client.question(1), ALLOW)
        await asyncio.wait_for(turn, 10)
    assert stated(agent) == [[str(beside)]]


async def test_a_trusted_folder_is_not_asked_about_and_a_distrusted_one_is_refused(
    agent: MemoryAgent, workspace: Path, beside: Path
) -> None:
    state_trust(Path.home(), beside, TrustRule.FOLDER)
    distrusted = workspace.parent / "distrusted"
    distrusted.mkdir()
    state_trust(Path.home(), distrusted, TrustRule.NOT)
    async with front(agent) as client:
        await client.prompt(await new(client, workspace, beside), "hello")
        assert (client.questions, stated(agent)) == ([], [[str(beside)]])
        with pytest.raises(RefusedError, match=f"you do not trust {distrusted}; `isthmus trust"):
            await new(client, workspace, distrusted)


@pytest.mark.parametrize(
    ("name", "why"),
    [
        (".", "it contains your home folder"),
        (".ssh", "settings and keys are in folders whose names begin with a dot"),
    ],
)
async def test_a_folder_that_no_project_may_name_is_asked_about_also_if_it_is_trusted(
    name: str, why: str, agent: MemoryAgent, workspace: Path
) -> None:
    folder = Path.home() / name
    folder.mkdir(exist_ok=True)
    state_trust(Path.home(), Path.home().parent, TrustRule.FOLDER)
    async with front(agent, answer=REFUSE) as client:
        await client.prompt(await new(client, workspace, folder), "hello")
        (question,) = client.questions
        text = question["params"]["toolCall"]["content"][0]["content"]["text"]
        assert f"  - {folder.resolve()} ({why})" in text
        assert stated(agent) == [[]]


@pytest.mark.parametrize(
    ("folder", "message"),
    [
        ("", "additionalDirectories: expected an absolute path, received ''"),
        ("relative", "additionalDirectories: expected an absolute path, received 'relative'"),
        ("/no/such/folder", "additionalDirectories: /no/such/folder is not a folder on this machine"),
    ],
)
async def test_a_folder_that_cannot_be_one_is_refused(
    folder: str, message: str, agent: MemoryAgent, workspace: Path
) -> None:
    async with front(agent) as client:
        with pytest.raises(RefusedError, match=message) as refused:
            await new(client, workspace, folder)
        assert refused.value.code == -32602


@pytest.mark.parametrize("version", [1, 2])
async def test_a_session_that_is_loaded_has_the_folders_of_that_request_alone(
    version: int, agent: MemoryAgent, workspace: Path, beside: Path
) -> None:
    state_trust(Path.home(), beside, TrustRule.FOLDER)
    async with front(agent, options=BOTH_VERSIONS, version=version) as client:
        session = await new(client, workspace, beside)
        await client.prompt(session, "with")
    method, more = ("session/load", {}) if version == 1 else ("session/resume", FROM_START)
    async with front(agent, options=BOTH_VERSIONS, version=version) as client:
        await client.call(method, sessionId=session, cwd=str(workspace), mcpServers=[], **more)
        await client.prompt(session, "without")
        more = {**more, "additionalDirectories": [str(beside)]}
        await client.call(method, sessionId=session, cwd=str(workspace), mcpServers=[], **more)
        await client.prompt(session, "with")
    assert stated(agent) == [[str(beside)], [], [str(beside)]]


@pytest.mark.parametrize("version", [1, 2])
async def test_the_list_of_sessions_has_the_folders_of_the_last_prompt(
    version: int, workspace: Path, beside: Path
) -> None:
    async with (
        engine_on(workspace, EchoAgent()) as engine,
        front(engine, answer=ALLOW, place=LocalPlace({}, engine), options=BOTH_VERSIONS, version=version) as client,
    ):
        session, other = await new(client, workspace, beside), await new(client, workspace)
        for each in (session, other):
            await client.prompt(each, "hello")

        async def listed() -> dict[str, Any]:
            found = (await client.call("session/list", cwd=str(workspace)))["sessions"]
            return {item["sessionId"]: item.get("additionalDirectories") for item in found}

        assert await listed() == {session: [str(beside)], other: None}
        await client.load(session, workspace)
        await client.prompt(session, "and without")
        assert await listed() == {session: None, other: None}
