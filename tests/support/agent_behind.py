"""The agent behind the servers of the A2A contract suites: the tests' own, or the same one as a hosted ACP agent.

The choice is made for each test, see tests/contract/conftest.py. The suites build their servers with :func:`behind`,
and close what it started with :func:`close_behind`.
"""

import os
import re
import sys
from dataclasses import dataclass, field
from pathlib import Path

from typing_extensions import override

from isthmus.acp.host.agent_link import AgentLaunch
from isthmus.acp.host.known_agent import KnownAgent, agent_environment
from isthmus.acp.host.limits import HostLimits
from isthmus.acp.served.agent import AcpAgent
from isthmus.agent.session.session import Session
from isthmus.agent.session.turn import AgentTurn
from isthmus.engine.port.agents import Agent
from isthmus.events import StateChange
from support.acp_played import PlayedAgent

RELAY = Path(__file__).with_name("acp_relay_program.py")
LIMITS = HostLimits(past_seconds=0.01, gather_seconds=0.2, exit_seconds=5)
PLAYED = KnownAgent(
    id="played",
    title="Agent",
    tool_name_key=("tool",),
    mcp_title=re.compile(r"(?P<tool>\S+) \((?P<server>.+) MCP Server\)"),
    title_is_command=True,
)
"""Facts about the played agent: it says more of its calls than the protocol wants, as known agents do."""


@dataclass(slots=True)
class Choice:
    """The kind of agent of the running test, and what was started for it."""

    is_acp: bool = False
    limits: HostLimits = LIMITS
    was_used: bool = False
    """Whether a server of the test had an ACP agent."""
    sessions: dict[str, Session] = field(default_factory=dict[str, Session])
    running: "list[PlayedAcpAgent]" = field(default_factory=list["PlayedAcpAgent"])


CHOICE = Choice()


class PlayedAcpAgent(AcpAgent):
    """A hosted ACP agent that an agent of the tests plays."""

    def __init__(self, played: PlayedAgent) -> None:
        command = (sys.executable, "-I", "-S", str(RELAY), str(played.port))
        super().__init__("played", AgentLaunch(command, agent_environment(os.environ, PLAYED), PLAYED), CHOICE.limits)
        self._played = played

    @override
    async def advance(self, turn: AgentTurn) -> StateChange:
        await self._played.start()
        return await super().advance(turn)

    @override
    async def aclose(self) -> None:
        await super().aclose()
        await self._played.aclose()


def behind(agent: Agent) -> Agent:
    """Return the agent that the engine of a server is to run: this one, or it as an ACP agent."""
    if not CHOICE.is_acp:
        return agent
    CHOICE.was_used = True
    hosted = PlayedAcpAgent(PlayedAgent(agent, CHOICE.sessions))
    CHOICE.running.append(hosted)
    return hosted


async def close_behind() -> None:
    """End the ACP agents that were started."""
    running, CHOICE.running = CHOICE.running, []
    for hosted in running:
        await hosted.aclose()
