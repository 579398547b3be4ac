"""A client of ACP made of the official Python SDK, and ``isthmus acp`` behind it with a scripted model.

The client keeps what it is sent as JSON, and answers questions as the test says.
"""

import asyncio
import os
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import acp

from support.isthmus_program import ISTHMUS

MODEL = """
name: practice
scenarios:
  - prompt: 'say hello'
    replies:
      - steps:
          - thought: I look around first.
          - text: Hello
          - delay: 0.2
          - text: ' from the agent.'
  - prompt: 'write (?P<file>\\S+)'
    replies:
      - text: I write {{file}}.
        call: {name: write_file, arguments: {file_path: '{{file}}', content: "one\\ntwo\\n"}}
      - alternatives:
          - when: result failed
            text: It was refused.
          - text: It is written.
  - prompt: 'run it'
    replies:
      - call: {name: run_shell_command, arguments: {command: 'touch ran.txt'}}
      - text: It ran.
  - prompt: 'wait a moment'
    replies:
      - steps:
          - text: I begin.
          - delay: 1
          - text: ' I end.'
  - prompt: 'take your time'
    replies:
      - steps:
          - text: I begin.
          - delay: 300
          - text: I end.
"""


def model_option(folder: Path) -> str:
    """Write the scripted model below a test's folder, and return the value of ``--model`` for it."""
    path = folder / "practice.yaml"
    path.write_text(MODEL, encoding="utf-8")
    return f"scripted:{path}"


def acp_command(folder: Path) -> tuple[str, ...]:
    """Return the command that a client starts."""
    return (*ISTHMUS, "acp", "--model", model_option(folder))


def choice(options: Sequence[dict[str, Any]], kind: str) -> dict[str, Any]:
    """Return the answer to a question by which the user chooses the first option of a kind."""
    chosen = next(option["optionId"] for option in options if option["kind"] == kind)
    return {"outcome": {"outcome": "selected", "optionId": chosen}}


@dataclass(slots=True)
class RecordingClient:
    """Keeps updates and questions as JSON. ``decide`` answers a question: a kind of option, or "cancelled"."""

    decide: Callable[[dict[str, Any]], "asyncio.Future[str] | str"] = lambda _: "allow_once"
    updates: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    questions: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])

    def begin_anew(self, answer: "asyncio.Future[str]") -> None:
        """Forget what came, and answer further questions by the result of ``answer``."""
        self.updates.clear()
        self.questions.clear()
        self.decide = lambda _: answer

    async def session_update(self, session_id: str, update: Any, **_: Any) -> None:
        """Keep an update."""
        self.updates.append({"sessionId": session_id, **as_json(update)})

    async def request_permission(self, session_id: str, tool_call: Any, options: Any, **_: Any) -> Any:
        """Keep a question, and answer it."""
        shown = [as_json(option) for option in options]
        question = {"sessionId": session_id, "toolCall": as_json(tool_call), "options": shown}
        self.questions.append(question)
        answer = self.decide(question)
        kind = answer if isinstance(answer, str) else await answer
        cancelled = {"outcome": {"outcome": "cancelled"}}
        outcome = cancelled if kind == "cancelled" else choice(shown, kind)
        return acp.RequestPermissionResponse.model_validate(outcome)

    def of_kind(self, kind: str) -> list[dict[str, Any]]:
        """Return the updates of a kind, such as "agent_message_chunk"."""
        return [update for update in self.updates if update["sessionUpdate"] == kind]

    def text(self, kind: str = "agent_message_chunk") -> str:
        """Return the text of all chunks of a kind."""
        return "".join(update["content"]["text"] for update in self.of_kind(kind))

    def call(self) -> dict[str, Any]:
        """Return the only tool call as a client shows it: its updates laid over one another."""
        started = self.of_kind("tool_call")
        changed = self.of_kind("tool_call_update")
        assert {update["toolCallId"] for update in (*started, *changed)} == {started[0]["toolCallId"]}
        assert len(started) == 1
        shown = dict(started[0])
        for update in changed:
            shown.update({name: value for name, value in update.items() if name != "sessionUpdate"})
        return shown

    def statuses(self) -> list[str]:
        """Return the states of tool calls, in order and as far as they changed."""
        calls = [update for update in self.updates if update["sessionUpdate"].startswith("tool_call")]
        return [update["status"] for update in calls if "status" in update]


@dataclass(slots=True)
class AcpUser:
    """A user of a client that is connected to ``isthmus acp``; ``workspace`` is the folder of sessions."""

    agent: Any
    client: RecordingClient
    process: asyncio.subprocess.Process
    workspace: Path
    greeting: dict[str, Any]

    async def new(self) -> str:
        """Begin a session, and return its id."""
        return (await self.agent.new_session(cwd=str(self.workspace))).session_id

    async def load(self, session_id: str) -> None:
        """Load a session."""
        await self.agent.load_session(cwd=str(self.workspace), session_id=session_id)

    async def prompt(self, session_id: str, text: str) -> str:
        """Send a prompt, and return why its turn ended."""
        response = await self.agent.prompt(session_id=session_id, prompt=[acp.text_block(text)])
        return response.stop_reason


@asynccontextmanager
async def acp_user(folder: Path, workspace: Path) -> AsyncGenerator[AcpUser]:
    """Start ``isthmus acp`` and connect a client to it; the script of its model is written to ``folder``."""
    client = RecordingClient()
    program, *arguments = acp_command(folder)
    started = acp.spawn_agent_process(
        client,  # pyright: ignore[reportArgumentType]  it offers neither files nor terminals
        program,
        *arguments,
        env=dict(os.environ),
        cwd=workspace,
        transport_kwargs={"stderr": None},
    )
    async with started as (agent, process):
        greeting = await agent.initialize(protocol_version=acp.PROTOCOL_VERSION)
        yield AcpUser(agent, client, process, workspace, as_json(greeting))


def as_json(message: Any) -> dict[str, Any]:
    """Return a message of the SDK as it is on the wire."""
    return message.model_dump(mode="json", by_alias=True, exclude_none=True)
