from isthmus.agent.session.statistics import Statistics, ToolStatistics, total
from isthmus.development_tool import ToolCall, ToolCallConfirmation, ToolCallStatus
from isthmus.events import AgentEvent, ConfirmationAccepted, Prompt, StateChange, TaskState, ToolCallUpdate
from isthmus.internal_events import Compacted, ModelReply, ModelUsed
from isthmus.task_view import SUMMARIES, ModelUsage


def call(status: ToolCallStatus, name: str = "touch", call_id: str = "1") -> ToolCallUpdate:
    return ToolCallUpdate(ToolCall(call_id, status, name, {}))


def usage(requests: int, *tokens: int) -> ModelUsage:
    return ModelUsage(requests, 0, 0.0, *tokens, *[0] * (4 - len(tokens)), unpriced=requests)


def folded(*events: tuple[float, AgentEvent]) -> Statistics:
    statistics = Statistics()
    for at, event in events:
        statistics.take(event, "t", at)
    return statistics


def test_the_time_in_which_a_user_is_asked_does_not_count_as_work() -> None:
    use = folded(
        (100, Prompt("m", "go")),
        (101, StateChange(TaskState.WORKING)),
        (104, StateChange(TaskState.INPUT_REQUIRED)),
        (1000, ConfirmationAccepted(ToolCallConfirmation("1", "proceed_once"), "me")),
        (1002, StateChange(TaskState.COMPLETED)),
    ).tasks["t"]
    assert (use.prompts, use.seconds) == (1, 6.0)


def test_calls_are_counted_once_by_how_they_ended_with_the_time_they_ran() -> None:
    tools = folded(
        (1, call(ToolCallStatus.PENDING)),
        (50, call(ToolCallStatus.EXECUTING)),
        (51, call(ToolCallStatus.EXECUTING)),
        (53, call(ToolCallStatus.SUCCEEDED)),
        (54, call(ToolCallStatus.SUCCEEDED)),
        (55, call(ToolCallStatus.FAILED, call_id="2")),
        (56, call(ToolCallStatus.CANCELLED, "other", "3")),
    ).tasks["t"].tools  # fmt: skip
    assert tools == {"touch": ToolStatistics(1, 1, 0, 3.0), "other": ToolStatistics(0, 0, 1, 0.0)}


def test_what_a_server_asks_in_the_middle_of_a_call_is_no_tool() -> None:
    tools = folded(
        (1, call(ToolCallStatus.EXECUTING)),
        (2, call(ToolCallStatus.PENDING, "elicitation", "1?1")),
        (3, call(ToolCallStatus.CANCELLED, "elicitation", "1?1")),
        (4, call(ToolCallStatus.PENDING, "sampling", "1?2")),
        (5, call(ToolCallStatus.SUCCEEDED, "sampling", "1?2")),
        (6, call(ToolCallStatus.SUCCEEDED)),
    ).tasks["t"].tools  # fmt: skip
    assert tools == {"touch": ToolStatistics(1, 0, 0, 5.0)}


def test_the_time_in_which_a_call_that_asks_waits_does_not_count() -> None:
    use = folded(
        (1, Prompt("m", "go")),
        (2, call(ToolCallStatus.EXECUTING)),
        (5, call(ToolCallStatus.PENDING, "elicitation", "1?1")),
        (6, StateChange(TaskState.INPUT_REQUIRED)),
        (600, call(ToolCallStatus.CANCELLED, "elicitation", "1?1")),
        (602, call(ToolCallStatus.SUCCEEDED)),
        (603, StateChange(TaskState.COMPLETED)),
    ).tasks["t"]
    assert use.tools["touch"] == ToolStatistics(succeeded=1, seconds=6.0)
    assert use.seconds == 8.0


def test_tokens_are_counted_by_model_and_summaries_apart() -> None:
    statistics = folded(
        (1, ModelReply("a", "small", {}, 10, 5, 4, 1)),
        (2, ModelReply("b", "large", {}, 100, 50)),
        (3, ModelReply("c", "small", {}, 1, 1)),
        (4, Compacted("s", 1, 100, 10, 7, 3)),
    )
    statistics.take(ModelReply("d", "small", {}, 1000, 1000), "u", None)
    assert statistics.tasks["t"].models == {
        "small": usage(2, 11, 6, 4, 1), "large": usage(1, 100, 50), SUMMARIES: usage(1, 7, 3),
    }  # fmt: skip
    assert total(statistics.tasks.values()).models["small"] == usage(3, 1011, 1006, 4, 1)
    assert statistics.tasks["t"].models["small"].requests == 2


def test_what_a_model_answered_for_a_server_counts_as_its_use() -> None:
    use = folded((1, ModelReply("m", "big", {}, 10, 5)), (2, ModelUsed("big", 3, 2))).tasks["t"]
    assert use.models["big"] == usage(2, 13, 7)


def test_the_cached_share_is_that_of_the_conversation_alone() -> None:
    assert folded((1, ModelReply("m", "gemini", {}, 1_000, 10))).cached_share is None
    statistics = folded(
        (1, ModelReply("m", "gemini", {}, 1_000, 10)),
        (2, ModelReply("m", "gemini", {}, 2_000, 10, cached_tokens=1_500)),
        (3, ModelUsed("claude", 1_000, 10, cached_tokens=500)),
        (4, Compacted("so far", 1, 100, 50, 9_000, 90)),
    )
    assert statistics.cached_share == 0.5
