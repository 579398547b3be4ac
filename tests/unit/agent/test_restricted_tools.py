from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from isthmus.agent.approval.restricted_tools import CommandRules, RestrictedTools, restrict
from isthmus.development_tool import ErrorDetails
from isthmus.settings.rules.rules import FolderRules, ToolList, ToolRules, parse_entry
from isthmus.settings.settings_file import SettingsError
from isthmus.tools.builtin import builtin_tools
from isthmus.tools.port.base import CallContext, Tool, ToolContext, ToolFailed, ToolKind, ToolResult
from isthmus.tools.port.failure import ToolFailure
from isthmus.tools.port.tool_set import ServerTools, ToolScope, ToolSet
from isthmus.tools.port.workspace import Workspace
from support.tool_calls import running

pytestmark = pytest.mark.anyio

FILE = "/p/.gemini/settings.json"


def rule(key: str, *entries: str) -> ToolList:
    return ToolList(key, FILE, tuple(map(parse_entry, entries)))


def excluding(*entries: str) -> ToolRules:
    return ToolRules(excluded=(rule("tools.exclude", *entries),))


def only(*entries: str) -> ToolRules:
    return ToolRules(core=(rule("tools.core", *entries),))


@dataclass
class Foreign:
    """A tool of an MCP server."""

    name: str
    server_tool_name: str
    description: str = "d"
    parameters: dict[str, Any] = field(default_factory=dict[str, Any])
    kind: ToolKind = ToolKind.OTHER

    def describe(self, arguments: Any) -> str:
        return self.name

    async def propose(self, arguments: Any, context: ToolContext) -> None:
        return None

    async def run(self, arguments: Any, context: CallContext) -> ToolResult:
        return ToolFailed(ErrorDetails("not run"))


def whole() -> ToolSet:
    foreign: list[Tool] = [Foreign("look", "look"), Foreign("mail__send", "send")]
    servers = (ServerTools("mail", ("look", "mail__send")),)
    own = builtin_tools().tools
    return replace(ToolSet.of(*own.values(), *foreign), servers=servers)


OWN = tuple(builtin_tools().tools)


@pytest.mark.parametrize(
    ("entry", "gone"),
    [
        ("write_file", {"write_file", "apply_patch", "notebook_edit"}),
        ("WriteFileTool", {"write_file", "apply_patch", "notebook_edit"}),
        ("replace", {"replace", "apply_patch", "notebook_edit"}),
        ("apply_patch", {"apply_patch"}),
        ("search_file_content", {"grep_search"}),
        ("ShellTool", {"run_shell_command"}),
        ("run_shell_command(rm)", set[str]()),
        ("look", {"look"}),
        ("send", {"mail__send"}),
        ("mail.send", {"mail__send"}),
        ("mcp_mail_send", {"mail__send"}),
        ("mcp_mail_*", {"look", "mail__send"}),
        ("mail", {"look", "mail__send"}),
        ("*", {*OWN, "look", "mail__send"}),
        ("nothing", set[str]()),
    ],
)
def test_an_excluded_tool_is_not_offered_and_its_refusal_names_the_setting(entry: str, gone: set[str]) -> None:
    tools = restrict(whole(), excluding(entry))
    assert {*whole().tools} - {*tools.tools} == gone
    assert set(tools.refusals) == gone
    assert all(
        text == f"{entry!r} in tools.exclude of /p/.gemini/settings.json excludes it"
        for text in tools.refusals.values()
    )
    assert {name for server in tools.servers for name in server.tools} == {"look", "mail__send"} - gone


@pytest.mark.parametrize(
    ("entries", "left"),
    [
        (("ReadFileTool", "GlobTool", "ShellTool(ls)"), {"read_file", "glob", "run_shell_command"}),
        (("read_file", "mcp_mail_*"), {"read_file", "look", "mail__send"}),
        (("look",), {"look"}),
        (("send",), set[str]()),
        ((), set[str]()),
    ],
)
def test_what_a_list_of_core_tools_does_not_name_is_not_offered(entries: tuple[str, ...], left: set[str]) -> None:
    assert set(restrict(whole(), only(*entries)).tools) == left


def test_every_list_of_core_tools_must_name_a_tool() -> None:
    rules = ToolRules(core=(rule("tools.core", "read_file", "glob"), rule("tools.core", "glob", "write_file")))
    assert set(restrict(whole(), rules).tools) == {"glob"}


def test_without_rules_the_tools_are_the_same() -> None:
    tools = whole()
    assert restrict(tools, ToolRules()) is tools


@pytest.mark.parametrize(
    ("rules", "command", "is_refused"),
    [
        (excluding("run_shell_command(rm)"), "ls", False),
        (excluding("run_shell_command(rm)"), "rmdir x", False),
        (excluding("run_shell_command(rm)"), "rm -rf x", True),
        (excluding("ShellTool(rm -rf)"), "rm -r x", False),
        (excluding("ShellTool(rm -rf)"), "ls && rm -rf x", True),
        (excluding("run_shell_command(rm)"), "/bin/rm x", True),
        (excluding("run_shell_command(rm)"), "r\\m x", True),
        (excluding("run_shell_command(rm)"), "'rm' x", True),
        (excluding("run_shell_command(rm)"), "ls | xargs rm", True),
        (excluding("run_shell_command(rm)"), "sudo rm x", True),
        (excluding("run_shell_command(rm)"), "X=rm; $X x", True),
        (excluding("run_shell_command(rm)"), "echo $(rm x)", True),
        (excluding("run_shell_command(rm)"), "if", True),
        (only("run_shell_command(git status)", "ShellTool(ls)"), "git status -s; ls", False),
        (only("run_shell_command(git status)"), "git push", True),
        (only("run_shell_command(ls)"), "/evil/ls", True),
        (only("run_shell_command(ls)"), "ls; rm x", True),
        (only("run_shell_command(ls)", "run_shell_command"), "rm x", False),
    ],
)
def test_a_forbidden_command_is_refused_in_every_spelling(rules: ToolRules, command: str, is_refused: bool) -> None:
    assert (CommandRules.of(rules).refusal(command) is not None) is is_refused


async def test_a_shell_with_forbidden_commands_neither_proposes_nor_runs_them(tmp_path: Path) -> None:
    tool = restrict(whole(), excluding("run_shell_command(touch)")).tools["run_shell_command"]
    context = ToolContext(Workspace(tmp_path), "c", tmp_path / "out", {"PATH": "/usr/bin:/bin"})
    arguments = {"command": f"touch {tmp_path}/x"}
    with pytest.raises(ToolFailure, match=r"'touch .*' is forbidden by 'run_shell_command\(touch\)' in tools\.exclude"):
        await tool.propose(arguments, context)
    with pytest.raises(ToolFailure, match="nothing was run"):
        await tool.run(arguments, running(context))
    assert not (tmp_path / "x").exists()
    assert await tool.propose({"command": "ls"}, context) is not None


def test_a_tool_with_the_effect_of_one_to_be_confirmed_is_asked_about_too() -> None:
    tools = restrict(whole(), ToolRules(confirmed=(rule("tools.confirmationRequired", "replace"),)))
    assert set(tools.always_asked) == {"replace", "apply_patch", "notebook_edit"}


def test_a_tool_to_be_confirmed_is_asked_about_each_time() -> None:
    tools = restrict(whole(), ToolRules(confirmed=(rule("tools.confirmationRequired", "ReadFileTool", "look"),)))
    assert set(tools.always_asked) == {"read_file", "look"}
    assert set(tools.tools) == set(whole().tools)


class Changing:
    """A source whose tools change when they are first refreshed."""

    def __init__(self) -> None:
        self.now = whole()
        self.released = 0

    async def tools(self, scope: ToolScope) -> ToolSet:
        return self.now

    async def renewed(self, scope: ToolScope, tools: ToolSet) -> ToolSet:
        assert "write_file" in tools.tools, "the source is asked about its own set"
        return self.now

    async def release(self, scope: ToolScope) -> None:
        self.released += 1


async def test_renewed_tools_are_the_same_while_unchanged_and_restricted_when_changed(tmp_path: Path) -> None:
    source = Changing()

    async def rules(folder: Path) -> FolderRules:
        return FolderRules(excluding("write_file"), "forbidden here", keeps_answers=False)

    tools = RestrictedTools(source, rules)
    scope = ToolScope(tmp_path, "c", "t")
    first = await tools.tools(scope)
    assert "write_file" not in first.tools
    assert (first.yolo_refusal, first.keeps_answers) == ("forbidden here", False)
    assert await tools.renewed(scope, first) is first
    source.now = ToolSet.of(*builtin_tools().tools.values())
    later = await tools.renewed(scope, first)
    assert set(later.tools) == {*OWN} - {"write_file", "apply_patch", "notebook_edit"}
    await tools.release(scope)
    assert source.released == 1


async def test_rules_that_cannot_be_read_let_nothing_run(tmp_path: Path) -> None:
    async def broken(folder: Path) -> FolderRules:
        raise SettingsError(f"{folder}/.gemini/settings.json, line 1, column 1: broken")

    with pytest.raises(ToolFailure, match="line 1, column 1: broken"):
        await RestrictedTools(Changing(), broken).tools(ToolScope(tmp_path, "c", "t"))


async def test_work_that_goes_on_keeps_the_last_good_rules_while_settings_are_broken(tmp_path: Path) -> None:
    problem: list[str] = []

    async def rules(folder: Path) -> FolderRules:
        if problem:
            raise SettingsError(problem[0])
        return FolderRules(excluding("write_file"))

    source = Changing()
    tools = RestrictedTools(source, rules)
    scope = ToolScope(tmp_path, "c", "t")
    first = await tools.tools(scope)
    problem.append("line 3, column 1: broken")
    source.now = ToolSet.of(*builtin_tools().tools.values())
    assert "write_file" not in (await tools.renewed(scope, first)).tools
    assert "write_file" not in (await tools.tools(replace(scope, goes_on=True))).tools
    with pytest.raises(ToolFailure, match="line 3, column 1: broken"):
        await tools.tools(scope)
    with pytest.raises(ToolFailure, match="line 3, column 1: broken"):
        await tools.tools(replace(scope, workspace=tmp_path / "other", goes_on=True))
    problem.clear()
    assert "write_file" not in (await tools.tools(scope)).tools
