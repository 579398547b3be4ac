"""A program with a hosted agent that asks before it acts. Its first argument has fields of Hosting, as JSON."""

import json
import sys
from collections.abc import AsyncGenerator
from dataclasses import replace
from pathlib import Path
from typing import Any

from isthmus.a2a import Caps, Hosting, SignIn, TelemetryOptions, serve
from isthmus.agent.hosted import ask, decision, is_allowed
from isthmus.agent.session.session import Session
from isthmus.development_tool import GenericDetails, ToolCall, ToolCallStatus, ToolOutput
from isthmus.events import AgentEvent, TextContent, ToolCallUpdate


class Asking:
    """An agent that presses a button once the user allows it, and says in which process."""

    async def run(self, session: Session) -> AsyncGenerator[AgentEvent, None]:
        answer = decision(session, "press")
        if answer is None:
            yield ask("press", "press", {"button": session.prompt}, GenericDetails(f"Press {session.prompt}"))
            return
        if is_allowed(answer):
            yield ToolCallUpdate(ToolCall("press", ToolCallStatus.EXECUTING, "press", {}))
            yield ToolCallUpdate(ToolCall("press", ToolCallStatus.SUCCEEDED, "press", {}, output=ToolOutput("pressed")))
        yield TextContent("", f"pressed at {sys.argv[2]}")


def hosting_of(given: dict[str, Any], base: Hosting | None = None) -> Hosting:
    """Return the options, on top of others: paths and records are made of texts and objects."""
    records = {"sign_in": SignIn, "user_caps": Caps, "telemetry": TelemetryOptions}
    paths = ("folder", "workspace", "audit_log", "token_file")
    made = {name: Path(value) if name in paths else value for name, value in given.items()}
    made |= {name: record(**given[name]) for name, record in records.items() if name in given}
    if "certificate" in given:
        made["certificate"] = tuple(map(Path, given["certificate"]))
    if "workspace_labels" in given:
        made["workspace_labels"] = {Path(folder): label for folder, label in given["workspace_labels"].items()}
    made["workspaces"] = tuple(map(Path, given.get("workspaces", ())))
    return replace(base or Hosting("Asking"), **made)


if __name__ == "__main__":
    serve(Asking(), hosting_of(json.loads(sys.argv[1])))
