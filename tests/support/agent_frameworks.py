"""The A2A clients of agent frameworks, in programs that run in the environments of these frameworks.

They are in tests/peers/python/frameworks; ``converse.py`` there says what goes in and out.
"""

import asyncio
import json
import os
import tempfile
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import IO, Any, Protocol

from support.programs import PYTHON_PEERS, python_peer

CREWAI = "ISTHMUS_CREWAI" in os.environ
"""Whether CrewAI takes part: `make frameworks` says so. Read once, as tests have no such variables."""
QUIET = {"CREWAI_DISABLE_TELEMETRY": "true", "CREWAI_TRACING_ENABLED": "false", "OTEL_SDK_DISABLED": "true"}
"""Variables that keep frameworks from sending their makers what they do."""


class Served(Protocol):
    """A server."""

    @property
    def url(self) -> str:
        """Its address."""
        ...

    @property
    def token(self) -> str:
        """The token of its user."""
        ...


@dataclass(frozen=True, slots=True)
class Framework:
    """A framework's client in one of its modes."""

    name: str
    mode: str
    can_answer: bool = True
    """Whether its user can answer a question of the agent."""
    honours_required: bool = False
    """Whether it refuses an agent whose card requires an extension that it does not know."""
    environment: str = "bench-peers"
    takes_part: bool = True

    def __str__(self) -> str:
        return f"{self.name} {self.mode}"


def _of_versions(name: str) -> list[Framework]:
    return [Framework(name, f"{how} {version}") for version in ("1.0", "0.3") for how in ("streaming", "blocking")]


STRANDS = [Framework("strands", mode, False, environment="frameworks/strands") for mode in ("agent", "tool")]
OLDEST_SDK = [Framework("sdk", mode, False, environment="frameworks/strands") for mode in ("stream", "resubscribe")]
FRAMEWORKS = [
    *STRANDS,
    *_of_versions("adk"),
    *_of_versions("agent_framework"),
    *(Framework("langchain", mode, False) for mode in ("streaming", "blocking")),
    *(Framework("ag2", mode, honours_required=True) for mode in ("streaming", "polling")),
    *(Framework("crewai", mode, True, True, "frameworks/crewai", CREWAI) for mode in ("streaming", "polling", "rest")),
]


class Programs:
    """The programs that drive frameworks, one for each environment: importing frameworks takes seconds."""

    def __init__(self, stack: AsyncExitStack) -> None:
        self._stack = stack
        self._running: dict[str, tuple[asyncio.subprocess.Process, IO[str]]] = {}

    async def start(self, environment: str, names: Sequence[str]) -> None:
        """Start the program of an environment with these frameworks."""
        log = self._stack.enter_context(tempfile.TemporaryFile("w+", encoding="utf-8"))  # noqa: SIM115
        process = await asyncio.create_subprocess_exec(
            *(python_peer(environment), "converse.py", *names),
            cwd=PYTHON_PEERS / "frameworks",
            env={**os.environ, **QUIET},
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=log,
        )
        self._stack.push_async_callback(_end, process)
        self._running[environment] = process, log

    async def converse(self, framework: Framework, served: Served, *texts: str) -> list[dict[str, Any]]:
        """Return what the framework hands to its user for each text."""
        process, log = self._running[framework.environment]
        assert process.stdin is not None
        assert process.stdout is not None
        case = {"framework": framework.name, "mode": framework.mode, "url": served.url, "token": served.token}
        process.stdin.write(f"{json.dumps({**case, 'texts': texts})}\n".encode())
        line = await asyncio.wait_for(process.stdout.readline(), 90)
        if not line or "error" in (found := json.loads(line)):
            log.seek(0)
            raise AssertionError(f"{framework} failed: {line.decode()}\n{log.read()[-6000:]}")
        return found["handed"]


async def _end(process: asyncio.subprocess.Process) -> None:
    assert process.stdin is not None
    process.stdin.close()
    process.kill()  # to end properly takes a framework seconds
    await process.wait()


@asynccontextmanager
async def programs(frameworks: Sequence[Framework]) -> AsyncGenerator[Programs]:
    """Start the programs of the frameworks that take part, and end them afterwards."""
    environments: dict[str, set[str]] = {}
    for framework in frameworks:
        if framework.takes_part:
            environments.setdefault(framework.environment, set()).add(framework.name)
    async with AsyncExitStack() as stack:
        found = Programs(stack)
        for environment, names in environments.items():
            await found.start(environment, sorted(names))
        yield found
