import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isthmus.errors import DecodeError
from isthmus.media import Media
from isthmus.models.port.base import (
    Message,
    ModelThought,
    ModelToolResult,
    Opaque,
    Part,
    ProviderState,
    Text,
    ToolRequest,
)
from isthmus.models.port.message import message_from_json, message_to_json

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
objects = st.dictionaries(st.text(), json_values, max_size=4)
states = st.none() | st.builds(ProviderState, st.text(), objects)
media = st.builds(Media, st.text(), st.sampled_from([Path("/a"), Path("/b c/ü.png")]))
parts: st.SearchStrategy[Part] = st.one_of(
    st.builds(Text, st.text(), states),
    st.builds(ModelThought, st.text(), states),
    st.builds(ToolRequest, st.text(), st.text(), objects, states, st.none() | st.text()),
    st.builds(ModelToolResult, st.text(), st.text(), st.text(), st.booleans(), st.lists(media, max_size=2).map(tuple)),
    media,
    st.builds(Opaque, st.text(), objects),
)
messages = st.builds(Message, st.sampled_from(["user", "assistant"]), st.lists(parts, max_size=5).map(tuple))


@pytest.mark.slow
@given(messages)
def test_a_message_survives_the_way_through_json_text(message: Message) -> None:
    assert message_from_json(json.loads(json.dumps(message_to_json(message)))) == message


EVERY_PART = Message(
    "assistant",
    (
        Text("t", ProviderState("gemini", {"thoughtSignature": "s"})),
        ModelThought("h"),
        ToolRequest("1", "glob", {"a": 1}, invalid="bad"),
        ModelToolResult("1", "glob", "c", is_error=True),
        Opaque("gemini", {"new": 1}),
    ),
)
FIELDS = [
    (index, name)
    for index, part in enumerate(message_to_json(EVERY_PART)["parts"])
    for name in part
    if name not in ("state", "invalid", "is_error")
]


@pytest.mark.parametrize(("index", "name"), FIELDS)
@pytest.mark.parametrize("value", [None, 7, ["x"]])
def test_a_field_that_is_missing_or_of_another_type_is_named(index: int, name: str, value: Any) -> None:
    encoded = message_to_json(EVERY_PART)
    encoded["parts"][index][name] = value
    with pytest.raises(DecodeError) as caught:
        message_from_json(encoded)
    assert caught.value.path == f"Message.parts[{index}].{name}"


NOT_MESSAGES: list[tuple[object, str]] = [
    ([], "Message"),
    ({"role": "system", "parts": []}, "Message.role"),
    ({"role": "user"}, "Message.parts"),
    ({"role": "user", "parts": ["x"]}, "Message.parts[0]"),
    ({"role": "user", "parts": [{"type": "image"}]}, "Message.parts[0].type"),
    ({"role": "user", "parts": [{"type": "text", "text": "", "state": {}}]}, "Message.parts[0].state.provider"),
]


@pytest.mark.parametrize(("encoded", "path"), NOT_MESSAGES)
def test_what_is_not_a_message_is_refused_by_name(encoded: object, path: str) -> None:
    with pytest.raises(DecodeError) as caught:
        message_from_json(encoded)
    assert caught.value.path == path
