from hypothesis import given
from hypothesis import strategies as st

from isthmus.models.conversation import in_order
from isthmus.models.port.base import NOT_RUN, Message, ModelToolResult, Part, Text, ToolRequest, requests_of

ids = st.sampled_from(["a", "b", "c", "d"])
calls = st.lists(ids, unique=True, max_size=3).map(lambda chosen: [ToolRequest(name, "glob", {}) for name in chosen])
user_parts: st.SearchStrategy[Part] = st.builds(Text, st.sampled_from(["hi", "yo"])) | st.builds(
    ModelToolResult, ids, st.just("glob"), st.sampled_from(["one", "two"])
)
users = st.lists(user_parts, max_size=4).map(lambda parts: Message("user", tuple(parts)))
assistants = calls.map(lambda found: Message("assistant", (Text("ok"), *found)))
conversations = st.lists(users | assistants, max_size=6).map(tuple)


@given(conversations)
def test_every_call_is_followed_by_its_results_in_order_and_nothing_said_is_lost(
    messages: tuple[Message, ...],
) -> None:
    ordered = in_order(messages)
    for message, following in zip(ordered, (*ordered[1:], None), strict=False):
        assert message.parts
        requests = requests_of(message)
        if requests:
            assert following is not None
            assert following.role == "user"
            results = following.parts[: len(requests)]
            assert [part.id for part in results if isinstance(part, ModelToolResult)] == [call.id for call in requests]
            assert not any(isinstance(part, ModelToolResult) for part in following.parts[len(requests) :])
        elif message.role == "assistant":
            assert following is None or not any(isinstance(part, ModelToolResult) for part in following.parts)
    said = [part for message in messages for part in message.parts if isinstance(part, Text)]
    kept = [part for message in ordered for part in message.parts if part in (Text("hi"), Text("yo"), Text("ok"))]
    assert kept == said


@given(conversations)
def test_a_conversation_in_order_stays_as_it_is(messages: tuple[Message, ...]) -> None:
    assert in_order(in_order(messages)) == in_order(messages)


def test_a_call_without_a_result_gets_one_and_a_result_without_a_call_becomes_text() -> None:
    messages = (
        Message("user", (ModelToolResult("gone", "glob", "lost"),)),
        Message("assistant", (ToolRequest("a", "glob", {}),)),
        Message("user", (Text("stop"),)),
    )
    first, _, last = in_order(messages)
    assert first.parts == (Text("Result of an earlier call of glob:\nlost"),)
    assert last.parts == (ModelToolResult("a", "glob", NOT_RUN, is_error=True), Text("stop"))
