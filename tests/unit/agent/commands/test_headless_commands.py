import io
import json

import pytest

from isthmus.agent.approval.grants import grants_from_settings
from isthmus.agent.approval.policy import ApprovalMode, Policy
from isthmus.terminal.headless.headless import HeadlessOptions, run_headless
from support.command_harness import CommandHarness, OpenHarness
from support.scripted_wire import Call, Reply, Say

pytestmark = pytest.mark.anyio


async def headless(
    harness: CommandHarness, prompt: str, output: str = "text", resume: str | None = None
) -> tuple[int, str, str]:
    out, err = io.StringIO(), io.StringIO()
    workspace = str(harness.workspace)
    options = HeadlessOptions(prompt, output, {"workspace_path": workspace}, resume, workspace)
    return await run_headless(harness.engine, options, out, err), out.getvalue(), err.getvalue()


async def test_a_command_is_run_and_its_text_is_the_answer(open_harness: OpenHarness) -> None:
    async with open_harness() as harness:
        (harness.workspace / "GEMINI.md").write_text("Say please.")
        code, out, _ = await headless(harness, "/memory show")
        assert code == 0
        assert "Say please." in out
        code, out, _ = await headless(harness, "/memory show", "json")
        assert "Say please." in json.loads(out)["response"]
        assert harness.wire.model_requests == []


async def test_a_command_runs_in_the_session_that_is_resumed(open_harness: OpenHarness) -> None:
    async with open_harness() as harness:
        await headless(harness, "hello")
        code, out, _ = await headless(harness, "/stats", resume="latest")
        assert code == 0
        assert "test: 1 request" in out


async def test_what_cannot_be_started_is_bad_input(open_harness: OpenHarness) -> None:
    async with open_harness() as harness:
        code, _, err = await headless(harness, "/memory shwo")
        assert code == 42
        assert "/memory show" in err


@pytest.mark.parametrize("prompt", ["/etc/hosts: what is it?", "/nosuch thing", "/ is the root"])
async def test_a_prompt_that_begins_with_a_slash_is_a_prompt(open_harness: OpenHarness, prompt: str) -> None:
    async with open_harness() as harness:
        code, out, _ = await headless(harness, prompt)
        assert (code, out) == (0, "fine\n")
        assert harness.last_user_text() == prompt


async def test_a_question_of_a_command_is_refused_and_the_run_ends(open_harness: OpenHarness) -> None:
    async with open_harness() as harness:
        (harness.workspace / "GEMINI.md").write_text("Old.")
        code, out, err = await headless(harness, "/init")
        assert code == 130
        assert "stays as it is" in out
        assert "refused: init" in err


async def test_init_moves_no_guarded_file_to_the_one_that_it_writes(open_harness: OpenHarness) -> None:
    async with open_harness(
        policy=Policy(ApprovalMode.AUTO_EDIT, grants_from_settings(["init"]), may_ask=False)
    ) as harness:
        hooks = harness.workspace / ".claude" / "settings.json"
        hooks.parent.mkdir()
        hooks.write_text("{}\n")
        patch = "*** Begin Patch\n*** Update File: .claude/settings.json\n*** Move to: GEMINI.md\n*** End Patch\n"
        harness.replies += [Reply.of(Call("apply_patch", {"input": patch})), Reply.of(Say("ok"))]
        await headless(harness, "/init")
        assert hooks.exists()
        assert not (harness.workspace / "GEMINI.md").exists()


async def test_init_writes_its_file_anew_where_its_question_was_allowed(open_harness: OpenHarness) -> None:
    grants = grants_from_settings(["init"])
    async with open_harness(policy=Policy(ApprovalMode.AUTO_EDIT, grants, may_ask=False)) as harness:
        path = harness.workspace / "GEMINI.md"
        path.write_text("Old.")
        harness.replies += [
            Reply.of(Call("write_file", {"file_path": str(path), "content": "New."})),
            Reply.of(Say("ok")),
        ]
        code, _, err = await headless(harness, "/init")
        assert (code, path.read_text()) == (0, "New."), err
