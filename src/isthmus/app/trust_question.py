"""The question at the start of a program: may what this folder's files configure run on this machine?

Asked once: the answer stands in Gemini CLI's ``~/.gemini/trustedFolders.json``. An editor that has the folder open and
says whether it is trusted counts first, and then nobody is asked. Without a user nothing is asked, only said.
"""

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, TextIO, TypeAlias

from isthmus.app.project_starts import project_starts
from isthmus.mcp_host.config.folder_trust import TrustRule, state_trust, stated_trust
from isthmus.terminal.early_text import LONGEST_SHOWN, PAUSE_SECONDS, drop_begun_line
from isthmus.terminal.sanitize import visible_line
from isthmus.text.visible import with_ellipsis

if TYPE_CHECKING:
    from isthmus.app.editor_directory import EditorDirectory

OnUnknown: TypeAlias = Callable[[Path, Sequence[str]], Awaitable[None]]
"""Called with a folder that nothing is known of, and what its files would start."""


async def settle_trust(
    on_unknown: OnUnknown, folder: Path, environment: Mapping[str, str], editors: "EditorDirectory | None"
) -> bool:
    """Call `on_unknown` where the folder's files would start something and nobody said whether they may.

    False: there was no reason to.
    """
    home = Path.home()
    if await asyncio.to_thread(stated_trust, home, folder) is not None:
        return False
    starts = await asyncio.to_thread(project_starts, folder, home, environment)
    if not starts:
        return False
    if editors is not None:
        await editors.meet(folder)  # until it could say
        if editors.trust(folder) is not None:
            return False
    await on_unknown(folder, starts)
    return True


async def ask(folder: Path, starts: Sequence[str]) -> None:
    """Ask the user at this terminal, and keep the answer; one who leaves (Ctrl-D) is asked again next time.

    Raises:
        SettingsFileError: the answer cannot be kept.
    """
    parent = folder.parent
    answers = {"1": TrustRule.FOLDER, "2": TrustRule.PARENT, "3": TrustRule.NOT}
    lines = [
        f"Do you trust {visible_line(str(folder))}? Its files would start on this machine:",
        *(f"  - {visible_line(line)}" for line in starts),
        f"  1  Trust this folder ({visible_line(folder.name)})",
        f"  2  Trust the folder around it and all in there ({visible_line(parent.name or str(parent))})",
        "  3  Don't trust: go on without these",
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


def tell(stream: TextIO) -> OnUnknown:
    """For runs without a user: what is not started, and how to allow it."""

    async def told(folder: Path, starts: Sequence[str]) -> None:
        what = "".join(f"\n  - {visible_line(line)}" for line in starts)
        shown = visible_line(str(folder))
        stream.write(
            f"isthmus: not started, since you did not say whether you trust {shown}:{what}\n"
            f"isthmus: `isthmus trust {shown}` allows it, `isthmus trust --no {shown}` ends this message\n"
        )
        stream.flush()

    return told


async def _drop_early_lines(descriptor: int) -> None:
    """Read what was typed before the question was there, or before a pause in typing: none of it is an answer."""
    with suppress(TimeoutError):
        while True:
            async with asyncio.timeout(PAUSE_SECONDS):
                if (typed := await _typed_line(descriptor)) is None:
                    return
            shown = with_ellipsis(visible_line(typed.strip()), LONGEST_SHOWN)
            sys.stdout.write(f"  Typed before this question, so no answer to it: {shown}\n")
            sys.stdout.flush()
    drop_begun_line(descriptor)


async def _typed_line(descriptor: int) -> str | None:
    """Return a line of a terminal in its usual mode, which gives whole lines; None at the end of input.

    Not in a thread: one that reads cannot be ended, and the program would wait for it.
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
