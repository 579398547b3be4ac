"""Whether the inbox of a task takes what others send to it: after answers, repeated messages, and up to its limit."""

from collections.abc import Sequence

import pytest

from isthmus.client import LimitReached
from isthmus.development_tool import ToolCallConfirmation
from isthmus.events import AgentEvent, ConfirmationAccepted, Prompt, StateChange, TaskState
from isthmus.journal.port.base import INBOX_CHARACTERS, INBOX_MESSAGES, RepeatedMessage, StaleLease
from isthmus.journal.port.task_rows import TaskRow
from isthmus.journal.sql.posting import PostFacts, check_post
from isthmus.journal.sql.rows import encode_events

ROW = TaskRow("t1", "c1", "", "", TaskState.WORKING, 1, "owner-a", 1, 60.0, 0.0, 0.0)
MESSAGE = Prompt("m2", "And this")
CANCELLATION = StateChange(TaskState.CANCELED)
FULL = PostFacts(count=INBOX_MESSAGES, size=INBOX_CHARACTERS)


def answer(call: str = "call-1", option: str = "proceed_once") -> ConfirmationAccepted:
    return ConfirmationAccepted(ToolCallConfirmation(call, option), "the terminal")


def post(events: Sequence[AgentEvent], facts: PostFacts | None) -> None:
    check_post(ROW, events, encode_events(events), facts)


@pytest.mark.parametrize("event", [MESSAGE, answer(), CANCELLATION], ids=["message", "answer", "cancellation"])
def test_a_task_that_works_takes_what_is_sent_and_one_that_has_moved_on_does_not(event: AgentEvent) -> None:
    post([event], PostFacts())
    with pytest.raises(StaleLease, match="not running or has a new owner"):
        post([event], None)


def test_a_call_is_answered_once_whatever_the_second_answer_says() -> None:
    facts = PostFacts(answers=[answer("call-0"), answer("call-1", "cancel")])
    with pytest.raises(StaleLease, match="has been answered in the meantime"):
        post([answer("call-1")], facts)
    post([answer("call-2")], facts)


def test_one_answer_of_several_that_was_given_refuses_all() -> None:
    with pytest.raises(StaleLease, match="answered in the meantime"):
        post([answer("call-2"), answer("call-1")], PostFacts(answers=[answer("call-1")]))


def test_only_answers_answer_a_call() -> None:
    post([answer("call-1")], PostFacts(answers=[MESSAGE, CANCELLATION]))


def test_a_message_that_has_arrived_is_not_taken_again() -> None:
    with pytest.raises(RepeatedMessage) as repeated:
        post([MESSAGE], PostFacts(messages=[MESSAGE]))
    assert repeated.value.task_id == "t1"


def test_one_message_of_several_that_has_arrived_refuses_all() -> None:
    with pytest.raises(RepeatedMessage):
        post([Prompt("m3", "And that"), MESSAGE], PostFacts(messages=[MESSAGE]))


def test_the_same_id_with_other_content_is_another_message() -> None:
    post([Prompt("m2", "And something else")], PostFacts(messages=[MESSAGE]))


def test_a_full_inbox_takes_no_more_messages() -> None:
    with pytest.raises(LimitReached, match="Send this one again later"):
        post([MESSAGE], FULL)
    with pytest.raises(LimitReached):
        post([answer(), MESSAGE], FULL)  # all or none


def test_a_full_inbox_takes_answers_and_cancellations() -> None:
    post([answer()], FULL)
    post([CANCELLATION], FULL)


@pytest.mark.parametrize("messages", [1, 3])
def test_an_inbox_takes_messages_up_to_the_very_limit(messages: int) -> None:
    events = [MESSAGE] * messages
    size = sum(map(len, encode_events(events)))
    post(events, PostFacts(count=INBOX_MESSAGES - messages))
    post(events, PostFacts(size=INBOX_CHARACTERS - size))
    for facts in (PostFacts(count=INBOX_MESSAGES - messages + 1), PostFacts(size=INBOX_CHARACTERS - size + 1)):
        with pytest.raises(LimitReached):
            post(events, facts)
