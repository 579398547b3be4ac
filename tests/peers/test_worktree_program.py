"""``--worktree``: the whole program in a worktree of the user's repository, with real git."""

import json
import re
import signal
from pathlib import Path

import pytest

from isthmus.mcp_host.config.folder_trust import TrustRule, state_trust
from support.git_repositories import git
from support.isthmus_program import InProcess
from support.loaded_program import LoadedProgram
from support.project_files import write
from support.session_terminal import PROMPT, Sessions

SCRIPT = """
name: practice
scenarios:
  - prompt: 'write it'
    replies:
      - call: {name: write_file, arguments: {file_path: new.txt, content: "made\\n"}}
      - text: Written.
  - prompt: 'where'
    replies:
      - call: {name: run_shell_command, arguments: {command: "pwd; git branch --show-current"}}
      - text: '{{result}}'
  - prompt: 'search'
    replies:
      - call: {name: grep_search, arguments: {pattern: "kept"}}
      - text: '{{result}}'
  - prompt: 'commit'
    replies:
      - call:
          name: run_shell_command
          arguments: {command: "git -c user.name=a -c user.email=a@b commit -qm own --allow-empty"}
      - text: Committed.
  - prompt: '.'
    replies: [{text: 'You said: {{prompt}}'}]
"""
PROMPT_OF_YOLO = r"(?m)^yolo \u203a ?$"


@pytest.fixture
def sessions(tmp_path: Path, workspace: Path, loaded_isthmus: LoadedProgram) -> Sessions:
    git(workspace, "init", "-q", "-b", "main")
    for name, text in {"kept.txt": "kept\n", ".gitignore": ".env\n", "sub/file": "x\n"}.items():
        (workspace / name).parent.mkdir(exist_ok=True)
        (workspace / name).write_text(text, "utf-8")
    git(workspace, "add", "-A")
    git(workspace, "commit", "-qm", "first")
    return Sessions(tmp_path, SCRIPT, workspace, loaded_isthmus)


def test_a_program_that_a_commit_brings_does_not_start_in_a_worktree(
    sessions: Sessions, isthmus_here: InProcess
) -> None:
    workspace, marker = sessions.workspace, sessions.workspace.parent / "ran"
    hook = {"hooks": {"UserPromptSubmit": [{"hooks": [{"type": "command", "command": f"touch {marker}"}]}]}}
    state_trust(Path.home(), workspace, TrustRule.FOLDER)
    assert isthmus_here(*sessions.options, "-w", "before", "-p", "hello")[0] == 0
    write(workspace, ".claude/settings.json", hook)
    git(workspace, "add", "-A")
    git(workspace, "commit", "-qm", "update")
    status, output, errors = isthmus_here(*sessions.options, "-w", "after", "-p", "hello")
    assert (status, output.strip()) == (0, "You said: hello")
    assert f"hook UserPromptSubmit (.claude/settings.json): touch {marker}" in errors
    assert not marker.exists()
    assert isthmus_here("trust", str(workspace))[0] == 0
    assert isthmus_here(*sessions.options, "-w", "agreed", "-p", "hello")[0] == 0
    assert marker.exists()


def test_the_work_of_a_prompt_is_on_a_branch_and_the_users_files_are_untouched(
    sessions: Sessions, isthmus_here: InProcess
) -> None:
    (sessions.workspace / "kept.txt").write_text("of the user\n", "utf-8")
    before = git(sessions.workspace, "status", "--short")
    status, output, errors = isthmus_here(*sessions.options, "-y", "-w", "fix", "-p", "write it", "-o", "json")
    assert status == 0, errors
    assert json.loads(output)["response"] == "Written."
    assert git(sessions.workspace, "status", "--short") == before
    assert git(sessions.workspace, "log", "-1", "--format=%an: %s", "isthmus/fix") == "Isthmus: write it"
    folder = sessions.workspace / ".isthmus/worktrees/fix"
    assert errors.splitlines()[-5:] == [
        "isthmus: the work is on the branch isthmus/fix (1 commit, 1 file changed, 1 insertion(+)), its files are in "
        f"{folder}",
        "isthmus:   see it:  git diff HEAD...isthmus/fix",
        "isthmus:   take it: git merge isthmus/fix",
        "isthmus:   go on:   isthmus --worktree fix --continue",
        f"isthmus:   remove:  git worktree remove {folder} && git branch -D isthmus/fix",
    ]
    assert "your changes that are not committed are not in it" in errors
    git(sessions.workspace, "merge", "-q", "isthmus/fix")
    assert (sessions.workspace / "new.txt").read_text("utf-8") == "made\n"
    git(sessions.workspace, "worktree", "remove", str(folder))


def test_a_worktree_without_changes_is_removed_by_itself(sessions: Sessions, isthmus_here: InProcess) -> None:
    status, output, errors = isthmus_here(*sessions.options, "-y", "-p", "Where: where?", "--worktree")
    assert status == 0, errors
    found = re.search(r"/\.isthmus/worktrees/(where-where-[0-9a-f]{6})\b", output)
    assert found is not None, output
    assert f"isthmus/{found[1]}" in output
    assert errors.splitlines()[-1] == f"isthmus: nothing was changed in the worktree {found[1]}, which was removed"
    assert git(sessions.workspace, "worktree", "list", "--porcelain").count("worktree ") == 1
    assert git(sessions.workspace, "branch", "--format=%(refname:short)") == "main"
    assert git(sessions.workspace, "status", "--short") == ""


def test_a_session_goes_on_in_its_worktree_by_name_or_by_id(sessions: Sessions, isthmus_here: InProcess) -> None:
    options = (*sessions.options, "-y", "-o", "json")
    _, output, _ = isthmus_here(*options, "-w", "fix", "-p", "write it")
    session = json.loads(output)["session_id"]
    status, output, errors = isthmus_here(*options, "-w", "fix", "-c", "-p", "where")
    assert (status, json.loads(output)["session_id"]) == (0, session), errors
    assert "as an earlier session left it" in errors
    status, output, errors = isthmus_here(*options, "--resume", session, "-p", "commit")
    assert (status, json.loads(output)["session_id"]) == (0, session), errors
    assert "the work is on the branch isthmus/fix (2 commits" in errors
    git(sessions.workspace, "worktree", "remove", str(sessions.workspace / ".isthmus/worktrees/fix"))
    status, output, errors = isthmus_here(*options, "-w", "fix", "-p", "hello")
    assert status == 42
    assert "the branch isthmus/fix exists" in json.loads(output)["error"]["message"]
    status, output, errors = isthmus_here(*options, "-w", "fix", "--continue", "-p", "where")
    assert (status, json.loads(output)["session_id"]) == (0, session), errors
    assert (sessions.workspace / ".isthmus/worktrees/fix/new.txt").exists()


def test_a_conversation_in_a_worktree_ends_with_what_became_of_it(sessions: Sessions) -> None:
    with sessions.terminal("-y", "-w", "talk", "-i", "write it") as terminal:
        terminal.wait_for("Written.").wait_for(PROMPT_OF_YOLO).press("search\r").wait_for(r"kept\.txt")
        terminal.wait_for(PROMPT_OF_YOLO).press("/quit\r")
        terminal.wait_for(r"To come back to this session: isthmus --worktree talk --resume [0-9a-f]{8}")
        terminal.wait_for(r"the work is on the branch isthmus/talk \(1 commit").wait_for("git branch -D isthmus/talk")
    assert git(sessions.workspace, "show", "isthmus/talk:new.txt") == "made"
    with sessions.terminal("-w", "talk", "-c") as terminal:
        terminal.wait_for("Written.").wait_for(PROMPT)
        with sessions.terminal("-w", "talk") as second:
            second.wait_for("another session works in the worktree talk: choose another name")
        terminal.press("\x04").wait_for("the work is on the branch isthmus/talk")


def test_two_sessions_work_in_one_repository_at_the_same_time(sessions: Sessions) -> None:
    with (
        sessions.terminal("-y", "-w", "one", "-i", "write it") as one,
        sessions.terminal("-y", "-w", "two", "-i", "write it") as two,
    ):
        for terminal in (one, two):
            terminal.wait_for("Written.").wait_for(PROMPT_OF_YOLO)
        two.press("\x04").wait_for("branch isthmus/two")
        one.press("\x04").wait_for("branch isthmus/one")
    assert git(sessions.workspace, "show", "isthmus/one:new.txt") == git(
        sessions.workspace, "show", "isthmus/two:new.txt"
    )
    assert not (sessions.workspace / "new.txt").exists()


def test_a_killed_session_leaves_a_worktree_that_goes_on(sessions: Sessions, isthmus_here: InProcess) -> None:
    with sessions.terminal("-y", "-w", "fix", "-i", "write it") as terminal:
        terminal.wait_for("Written.").wait_for(PROMPT_OF_YOLO)
        terminal.signal(signal.SIGKILL).wait_for_exit()
    (sessions.workspace.parent / "further").mkdir()
    further = ("--include-directories", "../further,sub")
    status, output, errors = isthmus_here(*sessions.options, "-y", "-w", "fix", "-c", *further, "-p", "where")
    assert status == 0, errors
    assert ".isthmus/worktrees/fix" in output
    assert "the work is on the branch isthmus/fix (1 commit" in errors


@pytest.mark.parametrize(
    ("arguments", "advice"),
    [
        (("-w", "Fix the bug"), "cannot be the name of a worktree"),
        (("-w", "", "-c"), "needs the name of a worktree to go on in: there are none"),
        (("-w", "x", "--list-sessions"), "list them in the worktree's folder"),
    ],
)
def test_a_wrong_use_of_worktrees_says_what_to_do(
    sessions: Sessions, isthmus_here: InProcess, arguments: tuple[str, ...], advice: str
) -> None:
    prompt = () if "--list-sessions" in arguments else ("-p", "hello")
    status, _, errors = isthmus_here(*sessions.options, *arguments, *prompt)
    assert (status, advice in errors) == (42, True), errors
