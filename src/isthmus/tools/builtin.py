"""The tools that every agent has. To add one, copy a file of a room beside this one and list its class here."""

from isthmus.tools.ask_user import AskUserTool
from isthmus.tools.edits.apply_patch import ApplyPatch
from isthmus.tools.edits.editor_text import EditorText, no_editor
from isthmus.tools.edits.notebook_edit import NotebookEdit
from isthmus.tools.edits.replace import Replace
from isthmus.tools.edits.write_file import WriteFile
from isthmus.tools.port.tool_set import ToolSet
from isthmus.tools.reading.read_file import ReadFile
from isthmus.tools.reading.read_many_files import ReadManyFiles
from isthmus.tools.search.glob import Glob
from isthmus.tools.search.grep_search import GrepSearch
from isthmus.tools.search.list_directory import ListDirectory
from isthmus.tools.shell.background_commands import BackgroundCommands
from isthmus.tools.shell.background_tools import ListBackgroundProcesses, ReadBackgroundOutput, StopBackgroundProcess
from isthmus.tools.shell.run_shell_command import INACTIVITY_SECONDS, RunShellCommand
from isthmus.tools.shell.shell_sandbox import ShellSandbox
from isthmus.tools.shell.trials.command_trial import CommandTrials
from isthmus.tools.web.google_web_search import GoogleWebSearch
from isthmus.tools.web.web_fetch import WebFetch
from isthmus.tools.write_todos import WriteTodos


def builtin_tools(
    *,
    shell_inactivity_seconds: float = INACTIVITY_SECONDS,
    shell_sandbox: ShellSandbox | None = None,
    editor_text: EditorText = no_editor,
    background: BackgroundCommands | None = None,
    trials: CommandTrials | None = None,
) -> ToolSet:
    """Return the built-in tools, always in the same order, because providers cache the beginnings of prompts.

    Without ``background`` no command runs in the background; with ``trials`` commands are tried in a copy.
    """
    beside = ()
    if background is not None:
        beside = (
            ListBackgroundProcesses(background),
            ReadBackgroundOutput(background),
            StopBackgroundProcess(background),
        )
    return ToolSet.of(
        ListDirectory(),
        ReadFile(editor_text),
        GrepSearch(),
        Glob(),
        Replace(editor_text),
        WriteFile(editor_text),
        NotebookEdit(editor_text),
        RunShellCommand(shell_inactivity_seconds, shell_sandbox, background=background, trials=trials),
        *beside,
        ReadManyFiles(),
        WriteTodos(),
        AskUserTool(),
        WebFetch(),
        GoogleWebSearch(),
        ApplyPatch(editor_text),
    )
