"""The command /mcp with servers in memory; tests/peers/test_mcp_listing.py shows it with real ones."""

import json

import pytest

from isthmus.agent.commands.builtin.server_listing import Detail, listing
from isthmus.agent.session.size import tool_tokens
from isthmus.events import TaskState
from isthmus.tools.port.servers import DiscoveryState, ServerState, ServerStatus, ServerTool
from support.command_harness import OpenHarness
from support.listed_servers import notes_and_locked

pytestmark = pytest.mark.anyio


def tools(*names: str) -> tuple[ServerTool, ...]:
    return tuple(ServerTool(name, f"Does {name}.\n\n  With care.", {"type": "object"}) for name in names)


EXAMPLE = """\
MCP Servers Status:

📡 pythonTools (CONNECTED)
  Command: python -m my_mcp_server --port 8080
  Working Directory: ./mcp-servers/python
  Timeout: 15000ms
  Tools: calculate_sum, file_analyzer, data_processor
  Tokens: ~{python}

🔌 nodeServer (DISCONNECTED)
  Command: node dist/server.js --verbose
  Error: Connection refused

🐳 dockerizedServer (CONNECTED)
  Command: docker run -i --rm -e API_KEY my-mcp-server:latest
  Tools: docker__deploy, docker__status
  Tokens: ~{docker}

Discovery State: COMPLETED"""


def test_a_file_that_cannot_be_read_has_a_line_behind_the_servers_and_is_none() -> None:
    file = ServerStatus("settings", ServerState.DISCONNECTED, problem="/h/.mcp.json, line 2: bad.", is_file=True)
    server = ServerStatus("settings", ServerState.CONNECTING)
    shown = listing([file, server], Detail.NAMES, DiscoveryState.IN_PROGRESS).split("\n\n")
    assert shown[1:] == [
        "⏳ settings (CONNECTING)",
        "Problem: /h/.mcp.json, line 2: bad.",
        "Discovery State: IN_PROGRESS",
    ]
    alone = listing([file], Detail.NAMES, DiscoveryState.COMPLETED)
    assert alone.startswith("No MCP servers are configured.")
    assert alone.endswith("\n\nProblem: /h/.mcp.json, line 2: bad.")


def test_names_that_a_server_chose_make_no_lines_and_have_a_size() -> None:
    lie = "x\n\n📡 bank (CONNECTED)"
    names = (lie, "y" * 1_000_000, *("z" for _ in range(5_000)))
    shown = listing(
        [ServerStatus(lie, ServerState.CONNECTED, prompts=names, resources=names)],
        Detail.NAMES,
        DiscoveryState.COMPLETED,
    )
    assert [line for line in shown.splitlines() if line.startswith("📡")] == ["📡 x 📡 bank (CONNECTED) (CONNECTED)"]
    assert "Prompts: x 📡 bank (CONNECTED), yyy" in shown
    assert shown.count("and 4,802 more") == 2
    assert len(shown) < 10_000


@pytest.mark.requirement("MCP-113", "MCP-114", "MCP-115", "MCP-119")
def test_servers_are_listed_as_in_the_documents_example() -> None:
    python, docker = (
        tools("calculate_sum", "file_analyzer", "data_processor"),
        tools("docker__deploy", "docker__status"),
    )
    way = (
        "Command: python -m my_mcp_server --port 8080",
        "Working Directory: ./mcp-servers/python",
        "Timeout: 15000ms",
    )
    image = ("Command: docker run -i --rm -e API_KEY my-mcp-server:latest",)
    command = ("Command: node dist/server.js --verbose",)
    servers = [
        ServerStatus("pythonTools", ServerState.CONNECTED, tools=python, summary=way),
        ServerStatus("nodeServer", ServerState.DISCONNECTED, problem="Connection refused", summary=command),
        ServerStatus("dockerizedServer", ServerState.CONNECTED, tools=docker, summary=image, is_container=True),
    ]
    tokens = [sum(tool_tokens(t.name, t.description, t.parameters) for t in found) for found in (python, docker)]
    assert listing(servers, Detail.NAMES, DiscoveryState.COMPLETED) == EXAMPLE.format(
        python=tokens[0], docker=tokens[1]
    )


@pytest.mark.requirement("MCP-115", "MCP-125", "MCP-131")
@pytest.mark.parametrize(
    ("status", "lines"),
    [
        (ServerStatus("a", ServerState.CONNECTING), ["⏳ a (CONNECTING)"]),
        (ServerStatus("a", ServerState.NEEDS_LOGIN, problem="use /mcp auth a"),
         ["🔑 a (NEEDS LOGIN)", "  Login: use /mcp auth a"]),
        (ServerStatus("a", ServerState.DISABLED, problem="mcp.excluded names it"),
         ["⏸ a (DISABLED)", "  Disabled: mcp.excluded names it"]),
        (ServerStatus("a", ServerState.DISCONNECTED, problem="it offers nothing\nlast words"),
         ["🔌 a (DISCONNECTED)", "  Error: it offers nothing", "    last words"]),
        (ServerStatus("a", ServerState.CONNECTED, prompts=("p", "q"), resources=("r://1",), notes=("From: the cache",)),
         ["📡 a (CONNECTED)", "  From: the cache", "  Tools: none", "  Prompts: p, q", "  Resources: r://1"]),
        (ServerStatus("a", ServerState.DISCONNECTED, problem="x", is_container=True),
         ["🔌 a (DISCONNECTED)", "  Error: x"]),
        (ServerStatus("a", ServerState.CONNECTED, prompts=("p",), problem="of its tools: t: bad schema"),
         ["📡 a (CONNECTED)", "  Note: of its tools: t: bad schema", "  Tools: none", "  Prompts: p"]),
    ],
)  # fmt: skip
def test_each_state_has_its_icon_and_its_reason(status: ServerStatus, lines: list[str]) -> None:
    assert listing([status], Detail.NAMES, DiscoveryState.COMPLETED).split("\n\n")[1].splitlines() == lines


@pytest.mark.requirement("MCP-127", "MCP-128", "MCP-129", "MCP-119")
@pytest.mark.parametrize("state", list(DiscoveryState))
async def test_the_last_line_says_how_far_discovery_is(open_harness: OpenHarness, state: DiscoveryState) -> None:
    servers = notes_and_locked()
    servers.state = state
    async with open_harness(servers=servers) as harness:
        assert (await harness.run("/mcp")).text.endswith(f"\n\nDiscovery State: {state.name}")


@pytest.mark.requirement("MCP-118")
async def test_tools_are_listed_with_their_descriptions_and_schemas(open_harness: OpenHarness) -> None:
    async with open_harness(servers=notes_and_locked()) as harness:
        listed, described, schema = [await harness.run(f"/mcp {name}") for name in ("list", "desc", "schema")]
        assert {(await harness.run(f"/mcp {name}")).text for name in ("nodesc", "ls", "")} == {listed.text}
    assert "📡 notes (CONNECTED)\n  Command: notes\n  Tools: search\n  Prompts: summary\n  Tokens: ~" in listed.text
    assert "\n\n🔑 locked (NEEDS LOGIN)\n  URL: http://x\n  Login: 401\n" in listed.text
    assert "Finds things." not in listed.text
    assert "  Description: Notes of the team\n  Tools:\n    - search: Finds things.\n" in described.text
    assert '"properties"' not in described.text
    assert json.dumps("string") in schema.text


async def test_refresh_shows_a_tool_that_was_added_meanwhile(open_harness: OpenHarness) -> None:
    servers = notes_and_locked()
    async with open_harness(servers=servers) as harness:
        ran = await harness.run("/mcp refresh notes")
        assert servers.refreshed == ["notes"]
        assert "notes: + added" in ran.text
        assert "locked" not in ran.text
        wrong = await harness.run("/mcp reload nosuch")
        assert (wrong.state, wrong.end.reason) == (TaskState.FAILED, "unknown_server")


async def test_restart_is_for_one_server_and_for_the_local_user(open_harness: OpenHarness) -> None:
    servers = notes_and_locked()
    async with open_harness(servers=servers) as harness:
        assert "notes: + added" in (await harness.run("/mcp restart notes")).text
        theirs = await harness.of("alice").run("/mcp restart notes")
        assert (theirs.state, theirs.end.reason) == (TaskState.FAILED, "not_yours")
        assert servers.restarted == ["notes"]


async def test_servers_are_switched_off_and_on_by_the_local_user(open_harness: OpenHarness) -> None:
    servers = notes_and_locked()
    async with open_harness(servers=servers) as harness:
        assert (await harness.of("alice").run("/mcp disable notes")).end.reason == "not_yours"
        assert "notes (CONNECTED)" in (await harness.run("/mcp")).text
        assert "⏸ notes (DISABLED)" in (await harness.run("/mcp disable notes")).text
        assert "📡 notes (CONNECTED)" in (await harness.run("/mcp enable notes")).text
        assert (await harness.run("/mcp enable nosuch")).end.reason == "unknown_server"


@pytest.mark.requirement("MCP-051")
async def test_auth_tells_what_to_do_and_how_it_ended_and_alone_lists_who_needs_it(open_harness: OpenHarness) -> None:
    async with open_harness(servers=notes_and_locked()) as harness:
        ran = await harness.run("/mcp auth locked")
        assert ran.text == "Open https://login.example/locked\nLogged in.\n"
        alone = (await harness.run("/mcp auth")).text
        assert "\n- locked\n" in alone
        assert "notes" not in alone


async def test_without_servers_it_says_where_they_are_configured(open_harness: OpenHarness) -> None:
    async with open_harness() as harness:
        for line in ("/mcp", "/mcp refresh", "/mcp auth x", "/mcp restart x", "/mcp disable x"):
            ran = await harness.run(line)
            assert ran.state is TaskState.COMPLETED
            assert "mcpServers" in ran.text


async def test_a_word_that_is_no_subcommand_is_answered_with_those_like_it(open_harness: OpenHarness) -> None:
    async with open_harness() as harness:
        ended = (await harness.run("/mcp resart notes")).end
        assert ended.error == "no MCP server is named 'resart notes'; configured: none; did you mean /mcp restart?"


async def test_other_users_see_no_commands_or_addresses_of_this_machine(open_harness: OpenHarness) -> None:
    async with open_harness(servers=notes_and_locked()) as harness:
        theirs = (await harness.of("alice").run("/mcp")).text
        assert "notes (CONNECTED)" in theirs
        assert "Command:" not in theirs
        assert "http://x" not in theirs
        assert "Login: only the user who runs this server can see the reason" in theirs
