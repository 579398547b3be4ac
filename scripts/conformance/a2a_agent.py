"""The hosted agent for the A2A kits; the beginning of a message's id chooses its behaviour.

The kit for 1.0 describes the behaviours in ``scenarios/*.feature``. The kit for 0.3 describes none; its messages are
answered, and the task then waits for more, so that there is always a task to continue and to cancel.

Run it:  PYTHONPATH=tests python scripts/conformance/a2a_agent.py PORT [1.0|0.3] [own|acp]
PORT 0 takes any free port. With ``acp`` it is a hosted ACP agent, which does not see the ids of messages. When it
accepts connections, it prints its URL on a separate line.
"""

import asyncio
import socket
import sys
import tempfile
from collections.abc import AsyncGenerator
from dataclasses import replace
from pathlib import Path

import uvicorn

from isthmus.a2a import Hosting, asgi_application
from isthmus.a2a.hosting import HostedApplication
from isthmus.a2a.options import Skill
from isthmus.a2a.server.users.auth import RequestHead
from isthmus.agent.session.session import Session
from isthmus.events import AgentEvent, AgentMessage, ArtifactPart, ArtifactUpdate, StateChange, TaskState, TextContent

NAME, KIND = "output.txt", "text/plain"
ARTIFACTS = {
    "tck-artifact-text": ArtifactPart(text="Generated text content"),
    "tck-artifact-file-url": ArtifactPart(url="https://example.com/output.txt", media_type=KIND, filename=NAME),
    "tck-artifact-file": ArtifactPart(raw="b3V0cHV0Cg==", media_type=KIND, filename=NAME),
    "tck-artifact-data": ArtifactPart(data={"key": "value", "count": 42}),
    "tck-stream-001": ArtifactPart(text="Stream hello from TCK"),
    "tck-stream-003": ArtifactPart(text="Stream task lifecycle"),
    "tck-stream-ordering-001": ArtifactPart(text="Ordered output"),
    "tck-stream-artifact-text": ArtifactPart(text="Streamed text content"),
    "tck-stream-artifact-file": ArtifactPart(raw="b3V0cHV0Cg==", media_type=KIND, filename=NAME),
}
LONG_SECONDS = 4.0
"""Time in seconds that is longer than a kit waits for the first items of a stream."""

WAITING_TASKS = 400
"""Maximum number of tasks that a kit leaves waiting, each with a process of the ACP agent."""


class ConformanceAgent:
    """The agent whose answers the kits select by the ids of their messages."""

    async def run(self, session: Session) -> AsyncGenerator[AgentEvent, None]:
        """Answer as the beginning of the message's id requires."""
        message_id = session.message.message_id if session.message is not None else ""
        artifact = next((part for prefix, part in ARTIFACTS.items() if message_id.startswith(prefix)), None)
        if artifact is not None:
            yield ArtifactUpdate("output", (artifact,))
        elif message_id.startswith("tck-stream-artifact-chunked"):
            yield ArtifactUpdate("output", (ArtifactPart(text="chunk-1 "),), last_chunk=False)
            yield ArtifactUpdate("output", (ArtifactPart(text="chunk-2"),), append=True)
        elif message_id.startswith("tck-message-response"):
            yield AgentMessage("", "Direct message response", is_answer=True)
        elif message_id.startswith("tck-input-required"):
            yield StateChange(TaskState.INPUT_REQUIRED)
        elif message_id.startswith("tck-reject-task"):
            yield StateChange(TaskState.REJECTED, "rejected")
        elif message_id.startswith("test-resubscribe-message-id"):
            await asyncio.sleep(LONG_SECONDS)
        elif message_id.startswith("tck-"):
            yield AgentMessage("", "Hello from TCK")
        else:
            yield TextContent("", f"Hello! You said: {session.prompt}")
            yield StateChange(TaskState.INPUT_REQUIRED)


async def anybody(_: RequestHead) -> str | None:
    """Accept every request as the owner's, because the kits have no credentials to send."""
    return ""


def acp_application(hosting: Hosting) -> HostedApplication:
    """Return the application whose server runs the agent as an ACP agent, in a process for each conversation."""
    from support import agent_behind
    from support.a2a_hosting import SuiteApplication

    agent_behind.CHOICE.is_acp = True
    agent_behind.CHOICE.limits = replace(agent_behind.CHOICE.limits, processes=WAITING_TASKS)
    return SuiteApplication(ConformanceAgent(), hosting)


def main() -> None:
    """Serve the agent on the port and in the version of the arguments."""
    port, version = int(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else "1.0"
    with tempfile.TemporaryDirectory() as folder:
        hosting = Hosting(
            "Conformance",
            "Does what the A2A kits ask for.",
            skills=(Skill("answer", "Answer", "Answers.", ("conformance",)),),
            folder=Path(folder) / "state",
            workspace=Path(folder),
            pushes_to=("localhost", "127.0.0.1", "::1"),
            authenticate=anybody,
            # The kit for 1.0 asks for an extended card, the one for 0.3 refuses schemes that are not enforced.
            security_schemes=None if version == "1.0" else {},
            versions=(version,) if version == "1.0" else ("0.3", "1.0"),
        )
        is_acp = sys.argv[3:] == ["acp"]
        application = acp_application(hosting) if is_acp else asgi_application(ConformanceAgent(), hosting)
        listener = socket.create_server(("127.0.0.1", port))
        print(f"http://127.0.0.1:{listener.getsockname()[1]}", flush=True)
        uvicorn.Server(uvicorn.Config(application, log_level="warning")).run(sockets=[listener])


if __name__ == "__main__":
    main()
