"""The dialect ``coderAgent`` over a socket, beyond the scenes of the real server: questions of each kind,
outcomes, refusals, tasks whose later requests do not carry the key, and restarts."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from isthmus.a2a.options import ServerOptions
from isthmus.a2a.protocol.extension import URI
from isthmus.client import PromptMessage
from isthmus.development_tool import (
    ConfirmationOption,
    ConfirmationRequest,
    ErrorDetails,
    GenericDetails,
    McpDetails,
    ToolCall,
    ToolCallStatus,
)
from isthmus.events import AgentMessage, ArtifactPart, ArtifactUpdate, RetryNotice, TextContent, ToolCallUpdate
from support.a2a_serving import EXTENSION, TOKEN, RawClient
from support.coder_agent_client import Line, parts_of
from support.coder_agent_scenes import recorded
from support.coder_agent_shape import Shape, brief, events
from support.memory_agent import Ask, Step, write_file_call
from support.script_agent import serve_with

pytestmark = pytest.mark.anyio

KINDS = pytest.mark.parametrize("kind", ["memory", "engine"])
PLAIN: Mapping[str, str] = {}
NOTHING: Mapping[str, Any] = {}


def asked(call: ToolCall) -> Any:
    """Return a script that asks for a call, then sends a text."""

    def steps(_: PromptMessage) -> list[Step]:
        return [Ask((call,)), TextContent("text-1", "Done.")]

    return steps


def question(name: str, *options: str, **details: Any) -> ToolCall:
    """Return a call that waits for one of these options."""
    choices = tuple(ConfirmationOption(option, option) for option in options)
    request = ConfirmationRequest(choices, **details)
    return ToolCall("call-1", ToolCallStatus.PENDING, name, {"x": 1}, confirmation_request=request)


def said(text: str, settings: object = None, **more: Any) -> dict[str, Any]:
    """Return parameters with a text; the first message has the key of the dialect."""
    message: dict[str, Any] = {"kind": "message", "role": "user", "messageId": "m", **more}
    message["parts"] = [{"kind": "text", "text": text}]
    if "taskId" not in more:
        message["metadata"] = {"coderAgent": {} if settings is None else settings}
    return {"message": message}


def answer(task_id: str, outcome: object, call_id: object = "call-1", **more: Any) -> dict[str, Any]:
    """Return parameters with an answer, without any metadata."""
    part = {"kind": "data", "data": {"callId": call_id, "outcome": outcome, **more}}
    return {"message": {"kind": "message", "role": "user", "messageId": "m", "taskId": task_id, "parts": [part]}}


async def stream(server: RawClient, params: Mapping[str, Any]) -> list[Line]:
    """Return the events of a stream, as lines of a transcript."""
    return [{"server": item.result} for item in await server.stream("message/stream", params, PLAIN)]


async def ask(server: RawClient) -> tuple[str, list[Line]]:
    """Return a task that waits, and the lines up to its question."""
    lines = await stream(server, said("do it"))
    return lines[0]["server"]["id"], lines


def told_of(shapes: list[Shape], status: str) -> Any:
    """Return the members of the first event in which a call has this status."""
    shape = next(shape for shape in shapes if shape["call"].endswith(status))
    return shape["members"]["status"]["message"]["parts"][0]["data"]


@KINDS
async def test_a_question_of_an_mcp_tool_has_the_members_of_the_real_one(kind: str, tmp_path: Path) -> None:
    call = question("keep", "proceed_once", "proceed_always_server", "cancel", mcp_details=McpDetails("notes", "keep"))
    async with serve_with(kind, tmp_path)(asked(call)) as server:
        task_id, lines = await ask(server)
        mine = told_of(events(lines), "awaiting_approval")
        theirs = told_of(events(recorded("mcp")), "awaiting_approval")
        assert mine["confirmationDetails"] == theirs["confirmationDetails"]
        assert mine["tool"].keys() == theirs["tool"].keys()
        details = next(data(line)["confirmationDetails"] for line in lines if "confirmationDetails" in data(line))
        assert details["toolDisplayName"] == "keep (notes MCP Server)"
        await stream(server, answer(task_id, "proceed_always_server"))


@KINDS
async def test_a_general_question_has_the_members_of_the_real_one(kind: str, tmp_path: Path) -> None:
    call = question("deploy", "proceed_once", "cancel", generic_details=GenericDetails("Deploy it"))
    async with serve_with(kind, tmp_path)(asked(call)) as server:
        _, lines = await ask(server)
        mine = told_of(events(lines), "awaiting_approval")["confirmationDetails"]
        theirs = told_of(events(recorded("info")), "awaiting_approval")["confirmationDetails"]
        assert mine == {name: item for name, item in theirs.items() if name != "urls"}


@KINDS
async def test_a_failed_call_has_the_members_of_the_real_one(kind: str, tmp_path: Path) -> None:
    failed = ToolCall("call-1", ToolCallStatus.FAILED, "keep", {}, error=ErrorDetails("no such tool", "unknown_tool"))

    def steps(_: PromptMessage) -> list[Step]:
        return [ToolCallUpdate(failed), TextContent("text-1", "Done.")]

    async with serve_with(kind, tmp_path)(steps) as server:
        lines = await stream(server, said("do it"))
    response = next(data(line)["response"] for line in lines if "response" in data(line))
    assert (response["errorType"], response["resultDisplay"]) == ("unknown_tool", "no such tool")
    assert told_of(events(lines), "error")["response"].keys() == {
        "callId",
        "contentLength",
        "errorType",
        "responseParts",
        "resultDisplay",
    }


def data(line: Line) -> Mapping[str, Any]:
    """Return the data of an event's first part, empty if it has none."""
    return next((part.get("data", NOTHING) for part in parts_of(line["server"])), NOTHING)


@KINDS
@pytest.mark.parametrize(
    ("outcome", "options", "chosen"),
    [
        ("proceed_always", ("proceed_once", "proceed_always_prefix", "cancel"), "proceed_always_prefix"),
        ("proceed_always", ("proceed_once", "proceed_always_tool", "cancel"), "proceed_always_tool"),
        ("proceed_always", ("proceed_once", "cancel"), "proceed_once"),
        ("proceed_always_server", ("proceed_once", "proceed_always_tool", "cancel"), "proceed_always_tool"),
        ("proceed_always_tool", ("proceed_once", "proceed_always_tool", "cancel"), "proceed_always_tool"),
        ("cancel", ("proceed_once", "cancel"), "cancel"),
    ],
)
async def test_an_outcome_chooses_what_the_question_offers_and_never_more(
    kind: str, outcome: str, options: tuple[str, ...], chosen: str, tmp_path: Path
) -> None:
    call = question("deploy", *options, generic_details=GenericDetails("Deploy it"))
    async with serve_with(kind, tmp_path)(asked(call)) as server:
        task_id, _ = await ask(server)
        await stream(server, answer(task_id, outcome))
        # Clients of the extension get the chosen option.
        replayed = await server.stream("tasks/resubscribe", {"id": task_id}, {**EXTENSION, "Last-Event-ID": "1"})
    accepted = next(item for item in replayed if item.kind == "TOOL_CALL_CONFIRMATION")
    assert accepted.data["selected_option_id"] == chosen


@KINDS
@pytest.mark.parametrize(
    ("params", "told"),
    [
        ({"outcome": "proceed_always_and_save"}, "outcome: expected one of proceed_once"),
        ({"outcome": 7}, "outcome"),
        ({"outcome": "proceed_once", "call_id": 7}, "callId"),
        ({"outcome": "proceed_once", "newContent": 7}, "newContent: expected a string"),
        ({"outcome": "proceed_once", "call_id": "nope"}, "nope"),
        ({"outcome": "modify_with_editor"}, "newContent"),
    ],
)
async def test_an_answer_that_does_not_fit_is_refused_and_the_question_stays(
    kind: str, params: Any, told: str, tmp_path: Path
) -> None:
    async with serve_with(kind, tmp_path)(asked(write_file_call())) as server:
        task_id, _ = await ask(server)
        error = await server.error("message/send", answer(task_id, **params), PLAIN)
        assert (error["code"], told in error["message"]) == (-32602, True), error
        task = await server.result("tasks/get", {"id": task_id}, PLAIN)
        assert task["status"]["state"] == "input-required"
        assert task["status"]["message"]["parts"][0]["data"]["status"] == "awaiting_approval"


@KINDS
async def test_an_edited_proposal_may_also_come_as_modify_with_editor(kind: str, tmp_path: Path) -> None:
    async with serve_with(kind, tmp_path)(asked(write_file_call())) as server:
        task_id, _ = await ask(server)
        lines = await stream(server, answer(task_id, "modify_with_editor", newContent="mine\n"))
    assert brief(events(lines))[0] == "tool-call-update call-1 scheduled input-required"
    shown = next(data(line)["response"]["resultDisplay"] for line in lines if "response" in data(line))
    assert shown["newContent"] == "mine\n"


@KINDS
@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"kind": "agent-settings", "workspacePath": "relative"}, "coderAgent.workspacePath"),
        ({"kind": "agent-settings", "workspacePath": 7}, "coderAgent.workspacePath"),
        ({"kind": "agent-settings", "autoExecute": "yes"}, "coderAgent.autoExecute"),
        ("text", "coderAgent"),
    ],
)
async def test_settings_that_do_not_fit_are_refused_by_name(
    kind: str, settings: Any, told: str, tmp_path: Path
) -> None:
    async with serve_with(kind, tmp_path)() as server:
        error = await server.error("message/send", said("hello", settings), PLAIN)
        assert (error["code"], told in error["message"]) == (-32602, True), error


@KINDS
async def test_a_client_of_the_extension_is_answered_in_it_even_on_such_a_task(kind: str, tmp_path: Path) -> None:
    async with serve_with(kind, tmp_path)(asked(write_file_call())) as server:
        task_id, _ = await ask(server)
        task = await server.result("tasks/get", {"id": task_id}, EXTENSION)
        assert task["status"]["message"]["parts"][0]["data"]["tool_call_id"] == "call-1"
        task = await server.result("tasks/get", {"id": task_id}, PLAIN)
        assert task["status"]["message"]["parts"][0]["data"]["request"]["callId"] == "call-1"


@KINDS
async def test_a_plain_client_is_not_taken_for_one_of_the_dialect(kind: str, tmp_path: Path) -> None:
    async with serve_with(kind, tmp_path)() as server:
        params = {"message": {k: v for k, v in said("hello")["message"].items() if k != "metadata"}}
        items = await server.stream("message/stream", params, PLAIN)
        assert items[-1].state == "completed"
        task = await server.result("tasks/get", {"id": items[0].result["id"]}, PLAIN)
        assert task["status"]["state"] == "completed"


async def test_later_requests_are_answered_in_the_dialect_after_a_restart(tmp_path: Path) -> None:
    serve = serve_with("engine", tmp_path)
    async with serve(asked(write_file_call())) as server:
        task_id, _ = await ask(server)
    async with serve(asked(write_file_call())) as server:
        task = await server.result("tasks/get", {"id": task_id}, PLAIN)
        assert task["metadata"]["__persistedState"]["_agentSettings"]["kind"] == "agent-settings"
        error = await server.error("message/send", answer(task_id, "nonsense"), PLAIN)
        assert "proceed_always_server" in error["message"]
        canceled = await server.result("tasks/cancel", {"id": task_id}, PLAIN)
        assert canceled["status"]["state"] == "canceled"
        assert canceled.keys() == task.keys()


@KINDS
async def test_what_the_dialect_has_no_kind_for_is_told_in_the_nearest(kind: str, tmp_path: Path) -> None:
    def steps(_: PromptMessage) -> list[Step]:
        return [
            RetryNotice(1, 3, 0.5, "busy"),
            AgentMessage("whole", "Said at once."),
            ArtifactUpdate("report", (ArtifactPart(text="# Report"),), name="Report"),
        ]

    async with serve_with(kind, tmp_path)(steps) as server:
        lines = await stream(server, said("go"))
    results = [line["server"] for line in lines]
    assert any("busy" in item.get("metadata", {}).get("error", "") for item in results)
    artifact = next(item for item in results if item["kind"] == "artifact-update")
    assert artifact["artifact"]["parts"] == [{"kind": "text", "text": "# Report"}]
    assert brief(events(lines))[-1] == "state-change input-required final"
    assert "text-content working" in brief(events(lines))


@KINDS
async def test_a_task_goes_on_after_its_turn_has_ended(kind: str, tmp_path: Path) -> None:
    async with serve_with(kind, tmp_path)() as server:
        lines = await stream(server, said("hello"))
        task_id = lines[0]["server"]["id"]
        again = await stream(server, said("again", taskId=task_id))
        expected = brief(events(lines))
        assert brief(events(again)) == [kind for kind in expected if not kind.startswith("task")]


@KINDS
async def test_events_have_ids_and_are_replayed_after_the_last_one_seen(kind: str, tmp_path: Path) -> None:
    async with serve_with(kind, tmp_path)(asked(write_file_call())) as server:
        items = [*await server.stream("message/stream", said("do it"), PLAIN)]
        task_id = items[0].result["id"]
        items += await server.stream("message/stream", answer(task_id, "proceed_once"), PLAIN)
        for at in [index for index, item in enumerate(items) if item.id is not None][:-1]:
            headers = {"Last-Event-ID": items[at].id or ""}
            replayed = await server.stream("tasks/resubscribe", {"id": task_id}, headers)
            missed = [{**item.result, "final": None} for item in items[at + 1 :]]
            # The end of an earlier turn ends no stream.
            assert [{**item.result, "final": None} for item in replayed] == missed


@KINDS
async def test_the_routes_take_no_other_methods_and_no_other_bodies(kind: str, tmp_path: Path) -> None:
    async with serve_with(kind, tmp_path)() as server:
        refused = await server.http.post(f"{server.url}listCommands")
        assert (refused.status_code, refused.headers["allow"]) == (405, "GET")
        for body in (b"[]", b"{", b'{"command": "x", "agentSettings": {"workspacePath": "relative"}}'):
            refused = await server.http.post(f"{server.url}executeCommand", content=body)
            assert refused.status_code == 400
            assert refused.json()["error"]
        refused = await server.http.get(f"{server.url}tasks/metadata", headers={"Authorization": "Bearer wrong"})
        assert refused.status_code == 401
        refused = await server.http.get(f"{server.url}listCommands", headers={"Origin": "https://evil.example"})
        assert refused.status_code == 403


@KINDS
async def test_a_server_that_requires_the_extension_refuses_the_dialect(kind: str, tmp_path: Path) -> None:
    options = ServerOptions(TOKEN, strict_extension=True)
    async with serve_with(kind, tmp_path)(options=options) as server:
        error = await server.error("message/send", said("hello"), PLAIN)
        assert (error["code"], error["data"]) == (-32600, {"uri": URI})


@KINDS
async def test_the_users_tier_stands_beside_the_key(kind: str, tmp_path: Path) -> None:
    async with serve_with(kind, tmp_path)(options=ServerOptions(TOKEN, user_tier="gold")) as server:
        lines = await stream(server, said("hello"))
    assert {line["server"]["metadata"].get("userTier") for line in lines[1:]} == {"gold"}


@KINDS
async def test_no_tasks_have_no_metadata(kind: str, tmp_path: Path) -> None:
    async with serve_with(kind, tmp_path)() as server:
        assert (await server.http.get(f"{server.url}tasks/metadata")).status_code == 204
        await stream(server, said("hello"))
        (described,) = (await server.http.get(f"{server.url}tasks/metadata")).json()
        assert described["taskState"] == "input-required"
        names = {tool["name"] for tool in described["availableTools"]}
        assert {"read_file", "run_shell_command"} <= names


@KINDS
async def test_live_output_is_an_artifact_whose_text_is_whole_each_time(kind: str, tmp_path: Path) -> None:
    running = ToolCall("call-1", ToolCallStatus.EXECUTING, "run_shell_command", {"command": "x"})

    def steps(_: PromptMessage) -> list[Step]:
        return [
            ToolCallUpdate(replace(running, status=ToolCallStatus.PENDING)),
            ToolCallUpdate(running),
            ToolCallUpdate(replace(running, live_content="one\n")),
            ToolCallUpdate(replace(running, status=ToolCallStatus.CANCELLED)),
        ]

    async with serve_with(kind, tmp_path)(steps) as server:
        lines = await stream(server, said("go"))
    live = [line["server"] for line in lines if line["server"]["kind"] == "artifact-update"]
    assert live[0]["artifact"] == {"artifactId": "tool-call-1-output", "parts": [{"kind": "text", "text": "one\n"}]}
    assert (live[0]["append"], live[0]["lastChunk"]) == (True, False)
    calls = [shape["call"] for shape in events(lines) if shape["call"]]
    assert calls == [f"call-1 {status}" for status in ("validating", "scheduled", "executing", "cancelled")]


async def test_a_reserved_task_survives_a_first_message_that_is_refused(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    async with serve_with("engine", tmp_path)() as server:
        begun = await server.result("message/send", said("hello", {"workspacePath": str(tmp_path / "a")}), PLAIN)
        settings = {"contextId": begun["contextId"], "agentSettings": {"workspacePath": str(tmp_path / "b")}}
        reserved = (await server.http.post(f"{server.url}tasks", json=settings)).json()
        error = await server.error("message/send", said("hello", taskId=reserved), PLAIN)
        assert (error["code"], "differs from this session" in error["message"]) == (-32602, True)
        described = (await server.http.get(f"{server.url}tasks/{reserved}/metadata")).json()["metadata"]
        assert described["taskState"] == "submitted"
        made = await server.result("message/send", said("hello", taskId=reserved, contextId="its-own"), PLAIN)
        assert (made["id"], made["contextId"], made["status"]["state"]) == (reserved, "its-own", "input-required")
        again = await server.result("message/send", said("more", taskId=reserved), PLAIN)
        assert (again["id"], again["contextId"]) == (reserved, "its-own")
        listed = (await server.http.get(f"{server.url}tasks/metadata")).json()
        assert sorted(task["id"] for task in listed) == sorted([begun["id"], reserved])


async def test_the_first_messages_to_a_reserved_task_make_one_task(tmp_path: Path) -> None:
    async with serve_with("engine", tmp_path)() as server:
        reserved = (await server.http.post(f"{server.url}tasks", json={})).json()
        for text in ("one", "two"):
            sent = said(text, taskId=reserved)
            assert (await server.result("message/send", sent, PLAIN))["id"] == reserved
        assert len((await server.http.get(f"{server.url}tasks/metadata")).json()) == 1
