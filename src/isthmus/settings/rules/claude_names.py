"""Names that Claude Code gives our tools, in its hooks and in its permission rules."""

from collections.abc import Mapping
from types import MappingProxyType

CLAUDE_NAMES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "activate_skill": ("Skill",),
        "apply_patch": ("Edit", "MultiEdit", "Write"),
        "ask_user": ("AskUserQuestion",),
        "glob": ("Glob",),
        "google_web_search": ("WebSearch",),
        "grep_search": ("Grep",),
        "invoke_agent": ("Task", "Agent"),
        "list_directory": ("LS",),
        "list_mcp_resources": ("ListMcpResourcesTool",),
        "notebook_edit": ("NotebookEdit",),
        "read_file": ("Read",),
        "read_many_files": ("Read",),
        "read_mcp_resource": ("ReadMcpResourceTool",),
        "replace": ("Edit", "MultiEdit"),
        "run_shell_command": ("Bash",),
        "web_fetch": ("WebFetch",),
        "write_file": ("Write",),
        "write_todos": ("TodoWrite",),
    }
)
"""Names that Claude Code gives the same tools, the usual one first."""
READING_TOOLS = frozenset({"glob", "grep_search", "list_directory", "read_file", "read_many_files"})
"""Tools that show the model files: a rule on ``Read`` means all of them."""
EDITING_TOOLS = frozenset({"apply_patch", "notebook_edit", "replace", "write_file"})
"""Tools that change files: a rule on ``Edit`` means all of them."""
OTHER_TOOLS = frozenset(
    {
        "BashOutput",
        "CronCreate",
        "CronDelete",
        "CronList",
        "EnterPlanMode",
        "EnterWorktree",
        "ExitPlanMode",
        "ExitWorktree",
        "KillBash",
        "KillShell",
        "LSP",
        "ListMcpResources",
        "Monitor",
        "NotebookRead",
        "PowerShell",
        "PushNotification",
        "ReadMcpResource",
        "RemoteTrigger",
        "ScheduleWakeup",
        "SendMessage",
        "SendUserFile",
        "SlashCommand",
        "StructuredOutput",
        "TaskCreate",
        "TaskGet",
        "TaskList",
        "TaskOutput",
        "TaskStop",
        "TaskUpdate",
        "TeamCreate",
        "TeamDelete",
        "TodoRead",
        "ToolSearch",
        "WaitForMcpServers",
        "Workflow",
    }
)
"""Tools of Claude Code that Isthmus does not have, so that a rule on them has nothing to forbid."""
