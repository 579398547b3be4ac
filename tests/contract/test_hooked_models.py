"""Hooks around model requests: the whole agent with each real provider over its wire, and real programs as hooks."""

import json
import sys
from collections.abc import Generator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from isthmus.agent.approval.policy import ApprovalMode, Policy
from isthmus.events import StateChange, TaskState, TextContent, Thought
from isthmus.internal_events import ModelReply
from isthmus.models.port.base import text_of
from isthmus.models.port.message import message_from_json
from isthmus.parts.hook_processes import HookProcesses
from isthmus.settings.rules.hooks import Hook, HookDialect, HookEvent
from isthmus.tools.builtin import builtin_tools
from isthmus.tools.port.base import ToolKind
from support.agent_harness import AgentHarness
from support.command_harness import command_harness
from support.gemini_wire import GeminiWire
from support.model_bench import Provider, each_provider
from support.model_hooks import after, agent, answers, before, says, selects
from support.scripted_wire import Call, Failure, Reply, Say, Think
from support.suspended_calls_harness import AskingTool
from support.suspended_calls_harness import harness as calls_harness

pytestmark = pytest.mark.anyio

WRITE = Call("write_file", {"file_path": "made.txt", "content": "x"}, id="c1")
READ = Call("read_file", {"file_path": "none.txt"}, id="c2")
HIDES = """
for message in given["llm_request"]["messages"]:
    message["content"] = message["content"].replace("xyzzy", "[hidden]")
said = {"hookSpecificOutput": {"llm_request": given["llm_request"]}}
"""


@pytest.fixture
def wire() -> Generator[GeminiWire]:
    with GeminiWire() as server:
        yield server


def harness(workspace: Path, wire: GeminiWire, *hooks: Hook, **options: Any) -> AgentHarness:
    tools = replace(builtin_tools(), hooks=hooks)
    policy = Policy(ApprovalMode.YOLO, may_ask=False)
    return AgentHarness(workspace, wire, policy, tools=tools, hook_programs=HookProcesses(), **options)


def sent(at: AgentHarness) -> str:
    return json.dumps([request.json for request in at.wire.model_requests], ensure_ascii=False)


def replies(at: AgentHarness) -> list[str]:
    return [text_of(message_from_json(event.message)) for event in at.events if isinstance(event, ModelReply)]


def shown(at: AgentHarness) -> list[str]:
    return [event.text for event in at.events if isinstance(event, TextContent)]


def notes(at: AgentHarness) -> str:
    return "\n".join(event.thought.subject for event in at.events if isinstance(event, Thought))


def refusal(end: StateChange) -> tuple[TaskState, str | None, str | None]:
    return end.state, end.error, end.reason


@each_provider
async def test_a_refused_request_never_reaches_the_provider(provider: Provider, workspace: Path) -> None:
    denies = before("if 'xyzzy' in str(given['llm_request']): said = {'decision': 'deny', 'reason': 'no magic'}")
    with agent(provider, workspace, (denies,), Reply.of(Say("fine"))) as at:
        end = await at.prompt("say xyzzy")
        assert refusal(end) == (
            TaskState.FAILED,
            "A hook refused the request to the model: no magic",
            "refused_by_hook",
        )
        assert at.wire.model_requests == []


@each_provider
async def test_a_changed_request_is_what_the_provider_gets(provider: Provider, workspace: Path) -> None:
    config = "said['hookSpecificOutput']['llm_request']['config'] = {'temperature': 0.25, 'maxOutputTokens': 77}"
    allowed = ["read_file", "list_directory"]
    chosen = selects(says(hookSpecificOutput={"toolConfig": {"mode": "ANY", "allowedFunctionNames": allowed}}))
    with agent(provider, workspace, (before(f"{HIDES}\n{config}"), chosen), Reply.of(Say("fine"))) as at:
        assert (await at.prompt("say xyzzy")).state is TaskState.COMPLETED
        body = at.wire.model_requests[0].json
        assert "[hidden]" in sent(at)
        assert "xyzzy" not in sent(at)
        generation = body.get("generationConfig", body)
        assert generation["temperature"] == 0.25
        assert 77 in generation.values()
        assert "write_file" in json.dumps(body["tools"])  # They stay in the provider's cache.
        match provider.name:
            case "gemini":
                calling = body["toolConfig"]["functionCallingConfig"]
                assert (calling["mode"], sorted(calling["allowedFunctionNames"])) == ("ANY", sorted(allowed))
            case "responses":
                choice = body["tool_choice"]
                assert (choice["type"], choice["mode"]) == ("allowed_tools", "required")
                assert sorted(tool["name"] for tool in choice["tools"]) == sorted(allowed)
            case _:
                assert body["tool_choice"] in ({"type": "any"}, "required")


@each_provider
async def test_a_hooks_own_answer_takes_the_place_of_the_models(provider: Provider, workspace: Path) -> None:
    with agent(provider, workspace, (before(answers("From a hook.", decision="deny", reason="known")),)) as at:
        assert (await at.prompt("hi")).state is TaskState.COMPLETED
        assert at.wire.model_requests == []
        assert replies(at) == shown(at) == ["From a hook."]
        assert "answered in place of the model: known" in notes(at)


@each_provider
async def test_an_answer_is_replaced_before_anything_of_it_is_shown(provider: Provider, workspace: Path) -> None:
    hides = after(
        "text = given['llm_response']['text']\nif 'secret' in text:\n"
        "    part = text.replace('secret', '***')\n"
        "    form = {'candidates': [{'content': {'role': 'model', 'parts': [part]}}]}\n"
        "    said = {'hookSpecificOutput': {'llm_response': form}}"
    )
    first = Reply.of(Think("the secret plan"), Say("The sec", "ret is out."), WRITE)
    with agent(provider, workspace, (hides,), first, Reply.of(Say("Done."))) as at:
        assert (await at.prompt("go")).state is TaskState.COMPLETED
        assert replies(at) == shown(at) == ["The *** is out.", "Done."]
        assert "plan" not in notes(at)
        # The calls are another chunk for the hook, which did not replace it.
        assert (workspace / "made.txt").read_text("utf-8") == "x"
        assert "The *** is out." in sent(at)
        assert "The secret is out." not in sent(at)


@each_provider
async def test_a_refused_answer_is_neither_shown_nor_are_its_calls_run(provider: Provider, workspace: Path) -> None:
    denies = after("if 'bad' in given['llm_response']['text']: said = {'decision': 'block', 'reason': 'not that'}")
    with agent(provider, workspace, (denies,), Reply.of(Think("hm"), Say("b", "ad"), WRITE)) as at:
        end = await at.prompt("go")
        assert refusal(end) == (
            TaskState.FAILED,
            "A hook refused the model's answer: not that",
            "refused_by_hook",
        )
        assert replies(at) == shown(at) == at.calls == []
        assert not (workspace / "made.txt").exists()
        assert "hm" not in notes(at)


async def test_hooks_get_what_gemini_cli_gives_them(workspace: Path, wire: GeminiWire) -> None:
    record = "open('seen', 'a').write(json.dumps(given) + chr(10))"
    wire.add(Reply.of(Say("I ", "look."), READ), Reply.of(Say("Done.")))
    at = harness(workspace, wire, before(record), selects(record), after(record))
    await at.prompt("the question")
    seen = [json.loads(line) for line in (workspace / "seen").read_text("utf-8").splitlines()]
    assert [one["hook_event_name"] for one in seen] == [
        *("BeforeModel", "BeforeToolSelection", "AfterModel", "AfterModel"),
        *("BeforeModel", "BeforeToolSelection", "AfterModel"),
    ]
    base = {"session_id", "transcript_path", "cwd", "hook_event_name", "timestamp", "llm_request"}
    assert set(seen[0]) == set(seen[1]) == base
    assert set(seen[2]) == base | {"llm_response"}
    question = {"role": "user", "content": "the question"}
    assert seen[0]["llm_request"] == {"model": "test", "messages": [question], "config": {}}
    assert seen[4]["llm_request"]["messages"] == [question, {"role": "model", "content": "I look."}]
    assert [one["llm_response"]["text"] for one in seen if "llm_response" in one] == ["I look.", "", "Done."]


async def test_changes_of_several_hooks_are_all_made(workspace: Path, wire: GeminiWire) -> None:
    wire.add(Reply.of(Say("fine")))
    other = HIDES.replace("xyzzy", "plugh")
    at = harness(workspace, wire, before(HIDES), before(other, number=2), before("", number=3))
    await at.prompt("xyzzy and plugh")
    assert "[hidden] and [hidden]" in sent(at)


async def test_a_call_of_a_tool_that_a_hook_left_out_is_not_run(workspace: Path, wire: GeminiWire) -> None:
    chosen = selects(says(hookSpecificOutput={"toolConfig": {"allowedFunctionNames": ["read_file"]}}))
    wire.add(Reply.of(WRITE), Reply.of(Say("Sorry.")))
    at = harness(workspace, wire, chosen)
    await at.prompt("go")
    assert not (workspace / "made.txt").exists()
    assert "a hook of the settings left write_file out of this request" in at.told()


async def test_a_hook_chooses_another_model(workspace: Path, wire: GeminiWire) -> None:
    with GeminiWire([Reply.of(Say("From the other."))]) as other:
        at = harness(
            workspace, wire, before(says(hookSpecificOutput={"llm_request": {"model": "other"}})), fallback=other
        )
        assert (await at.prompt("hi")).state is TaskState.COMPLETED
        assert (len(wire.model_requests), len(other.model_requests)) == (0, 1)
    assert [event.model for event in at.events if isinstance(event, ModelReply)] == ["other"]


async def test_a_model_of_a_hook_that_cannot_be_opened_ends_the_task(workspace: Path, wire: GeminiWire) -> None:
    at = harness(workspace, wire, before(says(hookSpecificOutput={"llm_request": {"model": "gemini:gone"}})))
    end = await at.prompt("hi")
    assert refusal(end) == (
        TaskState.FAILED,
        "A hook asks for the model 'gemini:gone': Gemini needs a key",
        "model_configuration",
    )
    assert wire.model_requests == []


CHANGES = says(hookSpecificOutput={"llm_request": {"config": {"temperature": 0}}})


@pytest.mark.parametrize(
    ("of_project", "said"),
    [
        (before(HIDES, is_project=True), "file 1 changes the request, which only hooks of your own may do"),
        (before(CHANGES, is_project=True), "file 1 changes the request, which only hooks of your own may do"),
        (before(answers("x"), is_project=True), "file 1 answers in place of the model, which only hooks of your own"),
        (before(answers("x", decision="deny", reason="no"), is_project=True), "the request to the model: no"),
        (before(says(decision="ask", reason="sure?")), "the request to the model: sure?"),
        (before(says(hookSpecificOutput={"llm_request": [1]})), "llm_request must be an object"),
        (before(answers("x").replace('"x"', "1")), "the parts of an llm_response must be texts"),
        (selects(says(decision="deny", reason="none")), "A hook refused the request to the model: none"),
        (selects(says(hookSpecificOutput={"toolConfig": {"allowedFunctionNames": "x"}})), "must be a list of names"),
    ],
)
async def test_what_cannot_be_carried_out_keeps_the_request_back(
    workspace: Path, wire: GeminiWire, of_project: Hook, said: str
) -> None:
    at = harness(workspace, wire, of_project)
    end = await at.prompt("say xyzzy")
    assert (end.state, end.reason) == (TaskState.FAILED, "refused_by_hook")
    assert said in (end.error or "")
    assert wire.model_requests == []


async def test_a_projects_hook_cannot_replace_an_answer(workspace: Path, wire: GeminiWire) -> None:
    wire.add(Reply.of(Say("This.")))
    at = harness(workspace, wire, after(answers("That."), is_project=True))
    end = await at.prompt("go")
    assert "changes the answer, which only hooks of your own may do" in (end.error or "")
    assert replies(at) == shown(at) == []


async def test_a_projects_hook_that_changes_nothing_is_no_obstacle(workspace: Path, wire: GeminiWire) -> None:
    wire.add(Reply.of(Say("fine")))
    echo = "said = {'hookSpecificOutput': {name: given[name] for name in given if name.startswith('llm_')}}"
    at = harness(workspace, wire, before(echo, is_project=True), after(echo, is_project=True))
    assert (await at.prompt("hello")).state is TaskState.COMPLETED
    assert replies(at) == ["fine"]


@pytest.mark.parametrize("chosen", [before, selects, after])
async def test_a_hook_around_a_request_stops_the_work(workspace: Path, wire: GeminiWire, chosen: Any) -> None:
    wire.add(Reply.of(Say("x"), WRITE))
    at = harness(workspace, wire, chosen("said = {'continue': False, 'stopReason': 'enough'}"))
    end = await at.prompt("go")
    assert refusal(end) == (TaskState.FAILED, "A hook stopped the work: enough", "stopped_by_hook")
    assert at.calls == []


@pytest.mark.parametrize("chosen", [before, selects, after])
async def test_a_hook_that_fails_or_is_late_is_shown_and_passed_over(
    workspace: Path, wire: GeminiWire, chosen: Any
) -> None:
    wire.add(Reply.of(Say("fine")))
    late = replace(chosen("import time; time.sleep(60)", number=2), seconds=0.2)
    at = harness(workspace, wire, chosen("print('broken', file=sys.stderr); sys.exit(1)"), late)
    assert (await at.prompt("go")).state is TaskState.COMPLETED
    assert "file 1 failed: broken" in notes(at)
    assert "file 2: it took longer than 0.2 s and was ended" in notes(at)


async def test_a_broken_answer_reaches_hooks_only_when_it_is_complete(workspace: Path, wire: GeminiWire) -> None:
    broken = Reply.of(Think("**A broken thought**"), Say("It is f"), finish=None)
    wire.add(broken, Failure(503, "busy"), Reply.of(Think("**A whole thought**"), Say("It is fine.")))
    at = harness(workspace, wire, after("open('seen', 'a').write(given['llm_response']['text'] + chr(10))"))
    assert (await at.prompt("go")).state is TaskState.COMPLETED
    assert (workspace / "seen").read_text("utf-8") == "It is fine.\n"
    assert shown(at) == ["It is fine."]
    assert "A broken thought" not in notes(at)
    assert "A whole thought" in notes(at)


async def test_an_answer_in_place_of_calls_takes_them_away(workspace: Path, wire: GeminiWire) -> None:
    wire.add(Reply.of(Say("I write."), WRITE))
    instead = f"if not given['llm_response']['text']:\n    {answers(' Not written.')}"
    at = harness(workspace, wire, after(instead))
    assert (await at.prompt("go")).state is TaskState.COMPLETED
    assert replies(at) == shown(at) == ["I write. Not written."]
    assert at.calls == []


async def test_an_endless_answer_is_stopped_before_hooks_get_it(workspace: Path, wire: GeminiWire) -> None:
    wire.add(Reply.of(Say(*["the same words again and again. "] * 300)), Reply.of(Say("Better.")))
    at = harness(workspace, wire, after("open('seen', 'a').write(given['llm_response']['text'])"))
    await at.prompt("go")
    assert (workspace / "seen").read_text("utf-8") == "Better."


DENIES_SUMMARIES = (
    "if 'Write the summary' in str(given['llm_request']): said = {'decision': 'deny', 'reason': 'no summary'}"
)


async def test_a_summary_of_the_conversation_passes_through_the_hooks(workspace: Path, wire: GeminiWire) -> None:
    denies = before(DENIES_SUMMARIES)
    at = harness(workspace, wire, denies, share=1e-6)
    wire.add(*[Reply.of(Say(" ".join(map(str, range(400))))) for _ in range(9)])
    ends = [await at.prompt(f"question {number}") for number in range(4)]
    assert refusal(ends[-1]) == (
        TaskState.FAILED,
        "A hook refused the request to the model: no summary",
        "refused_by_hook",
    )
    assert "Write the summary" not in sent(at)


async def test_a_summary_that_the_user_asks_for_passes_through_the_hooks(tmp_path: Path, wire: GeminiWire) -> None:
    denies = before(DENIES_SUMMARIES)
    wire.add(Reply.of(Say("One.")), Reply.of(Say("Two.")))
    async with command_harness(tmp_path, wire, hooks=(denies,)) as at:
        first = await at.prompt("the first thing " + "x " * 20_000)
        await at.prompt("the second thing", first.context_id)
        ran = await at.run("/compress", first.context_id)
        assert refusal(ran.end) == (
            TaskState.FAILED,
            "A hook refused the request to the model: no summary",
            "refused_by_hook",
        )
    assert len(wire.model_requests) == 2


async def test_a_request_of_an_mcp_server_to_the_model_passes_through_the_hooks(tmp_path: Path) -> None:
    tool = AskingTool(kind=ToolKind.READ, asks_model=True)
    denies = before("if 'what is it?' in str(given['llm_request']): said = {'decision': 'deny', 'reason': 'not that'}")
    replies: list[list[Call] | str] = [[Call("inquire", {})], "over"]
    policy = Policy(ApprovalMode.YOLO, may_ask=False)
    async with calls_harness(tmp_path, tool, policy=policy, replies=replies, hooks=(denies,)) as user:
        assert await user.prompt() == StateChange(TaskState.COMPLETED)
        assert "A hook refused the request to the model: not that" in tool.log[1]
        assert len(user.wire.model_requests) == 2


async def test_a_hook_whose_output_is_too_long_keeps_the_request_back(workspace: Path, wire: GeminiWire) -> None:
    at = harness(workspace, wire, before("print('x' * 40_000_000)"))
    end = await at.prompt("go")
    assert "its output is too long to be read" in (end.error or "")
    assert wire.model_requests == []


async def test_without_such_hooks_answers_are_streamed_and_nothing_is_loaded(
    workspace: Path, wire: GeminiWire, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = "isthmus.agent.hooks.hooked_model"
    monkeypatch.delitem(sys.modules, module, raising=False)
    wire.add(Reply.of(Say("one ", "two ", "three")))
    other = Hook(HookDialect.GEMINI, HookEvent.END, "AfterAgent", "echo '{}'", "hooks in f")
    at = harness(workspace, wire, other)
    await at.prompt("go")
    assert shown(at) == ["one ", "two ", "three"]
    assert module not in sys.modules


async def test_hooks_before_a_request_leave_its_answer_streamed(workspace: Path, wire: GeminiWire) -> None:
    wire.add(Reply.of(Say("one ", "two ", "three")))
    at = harness(workspace, wire, before(HIDES), selects(""))
    await at.prompt("go")
    assert shown(at) == ["one ", "two ", "three"]
