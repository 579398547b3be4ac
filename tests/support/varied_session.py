"""A server whose pages show one of each: a session with each kind of event, and a server of tools."""

import json
import sys
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

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
SCRIPT = json.dumps(
    {
        "name": "practice",
        "scenarios": [
            {
                "prompt": r"\Awrite",
                "replies": [
                    {"call": {"name": "write_file", "arguments": {"file_path": "a.py", "content": "x = 2\ny = 3\n"}}},
                    {"text": "It is over."},
                ],
            },
            {"prompt": ".", "replies": [{"text": "You said: {{prompt}}"}]},
        ],
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
