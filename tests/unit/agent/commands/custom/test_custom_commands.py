import json
import logging
from pathlib import Path

import pytest

from isthmus.agent.approval.grants import grants_from_settings
from isthmus.agent.approval.policy import ApprovalMode, Policy
from isthmus.agent.commands.custom.template import TemplateError, parse
from isthmus.client import CommandMessage, CommandScope
from isthmus.development_tool import CommandExecutionStatus, ToolCallStatus
from isthmus.events import TaskState
from isthmus.settings.trust.first_sight import with_records
from isthmus.slash_commands.tree import find
from support.command_harness import CommandHarness, OpenHarness

pytestmark = pytest.mark.anyio


def write(folder: Path, name: str, prompt: str, description: str = "Does it.") -> Path:
    """Write a command to a user's or a project's .gemini folder."""
    path = folder / "commands" / f"{name}.toml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"description = {description!r}\nprompt = {json.dumps(prompt)}\n")
    return path


def project(harness: CommandHarness) -> Path:
    return harness.workspace / ".gemini"


async def test_a_custom_command_hands_its_prompt_to_the_model_in_the_same_task(open_harness: OpenHarness) -> None:
    async with open_harness() as harness:
        write(project(harness), "review", "Review the code. Focus: {{args}}!")
        ran = await harness.run("/review speed and size")
        assert ran.state is TaskState.COMPLETED
        assert ran.text == "fine"
        assert harness.last_user_text() == "Review the code. Focus: speed and size!"
        await harness.prompt("go on", ran.context_id)
        assert "Focus: speed and size!" in harness.said()


async def test_sub_folders_are_namespaces_in_the_tree_and_with_a_colon(open_harness: OpenHarness) -> None:
    async with open_harness() as harness:
        write(project(harness), "git/commit", "Commit.", "Writes a commit.")
        write(harness.home, "git/log", "Log.")
        tree = await harness.engine.commands(CommandScope())
        commit = find(("git", "commit"), tree)
        assert commit is not None
        assert commit.description == "Writes a commit."
        assert find(("git", "log"), tree) is not None
        for line in ("/git:commit", "/git commit"):
            await harness.run(line)
            assert harness.last_user_text() == "Commit."
        execution = await harness.execute("/git")
        assert execution.status is CommandExecutionStatus.FAILED_TO_START
        assert "commit, log" in (execution.message or "")
        execution = await harness.execute("/git comit")
        assert "/git commit" in (execution.message or "")


async def test_a_projects_command_counts_more_than_the_users(open_harness: OpenHarness) -> None:
    async with open_harness() as harness:
        write(harness.home, "plan", "The user's.")
        write(project(harness), "plan", "The project's.")
        await harness.run("/plan")
        assert harness.last_user_text() == "The project's."


async def test_arguments_without_a_place_are_put_behind_as_typed(open_harness: OpenHarness) -> None:
    async with open_harness() as harness:
        write(project(harness), "git/fix", "Fix it.")
        await harness.run("/git:fix issue 12")
        assert harness.last_user_text() == "Fix it.\n\n/git:fix issue 12"
        await harness.run("/git:fix")
        assert harness.last_user_text() == "Fix it."


async def test_a_broken_file_is_named_and_hurts_no_other(
    open_harness: OpenHarness, caplog: pytest.LogCaptureFixture
) -> None:
    async with open_harness() as harness:
        good = write(project(harness), "good", "Good.")
        for name, text in {
            "syntax": "prompt = ",
            "missing": "description = 'x'",
            "number": "prompt = 3",
            "brace": "prompt = '!{ls'",
        }.items():
            (good.parent / f"{name}.toml").write_text(text)
        (good.parent / "latin.toml").write_bytes(b"prompt = '\xff'")
        with caplog.at_level(logging.WARNING):
            helped = await harness.run("/help")
        for name in ("syntax", "missing", "number", "brace", "latin"):
            assert f"{name}.toml is not used" in helped.text
            assert f"{name}.toml is not used" in caplog.text
        await harness.run("/good")
        assert harness.last_user_text() == "Good."


async def test_a_description_has_nothing_that_controls_a_terminal(open_harness: OpenHarness) -> None:
    async with open_harness() as harness:
        path = write(project(harness), "red", "Red.")
        path.write_text('prompt = "Red."\ndescription = "It \\u001b[31mis\\u0007 \\n red"\n')
        red = find(("red",), await harness.engine.commands(CommandScope()))
        assert red is not None
        assert red.description == "It [31mis red"


async def test_an_unknown_command_tells_where_broken_ones_are_named(open_harness: OpenHarness) -> None:
    async with open_harness() as harness:
        write(project(harness), "broken", "Broken.").write_text("prompt = ")
        execution = await harness.execute("/broken")
        assert execution.status is CommandExecutionStatus.FAILED_TO_START
        assert "/help lists them, and names custom ones that cannot be used" in (execution.message or "")


async def test_a_built_in_command_keeps_its_name_and_the_custom_one_gets_another(open_harness: OpenHarness) -> None:
    async with open_harness() as harness:
        write(project(harness), "about", "About us.")
        write(harness.home, "memory/show", "Show it.")
        assert "Isthmus" in (await harness.run("/about")).text
        await harness.run("/project.about")
        assert harness.last_user_text() == "About us."
        await harness.run("/user.memory show")
        assert harness.last_user_text() == "Show it."
        helped = await harness.run("/help")
        assert "/about is named /project.about, since /about is built in" in helped.text


async def test_a_shell_command_waits_for_the_user_and_its_output_is_put_in(open_harness: OpenHarness) -> None:
    async with open_harness() as harness:
        write(project(harness), "look", "Made: !{touch made; echo 'a { b }'} end")
        ran = await harness.run("/look")
        assert ran.status is CommandExecutionStatus.AWAITING_SHELL_CONFIRMATION
        assert ran.state is TaskState.INPUT_REQUIRED
        assert not (harness.workspace / "made").exists()
        request = ran.calls[0].confirmation_request
        assert request is not None
        assert request.execute_details is not None
        assert request.execute_details.command == "touch made; echo 'a { b }'"
        done = await harness.answer(ran)
        assert done.state is TaskState.COMPLETED
        assert (harness.workspace / "made").exists()
        assert harness.last_user_text() == "Made: a { b } end"


async def test_a_refusal_cancels_the_command_and_the_model_is_not_asked(open_harness: OpenHarness) -> None:
    async with open_harness() as harness:
        write(project(harness), "look", "!{touch one} !{touch two}")
        ran = await harness.run("/look")
        assert len(ran.calls) == 2
        half = await harness.answer(ran, call=ran.calls[0])
        assert half.state is TaskState.INPUT_REQUIRED
        done = await harness.answer(ran, "cancel", ran.calls[1])
        assert done.state is TaskState.CANCELED
        assert "was not allowed" in done.text
        assert not (harness.workspace / "two").exists()
        assert harness.wire.model_requests == []


async def test_arguments_are_quoted_inside_a_shell_command_and_nowhere_else(open_harness: OpenHarness) -> None:
    async with open_harness(policy=Policy(ApprovalMode.YOLO)) as harness:
        write(harness.home, "say", "{{args}}: !{printf %s {{args}}}")
        args = "it's; touch injected $(touch injected) `touch injected`"
        ran = await harness.run(f"/say {args}")
        assert ran.state is TaskState.COMPLETED
        assert harness.last_user_text() == f"{args}: {args}"
        assert not (harness.workspace / "injected").exists()


async def test_what_is_put_in_is_not_looked_at_for_further_marks(open_harness: OpenHarness) -> None:
    async with open_harness(policy=Policy(ApprovalMode.YOLO)) as harness:
        (harness.workspace / "a.txt").write_text("!{touch injected} {{args}} @{b.txt}")
        write(project(harness), "read", "@{a.txt} {{args}}")
        await harness.run("/read !{touch injected}")
        assert harness.last_user_text() == "!{touch injected} {{args}} @{b.txt} !{touch injected}"
        assert not (harness.workspace / "injected").exists()


async def test_where_nobody_can_be_asked_the_command_fails_and_says_what_would_allow_it(
    open_harness: OpenHarness,
) -> None:
    async with open_harness(policy=Policy(may_ask=False)) as harness:
        write(harness.home, "look", "!{touch made}")
        ran = await harness.run("/look")
        assert (ran.state, ran.end.reason) == (TaskState.FAILED, "shell_command_failed")
        assert "--allowed-tools" in (ran.end.error or "")
        assert ran.status is CommandExecutionStatus.STARTED


async def test_a_command_that_exits_with_an_error_says_so_in_the_prompt(open_harness: OpenHarness) -> None:
    async with open_harness(policy=Policy(ApprovalMode.YOLO)) as harness:
        write(harness.home, "look", "!{echo oops; exit 3}")
        await harness.run("/look")
        assert harness.last_user_text() == "oops\nExit Code: 3"


async def test_a_shell_prefix_that_is_always_allowed_is_not_asked_again_in_the_session(
    open_harness: OpenHarness,
) -> None:
    async with open_harness() as harness:
        write(harness.home, "look", "!{touch made}")
        ran = await harness.run("/look")
        await harness.answer(ran, "proceed_always_prefix")
        again = await harness.run("/look", ran.context_id)
        assert again.status is CommandExecutionStatus.STARTED
        assert again.state is TaskState.COMPLETED


@pytest.mark.slow
@pytest.mark.parametrize("mode", [ApprovalMode.YOLO, ApprovalMode.AUTO_EDIT, ApprovalMode.DEFAULT])
async def test_a_shell_command_of_a_project_that_is_not_trusted_is_asked_each_time(
    open_harness: OpenHarness, mode: ApprovalMode
) -> None:
    allowed = grants_from_settings(["run_shell_command(touch)", "run_shell_command"])
    async with open_harness(policy=Policy(mode, allowed)) as harness:
        write(project(harness), "look", "!{touch made}")
        ran = await harness.run("/look", approval_mode=mode, allowed_tools=["run_shell_command"])
        for _ in range(2):
            assert ran.status is CommandExecutionStatus.AWAITING_SHELL_CONFIRMATION
            assert ran.state is TaskState.INPUT_REQUIRED
            request = ran.calls[0].confirmation_request
            assert request is not None
            assert [option.id for option in request.options] == ["proceed_once", "cancel"]
            assert request.options[0].description == "/look comes with the project, and its folder is not trusted"
            assert not (harness.workspace / "made").exists()
            assert (await harness.answer(ran)).state is TaskState.COMPLETED
            (harness.workspace / "made").unlink()
            ran = await harness.run("/look", ran.context_id)


async def test_a_shell_command_of_a_trusted_project_follows_the_policy(open_harness: OpenHarness) -> None:
    asked: list[Path] = []

    def trusts(folder: Path) -> bool:
        asked.append(folder)
        return True

    async with open_harness(policy=Policy(ApprovalMode.YOLO), trusts=trusts) as harness:
        write(project(harness), "look", "!{touch made}")
        ran = await harness.run("/look")
        assert ran.state is TaskState.COMPLETED
        assert (harness.workspace / "made").exists()
        assert set(asked) == {harness.workspace}


@pytest.mark.parametrize("is_changed", [False, True])
async def test_a_shell_command_that_is_new_in_a_trusted_project_is_asked_each_time(
    open_harness: OpenHarness, is_changed: bool
) -> None:
    async with open_harness(policy=Policy(ApprovalMode.YOLO)) as harness:
        trusts = with_records(lambda _: True, harness.home)
        if is_changed:
            write(project(harness), "look", "!{touch before}")
        assert trusts(harness.workspace)
    async with open_harness(policy=Policy(ApprovalMode.YOLO), trusts=trusts) as harness:
        write(project(harness), "look", "!{touch made}")
        ran = await harness.run("/look")
        assert ran.state is TaskState.INPUT_REQUIRED
        request = ran.calls[0].confirmation_request
        assert request is not None
        assert request.options[0].description == (
            "/look comes with the project, and is new or changed since you trusted its folder"
        )
        assert not (harness.workspace / "made").exists()


@pytest.mark.parametrize("mode", [ApprovalMode.YOLO, ApprovalMode.PLAN])
async def test_an_untrusted_projects_shell_command_is_refused_where_nobody_can_be_asked(
    open_harness: OpenHarness, mode: ApprovalMode
) -> None:
    async with open_harness(policy=Policy(mode, may_ask=False)) as harness:
        write(project(harness), "look", "!{touch made}")
        ran = await harness.run("/look")
        assert (ran.state, ran.end.reason) == (TaskState.FAILED, "shell_command_failed")
        assert ("TRUST_FOLDER" if mode is ApprovalMode.YOLO else "plan mode") in (ran.end.error or "")
        assert not (harness.workspace / "made").exists()
        assert harness.wire.model_requests == []


async def test_arguments_in_quotes_of_a_shell_command_stay_data(open_harness: OpenHarness) -> None:
    async with open_harness(policy=Policy(ApprovalMode.YOLO)) as harness:
        write(harness.home, "say", "a !{printf %s \"<{{args}}>\"; printf %s '<{{args}}>'}")
        args = "'; touch injected; ' \"; touch injected; \" $(touch injected)"
        ran = await harness.run(f"/say {args}")
        assert ran.state is TaskState.COMPLETED
        assert harness.last_user_text() == f"a <{args}><{args}>"
        assert not (harness.workspace / "injected").exists()


async def test_arguments_that_cannot_be_quoted_where_they_stand_fail_the_command(open_harness: OpenHarness) -> None:
    async with open_harness(policy=Policy(ApprovalMode.YOLO)) as harness:
        write(harness.home, "say", "!{echo `ls {{args}}`; touch made}")
        ran = await harness.run("/say a")
        assert ran.state is TaskState.FAILED
        assert "cannot be quoted" in (ran.end.error or "")
        assert not (harness.workspace / "made").exists()


async def test_files_and_listings_are_put_in_and_ignore_files_count(open_harness: OpenHarness) -> None:
    async with open_harness() as harness:
        for name in ("src/a.py", "src/b/c.py", "src/out/made.o"):
            path = harness.workspace / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(name)
        (harness.workspace / ".git").mkdir()
        (harness.workspace / ".gitignore").write_text("out/\n")
        write(project(harness), "read", "@{src/a.py}|@{src}|@{src/{{args}}.py}")
        await harness.run("/read b/c")
        assert harness.last_user_text() == "src/a.py|src/a.py\nsrc/b/c.py|src/b/c.py"


@pytest.mark.parametrize(
    ("mark", "reason", "says"),
    [
        ("@{picture.png}", "binary_file", "image"),
        ("@{none.txt}", "file_not_found", "none.txt"),
        ("@{../outside.txt}", "outside_workspace", "outside the workspace"),
        ("@{closed.txt}", "ignored_file", "closed.txt"),
        ("@{link.txt}", "outside_workspace", "outside the workspace"),
        ("@{out/made.o}", "ignored_file", "ignore file"),
    ],
)
async def test_a_file_that_cannot_be_put_in_fails_the_command(
    open_harness: OpenHarness, mark: str, reason: str, says: str
) -> None:
    async with open_harness() as harness:
        (harness.workspace / "picture.png").write_bytes(b"\x89PNG\r\n\x1a\n\0\0\0")
        (harness.workspace / "closed.txt").write_text("x")
        (harness.workspace / ".geminiignore").write_text("closed.txt\n")
        (harness.workspace / ".gitignore").write_text("out/\n")
        (harness.workspace / ".git").mkdir()
        (harness.workspace / "out").mkdir()
        (harness.workspace / "out/made.o").write_text("x")
        (harness.workspace.parent / "outside.txt").write_text("SECRET")
        (harness.workspace / "link.txt").symlink_to(harness.workspace.parent / "outside.txt")
        write(project(harness), "read", f"!{{touch made}} {mark}")
        ran = await harness.run("/read")
        assert (ran.state, ran.end.reason) == (TaskState.FAILED, reason)
        assert says in (ran.end.error or "")
        assert harness.wire.model_requests == []
        assert ran.calls == []


async def test_a_projects_file_that_leads_out_of_it_is_no_command(open_harness: OpenHarness) -> None:
    async with open_harness() as harness:
        outside = write(harness.workspace.parent / "elsewhere", "evil", "Evil.")
        (project(harness) / "commands").mkdir(parents=True)
        (project(harness) / "commands/evil.toml").symlink_to(outside)
        execution = await harness.engine.execute(CommandMessage(("evil",)))
        assert execution.status is CommandExecutionStatus.FAILED_TO_START
        assert "leads out of the project" in (await harness.run("/help")).text


async def test_links_that_lead_in_a_circle_hurt_no_other_command(open_harness: OpenHarness) -> None:
    async with open_harness() as harness:
        write(project(harness), "good", "Good.")
        commands = project(harness) / "commands"
        (commands / "circle.toml").symlink_to("circle.toml")
        (commands / "around").symlink_to(commands)
        (commands / "dead.toml").symlink_to(harness.workspace / "none.toml")
        (commands / "folder.toml").mkdir()
        (harness.home / "GEMINI.md").symlink_to("GEMINI.md")
        helped = await harness.run("/help")
        assert "circle.toml is not used" in helped.text
        assert "dead.toml is not used" in helped.text
        await harness.run("/good")
        assert harness.last_user_text() == "Good."


async def test_a_folder_of_commands_that_leads_in_a_circle_leaves_the_built_in_ones(open_harness: OpenHarness) -> None:
    async with open_harness() as harness:
        (harness.workspace / ".gemini").symlink_to(".gemini")
        (harness.home / "commands").symlink_to("commands")
        assert "Isthmus" in (await harness.run("/about")).text


async def test_a_command_that_was_changed_while_it_waited_is_not_run(open_harness: OpenHarness) -> None:
    async with open_harness() as harness:
        path = write(project(harness), "look", "!{touch one}")
        ran = await harness.run("/look")
        path.write_text("prompt = '!{touch two}'")
        done = await harness.answer(ran)
        assert (done.state, done.end.reason) == (TaskState.FAILED, "command_changed")
        assert not (harness.workspace / "one").exists()
        assert not (harness.workspace / "two").exists()
        assert [call.status for call in done.calls] == [ToolCallStatus.FAILED]


async def test_a_command_that_is_gone_while_it_waited_fails(open_harness: OpenHarness) -> None:
    async with open_harness() as harness:
        path = write(project(harness), "look", "!{touch one}")
        ran = await harness.run("/look")
        path.unlink()
        done = await harness.answer(ran)
        assert (done.state, done.end.reason) == (TaskState.FAILED, "unknown_command")
        assert not (harness.workspace / "one").exists()


@pytest.mark.parametrize(
    ("text", "commands", "files"),
    [
        ("a !{ls {x} {{args}}} b @{f{1}.txt}", ("ls {x} 'A B'",), ("f{1}.txt",)),
        ("!{} @{ } ! {x} @ {y}", (), ()),
        ("!{a}!{b}", ("a", "b"), ()),
    ],
)
def test_braces_are_balanced(text: str, commands: tuple[str, ...], files: tuple[str, ...]) -> None:
    template = parse(text)
    assert template.shell_commands("A B") == commands
    assert template.files("A B") == files


def test_an_open_brace_is_refused_with_its_line() -> None:
    with pytest.raises(TemplateError, match="line 2"):
        parse("a\n!{b { c }")
