import asyncio
import gc
from dataclasses import replace
from pathlib import Path

import pytest

from isthmus.agent.hooks.verdicts import HookOutcome
from isthmus.parts.hook_processes import MAXIMUM_OUTPUT_BYTES, MAXIMUM_REQUEST_BYTES, HookProcesses
from isthmus.settings.rules.hooks import Hook, HookDialect, HookEvent
from support.isthmus_program import process_ends
from support.waiting import eventually_async

pytestmark = pytest.mark.anyio


def hook(command: str, *, seconds: float = 20, arguments: tuple[str, ...] | None = None, claude: bool = False) -> Hook:
    dialect = HookDialect.CLAUDE if claude else HookDialect.GEMINI
    return Hook(dialect, HookEvent.BEFORE_TOOL, "BeforeTool", command, "w", arguments=arguments, seconds=seconds)


async def run(one: Hook, folder: Path, given: bytes = b"{}") -> HookOutcome:
    environment = {
        "PATH": "/usr/bin:/bin",
        "GEMINI_PROJECT_DIR": str(folder),
        "CLAUDE_PROJECT_DIR": str(folder),
    }
    return await HookProcesses().run(one, given, folder, environment)


async def test_a_hook_gets_its_input_in_the_folder_and_says_how_it_ended(tmp_path: Path) -> None:
    outcome = await run(hook("cat; pwd; echo wrong >&2; exit 3"), tmp_path, b"the input\n")
    assert outcome == HookOutcome(3, f"the input\n{tmp_path}\n", "wrong\n")


async def test_a_hook_that_does_not_read_its_input_ends_well(tmp_path: Path) -> None:
    assert (await run(hook("exit 0"), tmp_path, b"x" * 10_000_000)).status == 0


async def test_input_that_a_hook_does_not_read_leaves_no_error_in_the_log(tmp_path: Path) -> None:
    errors: list[str] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: errors.append(context["message"]))
    for size in (300, 10_000_000, 300, 10_000_000):
        await run(hook("exit 0"), tmp_path, b"x" * size)
        gc.collect()  # Python 3.11.2 reports an error that nobody took when it is collected
    assert errors == []


async def test_a_hook_past_its_deadline_is_ended_with_its_children(tmp_path: Path) -> None:
    outcome = await run(hook("sleep 600 & echo $! > pid; sleep 600", seconds=0.5), tmp_path)
    assert outcome == HookOutcome(None, failure="it took longer than 0.5 s and was ended")
    pid = int((tmp_path / "pid").read_text())
    process_ends(pid)


async def test_a_child_that_keeps_the_output_open_does_not_hold_the_hook(tmp_path: Path) -> None:
    outcome = await run(hook("sleep 600 & echo done"), tmp_path)
    assert (outcome.status, outcome.output) == (0, "done\n")


async def test_endless_output_is_cut(tmp_path: Path) -> None:
    outcome = await run(hook("head -c 5000000 /dev/zero; exit 2"), tmp_path)
    assert (outcome.status, len(outcome.output), outcome.is_cut) == (2, MAXIMUM_OUTPUT_BYTES, True)


async def test_a_hook_around_a_model_request_may_return_a_whole_conversation(tmp_path: Path) -> None:
    for size, is_cut in ((5_000_000, False), (MAXIMUM_REQUEST_BYTES + 1, True)):
        one = replace(hook(f"head -c {size} /dev/zero"), event=HookEvent.BEFORE_MODEL)
        outcome = await run(one, tmp_path)
        assert (len(outcome.output), outcome.is_cut) == (min(size, MAXIMUM_REQUEST_BYTES), is_cut)


async def test_a_program_that_is_not_there_is_an_outcome(tmp_path: Path) -> None:
    assert (await run(hook("/missing/program"), tmp_path)).status == 127
    outcome = await run(hook("/missing/program", arguments=()), tmp_path)
    assert outcome.status is None
    assert "cannot be started" in outcome.failure
    assert (await run(hook("true"), tmp_path / "missing")).status is None


@pytest.mark.parametrize(
    "command",
    ["$GEMINI_PROJECT_DIR/check a", '"$GEMINI_PROJECT_DIR"/check a', "${GEMINI_PROJECT_DIR}/check a"],
)
async def test_a_folder_with_spaces_is_one_word(tmp_path: Path, command: str) -> None:
    folder = tmp_path / "with two spaces"
    folder.mkdir()
    script = folder / "check"
    script.write_text('#!/bin/sh\necho "$1"\n', "utf-8")
    script.chmod(0o755)
    assert await run(hook(command), folder) == HookOutcome(0, "a\n")
    place = "${CLAUDE_PROJECT_DIR}/check"
    assert await run(hook(place, arguments=("b c",), claude=True), folder) == HookOutcome(0, "b c\n")


async def test_a_cancelled_hook_leaves_nothing_running(tmp_path: Path) -> None:
    task = asyncio.create_task(run(hook("echo $$ > pid; sleep 600"), tmp_path))
    file = tmp_path / "pid"
    pid = int(await eventually_async(lambda: file.exists() and file.read_text(), what="the hook runs"))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not Path(f"/proc/{pid}").exists()
