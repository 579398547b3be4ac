"""The relay between a framework's run and an AgentPort, and the record in which adapters keep their state."""

import asyncio
from contextlib import aclosing

import pytest

from isthmus.a2a.frameworks import host
from isthmus.a2a.frameworks.relay import Relay
from isthmus.a2a.frameworks.session_record import SessionRecord
from isthmus.agent.session.session import Session
from isthmus.events import TextContent
from isthmus.internal_events import AgentRecord

pytestmark = pytest.mark.anyio


async def test_the_work_goes_on_only_after_its_event_was_taken() -> None:
    relay, done = Relay(), list[str]()

    async def work() -> None:
        await relay.emit(TextContent("", "one"))
        done.append("one")
        await relay.emit(TextContent("", "two"))
        done.append("two")

    seen: list[tuple[str, list[str]]] = []
    async for event in relay.events(work()):
        await asyncio.sleep(0)
        assert isinstance(event, TextContent)
        seen.append((event.text, list(done)))
    assert seen == [("one", []), ("two", ["one"])]
    assert done == ["one", "two"]


async def test_events_come_from_other_threads_and_loops_in_order() -> None:
    relay = Relay()

    def in_thread() -> None:
        relay.emit_blocking(TextContent("", "blocking"))
        asyncio.run(relay.emit(TextContent("", "other loop")))

    async def work() -> None:
        relay.emit_blocking(TextContent("", "at once"))
        await asyncio.to_thread(in_thread)

    texts = [event.text async for event in relay.events(work()) if isinstance(event, TextContent)]
    assert texts == ["at once", "blocking", "other loop"]


async def test_an_exception_of_the_work_is_raised_after_its_events() -> None:
    relay = Relay()

    async def work() -> None:
        await relay.emit(TextContent("", "before"))
        raise ValueError("broken")

    events = relay.events(work())
    assert await anext(events) == TextContent("", "before")
    with pytest.raises(ValueError, match="broken"):
        await anext(events)


async def test_a_run_that_does_not_end_when_it_is_cancelled_is_left_behind() -> None:
    relay, left = Relay(ends_within=0.01), asyncio.Event()

    async def work() -> None:
        await relay.emit(TextContent("", "begun"))
        while not left.is_set():
            try:
                await left.wait()
            except asyncio.CancelledError:
                continue

    async with asyncio.timeout(30), aclosing(relay.events(work())) as events:
        async for _ in events:
            break
    left.set()


def folded(*records: AgentRecord) -> Session:
    session = Session("context")
    for record in records:
        session.apply(record, "task")
    return session


def test_a_merged_record_replaces_and_removes_single_members() -> None:
    session = folded(AgentRecord({"a": 1, "b": 2}), AgentRecord({"b": None, "c": 3}, merges=True))
    assert session.record == {"a": 1, "c": 3}
    session.apply(AgentRecord({"d": 4}))
    assert session.record == {"d": 4}


def test_a_value_is_stored_once_and_found_by_its_name() -> None:
    kept = SessionRecord(folded())
    name = kept.put({"text": "long"})
    kept.set("entry", {"value": name})
    first = kept.take_changes()
    assert first is not None
    assert first == AgentRecord({name: {"text": "long"}, "entry": {"value": name}}, merges=True)
    again = SessionRecord(folded(first))
    assert again.put({"text": "long"}) == name
    again.set("entry", {"value": name})
    assert again.take_changes() is None
    again.remove("entry")
    assert again.take_changes() == AgentRecord({"entry": None}, merges=True)


def test_what_is_no_agent_is_refused_without_loading_a_framework() -> None:
    with pytest.raises(TypeError, match=r"isthmus\[pydantic-ai\].*isthmus\[langgraph\]"):
        host("openai:gpt-5")
