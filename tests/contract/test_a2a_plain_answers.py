"""A client without the extension gets each answer once, as a whole artifact: in every version, binding and agent."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from isthmus.a2a.options import ServerOptions
from isthmus.agent.session.session import Session
from isthmus.events import (
    AgentEvent,
    AgentMessage,
    ArtifactPart,
    ArtifactUpdate,
    StateChange,
    TaskState,
    TextContent,
)
from support.a2a_hosting import Everything, Hosted, hosted
from support.a2a_serving import prompt
from support.a2a_v1 import PLAIN, Client, said
from support.waiting import eventually_async

pytestmark = pytest.mark.anyio

CITY = "Which city?"
RED = "\x1b[31mred\x1b[0m\tor \x1b]0;title\x07not\x9b2J\a\nStraße"
"""Text that would control a terminal."""
PLAIN_RED = "red\tor not\ufffd\nStraße"


class Traveller:
    """An agent that works, asks in plain text, and answers in pieces; or answers with a file, or with nothing."""

    async def run(self, session: Session) -> AsyncGenerator[AgentEvent, None]:
        match session.prompt:
            case "file":
                yield ArtifactUpdate("map", (ArtifactPart(raw="aGFsbG8=", filename="map.png"),), "Map")
            case "nothing":
                return
            case "ask":
                yield TextContent("", "Which ")
                yield TextContent("", "city?")
                yield StateChange(TaskState.INPUT_REQUIRED)
            case "red":
                yield AgentMessage("", RED)
                yield TextContent("", RED)
            case "crash":
                yield StateChange(TaskState.FAILED, RED)
            case _:
                yield AgentMessage("", "I look it up.")
                yield TextContent("", "It is sunny in ")
                yield TextContent("", f"{session.prompt}.")


class Plain:
    """Requests of a client without the extension, in one version over one binding; results in one form."""

    def __init__(self, served: Hosted, kind: str) -> None:
        self._served = served
        self._is_v1 = kind.startswith("1.0")
        self._client = Client(served, kind.partition(" ")[2])

    async def send(self, text: str, **more: Any) -> dict[str, Any]:
        """Return the Task."""
        if self._is_v1:
            return (await self._client.call("SendMessage", said(text, **more), PLAIN))["task"]
        return await self._served.call("message/send", prompt(text, **more))

    async def begin(self, text: str) -> dict[str, Any]:
        """Return the Task at once: the client does not wait for the answer."""
        if self._is_v1:
            params = {**said(text), "configuration": {"returnImmediately": True}}
            return (await self._client.call("SendMessage", params, PLAIN))["task"]
        return await self._served.call("message/send", {**prompt(text), "configuration": {"blocking": False}})

    async def ended(self, task_id: str, state: str) -> dict[str, Any]:
        """Return the Task once its state has this name, whatever the version's spelling."""

        async def reached() -> dict[str, Any] | None:
            task = await self.get(task_id)
            name = task["status"]["state"].removeprefix("TASK_STATE_").replace("_", "-").lower()
            return task if name == state else None

        return await eventually_async(reached) or {}

    async def get(self, task_id: str) -> dict[str, Any]:
        """Return the Task by its id."""
        return await (
            self._client.call("GetTask", {"id": task_id}, PLAIN)
            if self._is_v1
            else self._served.call("tasks/get", {"id": task_id})
        )

    async def stream(self, text: str, **more: Any) -> tuple[dict[str, Any], Sequence[tuple[str, dict[str, Any]]]]:
        """Return the Task at the start, and the events after it with their names: ``artifact`` or ``status``."""
        if self._is_v1:
            items = [item for _, item in await self._client.stream("SendStreamingMessage", said(text, **more), PLAIN)]
            found = [(next(iter(item)), next(iter(item.values()))) for item in items]
        else:
            events = await self._served.stream("message/stream", prompt(text, **more), {})
            found = [(event.result["kind"], event.result) for event in events]
        tasks = [item for name, item in found if name == "task"]
        names = {"artifactUpdate": "artifact", "artifact-update": "artifact"}
        return (tasks or [{}])[0], [(names.get(name, "status"), item) for name, item in found if name != "task"]


@pytest.fixture(params=["0.3 JSONRPC", "1.0 JSONRPC", "1.0 HTTP+JSON"])
async def client(request: pytest.FixtureRequest, workspace: Path) -> AsyncGenerator[Plain]:
    async with hosted(Traveller(), workspace) as served:
        yield Plain(served, request.param)


def texts(holder: Mapping[str, Any]) -> list[list[str | None]]:
    """Return the texts of the parts of each artifact."""
    return [[part.get("text") for part in artifact["parts"]] for artifact in holder.get("artifacts", ())]


def said_by(task: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the messages of the history: who said it, and the text."""
    return [(message["role"].removeprefix("ROLE_").lower(), message["parts"][0]["text"]) for message in task["history"]]


def messages(events: Sequence[tuple[str, dict[str, Any]]]) -> list[Any]:
    """Return the messages in the states of a stream."""
    return [item["status"]["message"] for name, item in events if name == "status" and "message" in item["status"]]


async def test_the_answer_comes_once_and_whole_in_stream_and_task(client: Plain) -> None:
    task, events = await client.stream("Rome")
    assert [name for name, _ in events] == ["status", "artifact", "status"]
    update = events[1][1]
    assert (update.get("append"), update["lastChunk"]) == (False, True)
    assert [part["text"] for part in update["artifact"]["parts"]] == ["It is sunny in Rome."]
    assert messages(events) == []
    found = await client.get(task["id"])
    assert found["artifacts"] == [update["artifact"]]
    assert "message" not in found["status"]
    assert texts(await client.send("Oslo")) == [["It is sunny in Oslo."]]


async def test_no_text_for_a_client_without_the_extension_controls_its_terminal(client: Plain) -> None:
    task, events = await client.stream("red")
    assert texts({"artifacts": [item["artifact"] for name, item in events if name == "artifact"]}) == [[PLAIN_RED]]
    found = await client.get(task["id"])
    assert texts(found) == [[PLAIN_RED]]
    assert said_by(found) == [("user", "red"), ("agent", PLAIN_RED), ("agent", PLAIN_RED)]
    failed = await client.send("crash")
    assert failed["status"]["message"]["parts"][0]["text"] == PLAIN_RED


async def test_a_question_in_plain_text_is_in_the_status_and_its_answer_goes_on(client: Plain) -> None:
    task, events = await client.stream("ask")
    assert [part["text"] for part in messages(events)[-1]["parts"]] == [CITY]
    assert [name for name, _ in events] == ["status", "status"]
    waiting = await client.get(task["id"])
    assert [part["text"] for part in waiting["status"]["message"]["parts"]] == [CITY]
    assert "artifacts" not in waiting
    assert texts(await client.send("Rome", taskId=task["id"])) == [["It is sunny in Rome."]]


async def test_an_answer_after_a_question_is_streamed_once(client: Plain) -> None:
    waiting = await client.send("ask")
    assert [part["text"] for part in waiting["status"]["message"]["parts"]] == [CITY]
    _, events = await client.stream("Rome", taskId=waiting["id"])
    assert [item["artifact"]["parts"][0]["text"] for name, item in events if name == "artifact"] == [
        "It is sunny in Rome."
    ]


async def test_an_agents_own_artifact_and_silence_are_no_answer(client: Plain) -> None:
    _, events = await client.stream("file")
    assert [item["artifact"]["artifactId"] for name, item in events if name == "artifact"] == ["map"]
    assert [artifact["artifactId"] for artifact in (await client.send("file"))["artifacts"]] == ["map"]
    assert "artifacts" not in await client.send("nothing")


async def test_the_history_of_a_client_that_polls_does_not_repeat_the_answer(client: Plain) -> None:
    begun = await client.begin("ask")
    asked = await client.ended(begun["id"], "input-required")
    assert [part["text"] for part in asked["status"]["message"]["parts"]] == [CITY]
    await client.send("Rome", taskId=begun["id"])
    done = await client.ended(begun["id"], "completed")
    assert texts(done) == [["It is sunny in Rome."]]
    assert said_by(done) == [("user", "ask"), ("user", "Rome")]


async def test_the_history_of_a_client_that_waits_has_all_messages(client: Plain) -> None:
    sent = await client.send("Rome")
    said = [("user", "Rome"), ("agent", "I look it up."), ("agent", "It is sunny in Rome.")]
    assert said_by(sent) == said
    assert said_by(await client.get(sent["id"])) == said


async def test_a_task_that_is_polled_stays_so_at_another_server(workspace: Path) -> None:
    async with hosted(Traveller(), workspace) as first:
        begun = await Plain(first, "0.3 JSONRPC").begin("Rome")
        await Plain(first, "0.3 JSONRPC").ended(begun["id"], "completed")
    async with hosted(Traveller(), workspace) as other:
        assert said_by(await Plain(other, "1.0 HTTP+JSON").get(begun["id"])) == [("user", "Rome")]


async def test_a_permission_is_asked_in_words_and_the_answer_follows_it(workspace: Path) -> None:
    async with hosted(Everything(), workspace) as served:
        for kind in ("0.3 JSONRPC", "1.0 HTTP+JSON"):
            client = Plain(served, kind)
            waiting = await client.send("you")
            assert "Press the button" in waiting["status"]["message"]["parts"][0]["text"]
            done = await client.send("proceed_once", taskId=waiting["id"])
            assert texts(done) == [["all is well"], ["Pressed."]]


async def test_a_hosted_agents_texts_are_sent_where_its_author_wants_it(workspace: Path) -> None:
    async with hosted(Traveller(), workspace, server=ServerOptions("", progress_text=True)) as served:
        _, events = await Plain(served, "0.3 JSONRPC").stream("Rome")
    first, *rest = [message["parts"][0]["text"] for message in messages(events)]
    assert (first, "".join(rest)) == ("I look it up.", "It is sunny in Rome.")
    assert [item["artifact"]["parts"][0]["text"] for name, item in events if name == "artifact"] == [
        "It is sunny in Rome."
    ]
