"""Runs a companion for an editor until a signal or the editor ends it; prints a line when it is ready."""

import asyncio
import contextlib
import json
import os
import signal
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from isthmus.ide.editor import Editor
    from isthmus.ide.options import CompanionOptions
    from isthmus.ide.running.host import Ready

NEXT_STEP = (
    "Now start an agent in this folder, in {where} terminal: gemini or qwen (in these once: /ide enable), "
    "claude --ide, or isthmus. {end} stops the companion."
)
"""Advice for a user at a terminal, printed below the line that reports that the companion is ready."""
ALONE = ("web", "headless")
"""Names of the editors without a program of their own."""
PAGE = (
    "Review edits in your browser: {link}\n"
    "The link lets one browser in, within ten minutes; for another one: isthmus ide page"
)


async def serve_editor(editor: "Editor", name: str, options: "CompanionOptions", *, as_json: bool) -> None:
    """Run a companion for an editor, which the caller closes. ``name`` is its name on the command line.

    Raises:
        CompanionError: the companion could not start.
    """
    from isthmus.ide.running.host import CompanionHost
    from isthmus.listeners.limits import raise_descriptor_limit
    from isthmus.programs.companion.page import WebEditor, serving_page
    from isthmus.text.visible import visible_line

    raise_descriptor_limit()
    host = CompanionHost(editor, options)
    loop = asyncio.get_running_loop()
    received: list[int] = []

    def stop(number: int) -> None:
        received.append(number)
        host.stop()

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        loop.add_signal_handler(number, stop, number)

    def say(ready: "Ready") -> None:
        _say_ready(ready, editor, name, as_json=as_json)
        if name in ("nvim", "jupyter", *ALONE) and any(server.name == "claude" for server in ready.servers):
            _tell_of_another(ready, editor, name)

    page = serving_page(host, editor) if isinstance(editor, WebEditor) else contextlib.nullcontext()
    async with page:
        await host.run(say)
    if not received and options.watch is None and name != "stdio":
        quit_line = visible_line(f"isthmus: {editor.identity.display_name} has quit, and the companion with it")
        print(quit_line, file=sys.stderr)


def _say_ready(ready: "Ready", editor: "Editor", name: str, *, as_json: bool) -> None:
    from isthmus.programs.companion.page import WebEditor
    from isthmus.text.visible import visible_line

    page = editor.review_page() if isinstance(editor, WebEditor) else None
    if name == "stdio":
        _announce(ready, editor)  # standard output belongs to the plugin; the line below goes to standard error
    if as_json:
        line = json.dumps(
            {
                "port": ready.port,
                "discovery_file": ready.discovery_file,
                "workspace_folders": list(ready.workspace_folders),
                "servers": {
                    server.name: {"port": server.port, "discovery_files": list(server.discovery_files)}
                    for server in ready.servers
                },
                "editor": name,
                "pid": os.getpid(),
                **({"page": page} if page is not None else {}),
            }
        )
    else:
        folders = os.pathsep.join(ready.workspace_folders)
        again = ", taken over from before" if ready.taken_over else ""
        line = f"Companion ready on port {ready.port}{again} ({name}, {folders}); discovery file {ready.discovery_file}"
        line = visible_line(line)  # the names of an IDE and of its folders may contain control characters
        line += f"\n{PAGE.format(link=page)}" if page is not None else ""
        line += f"\n{_next_step()}" if name != "stdio" and sys.stdout.isatty() else ""
    try:
        print(line, flush=True)
    except OSError:  # the parent process closed our output
        from isthmus.terminal.headless.headless_output import discard_buffer

        discard_buffer(sys.stdout)


def _next_step() -> str:
    """Return the advice for a companion that occupies its terminal or was started in the background (``&``)."""
    try:
        in_background = os.tcgetpgrp(sys.stdout.fileno()) != os.getpgrp()
    except OSError:  # not the terminal of this session
        in_background = True
    if in_background:
        return NEXT_STEP.format(where="this or another", end=f"`kill {os.getpid()}`")
    return NEXT_STEP.format(where="another", end="Ctrl-C")


def _tell_of_another(ready: "Ready", editor: "Editor", name: str) -> None:
    """Warn that the editor or the folder already has a companion: agents that find two of them use neither."""
    from isthmus.ide.control import control_client

    for other in control_client.running():
        if other.pid == os.getpid() or "CLAUDE_CODE_SSE_PORT" not in other.variables:
            continue
        if other.editor_pid == editor.identity.pid:
            which = f"{editor.identity.display_name} already has another companion"
            reason = " (its plugin starts one by itself)"
        elif name in ALONE and other.editor in ALONE and {*ready.workspace_folders} & {*other.workspace_folders}:
            which, reason = "this folder already has another companion without an editor", ""
        else:
            continue
        advice = "stop one of them, otherwise `claude --ide` uses neither"
        print(f"isthmus: {which}, on port {other.port}{reason}; {advice}", file=sys.stderr)
        return


def _announce(ready: "Ready", editor: "Editor") -> None:
    from isthmus.editors.plugin.editor import StdioEditor
    from isthmus.network.loopback import terminal_environment

    if isinstance(editor, StdioEditor):
        own = {name: os.environ[name] for name in ("NO_PROXY", "no_proxy") if name in os.environ}
        files = [file for server in ready.servers for file in server.discovery_files]
        editor.announce(terminal_environment(ready.variables, own), files)
