from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isthmus.client import Delivery, TaskSnapshot
from isthmus.development_tool import (
    AgentThought,
    ConfirmationOption,
    ConfirmationRequest,
    GenericDetails,
    ToolCall,
    ToolCallConfirmation,
    ToolCallStatus,
    ToolOutput,
)
from isthmus.events import (
    AgentEvent,
    AgentMessage,
    ArtifactPart,
    ArtifactUpdate,
    Command,
    ConfirmationAccepted,
    Prompt,
    RetryNotice,
    StateChange,
    TaskState,
    TextContent,
    Thought,
    ToolCallUpdate,
)
from isthmus.internal_events import Checkpoint, Compacted, ModelReply, Restored, ToolResultRecorded
from isthmus.task_view import TaskView
from isthmus.terminal.headless.statistics import session_metrics, stream_stats

REQUEST = ConfirmationRequest((ConfirmationOption("proceed_once", "Allow"),), generic_details=GenericDetails("do it"))
IDS = st.sampled_from(["a", "b"])


def call(
    call_id: str, status: ToolCallStatus, *, asks: bool = False, live: str | None = None, name: str = "tool"
) -> ToolCallUpdate:
    request = REQUEST if asks else None
    return ToolCallUpdate(ToolCall(call_id, status, name, {}, live_content=live, confirmation_request=request))


EVENTS: st.SearchStrategy[AgentEvent] = st.one_of(
    st.builds(Prompt, IDS, st.text()),
    st.builds(StateChange, st.sampled_from(TaskState)),
    st.builds(call, IDS, st.sampled_from(ToolCallStatus), asks=st.booleans(), live=st.none() | st.text()),
    st.builds(TextContent, IDS, st.text(), st.none() | IDS),
    st.builds(Thought, st.builds(AgentThought, st.text(), st.text())),
    st.builds(
        ConfirmationAccepted, st.builds(ToolCallConfirmation, IDS, st.just("proceed_once")), st.sampled_from(["x", "y"])
    ),
    st.builds(RetryNotice, st.just(1), st.just(2), st.just(0.5), st.text()),
    st.builds(ModelReply, IDS, IDS, st.just({}), st.integers(0, 9), st.integers(0, 9)),
    st.builds(ToolResultRecorded, IDS, st.text()),
    st.builds(Command, IDS, st.just(("memory", "add")), st.text()),
    st.builds(AgentMessage, IDS, st.text(), st.booleans()),
    st.builds(ArtifactUpdate, IDS, st.tuples(st.builds(ArtifactPart, text=st.text())), append=st.booleans()),
    st.builds(Compacted, st.text(), st.just(2), st.just(100), st.just(10)),
    st.builds(Checkpoint, IDS, IDS),
    st.builds(Restored, IDS),
)


def is_kept(event: AgentEvent) -> bool:
    return not (isinstance(event, ToolCallUpdate) and event.is_ephemeral)


def numbered(events: Sequence[AgentEvent]) -> list[Delivery]:
    deliveries: list[Delivery] = []
    seq = 0
    for index, event in enumerate(events):
        if is_kept(event):
            seq += 1
        deliveries.append(Delivery(seq if is_kept(event) else None, 100.0 + index, event))
    return deliveries


def fold(deliveries: Sequence[Delivery], view: TaskView | None = None) -> TaskView:
    view = view or TaskView()
    for delivery in deliveries:
        view.apply(delivery)
    return view


@given(st.lists(EVENTS, max_size=30), st.integers(0, 30), st.integers(0, 30))
def test_a_replay_that_overlaps_what_was_seen_changes_nothing(events: list[AgentEvent], cut: int, back: int) -> None:
    deliveries = numbered(events)
    half = fold(deliveries[:cut])
    assert fold(deliveries[max(0, cut - back) :], half) == fold(deliveries)


@given(st.lists(EVENTS, max_size=30))
def test_progress_that_is_not_kept_does_not_matter(events: list[AgentEvent]) -> None:
    deliveries = numbered(events)
    kept = [delivery for delivery in deliveries if is_kept(delivery.event)]
    assert fold(deliveries) == fold(kept)


@given(st.lists(EVENTS, max_size=30))
def test_questions_are_the_pending_calls_that_nobody_answered(events: list[AgentEvent]) -> None:
    view = fold(numbered(events))
    for question in view.questions:
        assert question.call.status is ToolCallStatus.PENDING
        assert question.confirmation is None
    if view.state.is_terminal:
        assert view.questions == ()
        assert view.live == {}


def test_apply_tells_whether_an_event_was_new() -> None:
    view = TaskView()
    first = Delivery(1, 0.0, TextContent("t", "a"))
    assert view.apply(first)
    assert not view.apply(first)
    assert view.final_text == "a"


def test_the_final_text_is_the_last_one_that_says_anything() -> None:
    events = [
        TextContent("a", "on the way"),
        TextContent("b", "the "),
        TextContent("b", "answer"),
        TextContent("c", " "),
    ]
    assert fold(numbered(events)).final_text == "the answer"


def artifact(text: str, *, append: bool = False) -> ArtifactUpdate:
    return ArtifactUpdate("greeting", (ArtifactPart(text=text),), append=append)


def test_artifacts_are_the_answer_with_what_is_said_after_them() -> None:
    events = [TextContent("a", "Let me see."), artifact("Hello "), artifact("Ada", append=True)]
    assert fold(numbered(events)).final_text == "Hello Ada"
    assert fold(numbered([*events, TextContent("b", "That is all.")])).final_text == "Hello Ada\n\nThat is all."
    assert fold(numbered([*events, artifact("Bye")])).final_text == "Bye"


@pytest.mark.parametrize("again", ["b", "c"])
def test_a_text_that_another_one_replaces_is_gone(again: str) -> None:
    torn = [TextContent("a", "Let me see."), TextContent("b", "It is f"), artifact("report")]
    view = fold(numbered([*torn, TextContent(again, "It is ", "b"), TextContent(again, "fine.")]))
    assert [(text.message_id, text.text) for text in view.messages.values()] == [
        ("a", "Let me see."),
        (again, "It is fine."),
    ]
    assert view.final_text == "report\n\nIt is fine."
    assert fold(numbered([AgentMessage("a", "Whole.", replaces="no such text")])).final_text == "Whole."


@given(st.lists(st.tuples(st.text(), st.booleans()), max_size=20))
def test_an_artifact_is_what_was_added_since_it_was_last_begun(pieces: list[tuple[str, bool]]) -> None:
    expected = ""
    for text, append in pieces:
        expected = expected + text if append else text
    view = fold(numbered([artifact(text, append=append) for text, append in pieces]))
    assert "".join(item.text for item in view.artifacts.values()) == expected


@given(st.lists(st.tuples(IDS, st.text()), max_size=20))
def test_the_texts_of_a_message_stand_in_the_order_in_which_they_came(pieces: list[tuple[str, str]]) -> None:
    view = fold(numbered([TextContent(message_id, text) for message_id, text in pieces]))
    for message_id, message in view.messages.items():
        assert message.text == "".join(text for name, text in pieces if name == message_id)


def test_a_view_says_what_command_ran_and_that_something_may_be_missing() -> None:
    command = Command("m", ("restore",), "cp-1")
    view = fold(numbered([command, Checkpoint("cp-1", "a"), Restored("cp-1"), Compacted("s", 1, 9, 2)]))
    assert (view.command, view.has_missed) == (command, False)
    assert (view.checkpoints, view.compactions) == ([Checkpoint("cp-1", "a")], [Compacted("s", 1, 9, 2)])
    assert fold(numbered([StateChange(TaskState.WORKING, reason="missed-events")])).has_missed


def test_a_view_of_a_snapshot_knows_the_open_questions() -> None:
    pending = call("a", ToolCallStatus.PENDING, asks=True).tool_call
    snapshot = TaskSnapshot("t", "c", TaskState.INPUT_REQUIRED, 7, "/w", 0, 0, pending=(pending,))
    view = TaskView.of_snapshot(snapshot)
    assert [question.call for question in view.questions] == [pending]
    assert not view.apply(Delivery(7, 0, StateChange(TaskState.WORKING)))
    assert view.apply(Delivery(8, 0, ConfirmationAccepted(ToolCallConfirmation("a", "proceed_once"), "editor")))
    assert view.questions == ()
    assert view.calls["a"].answered_by == "editor"


def test_statistics_have_gemini_clis_shape_and_figures() -> None:
    asked = call("a", ToolCallStatus.PENDING, asks=True, name="replace")
    done = replace(asked.tool_call, status=ToolCallStatus.SUCCEEDED, confirmation_request=None)
    done = replace(done, output=ToolOutput(text="ok"))
    events: list[tuple[float, AgentEvent]] = [
        (0.0, StateChange(TaskState.WORKING)),
        (0.5, RetryNotice(2, 5, 0.5, "busy")),
        (2.5, ModelReply("m", "gemini-x", {}, 100, 50, 20, 10)),
        (2.5, asked),
        (4.0, ConfirmationAccepted(ToolCallConfirmation("a", "proceed_once"), "terminal")),
        (4.0, ToolCallUpdate(replace(asked.tool_call, status=ToolCallStatus.EXECUTING, confirmation_request=None))),
        (4.25, ToolCallUpdate(done)),
        (4.25, call("b", ToolCallStatus.EXECUTING, name="read_file")),
        (4.4, call("b?1", ToolCallStatus.CANCELLED, name="elicitation")),  # a server's question is not a tool
        (4.5, call("b", ToolCallStatus.FAILED, name="read_file")),
        (5.0, ModelReply("n", "gemini-x", {}, 10, 5)),
    ]
    view = fold([Delivery(seq, at, event) for seq, (at, event) in enumerate(events, 1)])
    stats = session_metrics(view)
    model = stats["models"]["gemini-x"]
    assert model["api"] == {"totalRequests": 3, "totalErrors": 1, "totalLatencyMs": 2500}
    assert model["tokens"] == {
        "input": 90,
        "prompt": 110,
        "candidates": 45,
        "total": 165,
        "cached": 20,
        "thoughts": 10,
        "tool": 0,
    }
    assert stats["tools"]["totalCalls"] == 2
    assert stats["tools"]["totalSuccess"] == 1
    assert stats["tools"]["totalFail"] == 1
    assert stats["tools"]["totalDurationMs"] == 500
    assert stats["tools"]["byName"]["replace"]["decisions"] == {"accept": 1, "reject": 0, "modify": 0, "auto_accept": 0}
    assert stats["tools"]["byName"]["read_file"]["decisions"]["auto_accept"] == 1
    assert stream_stats(view, 5.0) == {
        "total_tokens": 165,
        "input_tokens": 110,
        "output_tokens": 45,
        "cached": 20,
        "input": 90,
        "duration_ms": 5000,
        "tool_calls": 2,
        "total_cost_usd": None,
    }
