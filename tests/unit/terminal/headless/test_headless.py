import asyncio
import io
import json
import os
import signal
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

from isthmus.client import AgentClient, Delivery, PromptMessage, TaskSnapshot, Turn
from isthmus.development_tool import (
    ConfirmationOption,
    ConfirmationRequest,
    ErrorDetails,
    GenericDetails,
    ToolCall,
    ToolCallStatus,
    ToolOutput,
)
from isthmus.errors import IsthmusError
from isthmus.events import RetryNotice, StateChange, TaskState, TextContent, ToolCallUpdate
from isthmus.fronts.task_stream import FrontTimeouts
from isthmus.internal_events import ModelReply
from isthmus.terminal.headless.headless import HeadlessOptions, run_headless
from support.front_program import HOSTILE, WORKSPACE, edit_call, shell_call, steps_of_call
from support.memory_agent import Ask, MemoryAgent, Step, Wait
from support.waiting import eventually_async

pytestmark = pytest.mark.anyio


class Run:
    """One headless run: its exit code and what it printed."""

    def __init__(self) -> None:
        self.out, self.err = io.StringIO(), io.StringIO()
        self.code = -1

    @property
    def json(self) -> dict[str, Any]:
        return json.loads(self.out.getvalue())

    @property
    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.out.getvalue().splitlines()]


def scripted(*steps: Step) -> MemoryAgent:
    return MemoryAgent(lambda _: steps)


async def headless(agent: AgentClient, output: str = "text", prompt: str = "do it", resume: str | None = None) -> Run:
    run = Run()
    options = HeadlessOptions(
        prompt,
        output,
        {"workspace_path": WORKSPACE},
        resume,
        permission_hint="allow it with --approval-mode",
        timeouts=FrontTimeouts(retry_seconds=0.001),
    )
    run.code = await run_headless(agent, options, run.out, run.err)
    return run


async def test_text_has_the_answer_on_stdout_and_the_rest_on_stderr() -> None:
    agent = scripted(
        TextContent("a", "Let me look."),
        *steps_of_call("r", "read_file", "a.py", output=ToolOutput(text="x")),
        *steps_of_call("s", "read_file", "b.py", error=ErrorDetails("no such file")),
        RetryNotice(2, 5, 1.5, "429"),
        TextContent("b", "It is "),
        TextContent("b", "fine."),
    )
    run = await headless(agent)
    assert run.code == 0
    assert run.out.getvalue() == "It is fine.\n"
    assert run.err.getvalue().splitlines() == [
        "Let me look.",
        "[read_file] a.py",
        "[read_file] b.py: failed: no such file",
        "isthmus: 429; trying again in 1.5 s (attempt 2 of 5)",
    ]


@pytest.mark.parametrize("again", ["b", "c"])
async def test_a_replaced_text_is_said_nowhere_but_in_the_stream_which_says_so(again: str) -> None:
    agent = scripted(
        TextContent("b", "It is f"),
        TextContent(again, "It is ", "b"),
        TextContent(again, "fine."),
        *steps_of_call("r", "read_file", "a.py", output=ToolOutput(text="x")),
        TextContent("d", "Bye."),
    )
    run = await headless(agent)
    assert (run.out.getvalue(), run.err.getvalue().splitlines()) == ("Bye.\n", ["It is fine.", "[read_file] a.py"])
    said = [line for line in (await headless(agent, "stream-json")).lines if line.get("role") == "assistant"]
    assert [(line["content"], line.get("restart")) for line in said] == [
        ("It is f", None),
        ("It is ", True),
        ("fine.", None),
        ("Bye.", None),
    ]


async def test_every_line_of_a_command_is_said() -> None:
    update = shell_call(command="git status\n\\\ntouch X")
    done = replace(update, status=ToolCallStatus.SUCCEEDED, confirmation_request=None, output=ToolOutput(text=""))
    run = await headless(scripted(ToolCallUpdate(done), TextContent("b", "Done.")))
    assert run.err.getvalue() == "[run_shell_command] git status\n    \\\n    touch X\n"


async def test_json_is_one_object_with_session_response_and_stats() -> None:
    agent = scripted(TextContent("a", "Done."), ModelReply("a", "m1", {}, 10, 5))
    run = await headless(agent, "json")
    assert run.code == 0
    assert sorted(run.json) == ["response", "session_id", "stats"]
    assert run.json["session_id"] == (await agent.tasks())[0].context_id
    assert run.json["response"] == "Done."
    assert run.json["stats"]["models"]["m1"]["tokens"]["total"] == 15
    assert run.json["stats"]["models"]["m1"]["cost_usd"] is None
    assert run.json["stats"]["total_cost_usd"] is None
    assert run.json["stats"]["models_without_price"] == ["m1"]
    assert run.err.getvalue() == ""


async def test_the_cost_is_the_sum_of_all_requests_or_null_if_one_is_not_known() -> None:
    steps = [
        ModelReply("a", "m1", {}, 10, 5, cost=12_300_000_000),
        ModelReply("b", "m2", {}, 1, 1, cost=200_000_000_000),
    ]
    known = (await headless(scripted(TextContent("a", "Done."), *steps), "json")).json["stats"]
    assert known["total_cost_usd"] == 0.2123
    assert [known["models"][name]["cost_usd"] for name in ("m1", "m2")] == [0.0123, 0.2]
    assert known["models_without_price"] == []
    more = ModelReply("c", "m2", {}, 1, 1)
    partly = (await headless(scripted(TextContent("a", "Done."), *steps, more), "json")).json["stats"]
    assert partly["total_cost_usd"] is None
    assert [partly["models"][name]["cost_usd"] for name in ("m1", "m2")] == [0.0123, None]
    assert partly["models_without_price"] == ["m2"]
    lines = (await headless(scripted(TextContent("a", "Done."), *steps), "stream-json")).lines
    assert lines[-1]["stats"]["total_cost_usd"] == 0.2123


async def test_stream_json_has_a_line_for_every_event_in_gemini_clis_shapes() -> None:
    agent = scripted(
        TextContent("a", "On it."),
        *steps_of_call("r", "read_file", "a.py", output=ToolOutput(text="content")),
        *steps_of_call("s", "read_file", "b.py", error=ErrorDetails("no such file", "file_not_found")),
        RetryNotice(2, 5, 1, "429"),
        TextContent("b", "Done."),
        ModelReply("b", "m1", {}, 10, 5, 4),
    )
    lines = (await headless(agent, "stream-json")).lines
    for line in lines:
        assert line.pop("timestamp").endswith("Z")
    session = (await agent.tasks())[0].context_id
    assert lines == [
        {"type": "init", "session_id": session, "model": "scripted"},
        {"type": "message", "role": "user", "content": "do it"},
        {"type": "message", "role": "assistant", "content": "On it.", "delta": True},
        {"type": "tool_use", "tool_name": "read_file", "tool_id": "r", "parameters": {"path": "a.py"}},
        {"type": "tool_result", "tool_id": "r", "status": "success", "output": "content"},
        {"type": "tool_use", "tool_name": "read_file", "tool_id": "s", "parameters": {"path": "b.py"}},
        {
            "type": "tool_result",
            "tool_id": "s",
            "status": "error",
            "error": {"type": "file_not_found", "message": "no such file"},
        },
        {"type": "error", "severity": "warning", "message": "429; trying again in 1 s (attempt 2 of 5)"},
        {"type": "message", "role": "assistant", "content": "Done.", "delta": True},
        {"type": "result", "status": "success", "stats": lines[-1]["stats"]},
    ]
    stats = lines[-1]["stats"]
    assert stats.pop("duration_ms") >= 0
    assert stats == {
        "total_tokens": 15,
        "input_tokens": 10,
        "output_tokens": 5,
        "cached": 4,
        "input": 6,
        "tool_calls": 2,
        "total_cost_usd": None,
    }


@pytest.mark.parametrize("output", ["text", "json", "stream-json"])
async def test_a_question_is_refused_and_what_would_allow_it_is_named(output: str) -> None:
    agent = scripted(Ask((edit_call(), shell_call())), TextContent("t", "Without it, then."))
    run = await headless(agent, output)
    assert run.code == 57
    refusals = [line for line in run.err.getvalue().splitlines() if "refused" in line and "--approval-mode" in line]
    assert len(refusals) == 2
    assert "replace (greeting.py)" in refusals[0]
    assert "run_shell_command (make test)" in refusals[1]
    assert run.err.getvalue().splitlines()[-1] == (
        "isthmus: 2 calls of the agent needed a permission that nobody could give here, and did not run: replace"
        " (greeting.py), run_shell_command (make test). Allow it with --approval-mode."
    )


async def test_work_that_the_agent_itself_refused_for_want_of_a_user_is_no_success() -> None:
    refused = ErrorDetails("write_file needs permission", "approval_required")
    forbidden = ErrorDetails("a rule forbids it", "permission_denied")
    steps = (
        *steps_of_call("w", "write_file", "a.py", error=refused),
        *steps_of_call("r", "read_file", "b.py", error=forbidden),
        TextContent("t", "I could not write it."),
    )
    text = await headless(scripted(*steps))
    assert (text.code, text.out.getvalue()) == (57, "I could not write it.\n")
    whole = (await headless(scripted(*steps), "json")).json
    assert whole["response"] == "I could not write it."
    assert (whole["error"]["type"], whole["error"]["code"]) == ("PermissionRequired", 57)
    calls = [{"tool_id": "w", "tool_name": "write_file", "message": "write_file needs permission"}]
    assert whole["error"]["refused_calls"] == calls
    last = (await headless(scripted(*steps), "stream-json")).lines[-1]
    assert (last["status"], last["error"]["refused_calls"]) == ("error", calls)


async def test_what_a_rule_forbids_is_no_want_of_permission() -> None:
    forbidden = ErrorDetails("a rule forbids it", "permission_denied")
    run = await headless(scripted(*steps_of_call("r", "replace", "b.py", error=forbidden), TextContent("t", "Done.")))
    assert (run.code, run.out.getvalue()) == (0, "Done.\n")


async def test_a_question_that_cannot_be_refused_stops_the_task() -> None:
    options = (ConfirmationOption("yes", "Yes"), ConfirmationOption("also_yes", "Also yes"))
    request = ConfirmationRequest(options, generic_details=GenericDetails("anything"))
    call = ToolCall("x", ToolCallStatus.PENDING, "odd", {}, confirmation_request=request)
    agent = scripted(Ask((call,)), TextContent("t", "never"))
    run = await headless(agent, "json")
    assert run.code == 130
    assert (await agent.tasks())[0].state is TaskState.CANCELED
    assert "odd waits for a user" in run.err.getvalue()


@pytest.mark.parametrize(
    ("end", "code", "kind"),
    [
        (StateChange(TaskState.FAILED, "the model is gone", "model_error"), 1, "model_error"),
        (StateChange(TaskState.FAILED, "20 turns", "turn_limit"), 53, "FatalTurnLimitedError"),
        (StateChange(TaskState.FAILED, "This turn has cost $1.00", "budget"), 59, "BudgetUsedUp"),
        (StateChange(TaskState.FAILED, "five times", "loop"), 56, "LoopDetectedError"),
        (StateChange(TaskState.CANCELED), 130, "FatalCancellationError"),
        (StateChange(TaskState.INPUT_REQUIRED), 1, "InputRequired"),
    ],
)
async def test_only_a_completed_task_ends_with_0(end: StateChange, code: int, kind: str) -> None:
    steps = (TextContent("t", "so far"), end, Wait(asyncio.Event()))
    agents = [scripted(*steps) for _ in range(3)]
    run = await headless(agents[0], "json")
    assert run.code == code
    assert run.json["response"] == "so far"
    assert run.json["error"]["type"] == kind
    assert run.json["error"]["code"] == code
    assert run.json["error"]["message"] in run.err.getvalue()
    assert (await headless(agents[1], "text")).code == code
    last = (await headless(agents[2], "stream-json")).lines[-1]
    assert (last["type"], last["status"], last["error"]["type"]) == ("result", "error", kind)
    for agent in agents:
        await agent.aclose()


@pytest.mark.parametrize("output", ["text", "json", "stream-json"])
async def test_an_empty_prompt_is_bad_input(output: str) -> None:
    agent = scripted()
    run = await headless(agent, output, " \n")
    assert run.code == 42
    assert "prompt is empty" in run.err.getvalue()
    assert agent.prompts == []
    if output != "text":
        last = run.json if output == "json" else run.lines[-1]
        assert last["error"]["type"] == "FatalInputError"


async def test_an_unknown_output_format_is_bad_input() -> None:
    run = await headless(scripted(), "yaml")
    assert run.code == 42
    assert "expected one of text, json, stream-json" in run.err.getvalue()


async def test_an_unknown_session_is_bad_input() -> None:
    run = await headless(scripted(), "json", resume="nonsense")
    assert run.code == 42
    assert "nonsense" in run.json["error"]["message"]


async def test_resuming_goes_on_in_the_same_session() -> None:
    agent = scripted(TextContent("t", "ok"))
    first = await headless(agent, "json")
    second = await headless(agent, "json", "and more", resume="latest")
    third = await headless(agent, "json", "and more", resume=first.json["session_id"][:8])
    assert first.json["session_id"] == second.json["session_id"] == third.json["session_id"]


async def test_settings_that_the_agent_refuses_are_bad_input() -> None:
    agent = scripted()
    run = Run()
    code = await run_headless(agent, HeadlessOptions("hello", "json"), run.out, run.err)
    assert code == 42
    assert "workspace_path" in run.json["error"]["message"]


async def test_terminal_sequences_do_not_reach_the_output() -> None:
    steps = (
        TextContent("a", f"one {HOSTILE}"),
        *steps_of_call("s", f"tool{HOSTILE}", HOSTILE, error=ErrorDetails(HOSTILE)),
        TextContent("b", f"two {HOSTILE}"),
    )
    for output in ("text", "json", "stream-json"):
        run = await headless(scripted(*steps), output)
        assert "\x1b" not in run.out.getvalue() + run.err.getvalue()
        assert "two redgpj.exe" in run.out.getvalue()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_a_signal_cancels_the_task_and_then_ends_the_run(number: signal.Signals) -> None:
    agent = scripted(TextContent("t", "working"), Wait(asyncio.Event()))
    before = signal.getsignal(number)
    running = asyncio.ensure_future(headless(agent, "json"))
    await eventually_async(lambda: bool(agent.followers), what="the run has begun")
    os.kill(os.getpid(), number)
    run = await asyncio.wait_for(running, 30)
    assert run.code == 128 + number
    assert run.json["response"] == "working"
    assert run.json["error"] == {
        "type": "FatalCancellationError",
        "message": "Operation cancelled.",
        "code": 128 + number,
    }
    assert (await agent.tasks())[0].state is TaskState.CANCELED
    assert signal.getsignal(number) is before


class StubbornAgent(MemoryAgent):
    """An agent that never confirms that it stopped."""

    async def cancel(self, task_id: str) -> TaskSnapshot:
        await asyncio.Event().wait()
        return await super().cancel(task_id)


async def test_a_second_interrupt_does_not_wait_for_the_agent() -> None:
    agent = StubbornAgent(lambda _: (Wait(asyncio.Event()),))
    running = asyncio.ensure_future(headless(agent, "json"))
    await eventually_async(lambda: bool(agent.followers), what="the run has begun")
    os.kill(os.getpid(), signal.SIGINT)
    await asyncio.sleep(0)
    os.kill(os.getpid(), signal.SIGINT)
    run = await asyncio.wait_for(running, 30)
    assert run.code == 130
    await agent.aclose()


class BreakingAgent(MemoryAgent):
    """An agent whose streams break after every event; `lost` of them bring nothing."""

    lost = 0

    async def prompt(self, message: PromptMessage) -> Turn:
        return self._broken(await super().prompt(message))

    async def follow(self, task_id: str, after: int | None = None) -> Turn:
        return self._broken(await super().follow(task_id, after))

    def _broken(self, turn: Turn) -> Turn:
        async def one() -> AsyncIterator[Delivery]:
            if self.lost:
                self.lost -= 1
                return
            async for delivery in turn.deliveries:
                yield delivery
                return

        return replace(turn, deliveries=one())


async def test_a_stream_that_breaks_is_taken_up_again_where_it_was() -> None:
    agent = BreakingAgent(lambda _: [TextContent("t", str(number)) for number in range(6)])
    run = await headless(agent)
    assert run.out.getvalue() == "012345\n"
    assert run.code == 0


async def test_a_stream_that_stays_broken_is_an_error() -> None:
    agent = BreakingAgent(lambda _: [TextContent("t", "a"), TextContent("t", "b")])
    agent.lost = 100
    run = await headless(agent, "json")
    assert run.code == 1
    assert run.json["error"]["type"] == "StreamEnded"


class UnreachableAgent(MemoryAgent):
    """An agent that cannot be reached."""

    async def prompt(self, message: PromptMessage) -> Turn:
        raise IsthmusError("nobody answers at http://127.0.0.1:1/; start it with isthmus serve")


async def test_an_agent_that_is_not_there_is_an_error() -> None:
    run = await headless(UnreachableAgent(lambda _: ()), "json")
    assert run.code == 1
    assert "isthmus serve" in run.json["error"]["message"]


class BrokenPipe(io.StringIO):
    """A reader that goes away after the first line."""

    def write(self, text: str, /) -> int:
        if self.getvalue():
            raise BrokenPipeError
        return super().write(text)


async def test_when_nobody_reads_the_stream_any_more_the_task_is_stopped_quietly() -> None:
    agent = scripted(TextContent("t", "one"), TextContent("t", "two"), Wait(asyncio.Event()))
    out, err = BrokenPipe(), io.StringIO()
    options = HeadlessOptions("do it", "stream-json", {"workspace_path": WORKSPACE})
    code = await asyncio.wait_for(run_headless(agent, options, out, err), 30)
    assert code == 130
    assert err.getvalue() == ""
    assert (await agent.tasks())[0].state is TaskState.CANCELED


@pytest.mark.parametrize("output", ["text", "json", "stream-json"])
async def test_a_closed_stdout_does_not_keep_the_task_from_completing(output: str) -> None:
    agent = scripted(TextContent("t", "done"))
    err = io.StringIO()
    code = await run_headless(agent, HeadlessOptions("do it", output, {"workspace_path": WORKSPACE}), None, err)
    assert code == 1, "the answer is lost"
    assert err.getvalue().endswith("isthmus: the output cannot be written: it is closed\n")
    assert (await agent.tasks())[0].state is TaskState.COMPLETED


async def test_what_the_encoding_of_stdout_lacks_is_no_error() -> None:
    agent = scripted(TextContent("t", "naïve 漢字 \ud800"))
    raw = io.BytesIO()
    out = io.TextIOWrapper(raw, encoding="ascii")
    options = HeadlessOptions("do it", "text", {"workspace_path": WORKSPACE})
    assert await run_headless(agent, options, out, io.StringIO()) == 0
    assert raw.getvalue() == b"na?ve ?? ?\n"
