"""The ``isthmus`` command: a conversation with the local agent, and a table of the other commands.

Each command is a module, which is imported only when it runs, so that the help is shown at once.
"""

import codecs
import errno
import io
import os
import re
import sys
from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from typing_extensions import override

from isthmus.cli.arguments.agent_options import agent_options
from isthmus.cli.arguments.lazy_group import LazyCommand, LazyGroup
from isthmus.cli.arguments.option_group import gathered
from isthmus.cli.arguments.request_options import prompt_options
from isthmus.errors import IsthmusError
from isthmus.programs.setup.setup import GivenOptions
from isthmus.programs.terminal.run_request import GivenRequest, run_request

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

BAD_INPUT = 42
"""Exit status for invalid arguments and settings; the same as Gemini CLI's."""

CANCELLED = 130
"""Exit status after Ctrl-C."""


COMMANDS = {
    "web": LazyCommand("isthmus.cli.web", "Work with the agent in a browser."),
    "serve": LazyCommand("isthmus.cli.serve", "Serve the agent to A2A clients."),
    "connect": LazyCommand("isthmus.cli.connect", "Talk to an agent that runs elsewhere."),
    "acp": LazyCommand("isthmus.cli.acp", "Serve the agent to an editor that speaks ACP."),
    "mcp": LazyCommand("isthmus.cli.mcp", "Add, list, remove and try MCP servers, which give the agent more tools."),
    "trust": LazyCommand("isthmus.cli.trust", "Decide whether the configuration in a folder may start programs here."),
    "tasks": LazyCommand("isthmus.cli.tasks", "Show, export or delete the tasks that are stored on this machine."),
    "journal": LazyCommand("isthmus.cli.journal", "Inspect, check, upgrade, copy and back up the journal of tasks."),
    "companion": LazyCommand(
        "isthmus.cli.companion", "Serve an editor to agent CLIs: share context, review their edits."
    ),
    "ide": LazyCommand("isthmus.cli.ide", "Act as the user in a running companion."),
    "bridge": LazyCommand(
        "isthmus.cli.bridge", "Let every agent CLI use an IDE extension that was made for one of them."
    ),
    "doctor": LazyCommand("isthmus.cli.doctor", "Find out why an agent CLI does not find your editor."),
    "plugin": LazyCommand("isthmus.cli.plugin", "Print the path of the plugin for an editor."),
    "demo": LazyCommand("isthmus.cli.demo", "Show a whole task, from the prompt to the reviewed edit."),
    "update": LazyCommand("isthmus.cli.update", "Say how this program was installed, and how it is updated."),
    "completion": LazyCommand("isthmus.cli.completion", "Print the script by which a shell completes this program."),
}


WITHOUT_WORDS = frozenset({"update"})
"""Commands that take no words: with words they begin a prompt, such as "update the tests"."""
_LOGIN = "set the key of a model's provider, such as GEMINI_API_KEY; `isthmus mcp login NAME` is for an MCP server"
ELSEWHERE = {
    "auth": _LOGIN,
    "login": _LOGIN,
    "logout": _LOGIN,
    "upgrade": "`isthmus update` says how",
    "version": "`isthmus --version` prints it",
}
"""Commands of other programs that Isthmus does not have, and what to do instead."""


class _Commands(LazyGroup):
    @override
    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the options and a command's name, or the options around the words of a prompt."""
        _, rest, _ = self.make_parser(ctx).parse_args(list(args))
        if not rest or (rest[0] in COMMANDS and not _begins_prompt(rest)):
            return super().parse_args(ctx, args)
        ctx.allow_interspersed_args = True
        words = click.Command.parse_args(self, ctx, args)
        ctx.args = []  # otherwise the group takes the first word for the name of a command
        ctx.params["words"] = tuple(words)
        if ctx.resilient_parsing:  # a shell asks what could come next
            return []
        if (path := self._helped(ctx, words)) is not None:
            ctx.allow_interspersed_args = False
            return super().parse_args(ctx, [*path, "--help"])
        if found := ELSEWHERE.get(words[0].lower()) if len(words) == 1 else None:
            raise click.UsageError(
                f"Unknown command {' '.join(words)!r}: {found}. To send it as a prompt use -p or -i.", ctx
            )
        if meant := self._meant(ctx, words):
            raise click.UsageError(
                f"Unknown command {words[0]!r}. Did you mean {meant}? To send it as a prompt use -p or -i.", ctx
            )
        return []

    @override
    def shell_complete(self, ctx: click.Context, incomplete: str) -> list["CompletionItem[Any]"]:
        """Return commands and options, or files behind the first word of a prompt."""
        if ctx.params.get("words", ()) in ((), ("help",)) or incomplete.startswith("-"):
            return super().shell_complete(ctx, incomplete)
        from click.shell_completion import CompletionItem

        return [CompletionItem(incomplete, type="file")]

    def _helped(self, ctx: click.Context, words: Sequence[str]) -> Sequence[str] | None:
        """Return the command that ``help`` is asked for, empty for the program itself; None for a prompt."""
        path = words[1:]
        if words[0].lower() != "help" or len(path) > 2 or (path and path[0] not in COMMANDS):
            return None
        if len(path) == 2:
            group = self.get_command(ctx, path[0])
            if not isinstance(group, click.Group) or path[1] not in group.list_commands(ctx):
                return None
        return path

    def _meant(self, ctx: click.Context, words: Sequence[str]) -> str | None:
        """Return the command that was mistyped, alone or before one of its own commands; None for a prompt."""
        likely = get_close_matches(words[0], COMMANDS) if len(words) in (1, 2) else []
        if len(words) == 1:
            return likely[0] if likely else None
        for name in likely:
            found = self.get_command(ctx, name)
            if isinstance(found, click.Group) and words[1] in found.list_commands(ctx):
                return f"{name} {words[1]}"
        return None


@click.group(
    cls=_Commands,
    table=COMMANDS,
    invoke_without_command=True,
    subcommand_metavar="[PROMPT... | COMMAND [ARGS]...]",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@prompt_options
@agent_options
@click.option(
    "-r",
    "--resume",
    metavar="[latest|ID]",
    is_flag=False,
    flag_value="latest",
    help="Continue an earlier session of this folder; a question that waits is asked again.",
)
@click.option("-c", "--continue", "continues", is_flag=True, help="Continue the latest session of this folder.")
@click.option(
    "-w",
    "--worktree",
    metavar="[NAME]",
    is_flag=False,
    flag_value="",
    help="Work in a git worktree of its own, .isthmus/worktrees/NAME, on the branch isthmus/NAME.",
)
@click.option("--list-sessions", is_flag=True, help="List the sessions of this folder and exit.")
@click.version_option(package_name="isthmus", message="%(version)s")
@gathered("request", GivenRequest)
@click.pass_context
def command(
    context: click.Context,
    request: GivenRequest,
    given: GivenOptions,
) -> int | None:
    """Talk to a coding agent about the files of this folder.

    It asks before it changes a file or runs a command; edits are shown for review here and, when an editor is attached
    by `isthmus companion`, in the editor. The model is chosen by -m, your settings, the keys in the environment
    (GEMINI_API_KEY, ANTHROPIC_API_KEY, OPENAI_API_KEY), or a local server; without any, a built-in demonstration.

    \b
    isthmus                                  talk in this terminal
    isthmus "Explain this project"           the same, with a first prompt
    isthmus -p "What does this do?" < f.py   one answer, for scripts
    isthmus serve --port 8080                for A2A clients
    """
    if context.invoked_subcommand is not None:
        _refuse_options_before(context.invoked_subcommand, context)
        return None
    from isthmus.cli.run import run

    return run(given, run_request(request, is_typed=sys.stdin.isatty()))


def _begins_prompt(words: Sequence[str]) -> bool:
    return words[0] in WITHOUT_WORDS and any(not word.startswith("-") for word in words[1:])


def _refuse_options_before(name: str, context: click.Context) -> None:
    """Raise UsageError for an option before the command `name`, which would silently ignore it."""
    for parameter in context.command.params:
        source = context.get_parameter_source(parameter.name or "")
        if source is click.core.ParameterSource.COMMANDLINE:
            option = parameter.opts[-1]
            message = f"{option} stands before `{name}`, where it has no effect; put the options of `{name}` after it"
            raise click.UsageError(message, context)


def run(arguments: Sequence[str]) -> int:
    """Run the command line and return the exit status.

    0 means done, 1 failed, 42 bad input, 44 no sandbox, 45 a required MCP server missing, 130 interrupted. A failure
    before there is a task is printed on stderr and, when -o asks for it, on stdout as JSON too.
    """
    _open_closed_streams()
    _allow_any_character()
    try:
        result = command.main(args=list(arguments), prog_name="isthmus", standalone_mode=False)
        sys.stdout.flush()
    except click.ClickException as error:
        status = BAD_INPUT if isinstance(error, click.UsageError) else error.exit_code
        kind = getattr(error, "kind", "FatalInputError")
        if not _failed_as_json(arguments, kind, error.format_message(), status):
            error.show()
        return status
    except (click.Abort, KeyboardInterrupt):
        _failed_as_json(arguments, "FatalCancellationError", "Operation cancelled.", CANCELLED)
        return CANCELLED
    except IsthmusError as error:
        if not _failed_as_json(arguments, type(error).__name__, str(error), 1):
            from isthmus.text.visible import visible

            click.echo(f"isthmus: {visible(str(error))}", err=True)  # it may quote a server
        return 1
    except OSError as error:
        if isinstance(error, FileNotFoundError) and _folder_is_gone():
            message = "the current folder no longer exists; change to another one"
            if not _failed_as_json(arguments, "FatalInputError", message, BAD_INPUT):
                click.echo(f"isthmus: {message}", err=True)
            return BAD_INPUT
        if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EPIPE):
            raise
        from isthmus.terminal.headless.headless_output import discard_buffer

        discard_buffer(sys.stdout)
        click.echo(f"isthmus: the output cannot be written: {error.strerror}", err=True)
        return 1
    return result if isinstance(result, int) else 0


def _folder_is_gone() -> bool:
    try:
        Path.cwd()
    except FileNotFoundError:
        return True
    return False


def _open_closed_streams() -> None:
    """Replace closed standard streams by /dev/null, so that no other file gets their descriptors."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open(mode, encoding="utf-8"))  # noqa: SIM115 - stays open


def _allow_any_character() -> None:
    """Write ``?`` for characters that the locale's encoding lacks, and read ASCII as UTF-8."""
    written: object = sys.stdout
    if type(written) is io.TextIOWrapper and written.errors in ("strict", "surrogateescape"):
        written.reconfigure(errors="replace")
    read: object = sys.stdin
    if type(read) is io.TextIOWrapper and codecs.lookup(read.encoding).name == "ascii":
        read.reconfigure(encoding="utf-8", errors="replace")


def _failed_as_json(arguments: Sequence[str], kind: str, message: str, status: int) -> bool:
    """Print a failure in the JSON format that the arguments ask for; return False when they ask for none."""
    # Not by click: the arguments may be what failed, and then none of them were parsed.
    found = re.search(r"(?:^|\0)(?:-o\0?|--output-format[=\0])(json|stream-json)(?:\0|$)", "\0".join(arguments))
    if found is None:
        return False
    from isthmus.terminal.headless.headless_output import RunError, failed_before_task

    failed_before_task(found[1], RunError(kind, message, status), sys.stdout, sys.stderr)
    return True
