import itertools
import json
from collections.abc import Sequence
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from isthmus.agent.session.session import CANCELLED_UNHEARD, Session
from isthmus.development_tool import (
    ConfirmationOption,
    ConfirmationRequest,
    ErrorDetails,
    ExecuteDetails,
    ToolCall,
    ToolCallConfirmation,
    ToolCallStatus,
)
from isthmus.events import (
    AgentEvent,
    ConfirmationAccepted,
    Prompt,
    StateChange,
    TaskState,
    TextContent,
    ToolCallUpdate,
    event_from_json,
    event_to_json,
)
from isthmus.internal_events import ContextNote, ModelReply, ToolResultRecorded
from isthmus.models.port.base import Message, ModelToolResult, Text, ToolRequest, requests_of
from isthmus.models.port.message import message_to_json

IDS = st.sampled_from(["one", "two", "three"])
QUESTION = ConfirmationRequest((ConfirmationOption("proceed_once", "Yes"),), execute_details=ExecuteDetails("ls"))


def reply(ids: Sequence[str]) -> ModelReply:
    parts = (Text("I will"), *(ToolRequest(call_id, "touch", {}) for call_id in ids))
    return ModelReply("m", "test", message_to_json(Message("assistant", parts)), input_tokens=2, output_tokens=1)


def update(call_id: str, status: ToolCallStatus) -> ToolCallUpdate:
    call = ToolCall(call_id, status, "touch", {})
    match status:
        case ToolCallStatus.PENDING:
            call = replace(call, confirmation_request=QUESTION)
        case ToolCallStatus.FAILED | ToolCallStatus.CANCELLED:
            call = replace(call, error=ErrorDetails("no"))
        case _:
            pass
    return ToolCallUpdate(call)


EVENTS: st.SearchStrategy[AgentEvent] = st.one_of(
    st.builds(Prompt, st.just("p"), st.sampled_from(["do it", "and then"])),
    st.builds(ContextNote, st.just("editor"), st.just("the editor shows a.txt")),
    st.builds(reply, st.lists(IDS, unique=True, max_size=3)),
    st.builds(update, IDS, st.sampled_from([status for status in ToolCallStatus if status.value])),
    st.builds(ToolResultRecorded, IDS, st.just("done"), st.booleans()),
    st.builds(ConfirmationAccepted, st.builds(ToolCallConfirmation, IDS, st.just("proceed_once")), st.just("test")),
    st.builds(StateChange, st.sampled_from(TaskState)),
    st.builds(TextContent, st.just("m"), st.just("text")),
)


def folded(events: Sequence[AgentEvent]) -> Session:
    session = Session("c")
    for event in events:
        session.apply(event, "t")
    return session


@given(st.lists(EVENTS, max_size=40), st.integers(0, 40))
def test_a_session_that_is_taken_up_again_is_the_one_that_went_on(events: list[AgentEvent], at: int) -> None:
    kept = [event_from_json(json.loads(json.dumps(event_to_json(event)))) for event in events[:at]]
    session = folded(kept)
    for event in events[at:]:
        session.apply(event, "t")
    assert session == folded(events)


@given(st.lists(EVENTS, max_size=40))
def test_what_waits_is_asked_and_has_no_result(events: list[AgentEvent]) -> None:
    session = folded(events)
    unsettled = {item.request.id for item in session.calls.unsettled}
    for call in session.calls.waiting:
        assert call.tool_call_id in unsettled
        assert call.status is ToolCallStatus.PENDING
        assert call.confirmation_request is not None


@given(st.lists(EVENTS, max_size=40))
def test_the_model_gets_the_results_of_a_message_together_and_in_its_order(events: list[AgentEvent]) -> None:
    messages = folded(events).messages
    for message, following in itertools.pairwise(messages):
        wanted = [request.id for request in requests_of(message)]
        given_results = [part.id for part in following.parts if isinstance(part, ModelToolResult)]
        if wanted and given_results:
            assert given_results == wanted


@given(st.lists(EVENTS, max_size=40))
def test_two_messages_of_the_user_never_follow_each_other(events: list[AgentEvent]) -> None:
    roles = [message.role for message in folded(events).messages]
    assert all(pair != ("user", "user") for pair in itertools.pairwise(roles))


def test_model_turns_count_from_the_last_prompt() -> None:
    session = folded([Prompt("p", "one"), reply([]), reply([]), Prompt("p", "two"), reply([])])
    assert session.model_turns == 1


def texts_of(session: Session) -> list[list[str]]:
    return [[part.text for part in message.parts if isinstance(part, Text)] for message in session.messages]


def test_a_prompt_that_was_cancelled_before_the_model_spoke_is_marked_so_for_it() -> None:
    session = Session("c")
    for task, events in {
        "first": [Prompt("a", "Delete it all"), StateChange(TaskState.WORKING), StateChange(TaskState.CANCELED)],
        "second": [Prompt("b", "Say hello"), StateChange(TaskState.WORKING), reply([])],
        "third": [Prompt("c", "And now"), reply(["one"]), StateChange(TaskState.CANCELED)],
        "fourth": [Prompt("d", "Go on")],
    }.items():
        for event in events:
            session.apply(event, task)
    assert texts_of(session)[0] == ["Delete it all", CANCELLED_UNHEARD, "Say hello"]
    assert CANCELLED_UNHEARD not in [text for texts in texts_of(session)[1:] for text in texts]
    assert [prompt.text for prompt in session.new_prompts] == ["Go on"]


def test_steering_that_was_cancelled_unheard_is_marked_too() -> None:
    session = Session("c")
    for event in (Prompt("a", "Do it"), reply([]), Prompt("b", "Also this"), StateChange(TaskState.CANCELED)):
        session.apply(event, "t")
    assert texts_of(session)[-1] == ["Also this", CANCELLED_UNHEARD]
