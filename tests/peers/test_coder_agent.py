"""The dialect ``coderAgent``: Isthmus sends the same events as the real gemini-cli-a2a-server.

The recorded scenes of the real server are played to ``isthmus serve``, with the same model on the same wire. The
order of kinds and states is the same, and so are the members of each event. Tests name the differences.
"""

from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any, cast

import pytest

from support.coder_agent_client import Line
from support.coder_agent_scenes import Stage, our_server, recorded, shared
from support.coder_agent_shape import brief, events

pytestmark = [pytest.mark.anyio, pytest.mark.shares_connections]

TALKS = ["state-change working", "text-content working"]


@pytest.fixture(scope="module")
async def ours(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Stage]:
    """Start ``isthmus serve``, for all scenes that do not depend on earlier ones."""
    async with shared(our_server(tmp_path_factory.mktemp("ours").resolve())) as stage:
        yield stage


async def played_alone(name: str, folder: Path) -> list[Line]:
    """Return the transcript of a scene on a server that has played no other."""
    async with our_server(folder) as stage:
        return await stage.play(name)


@pytest.mark.parametrize(
    "name", ["text", "send", "no_settings", "edit_once", "edit_always", "shell_once", "resubscribe", "canceled"]
)
async def test_a_scene_goes_as_on_the_real_server(name: str, ours: Stage) -> None:
    mine, real = events(await ours.play(name)), events(recorded(name))
    assert brief(mine) == brief(real)
    assert mine == real


async def test_after_a_refusal_the_model_is_told_and_may_speak(ours: Stage) -> None:
    mine, real = events(await ours.play("edit_cancel")), events(recorded("edit_cancel"))
    at = brief(mine).index("tool-call-update CALL-1 cancelled input-required") + 1
    assert brief(mine)[at : at + 2] == TALKS
    assert [*mine[:at], *mine[at + 2 :]] == real


async def test_newcontent_is_what_gets_written_where_the_real_server_falls_silent(ours: Stage) -> None:
    lines = await ours.play("edit_modified")
    *answered, _ = brief(events(lines))
    assert answered[-6:] == brief(events(recorded("edit_once")))[-6:]
    assert (ours.workspace / "b.txt").read_text(encoding="utf-8") == "mine\n"
    assert {"silence": True} in recorded("edit_modified")
    assert {"silence": True} not in lines


async def test_auto_execute_asks_nothing(ours: Stage) -> None:
    mine, real = events(await ours.play("auto_execute")), events(recorded("auto_execute"))
    # The real server reports a question, and answers it itself.
    assert mine == [shape for shape in real if shape["what"] != "tool-call-confirmation"]
    assert (ours.workspace / "b.txt").read_text(encoding="utf-8") == "new\n"


async def test_two_calls_are_asked_at_once_and_each_goes_its_way(ours: Stage) -> None:
    mine, real = events(await ours.play("two_calls")), events(recorded("two_calls"))
    for call in ("CALL-1", "CALL-2"):
        told = [shape["call"] for shape in real if call in shape["call"]]
        assert [shape["call"] for shape in mine if call in shape["call"]] == list(dict.fromkeys(told))
    finals = [kind for kind in brief(mine) if kind.endswith(" final")]
    assert finals == [kind for kind in brief(real) if kind.endswith(" final")]
    assert (ours.workspace / "c.txt").read_text(encoding="utf-8") == "new\n"


async def test_a_model_that_cannot_be_asked_fails_the_task_and_says_why(ours: Stage) -> None:
    lines = await ours.play("model_fails")
    failed = lines[-1]["server"]
    assert (failed["status"]["state"], failed["final"]) == ("failed", True)
    assert "GEMINI_API_KEY" in failed["metadata"]["error"]
    assert failed["status"]["message"]["parts"][0]["text"] == failed["metadata"]["error"]
    assert failed["metadata"]["coderAgent"] == {"kind": "state-change"}


async def test_errors_have_the_codes_of_the_real_server(ours: Stage) -> None:
    mine, real = await ours.play("canceled"), recorded("canceled")
    codes = [line["error"]["code"] for line in real if "error" in line]
    assert [line["error"]["code"] for line in mine if "error" in line] == codes == [-32002, -32600]


async def test_tasks_may_be_made_before_their_first_message(tmp_path: Path) -> None:
    ours, real = await played_alone("tasks", tmp_path), recorded("tasks")
    ours_plain = [line["server"] for line in ours if "status" in line.get("server", {}) and "type" in line["server"]]
    real_plain = [line["server"] for line in real if "status" in line.get("server", {}) and "type" in line["server"]]
    assert [answer["status"] for answer in ours_plain] == [answer["status"] for answer in real_plain]
    for mine, theirs in zip(ours_plain, real_plain, strict=True):
        assert without_model(mine["body"]) == without_model(theirs["body"])
    # The first message makes the task with the reported id; Isthmus then sends the task, too.
    task, *rest = events(ours)
    assert task["what"] == "task"
    assert rest == events(real)


def without_model(body: Any) -> Any:
    """Return metadata without its variable parts: the model, and the configured MCP servers."""
    if isinstance(body, list):
        return [without_model(item) for item in cast("list[Any]", body)]
    if not isinstance(body, dict):
        return body
    described = cast("dict[str, Any]", body)
    if "metadata" in described:
        return without_model(described["metadata"])
    return {name: item for name, item in described.items() if name not in ("model", "mcpServers")}


async def test_commands_are_listed_and_run_by_their_whole_names(tmp_path: Path) -> None:
    ours, real = await played_alone("commands", tmp_path), recorded("commands")
    for asked, mine, theirs in zip(ours[::2], ours[1::2], real[1::2], strict=True):
        found, expected = mine["server"], theirs["server"]
        assert (found["status"], found["type"]) == (expected["status"], expected["type"]), asked
        if found["status"] != 200:
            assert found["body"] == expected["body"]
        elif found["type"] == "application/json":
            assert found["body"].keys() == expected["body"].keys(), asked
    listed = {command["name"]: command for command in ours[1]["server"]["body"]["commands"]}
    for command in real[1]["server"]["body"]["commands"]:
        if command["name"] in ("memory", "init"):
            assert {below["name"] for below in command["subCommands"]} <= {
                below["name"] for below in listed[command["name"]]["subCommands"]
            }
            assert listed[command["name"]].keys() == command.keys()


async def test_init_streams_lines_of_data_alone(tmp_path: Path) -> None:
    ours, real = await played_alone("init", tmp_path), recorded("init")
    mine, theirs = ours[1]["server"], real[1]["server"]
    assert (mine["status"], mine["type"]) == (theirs["status"], theirs["type"]) == (200, "text/event-stream")
    assert mine["body"][0]["result"]["kind"] == theirs["body"][0]["result"]["kind"] == "task"
    last = mine["body"][-1]["result"]
    assert last["final"] is True
    assert last["metadata"]["coderAgent"] == {"kind": "state-change"}
