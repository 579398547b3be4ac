"""``isthmus companion``: serve an editor to agent CLIs; ``isthmus companion exec``: run an agent CLI beside it."""

import os
import sys
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

import click

from isthmus.cli.arguments.command_groups import JsonErrorGroup
from isthmus.cli.arguments.file_location import parse_place
from isthmus.cli.arguments.option_group import gathered
from isthmus.ide.discovery.protocols import IDE_PROTOCOLS
from isthmus.programs.companion.serving_editor import serve_editor
from isthmus.record import record

if TYPE_CHECKING:
    from isthmus.ide.control.control_client import RunningCompanion
    from isthmus.ide.editor import Editor
    from isthmus.ide.options import CompanionOptions

START_SECONDS = 15.0
STARTED_BY_PLUGIN = ("emacs", "sublime")
WITHOUT_EDITOR = ("web", "headless")
"""Editors that are parts of the companion itself."""
WITH_EXTENSIONS = ("vscode", "code", "cursor", "windsurf", "jetbrains", "intellij", "idea", "pycharm")


class EditorName(click.Choice[str]):
    """Name of an editor; the error for another name says how that editor works with agents."""

    name = "editor"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the name in the form that the rest of the command uses."""
        if value == "neovim":
            return "nvim"
        if value in STARTED_BY_PLUGIN:
            self.fail(f"a plugin in {value} starts the companion; get it with `isthmus plugin {value}`", param, ctx)
        if value in WITH_EXTENSIONS:
            self.fail(
                f"{value} has extensions of its own; `isthmus bridge` shares one of them with every agent", param, ctx
            )
        return super().convert(value, param, ctx)


@record(kw_only=True)
class GivenCompanion:
    """The options of ``isthmus companion`` as given on the command line."""

    editor: str | None
    workspaces: tuple[str, ...]
    opened: tuple[str, ...]
    address: str | None
    fresh: bool
    allow_agent_accept: bool
    no_context: bool
    no_selection: bool
    no_diff: bool
    no_record: bool
    is_trusted: bool | None
    tool_files: tuple[str, ...]
    linters: str
    protocols: tuple[str, ...]
    as_json: bool
    until_exit_of: int | None


_EDITOR_HELP = (
    "The editor to serve. web: a page in your browser; headless: commands of `isthmus ide` alone. Default: by "
    "--address; nvim in a Neovim terminal ($NVIM), else web."
)
_STDIO_HELP = " stdio: an editor whose plugin started this process and speaks over standard input and output."
_WORKSPACE_HELP = "A workspace folder. Repeatable. Default: the editor's folder; for web and headless, the current one."
_DIAGNOSTICS_HELP = (
    "Report to agents what linters find in open files: `ruff`, `pyright` or `ruff,pyright`. They run in the workspace, "
    "as programs, whenever a file is written. For editors that have no diagnostics of their own."
)
_ADDRESS_HELP = (
    "Address of Neovim as shown by `:echo v:servername` (default: $NVIM); or the URL of a Jupyter server with its "
    "token, or the connection file of a kernel (default: the Jupyter server that runs for this folder)."
)


@click.group(
    "companion",
    cls=JsonErrorGroup,
    invoke_without_command=True,
)
@click.option(
    "--editor", type=EditorName(["nvim", "jupyter", "web", "headless", "stdio"]), help=_EDITOR_HELP + _STDIO_HELP
)
@click.option("--workspace", "workspaces", metavar="DIR", multiple=True, help=_WORKSPACE_HELP)
@click.option(
    "--open", "opened", metavar="FILE[:LINE[:CHAR]]", multiple=True, help="Open a file; the last one gets the focus."
)
@click.option("--address", metavar="ADDRESS", help=_ADDRESS_HELP)
@click.option("--fresh", is_flag=True, help="Do not take over port and token of a companion that has just stopped.")
@click.option("--allow-agent-accept", is_flag=True, help="Let `isthmus ide accept` work also for an agent's processes.")
@click.option("--no-context", is_flag=True, help="Do not send agents what you have open.")
@click.option("--no-selection", is_flag=True, help="Send agents the open files, but not your selection.")
@click.option("--no-diff", is_flag=True, help="Do not show reviews here: agents ask in their own terminals.")
@click.option("--no-record", is_flag=True, help="Do not record what agents write, for `isthmus ide changes`.")
@click.option(
    "--trusted/--untrusted",
    "is_trusted",
    default=None,
    help="Report this workspace to agents as trusted, or as not trusted. Default: the editor's setting.",
)
@click.option(
    "--tools", "tool_files", metavar="FILE.py", multiple=True, help="Offer agents the tools that this file declares."
)
@click.option(
    "--protocol",
    "protocols",
    type=click.Choice([protocol.name for protocol in IDE_PROTOCOLS]),
    multiple=True,
    help="Serve only agents of this kind. Default: all. Useful when another extension serves the others.",
)
@click.option("--diagnostics", "linters", metavar="LINTERS", default="", help=_DIAGNOSTICS_HELP)
@click.option("--json", "as_json", is_flag=True, help="Print the ready line as JSON.")
@click.option("--until-exit-of", type=int, metavar="PID", hidden=True)
@gathered("given", GivenCompanion)
@click.pass_context
def command(context: click.Context, given: GivenCompanion) -> None:
    """Serve an editor to agent CLIs: they see your open files and show their edits to you for review.

    Runs until it is stopped or the editor quits. Agent CLIs that are started in the workspace find it by themselves
    (in Gemini CLI: /ide enable). You act from another terminal with `isthmus ide ...`, or in Neovim directly. Emacs and
    Sublime Text start it themselves, by the plugin that `isthmus plugin` names.

    \b
    isthmus companion --open src/main.py:12
    isthmus companion exec -- gemini
    """
    if context.invoked_subcommand is not None:
        return
    name = given.editor or _default_editor(given.address)
    named = given.workspaces or ((".",) if name in WITHOUT_EDITOR else ())
    options = _options(given, tuple(dict.fromkeys(_folder(folder) for folder in named)))
    from isthmus.programs.process.event_loop import run_loop

    run_loop(_run(name, given.opened, given.address, options, given.as_json))


def _options(given: GivenCompanion, folders: tuple[str, ...]) -> "CompanionOptions":
    from isthmus.ide.options import CompanionOptions

    return CompanionOptions(
        folders,
        is_trusted=given.is_trusted,
        fresh=given.fresh,
        allow_agent_accept=given.allow_agent_accept,
        watch=given.until_exit_of,
        share_context=not given.no_context,
        share_selection=not given.no_selection,
        show_diffs=not given.no_diff,
        records_changes=not given.no_record,
        tool_files=given.tool_files,
        linters=tuple(name.strip() for name in given.linters.split(",") if name.strip()),
        protocols=tuple(dict.fromkeys(given.protocols)),
    )


async def _run(
    name: str, opened: tuple[str, ...], address: str | None, options: "CompanionOptions", as_json: bool
) -> None:
    places = [parse_place(place, options.folders) for place in opened]
    editor = await _editor(name, options.folders, address, tuple(path for path, _ in places))
    try:
        for path, at in places if name != "jupyter" else ():  # in Jupyter they are open from the start
            await editor.open_file(path, at)
        await serve_editor(editor, name, options, as_json=as_json)
    finally:
        await editor.aclose()


async def _editor(name: str, folders: tuple[str, ...], address: str | None, opened: tuple[str, ...]) -> "Editor":
    if name == "nvim":
        from isthmus.editors.neovim import editor as neovim

        return await neovim.attach(address or neovim.default_address(os.environ))
    if name == "jupyter":
        from isthmus.editors.jupyter import editor as jupyter

        return await jupyter.attach(address, folders, opened=opened)
    if address is not None:
        raise click.UsageError(f"--address belongs to --editor nvim and jupyter; {name} has none")
    if name == "stdio":
        from isthmus.editors.plugin import editor as stdio
        from isthmus.editors.plugin.connection import take_pipes

        return await stdio.attach(*take_pipes())
    if name == "web":
        from isthmus.programs.companion.page import WebEditor, require_page

        require_page()
        return WebEditor(folders)
    from isthmus.editors.headless import HeadlessEditor

    return HeadlessEditor(folders)


@command.command("exec", context_settings={"allow_interspersed_args": False})
@click.option("--editor", type=EditorName(["nvim", "jupyter", "web", "headless"]), help=_EDITOR_HELP)
@click.option("--workspace", "workspaces", metavar="DIR", multiple=True, help=_WORKSPACE_HELP)
@click.option("--address", metavar="ADDRESS", help=_ADDRESS_HELP)
@click.option("--no-permissions", is_flag=True, help="Leave permission questions to the agent's own terminal.")
@click.argument("arguments", metavar="-- CMD [ARGUMENTS]...", nargs=-1, required=True, type=click.UNPROCESSED)
def exec_command(
    editor: str | None,
    workspaces: tuple[str, ...],
    address: str | None,
    no_permissions: bool,
    arguments: tuple[str, ...],
) -> None:
    """Run an agent CLI that is connected to this workspace's companion.

    Uses the companion that runs for the workspace, or starts one that ends with the agent. The agent's process replaces
    this one, so its exit code and signals are its own. It gets every variable that real clients read, and loopback in
    NO_PROXY, but not the token with which you accept edits. Qwen Code is then in IDE mode, unless your settings say
    ide.enabled: false; in Gemini CLI enter /ide enable once.

    What Claude Code asks permission for is asked in your editor, the inbox of the workbench and `isthmus ide questions`
    too; the first answer counts. Its prompts are the titles of what it writes in `isthmus ide changes`. It gets the
    hooks for that by its option --settings; no file of yours is changed.

    \b
    isthmus companion exec -- gemini
    """
    import shutil

    from isthmus.files.locations import data_directory, runtime_directory
    from isthmus.ide.claude.hook_settings import with_hooks
    from isthmus.ide.gemini.cli_settings import gemini_ide_mode, ide_mode_defaults
    from isthmus.network.loopback import terminal_environment

    program = shutil.which(arguments[0])
    if program is None:
        click.echo(f"isthmus: there is no program {arguments[0]!r} on PATH", err=True)
        raise SystemExit(127)
    companion = _find_or_start(editor, tuple(_folder(folder) for folder in workspaces), address)
    variables = {**companion.variables, **ide_mode_defaults(os.environ, data_directory())}
    environment = terminal_environment(variables, os.environ)
    if any(PurePath(argument).stem == "gemini" for argument in arguments) and (
        hint := gemini_ide_mode(Path.cwd(), os.environ)
    ):
        click.echo(f"isthmus: Gemini CLI: {hint}", err=True)
    command_line = with_hooks(arguments, runtime_directory(), companion.port, permissions=not no_permissions)
    sys.stdout.flush()
    sys.stderr.flush()
    try:
        os.execve(program, command_line, environment)  # noqa: S606 - no shell, on purpose
    except OSError as error:
        click.echo(f"isthmus: {program} cannot be run: {error.strerror}", err=True)
        raise SystemExit(126) from error


def _find_or_start(editor: str | None, folders: tuple[str, ...], address: str | None) -> "RunningCompanion":
    """Return a companion that knows this process and stays as long as it lives."""
    from isthmus.ide.control import control_client

    wanted = editor or _default_editor(address)
    running = [found for found in control_client.running() if editor is None or found.editor == _identity(editor)]
    try:
        companion = control_client.choose(running, folders[0] if folders else ".", os.environ)
        control_client.ask(companion, "agent", pid=os.getpid())
    except (control_client.NoCompanionError, control_client.RefusedError):  # none, or one that is ending
        companion = _start(wanted, folders, address)
        control_client.ask(companion, "agent", pid=os.getpid())
    return companion


def _start(editor: str, folders: tuple[str, ...], address: str | None) -> "RunningCompanion":
    import json
    import select
    import subprocess

    from isthmus.errors import IsthmusError
    from isthmus.files.locations import data_directory, make_private_directory
    from isthmus.ide.control import control_client

    arguments = [sys.executable, "-P", "-m", "isthmus", "companion", "--json", "--editor", editor]
    arguments += ["--until-exit-of", str(os.getpid())]
    arguments += [part for folder in folders for part in ("--workspace", folder)]
    arguments += ["--address", address] if address else []
    make_private_directory(data_directory())
    log = data_directory() / "companion-exec.log"
    with log.open("wb") as errors:
        process = subprocess.Popen(
            arguments, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors, start_new_session=True
        )
    ready = b""
    if process.stdout is not None and select.select([process.stdout], [], [], START_SECONDS)[0]:
        ready = process.stdout.readline()
    for companion in control_client.running():
        if companion.pid == process.pid:
            if ready and (page := json.loads(ready).get("page")):
                click.echo(f"isthmus: Review its edits in your browser: {page}", err=True)
            return companion
    process.kill()
    reason = (
        log.read_text(encoding="utf-8", errors="replace").strip() or f"it was not ready after {START_SECONDS:.0f} s"
    )
    raise IsthmusError(f"the companion could not be started: {reason.removeprefix('isthmus: ')}")


def _default_editor(address: str | None) -> str:
    if address is not None and (address.startswith(("http://", "https://")) or address.endswith(".json")):
        return "jupyter"
    if address is not None or os.environ.get("NVIM"):
        return "nvim"
    from isthmus.programs.companion.page import page_is_built

    return "web" if page_is_built() else "headless"


def _identity(editor: str) -> str:
    return "neovim" if editor == "nvim" else editor


def _folder(path: str) -> str:
    if not os.path.isdir(path):  # noqa: PTH112 - Path raises for a name that is too long
        raise click.UsageError(f"--workspace: {path} is not a folder; expected an existing one")
    return os.path.realpath(path)
