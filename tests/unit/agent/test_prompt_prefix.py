"""What a provider caches: within a session, a request begins with the bytes of the one before, whatever happens.

Each wire plays one session with everything that can happen in it, and the bodies of the requests are compared: tools,
system prompt, and all messages. ``NEW_BEGINNINGS`` is the closed list of what may begin anew. Each segment of the
harness is a process of its own, which knows only what the journal stored.
"""

import json
from collections.abc import Awaitable, Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import pytest
from typing_extensions import override

from isthmus.agent.approval.policy import ApprovalMode, Policy
from isthmus.agent.memory.memory_part import MemoryPart
from isthmus.agent.memory.save_memory import SaveMemory
from isthmus.agent.part import PartBase
from isthmus.agent.tool_search.loading import SearchMode, SearchOptions
from isthmus.events import Command, StateChange, TaskState
from isthmus.internal_events import Checkpoint, Compacted, LoopNotice, PromptBegun, Restored, SubagentBegun
from isthmus.record import record
from isthmus.tools.port.base import ToolKind
from isthmus.tools.port.tool_set import SEARCH_TOOL, FixedTools, ServerTools, ToolScope, ToolSet
from support.agent_harness import AgentHarness
from support.effect_tools import EffectTool
from support.model_bench import ALL, ANTHROPIC, GEMINI, OPENAI, RESPONSES, Provider
from support.scripted_wire import Call, Failure, Reply, Say, Think

pytestmark = pytest.mark.anyio


MODELS: Mapping[str, str] = {
    GEMINI.name: "gemini-3.8-flash",
    ANTHROPIC.name: "claude-sonnet-5-5",
    OPENAI.name: "gpt-6.2-sol",
    RESPONSES.name: "gpt-6.2-sol",
}
MESSAGES: Mapping[str, str] = {
    GEMINI.name: "contents",
    ANTHROPIC.name: "messages",
    OPENAI.name: "messages",
    RESPONSES.name: "input",
}
HEADS: Mapping[str, tuple[str, ...]] = {
    GEMINI.name: ("tools", "systemInstruction"),
    ANTHROPIC.name: ("tools", "system"),
    OPENAI.name: ("tools",),
    RESPONSES.name: ("tools", "instructions"),
}


@dataclass
class Servers(PartBase):
    """Part that has the instructions of servers, which change when one connects."""

    text: str = ""
    name = "servers"

    @override
    async def instructions(self, scope: ToolScope) -> str:
        return self.text


@record
class LateTools(FixedTools):
    """Tools that are others from the second request of a turn on."""

    later: ToolSet | None = None

    @override
    async def renewed(self, scope: ToolScope, tools: ToolSet) -> ToolSet:
        return tools if self.later is None else self.later


def own_tools(home: Path) -> ToolSet:
    made = (EffectTool("look", ToolKind.READ), EffectTool("write_file", ToolKind.EDIT), SaveMemory(home / "GEMINI.md"))
    return ToolSet.of(*made)


def with_server(tools: ToolSet, name: str, *own: str) -> ToolSet:
    """Return the tools with a connected server's."""
    added = {tool: EffectTool(tool, ToolKind.READ, server=name, description=f"Does {tool}.") for tool in own}
    return replace(tools, tools={**tools.tools, **added}, servers=(*tools.servers, ServerTools(name, own)))


@dataclass
class Place:
    """A session whose agent talks to one provider's wire, and what can be changed around it."""

    at: AgentHarness
    home: Path
    provider: Provider
    servers: Servers
    rewritten: list[str] = field(default_factory=list[str])
    """What has made a request begin otherwise than the one before."""
    _seen: int = 0

    @property
    def tools(self) -> ToolSet:
        return self.at.tools

    async def say(self, *replies: Reply, text: str = "Go on.") -> StateChange:
        self.at.wire.add(*(replies or (Reply.of(Say("Done.")),)))
        return await self.at.prompt(text)

    def compare(self, event: str) -> None:
        """Note the event if a request since the last comparison begins otherwise than the one before it."""
        requests = [request.json for request in self.at.wire.model_requests]
        for number in range(max(1, self._seen), len(requests)):
            before, now = requests[number - 1], requests[number]
            if (problem := self.difference(before, now)) is not None:
                self.rewritten.append(f"{event}: {problem}")
        self._seen = len(requests)

    def difference(self, before: Mapping[str, Any], now: Mapping[str, Any]) -> str | None:
        """Return where a request begins otherwise than the one before it; None if it begins with all of its bytes."""
        for name in HEADS[self.provider.name]:
            if as_bytes(before.get(name)) != as_bytes(now.get(name)):
                return name
        old, new = before[MESSAGES[self.provider.name]], now[MESSAGES[self.provider.name]]
        for place, message in enumerate(old):
            if place == len(old) - 1 and "unanswered" in str(message):
                continue  # The next prompt is added to a user's message that the model has not answered.
            if place >= len(new) or as_bytes(message) != as_bytes(new[place]):
                return f"message {place} of {len(old)}"
        return None


def as_bytes(value: Any) -> bytes:
    """Return the JSON as it was sent, without Anthropic's marks, which are not cached themselves."""
    return json.dumps(_unmarked(value), ensure_ascii=False).encode()


def _unmarked(value: Any) -> Any:
    if isinstance(value, list):
        return [_unmarked(item) for item in cast("list[Any]", value)]
    if isinstance(value, dict):
        items = cast("dict[str, Any]", value).items()
        return {name: _unmarked(item) for name, item in items if name != "cache_control"}
    return value


Happening = Callable[[Place], Awaitable[object]]


async def modes(place: Place) -> None:
    for mode in ("plan", "auto_edit", "yolo", "default"):
        place.at.settings["approval_mode"] = mode
        await place.say()


async def plan_mode_and_a_call(place: Place) -> None:
    place.at.settings["approval_mode"] = "plan"
    await place.say(Reply.of(Call("write_file", {"file_path": "a"})), Reply.of(Say("It is refused.")))
    place.at.settings["approval_mode"] = "yolo"


async def memory_add(place: Place) -> None:
    place.at.events.append(Command("m", ("memory", "add"), "The user likes tabs."))
    assert (await place.at.segment()).state is TaskState.COMPLETED
    await place.say()


async def save_memory(place: Place) -> None:
    await place.say(Reply.of(Call("save_memory", {"fact": "They use Vim."})), Reply.of(Say("Noted.")))
    assert "Vim" in (place.home / "GEMINI.md").read_text()


async def edited_instructions(place: Place) -> None:
    (place.at.workspace / "AGENTS.md").write_text("Use spaces.\nRun the tests.\n")
    await place.say()
    (place.at.workspace / "AGENTS.md").write_text("Use spaces.\nRun all of the tests.\n")
    await place.say()


async def removed_instructions(place: Place) -> None:
    (place.at.workspace / "AGENTS.md").unlink()
    await place.say()


async def late_server(place: Place) -> None:
    later = with_server(place.tools, "tickets", "find_ticket", "close_ticket")
    place.at.source = LateTools(place.tools, later)
    place.servers.text = "# tickets\nAsk for the number first."
    await place.say(Reply.of(Call("look")), Reply.of(Say("There are new ones.")))
    place.at.source, place.at.tools = None, later
    await place.say(Reply.of(Call("find_ticket", {})), Reply.of(Say("Found.")))


async def changed_tool(place: Place) -> None:
    tools = {**place.tools.tools, "look": EffectTool("look", ToolKind.READ, description="Looks, and lists skills.")}
    place.at.tools = replace(place.tools, tools=tools)
    await place.say()


async def lost_server(place: Place) -> None:
    tools = {name: tool for name, tool in place.tools.tools.items() if not name.endswith("_ticket")}
    place.at.tools = replace(place.tools, tools=tools, servers=(), missing_servers=("tickets",))
    place.servers.text = ""
    await place.say()


async def tool_search(place: Place) -> None:
    place.at.tools = with_server(place.tools, "many", *(f"many_{number}" for number in range(30)))
    place.at.search = SearchOptions(SearchMode.ALWAYS)
    await place.say()
    await place.say(
        Reply.of(Call("call_tool", {"name": SEARCH_TOOL, "arguments": {"query": "select:many_7"}})),
        Reply.of(Call("call_tool", {"name": "many_7", "arguments": {}})),
        Reply.of(Say("Called.")),
    )


async def editor_and_reminders(place: Place) -> None:
    place.at.context = "The user looks at app.py."
    await place.say()
    place.at.context = "The user looks at main.py."
    place.at.events.append(LoopNotice("You repeat yourself."))
    await place.say()


async def folders(place: Place) -> None:
    place.at.settings["additional_directories"] = [str(place.home)]
    await place.say()


async def absent_user(place: Place) -> None:
    place.at.policy = replace(place.at.policy, may_ask=False)
    place.at.instructions = "Answer in rhymes."
    await place.say()
    place.at.policy = replace(place.at.policy, may_ask=True)
    await place.say()


async def failed_request(place: Place) -> None:
    place.at.wire.add(Failure(400, "no"))
    assert (await place.at.prompt("unanswered")).state is TaskState.FAILED
    place.at.settings["approval_mode"] = "plan"
    await place.say()


async def answered_question(place: Place) -> None:
    place.at.settings["approval_mode"] = "default"
    await place.say(Reply.of(Call("look"), Call("write_file", {"file_path": "b"})))
    place.at.wire.add(Reply.of(Say("Written.")))
    (place.at.workspace / "GEMINI.md").write_text("Changed while the question was open.\n")
    await place.at.answer(place.at.calls[-1])


async def thoughts(place: Place) -> None:
    await place.say(
        Reply.of(Think("Let me see.", signature="c2lnbmVk"), Call("look")), Reply.of(Think("So."), Say("Yes."))
    )


HAPPENINGS: Mapping[str, Happening] = {
    "the second prompt": lambda place: place.say(),
    "mode changes": modes,
    "a refused call in plan mode": plan_mode_and_a_call,
    "/memory add": memory_add,
    "save_memory": save_memory,
    "edited instructions": edited_instructions,
    "removed instructions": removed_instructions,
    "a server that connects late": late_server,
    "a tool with another description": changed_tool,
    "a server that is gone": lost_server,
    "tools on demand": tool_search,
    "the editor and reminders": editor_and_reminders,
    "further folders": folders,
    "a user who is away": absent_user,
    "a request that failed": failed_request,
    "an answered question": answered_question,
    "thoughts": thoughts,
}


@contextmanager
def opened(provider: Provider, workspace: Path, tmp_path: Path) -> Generator[Place]:
    home = tmp_path / "home" / ".gemini"
    home.mkdir(parents=True)
    (workspace / "AGENTS.md").write_text("Use spaces.\n")
    servers = Servers()
    with provider.wire() as wire:
        at = AgentHarness(
            workspace,
            wire,
            Policy(ApprovalMode.DEFAULT),
            limit=50,
            tools=own_tools(home),
            provider=provider.name,
            model=MODELS[provider.name],
            variables=(provider.key, provider.base_url),
            environment="<environment>\nLinux\n</environment>",
            home=home,
            parts=(servers, MemoryPart(home / "GEMINI.md")),
        )
        yield Place(at, home, provider, servers)


@pytest.fixture(params=ALL, ids=lambda provider: provider.name)
def place(request: pytest.FixtureRequest, workspace: Path, tmp_path: Path) -> Iterator[Place]:
    with opened(request.param, workspace, tmp_path) as place:
        yield place


@pytest.fixture
def gemini(workspace: Path, tmp_path: Path) -> Iterator[Place]:
    """Return a place with one wire, for what happens before a wire is chosen."""
    with opened(GEMINI, workspace, tmp_path) as place:
        yield place


async def test_no_request_changes_what_the_one_before_it_has_sent(place: Place) -> None:
    await place.say(text="Begin.")
    for event, happen in HAPPENINGS.items():
        await happen(place)
        place.compare(event)
    assert place.rewritten == []
    assert place.at.wire.unexpected == 0
    if place.provider is ANTHROPIC:
        marks = [request.json["system"][0]["cache_control"].get("ttl") for request in place.at.wire.model_requests]
        assert set(marks) == {"1h", None}  # One of the happenings is that the user is away.


async def test_the_requests_of_a_subagent_begin_alike_too(place: Place) -> None:
    place.at.events.append(SubagentBegun("helper", "You help.", "t0", "c0"))
    await place.say(Reply.of(Call("look")), Reply.of(Say("Half.")))
    (place.at.workspace / "AGENTS.md").write_text("Use tabs.\n")
    place.at.settings["approval_mode"] = "plan"
    await place.say()
    place.compare("the work of a subagent")
    assert place.rewritten == []


async def compaction(place: Place) -> None:
    place.at.events.append(Compacted("Summary of the conversation so far.", 1, 100, 50))
    await place.say()


async def another_model(place: Place) -> None:
    place.at.model = f"{place.at.model}-2"
    await place.say()


async def clear(place: Place) -> None:
    place.at.events.clear()  # The interactive prompt goes on with a session of its own.
    await place.say()


NEW_BEGINNINGS: Mapping[str, Happening] = {"compaction": compaction, "another model": another_model, "/clear": clear}
"""All that may begin anew: the older part is summarised, another model has its own cache, or the session is new.

Old results that are removed are a part of the first one; the system prompt and the tools stay even then.
"""


@pytest.mark.parametrize("event", NEW_BEGINNINGS)
async def test_what_begins_anew_begins_with_what_holds_then(gemini: Place, event: str) -> None:
    await gemini.say()
    (gemini.at.workspace / "AGENTS.md").write_text("Use tabs.\n")
    gemini.at.settings["approval_mode"] = "plan"
    gemini.at.tools = with_server(gemini.tools, "tickets", "find_ticket")
    await gemini.say()
    assert "You have more tools." in gemini.at.told()
    await NEW_BEGINNINGS[event](gemini)
    before, now = str(gemini.at.body(-2)["tools"]), str(gemini.at.body()["tools"])
    assert ("find_ticket" in before, "find_ticket" in now) == (False, True)
    system = gemini.at.body()["systemInstruction"]["parts"][0]["text"]
    assert "Use tabs." in system
    assert "# Approval: plan" in system
    begun = [item for item in gemini.at.events if isinstance(item, PromptBegun)]
    assert len(begun) == (1 if event == "/clear" else 2)
    gemini.compare("first")
    await gemini.say()
    gemini.rewritten.clear()
    gemini.compare(event)
    assert gemini.rewritten == []


async def test_a_model_that_is_asked_again_is_asked_with_its_own_beginning(gemini: Place) -> None:
    await gemini.say()
    gemini.at.model = "gemini-3.8-pro"
    gemini.at.settings["approval_mode"] = "plan"
    await gemini.say()
    gemini.at.model = MODELS[GEMINI.name]
    await gemini.say()
    assert gemini.difference(gemini.at.body(0), gemini.at.body(2)) is None
    assert "# Approval: plan" not in str(gemini.at.body(2)["systemInstruction"])
    assert "# Approval: plan" in gemini.at.told()


async def test_a_conversation_that_is_taken_back_is_told_again_what_it_lost(gemini: Place) -> None:
    await gemini.say(Reply.of(Call("look", id="c1")), Reply.of(Say("Seen.")))
    gemini.at.events.insert(-1, Checkpoint("k", "c1"))
    gemini.at.settings["approval_mode"] = "plan"
    await gemini.say()
    gemini.at.events.append(Restored("k"))
    await gemini.say()
    assert as_bytes(gemini.at.body()["systemInstruction"]) == as_bytes(gemini.at.body(0)["systemInstruction"])
    assert gemini.at.told().count("# Approval: plan") == 1


def last_said(place: Place, about: str) -> str:
    """Return what the last request says last about something: in its system prompt, or behind the conversation."""
    body = place.at.body()
    texts = [part["text"] for content in body["contents"] for part in content["parts"] if "text" in part]
    system = body["systemInstruction"]["parts"][0]["text"]
    said = [system, *(text for text in texts if text.startswith("<session_update>"))]
    resets = [number for number, text in enumerate(said) if "hold as they were first" in " ".join(text.split())]
    valid = [system, *said[resets[-1] :]] if resets else said
    return next(line for text in reversed(valid) for line in text.splitlines() if about in line)


async def test_an_old_change_in_what_is_kept_does_not_hold_any_more(gemini: Place) -> None:
    await gemini.say()
    gemini.at.settings["approval_mode"] = "plan"
    await gemini.say(Reply.of(Call("look", id="c1")), Reply.of(Say("Seen.")))
    gemini.at.events.insert(-1, Checkpoint("k", "c1"))
    gemini.at.settings["approval_mode"] = "default"
    await gemini.say()
    gemini.at.events.append(Restored("k"))
    await gemini.say()
    assert "# Approval: plan" in gemini.at.told()
    assert last_said(gemini, "# Approval") == "# Approval: default"
    gemini.at.settings["approval_mode"] = "plan"
    await gemini.say()
    assert last_said(gemini, "# Approval") == "# Approval: plan"
    gemini.at.settings["approval_mode"] = "yolo"
    gemini.at.events.append(Compacted("Summary of the conversation so far.", 2, 100, 50))
    await gemini.say()
    assert last_said(gemini, "# Approval") == "# Approval: yolo"


async def test_another_model_is_not_told_of_an_old_change_either(gemini: Place) -> None:
    await gemini.say()
    gemini.at.settings["approval_mode"] = "plan"
    await gemini.say()
    gemini.at.model = "gemini-3.8-pro"
    gemini.at.settings["approval_mode"] = "auto_edit"
    await gemini.say()
    assert last_said(gemini, "# Approval") == "# Approval: auto_edit"
    gemini.at.model = MODELS[GEMINI.name]
    await gemini.say()
    assert last_said(gemini, "# Approval") == "# Approval: auto_edit"
    gemini.at.settings["approval_mode"] = "default"
    await gemini.say()
    assert last_said(gemini, "# Approval") == "# Approval: default"
