"""Asks the user at the start whether programs that the folder's files configure may run on this machine.

The answer is stored in Gemini CLI's ``~/.gemini/trustedFolders.json``. If an editor that has the folder open reports
its trust, that counts and the user is not asked. Without a user at the terminal, a message is printed instead.
"""

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, TextIO, TypeAlias

from isthmus.app.project_programs import project_programs
from isthmus.mcp_host.config.folder_trust import TrustRule, state_trust, stated_trust
from isthmus.terminal.early_text import LONGEST_SHOWN, PAUSE_SECONDS, drop_begun_line
from isthmus.text.visible import visible_line, with_ellipsis

if TYPE_CHECKING:
    from isthmus.app.editor_directory import EditorDirectory

OnUnknown: TypeAlias = Callable[[Path, Sequence[str]], Awaitable[None]]
"""Callback for a folder whose trust is unknown; receives the folder and the programs that its files would start."""


async def settle_trust(
    on_unknown: OnUnknown, folder: Path, environment: Mapping[str, str], editors: "EditorDirectory | None"
) -> bool:
    """Call `on_unknown` if the folder's files would start programs and its trust is unknown; return whether it did."""
    home = Path.home()
    if await asyncio.to_thread(stated_trust, home, folder) is not None:
        return False
    programs = await asyncio.to_thread(project_programs, folder, home, environment)
    if not programs:
        return False
    if editors is not None:
        await editors.connect(folder)  # waits for its state
        if editors.trust(folder) is not None:
            return False
    await on_unknown(folder, programs)
    return True


async def ask_for_trust(folder: Path, programs: Sequence[str]) -> None:
    """Ask the user at this terminal and store the answer; after Ctrl-D the question comes again at the next start.

    Raises:
        SettingsFileError: the answer cannot be stored.
    """
    parent = folder.parent
    answers = {"1": TrustRule.FOLDER, "2": TrustRule.PARENT, "3": TrustRule.NOT}
    lines = [
        f"Do you trust {visible_line(str(folder))}? Its files would start on this machine:",
        *(f"  - {visible_line(line)}" for line in programs),
        f"  1  Trust this folder ({visible_line(folder.name)})",
        f"  2  Trust its parent folder and all folders in it ({visible_line(parent.name or str(parent))})",
        "  3  Don't trust: continue without these",
    ]
    sys.stdout.write("\n".join(lines) + "\n")
    sys.stdout.flush()
    if sys.stdin.isatty():
        await _drop_early_lines(sys.stdin.fileno())
    while True:
        sys.stdout.write("  answer (1, 2, 3): ")
        sys.stdout.flush()
        typed = await _typed_line(sys.stdin.fileno())
        if typed is None:
            sys.stdout.write("\n")
            return
        if (rule := answers.get(typed.strip())) is not None:
            break
    await asyncio.to_thread(state_trust, Path.home(), folder, rule)


def report_untrusted(stream: TextIO) -> OnUnknown:
    """Return a callback for runs without a user that prints what is not started, and how to allow it."""

    async def print_untrusted(folder: Path, programs: Sequence[str]) -> None:
        what = "".join(f"\n  - {visible_line(line)}" for line in programs)
        shown = visible_line(str(folder))
        stream.write(
            f"isthmus: not started, because you have not decided whether to trust {shown}:{what}\n"
            f"isthmus: run `isthmus trust {shown}` to allow it, `isthmus trust --no {shown}` to hide this message\n"
        )
        stream.flush()

    return print_untrusted


async def _drop_early_lines(descriptor: int) -> None:
    """Discard input typed before the question was shown, or without a pause after it: it is not an answer."""
    with suppress(TimeoutError):
        while True:
            async with asyncio.timeout(PAUSE_SECONDS):
                if (typed := await _typed_line(descriptor)) is None:
                    return
            shown = with_ellipsis(visible_line(typed.strip()), LONGEST_SHOWN)
            sys.stdout.write(f"  Typed before this question, so not taken as an answer: {shown}\n")
            sys.stdout.flush()
    drop_begun_line(descriptor)


async def _typed_line(descriptor: int) -> str | None:
    """Return a line of a terminal in line mode; None at the end of input.

    Does not read in a thread, because a reading thread cannot be cancelled and the program would wait for it.
    """
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    loop.add_reader(descriptor, ready.set)
    try:
        await ready.wait()
    finally:
        loop.remove_reader(descriptor)
    data = os.read(descriptor, 4096)
    return data.decode("utf-8", "replace") if data else None
