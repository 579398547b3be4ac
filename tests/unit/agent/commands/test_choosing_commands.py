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


FLASH = "gemini:gemini-3.8-flash"


async def test_an_effort_holds_for_the_rest_of_the_session_alone(open_harness: OpenHarness) -> None:
    async with open_harness() as harness:
        usual = await harness.prompt("hello", model=FLASH)
        shown = await harness.run("/effort", usual.context_id)
        assert shown.text == (
            "Effort: default (its provider decides). /effort NAME changes it: low, medium, high, default."
        )
        before = thinking(harness)
        assert (await harness.run("/effort HIGH", usual.context_id)).text == (
            "This session continues with the effort high."
        )
        await harness.prompt("again", usual.context_id)
        assert thinking(harness) != before
        await harness.prompt("elsewhere", model=FLASH)
        assert thinking(harness) == before
        assert (await harness.run("/effort", usual.context_id)).text.startswith("Effort: high.")
        await harness.run("/effort default", usual.context_id)
        await harness.prompt("once more", usual.context_id)
        assert thinking(harness) == before


@pytest.mark.parametrize(
    ("model", "name", "error"),
    [
        (FLASH, "extreme", "Unknown effort extreme; expected one of low, medium, high, default."),
        (FLASH, "xhigh", "gemini-3.8-flash has no effort xhigh; expected one of low, medium, high, default."),
        (FLASH, "minimal", "gemini-3.8-flash has no effort minimal; expected one of low, medium, high, default."),
        (
            "gemini:gemini-2.0-flash",
            "high",
            "gemini-2.0-flash has no levels of thinking. /model NAME switches to another model.",
        ),
    ],
)
async def test_an_effort_that_the_model_lacks_is_refused_with_its_own(
    model: str, name: str, error: str, open_harness: OpenHarness
) -> None:
    async with open_harness() as harness:
        session = await harness.prompt("hello", model=model)
        ran = await harness.run(f"/effort {name}", session.context_id)
        assert ran.state is TaskState.FAILED
        assert ran.end.error == error
        sent = thinking(harness)
        await harness.prompt("again", session.context_id)
        assert thinking(harness) == sent


async def test_a_default_effort_that_is_known_is_named(open_harness: OpenHarness) -> None:
    async with open_harness() as harness:
        session = await harness.prompt("hello", model="gemini:gemini-3.1-pro-preview")
        assert (await harness.run("/effort", session.context_id)).text.startswith("Effort: default (high). /effort")


async def test_an_effort_that_another_model_lacks_is_shown_as_it_is_sent(open_harness: OpenHarness) -> None:
    async with open_harness() as harness:
        session = await harness.prompt("hello", model="gemini:gemini-3.5-flash")
        await harness.run("/effort minimal", session.context_id)
        await harness.run(f"/model {FLASH}", session.context_id)
        shown = await harness.run("/effort", session.context_id)
        assert shown.text.startswith("Effort: minimal (gemini-3.8-flash has no such level, and gets low).")
        await harness.prompt("again", session.context_id)
        assert thinking(harness) == {"includeThoughts": True, "thinkingLevel": "low"}


async def test_a_model_that_ends_is_said_so(open_harness: OpenHarness) -> None:
    async with open_harness() as harness:
        chosen = await harness.run("/model gemini:gemini-3-pro-preview")
        assert chosen.text == (
            "This session continues with gemini-3-pro-preview (gemini)."
            " gemini-3-pro-preview is deprecated, or its provider lists it no more."
        )
        assert "is deprecated" in (await harness.run("/model", chosen.context_id)).text


async def test_the_values_of_the_arguments_are_offered(open_harness: OpenHarness) -> None:
    async with open_harness() as harness:
        lines = [item.line for item in await harness.engine.complete(CommandScope(), "/effort ")]
        assert lines == ["/effort default"]
        session = await harness.prompt("hello", model=FLASH)
        offered = await harness.engine.complete(CommandScope(context_id=session.context_id), "/effort ")
        assert [item.line for item in offered] == [f"/effort {name}" for name in ("low", "medium", "high", "default")]
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
