"""A server whose pages show one of each: a session with each kind of event, and questions of each kind."""

import json
import sys
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import Page, expect

from isthmus.development_tool import AgentThought, ErrorDetails, FileDiff, ToolCall, ToolCallStatus, ToolOutput
from isthmus.events import AgentEvent, TextContent, Thought, ToolCallUpdate
from support.long_tasks import seed
from support.workbench import Workbench, workbench

ASKING = Path(__file__).with_name("asking_mcp_server.py")
TITLE = "报告"
PROSE = """# Report

The report has a table and a list.

### Details

| file | lines |
|---|---|
| a.py | 3 |

1. First `step`
2. Second step

![a chart](chart.png)

```python
print("done")
```
"""
CHOICES = [{"label": "Belém", "description": "in the west"}, {"label": "Cacilhas"}]
QUESTIONS = [
    {"question": "Which harbour?", "type": "choice", "options": CHOICES},
    {"question": "Which others?", "type": "choice", "options": CHOICES, "multiSelect": True},
    {"question": "What is it called?", "type": "text", "placeholder": "a name"},
    {"question": "Write over it?", "type": "yesno"},
]
ASKED: dict[str, dict[str, Any]] = {
    "edit": {"name": "write_file", "arguments": {"file_path": "a.py", "content": "x = 2\n", "instruction": "Go on"}},
    "run": {"name": "run_shell_command", "arguments": {"command": "exit 3", "description": "Try"}},
    "form": {"name": "ask_user", "arguments": {"questions": QUESTIONS}},
    "release": {"name": "release", "arguments": {}},
    "login": {"name": "page", "arguments": {"url": "https://login.example.org/a"}},
}
"""A call for each kind of question, by the prompt of its task."""
SCRIPT = json.dumps(
    {
        "name": "practice",
        "scenarios": [
            {"prompt": rf"\A{prompt}\Z", "replies": [{"call": call}, {"text": "It is over."}]}
            for prompt, call in ASKED.items()
        ]
        + [{"prompt": ".", "replies": [{"text": "You said: {{prompt}}"}]}],
    }
)  # a YAML document, too


def varied_task() -> Iterator[AgentEvent]:
    """Yield the events of a turn with a plan, thoughts, headings, an image, an edit, and calls that failed."""
    todos = [
        {"description": "Read the files", "status": "completed"},
        {"description": "Write the report", "status": "in_progress"},
        {"description": "Send it", "status": "pending"},
    ]
    yield Thought(AgentThought("Look first", "Which files are there?"))
    yield from _call("plan", "write_todos", {"todos": todos}, ToolOutput(text="ok"))
    yield TextContent("text", PROSE)
    yield from _call("read", "read_file", {"file_path": "/w/a.py"}, ToolOutput(text="x = 1\n"))
    yield from _call("shell", "run_shell_command", {"command": "exit 3"}, ToolOutput(text="Output: no\nExit code: 3"))
    diff = FileDiff("a.py", "/w/a.py", "x = 2\ny = 3\n", "x = 1\ny = 3\n")
    yield from _call("edit", "replace", {"file_path": "/w/a.py", "instruction": "Go"}, ToolOutput(diff=diff))
    path = {"file_path": "/w/b.py"}
    yield ToolCallUpdate(ToolCall("failed", ToolCallStatus.FAILED, "read_file", path, error=ErrorDetails("gone")))
    yield TextContent("last", "The report is written.")


def _call(call_id: str, tool: str, parameters: dict[str, object], output: ToolOutput) -> Iterator[ToolCallUpdate]:
    yield ToolCallUpdate(ToolCall(call_id, ToolCallStatus.EXECUTING, tool, parameters))
    yield ToolCallUpdate(ToolCall(call_id, ToolCallStatus.SUCCEEDED, tool, parameters, output=output))


@contextmanager
def varied_workbench(folder: Path, workspace: Path) -> Generator[Workbench]:
    """Start a server with the session `varied`, titled in Chinese, and with an MCP server `tickets`."""
    (workspace / "a.py").write_text("x = 1\n", "utf-8")
    server = {"command": sys.executable, "args": [str(ASKING), str(folder / "log")], "trust": True}
    (folder / "log").touch()
    (folder / "mcp.json").write_text(json.dumps({"mcpServers": {"tickets": server}}), "utf-8")
    seed(folder / "data", workspace, "varied", varied_task(), TITLE)
    with workbench(folder, workspace, SCRIPT, "--mcp-config", str(folder / "mcp.json")) as found:
        yield found


def ask_each(served: Workbench, page: Page) -> dict[str, str]:
    """Let one question of each kind wait; return the ids of the tasks by their prompts."""
    tasks = {prompt: served.begin(page, prompt) for prompt in ASKED}
    expect(page.locator(".item:not(.done)")).to_have_count(len(tasks))
    return tasks
