"""The documented examples as real servers: features that an author gets without writing them."""

import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from isthmus.a2a import RemoteAgent
from isthmus.client import Delivery, PromptMessage
from isthmus.development_tool import ToolCallConfirmation, ToolCallStatus
from isthmus.events import StateChange, TaskState, TextContent, ToolCallUpdate
from support.example_program import ExampleProgram, example_program
from support.isolation import isolate
from support.openai_wire import OpenAIWire
from support.plain_http import plain_client
from support.scripted_wire import Call, Reply, Say
from support.turns import all_of

pytestmark = pytest.mark.anyio


def first(text: str, workspace: Path) -> PromptMessage:
    return PromptMessage(text, settings={"workspace_path": str(workspace)})


def text_of(deliveries: list[Delivery]) -> str:
    return "".join(item.event.text for item in deliveries if isinstance(item.event, TextContent))


def statuses(deliveries: list[Delivery]) -> list[ToolCallStatus]:
    return [item.event.tool_call.status for item in deliveries if isinstance(item.event, ToolCallUpdate)]


def openai(wire: OpenAIWire) -> Mapping[str, str]:
    return {"OPENAI_API_KEY": "test-key", "OPENAI_BASE_URL": wire.base_url, "MODEL": "openai-chat:test"}


async def rpc(program: ExampleProgram, method: str, params: Mapping[str, Any], **headers: str) -> Any:
    async with plain_client(headers={"Authorization": f"Bearer {program.token}", **headers}) as http:
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        return (await http.post(program.url, json=body)).json()


async def test_the_echo_agent_streams_and_its_task_holds_the_answer(tmp_path: Path, workspace: Path) -> None:
    async with example_program("echo_agent", tmp_path, workspace) as program, program.client() as agent:
        turn = await agent.prompt(first("say it again", workspace))
        seen = await all_of(turn)
        assert text_of(seen) == "say it again "
        assert len([item for item in seen if isinstance(item.event, TextContent)]) == 3
        history = (await agent.get(turn.task_id)).history
    assert [(message.role, message.text.strip()) for message in history] == [
        ("user", "say it again"),
        ("agent", "say it again"),
    ]


async def test_a_plain_client_of_either_version_gets_the_echo(tmp_path: Path, workspace: Path) -> None:
    async with example_program("echo_agent", tmp_path, workspace) as program:
        old = {"kind": "message", "role": "user", "messageId": "m", "parts": [{"kind": "text", "text": "old"}]}
        answer = await rpc(program, "message/send", {"message": old})
        assert [artifact["parts"] for artifact in answer["result"]["artifacts"]] == [[{"kind": "text", "text": "old "}]]
        new = {"role": "ROLE_USER", "messageId": "m", "parts": [{"text": "new"}]}
        answer = await rpc(program, "SendMessage", {"message": new}, **{"A2A-Version": "1.0"})
        assert answer["result"]["task"]["status"]["state"] == "TASK_STATE_COMPLETED"
        assert [artifact["parts"] for artifact in answer["result"]["task"]["artifacts"]] == [[{"text": "new "}]]


async def test_the_echo_is_finished_after_kill_9_and_nothing_of_it_is_lost(tmp_path: Path, workspace: Path) -> None:
    words = " ".join(f"word{number}" for number in range(40))
    async with example_program("echo_agent", tmp_path, workspace) as program:
        live: list[Delivery] = []
        async with program.client() as agent:
            turn = await agent.prompt(first(words, workspace))
            async for delivery in turn.deliveries:
                live.append(delivery)
                if isinstance(delivery.event, TextContent) and len(live) > 4:
                    break
            await program.kill()
    async with example_program("echo_agent", tmp_path, workspace) as program, program.client() as agent:
        rest = await all_of(await agent.follow(turn.task_id, live[-1].seq))
    numbers = [item.seq for item in (*live, *rest) if item.seq is not None]
    assert numbers == sorted(set(numbers))
    assert rest[-1].event == StateChange(TaskState.COMPLETED)
    # The agent started again, with another message id: the text is whole in the second one.
    assert text_of([item for item in rest if isinstance(item.event, TextContent)][-40:]).strip().endswith("word39")


async def asked(agent: RemoteAgent, text: str, workspace: Path) -> tuple[str, str]:
    """Prompt until a question waits; return the ids of the task and of the call."""
    turn = await agent.prompt(first(text, workspace))
    seen = await all_of(turn)
    assert seen[-1].event == StateChange(TaskState.INPUT_REQUIRED)
    (call,) = (await agent.get(turn.task_id)).pending
    assert call.confirmation_request is not None
    assert call.confirmation_request.generic_details is not None
    assert "buy milk" in call.confirmation_request.generic_details.description
    return turn.task_id, call.tool_call_id


@dataclass(frozen=True, slots=True)
class Notes:
    """The pydantic-ai agent, with a model whose replies a test sets."""

    agent: RemoteAgent
    wire: OpenAIWire

    def conversation(self) -> str:
        """Return the model's last request."""
        return json.dumps(self.wire.model_requests[-1].json["messages"])


@pytest.fixture(scope="module")
async def notes(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Notes]:
    folder = tmp_path_factory.mktemp("notes")
    async with AsyncExitStack() as stack:
        stack.enter_context(isolate(stack.enter_context(pytest.MonkeyPatch.context())))
        wire = stack.enter_context(OpenAIWire())
        running = example_program("pydantic_ai_agent", folder, folder, openai(wire))
        program = await stack.enter_async_context(running)
        yield Notes(await stack.enter_async_context(program.client()), wire)


async def test_the_pydantic_ai_agent_saves_the_note_that_is_allowed_once(notes: Notes, workspace: Path) -> None:
    notes.wire.add(
        Reply.of(Call("save_note", {"text": "buy milk"}, id="call_1")),
        Reply.of(Say("Noted", ".")),
        Reply.of(Say("You want to buy milk.")),
    )
    task_id, call_id = await asked(notes.agent, "remember to buy milk", workspace)
    assert not (workspace / "notes.txt").exists()
    answer = [ToolCallConfirmation(call_id, "proceed_once")]
    seen = await all_of(await notes.agent.answer(task_id, answer, answered_by="test"))
    assert statuses(seen) == [ToolCallStatus.EXECUTING, ToolCallStatus.SUCCEEDED]
    assert text_of(seen) == "Noted."
    assert (workspace / "notes.txt").read_text(encoding="utf-8") == "buy milk\n"
    seen = await all_of(await notes.agent.prompt(PromptMessage("what do I want?", task_id=task_id)))
    assert text_of(seen) == "You want to buy milk."
    assert "saved" in notes.conversation()
    assert "what do I want?" in notes.conversation()


async def test_the_pydantic_ai_agent_is_told_of_a_rejection(notes: Notes, workspace: Path) -> None:
    call = Call("save_note", {"text": "buy milk"}, id="call_1")
    notes.wire.add(Reply.of(call), Reply.of(Say("As you like.")))
    task_id, call_id = await asked(notes.agent, "remember to buy milk", workspace)
    answer = [ToolCallConfirmation(call_id, "cancel")]
    seen = await all_of(await notes.agent.answer(task_id, answer, answered_by="test"))
    assert statuses(seen) == [ToolCallStatus.CANCELLED]
    assert text_of(seen) == "As you like."
    assert "The user rejected it." in notes.conversation()
    assert not (workspace / "notes.txt").exists()


async def test_a_message_instead_of_an_answer_reaches_the_pydantic_ai_agent(notes: Notes, workspace: Path) -> None:
    call = Call("save_note", {"text": "buy milk"}, id="call_1")
    notes.wire.add(Reply.of(call), Reply.of(Say("Oat milk, then.")))
    task_id, _ = await asked(notes.agent, "remember to buy milk", workspace)
    seen = await all_of(await notes.agent.prompt(PromptMessage("no, oat milk", task_id=task_id)))
    assert text_of(seen) == "Oat milk, then."
    assert (await notes.agent.get(task_id)).state is TaskState.COMPLETED
    assert "no, oat milk" in notes.conversation()
    assert not (workspace / "notes.txt").exists()


async def test_the_pydantic_ai_agent_does_not_ask_a_question_of_an_earlier_task_again(
    notes: Notes, workspace: Path
) -> None:
    notes.wire.add(Reply.of(Call("save_note", {"text": "buy milk"}, id="call_1")), Reply.of(Say("It is sunny.")))
    task_id, _ = await asked(notes.agent, "remember to buy milk", workspace)
    context_id = (await notes.agent.get(task_id)).context_id
    later = replace(first("how is the weather?", workspace), context_id=context_id)
    turn = await notes.agent.prompt(later)
    seen = await all_of(turn)
    assert turn.task_id != task_id
    assert statuses(seen) == []
    assert text_of(seen) == "It is sunny."
    assert seen[-1].event == StateChange(TaskState.COMPLETED)
    assert "how is the weather?" in notes.conversation()
    assert "It did not run to its end." in notes.conversation()
    assert not (workspace / "notes.txt").exists()
