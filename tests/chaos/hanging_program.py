"""A program with the agent and a read-only tool that hangs at the moment that the test names.

Run as ``python -m chaos.hanging_program FOLDER MOMENT``: continues the tasks in FOLDER, or makes one.
"""

import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from isthmus.client import PromptMessage
from isthmus.development_tool import ConfirmationDetails, ToolOutput
from isthmus.events import TextContent, ToolCallUpdate
from isthmus.programs.agent import building as agent_building
from isthmus.programs.agent.local_agent import local_agent, rule_for
from isthmus.programs.agent.local_agent_options import LocalAgentOptions
from isthmus.programs.process.event_loop import run_loop
from isthmus.programs.setup.setup import GivenOptions, decide
from isthmus.tools.port.base import Arguments, CallContext, ToolContext, ToolKind, ToolResult, ToolSucceeded
from isthmus.tools.port.tool_set import ToolSet

HANG_SECONDS = 0.5
SCRIPT = """
scenarios:
  - prompt: look
    replies:
      - steps:
          - call: {name: look, arguments: {}}
      - steps:
          - text: I saw what became of it.
"""


@dataclass(frozen=True)
class Look:
    """A tool that hangs in ``propose`` or in ``run``, after it wrote a line to the file ``begun``."""

    begun: Path
    moment: str
    name: str = "look"
    description: str = "Looks."
    kind: ToolKind = ToolKind.READ

    @property
    def parameters(self) -> dict[str, Any]:
        return {"type": "object", "properties": {}}

    def describe(self, arguments: Arguments) -> str:
        return "Look"

    async def propose(self, arguments: Arguments, context: ToolContext) -> ConfirmationDetails | None:
        self._hang("propose")
        return None

    async def run(self, arguments: Arguments, context: CallContext) -> ToolResult:
        self._hang("run")
        return ToolSucceeded(ToolOutput(text="seen"), "seen")

    def _hang(self, moment: str) -> None:
        if moment == self.moment:
            with self.begun.open("a", encoding="utf-8") as file:
                file.write(f"{moment}\n")
            re.match("(a+)+b", "a" * 60)


async def main(folder: Path, moment: str) -> None:
    """Wait until the task has ended, and print its calls and its text."""
    agent_building.builtin_tools = lambda **_: ToolSet.of(Look(folder / "begun", moment))  # type: ignore[assignment]
    (folder / "script.yaml").write_text(SCRIPT, encoding="utf-8")
    (folder / "work").mkdir(exist_ok=True)
    given = GivenOptions(
        model=f"scripted:{folder / 'script.yaml'}", workspace=folder / "work", data_dir=folder / "data", ide=False
    )
    setup = decide(given, may_ask=True)
    async with local_agent(setup, rule_for(setup), LocalAgentOptions(takes_over=True)) as engine:
        tasks = await engine.tasks(10)
        task_id = tasks[0].task_id if tasks else (await engine.prompt(PromptMessage("look"))).task_id
        turn = await engine.follow(task_id, 0)
        async for item in turn.deliveries:
            match item.event:
                case ToolCallUpdate(call) if call.status.is_final:
                    print(call.status.name, call.error.message if call.error is not None else "")
                case TextContent(text=text):
                    print(text)
                case _:
                    pass


if __name__ == "__main__":
    run_loop(main(Path(sys.argv[1]), sys.argv[2]), hang_seconds=HANG_SECONDS)
