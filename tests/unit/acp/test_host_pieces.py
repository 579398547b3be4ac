"""The pure pieces around a hosted ACP agent: what it is told, its commands, its environment, its prompts."""

import base64
import re
from pathlib import Path

import pytest

from isthmus.acp.host.agents import AGENTS
from isthmus.acp.host.commands import command_tree, path_of, prompt_text
from isthmus.acp.host.edits import UserEdit, whole_change
from isthmus.acp.host.files import lines_of
from isthmus.acp.host.known_agent import UNKNOWN, agent_environment, known_agent
from isthmus.acp.host.limits import HostLimits
from isthmus.acp.host.prompt_blocks import UnreadableContentError, prompt_blocks
from isthmus.acp.host.update_reader import UpdateReader
from isthmus.acp.registry import registry
from isthmus.acp.v1.connection import PromptCapabilities
from isthmus.acp.v1.content import EmbeddedResource, ImageBlock, ResourceContents, ResourceLink, TextBlock
from isthmus.acp.v1.updates import (
    AgentMessageChunk,
    AgentThoughtChunk,
    AvailableCommand,
    CommandInput,
    DiffContent,
    PlanEntry,
    PlanUpdate,
    ToolCallStarted,
)
from isthmus.development_tool import AgentThought, SlashCommand, SlashCommandArgument
from isthmus.events import ArtifactUpdate, MessagePart, TextContent, Thought, ToolCallUpdate
from isthmus.runtime.server_chain import CHAIN

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.parametrize(
    ("command", "agent"),
    [
        ("gemini --acp", "gemini"),
        ("/usr/local/bin/gemini --acp", "gemini"),
        ("npx -y @google/gemini-cli@0.61.0 --acp", "gemini"),
        ("npx @qwen-code/qwen-code --acp", "qwen-code"),
        ("npx --yes @agentclientprotocol/claude-agent-acp@0.70.0", "claude-acp"),
        ("uvx codex-acp==1.2", "codex-acp"),
        ("opencode acp", "opencode"),
        ("node /opt/node_modules/@agentclientprotocol/claude-agent-acp/dist/index.js", "claude-acp"),
        ("node /opt/node_modules/opencode-ai/bin/start.js acp", "opencode"),
        ("my-agent --flag", ""),
    ],
)
def test_an_agent_is_known_by_its_command(command: str, agent: str) -> None:
    assert known_agent(command.split(), AGENTS).id == agent


def test_known_agents_have_the_ids_of_the_registry() -> None:
    assert {agent.id for agent in AGENTS} <= {entry.id for entry in registry().agents}


def test_the_guide_says_how_to_be_asked_by_each_agent() -> None:
    guide = (ROOT / "docs" / "how-to" / "acp-agents.md").read_text(encoding="utf-8")
    table = guide.partition("| agent | without settings |")[2].partition("\n\n")[0].splitlines()[2:]
    cells = {row.split(" | ")[0].strip("| "): row.split(" | ")[2].strip("| ") for row in table}
    assert list(cells) == [agent.title for agent in AGENTS]
    for agent in AGENTS:
        settings = re.findall("`([^`]+)`", cells[agent.title])
        assert bool(settings) is bool(agent.unasked)
        assert all(part in agent.unasked for part in settings)


def test_the_environment_has_the_agents_own_variables_alone() -> None:
    have = {"HOME": "/h", "https_proxy": "p", "GEMINI_API_KEY": "g", "OPENAI_API_KEY": "o", "X": "x", "Y": "y"}
    gemini = known_agent(["gemini"], AGENTS)
    assert agent_environment(have, gemini, ["X", "MISSING"]) == {
        "HOME": "/h",
        "https_proxy": "p",
        "GEMINI_API_KEY": "g",
        "X": "x",
    }
    assert agent_environment(have, UNKNOWN) == {"HOME": "/h", "https_proxy": "p"}


def test_an_agent_knows_that_it_runs_below_a_server_of_isthmus() -> None:
    assert agent_environment({CHAIN: "a.b", "X": "x"}, UNKNOWN) == {CHAIN: "a.b"}


def test_commands_with_spaces_and_colons_are_a_tree() -> None:
    commands = [
        AvailableCommand("memory show", "Show"),
        AvailableCommand("git:commit", "Commit", CommandInput("a message")),
        AvailableCommand("memory", "Manage"),
        AvailableCommand("memory:show", "Another"),
        AvailableCommand(" : ", "Nothing"),
        AvailableCommand("x" * 101, "Too long"),
    ]
    assert command_tree(commands) == (
        SlashCommand("memory", "Manage", (), (SlashCommand("show", "Show"),)),
        SlashCommand("git", "", (), (SlashCommand("commit", "Commit", (SlashCommandArgument("text", "a message"),)),)),
    )
    assert path_of("/git:commit") == ("git", "commit")
    assert prompt_text(("git", "commit"), "now", commands) == "/git:commit now"
    assert prompt_text(("memory", "show"), "", commands) == "/memory show"


@pytest.mark.parametrize(
    ("diff", "current", "whole"),
    [
        (DiffContent("/a", "B", "A"), "A", DiffContent("/a", "B", "A")),
        (DiffContent("/a", "B", "A"), "xAy", DiffContent("/a", "xBy", "xAy")),
        (DiffContent("/a", "B", "A"), "A A", None),
        (DiffContent("/a", "B", "A"), "C", None),
        (DiffContent("/a", "B", "A"), None, None),
        (DiffContent("/a", "B"), None, DiffContent("/a", "B")),
        (DiffContent("/a", "B", ""), None, DiffContent("/a", "B")),
        (DiffContent("/a", "B"), "A", DiffContent("/a", "B", "A")),
        (DiffContent("/a", "1\nB\n", "1\nA\n"), "1\r\nA\r\n", DiffContent("/a", "1\nB\n", "1\nA\n")),
    ],
)
def test_a_change_is_of_the_whole_file_or_unclear(
    diff: DiffContent, current: str | None, whole: DiffContent | None
) -> None:
    assert whole_change(diff, current) == whole


def test_a_note_has_the_difference_and_a_limit() -> None:
    note = UserEdit("/w/a.txt", "a\n", "b\n", "c\n").note
    assert note.startswith("The user changed your proposal for /w/a.txt before it was written.")
    assert "-b\n+c\n" in note
    assert len(UserEdit("/a", None, "", "x\n" * 100_000).note) < 21_000


@pytest.mark.parametrize(
    ("line", "limit", "expected"),
    [(None, None, "1\n2\n3\n"), (2, None, "2\n3\n"), (2, 1, "2\n"), (None, 2, "1\n2\n"), (9, 1, ""), (0, 1, "1\n")],
)
def test_lines_of_a_file_count_from_one(line: int | None, limit: int | None, expected: str) -> None:
    assert lines_of("1\n2\n3\n", line, limit) == expected


def test_parts_become_blocks_as_far_as_the_agent_reads_them() -> None:
    text = base64.b64encode(b"hello").decode()
    parts = [
        MessagePart(text="Look:"),
        MessagePart(raw="AAAA", media_type="image/png"),
        MessagePart(url="https://x.org/a", filename="a"),
        MessagePart(raw=text, media_type="text/plain", filename="b.txt"),
        MessagePart(data={"a": 1}),
    ]
    everything = PromptCapabilities(image=True, embedded_context=True)
    assert prompt_blocks(parts, everything, "Note.") == (
        TextBlock("Note."),
        TextBlock("Look:"),
        ImageBlock("AAAA", "image/png"),
        ResourceLink("https://x.org/a", "a"),
        EmbeddedResource(ResourceContents("attachment:///b.txt", "text/plain", "hello")),
        TextBlock('{"a":1}'),
    )
    assert prompt_blocks(parts[3:4], None) == (TextBlock("b.txt:\nhello"),)
    with pytest.raises(UnreadableContentError, match="does not read image/png"):
        prompt_blocks(parts[1:2], None)


def reader() -> UpdateReader:
    numbers = iter(range(100))
    return UpdateReader(known_agent(["gemini"], AGENTS), HostLimits(), lambda: f"t{next(numbers)}")


def test_texts_are_messages_until_something_comes_between() -> None:
    read = reader()
    said = [*read.take(AgentMessageChunk(TextBlock("a"))), *read.take(AgentMessageChunk(TextBlock("b")))]
    said += read.take(AgentMessageChunk(TextBlock("c"), "m1"))
    said += read.take(AgentMessageChunk(TextBlock("d"), "m1"))
    (call,) = read.take(ToolCallStarted("c", "Do"))
    said += read.take(AgentMessageChunk(TextBlock("e")))
    assert isinstance(call, ToolCallUpdate)
    assert [(event.message_id, event.text) for event in said if isinstance(event, TextContent)] == [
        ("t0", "a"),
        ("t0", "b"),
        ("t1", "c"),
        ("t1", "d"),
        ("t2", "e"),
    ]


def test_thoughts_are_whole_and_noise_is_left_out() -> None:
    read = reader()
    assert list(read.take(AgentThoughtChunk(TextBlock("**Plan** first")))) == []
    assert list(read.take(AgentThoughtChunk(TextBlock(" steps")))) == []
    assert list(read.take(AgentMessageChunk(TextBlock("")))) == []
    assert list(read.take(AgentMessageChunk(TextBlock("[MODE_UPDATE] autoEdit")))) == []
    thought, _ = read.take(AgentMessageChunk(TextBlock("Hi")))
    assert thought == Thought(AgentThought("Plan", "first steps"))
    assert list(read.flush()) == []


def test_plans_and_images_are_shown() -> None:
    read = reader()
    (plan,) = read.take(PlanUpdate((PlanEntry("one", status="completed"), PlanEntry("two"))))
    assert plan == Thought(AgentThought("Plan", "- [x] one\n- [ ] two"))
    (image,) = read.take(AgentMessageChunk(ImageBlock("AAAA", "image/png")))
    assert isinstance(image, ArtifactUpdate)
    assert list(read.take(AgentMessageChunk(ImageBlock("not base64!", "image/png")))) == []
