"""Runs git with a deadline, limited output, and nothing that a stranger's repository names."""

import asyncio
import secrets
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path

from isthmus.record import record
from isthmus.runtime.child_input import feed
from isthmus.runtime.group_guard import MARK, group_guard
from isthmus.runtime.processes import end_process, start_process
from isthmus.text.visible import without_escapes
from isthmus.worktrees.errors import GitFailedError, GitOutputTooLargeError, WorktreeError
from isthmus.worktrees.git_environment import base_environment, batch_ssh, configuration, find_git
from isthmus.worktrees.git_output import is_version_at_least

MINIMUM_VERSION = (2, 36)
"""The first version with all that is used; older ones ignore settings in the environment, so that hooks would run."""
LOCAL_SECONDS = 120.0
"""Maximum time in seconds of a command that only uses this machine's disk."""
NETWORK_SECONDS = 900.0
"""Maximum time in seconds of a fetch or push."""
MAXIMUM_OUTPUT_BYTES = 64 * 1024 * 1024
"""Maximum size of git's output that is read, unless another is given: the paths of a million files."""
ERROR_BYTES = 64 * 1024
"""Maximum size of git's messages that are read; the rest is dropped."""
ERROR_LINES = 6
"""Maximum number of the last lines of git's messages that an error quotes."""

_new_enough: set[str] = set()
"""Programs whose version this process has asked for."""


@record
class Git:
    """A git program with safe variables and settings. ``environment`` is the user's who may use the network.

    ``lock`` is the descriptor of a lock that git inherits: the lock lasts until git has ended, even if this process is
    killed. ``ssh`` is the command that is used where the environment names none.
    """

    program: str
    variables: Mapping[str, str]
    settings: Mapping[str, str]
    environment: Mapping[str, str]
    lock: int | None = None
    ssh: str = "ssh"

    @classmethod
    async def find(cls, environment: Mapping[str, str], settings: Mapping[str, str], folder: Path) -> "Git":
        """Return the git of PATH, with settings that win over every file's. ``folder`` exists.

        Raises:
            WorktreeError: there is none, or it is too old to be told these settings.
        """
        place = find_git(environment)
        if place is None:
            raise WorktreeError("git was not found in PATH, and worktrees need it: install git")
        git = cls(place.program, base_environment(environment, place.search_path), settings, environment)
        if place.program in _new_enough:
            return git
        said = await git.text("version", folder=folder)
        if not is_version_at_least(said, MINIMUM_VERSION):
            wanted = ".".join(map(str, MINIMUM_VERSION))
            raise WorktreeError(f"{place.program} is {said[:80]!r}, and worktrees need {wanted} or later: update git")
        _new_enough.add(place.program)
        return git

    async def text(
        self,
        *arguments: str,
        folder: Path,
        variables: Mapping[str, str] | None = None,
        given: bytes = b"",
        seconds: float = LOCAL_SECONDS,
        maximum: int = MAXIMUM_OUTPUT_BYTES,
        uses_network: bool = False,
    ) -> str:
        """Return what git prints, without the last newline; bytes that are not UTF-8 are surrogates.

        Args:
            arguments: the command and its arguments; their first word names the command in errors.
            folder: where git runs.
            variables: further environment variables.
            given: what git reads from standard input.
            seconds: maximum time.
            maximum: maximum size of the output in bytes.
            uses_network: whether git may use other machines; it is then killed with this process.

        Raises:
            GitFailedError: git ended with an error.
            GitOutputTooLargeError: the output is larger than ``maximum``.
            WorktreeError: git cannot be started, or does not end in time.
        """
        printed = await self.output(
            *arguments,
            folder=folder,
            variables=variables,
            given=given,
            seconds=seconds,
            maximum=maximum,
            uses_network=uses_network,
        )
        return printed.decode("utf-8", "surrogateescape").removesuffix("\n")

    async def output(
        self,
        *arguments: str,
        folder: Path,
        variables: Mapping[str, str] | None = None,
        given: bytes = b"",
        seconds: float = LOCAL_SECONDS,
        maximum: int = MAXIMUM_OUTPUT_BYTES,
        uses_network: bool = False,
    ) -> bytes:
        """Return what git prints, as :meth:`text` does, in bytes."""
        name = next((word for word in arguments if not word.startswith("-")), "")
        base = self._network_variables() if uses_network else self.variables
        every = {**base, **configuration(self.settings), **(variables or {})}
        try:
            async with asyncio.timeout(seconds), AsyncExitStack() as stack:
                if uses_network:
                    every[MARK] = mark = secrets.token_hex(16)
                    announce = await stack.enter_async_context(group_guard(mark))
                else:
                    announce = None
                process = await start_process(
                    self.program,
                    "--no-pager",
                    *arguments,
                    cwd=folder,
                    env=every,
                    stdin=PIPE if given else DEVNULL,
                    stdout=PIPE,
                    stderr=PIPE,
                    pass_fds=() if self.lock is None else (self.lock,),
                )
                try:
                    if announce is not None:
                        announce(process.pid)
                    return await _communicate(process, name, given, maximum)
                finally:
                    await end_process(process)
        except TimeoutError as error:
            raise WorktreeError(f"git {name} did not end within {seconds:g} s, and was stopped") from error
        except (OSError, ValueError) as error:
            raise WorktreeError(f"git {name} cannot be run in {folder}: {error}") from error

    def _network_variables(self) -> Mapping[str, str]:
        path = self.variables["PATH"]
        found = base_environment(self.environment, path, uses_network=True)
        return found | {"GIT_SSH_COMMAND": batch_ssh(found.get("GIT_SSH_COMMAND") or self.ssh)}


async def _communicate(process: asyncio.subprocess.Process, name: str, given: bytes, maximum: int) -> bytes:
    if process.stdout is None or process.stderr is None:
        raise WorktreeError(f"git {name} has no output")
    reading = asyncio.gather(
        _read(process.stdout, name, maximum), _read_end(process.stderr), feed(process.stdin, given)
    )
    printed, messages, _ = await reading
    if await process.wait() != 0:
        shown = without_escapes(messages.decode("utf-8", "replace")).strip().splitlines()
        lines = [line for line in shown if line.strip() and not line.startswith("hint:")]
        text = printed[:ERROR_BYTES].decode("utf-8", "replace")
        raise GitFailedError(name, "; ".join(lines[-ERROR_LINES:]), text)
    return printed


async def _read(reader: asyncio.StreamReader, name: str, maximum: int) -> bytes:
    read = bytearray()
    while chunk := await reader.read(256 * 1024):
        read += chunk
        if len(read) > maximum:
            raise GitOutputTooLargeError(f"git {name} printed more than {maximum:,} bytes, which is not read")
    return bytes(read)


async def _read_end(reader: asyncio.StreamReader) -> bytes:
    """Return the last bytes."""
    read = bytearray()
    while chunk := await reader.read(ERROR_BYTES):
        read = (read + chunk)[-ERROR_BYTES:]
    return bytes(read)


def as_stdin(paths: Sequence[str]) -> bytes:
    """Return paths as git reads them with ``-z --stdin``."""
    return b"".join(path.encode("utf-8", "surrogateescape") + b"\0" for path in paths)
