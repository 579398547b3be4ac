"""A server with hundreds of tools: the model calls those it searched for, with every provider, after a restart too."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from isthmus.mcp_host.config.folder_trust import TrustRule, state_trust
from isthmus.settings import ReadOnlyTools
from isthmus.tools.port.base import ToolKind
from isthmus.tools.port.servers import ServerState
from isthmus.tools.port.tool_set import CALL_TOOL, SEARCH_TOOL, ToolScope
from support.gemini_wire import GeminiWire
from support.isolation import IsolatedFolders
from support.loaded_program import LoadedProgram
from support.mcp_hosting import hosting, scripted, status_when, write_servers
from support.model_bench import GEMINI, Provider, each_provider
from support.project_files import agree
from support.scripted_wire import Call, Reply, Say

COUNT = 300


def many(count: int = COUNT, **settings: Any) -> dict[str, Any]:
    # Required: waited for, however long it takes to start on a busy machine.
    return scripted("many-records", str(count), required=True, **settings)


def lists_hints(folder: Path) -> dict[str, Any]:
    """Return a server, fast to start, with a read-only tool, a destructive one, and one without annotations."""
    schema: dict[str, Any] = {"type": "object", "properties": {}}
    hints: dict[str, Any] = {"look": {"readOnlyHint": True}, "wipe": {"destructiveHint": True}, "says_nothing": {}}
    tools = [{"name": name, "inputSchema": schema, "annotations": found} for name, found in hints.items()]
    (folder / "tools.json").write_text(json.dumps(tools), encoding="utf-8")
    return scripted("listed", str(folder / "starts"), str(folder / "tools.json"))


def declared(provider: Provider, body: Mapping[str, Any]) -> list[str]:
    """Return the names of the tools that a request declares."""
    match provider.name:
        case "gemini":
            return [item["name"] for group in body["tools"] for item in group["functionDeclarations"]]
        case "anthropic" | "responses":
            return [item["name"] for item in body["tools"]]
        case _:
            return [item["function"]["name"] for item in body["tools"]]


@each_provider
def test_of_hundreds_of_tools_those_are_called_that_were_searched(
    isolated_folders: IsolatedFolders,
    workspace: Path,
    monkeypatch: pytest.MonkeyPatch,
    provider: Provider,
    loaded_isthmus: LoadedProgram,
) -> None:
    few = {**lists_hints(isolated_folders.home), "trust": True, "alwaysLoad": True}
    write_servers(isolated_folders.home, {"many": many(trust=True), "few": few})
    replies = [
        Reply.of(Call(SEARCH_TOOL, {"query": "record number 4 echidna", "limit": 2})),
        Reply.of(Call(CALL_TOOL, {"name": "record_4_echidna", "arguments": {"note": "spiny"}})),
        Reply.of(Say("Kept.")),
        Reply.of(Say("Still here.")),
    ]
    with provider.wire(replies) as wire:
        monkeypatch.setenv(provider.key, "test-key")
        monkeypatch.setenv(provider.base_url, wire.base_url)
        model = f"{provider.name}:test-model"
        first = loaded_isthmus.run("-m", model, "-p", "keep it", folder=workspace)
        assert (first.returncode, first.stdout.strip()) == (0, "Kept."), first.stderr
        again = loaded_isthmus.run("-m", model, "--resume", "latest", "-p", "and?", folder=workspace)
        assert again.stdout.strip() == "Still here.", again.stderr
        bodies = [request.json for request in wire.model_requests]
    before, found, called, resumed = (declared(provider, body) for body in bodies)
    own = before[: before.index(SEARCH_TOOL)]
    assert "read_file" in own
    # A tool name of both servers gets the name of the later one as a prefix.
    assert before[len(own) :] == [SEARCH_TOOL, CALL_TOOL, "few__look", "few__wipe", "says_nothing"]
    assert before == found == called == resumed
    assert "spiny" not in str(bodies[1])
    assert "record_4_echidna" in str(bodies[1])
    assert f"- many: {COUNT + 2} tools" in str(bodies[0])
    assert "record 4: spiny" in str(bodies[2])
    if provider is GEMINI:  # it does not depend on the provider
        listed = loaded_isthmus.run("-m", model, "--resume", "latest", "-p", "/mcp", folder=workspace).stdout
        shown = re.findall(r" (many|few) .*\n(?:.+\n)*?  Tokens: ~([\d,]+)", listed)
        tokens = {name: int(number.replace(",", "")) for name, number in shown}
        assert tokens["many"] > 12_800 > tokens["few"]
        assert f"Tools on demand: the model finds them with {SEARCH_TOOL}; 2 are loaded now\n" in listed


def test_a_setting_sends_all_tools_or_always_searches(
    isolated_folders: IsolatedFolders, workspace: Path, monkeypatch: pytest.MonkeyPatch, loaded_isthmus: LoadedProgram
) -> None:
    sent: dict[str, list[str]] = {}
    state_trust(isolated_folders.home, workspace, TrustRule.FOLDER)
    for mode, count in (("never", 150), ("always", 2)):
        write_servers(isolated_folders.home, {"many": many(count)})
        (workspace / ".gemini").mkdir(exist_ok=True)
        (workspace / ".gemini" / "settings.json").write_text(f'{{"isthmus": {{"toolSearch": "{mode}"}}}}', "utf-8")
        agree(workspace)
        with GeminiWire([Reply.of(Say("Hello."))]) as wire:
            monkeypatch.setenv(GEMINI.key, "test-key")
            monkeypatch.setenv(GEMINI.base_url, wire.base_url)
            ran = loaded_isthmus.run("-m", "gemini:test-model", "--allowed-tools", "many", "-p", "hi", folder=workspace)
            assert ran.returncode == 0, ran.stderr
            sent[mode] = declared(GEMINI, wire.model_requests[0].json)
    assert "record_149_falcon" in sent["never"]
    assert SEARCH_TOOL not in sent["never"]
    assert SEARCH_TOOL in sent["always"]
    assert not any(name.startswith("record_") for name in sent["always"])


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("server", "rule", "kind"),
    [
        ({}, ReadOnlyTools(), ToolKind.OTHER),
        ({"trust": True}, ReadOnlyTools(), ToolKind.READ),
        ({}, ReadOnlyTools(everywhere=True), ToolKind.READ),
        ({}, ReadOnlyTools(servers={"many": True}), ToolKind.READ),
        ({}, ReadOnlyTools(everywhere=True, servers={"many": False}), ToolKind.OTHER),
    ],
)
async def test_tools_that_say_that_they_only_read_are_free_where_the_user_says_so(
    tmp_path: Path, workspace: Path, server: dict[str, Any], rule: ReadOnlyTools, kind: ToolKind
) -> None:
    async with hosting(tmp_path, {"many": {**lists_hints(tmp_path), **server}}, reads_freely=rule.are_free) as host:
        scope = ToolScope(workspace)
        await status_when(host, scope, "many", ServerState.CONNECTED)
        tools = (await host.tools(scope)).tools
        assert tools["look"].kind is kind
        assert tools["wipe"].kind is tools["says_nothing"].kind is ToolKind.OTHER
        assert tools["wipe"].describe({}) == "wipe of the MCP server many\nIts server says that it can destroy things."
        assert tools["look"].describe({}) == "look of the MCP server many\nIts server says that it only reads."


@pytest.mark.anyio
async def test_of_a_projects_server_no_tool_is_free(tmp_path: Path, workspace: Path) -> None:
    write_servers(workspace, {"many": lists_hints(tmp_path)})

    def trusts(_: Path) -> bool:
        return True

    reads_freely = ReadOnlyTools(everywhere=True).are_free
    async with hosting(tmp_path, {}, reads_freely=reads_freely, trusts=trusts) as host:
        await status_when(host, ToolScope(workspace), "many", ServerState.CONNECTED)
        assert (await host.tools(ToolScope(workspace))).tools["look"].kind is ToolKind.OTHER
