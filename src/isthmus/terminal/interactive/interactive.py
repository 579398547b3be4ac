"""A conversation on stdin and stdout: its parts put together, and the signals that end it.

Heavy imports happen in ``run_interactive``; the conversation itself is in ``conversation``.
"""

import asyncio
import os
import signal
import sys
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from isthmus.client import AgentClient
from isthmus.terminal.interactive.asking import TerminalQuestions
from isthmus.terminal.interactive.command_list import CommandList
from isthmus.terminal.interactive.conversation import TerminalConversation
from isthmus.terminal.interactive.interactive.attention import Attention, CallsBy
from isthmus.terminal.interactive.interactive_options import InteractiveOptions
from isthmus.terminal.interactive.turns import Turns
from isthmus.terminal.signals import signal_handlers

if TYPE_CHECKING:
    from isthmus.terminal.prompt.prompting import Prompter
    from isthmus.terminal.screen.screen import Screen


async def run_interactive(agent: AgentClient, options: InteractiveOptions) -> int:
    """Hold a conversation on stdin and stdout until the user leaves, and return the exit code.

    The code is 0 if the user left, 1 if the session to resume does not exist, 128 + n after signal n. Tasks that wait
    for an answer keep waiting.
    """
    from isthmus.terminal.screen.render import TaskRenderer
    from isthmus.terminal.screen.screen import Screen

    screen = Screen(sys.stdout)
    prompter = _prompter(screen, options)
    renderer = TaskRenderer(screen, options.awaited_servers)
    attention = Attention(
        screen.control, os.environ, options.workspace or "", CallsBy.NONE if not screen.is_live else options.calls_by
    )
    asking = TerminalQuestions(screen, renderer, prompter, options.answered_by, options.timeouts, attention)
    turns = Turns(agent, screen, renderer, asking, options.timeouts, attention)
    commands = CommandList(agent)
    prompter.offer(commands.complete, commands.ask)
    renderer.typed = prompter.typed
    if prompter.reads_keys:
        renderer.cancel_key = "Esc"
    conversation = TerminalConversation(agent, options, screen, renderer, prompter, turns, commands)
    turns.on_next_mode = conversation.mode.next_soon
    main = asyncio.ensure_future(conversation.run())
    ended_by: list[int] = []

    def end(number: signal.Signals) -> None:
        ended_by.append(number)
        main.cancel()

    ends = {number: partial(end, number) for number in (signal.SIGTERM, signal.SIGHUP)}
    with signal_handlers({signal.SIGINT: conversation.interrupt, **ends}):
        attention.begin()
        options.announcements.begin(conversation.announce)
        try:
            with prompter.without_echo():
                return await main
        except asyncio.CancelledError:
            if not ended_by:
                main.cancel()
                raise
            return 128 + ended_by[0]
        finally:
            options.announcements.end()
            await commands.aclose()
            await conversation.mode.aclose()
            await conversation.status.aclose()
            with suppress(OSError, ValueError):
                attention.end()
                screen.cursor(is_shown=True)


def _prompter(screen: "Screen", options: InteractiveOptions) -> "Prompter":
    """Return the editable prompt if stdin and stdout are a real terminal, else one for plain lines."""
    is_typed = sys.stdin.isatty()
    if is_typed and screen.is_live and sys.platform != "win32":
        from isthmus.terminal.prompt.prompt_toolkit_input import PromptToolkitPrompter

        return PromptToolkitPrompter(
            screen.glyphs, options.history_file, options.pause, has_vi_keys=options.has_vi_keys
        )
    from isthmus.terminal.prompt.prompting import LinePrompter

    return LinePrompter(sys.stdin.fileno(), screen, echoes=is_typed, pause=options.pause)
