"""The agent that asks before it writes: what it does when it runs again, in the same process or another."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from agents.asking_agent import AskingAgent
from isthmus.agent.session import Session
from isthmus.development_tool import GenericDetails, ToolCall, ToolCallConfirmation, ToolCallStatus
from isthmus.events import AgentEvent, ConfirmationAccepted, Prompt, TextContent, ToolCallUpdate

pytestmark = pytest.mark.anyio


async def went_on(session: Session) -> Sequence[AgentEvent]:
    """Return the events of a further run, which the session has taken."""
    return [session.apply(event) async for event in AskingAgent().run(session)]


@pytest.fixture
async def asked(tmp_path: Path) -> Session:
    session = Session("c", workspace=str(tmp_path))
    session.apply(Prompt("m", "buy milk"), "t")
    (question,) = await went_on(session)
    assert isinstance(question, ToolCallUpdate)
    request = question.tool_call.confirmation_request
    assert request is not None
    assert request.details == GenericDetails("Write 'buy milk' into notes.txt")
    return session


def answer(session: Session, option: str) -> None:
    (call,) = session.calls.waiting
    session.apply(ConfirmationAccepted(ToolCallConfirmation(call.tool_call_id, option), answered_by="test"))


async def test_what_is_allowed_is_written_once_however_often_the_agent_runs(asked: Session, tmp_path: Path) -> None:
    answer(asked, "proceed_once")
    for _ in range(2):
        assert (await went_on(asked))[-1] == TextContent("", "Noted: buy milk")
    assert (tmp_path / "notes.txt").read_text("utf-8") == "buy milk\n"


async def test_what_is_refused_is_not_written(asked: Session, tmp_path: Path) -> None:
    answer(asked, "cancel")
    assert (await went_on(asked))[-1] == TextContent("", "Not noted.")
    assert not (tmp_path / "notes.txt").exists()


async def test_a_call_that_was_interrupted_is_not_run_again(asked: Session, tmp_path: Path) -> None:
    answer(asked, "proceed_once")
    (item,) = asked.calls.values()
    failed = ToolCall(item.request.id, ToolCallStatus.FAILED, "write_note", {})
    asked.apply(ToolCallUpdate(failed))
    first, _ = await went_on(asked)
    assert first == TextContent("", "I was interrupted; look into notes.txt. ")
    assert not (tmp_path / "notes.txt").exists()
