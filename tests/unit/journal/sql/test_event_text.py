"""The tools of many sessions are encoded and decoded once, and their rows read as before."""

import json
from dataclasses import replace

import pytest

from isthmus.agent.session.prompt_prefix import KEPT_LISTS, KnownSpecs, spec_to_json
from isthmus.agent.session.session import Session
from isthmus.events import event_from_json
from isthmus.internal_events import PromptBegun, PromptSection
from isthmus.journal.sql.event_text import KEPT_CHARACTERS
from isthmus.journal.sql.rows import delivery_of, encode_event
from isthmus.models.port.base import FreeForm, ToolSpec

STORED = (
    '{"type":"PromptBegun","model":"openai:m","sections":[{"name":"role","text":"You work. ,\\"tools\\":[]"}],'
    '"tools":[{"name":"look","description":"Voilà, at \\"all\\".","parameters":{"type":"object"}},'
    '{"name":"patch","description":"","parameters":{},"full_parameters":{"$defs":{}},'
    '"free_form":{"argument":"input","grammar":"start: x"}}]}'
)
"""A row as it was stored before its tools were shared."""
LOOK = ToolSpec("look", 'Voilà, at "all".', {"type": "object"})
PATCH = ToolSpec("patch", "", {}, {"$defs": {}}, FreeForm("input", "start: x"))
SECTIONS = (PromptSection("role", 'You work. ,"tools":[]'),)


def begun(specs: KnownSpecs, *tools: ToolSpec) -> PromptBegun:
    return PromptBegun("openai:m", SECTIONS, specs.as_json(tools))


def test_an_event_with_shared_tools_is_stored_and_read_as_it_was() -> None:
    event = begun(KnownSpecs(), LOOK, PATCH)
    assert encode_event(event) == STORED
    assert encode_event(PromptBegun("openai:m", SECTIONS, tuple(map(spec_to_json, (LOOK, PATCH))))) == STORED
    assert delivery_of((1, 2.0, STORED)).event == event == event_from_json(json.loads(STORED))


def test_numbers_that_json_lacks_are_null_in_shared_tools_too() -> None:
    odd = ToolSpec("odd", "", {"type": "number", "maximum": float("inf"), "default": float("nan")})
    (tool,) = json.loads(encode_event(begun(KnownSpecs(), odd)), parse_constant=pytest.fail)["tools"]
    assert tool["parameters"] == {"type": "number", "maximum": None, "default": None}


def test_sessions_with_the_same_tools_share_them_also_when_read() -> None:
    specs = KnownSpecs()
    sessions = Session("a"), Session("b"), Session("c"), Session("d")
    events = begun(specs, LOOK, PATCH), begun(specs, replace(LOOK), replace(PATCH))
    read = tuple(delivery_of((1, 2.0, encode_event(event))).event for event in events)
    for session, event in zip(sessions, (*events, *read), strict=True):
        session.apply(event)
    made, again, stored, stored_again = (session.prefixes["openai:m"].tools for session in sessions)
    assert made is again
    assert stored is stored_again
    assert made == stored == (LOOK, PATCH)


@pytest.mark.parametrize(
    "stored",
    [
        STORED[:-1] + ',"later":[{"a":[{}]}]}',
        STORED[:-1] + ',"later":1}',
        '{"type":"PromptBegun","tools":[{"name":"t","description":"","parameters":{}}],"model":"m","sections":[]}',
        '{"type":"PromptBegun","model":"m","sections":[],"tools":[]}',
        '{"type":"PromptBegun","model":"m","sections":[]}',
        STORED.replace("Voil", "x" * KEPT_CHARACTERS),
        STORED.replace("Voil", "\\ud800"),
    ],
    ids=["further lists", "a further number", "another order", "no tools", "no field", "very long", "half a pair"],
)
def test_any_form_of_the_event_is_read(stored: str) -> None:
    session, other = Session("a"), Session("b")
    session.apply(delivery_of((1, 2.0, stored)).event)
    other.apply(event_from_json(json.loads(stored)))
    (prefix,), (expected,) = session.prefixes.values(), other.prefixes.values()
    assert prefix.tools == expected.tools
    assert prefix.sections == expected.sections


def test_tools_of_another_text_or_schema_are_others() -> None:
    specs = KnownSpecs()
    first = specs.as_json([LOOK])
    assert specs.as_json([replace(LOOK, description="Sees.")]) != first
    assert specs.as_json([replace(LOOK, parameters={"type": "object", "a": 1})]) != first
    assert specs.as_json([LOOK, PATCH]) != first
    assert specs.as_json([replace(LOOK)]) is first


def test_the_lists_that_are_kept_are_bounded() -> None:
    specs = KnownSpecs()
    first = specs.as_json([LOOK])
    for number in range(KEPT_LISTS):
        specs.as_json([replace(LOOK, description=str(number))])
    assert specs.as_json([LOOK]) is not first
    assert specs.as_json([LOOK]) == first


def test_what_is_not_unicode_in_a_tool_is_mended_before_it_is_stored() -> None:
    event = begun(KnownSpecs(), replace(LOOK, description="a\ud800"))
    assert event.tools[0]["description"] == "a\ufffd"
    assert delivery_of((1, 2.0, encode_event(event))).event == event
