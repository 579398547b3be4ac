"""The copy of the ACP registry, and the commands that start its agents."""

import json
import re
import shlex
from pathlib import Path

import pytest

from isthmus.acp.host.agents import AGENTS
from isthmus.acp.registry import ALIASES, Distribution, RegistryBinary, UnknownAgentError, command_of, registry


def test_an_agent_on_npm_is_started_by_npx_in_its_version() -> None:
    command = command_of("gemini")

    assert command.argv == ("npx", "--yes", "@google/gemini-cli@0.61.0", "--acp")
    assert command.env == {}
    assert command.shown == "npx --yes @google/gemini-cli@0.61.0 --acp"
    assert command.origin == (
        "Gemini CLI 0.61.0, with which Isthmus is tested (0.56.0 in the ACP registry of 2026-08-22), "
        "npm package @google/gemini-cli@0.61.0"
    )


def test_an_agent_on_pypi_is_started_by_uvx_with_its_variables() -> None:
    command = command_of("fast-agent")

    assert command.argv == ("uvx", "fast-agent-acp==0.10.1", "-x")
    assert command.env == {"FAST_AGENT_MODEL": "codexplan"}
    assert command.shown == "FAST_AGENT_MODEL=codexplan uvx fast-agent-acp==0.10.1 -x"


def test_known_agents_are_started_in_the_version_that_the_tests_run() -> None:
    peers = Path(__file__).parents[2] / "peers"
    pinned: dict[str, str] = {}
    for folder in ("node", "agents"):
        pinned |= json.loads((peers / folder / "package.json").read_text(encoding="utf-8"))["dependencies"]
    for agent in AGENTS:
        versions = {pinned[name] for name in agent.programs if name in pinned}
        assert versions == ({agent.tested} if agent.tested else set()), agent.id
        if agent.tested:
            assert f"@{agent.tested}" in command_of(agent.id).shown


def test_an_agent_is_found_by_the_name_of_its_program() -> None:
    ids = {entry.id for entry in registry().agents}
    assert ids >= set(ALIASES.values())
    assert ids.isdisjoint(ALIASES)
    assert command_of("qwen") == command_of("qwen-code")
    assert command_of("Claude") == command_of("claude-acp")


def test_the_case_of_an_id_does_not_matter() -> None:
    assert command_of("Qwen-Code") == command_of("qwen-code")


@pytest.mark.parametrize(
    ("name", "similar"),
    [
        ("geminy", "gemini"),
        ("Gemini CLI", "gemini"),
        ("clod-acp", "claude-acp"),
        ("open-code", "opencode"),
    ],
)
def test_an_unknown_name_gets_similar_ids_and_the_way_out(name: str, similar: str) -> None:
    with pytest.raises(UnknownAgentError) as caught:
        command_of(name)

    message = str(caught.value)
    assert message.startswith(f"expected the id of an agent in the ACP registry of 2026-08-22, received {name!r}")
    assert similar in re.split("[ ,.]+", message)
    assert message.endswith('Give the command that starts the agent instead, for example "gemini --acp"')


def test_a_name_like_no_other_gets_the_way_out_alone() -> None:
    with pytest.raises(UnknownAgentError, match=r"received 'zzzz'\. Give the command"):
        command_of("zzzz")


def test_a_very_long_name_is_cut_in_the_message() -> None:
    with pytest.raises(UnknownAgentError) as caught:
        command_of("x" * 1_000_000)

    assert len(str(caught.value)) < 400


def test_an_agent_in_archives_is_refused_with_the_command_to_give() -> None:
    with pytest.raises(UnknownAgentError) as caught:
        command_of("opencode")

    assert str(caught.value) == (
        "expected an agent that is published as a package of npm or PyPI; OpenCode is published as archives, "
        'which Isthmus does not download. Install it and give the command that starts it: "opencode acp"'
    )


def test_each_entry_is_complete_and_its_package_has_the_version_of_the_entry() -> None:
    agents = registry().agents

    assert len(agents) == 39
    assert [entry.id for entry in agents] == sorted({entry.id for entry in agents})
    for entry in agents:
        assert re.fullmatch("[a-z][a-z0-9-]*", entry.id)
        assert entry.name
        assert entry.description
        match entry.distribution:
            case Distribution(npx=None, uvx=None, binary=RegistryBinary(cmd=cmd)):
                assert shlex.quote(cmd) == cmd
                assert "/" not in cmd
            case Distribution(npx=npx, uvx=uvx):
                package = npx or uvx
                assert package is not None
                assert re.fullmatch(rf"(@[a-z0-9-]+/)?[a-z0-9-]+(@|==){re.escape(entry.version)}", package.package)
