from isthmus.agent.calls.events import cancelled_calls
from isthmus.agent.session.session import Session
from isthmus.development_tool import ConfirmationOption, ConfirmationRequest, ExecuteDetails, ToolCall, ToolCallStatus
from isthmus.events import Prompt, ToolCallUpdate
from isthmus.internal_events import ToolResultRecorded
from isthmus.models.port.base import ToolRequest
from support.agents import reply

ASKED = ConfirmationRequest((ConfirmationOption("proceed_once", "Allow once"),), execute_details=ExecuteDetails("ls"))


def waiting_session() -> Session:
    """Return a session with two calls; the first waits, the second is not announced yet."""
    session = Session("c1")
    session.apply(Prompt("m1", "look"), "t1")
    session.apply(reply("m2", ToolRequest("one", "run", {}), ToolRequest("two", "run", {})))
    session.apply(ToolCallUpdate(ToolCall("one", ToolCallStatus.PENDING, "run", {}, confirmation_request=ASKED)))
    return session


def test_every_open_call_of_a_cancelled_task_gets_its_final_state_and_its_result() -> None:
    session = waiting_session()
    events = [session.apply(event) for event in cancelled_calls(session)]
    final = [event.tool_call for event in events if isinstance(event, ToolCallUpdate)]
    assert [(call.tool_call_id, call.status) for call in final] == [
        ("one", ToolCallStatus.CANCELLED),
        ("two", ToolCallStatus.CANCELLED),
    ]
    assert [event.tool_call_id for event in events if isinstance(event, ToolResultRecorded)] == ["one", "two"]
    assert cancelled_calls(session) == ()


def test_a_call_given_up_for_a_new_message_is_cancelled_also_with_its_task() -> None:
    session = waiting_session()
    session.apply(Prompt("m3", "never mind"))
    (event,) = [session.apply(event) for event in cancelled_calls(session)]
    assert isinstance(event, ToolCallUpdate)
    assert (event.tool_call.tool_call_id, event.tool_call.status) == ("one", ToolCallStatus.CANCELLED)
    assert event.tool_call.confirmation_request is None
    assert cancelled_calls(session) == ()
