"""Runs the programs of hooks as child processes, with a deadline, and with limits for what they print."""

import asyncio
import re
import secrets
import shutil
from asyncio import StreamReader
from asyncio.subprocess import PIPE, Process
from collections.abc import Mapping
from pathlib import Path

from isthmus.agent.hooks.verdicts import HookOutcome
from isthmus.runtime.child_input import feed
from isthmus.runtime.group_guard import MARK, group_guard
from isthmus.runtime.processes import end_process, start_process
from isthmus.settings.rules.hooks import MODEL_EVENTS, Hook, HookDialect

MAXIMUM_OUTPUT_BYTES = 1024 * 1024
"""Maximum size of the output of a hook, and of its errors, in bytes; the rest is dropped."""
MAXIMUM_REQUEST_BYTES = 32 * 1024 * 1024
"""Maximum size of the output of a hook that may return a whole conversation."""
LEFT_OPEN_SECONDS = 1.0
"""Maximum wait in seconds for the end of the output, once the hook itself has ended."""
POLL_SECONDS = 0.01
"""Time in seconds between two looks at whether a hook has ended."""
_CHUNK = 65_536
_PLACE = re.compile(r"\$\{(CLAUDE_PROJECT_DIR|GEMINI_PROJECT_DIR)\}|\$(CLAUDE_PROJECT_DIR|GEMINI_PROJECT_DIR)\b")


class HookProcesses:
    """Runs each hook in a shell, or directly if it has arguments."""

    async def run(self, hook: Hook, given: bytes, folder: Path, environment: Mapping[str, str]) -> HookOutcome:
        """Run a hook; a failure to start it and its deadline are outcomes, too."""
        mark = secrets.token_hex(16)
        try:
            async with asyncio.timeout(hook.seconds), group_guard(mark) as announce:
                process = await start_process(
                    *_command(hook, folder),
                    stdin=PIPE, stdout=PIPE, stderr=PIPE, cwd=folder, env={**environment, MARK: mark},
                )  # fmt: skip
                try:
                    announce(process.pid)
                    return await _outcome(process, given, _maximum(hook))
                finally:
                    await end_process(process)
        except TimeoutError:
            return HookOutcome(None, failure=f"it took longer than {hook.seconds:g} s and was ended")
        except (OSError, ValueError) as error:
            return HookOutcome(None, failure=f"it cannot be started: {error}")


def _command(hook: Hook, folder: Path) -> list[str]:
    if hook.arguments is not None:
        return [_PLACE.sub(lambda _: str(folder), part) for part in (hook.command, *hook.arguments)]
    command = hook.command
    if hook.dialect is HookDialect.GEMINI:
        command = _with_quotes(command)
    return [shutil.which("bash") or "/bin/sh", "-c", command]


def _with_quotes(command: str) -> str:
    """Return a command in which the project's folder is one word, as Gemini CLI replaces it."""

    def quoted(found: re.Match[str]) -> str:
        before = command[: found.start()]
        is_in_quotes = before.count('"') % 2 == 1 or before.count("'") % 2 == 1
        return found[0] if is_in_quotes else f'"{found[0]}"'

    return _PLACE.sub(quoted, command)


def _maximum(hook: Hook) -> int:
    return MAXIMUM_REQUEST_BYTES if hook.event in MODEL_EVENTS else MAXIMUM_OUTPUT_BYTES


async def _outcome(process: Process, given: bytes, maximum: int) -> HookOutcome:
    output, errors = bytearray(), bytearray()
    pumps = [
        asyncio.create_task(_read(process.stdout, output, maximum + 1)),
        asyncio.create_task(_read(process.stderr, errors, MAXIMUM_OUTPUT_BYTES)),
        asyncio.create_task(feed(process.stdin, given)),
    ]
    try:
        status = await _status(process)
        await asyncio.wait(pumps, timeout=LEFT_OPEN_SECONDS)
    finally:
        for pump in pumps:
            pump.cancel()
        await asyncio.gather(*pumps, return_exceptions=True)
    said, is_cut = bytes(output[:maximum]), len(output) > maximum
    return HookOutcome(status, said.decode(errors="replace"), errors.decode(errors="replace"), is_cut=is_cut)


async def _status(process: Process) -> int:
    """Return the exit status once the process itself has ended; asyncio would wait for the ends of its pipes, too."""
    while process.returncode is None:
        await asyncio.sleep(POLL_SECONDS)
    return process.returncode


async def _read(stream: StreamReader | None, into: bytearray, maximum: int) -> None:
    while stream is not None and (data := await stream.read(_CHUNK)):
        into += data[: maximum - len(into)]
