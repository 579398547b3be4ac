"""Rows of a journal take an event up to its limit, and only JSON."""

import json
import math
from typing import Any, cast

import pytest

from isthmus.development_tool import ToolCall, ToolCallStatus
from isthmus.events import TextContent
from isthmus.internal_events import AgentRecord
from isthmus.journal.port.base import UnkeepableEvent
from isthmus.journal.sql import rows
from isthmus.journal.sql.rows import encode_event, stored_calls


def test_an_event_is_kept_up_to_the_very_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    event = TextContent("m", "Hello")
    length = len(encode_event(event))
    monkeypatch.setattr(rows, "EVENT_CHARACTERS", length)
    assert len(encode_event(event)) == length
    monkeypatch.setattr(rows, "EVENT_CHARACTERS", length - 1)
    with pytest.raises(UnkeepableEvent, match=f"has {length} characters as JSON; the maximum is {length - 1}"):
        encode_event(event)


def test_what_is_not_json_is_not_kept_and_the_event_is_named() -> None:
    with pytest.raises(UnkeepableEvent, match=r"TextContent.*cannot be written as JSON"):
        encode_event(TextContent("m", cast(Any, object())))


def test_numbers_that_json_lacks_are_kept_as_null_for_readers_that_refuse_them() -> None:
    data = {"a": math.nan, "b": [math.inf, -math.inf, 1.5]}
    call = ToolCall("c1", ToolCallStatus.PENDING, "f", data)
    kept = {"a": None, "b": [None, None, 1.5]}
    assert json.loads(encode_event(AgentRecord(data)), parse_constant=pytest.fail)["data"] == kept
    assert json.loads(stored_calls([call]), parse_constant=pytest.fail)[0]["input_parameters"] == kept
