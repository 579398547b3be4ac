"""/model, /effort and /directory: what they show, what they change for the rest of the session."""

from pathlib import Path

import pytest

from isthmus.client import CommandScope, LineCompleter
from isthmus.events import TaskState
from support.command_harness import CommandHarness, OpenHarness

pytestmark = pytest.mark.anyio


def thinking(harness: CommandHarness) -> object:
    """Return how much the last request asks the model to think."""
    return harness.wire.model_requests[-1].json.get("generationConfig", {}).get("thinkingConfig")


async def test_an_effort_holds_for_the_rest_of_the_session_alone(open_harness: OpenHarness) -> None:
    async with open_harness() as harness:
        shown = await harness.run("/effort")
        assert shown.text == "Effort: default. /effort NAME changes it: low, medium, high, default."
        usual = await harness.prompt("hello", shown.context_id, model="gemini:gemini-3.8-flash")
        before = thinking(harness)
        assert (await harness.run("/effort HIGH", usual.context_id)).text == (
            "This session continues with the effort high."
        )
        await harness.prompt("again", usual.context_id)
        assert thinking(harness) != before
        await harness.prompt("elsewhere", model="gemini:gemini-3.8-flash")
        assert thinking(harness) == before
        assert (await harness.run("/effort", usual.context_id)).text.startswith("Effort: high.")
        await harness.run("/effort default", usual.context_id)
        await harness.prompt("once more", usual.context_id)
        assert thinking(harness) == before


async def test_an_unknown_effort_is_refused_with_those_there_are(open_harness: OpenHarness) -> None:
    async with open_harness() as harness:
        ran = await harness.run("/effort extreme")
        assert ran.state is TaskState.FAILED
        assert ran.end.error == "Unknown effort extreme; expected one of low, medium, high, default."


async def test_the_values_of_the_arguments_are_offered(open_harness: OpenHarness) -> None:
    async with open_harness() as harness:
        lines = [item.line for item in await harness.engine.complete(CommandScope(), "/effort ")]
        assert lines == ["/effort low", "/effort medium", "/effort high", "/effort default"]
        assert [item.line for item in await harness.engine.complete(CommandScope(), "/model te")] == ["/model test"]
        of_alice = harness.engine.for_user("alice")
        assert isinstance(of_alice, LineCompleter)
        assert not await of_alice.complete(CommandScope(), "/model te")


async def test_a_folder_is_added_to_a_session_where_the_user_may(open_harness: OpenHarness, tmp_path: Path) -> None:
    (tmp_path / "library").mkdir()
    async with open_harness(may_include_folders=True) as harness:
        added = await harness.run(f"/directory add {tmp_path}/library, ../missing")
        assert (added.state, added.end.error) == (TaskState.FAILED, "../missing is not a folder.")
        added = await harness.run(f"/directory add {tmp_path}/library", added.context_id)
        assert added.text.startswith(f"The agent may read and edit files in {tmp_path}/library ")
        shown = await harness.run("/directory", added.context_id)
        assert shown.text == f"Workspace: {harness.workspace}\nAlso: {tmp_path}/library"
        assert (await harness.run("/directory")).text == f"Workspace: {harness.workspace}"
        refused = await harness.of("alice").run(f"/directory add {tmp_path}/library")
        assert refused.state is TaskState.FAILED
    async with open_harness() as server:
        refused = await server.run(f"/directory add {tmp_path}/library")
        assert "--include-directories" in str(refused.end.error)
